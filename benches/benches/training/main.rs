//! Whole training steps, on one thread and on two: the models of `benches/peers/training.py`, with the same initial values
//! and the same data. Differentiated and updated by `tenon-training`.
//!
//!     cargo bench -p tenon-benches --bench training -- mlp
//!     LOSSES=1 cargo bench -p tenon-benches --bench training
//!     CPU_TIME=200 cargo bench -p tenon-benches --bench training -- cnn
//!
//! With `LOSSES`, nothing is timed: each model takes 50 steps, and prints its loss before each of them, to be compared with
//! those of the peers. With `CPU_TIME`, each model takes so many steps on one thread, and prints the least and the median CPU
//! time of a step, and the least of each node: on a busy machine these say more than the time that passes.

mod cpu_time;
mod models;
mod recurrent;
mod residual;

use criterion::{Criterion, criterion_group, criterion_main};
use models::{MODELS, Model};
use std::{env, time::Duration};
use tenon_benches::{Failure, filter, is_wanted, plugin};
use tenon_runtime::{
    Callable, CallableOptions, RunOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    graph::GraphBuilder,
};

/// Steps whose losses are printed.
const STEPS: usize = 50;

/// A session with initialised variables, and the call that runs a step and gives the loss before it.
fn prepare(runtime: &Runtime, model: &Model) -> Result<(Session, Callable), Failure> {
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let built = models::build(&mut b, model)?;
    let session = Session::new(runtime, SessionOptions::default())?;
    session.extend_graph(&b.finish())?;
    session.run(&[], &[], &[&built.init], &RunOptions::default())?;
    let options = CallableOptions {
        fetches: vec![built.loss],
        targets: vec![built.train],
        ..CallableOptions::default()
    };
    let callable = session.callable(options)?;
    Ok((session, callable))
}

fn step(callable: &Callable) -> Result<f32, Failure> {
    let mut fetched = Vec::new();
    callable.run(&[], &mut fetched)?;
    Ok(fetched[0].as_slice::<f32>()?[0])
}

fn losses(runtime: &Runtime, model: &Model) -> Result<(), Failure> {
    let (_session, callable) = prepare(runtime, model)?;
    let losses = (0..STEPS).map(|_| step(&callable)).collect::<Result<Vec<f32>, _>>()?;
    println!("{}", serde_json::json!({"model": model.name, "losses": losses}));
    Ok(())
}

fn time(
    c: &mut Criterion,
    runtime: &Runtime,
    model: &Model,
    threads: usize,
) -> Result<(), Failure> {
    let (_session, callable) = prepare(runtime, model)?;
    let mut fetched = Vec::new();
    for _ in 0..3 {
        callable.run(&[], &mut fetched)?;
    }
    let mut group = c.benchmark_group("training");
    group.sample_size(20).measurement_time(Duration::from_secs(4));
    group.bench_function(format!("{}/{threads}", model.name), |b| {
        b.iter(|| {
            if let Err(error) = callable.run(&[], &mut fetched) {
                panic!("{}: {error}", model.name);
            }
        });
    });
    group.finish();
    Ok(())
}

fn run(c: &mut Criterion) -> Result<(), Failure> {
    let words: Vec<String> = env::args().skip(1).collect();
    let wanted = filter(words.iter().map(String::as_str));
    let models = MODELS.iter().filter(|model| is_wanted(model.name, wanted));
    for threads in [1, 2] {
        let plugins = [plugin("cpu")?, plugin("data")?, plugin("train")?];
        let options =
            RuntimeOptions { threads: Some(threads), ..RuntimeOptions::with_plugins(plugins) };
        let (runtime, report) = Runtime::new(options)?;
        report.into_result()?;
        if env::var_os("LOSSES").is_some() {
            return models.clone().try_for_each(|model| losses(&runtime, model));
        }
        if let Ok(steps) = env::var("CPU_TIME") {
            let steps = steps.parse()?;
            return models.clone().try_for_each(|model| {
                let (_session, callable) = prepare(&runtime, model)?;
                cpu_time::print(model.name, &callable, steps)
            });
        }
        models.clone().try_for_each(|model| time(c, &runtime, model, threads))?;
    }
    Ok(())
}

fn benches(c: &mut Criterion) {
    if let Err(error) = run(c) {
        panic!("training: {error}");
    }
}

criterion_group!(training, benches);
criterion_main!(training);
