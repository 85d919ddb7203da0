//! What the client of a simulation runs, and what it checks.

use super::{
    Figures, MASTER, TASKS,
    client::{Client, Ended},
    random::Random,
    world::World,
};
use crate::{clock, peers::task_name, refusal::Refusal, simulated::task::AWAY};
use std::{sync::Arc, time::Duration};
use tenon_framework::Code;

/// How long an answer may be on its way after the deadline of its step.
const SLACK: Duration = Duration::from_millis(1500);
/// How long a step without a deadline may take while faults come and go.
const LONG: Duration = Duration::from_secs(90);
/// How long a step that waits for a task may go on after that task ended.
const SEEN: Duration = Duration::from_secs(8);
/// How long a client waits for what never comes.
const IN_VAIN: Duration = Duration::from_secs(15);

/// What the client knows of the variable at the ps.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// Whether it has a value that this client gave it.
    is_set: bool,
    /// The least that it may be, and the most: updates of failed steps may have been made.
    least: f32,
    most: f32,
}

struct Script {
    world: Arc<World>,
    random: Random,
    client: Option<Client>,
    known: Known,
    figures: Figures,
}

type Checked = Result<(), String>;

/// Plays the whole script.
pub(super) async fn play(world: Arc<World>) -> Result<Figures, String> {
    let random = world.split();
    let figures = world.figures();
    let mut script = Script { world, random, client: None, known: Known::default(), figures };
    for _ in 0..script.world.plan.steps {
        script.next().await?;
        let idle = Duration::from_millis(script.random.between(0, 3000));
        clock::sleep(idle).await;
    }
    script.calm_down().await?;
    Ok(Figures { time: script.world.time.elapsed(), ..script.figures })
}

/// A limit of a step.
fn deadline(random: &mut Random) -> Option<Duration> {
    random.chance(70).then(|| Duration::from_millis(random.between(200, 9000)))
}

impl Script {
    /// One step, in a session that is opened if there is none.
    async fn next(&mut self) -> Checked {
        if self.client.is_none() {
            return self.open().await;
        }
        if !self.known.is_set {
            return self.set().await;
        }
        match self.random.between(0, 5) {
            0 | 1 => self.add().await,
            2 => self.read().await,
            3 => self.wait_in_vain().await,
            _ => self.pass_on().await,
        }
    }

    async fn open(&mut self) -> Checked {
        match Client::open(&self.world).await {
            Some(Ok(client)) => {
                self.world.tell("a session".to_owned());
                self.client = Some(client);
                Ok(())
            }
            Some(Err(refusal)) => self.judge("CreateSession", &refusal),
            None if self.is_master_touched() => Ok(()),
            None => Err("CreateSession did not end".to_owned()),
        }
    }

    /// Runs a step, and checks when it ends and how it fails; `None` if it failed.
    async fn run(
        &mut self,
        what: &str,
        x: Option<&[f32]>,
        names: (&[&str], &[&str]),
        deadline: Option<Duration>,
    ) -> Result<Option<Vec<Vec<f32>>>, String> {
        let Some(client) = &self.client else { return Ok(None) };
        let begin = self.world.time.elapsed();
        let limit = deadline.map_or(LONG, |it| it + SLACK);
        let ended: Ended<_> = client.run(x, names, deadline, limit).await;
        let took = self.world.time.elapsed() - begin;
        let short = match &ended {
            None => "no answer".to_owned(),
            Some(Ok(_)) => "ok".to_owned(),
            Some(Err(refusal)) => format!("{}: {}", refusal.code, refusal.message),
        };
        self.world.tell(format!("{what} within {deadline:?}: {short}, after {took:?}"));
        match ended {
            Some(Ok(values)) => {
                self.figures.done += 1;
                Ok(Some(values))
            }
            Some(Err(refusal)) => {
                self.figures.failed += 1;
                self.judge(what, &refusal)?;
                // A session that lost a task does not find it again.
                if refusal.code != Code::DEADLINE_EXCEEDED {
                    self.client = None;
                    self.known.is_set = false;
                }
                Ok(None)
            }
            None if self.is_master_touched() => {
                self.figures.failed += 1;
                self.client = None;
                Ok(None)
            }
            None => Err(format!("{what}: no end within {limit:?}, its deadline was {deadline:?}")),
        }
    }

    /// Assigns a value that no earlier update of this simulation can lead to.
    async fn set(&mut self) -> Checked {
        let value = (self.known.most / 1000.0).floor().mul_add(1000.0, 1000.0);
        let limit = deadline(&mut self.random);
        let done = self.run("set", Some(&[value]), (&[], &["set"]), limit).await?;
        self.known = Known { is_set: done.is_some(), least: value, most: value };
        if done.is_none() {
            // One that arrives late would undo what comes after it.
            self.wait_for_calm().await;
        }
        Ok(())
    }

    async fn add(&mut self) -> Checked {
        let limit = deadline(&mut self.random);
        let done = self.run("add", Some(&[1.0]), (&[], &["add"]), limit).await?;
        self.known.most += 1.0;
        self.known.least += if done.is_some() { 1.0 } else { 0.0 };
        Ok(())
    }

