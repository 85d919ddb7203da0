//! A CUDA kernel of another plugin than the one that brings the device: `tests/zoo/cuda_kernel`, and what `tenon new`
//! makes in CUDA C++, on the fake CUDA stack, as sdk/docs/cuda.md describes it.

use std::{fs, path::PathBuf, process::Command, sync::OnceLock};
use tenon_graph::{GraphBuilder, GraphError, NodeId};
use tenon_runtime::{
    Runtime, Session,
    framework::{Code, DType, PartialShape, Tensor},
};
use tenon_tests::{
    build::{deps, locked, output, run as run_to_its_end},
    cuda::{cuda_runtime_over, cuda_runtime_with, nvcc, order, take_log},
    session::{floats, run, runtime, session, turn, values},
};

const CUDA: &str = "/device:CUDA:0";
const SCALE: f32 = 2.0;
const SHIFT: f32 = -0.5;

/// `x`, of this length or, with -1, of any, a node of the plugin on a device, and `y`, what it gives.
fn scale_shift(
    b: &mut GraphBuilder<'_>,
    (dtype, length): (DType, i64),
    device: &str,
) -> Result<NodeId, GraphError> {
    let x = b.placeholder("x", dtype, PartialShape::new(&[length]).expect("a shape"))?;
    let op = b.op("ZooScaleShift").name("y").input(x).device(device);
    op.attr("scale", SCALE).attr("shift", SHIFT).build()
}

fn cuda(knobs: &[(&str, &str)]) -> Runtime {
    cuda_runtime_with(&["zoo_cuda_kernel"], knobs)
}

fn over(runtime: &Runtime, dtype: DType) -> Session {
    session(runtime, |b| scale_shift(b, (dtype, -1), CUDA).map(|_| ()))
}

fn fetch(session: &Session, x: Tensor) -> Tensor {
    run(session, &[("x", x)], &["y"]).expect("the step runs").remove(0)
}

/// Numbers of few bits: no rounding, fused or not, changes what the formula gives.
fn numbers(length: i32) -> Vec<f32> {
    (0..length).map(|at| (at * 37 % 101) as f32 / 16.0 - 3.0).collect()
}

/// Lines of the fake driver's log that begin so.
fn count(log: &str, line: &str) -> usize {
    log.lines().filter(|own| own.starts_with(line)).count()
}

fn formula(x: &[f32]) -> Vec<f32> {
    x.iter().map(|x| x * SCALE + SHIFT).collect()
}

#[test]
fn the_kernel_computes_its_formula_on_the_device_of_another_plugin() {
    let _turn = turn();
    let runtime = cuda(&[("runtime.record_after", "-1")]);
    let session = over(&runtime, DType::FLOAT);
    // Part of a block, whole blocks, one element more, and none.
    for length in [3, 512, 1025, 0] {
        let x = numbers(length);
        assert_eq!(values(&fetch(&session, floats(&x))), formula(&x), "{length} elements");
    }
}

#[test]
fn each_type_has_its_entry_point() {
    let _turn = turn();
    let runtime = cuda(&[]);
    let session = over(&runtime, DType::DOUBLE);
    let x: Vec<f64> = numbers(300).into_iter().map(f64::from).collect();
    let y = fetch(&session, Tensor::from_slice(&[300], &x).expect("a vector"));
    let expected: Vec<f64> = formula(&numbers(300)).into_iter().map(f64::from).collect();
    assert_eq!(y.as_slice::<f64>().expect("doubles in host memory"), expected);
}

#[test]
fn a_context_has_the_source_loaded_once_and_a_new_one_anew() {
    let _turn = turn();
    for _ in 0..2 {
        let runtime = cuda(&[("runtime.record_after", "-1")]);
        let (first, second) = (over(&runtime, DType::FLOAT), over(&runtime, DType::DOUBLE));
        take_log();
        let x = numbers(5);
        assert_eq!(values(&fetch(&first, floats(&x))), formula(&x));
        let doubles: Vec<f64> = x.iter().copied().map(f64::from).collect();
        fetch(&second, Tensor::from_slice(&[5], &doubles).expect("a vector"));
        assert_eq!(count(&take_log(), "module_load "), 1);
    }
}

