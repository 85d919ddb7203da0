//! What kernels have done: calls, and the time that they took.
//!
//! A plan without control flow runs every node once a step, so that its calls are its steps. Where control flow steers,
//! the executor counts the calls of each node. Time is the calls since somebody last looked times what a call cost
//! meanwhile, by the mean of those that the executor measured: looking is what costs, not running, and a sum never
//! falls. Calls of a node without a sample wait until it has one.

use super::KernelMetrics;
use crate::plan::{Action, Plan, PlanNode};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tenon_framework::sync::Mutex;

/// The label of nodes whose kernels are chosen as their shapes become known.
const PER_SHAPE: &str = "(per shape)";

/// What a compiled step's kernels do.
#[derive(Default)]
pub(crate) struct Account {
    plans: Vec<Arc<Plan>>,
    /// Steps that ended well.
    pub steps: AtomicU64,
}

impl Account {
    /// Every kernel's node, with the type of its device and its calls so far.
    fn nodes(&self) -> impl Iterator<Item = (&PlanNode, &str, u64)> {
        let steps = self.steps.load(Ordering::Relaxed);
        let plans = self.plans.iter().flat_map(|plan| std::iter::once(plan).chain(plan.inner()));
        plans.flat_map(move |plan| {
            let device = plan.device.device_type();
            let nodes = plan.nodes.iter().filter(|node| !node.plugin.is_empty());
            nodes.map(move |node| {
                let counted = plan.has_control_flow().then(|| node.calls.load(Ordering::Relaxed));
                (node, device, counted.unwrap_or(steps))
            })
        })
    }
}

/// Calls that were measured, and the nanoseconds that they took together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Samples {
    count: u64,
    ns: u64,
}

impl Samples {
    fn of(node: &PlanNode) -> Samples {
        let [count, ns] = node.samples.each_ref().map(|sum| sum.load(Ordering::Relaxed));
        Samples { count, ns }
    }

    fn mean(self) -> f64 {
        self.ns as f64 / self.count as f64
    }

    /// What a call cost on the mean since `before`, of which all samples so far count as one more: few samples, or
    /// none, leave the mean near what it was.
    fn mean_since(self, before: Samples) -> f64 {
        let count = self.count.saturating_sub(before.count);
        let ns = self.ns.saturating_sub(before.ns);
        (ns as f64 + self.mean()) / (count as f64 + 1.0)
    }
}

/// What was reckoned of a node.
#[derive(Debug, Clone, Copy, Default)]
struct Reckoned {
    /// Calls whose time is in the sum.
    calls: u64,
    samples: Samples,
    seconds: f64,
}

impl Reckoned {
    fn go_on(&mut self, calls: u64, samples: Samples) {
        if samples.count > 0 {
            let more = calls.saturating_sub(self.calls) as f64;
            self.seconds += more * samples.mean_since(self.samples) * 1e-9;
            (self.calls, self.samples) = (calls, samples);
        }
    }
}

/// What sums are kept by: op, device type, plugin, label.
type Key = (String, String, String, String);

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    nodes: u64,
    calls: u64,
    seconds: f64,
}

type Sums = BTreeMap<Key, Sum>;

/// An account, and what was reckoned of each of its nodes.
struct Entry(Arc<Account>, Vec<Reckoned>);

impl Entry {
    /// Adds what its nodes did to the sums.
    fn add_to(&mut self, sums: &mut Sums) {
        let Entry(account, reckoned) = self;
        reckoned.resize(account.nodes().count(), Reckoned::default());
        for ((node, device, calls), reckoned) in account.nodes().zip(reckoned) {
            reckoned.go_on(calls, Samples::of(node));
            let sum = sums.entry(key(node, device)).or_default();
            sum.nodes += 1;
            sum.calls += calls;
            sum.seconds += reckoned.seconds;
        }
    }
}

fn key(node: &PlanNode, device: &str) -> Key {
    let label = match (&node.action, &node.instance) {
        (_, Some(instance)) => instance.def().label.clone(),
        (Action::PerShape { .. }, None) => PER_SHAPE.to_owned(),
        (_, None) => String::new(),
    };
    (node.info.op.clone(), device.to_owned(), node.plugin.clone(), label)
}

#[derive(Default)]
struct State {
    open: Vec<Entry>,
    /// Of accounts that are closed.
    closed: Sums,
}

/// The accounts of a runtime.
#[derive(Default)]
pub(crate) struct Ledger(Mutex<State>);

impl Ledger {
    /// Opens an account for these plans.
    pub fn open(&self, plans: &[Arc<Plan>]) -> Arc<Account> {
        let account = Arc::new(Account { plans: plans.to_vec(), steps: AtomicU64::new(0) });
        self.0.lock().open.push(Entry(Arc::clone(&account), Vec::new()));
        account
    }

    /// Closes an account, whose sums stay.
    pub fn close(&self, account: &Arc<Account>) {
        let mut state = self.0.lock();
        let Some(at) = state.open.iter().position(|entry| Arc::ptr_eq(&entry.0, account)) else {
            return;
        };
        let mut entry = state.open.swap_remove(at);
        entry.add_to(&mut state.closed);
        state.closed.values_mut().for_each(|sum| sum.nodes = 0);
        drop(state);
        // Not under the lock: a plan's kernels may take locks of their own as they go.
        drop(entry);
    }

    /// What every kernel has done so far, the one that took the most time first.
    pub fn kernels(&self) -> Vec<KernelMetrics> {
        let mut state = self.0.lock();
        let mut sums = state.closed.clone();
        state.open.iter_mut().for_each(|entry| entry.add_to(&mut sums));
        drop(state);
        let kernel = |((op, device, plugin, label), sum): (Key, Sum)| {
            let Sum { nodes, calls, seconds } = sum;
            KernelMetrics { op, device, plugin, label, nodes, calls, seconds }
        };
        let mut kernels: Vec<KernelMetrics> = sums.into_iter().map(kernel).collect();
        kernels.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        kernels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_time_grows_by_what_calls_cost_meanwhile_and_never_falls() {
        let mut node = Reckoned::default();
        node.go_on(10, Samples::default());
        assert_eq!((node.calls, node.seconds), (0, 0.0), "calls wait for a sample");
        let (dear, cheap) = (1_000_000, 1000);
        node.go_on(1000, Samples { count: 10, ns: 10 * dear });
        assert_eq!((node.calls, node.seconds), (1000, 1.0));
        node.go_on(2000, Samples { count: 10, ns: 10 * dear });
        assert_eq!(node.seconds, 2.0, "without a sample calls cost what they did");
        node.go_on(3000, Samples { count: 1000, ns: 10 * dear + 990 * cheap });
        assert!((2.001..2.003).contains(&node.seconds), "{}", node.seconds);
    }
}
