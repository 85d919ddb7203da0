//! Whether other tasks are there, asked once a second while somebody uses them.
//!
//! A master uses the tasks of its sessions, and a worker the tasks of the masters that have sessions on it. A task is asked by
//! GetStatus, which its server answers without a thread, also while all threads are busy. One that does not answer within
//! [`ALIVE`] is lost, so that the loss is known within five seconds; its connections are made anew then, since a task that
//! lost its power closes none. A task whose devices have other incarnations was started anew.

use crate::{
    clock,
    refusal::{Mark, Refusal},
};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_framework::{
    Code,
    sync::{Mutex, rank},
};
use tenon_proto::{DeviceAttributes, GetStatusResponse};

/// How often a task is asked.
pub(crate) const BEAT: Duration = Duration::from_secs(1);
/// How long it may take to answer.
const ALIVE: Duration = Duration::from_secs(3);

/// Takes the answer of a task.
pub(crate) type Told = Box<dyn FnOnce(Result<GetStatusResponse, Refusal>) + Send>;

/// The way to other tasks.
pub(crate) trait Ask: Send + Sync {
    /// Whether there is such a task.
    fn knows(&self, task: &str) -> bool;

    /// Asks a task for its devices. Never blocks.
    fn status(&self, task: &str, limit: Duration, told: Told);

    /// Makes the connections to a task anew.
    fn renew(&self, task: &str);
}

/// What is known of a task.
#[derive(Default)]
struct Task {
    users: usize,
    /// Whether an answer is awaited.
    is_asked: bool,
    /// The incarnations of its devices, when it last answered.
    incarnations: Vec<u64>,
    /// Since when it does not answer, and why.
    lost: Option<(Instant, Refusal)>,
}

impl Task {
    /// The task has said which devices it has.
    fn hear(&mut self, devices: &[DeviceAttributes]) {
        self.lost = None;
        self.incarnations = devices.iter().map(|device| device.incarnation).collect();
    }
}

/// The other tasks that are used.
pub(crate) struct Health {
    peers: Arc<dyn Ask>,
    tasks: Mutex<BTreeMap<String, Task>>,
}

/// A task in use, until this is dropped.
pub(crate) struct Used {
    health: Arc<Health>,
    task: String,
    /// The incarnation of one of its devices; 0 if it is not known.
    incarnation: u64,
}

impl Drop for Used {
    fn drop(&mut self) {
        let mut tasks = self.health.tasks.lock();
        if let Some(task) = tasks.get_mut(&self.task) {
            task.users -= 1;
            if task.users == 0 {
                tasks.remove(&self.task);
            }
        }
    }
}

impl Used {
    /// Whether the task is there, as far as is known.
    ///
    /// # Errors
    /// `UNAVAILABLE` if it does not answer, `ABORTED` if it was started anew; both name it.
    pub fn check(&self) -> Result<(), Refusal> {
        let tasks = self.health.tasks.lock();
        let Some(task) = tasks.get(&self.task) else { return Ok(()) };
        if let Some((_, why)) = &task.lost {
            return Err(why.clone());
        }
        match self.is_other(task) {
            true => Err(self.restarted()),
            false => Ok(()),
        }
    }

    /// Whether the task was started anew since.
    pub fn is_restarted(&self) -> bool {
        self.health.tasks.lock().get(&self.task).is_some_and(|task| self.is_other(task))
    }

    /// Whether the task has not answered for so long.
    pub fn is_lost_for(&self, now: Instant, time: Duration) -> bool {
        let tasks = self.health.tasks.lock();
        let lost = tasks.get(&self.task).and_then(|task| task.lost.as_ref());
        lost.is_some_and(|(since, _)| now.saturating_duration_since(*since) >= time)
    }

    fn is_other(&self, task: &Task) -> bool {
        let is_known = self.incarnation != 0 && !task.incarnations.is_empty();
        is_known && !task.incarnations.contains(&self.incarnation)
    }

    fn restarted(&self) -> Refusal {
        let task = &self.task;
        let message = format!(
            "{task} was started anew: what the session had there is gone; open a new session, and restore its variables"
        );
        Refusal::new(Code::ABORTED, message).marked(Mark::Restarted)
    }
}

impl Health {
    pub fn new(peers: Arc<dyn Ask>) -> Arc<Health> {
        Arc::new(Health { peers, tasks: Mutex::ranked(rank::LEAF, BTreeMap::new()) })
    }

    /// Begins to use a task, one of whose devices has this incarnation.
    pub fn using(self: &Arc<Self>, task: &str, incarnation: u64) -> Used {
        let mut tasks = self.tasks.lock();
        tasks.entry(task.to_owned()).or_default().users += 1;
        drop(tasks);
        Used { health: Arc::clone(self), task: task.to_owned(), incarnation }
    }

    /// Notes what a task has said to another question, before the next beat.
    pub fn heard(&self, name: &str, devices: &[DeviceAttributes]) {
        if let Some(task) = self.tasks.lock().get_mut(name) {
            task.hear(devices);
        }
    }

