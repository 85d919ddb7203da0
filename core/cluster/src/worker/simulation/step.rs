//! A step: its tasks send and take values, and its master cleans up.

use super::{
    Dice, PATIENCE, TASKS, World,
    node::{Node, Others, name_of},
};
use std::{sync::Arc, time::Duration};
use tenon_framework::{Code, Tensor};
use tenon_runtime::{
    StepError,
    rendezvous::{EdgeName, Key, Parcel, Rendezvous},
};
use tokio::{
    sync::mpsc::{UnboundedSender, unbounded_channel},
    time::{Instant, sleep, timeout_at},
};

/// A value that one task sends to another, or to itself.
#[derive(Clone)]
struct Transfer {
    number: usize,
    from: usize,
    to: usize,
    incarnation: u64,
    bytes: usize,
    is_dead: bool,
}

impl Transfer {
    fn key(&self, node: &Node) -> Key {
        let device = |task: usize| format!("{}/device:CPU:0", name_of(task));
        Key::of(node.edges.intern(EdgeName {
            source: device(self.from),
            incarnation: self.incarnation,
            destination: device(self.to),
            tensor: format!("t{}:0", self.number),
        }))
    }

    /// The elements that a step sends.
    fn elements(&self, step: i64) -> Vec<u8> {
        let salt = step as usize * 131 + self.number * 17;
        (0..self.bytes).map(|at| (at * 31 + salt) as u8).collect()
    }

    fn parcel(&self, step: i64) -> Parcel {
        let elements = self.elements(step);
        let tensor = Tensor::from_slice(&[self.bytes as i64], &elements).expect("there is memory");
        Parcel { tensor: (!self.is_dead).then_some(tensor), is_dead: self.is_dead }
    }

    /// Whether this is the value that the step sends.
    fn is(&self, parcel: &Parcel, step: i64) -> bool {
        let found = parcel.tensor.as_ref().map(|tensor| tensor.as_bytes().expect("it has bytes"));
        let expected = (!self.is_dead).then(|| self.elements(step));
        parcel.is_dead == self.is_dead && found == expected.as_deref()
    }
}

fn transfers(dice: &mut Dice, nodes: &[Arc<Node>]) -> Vec<Transfer> {
    let count = 1 + dice.below(8) as usize;
    let one = |number| {
        let from = dice.below(TASKS as u64) as usize;
        Transfer {
            number,
            from,
            to: dice.below(TASKS as u64) as usize,
            incarnation: nodes[from].incarnation,
            bytes: dice.one_of(&[0, 4, 100, 5_000, 65_536, 65_537, 300_000]),
            is_dead: dice.below(10) == 0,
        }
    };
    (0..count).map(one).collect()
}

type Heard = UnboundedSender<(usize, Result<Parcel, StepError>)>;

/// What a task does: the number of a transfer, whether it sends or takes it, and how long after what it did before.
type Deed = (Transfer, bool, Duration);

/// The part of a task.
async fn part(node: Arc<Node>, step: i64, start: Duration, deeds: Vec<Deed>, heard: Heard) {
    sleep(start).await;
    let begun = node.steps.find(step);
    if let Some(begun) = &begun {
        begun.rendezvous.connect(Arc::new(Others(Arc::clone(&node))));
    }
    for (transfer, sends, pause) in deeds {
        sleep(pause).await;
        let begun = begun.as_ref().filter(|_| node.is_alive());
        let (number, heard) = (transfer.number, heard.clone());
        match begun {
            // The master hears of a step that has failed by its receivers.
            Some(begun) if sends => {
                let _ = begun.rendezvous.send(&transfer.key(&node), transfer.parcel(step));
            }
            Some(begun) => {
                let receiver = move |parcel| drop(heard.send((number, parcel)));
                begun.rendezvous.recv(&transfer.key(&node), Box::new(receiver));
            }
            None if sends => {}
            None => drop(heard.send((number, Err(StepError::step(Code::ABORTED, "it is over"))))),
        }
    }
}

fn deeds(dice: &mut Dice, transfers: &[Transfer], task: usize) -> Vec<Deed> {
    let mut deeds = Vec::new();
    for transfer in transfers {
        for (is_own, sends) in [(transfer.from == task, true), (transfer.to == task, false)] {
            let pause = Duration::from_micros(dice.one_of(&[0, 0, 5, 800, 20_000, 1_000_000]));
            if is_own {
                let place = dice.below(deeds.len() as u64 + 1) as usize;
                deeds.insert(place, (transfer.clone(), sends, pause));
            }
        }
    }
    deeds
}

/// Cleans a step up at all tasks, at some of them twice.
async fn clean_up(world: &World, nodes: &[Arc<Node>], step: i64) {
    for node in nodes {
        let (delay, again) = world.choose(|dice| (dice.below(20), dice.below(3) == 0));
        sleep(Duration::from_millis(delay)).await;
        node.steps.clean_up(step);
        if again {
            node.steps.clean_up(step);
        }
    }
}

/// Runs a step; whether it succeeded.
///
/// # Errors
/// What must not be.
pub(super) async fn run(world: &Arc<World>, step: i64) -> Result<bool, String> {
    let nodes = world.nodes();
    let transfers = world.choose(|dice| transfers(dice, &nodes));
    let (heard, mut answers) = unbounded_channel();
    for node in &nodes {
        let (deeds, start) = world.choose(|dice| {
            let start = dice.one_of(&[0, 10, 3_000, 200_000]);
            (deeds(dice, &transfers, node.number), Duration::from_micros(start))
        });
        tokio::spawn(part(Arc::clone(node), step, start, deeds, heard.clone()));
    }
    drop(heard);
    let (end, mut waits) = (Instant::now() + PATIENCE, vec![true; transfers.len()]);
    let mut failed = false;
    loop {
        let answer = timeout_at(end, answers.recv());
        let answer = answer.await.map_err(|_| format!("step {step} hangs: {waits:?} wait"))?;
        let Some((number, parcel)) = answer else { break };
        if !std::mem::replace(&mut waits[number], false) {
            return Err(format!("receiver {number} of step {step} is called twice"));
        }
        match parcel {
            Ok(parcel) if !transfers[number].is(&parcel, step) => {
                return Err(format!("transfer {number} of step {step} has a wrong value"));
            }
            Ok(_) => {}
            Err(_) if failed => {}
            Err(_) => {
                failed = true;
                clean_up(world, &nodes, step).await;
            }
        }
    }
    if waits.contains(&true) {
        return Err(format!("receivers of step {step} are dropped: {waits:?}"));
    }
    if !failed {
        clean_up(world, &nodes, step).await;
    }
    let is_left = |node: &&Arc<Node>| node.is_alive() && node.steps.there(step).is_some();
    match nodes.iter().find(is_left) {
        Some(node) => Err(format!("step {step} is left at task {}", node.number)),
        None => Ok(!failed),
    }
}
