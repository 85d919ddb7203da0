//! The steps that a worker has a part of.
//!
//! A step is made by whoever names it first: the master that runs its part, or another task that asks for one of its tensors.
//! It stays until it is cleaned up.

use super::{Answered, answers::Answers, members::Way, partial::Partial, sessions::OpenSession};
use crate::{clock, records::Records, rendezvous::StepRendezvous, transport::Pusher};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tenon_framework::{
    Code,
    sync::{Mutex, rank},
};
use tenon_host::collective::Collectives;
use tenon_runtime::{StepError, Worker, rendezvous::Rendezvous};

/// The numbers of steps that are over, which are remembered: a tensor of such a step is refused, not waited for.
const REMEMBERED: usize = 4096;

/// A step.
pub(super) struct Step {
    pub rendezvous: Arc<StepRendezvous>,
    /// Its parts that run.
    running: AtomicUsize,
    /// The workers with the values that it made for itself.
    workers: Mutex<Vec<Worker>>,
    /// The way to members of its collective operations, when it has begun here.
    way: OnceLock<Way>,
    /// Tasks that asked for its tensors before it has begun here, each with the link over which it did.
    askers: Mutex<Vec<(String, Arc<dyn Pusher>)>>,
    /// Its session, when it has begun here.
    session: OnceLock<Weak<OpenSession>>,
    /// Its part, if it is run in several calls.
    partial: Mutex<Option<Arc<Partial>>>,
    used: Mutex<Instant>,
}

/// A part that runs, until it is dropped.
pub(super) struct Running(pub Arc<Step>);

