//! Counts the calls of kernels and estimates their time.
//!
//! A plan without control flow runs every node once per step, so its calls are its steps. Under
//! control flow, the executor counts the calls of each node. The time is estimated at each reading:
//! the calls since the last reading, multiplied by the mean cost of those that the executor
//! measured meanwhile. The cost is thus paid by reading, not by running, and a sum never decreases.
//! The calls of a node without a sample wait until it has one.

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

/// The label of nodes whose kernels are chosen once their shapes are known.
const PER_SHAPE: &str = "(per shape)";

/// The statistics of a compiled step's kernels.
#[derive(Default)]
pub(crate) struct Account {
    plans: Vec<Arc<Plan>>,
    /// The plans of the functions that the step calls, with their calls.
    functions: Vec<(Arc<Plan>, Arc<AtomicU64>)>,
    /// The number of successful steps.
    pub steps: AtomicU64,
}

impl Account {
    /// Every node with a kernel, with its device type and its calls so far.
    fn nodes(&self) -> impl Iterator<Item = (&PlanNode, &str, u64)> {
        let steps = self.steps.load(Ordering::Relaxed);
        let called = self.functions.iter();
        let called = called.map(|(plan, calls)| (plan, calls.load(Ordering::Relaxed)));
        let plans = self.plans.iter().map(move |plan| (plan, steps)).chain(called);
        let frames = plans.flat_map(|(plan, runs)| {
            std::iter::once(plan).chain(plan.inner()).map(move |plan| (plan, runs))
        });
        frames.flat_map(|(plan, runs)| {
            let device = plan.device.device_type();
            let nodes = plan.nodes.iter().filter(|node| !node.plugin.is_empty());
            nodes.map(move |node| {
                let counted = plan.has_control_flow().then(|| node.calls.load(Ordering::Relaxed));
                (node, device, counted.unwrap_or(runs))
            })
        })
    }
}

/// The number of measured calls, and their total nanoseconds.
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

    /// The mean cost of a call since `before`. The mean of all samples counts as one more sample,
    /// so with few or no new samples the result stays near it.
    fn mean_since(self, before: Samples) -> f64 {
        let count = self.count.saturating_sub(before.count);
        let ns = self.ns.saturating_sub(before.ns);
        (ns as f64 + self.mean()) / (count as f64 + 1.0)
    }
}

/// The estimate for a node so far.
#[derive(Debug, Clone, Copy, Default)]
struct Estimate {
    /// The number of calls whose time is in the sum.
    calls: u64,
    samples: Samples,
    seconds: f64,
}

impl Estimate {
    fn update(&mut self, calls: u64, samples: Samples) {
        if samples.count > 0 {
            let more = calls.saturating_sub(self.calls) as f64;
            self.seconds += more * samples.mean_since(self.samples) * 1e-9;
            (self.calls, self.samples) = (calls, samples);
        }
    }
}

/// The key of the sums: op, device type, plugin and label.
type Key = (String, String, String, String);

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    nodes: u64,
    calls: u64,
    seconds: f64,
}

type Sums = BTreeMap<Key, Sum>;

/// An account, with the estimate for each of its nodes.
struct Entry(Arc<Account>, Vec<Estimate>);

impl Entry {
    /// Adds the nodes' statistics to the sums.
    fn add_to(&mut self, sums: &mut Sums) {
        let Entry(account, estimates) = self;
        estimates.resize(account.nodes().count(), Estimate::default());
        for ((node, device, calls), estimate) in account.nodes().zip(estimates) {
            estimate.update(calls, Samples::of(node));
            let sum = sums.entry(key(node, device)).or_default();
            sum.nodes += 1;
            sum.calls += calls;
            sum.seconds += estimate.seconds;
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
    /// The sums of closed accounts.
    closed: Sums,
}

/// The accounts of a runtime.
#[derive(Default)]
pub(crate) struct Ledger(Mutex<State>);

impl Ledger {
    /// Opens an account for these plans, and for those of functions with their calls.
    pub fn open(
        &self,
        plans: &[Arc<Plan>],
        functions: Vec<(Arc<Plan>, Arc<AtomicU64>)>,
    ) -> Arc<Account> {
        let (plans, steps) = (plans.to_vec(), AtomicU64::new(0));
        let account = Arc::new(Account { plans, functions, steps });
        self.0.lock().open.push(Entry(Arc::clone(&account), Vec::new()));
        account
    }

    /// Closes an account; its sums are kept.
    pub fn close(&self, account: &Arc<Account>) {
        let mut state = self.0.lock();
        let Some(at) = state.open.iter().position(|entry| Arc::ptr_eq(&entry.0, account)) else {
            return;
        };
        let mut entry = state.open.swap_remove(at);
        entry.add_to(&mut state.closed);
        state.closed.values_mut().for_each(|sum| sum.nodes = 0);
        drop(state);
        // A plan's kernels may take locks when they are dropped, so this lock is not held.
        drop(entry);
    }

    /// The statistics of every kernel so far, ordered by time, longest first.
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
        let mut node = Estimate::default();
        node.update(10, Samples::default());
        assert_eq!((node.calls, node.seconds), (0, 0.0), "calls wait for a sample");
        let (dear, cheap) = (1_000_000, 1000);
        node.update(1000, Samples { count: 10, ns: 10 * dear });
        assert_eq!((node.calls, node.seconds), (1000, 1.0));
        node.update(2000, Samples { count: 10, ns: 10 * dear });
        assert_eq!(node.seconds, 2.0, "without a sample calls cost what they did");
        node.update(3000, Samples { count: 1000, ns: 10 * dear + 990 * cheap });
        assert!((2.001..2.003).contains(&node.seconds), "{}", node.seconds);
    }
}