#[test]
fn a_step_that_is_recorded_runs_the_kernel_without_calling_it() {
    let _turn = turn();
    let runtime = cuda(&[("runtime.record_after", "1")]);
    let session = session(&runtime, |b| {
        let y = scale_shift(b, (DType::FLOAT, 300), CUDA)?;
        b.op("ZooScaleShift").name("z").input(y).device(CUDA).build().map(|_| ())
    });
    for step in 0..5 {
        take_log();
        let x: Vec<f32> = numbers(300 + step).split_off(step as usize);
        let z = run(&session, &[("x", floats(&x))], &["z"]).expect("the step runs").remove(0);
        assert_eq!(values(&z), formula(&x), "step {step}");
        let log = take_log();
        let recorded = step > 1;
        assert_eq!(count(&log, "graph_launch "), usize::from(step > 0), "step {step}: {log}");
        assert_eq!(count(&log, "launch "), if recorded { 0 } else { 2 }, "{log}");
    }
}

#[test]
fn what_the_driver_refuses_is_said_in_its_words() {
    let _turn = turn();
    let runtime = cuda(&[("runtime.record_after", "-1")]);
    let session = over(&runtime, DType::FLOAT);
    order("FAKE_CUDA_FAIL", Some("cuModuleLoadData:1:2"));
    let failed = run(&session, &[("x", floats(&[1.0]))], &["y"]);
    order("FAKE_CUDA_FAIL", None);
    let error = failed.expect_err("no memory for the kernel's code");
    assert_eq!(error.code(), Code::RESOURCE_EXHAUSTED, "{error}");
    assert!(error.to_string().contains("cuModuleLoadData: CUDA_ERROR_OUT_OF_MEMORY"), "{error}");
    // A failed call leaves nothing behind.
    assert_eq!(values(&fetch(&session, floats(&[1.0]))), formula(&[1.0]));
}

#[test]
fn a_device_without_handles_is_refused() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu", "zoo_device", "zoo_cuda_kernel"], &[]);
    let session =
        session(&runtime, |b| scale_shift(b, (DType::FLOAT, -1), "/device:ZOO:0").map(|_| ()));
    let error = run(&session, &[("x", floats(&[1.0]))], &["y"]).expect_err("ZOO has no handles");
    assert_eq!(error.code(), Code::UNIMPLEMENTED, "{error}");
    assert!(error.to_string().contains("gives no handles of its driver"), "{error}");
}

/// The plugin that `tenon new gpu-leaky --lang cuda` makes, built by its Makefile with the fake stack's compiler.
fn gpu_leaky() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build_gpu_leaky).clone()
}

fn build_gpu_leaky() -> PathBuf {
    let tenon = deps().parent().expect("deps has a parent").join("tenon");
    assert!(tenon.is_file(), "build the command first: cargo build -p tenon-cli");
    let folder = output("gpu-leaky");
    let library = folder.join("libgpu_leaky.so");
    let changed = |file: &PathBuf| fs::metadata(file).and_then(|found| found.modified()).ok();
    locked("gpu-leaky", || {
        // Another test's process may have it open. The command carries all that the folder is made of.
        if changed(&library) > changed(&tenon) {
            return;
        }
        fs::remove_dir_all(&folder).expect("the folder goes");
        let mut new = Command::new(&tenon);
        run_to_its_end(new.args(["new", "gpu-leaky", "--lang", "cuda", "--path"]).arg(&folder));
        let (compiler, variable) = nvcc();
        let mut make = Command::new("make");
        make.current_dir(&folder).env(variable.0, variable.1).env("CXXFLAGS", "-O1 -Werror");
        run_to_its_end(make.arg(format!("NVCC={}", compiler.display())));
    });
    library
}

fn leaky(runtime: &Runtime, dtype: DType) -> Session {
    session(runtime, |b| {
        let x = b.placeholder("x", dtype, PartialShape::new(&[-1]).expect("a shape"))?;
        let y = b.op("GpuLeaky").name("y").input(x).device(CUDA).attr("alpha", 0.25f32).build()?;
        b.op("GpuLeaky").name("z").input(y).device(CUDA).attr("alpha", 0.5f32).build().map(|_| ())
    })
}

