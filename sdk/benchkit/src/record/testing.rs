//! Made-up parts of records, for tests.

use super::{FORM, Machine, Plugin, Run, Variant};

/// A kernel of plugins/cpu; the ordinary one is the one that would be chosen.
pub fn variant(label: &str) -> Variant {
    Variant {
        device: "CPU".into(),
        label: label.into(),
        plugin: "tenon-cpu".into(),
        plugin_version: "0.1.0".into(),
        digest: "abcdef0123".into(),
        source: "x:1".into(),
        chosen: label.is_empty(),
    }
}

/// A run of one process on one thread, with quotation marks in the name of the machine.
pub fn run() -> Run {
    Run {
        form: FORM,
        tenon: "0.1.0".into(),
        date: "2026-11-21".into(),
        command: vec!["tenon".into(), "bench".into()],
        threads: 1,
        budget_s: 1.0,
        processes: 1,
        seed: 1,
        machine: Machine { cpu: "\"A\" CPU".into(), cores: 2, ..Machine::default() },
        plugins: vec![Plugin {
            name: "tenon-cpu".into(),
            version: "0.1.0".into(),
            digest: "ab".repeat(32),
            file: Some("libtenon_cpu.so".into()),
        }],
        roofline: None,
        sweep: None,
        rooflines: Vec::new(),
        commit: None,
        noise_floor: Some(0.004),
    }
}
