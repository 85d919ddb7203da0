//! Everything linked into the host: the standard ops, the host's own kernels, and every plugin
//! linked as a library. Each crate is a plugin without a file in the registry.

use crate::registrar::Collector;
use std::collections::BTreeSet;
use tenon_framework::{
    linked::{entries, submit},
    registry::{PluginId, PluginInfo, Transaction},
};

// Names the crate, so that the linker keeps its registrations.
use tenon_ops as _;

/// A transaction for every linked crate with registrations; ids and order count from `first`.
pub fn transactions(first: PluginId) -> Vec<Transaction> {
    let crates: BTreeSet<&'static str> =
        entries().into_iter().map(|entry| entry.site().krate).collect();
    crates
        .into_iter()
        .zip(first.0..)
        .map(|(krate, number)| transaction(krate, PluginId(number), number))
        .collect()
}

fn transaction(krate: &'static str, id: PluginId, order: u32) -> Transaction {
    let info = PluginInfo::linked(id, krate, version(krate), order);
    let mut collector = Collector::new(info);
    collector.call_linked(|registrar, table| {
        let own = entries().into_iter().filter(|entry| entry.site().krate == krate);
        // SAFETY: a registrar and its table, which outlive the call. The results of entries are
        // ignored: the transaction contains the errors.
        unsafe { submit(own, registrar, table) };
    });
    collector.finish().0
}

/// The version of a crate, which registrations do not contain; the host's own crates share one.
fn version(krate: &str) -> &'static str {
    match krate {
        "tenon-graph" | "tenon-host" | "tenon-ops" | "tenon-runtime" => env!("CARGO_PKG_VERSION"),
        _ => "linked",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_framework::registry::{Registry, commit_all};

    #[test]
    fn what_is_linked_goes_together_and_is_grouped_by_crate() {
        let transactions = transactions(PluginId(3));
        let names: Vec<&str> = transactions.iter().map(|t| t.info().name.as_str()).collect();
        assert!(names.is_sorted() && names.contains(&"tenon-host"), "{names:?}");
        assert_eq!(transactions[0].info().id, PluginId(3));
        let (registry, _) = commit_all(&Registry::new(), transactions).unwrap();
        let knob = registry.knobs().get("host.allow_panic_abort").unwrap();
        assert_eq!(knob.variable(), "TENON_HOST_ALLOW_PANIC_ABORT");
    }
}
