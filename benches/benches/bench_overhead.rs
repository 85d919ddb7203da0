//! What `tenon bench` adds to each call that it times: its loop over an empty kernel against a loop that holds the
//! call and nothing else, turn by turn.
//!
//! Prints JSON lines: the empty loop, the bare call, the call as `tenon bench` makes it, and the difference of the last
//! two. With `empty`, `bare` or `repeat` and a number it runs that loop so many times and measures nothing, for
//! callgrind to count instructions. Any other word is the filter of `cargo bench`: it measures where its name has it.

use std::hint::black_box;
use tenon_author::{ComputeContext, register_kernel, register_op};
use tenon_benches::{Failure, environment, filter, instance_of, is_wanted};
use tenon_benchkit::{
    sampler::{Plan, Series, Subject, interleave},
    stats::{bootstrap::median_interval, describe::median},
};
use tenon_framework::{KernelError, attr_view::AttrTable};
use tenon_runtime::{
    Runtime, RuntimeOptions,
    host::instance::{ComputeFn, KernelInstance, PreparedCall},
};

register_op!("BenchNothing");

fn nothing(_: &ComputeContext<'_>) -> Result<(), KernelError> {
    Ok(())
}

register_kernel!("BenchNothing" on "CPU": fn nothing);

/// A loop without a call.
fn empty(calls: u64) -> Result<(), String> {
    for at in 0..calls {
        black_box(at);
    }
    Ok(())
}

/// A loop that holds the call and nothing else.
struct Bare<'a> {
    compute: ComputeFn,
    state: *mut tenon_framework::abi::KernelState,
    call: &'a tenon_framework::abi::Call,
}

impl Subject for Bare<'_> {
    fn run(&mut self, calls: u64) -> Result<(), String> {
        for _ in 0..calls {
            // SAFETY: the kernel's own entry and state with a prepared call.
            black_box(unsafe { (self.compute)(black_box(self.state), black_box(self.call)) });
        }
        Ok(())
    }
}

fn instance(runtime: &Runtime) -> Result<KernelInstance, Failure> {
    let registry = runtime.registry();
    let op = registry.op("BenchNothing").ok_or("the op is not registered")?;
    let def = registry.kernels_of("BenchNothing").first().ok_or("the kernel is not registered")?;
    instance_of(runtime, op, def, &AttrTable::new(Default::default()))
}

fn line(peer: &str, ns: &[f64]) {
    let mut sorted = ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (median, min, max) = (median(ns), sorted[0], sorted[sorted.len() - 1]);
    println!(
        "{{\"bench\":\"bench_overhead\",\"peer\":\"{peer}\",\"version\":\"0.1.0\",\"size\":\"1\",\"threads\":1,\
         \"median_ns\":{median:.3},\"min_ns\":{min:.3},\"max_ns\":{max:.3},\"samples\":{},\"rate\":{:.4},\
         \"best_rate\":{:.4},\"unit\":\"Gcall/s\"}}",
        ns.len(),
        1.0 / median,
        1.0 / min,
    );
}

fn report(series: &[Series]) {
    let [empty, bare, repeat] = series else { return };
    line("empty_loop", &empty.ns);
    line("bare_call", &bare.ns);
    line("repeat", &repeat.ns);
    let added: Vec<f64> =
        repeat.ns.iter().zip(&bare.ns).map(|(repeat, bare)| repeat - bare).collect();
    let [low, high] = median_interval(std::slice::from_ref(&added), 1);
    println!(
        "{{\"bench\":\"bench_overhead\",\"peer\":\"added\",\"median_ns\":{:.3},\"interval_ns\":[{low:.3},{high:.3}],\
         \"limit_ns\":2}}",
        median(&added)
    );
}

fn word(words: &[String], at: usize) -> &str {
    words.get(at).map_or("", String::as_str)
}

fn main() -> Result<(), Failure> {
    let options = RuntimeOptions { threads: Some(1), search: false, ..RuntimeOptions::default() };
    let (runtime, _) = Runtime::new(options)?;
    let instance = instance(&runtime)?;
    let env = environment(&runtime);
    let mut own = PreparedCall::new(&instance, &[], &env)?;
    own.run()?;
    let mut repeated = PreparedCall::new(&instance, &[], &env)?;
    repeated.run()?;
    let mut repeat = |calls: u64| repeated.repeat(calls).map_err(|error| error.to_string());
    let mut bare =
        Bare { compute: instance.compute(), state: instance.state(), call: own.planned() };
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [mode @ ("empty" | "bare" | "repeat"), count] = [0, 1].map(|at| word(&words, at)) {
        let count = count.parse()?;
        match mode {
            "empty" => empty(count)?,
            "bare" => bare.run(count)?,
            _ => repeat(count)?,
        }
        return Ok(());
    }
    if !is_wanted("bench_overhead", filter(words.iter().map(String::as_str))) {
        return Ok(());
    }
    let plan = Plan { precision: 0.0, ..Plan::default() };
    let subjects: &mut [&mut dyn Subject] = &mut [&mut empty, &mut bare, &mut repeat];
    let series = interleave(subjects, &plan, &mut |_| {}).map_err(|failed| failed.message)?;
    report(&series);
    Ok(())
}
