//! Loading a plugin of 500 kernels: open, check, register. Digests are cached.
//!
//! A library is opened once per process, so that each sample is a process of its own: the benchmark starts
//! itself again, and the child says how long its load took.

use criterion::{Criterion, criterion_group};
use std::{
    process::Command,
    time::{Duration, Instant},
};
use tenon_benches::{Failure, file_beside};
use tenon_runtime::{Runtime, RuntimeOptions};

const CHILD: &str = "TENON_BENCH_LOAD_CHILD";
const KERNELS: usize = 500;

/// Loads the plugin; nanoseconds that it took.
fn load() -> Result<u128, Failure> {
    let options = RuntimeOptions { threads: Some(1), search: false, ..RuntimeOptions::default() };
    let (runtime, _) = Runtime::new(options)?;
    let file = file_beside("libzoo_many.so")?;
    let before = runtime.registry().kernels().count();
    let begin = Instant::now();
    let report = runtime.plugins().load([file]);
    let took = begin.elapsed().as_nanos();
    report.into_result()?;
    let added = runtime.registry().kernels().count() - before;
    if added != KERNELS {
        return Err(format!("{added} kernels were registered, expected {KERNELS}").into());
    }
    Ok(took)
}

fn child() -> Result<Duration, Failure> {
    let output = Command::new(std::env::current_exe()?).env(CHILD, "1").output()?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().next().ok_or("the child printed nothing")?;
    Ok(Duration::from_nanos(line.trim().parse()?))
}

fn benches(c: &mut Criterion) {
    let mut group = c.benchmark_group("load");
    group.sample_size(20);
    group.bench_function("plugin_500", |b| {
        b.iter_custom(|iterations| {
            (0..iterations)
                .map(|_| child().unwrap_or_else(|error| panic!("the child failed: {error}")))
                .sum()
        });
    });
    group.finish();
}

criterion_group!(loading, benches);

fn main() {
    if std::env::var_os(CHILD).is_some() {
        match load() {
            Ok(nanoseconds) => println!("{nanoseconds}"),
            Err(error) => panic!("{error}"),
        }
        return;
    }
    loading();
    Criterion::default().configure_from_args().final_summary();
}
