//! Passes and fusions that a plugin brings through the boundary.

use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    Runtime, RuntimeOptions, Session,
    framework::{DType, PartialShape, Tensor},
    host::Settings,
    optimize::Report,
};
use tenon_tests::session::{floats, library, run, session, values};

fn runtime(set: &[(&str, &str)]) -> Runtime {
    let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let files = ["tenon_cpu", "zoo_passes"].map(library);
    let options = RuntimeOptions {
        threads: Some(2),
        settings: Settings { set, ..Settings::default() },
        ..RuntimeOptions::with_plugins(files)
    };
    let (runtime, report) = Runtime::new(options).expect("the runtime starts");
    report.into_result().expect("every library is a plugin");
    runtime
}

fn told(report: &Report, pass: &str) -> Vec<String> {
    let pass = report.passes.iter().find(|own| own.pass == pass).expect("the pass is there");
    assert_eq!(pass.plugin, "zoo-passes");
    pass.changes.iter().map(ToString::to_string).collect()
}

fn zoo(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[-1]).expect("a shape"))?;
    let m = b.placeholder("m", DType::FLOAT, PartialShape::new(&[2, 2]).expect("a shape"))?;
    let two = b.constant("two", Tensor::scalar(2f32).expect("a scalar"))?;
    let twice = b.op("Mul").name("zoo/twice").input(x).input(two).build()?;
    let negative = b.op("Neg").name("inner").input(twice).build()?;
    let negative = b.op("Neg").name("zoo/negative").input(negative).build()?;
    b.op("Relu").name("y").input(negative).build()?;
    let square = b.op("Square").name("zoo/matrix").input(m).build()?;
    b.op("Relu").name("z").input(square).build().map(drop)
}

fn results(session: &Session) -> (Vec<f32>, Vec<f32>) {
    let m = Tensor::from_slice(&[2, 2], &[1f32, -2.0, 3.0, -4.0]).expect("a matrix");
    let fetched = run(session, &[("x", floats(&[1.5, -2.0])), ("m", m)], &["y", "z"]);
    let fetched = fetched.expect("a step");
    (values(&fetched[0]), values(&fetched[1]))
}

#[test]
fn a_plugin_s_pass_walks_and_changes_the_graph() {
    // Alone: the host's own passes would do some of it.
    let off: Vec<(String, String)> = tenon_runtime::optimize::BUILT_IN
        .iter()
        .map(|name| (format!("graph.{name}"), "false".to_owned()))
        .collect();
    let off: Vec<(&str, &str)> = off.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let runtime = runtime(&off);
    let session = session(&runtime, zoo);
    assert_eq!(results(&session), (vec![3.0, 0.0], vec![1.0, 4.0, 9.0, 16.0]));
    let report = session.explain_passes(None).expect("the graph is right");
    assert_eq!(report.failures().count(), 0, "{report:?}");
    let told = told(&report, "rewrite");
    for expected in [
        "'zoo/twice' is a sum now",
        "'zoo/negative' is passed by",
        "'zoo/matrix/product' stands for a square",
        "'inner' is no longer needed",
    ] {
        assert!(told.iter().any(|line| line == expected), "{expected}: {told:?}");
    }
}

#[test]
fn a_knob_of_the_plugin_switches_its_pass() {
    let runtime = runtime(&[("zoo_passes.pass_rewrite", "false")]);
    let session = session(&runtime, zoo);
    assert_eq!(results(&session).0, [3.0, 0.0]);
    let report = session.explain_passes(None).expect("the graph is right");
    let pass = report.passes.iter().find(|pass| pass.pass == "rewrite").expect("it is listed");
    assert_eq!(pass.skipped.as_deref(), Some("knob zoo_passes.pass_rewrite is false"));
    assert!(pass.changes.is_empty() && pass.runs == 0);
}

#[test]
fn a_pass_that_fails_or_panics_leaves_the_graph_and_the_step_runs() {
    let runtime = runtime(&[]);
    for (name, pass, reason) in [
        ("zoo/fails", "fail", "1 nodes are too many"),
        ("zoo/panics", "panic", "at node zoo/panics"),
    ] {
        let session = session(&runtime, |b| {
            let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
            let y = b.op("Square").name(name).input(x).build()?;
            b.op("Relu").name("y").input(y).build().map(drop)
        });
        let fetched = run(&session, &[("x", floats(&[3.0, -4.0]))], &["y"]).expect("a step");
        assert_eq!(values(&fetched[0]), [9.0, 16.0]);
        let report = session.explain_passes(None).expect("the graph is right");
        let failures: Vec<(&str, &str)> = report.failures().collect();
        assert!(
            matches!(failures[..], [(own, why)] if own == pass && why.contains(reason)),
            "{failures:?}"
        );
        assert!(told(&report, pass).is_empty());
    }
}

#[test]
fn a_plugin_s_fusion_applies_where_its_kernel_takes_the_shapes() {
    let runtime = runtime(&[]);
    let session = session(&runtime, |b| {
        let shape = PartialShape::new(&[2]).expect("a shape");
        let x = b.placeholder("x", DType::FLOAT, shape.clone())?;
        let y = b.placeholder("y", DType::FLOAT, shape)?;
        let (a, c) = (b.op("Square").input(x).build()?, b.op("Square").input(y).build()?);
        b.op("AddV2").name("sum").input(a).input(c).build().map(drop)
    });
    let feeds = [("x", floats(&[1.0, 2.0])), ("y", floats(&[3.0, 4.0]))];
    let (fetched, metadata) =
        session.run(&feeds, &["sum"], &[], &Default::default()).expect("a step");
    assert_eq!(values(&fetched[0]), [10.0, 20.0]);
    assert_eq!(metadata.nodes.len(), 1);
    assert_eq!(
        (metadata.nodes[0].op.as_str(), metadata.nodes[0].plugin.as_str()),
        ("ZooSumOfSquares", "zoo-passes")
    );
}
