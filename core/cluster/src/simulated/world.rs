//! The simulated cluster, and its faults while they happen.

use super::{
    Figures, MASTER, Making, TASKS,
    faults::{Fault, Plan, ways},
    network::{Network, Place},
    random::Random,
    task::Task,
};
use crate::{clock, clock::virtual_time::VirtualTime, peers::task_name, spec::ClusterSpec};
use std::{
    collections::BTreeSet,
    fmt::Write,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tenon_proto::GraphDef;

/// The address of the client.
const CLIENT: &str = "client:1";

/// A cluster.
pub(super) struct World {
    pub time: Arc<VirtualTime>,
    pub network: Arc<Network>,
    pub plan: Plan,
    making: Arc<Making>,
    spec: ClusterSpec,
    state: Mutex<State>,
}

struct State {
    random: Random,
    tasks: Vec<Option<Task>>,
    /// The tasks that faults touched.
    touched: BTreeSet<usize>,
    /// The tasks that ended, with the times.
    ended: Vec<(usize, Duration)>,
    story: Vec<(Duration, String)>,
    /// Faults that are not over.
    going_on: usize,
}

impl World {
    /// Starts the tasks, and the faults' times.
    pub fn start(
        time: &Arc<VirtualTime>,
        making: &Arc<Making>,
        mut random: Random,
    ) -> Result<Arc<World>, String> {
        let mut spec = ClusterSpec::default();
        for (job, number) in TASKS {
            let address = format!("{job}-{number}:1");
            spec.jobs.entry(job.to_owned()).or_default().insert(number, address);
        }
        let plan = Plan::new(&mut random, TASKS.len());
        let network = Network::new(time, random.split());
        let state = State {
            random,
            tasks: Vec::new(),
            touched: BTreeSet::new(),
            ended: Vec::new(),
            story: Vec::new(),
            going_on: plan.faults.len(),
        };
        let (time, making) = (Arc::clone(time), Arc::clone(making));
        let state = Mutex::new(state);
        let world = Arc::new(World { time, network, plan, making, spec, state });
        for at in 0..TASKS.len() {
            let task = world.start_task(at)?;
            world.state().tasks.push(Some(task));
        }
        for (when, fault) in world.plan.faults.clone() {
            tokio::spawn(Arc::clone(&world).happen(when, fault));
        }
        Ok(world)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_task(&self, at: usize) -> Result<Task, String> {
        let random = self.split();
        Task::start(&self.network, TASKS[at], &self.spec, &self.making, (self.plan.habits, random))
    }

    /// Numbers for what else is chosen.
    pub fn split(&self) -> Random {
        self.state().random.split()
    }

    pub fn graph(&self) -> GraphDef {
        self.making.graph.clone()
    }

    /// A new place of the client, and the address of its master.
    pub fn client(&self) -> (Place, String) {
        (self.network.join(CLIENT).0, self.address(MASTER))
    }

    fn address(&self, at: usize) -> String {
        let (job, number) = TASKS[at];
        format!("{job}-{number}:1")
    }

    /// Writes down what happens.
    pub fn tell(&self, what: String) {
        let now = self.time.elapsed();
        self.state().story.push((now, what));
    }

    /// What has happened, a line for each event.
    pub fn story(&self) -> String {
        let state = self.state();
        state.story.iter().fold(format!("{:?}\n", self.plan.habits), |mut text, (when, what)| {
            let _ = writeln!(text, "{:>10.3} s  {what}", when.as_secs_f64());
            text
        })
    }

    /// The tasks that faults have touched so far.
    pub fn touched(&self) -> BTreeSet<usize> {
        self.state().touched.clone()
    }

    /// When a task last ended.
    pub fn ended(&self, at: usize) -> Option<Duration> {
        self.state().ended.iter().rev().find(|(task, _)| *task == at).map(|(_, when)| *when)
    }

    /// Whether all faults are over.
    pub fn is_calm(&self) -> bool {
        self.state().going_on == 0
    }

    async fn happen(self: Arc<Self>, when: Duration, fault: Fault) {
        clock::sleep(when).await;
        self.tell(format!("{fault:?}"));
        self.state().touched.extend(fault.tasks());
        let begun = self.begin(&fault);
        clock::sleep(fault.lasts()).await;
        if begun {
            let world = Arc::clone(&self);
            // A runtime takes its time to start.
            let _ = tokio::task::spawn_blocking(move || world.end(&fault)).await;
        }
        self.state().going_on -= 1;
    }

    /// Begins a fault; whether it has an end. A task that is down already cannot end.
    fn begin(&self, fault: &Fault) -> bool {
        match fault {
            Fault::End { task, is_silent, .. } => {
                let Some(gone) = self.state().tasks[*task].take() else { return false };
                let now = self.time.elapsed();
                self.state().ended.push((*task, now));
                gone.end(&self.network, *is_silent);
            }
            Fault::Stop { task, .. } => self.network.cut(&self.around(*task)),
            Fault::Cut { one, other, both, .. } => {
                let ways = ways(&self.address(*one), &self.address(*other));
                self.network.cut(if *both { &ways } else { &ways[..1] });
            }
            Fault::Reset { one, other } => {
                self.network.reset(&self.address(*one), &self.address(*other));
                return false;
            }
            Fault::Slow { from, to, micros, .. } => {
                let [way, _] = ways(&self.address(*from), &self.address(*to));
                self.network.slow(&way, *micros);
            }
        }
        true
    }

    fn end(&self, fault: &Fault) {
        match fault {
            Fault::End { task, .. } => match self.start_task(*task) {
                Ok(started) => {
                    self.tell(format!("{:?} is up again", TASKS[*task]));
                    self.state().tasks[*task] = Some(started);
                }
                Err(why) => self.tell(format!("{:?} does not start: {why}", TASKS[*task])),
            },
            Fault::Stop { task, .. } => self.network.heal(&self.around(*task)),
            Fault::Cut { one, other, .. } => {
                self.network.heal(&ways(&self.address(*one), &self.address(*other)));
            }
            Fault::Slow { from, to, .. } => {
                let [way, _] = ways(&self.address(*from), &self.address(*to));
                self.network.slow(&way, 0);
            }
            Fault::Reset { .. } => {}
        }
    }

    /// All ways to and from a task.
    fn around(&self, task: usize) -> Vec<(String, String)> {
        let own = self.address(task);
        let others = (0..TASKS.len()).map(|at| self.address(at)).chain([CLIENT.to_owned()]);
        others.filter(|other| *other != own).flat_map(|other| ways(&own, &other)).collect()
    }

    /// What the tasks hold of sessions, graphs and steps; empty if nothing.
    pub fn held(&self) -> Vec<String> {
        let mut held = Vec::new();
        for (at, task) in self.state().tasks.iter().enumerate() {
            let Some(task) = task else { continue };
            let name = task_name(TASKS[at].0, TASKS[at].1);
            let masters = ("sessions of clients", task.services.master.sessions());
            let all = task.services.worker.held().into_iter().chain([masters]);
            let left = all.filter(|(_, count)| *count > 0);
            held.extend(left.map(|(what, count)| format!("{name}: {count} {what}")));
        }
        held
    }

    pub fn figures(&self) -> Figures {
        let faults = self.plan.faults.len();
        Figures { faults, time: self.time.elapsed(), ..Figures::default() }
    }

    /// Ends all tasks.
    pub fn stop(&self) {
        let tasks: Vec<Task> = self.state().tasks.iter_mut().filter_map(Option::take).collect();
        tasks.into_iter().for_each(|task| task.end(&self.network, false));
    }
}
