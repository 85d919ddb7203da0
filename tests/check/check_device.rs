//! What an examination finds of devices that are wrong, and that it finds nothing of those that are right;
//! and the life of plugins that are replaced and retired.

mod kinds;

use tenon_framework::{DType, attr::AttrMap};
use tenon_runtime::Runtime;
use tenon_testkit::check::{
    Argument, CheckCase, Clause, DEVICE_CLAUSES, Fill, Finding, Progress, Subject, Tag, Verdict,
    examine_device, examine_device_clause, examine_plugin,
};
use tenon_tests::{
    cuda::cuda_runtime,
    session::{library, runtime, turn},
    zoo::Language,
};

#[derive(Default)]
struct Log {
    begun: Vec<(Clause, String)>,
    found: Vec<Finding>,
}

impl Progress for Log {
    fn begin(&mut self, clause: Clause, case: &str) {
        self.begun.push((clause, case.to_owned()));
    }

    fn found(&mut self, finding: Finding) {
        assert!(self.begun.iter().any(|(clause, _)| *clause == finding.clause), "{finding:?}");
        self.found.push(finding);
    }
}

fn verdict(log: &Log, clause: Clause) -> &Verdict {
    let mut of_clause = log.found.iter().filter(|finding| finding.clause == clause);
    let first = of_clause.next().unwrap_or_else(|| panic!("nothing is told of {clause}"));
    assert!(of_clause.next().is_none(), "{clause} is told twice");
    &first.verdict
}

fn examined(runtime: &Runtime, device_type: &str) -> Log {
    let mut log = Log::default();
    examine_device(runtime, device_type, &mut log);
    log
}

#[test]
fn nothing_is_found_of_the_simulated_accelerator() {
    let _turn = turn();
    let runtime = runtime(&["tenon_accel"], &[]);
    let log = examined(&runtime, "ACCEL");
    for clause in DEVICE_CLAUSES {
        assert_eq!(verdict(&log, clause), &Verdict::Passed, "{clause}");
    }
    let devices = |clause| log.begun.iter().filter(|(begun, _)| *begun == clause).count();
    assert!(devices(Clause::Copies) > 2, "both devices are looked at");
}

#[test]
fn nothing_is_found_of_gpus() {
    let _turn = turn();
    let log = examined(&cuda_runtime(&[]), "CUDA");
    for clause in DEVICE_CLAUSES {
        let found = verdict(&log, clause);
        let expected = match clause {
            // It has no knobs that make commands fail.
            Clause::Faults | Clause::Loss => matches!(found, Verdict::Skipped(_)),
            _ => found == &Verdict::Passed,
        };
        assert!(expected, "{clause}: {found:?}");
    }
}

#[test]
fn nothing_is_found_under_a_random_order_of_streams() {
    let _turn = turn();
    for seed in ["1", "2"] {
        let runtime = runtime(&["tenon_accel"], &[("accel.reorder_seed", seed)]);
        for clause in [Clause::StreamOrder, Clause::Events, Clause::Streams] {
            let mut log = Log::default();
            examine_device_clause(&runtime, "ACCEL", clause, &mut log);
            assert_eq!(verdict(&log, clause), &Verdict::Passed, "{clause}, seed {seed}");
        }
    }
}

#[test]
fn nothing_is_found_of_the_zoos_devices_and_what_cannot_be_ordered_is_skipped() {
    let _turn = turn();
    for language in Language::ALL {
        let file = language.device_zoo();
        let options = tenon_runtime::RuntimeOptions::with_plugins([file]);
        let (runtime, report) = Runtime::new(options).expect("a runtime");
        report.into_result().expect("the zoo loads");
        let log = examined(&runtime, language.device_type());
        for clause in DEVICE_CLAUSES {
            let verdict = verdict(&log, clause);
            match clause {
                Clause::Faults | Clause::Loss => {
                    let Verdict::Skipped(reason) = verdict else { panic!("{verdict:?}") };
                    assert!(reason.contains("declares no knob"), "{reason}");
                }
                _ => assert_eq!(verdict, &Verdict::Passed, "{language:?}: {clause}"),
            }
        }
    }
}

#[test]
fn a_device_on_host_memory_has_little_to_look_at() {
    let _turn = turn();
    let log = examined(&runtime(&["tenon_cpu"], &[]), "CPU");
    for clause in [Clause::Allocation, Clause::Copies, Clause::StreamOrder, Clause::Faults] {
        assert!(matches!(verdict(&log, clause), Verdict::Skipped(_)), "{clause}");
    }
}

/// The device type breaks this clause with these words, and keeps these.
fn finds(device_type: &str, clause: Clause, words: &str, kept: &[Clause]) {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu"], &[]);
    let mut log = Log::default();
    for &clause in [clause].iter().chain(kept) {
        examine_device_clause(&runtime, device_type, clause, &mut log);
    }
    let Verdict::Failed(message) = verdict(&log, clause) else {
        panic!("{device_type}: {:?}", log.found);
    };
    assert!(message.contains(words), "{device_type}: expected '{words}' in: {message}");
    assert!(message.contains("/device:"), "the device is named: {message}");
    for &clause in kept {
        assert_eq!(verdict(&log, clause), &Verdict::Passed, "{device_type}: {clause}");
    }
}

