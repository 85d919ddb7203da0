//! What a call of an isolated plugin costs more than the same call in this process: `2x`, from one element to sixteen
//! million, inputs in memory that the plugin's process reads where they lie.
//!
//! Prints JSON lines: for each size the call in this process, the call of an isolated plugin, and what the latter adds.

use std::path::PathBuf;
use tenon_benches::{Failure, environment, file_beside, filter, is_wanted};
use tenon_benchkit::{
    sampler::{Plan, Subject, interleave},
    stats::{bootstrap::median_interval, describe::median},
};
use tenon_framework::{DType, Shape, Tensor, attr_view::AttrTable};
use tenon_runtime::{
    Runtime, RuntimeOptions,
    host::instance::{KernelInstance, PreparedCall},
};

const SIZES: [i64; 5] = [1, 1 << 10, 1 << 16, 1 << 20, 1 << 24];

fn runtime(here: Vec<PathBuf>, isolate: Vec<PathBuf>) -> Result<Runtime, Failure> {
    let options =
        RuntimeOptions { threads: Some(1), isolate, ..RuntimeOptions::with_plugins(here) };
    let (runtime, report) = Runtime::new(options)?;
    report.into_result()?;
    Ok(runtime)
}

/// The right kernel of an op that doubles.
fn instance(runtime: &Runtime) -> Result<KernelInstance, Failure> {
    let registry = runtime.registry();
    let op = registry.op("WrongFaults").ok_or("the op is not registered")?;
    let kernels = registry.kernels_of("WrongFaults");
    let def = kernels.iter().find(|def| def.label == "right").ok_or("no kernel labelled right")?;
    tenon_benches::instance_of(runtime, op, def, &AttrTable::new(Default::default()))
}

fn input(runtime: &Runtime, elements: i64) -> Result<Tensor, Failure> {
    let tensor = Tensor::allocate(runtime.host_memory(), DType::FLOAT, Shape::new(&[elements])?)?;
    // SAFETY: fresh memory of as many bytes.
    unsafe { tensor.buffer().data().cast::<u8>().write_bytes(0, tensor.byte_len()) };
    Ok(tensor)
}

struct Call<'a>(PreparedCall<'a>);

impl Subject for Call<'_> {
    fn run(&mut self, calls: u64) -> Result<(), String> {
        self.0.repeat(calls).map_err(|error| error.to_string())
    }
}

fn line(elements: i64, peer: &str, ns: &[f64]) {
    let [low, high] = median_interval(&[ns.to_vec()], 1);
    println!(
        "{{\"bench\":\"isolate\",\"peer\":\"{peer}\",\"size\":\"{elements}\",\"threads\":1,\"median_ns\":{:.1},\
         \"interval_ns\":[{low:.1},{high:.1}],\"samples\":{}}}",
        median(ns),
        ns.len()
    );
}

fn main() -> Result<(), Failure> {
    tenon_runtime::isolate::work();
    let words: Vec<String> = std::env::args().skip(1).collect();
    if !is_wanted("isolate", filter(words.iter().map(String::as_str))) {
        return Ok(());
    }
    let file = file_beside("libzoo_wrong.so")?;
    let here = runtime(vec![file.clone()], Vec::new())?;
    let apart = runtime(Vec::new(), vec![file])?;
    let (own, other) = (instance(&here)?, instance(&apart)?);
    let (own_env, other_env) = (environment(&here), environment(&apart));
    for elements in SIZES {
        let mut calls = [
            Call(PreparedCall::new(&own, &[input(&here, elements)?], &own_env)?),
            Call(PreparedCall::new(&other, &[input(&apart, elements)?], &other_env)?),
        ];
        for call in &mut calls {
            call.0.run()?;
        }
        let [own, other] = &mut calls;
        let subjects: &mut [&mut dyn Subject] = &mut [own, other];
        let plan = Plan { precision: 0.0, ..Plan::default() };
        let series = interleave(subjects, &plan, &mut |_| {}).map_err(|failed| failed.message)?;
        let added: Vec<f64> =
            series[1].ns.iter().zip(&series[0].ns).map(|(apart, here)| apart - here).collect();
        line(elements, "in_process", &series[0].ns);
        line(elements, "isolated", &series[1].ns);
        line(elements, "added", &added);
    }
    Ok(())
}