impl Drop for Running {
    fn drop(&mut self) {
        *self.0.used.lock() = clock::now();
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Step {
    /// The part that is run in several calls, which starts with the first of them.
    pub fn partial(
        &self,
        start: impl FnOnce() -> Answered<Arc<Partial>>,
    ) -> Answered<Arc<Partial>> {
        let mut partial = self.partial.lock();
        if let Some(partial) = &*partial {
            return Ok(Arc::clone(partial));
        }
        Ok(Arc::clone(partial.insert(start()?)))
    }

    /// Ends what waits for its values, and drops those that it made for itself.
    fn end(&self, number: i64, why: &str, collectives: &Collectives) {
        let error = format!("step {number} {why}");
        self.rendezvous.abort(StepError::step(Code::ABORTED, error));
        let partial = self.partial.lock().take();
        if let Some(partial) = partial {
            partial.cancel();
        }
        collectives.end_step(number.cast_unsigned());
        let workers = std::mem::take(&mut *self.workers.lock());
        workers.iter().for_each(|worker| worker.cleanup_step(number.cast_unsigned()));
    }
}

#[derive(Default)]
struct Table {
    steps: HashMap<i64, Arc<Step>>,
    /// The numbers of steps that are over, and their order.
    over: HashSet<i64>,
    order: VecDeque<i64>,
}

/// The steps, by number.
pub(super) struct Steps {
    table: Mutex<Table>,
    collectives: Arc<Collectives>,
    /// Answers to requests for tensors, which go with their steps.
    pub answers: Arc<Answers>,
    /// What came from other tasks.
    pub records: Arc<Records>,
}

impl Steps {
    pub fn new(collectives: &Arc<Collectives>) -> Steps {
        let table = Mutex::ranked(rank::SERVER, Table::default());
        Steps {
            table,
            collectives: Arc::clone(collectives),
            answers: Answers::new(),
            records: Arc::default(),
        }
    }

    /// The step of a number, which begins if it is new; `None` if it is over.
    pub fn find(&self, number: i64) -> Option<Arc<Step>> {
        let mut table = self.table.lock();
        if table.over.contains(&number) {
            return None;
        }
        let step = table.steps.entry(number).or_insert_with(|| {
            Arc::new(Step {
                rendezvous: StepRendezvous::new(number, &self.records),
                running: AtomicUsize::new(0),
                workers: Mutex::ranked(rank::LEAF, Vec::new()),
                way: OnceLock::new(),
                askers: Mutex::ranked(rank::LEAF, Vec::new()),
                session: OnceLock::new(),
                partial: Mutex::ranked(rank::SERVER, None),
                used: Mutex::ranked(rank::LEAF, clock::now()),
            })
        });
        let step = Arc::clone(step);
        drop(table);
        *step.used.lock() = clock::now();
        Some(step)
    }

    /// The step of a number, if it is there.
    pub fn there(&self, number: i64) -> Option<Arc<Step>> {
        self.table.lock().steps.get(&number).cloned()
    }

    /// A part of a step that begins to run.
    pub fn enter(&self, number: i64, session: &Arc<OpenSession>) -> Option<Running> {
        let step = self.find(number)?;
        step.rendezvous.connect(Arc::clone(&session.way.transport));
        // A step has one session, as above.
        let _ = step.way.set(session.way.clone());
        let askers = std::mem::take(&mut *step.askers.lock());
        askers.iter().for_each(|(task, by)| session.way.transport.asked_by(task, by));
        let _ = step.session.set(Arc::downgrade(session));
        step.workers.lock().push(session.worker().clone());
        step.running.fetch_add(1, Ordering::AcqRel);
        Some(Running(step))
    }

    /// Forgets a step. A step that the worker does not have is no error.
    pub fn clean_up(&self, number: i64) {
        let mut table = self.table.lock();
        let gone = table.steps.remove(&number);
        // One that never began here may still be on its way: it is over, too.
        if table.over.insert(number) {
            table.order.push_back(number);
            if table.order.len() > REMEMBERED
                && let Some(oldest) = table.order.pop_front()
            {
                table.over.remove(&oldest);
            }
        }
        drop(table);
        self.answers.end_step(number);
        if let Some(step) = gone {
            step.end(number, "was cleaned up by its master", &self.collectives);
        }
    }

    /// A task has asked for a tensor of a step over a link that it made.
    pub fn asked_by(&self, number: i64, task: &str, by: &Arc<dyn Pusher>) {
        let Some(step) = self.find(number) else { return };
        match step.way.get() {
            Some(way) => way.transport.asked_by(task, by),
            None => {
                let mut askers = step.askers.lock();
                askers.retain(|(other, _)| other != task);
                askers.push((task.to_owned(), Arc::clone(by)));
            }
        }
    }

    /// The way of a step to members at other tasks, once it has begun here.
    pub fn way(&self, number: i64) -> Option<Way> {
        let step = self.table.lock().steps.get(&number).cloned()?;
        step.way.get().cloned()
    }

    pub fn clean_up_all(&self) {
        let numbers: Vec<i64> = self.table.lock().steps.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.clean_up(number));
    }

    pub fn are_running(&self) -> bool {
        let running = |step: &Arc<Step>| step.running.load(Ordering::Acquire) > 0;
        self.table.lock().steps.values().any(running)
    }

    /// Forgets the steps of which no part has run for so long, and those whose masters do not answer.
    pub fn collect(&self, now: Instant, most: Duration) {
        self.collectives.collect(now);
        let is_old = |step: &Step| {
            let idle = now.saturating_duration_since(*step.used.lock());
            step.running.load(Ordering::Acquire) == 0 && idle >= most
        };
        let steps: Vec<(i64, Arc<Step>)> =
            self.table.lock().steps.iter().map(|(&it, step)| (it, Arc::clone(step))).collect();
        for (number, step) in steps {
            let session = step.session.get().and_then(Weak::upgrade);
            if let Some(session) = session.filter(|session| session.is_deserted(now)) {
                tracing::info!("step {number} is ended: its master does not answer");
                session.cancel();
                self.clean_up(number);
            } else if is_old(&step) {
                self.clean_up(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_cleaned_up_once_and_does_not_come_again() {
        let collectives = Collectives::new(&Arc::default());
        let steps = Steps::new(&collectives);
        let first = steps.find(7).unwrap();
        assert!(Arc::ptr_eq(&first, &steps.find(7).unwrap()));
        steps.clean_up(7);
        steps.clean_up(7);
        assert!(steps.find(7).is_none());
        assert!(steps.find(8).is_some());
        steps.collect(clock::now(), Duration::from_secs(60));
        assert_eq!(steps.table.lock().steps.len(), 1);
        steps.collect(clock::now(), Duration::ZERO);
        assert!(steps.find(8).is_none());
    }
}
