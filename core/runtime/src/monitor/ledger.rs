//! What kernels have done: calls, and the time that they took.
//!
//! A plan without control flow runs every node once a step, so that its calls are its steps. Where control flow steers,
//! the executor counts the calls of each node. Time is the calls since somebody last looked times what a call costs
//! now, by the mean that the executor samples: looking is what costs, not running, and a sum never falls. Calls of a
//! node without a sample wait until it has one.

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

/// What was reckoned of a node.
#[derive(Debug, Clone, Copy, Default)]
struct Reckoned {
    /// Calls whose time is in the sum.
    calls: u64,
    seconds: f64,
}

impl Reckoned {
    fn go_on(&mut self, calls: u64, cost_ns: u32) {
        if cost_ns > 0 {
            self.seconds += calls.saturating_sub(self.calls) as f64 * f64::from(cost_ns) * 1e-9;
            self.calls = calls;
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
            reckoned.go_on(calls, node.cost_ns.load(Ordering::Relaxed));
            let sum = sums.entry(key(node, device)).or_default();
            sum.nodes += 1;
            sum.calls += calls;
            sum.seconds += reckoned.seconds;
        }
    }
}

fn key(node: &PlanNode, device: &str) -> Key {
    let label = match (&node.action, &node.instance) {
        (Action::PerShape { .. }, _) => PER_SHAPE.to_owned(),
        (_, Some(instance)) => instance.def().label.clone(),
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
    fn a_sum_of_time_grows_by_what_a_call_costs_now_and_never_falls() {
        let mut node = Reckoned::default();
        node.go_on(10, 0);
        assert_eq!((node.calls, node.seconds), (0, 0.0), "calls wait for a sample");
        node.go_on(1000, 1_000_000);
        assert_eq!((node.calls, node.seconds), (1000, 1.0));
        node.go_on(2000, 1000);
        assert!((node.seconds - 1.001).abs() < 1e-12, "a cheaper call makes the past no cheaper");
    }
}
