//! The zoo's knobs. Where several hosts of one process use a library, the last one to set its knobs decides: so
//! these tests take turns.

use std::sync::Arc;
use tenon_framework::device::base::DeviceBase;
use tenon_host::devices::PluginDevice;
use tenon_tests::{
    bench::{Bench, texts},
    session::turn,
    zoo::Language,
};

/// Ops whose kernels read the knobs: while they run, and when they are created.
fn read_by() -> Vec<(Language, String)> {
    let both =
        |language: Language| ["Knobs", "KnobsAtCreate"].map(|name| (language, language.op(name)));
    Language::ALL.into_iter().flat_map(both).collect()
}

#[test]
fn knobs() {
    let _turn = turn();
    for (language, op) in read_by() {
        let bench = Bench::zoo(language);
        let defaults = texts(&bench.node(&op).call(&[]).unwrap()[0]);
        assert_eq!(defaults, ["true", "42", "0.5", "hello"], "{op}");
    }
    for (language, op) in read_by() {
        let scope = language.plugin().replace('-', "_");
        let names: Vec<String> =
            ["enabled", "answer", "ratio", "greeting"].map(|name| format!("{scope}.{name}")).into();
        let values = ["false", "-3", "0.25", "good day"];
        let set: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(values).collect();
        let bench = Bench::with_settings([language.zoo()], &set);
        let found = texts(&bench.node(&op).call(&[]).unwrap()[0]);
        assert_eq!(found, values, "{op}");
    }
}

#[test]
fn probe() {
    let _turn = turn();
    for language in Language::ALL {
        let knob = format!("{}.count", language.device_plugin().replace('-', "_"));
        for (count, wanted) in [("1", 1), ("3", 3), ("0", 0), ("-1", 0)] {
            let bench = Bench::with_settings([language.device_zoo()], &[(&knob, count)]);
            let own = |device: &Arc<PluginDevice>| device.device_type() == language.device_type();
            let found = bench.devices.devices().iter().filter(|device| own(device)).count();
            assert_eq!(found, wanted, "{language:?}: count = {count}");
            let absent = bench.devices.absent();
            let reason = absent.iter().find(|a| a.device_type == language.device_type());
            assert_eq!(reason.is_some(), wanted == 0, "{absent:?}");
            if let Some(absent) = reason {
                assert!(absent.reason.contains("count"), "the reason why not: {}", absent.reason);
            }
        }
    }
}
