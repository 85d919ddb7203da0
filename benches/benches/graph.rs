//! Compiling a step: prune, shapes, placement, all passes, partitions, plan. Each iteration compiles a graph of a
//! thousand nodes anew, in a session of its own.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use tenon_benches::{Failure, layers, runtime};
use tenon_runtime::{CallableOptions, Runtime, Session, SessionOptions, proto::GraphDef};

fn session(runtime: &Runtime, graph: &GraphDef) -> Session {
    let session = Session::new(runtime, SessionOptions::default());
    let session = session.unwrap_or_else(|error| panic!("{error}"));
    session.extend(graph).unwrap_or_else(|error| panic!("{error}"));
    session
}

fn run(c: &mut Criterion) -> Result<(), Failure> {
    let runtime = runtime()?;
    let graph = layers(&runtime, 1000)?;
    let options = CallableOptions::new(&["x"], &["y"]);
    let report = session(&runtime, &graph).explain_passes(Some(&options))?;
    if report.before < 900 || report.after >= report.before {
        return Err(format!("{} nodes before, {} after", report.before, report.after).into());
    }
    c.bench_function("graph/compile_1000", |b| {
        b.iter_batched(
            || session(&runtime, &graph),
            |session| {
                let callable = session.callable(options.clone());
                callable.unwrap_or_else(|error| panic!("{error}"));
                session
            },
            BatchSize::PerIteration,
        );
    });
    Ok(())
}

fn benches(c: &mut Criterion) {
    if let Err(error) = run(c) {
        panic!("{error}");
    }
}

criterion_group!(graph, benches);
criterion_main!(graph);