/// What the two nodes of [`leaky`] give.
fn twice_leaky(x: &[f32]) -> Vec<f32> {
    x.iter().map(|x| if *x > 0.0 { *x } else { x * 0.125 }).collect()
}

fn fetch_z(session: &Session, x: Tensor) -> Tensor {
    run(session, &[("x", x)], &["z"]).expect("the step runs").remove(0)
}

#[test]
fn a_kernel_in_cuda_cpp_launches_on_the_stream_of_its_call() {
    let _turn = turn();
    let runtime = cuda_runtime_over([gpu_leaky()], &[("runtime.record_after", "-1")]);
    let session = leaky(&runtime, DType::FLOAT);
    for length in [3, 256, 257, 1025, 0] {
        let x = numbers(length);
        assert_eq!(values(&fetch_z(&session, floats(&x))), twice_leaky(&x), "{length} elements");
    }
    let doubles: Vec<f64> = numbers(300).into_iter().map(f64::from).collect();
    let x = Tensor::from_slice(&[300], &doubles).expect("a vector");
    let z = fetch_z(&leaky(&runtime, DType::DOUBLE), x);
    let expected: Vec<f64> = twice_leaky(&numbers(300)).into_iter().map(f64::from).collect();
    assert_eq!(z.as_slice::<f64>().expect("doubles in host memory"), expected);
}

#[test]
fn the_code_of_a_plugin_in_cuda_cpp_is_loaded_once_for_all_its_kernels() {
    let _turn = turn();
    for _ in 0..2 {
        let runtime = cuda_runtime_over([gpu_leaky()], &[("runtime.record_after", "-1")]);
        let session = leaky(&runtime, DType::FLOAT);
        take_log();
        fetch_z(&session, floats(&numbers(5)));
        assert_eq!(count(&take_log(), "module_load "), 1, "a new context has it loaded anew");
    }
}

/// Also where the host checks shapes that no step knows before.
#[test]
fn steps_with_kernels_in_cuda_cpp_are_recorded() {
    let _turn = turn();
    for length in [300, -1] {
        let runtime = cuda_runtime_over([gpu_leaky()], &[("runtime.record_after", "1")]);
        let session = session(&runtime, |b| {
            let shape = PartialShape::new(&[length]).expect("a shape");
            let x = b.placeholder("x", DType::FLOAT, shape)?;
            // A single command is not worth a recording.
            let y = b.op("GpuLeaky").name("y").input(x).device(CUDA);
            let y = y.attr("alpha", 0.5f32).build()?;
            let z = b.op("GpuLeaky").name("z").input(y).device(CUDA);
            z.attr("alpha", 0.25f32).build().map(|_| ())
        });
        for step in 0..5 {
            take_log();
            let x: Vec<f32> = numbers(300 + step).split_off(step as usize);
            let step = format!("length {length}, step {step}");
            assert_eq!(values(&fetch_z(&session, floats(&x))), twice_leaky(&x), "{step}");
            let (log, is_first) = (take_log(), step.ends_with('0'));
            assert_eq!(count(&log, "graph_launch "), usize::from(!is_first), "{step}: {log}");
            let launches = 2 * usize::from(is_first || step.ends_with('1'));
            assert_eq!(count(&log, "launch "), launches, "{step}: {log}");
        }
    }
}

#[test]
fn what_the_driver_refuses_a_kernel_in_cuda_cpp_is_said_in_its_words() {
    let _turn = turn();
    let runtime = cuda_runtime_over([gpu_leaky()], &[("runtime.record_after", "-1")]);
    let session = leaky(&runtime, DType::FLOAT);
    order("FAKE_CUDA_FAIL", Some("cuModuleLoadData:1:2"));
    let failed = run(&session, &[("x", floats(&[1.0]))], &["z"]);
    order("FAKE_CUDA_FAIL", None);
    let error = failed.expect_err("no memory for the kernel's code");
    assert_eq!(error.code(), Code::RESOURCE_EXHAUSTED, "{error}");
    assert!(error.to_string().contains("cuModuleLoadData: CUDA_ERROR_OUT_OF_MEMORY"), "{error}");
    assert_eq!(values(&fetch_z(&session, floats(&[1.0]))), [1.0], "nothing is left behind");
}
