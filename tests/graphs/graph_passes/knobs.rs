use tenon_runtime::optimize::BUILT_IN;
use tenon_tests::session::{floats, runtime, session, values};

#[test]
fn every_pass_has_a_knob_of_its_name() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let session = session(&runtime, |_| Ok(()));
    let knobs = session.knobs();
    for name in BUILT_IN.iter().copied().chain(["optimize"]) {
        // What costs time to save memory is asked for.
        assert_eq!(knobs.bool("graph", name), Some(name != "recompute"), "{name}");
    }
    assert_eq!(knobs.int("graph", "folding_limit"), Some(10 << 20));
}

#[test]
fn what_is_folded_is_what_the_kernel_gives_and_keeps_its_name() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let session = session(&runtime, |b| {
        let c = b.constant("c", floats(&[1.0, -2.0, 3.0]))?;
        let sum = b.op("AddV2").name("sum").input(c).input(c).build()?;
        b.op("Relu").name("y").input(sum).build().map(drop)
    });
    for fetch in ["y", "sum"] {
        let (fetched, metadata) =
            session.run(&[], &[fetch], &[], &Default::default()).expect("a step");
        let expected = if fetch == "y" { [2.0, 0.0, 6.0] } else { [2.0, -4.0, 6.0] };
        assert_eq!(values(&fetched[0]), expected);
        assert!(metadata.nodes.iter().all(|node| node.op == "Const"), "{:?}", metadata.nodes);
    }
    let report = session.explain_passes(None).expect("the graph is right");
    assert_eq!((report.before, report.after), (3, 1));
}
