//! CPU times of steps and of their nodes, on a runtime of one thread.

use rustix::time::{ClockId, clock_gettime};
use std::{
    cell::RefCell,
    cmp::Reverse,
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};
use tenon_benches::Failure;
use tenon_runtime::{Callable, RunOptions, host::call::TraceSink};

/// Steps before those that count.
const WARM_UP: usize = 3;

/// Nanoseconds that this thread has run.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

thread_local! {
    /// When the calls began that this thread is in.
    static BEGUN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The least CPU time of each node. Time in which the thread helped with another node counts for both.
#[derive(Default)]
struct Nodes(Mutex<BTreeMap<String, u64>>);

impl TraceSink for Nodes {
    fn span(&self, _node: &str, _name: &str, _begin_ns: u64, _end_ns: u64) {}

    fn enters(&self, _node: &str) {
        BEGUN.with_borrow_mut(|begun| begun.push(cpu_ns()));
    }

    fn leaves(&self, node: &str) {
        let Some(begin) = BEGUN.with_borrow_mut(Vec::pop) else { return };
        let time = cpu_ns() - begin;
        let mut nodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match nodes.get_mut(node) {
            Some(least) => *least = time.min(*least),
            None => {
                nodes.insert(node.to_owned(), time);
            }
        }
    }
}

/// Prints a line for each node, and one for the step.
///
/// # Errors
/// A step fails.
pub fn print(model: &str, callable: &Callable, steps: usize) -> Result<(), Failure> {
    let mut fetched = Vec::new();
    for _ in 0..WARM_UP {
        callable.run(&[], &mut fetched)?;
    }
    let mut times = Vec::new();
    for _ in 0..steps.max(1) {
        let begin = cpu_ns();
        callable.run(&[], &mut fetched)?;
        times.push(cpu_ns() - begin);
    }
    times.sort_unstable();
    let nodes = Arc::new(Nodes::default());
    let trace: Arc<dyn TraceSink> = nodes.clone();
    let options = RunOptions { trace: Some(trace), ..RunOptions::default() };
    for _ in 0..steps.max(1) {
        callable.run_with(&[], &mut fetched, &options)?;
    }
    let nodes = nodes.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut sorted: Vec<(&String, &u64)> = nodes.iter().collect();
    sorted.sort_by_key(|&(_, time)| Reverse(*time));
    for (node, time) in sorted {
        println!("{}", serde_json::json!({"model": model, "node": node, "cpu_min_ns": time}));
    }
    let (least, median) = (times[0], times[times.len() / 2]);
    let line = serde_json::json!({"model": model, "cpu_min_ns": least, "cpu_median_ns": median});
    println!("{line}");
    Ok(())
}
