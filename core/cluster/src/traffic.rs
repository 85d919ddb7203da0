//! What a task receives from the others: tensors, bytes, and the time that its steps wait for them.

use crate::{clock, way::Way};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_framework::sync::{Mutex, rank};

/// What came from one task.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkFigures {
    /// The task that sends, such as `/job:ps/replica:0/task:0`.
    pub from: String,
    /// Tensors that came.
    pub tensors: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The same by what carried them: `grpc`, `tcp` or `shm`.
    pub ways: Vec<WayFigures>,
    /// Tensors that are awaited now.
    pub waiting: u64,
    /// The time for which they were awaited, summed over all; those that are awaited now are included.
    pub waited: Duration,
}

/// What came from one task by one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WayFigures {
    /// What carried it: `grpc`, `tcp` or `shm`.
    pub way: &'static str,
    /// Tensors that came.
    pub tensors: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of the tensors that came before they were asked for.
    pub pushed: u64,
}

/// What came by one way.
#[derive(Default)]
struct Came {
    tensors: u64,
    bytes: u64,
    pushed: u64,
}

#[derive(Default)]
struct Link {
    ways: BTreeMap<Way, Came>,
    waited: Duration,
    next: u64,
    /// When each request that is not answered was sent.
    since: BTreeMap<u64, Instant>,
}

/// What came from all tasks.
#[derive(Clone)]
pub(crate) struct Traffic(Arc<Mutex<BTreeMap<String, Link>>>);

impl Default for Traffic {
    fn default() -> Traffic {
        Traffic(Arc::new(Mutex::ranked(rank::LEAF, BTreeMap::new())))
    }
}

impl Traffic {
    /// Begins to wait for a tensor of a task, until the guard is dropped.
    pub fn wait_for(&self, task: &str) -> Waiting {
        let mut links = self.0.lock();
        let link = links.entry(task.to_owned()).or_default();
        let number = link.next;
        link.next += 1;
        link.since.insert(number, clock::now());
        Waiting { traffic: self.clone(), task: task.to_owned(), number }
    }

    /// A tensor of a task has come.
    pub fn received(&self, task: &str, way: Way, bytes: usize) {
        self.came(task, way, bytes, false);
    }

    /// A tensor of a task was taken that nobody had asked for.
    pub fn pushed(&self, task: &str, way: Way, bytes: usize) {
        self.came(task, way, bytes, true);
    }

    fn came(&self, task: &str, way: Way, bytes: usize, is_pushed: bool) {
        let mut links = self.0.lock();
        if !links.contains_key(task) {
            links.insert(task.to_owned(), Link::default());
        }
        if let Some(link) = links.get_mut(task) {
            let came = link.ways.entry(way).or_default();
            came.tensors += 1;
            came.bytes = came.bytes.saturating_add(bytes as u64);
            came.pushed += u64::from(is_pushed);
        }
    }

    /// The figures of all links.
    pub fn figures(&self) -> Vec<LinkFigures> {
        let now = clock::now();
        let links = self.0.lock();
        let of_way = |(way, came): (&Way, &Came)| WayFigures {
            way: way.name(),
            tensors: came.tensors,
            bytes: came.bytes,
            pushed: came.pushed,
        };
        let figures = links.iter().map(|(from, link)| {
            let open = link.since.values().map(|since| now.saturating_duration_since(*since));
            LinkFigures {
                from: from.clone(),
                tensors: link.ways.values().map(|came| came.tensors).sum(),
                bytes: link.ways.values().fold(0, |sum: u64, came| sum.saturating_add(came.bytes)),
                ways: link.ways.iter().map(of_way).collect(),
                waiting: link.since.len() as u64,
                waited: link.waited + open.sum::<Duration>(),
            }
        });
        figures.collect()
    }
}

/// A tensor that is awaited.
pub(crate) struct Waiting {
    traffic: Traffic,
    task: String,
    number: u64,
}

impl Waiting {
    /// The tensor has come.
    pub fn received(&self, way: Way, bytes: usize) {
        self.traffic.received(&self.task, way, bytes);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(link) = self.traffic.0.lock().get_mut(&self.task)
            && let Some(since) = link.since.remove(&self.number)
        {
            link.waited += since.elapsed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_and_what_is_awaited() {
        let traffic = Traffic::default();
        let (came, awaited) = (traffic.wait_for("ps/0"), traffic.wait_for("ps/0"));
        came.received(Way::Shm, 100);
        traffic.pushed("ps/0", Way::Shm, 50);
        drop(came);
        std::thread::sleep(Duration::from_millis(5));
        let [link] = &traffic.figures()[..] else { panic!("one link") };
        assert_eq!((link.tensors, link.bytes, link.waiting), (2, 150, 1));
        assert_eq!((link.ways[0].tensors, link.ways[0].pushed), (2, 1));
        assert!(link.waited >= Duration::from_millis(5), "{:?}", link.waited);
        drop(awaited);
        let link = traffic.figures().remove(0);
        assert_eq!((link.tensors, link.waiting), (2, 0), "one that was given up did not come");
    }
}