    async fn read(&mut self) -> Checked {
        let limit = deadline(&mut self.random);
        let Some(values) = self.run("value", None, (&["value:0"], &[]), limit).await? else {
            return Ok(());
        };
        let found = values[0][0];
        let Known { least, most, .. } = self.known;
        if found < least || found > most {
            return Err(format!("the variable is {found}, expected {least} to {most}"));
        }
        self.known.least = found;
        Ok(())
    }

    /// Sends values through all tasks.
    async fn pass_on(&mut self) -> Checked {
        let count = *self.random.pick(&[1usize, 7, 300, 5000]);
        let x: Vec<f32> = (0..count).map(|_| self.random.between(0, 40) as f32).collect();
        let limit = deadline(&mut self.random);
        let Some(values) = self.run("y", Some(&x), (&["y:0"], &[]), limit).await? else {
            return Ok(());
        };
        let expected: Vec<f32> = x.iter().map(|x| (x - x * x) * (x - x * x)).collect();
        if values[0] != expected {
            return Err(format!("y of {count} values is wrong"));
        }
        Ok(())
    }

    /// Waits for what never comes: by a deadline, until the client gives up, or until the task is lost.
    async fn wait_in_vain(&mut self) -> Checked {
        let Some(client) = &self.client else { return Ok(()) };
        let limit = deadline(&mut self.random).filter(|limit| *limit < IN_VAIN);
        let begin = self.world.time.elapsed();
        let patience = limit.map_or(IN_VAIN, |limit| limit + SLACK);
        let ended = client.run(None, (&["waits:0"], &[]), limit, patience).await;
        let end = self.world.time.elapsed();
        self.world.tell(format!("waits within {limit:?}: {ended:?}"));
        let lost = self.world.ended(0).filter(|lost| (begin..end).contains(lost));
        match ended {
            Some(Ok(_)) => Err("an element of an empty queue came".to_owned()),
            Some(Err(refusal)) if refusal.code == Code::DEADLINE_EXCEEDED && limit.is_some() => {
                Ok(())
            }
            Some(Err(refusal)) => {
                self.client = None;
                self.known.is_set = false;
                self.judge("waits", &refusal)
            }
            None if self.is_master_touched() => {
                self.client = None;
                Ok(())
            }
            None if limit.is_some() => Err(format!("waits: no end by its deadline, {limit:?}")),
            None => match lost.filter(|lost| end.saturating_sub(*lost) > SEEN) {
                Some(lost) => Err(format!("the ps ended at {lost:?}, and its step goes on")),
                None => Ok(()),
            },
        }
    }

    fn is_master_touched(&self) -> bool {
        self.world.touched().contains(&MASTER)
    }

    /// Whether an error is one that a fault may lead to, and names a task of the fault.
    fn judge(&self, what: &str, refusal: &Refusal) -> Checked {
        let touched = self.world.touched();
        let told = || format!("{what}: {}: {}", refusal.code, refusal.message);
        let expected = [
            Code::UNAVAILABLE,
            Code::ABORTED,
            Code::DEADLINE_EXCEEDED,
            Code::CANCELLED,
            // The variable of a ps that was started anew.
            Code::FAILED_PRECONDITION,
        ];
        if !expected.contains(&refusal.code) {
            return Err(format!("an error with a wrong code: {}", told()));
        }
        let habits = self.world.plan.habits;
        if touched.is_empty()
            && habits == Default::default()
            && refusal.code != Code::DEADLINE_EXCEEDED
        {
            return Err(format!("an error without a fault: {}", told()));
        }
        let names = |at: &usize| refusal.message.contains(&task_name(TASKS[*at].0, TASKS[*at].1));
        let is_named = habits.twice > 0 || touched.contains(&MASTER) || touched.iter().any(names);
        let is_late = refusal.code == Code::DEADLINE_EXCEEDED;
        if !is_named && !is_late && !touched.is_empty() {
            return Err(format!("an error that names no task of the faults: {}", told()));
        }
        Ok(())
    }

    async fn wait_for_calm(&self) {
        while !self.world.is_calm() {
            clock::sleep(Duration::from_secs(1)).await;
        }
        // Connections that broke are made anew, and what was held has arrived.
        clock::sleep(Duration::from_secs(10)).await;
    }

    /// After the faults a new session works, and nothing is left when it is closed.
    async fn calm_down(&mut self) -> Checked {
        self.wait_for_calm().await;
        if let Some(client) = self.client.take() {
            let _ = client.close(LONG).await;
        }
        let client = match Client::open(&self.world).await {
            Some(Ok(client)) => client,
            Some(Err(refusal)) => {
                return Err(format!("no session after the faults: {}", refusal.message));
            }
            None => return Err("no session after the faults".to_owned()),
        };
        let limit = Some(Duration::from_secs(20));
        let names = (&["y:0"][..], &["set"][..]);
        match client.run(Some(&[3.0]), names, limit, LONG).await {
            Some(Ok(values)) if values == [[36.0]] => {}
            Some(Err(refusal)) if self.world.plan.habits.twice > 0 => {
                self.world.tell(format!("the last step: {}", refusal.message));
            }
            other => return Err(format!("the last step after the faults: {other:?}")),
        }
        match client.close(LONG).await {
            Some(Ok(())) => {}
            other => return Err(format!("CloseSession after the faults: {other:?}")),
        }
        clock::sleep(AWAY * 3).await;
        let held = self.world.held();
        match held.is_empty() {
            true => Ok(()),
            false => Err(format!("left at the end: {}", held.join(", "))),
        }
    }
}
