//! The executor: cost per node, per step, per small graph. Each id times one whole step on one thread; the
//! kernels come from the loaded plugin, and a counted run shows that each ran once.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tenon_benches::{
    Failure, callable, chain, check_calls, filled, mixed, runtime, session, subgraph, wide,
};
use tenon_framework::Tensor;
use tenon_runtime::{
    Runtime,
    graph::{GraphBuilder, GraphError},
};

type Make = fn(&mut GraphBuilder<'_>) -> Result<(), GraphError>;

fn time(
    c: &mut Criterion,
    runtime: &Runtime,
    id: &str,
    kernels: usize,
    feed: &Tensor,
    make: Make,
) -> Result<(), Failure> {
    check_calls(runtime, kernels, feed, make)?;
    let session = session(runtime, false, make)?;
    let callable = callable(&session)?;
    let feeds = [feed.clone()];
    let mut fetched = Vec::new();
    callable.run(&feeds, &mut fetched)?;
    c.bench_function(id, |b| {
        b.iter(|| {
            let result = callable.run(black_box(&feeds), &mut fetched);
            if let Err(error) = result {
                panic!("{id}: {error}");
            }
        });
    });
    Ok(())
}

fn run(c: &mut Criterion) -> Result<(), Failure> {
    let runtime = runtime()?;
    let x = filled(&[1], |_| 0.5);
    time(c, &runtime, "executor/chain_1000", 1000, &x, |b| chain(b, 1000))?;
    time(c, &runtime, "executor/mixed_1000", 1000, &x, |b| mixed(b, 1000))?;
    time(c, &runtime, "executor/wide_1000", 1001, &x, |b| wide(b, 1000))?;
    time(c, &runtime, "executor/run_1", 1, &x, |b| chain(b, 1))?;
    let row = filled(&[1, 64], |at| at as f32 / 64.0);
    time(c, &runtime, "executor/subgraph", 3, &row, subgraph)?;
    Ok(())
}

fn benches(c: &mut Criterion) {
    if let Err(error) = run(c) {
        panic!("{error}");
    }
}

criterion_group!(executor, benches);
criterion_main!(executor);