    /// Whether the cluster has such a task.
    pub fn knows(&self, task: &str) -> bool {
        self.peers.knows(task)
    }

    /// Asks every task in use that is not being asked already.
    pub fn beat(self: &Arc<Self>) {
        let mut asked = Vec::new();
        for (name, task) in &mut *self.tasks.lock() {
            if !std::mem::replace(&mut task.is_asked, true) {
                asked.push(name.clone());
            }
        }
        for name in asked {
            let (health, task) = (Arc::clone(self), name.clone());
            self.peers.status(&name, ALIVE, Box::new(move |answer| health.note(&task, answer)));
        }
    }

    fn note(&self, name: &str, answer: Result<GetStatusResponse, Refusal>) {
        let is_there = answer.is_ok();
        let was_there = self.keep(name, answer);
        if is_there {
            return;
        }
        self.peers.renew(name);
        if was_there {
            tracing::warn!("{name} does not answer: steps that use it are ended");
        }
    }

    /// Keeps an answer; whether the task was there before it.
    fn keep(&self, name: &str, answer: Result<GetStatusResponse, Refusal>) -> bool {
        let mut tasks = self.tasks.lock();
        let Some(task) = tasks.get_mut(name) else { return false };
        task.is_asked = false;
        let lost = task.lost.take();
        let was_there = lost.is_none();
        match answer {
            Ok(status) => {
                task.hear(&status.device_attributes);
            }
            Err(refusal) => {
                let since = lost.map_or_else(clock::now, |(since, _)| since);
                task.lost = Some((since, Refusal::unreachable(name, &refusal.message)));
            }
        }
        was_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const TASK: &str = "/job:ps/replica:0/task:0";

    /// Keeps questions until the test answers them.
    struct Held {
        asked: Mutex<Vec<Told>>,
        renewed: AtomicUsize,
    }

    impl Ask for Held {
        fn knows(&self, task: &str) -> bool {
            task == TASK
        }

        fn status(&self, _: &str, _: Duration, told: Told) {
            self.asked.lock().push(told);
        }

        fn renew(&self, _: &str) {
            self.renewed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn set_up() -> (Arc<Held>, Arc<Health>) {
        let held = Held { asked: Mutex::new(Vec::new()), renewed: AtomicUsize::new(0) };
        let held = Arc::new(held);
        (Arc::clone(&held), Health::new(held))
    }

    /// Asks once, and answers.
    fn beat(held: &Held, health: &Arc<Health>, answer: Result<u64, Refusal>) {
        health.beat();
        let told = held.asked.lock().pop().expect("the task is asked");
        let device = |incarnation| DeviceAttributes { incarnation, ..DeviceAttributes::default() };
        told(answer.map(|it| GetStatusResponse { device_attributes: vec![device(it)] }));
    }

    fn silent() -> Refusal {
        Refusal::new(Code::DEADLINE_EXCEEDED, "no answer")
    }

    #[test]
    fn a_task_is_lost_while_it_does_not_answer() {
        let (held, health) = set_up();
        let used = health.using(TASK, 5);
        assert!(used.check().is_ok(), "nothing is known yet");
        beat(&held, &health, Err(silent()));
        let refusal = used.check().unwrap_err();
        assert_eq!(refusal.code, Code::UNAVAILABLE);
        assert!(refusal.message.contains(TASK), "{}", refusal.message);
        assert_eq!(held.renewed.load(Ordering::Relaxed), 1);
        health.heard("/job:other/replica:0/task:0", &[]);
        let later = clock::now() + Duration::from_secs(5);
        assert!(used.is_lost_for(later, Duration::from_secs(5)));
        assert!(!used.is_lost_for(clock::now(), Duration::from_secs(5)));
        beat(&held, &health, Ok(5));
        assert!(used.check().is_ok() && !used.is_restarted());
        // What a session heard when it was opened counts as well.
        beat(&held, &health, Err(silent()));
        let device = |incarnation| DeviceAttributes { incarnation, ..DeviceAttributes::default() };
        health.heard(TASK, &[device(6)]);
        assert!(used.is_restarted());
        assert!(health.using(TASK, 6).check().is_ok());
    }

    #[test]
    fn a_task_with_other_incarnations_was_started_anew() {
        let (held, health) = set_up();
        let (used, unknown) = (health.using(TASK, 5), health.using(TASK, 0));
        beat(&held, &health, Ok(6));
        let refusal = used.check().unwrap_err();
        assert_eq!((refusal.code, refusal.mark), (Code::ABORTED, Mark::Restarted));
        assert!(used.is_restarted() && unknown.check().is_ok());
    }

    #[test]
    fn a_task_is_asked_once_at_a_time_and_while_it_is_used() {
        let (held, health) = set_up();
        let used = [health.using(TASK, 5), health.using(TASK, 5)];
        health.beat();
        health.beat();
        assert_eq!(held.asked.lock().len(), 1);
        drop(used);
        held.asked.lock().clear();
        health.beat();
        assert!(held.asked.lock().is_empty());
    }
}