#[test]
fn a_right_device_passes() {
    let _turn = turn();
    let log = examined(&runtime(&["tenon_cpu"], &[]), "RIGHT");
    for clause in DEVICE_CLAUSES.into_iter().take(5) {
        assert_eq!(verdict(&log, clause), &Verdict::Passed, "{clause}");
    }
    assert!(matches!(verdict(&log, Clause::Loss), Verdict::Skipped(_)));
}

#[test]
fn wrong_memory_is_found() {
    let clause = Clause::Allocation;
    finds("MISALIGNED", clause, "expected a multiple of 256, found 0x", &[Clause::Copies]);
    finds("OVERLAPPING", clause, "bytes among others: 1 of 1 bytes are wrong", &[]);
    finds("NEVER_FREES", clause, "what was given back is not to be had again", &[]);
}

#[test]
fn wrong_copies_are_found() {
    let clause = Clause::Copies;
    let tail = "a block, filled from the host and read back: 1 of 65 bytes are wrong";
    finds("LOSES_TAILS", clause, tail, &[]);
    let behind = "the destination: 1 of ";
    finds("COPIES_TOO_MUCH", clause, behind, &[Clause::Allocation]);
}

#[test]
fn wrong_orders_are_found() {
    finds("SWAPS", Clause::StreamOrder, "one stream, each copy", &[Clause::Copies]);
    let words = "two streams in turn, by events";
    finds("IGNORES_EVENTS", Clause::Events, words, &[Clause::StreamOrder, Clause::Copies]);
    finds("NOTIFIES_WRONG", Clause::StreamOrder, "says code 10", &[Clause::Copies]);
    finds("MIXES_STREAMS", Clause::Streams, "one of many streams", &[]);
}

/// Cases of a kernel with two float inputs.
fn cases(runtime: &Runtime, op: &str, device_type: &str) -> (Subject, CheckCase) {
    let registry = runtime.registry();
    let def = registry.op(op).expect("the op is registered").clone();
    let kernel = registry.kernels_of(op).iter().find(|kernel| {
        let takes_floats = kernel.types_of("T").is_none_or(|types| types.contains(&DType::FLOAT));
        kernel.device_type == device_type && kernel.label.is_empty() && takes_floats
    });
    let kernel = kernel.expect("it has a kernel for floats").clone();
    let input = |seed| Argument {
        dtype: DType::FLOAT,
        dims: vec![3, 5],
        fill: Fill::Uniform { low: -1.0, high: 1.0, seed },
        constant: false,
    };
    let attrs: AttrMap = def
        .attrs
        .iter()
        .filter(|attr| attr.name == "T")
        .map(|attr| (attr.name.clone(), DType::FLOAT.into()))
        .collect();
    let inputs = def.inputs.iter().enumerate().map(|(at, _)| input(at as u64)).collect();
    let case = CheckCase {
        name: "floats".to_owned(),
        tags: vec![Tag::Prime],
        attrs: attrs.clone(),
        inputs,
    };
    (Subject { op: def, kernel, types: attrs }, case)
}

#[test]
fn plugins_are_replaced_and_retired_while_they_are_in_use() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    for (libraries, plugin, ops, device_type) in [
        (&["tenon_cpu"][..], "tenon-cpu", &["Add", "Relu"][..], "CPU"),
        (&["tenon_cpu", "tenon_accel"], "tenon-accel", &["Add", "Neg"], "ACCEL"),
        (&["tenon_cpu", "zoo_rust"], "zoo-rust", &["ZooShapeMerge"], "CPU"),
    ] {
        let runtime = runtime(libraries, &[]);
        let cases: Vec<_> = ops.iter().map(|op| cases(&runtime, op, device_type)).collect();
        let mut log = Log::default();
        examine_plugin(&runtime, plugin, &cases, folder.path(), &mut log);
        assert_eq!(verdict(&log, Clause::Lifecycle), &Verdict::Passed, "{plugin}");
    }
    // Results that vary from call to call are no matter of the plugin's life: that kernel is not among those in use.
    let wrong = runtime(&["tenon_cpu", "zoo_wrong"], &[]);
    let cases: Vec<_> = ["WrongVaries", "WrongNan"].map(|op| cases(&wrong, op, "CPU")).into();
    let mut log = Log::default();
    examine_plugin(&wrong, "zoo-wrong", &cases, folder.path(), &mut log);
    assert_eq!(verdict(&log, Clause::Lifecycle), &Verdict::Passed);
    let runtime = runtime(&["tenon_cpu"], &[]);
    let mut log = Log::default();
    examine_plugin(&runtime, "tenon-host", &[], folder.path(), &mut log);
    assert!(matches!(verdict(&log, Clause::Lifecycle), Verdict::Skipped(_)));
    assert!(library("tenon_cpu").is_file(), "the original is untouched");
}
