//! What plugins/cuda has cuBLASLt and cuDNN do, on the fake CUDA stack: how often, by which algorithms, and what happens
//! where they refuse.

use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    Runtime, Session,
    framework::{
        DType, PartialShape, Tensor,
        attr::{AttrList, AttrValue},
    },
};
use tenon_tests::{
    cuda::{cuda_runtime, order, take_log},
    session::{run, session_as_written, turn, values},
};

const CUDA: &str = "/device:CUDA:0";
const CPU: &str = "/device:CPU:0";

/// A runtime that records nothing, with these knobs.
fn eager(knobs: &[(&str, &str)]) -> Runtime {
    cuda_runtime(&[&[("runtime.record_after", "-1")], knobs].concat())
}

/// Small whole numbers, whose sums of products are exact.
fn numbers(dims: &[i64], seed: i64) -> Tensor {
    let count: i64 = dims.iter().product();
    let value = |at: i64| ((at * 7 + at / 5 * 3 + seed) % 9 - 4) as f32;
    Tensor::from_slice(dims, &(0..count).map(value).collect::<Vec<f32>>()).expect("a shape")
}

fn shape(dims: &[i64]) -> PartialShape {
    PartialShape::new(dims).expect("a shape")
}

fn strings(names: &[&str]) -> AttrValue {
    AttrValue::List(AttrList::String(names.iter().map(|name| name.as_bytes().to_vec()).collect()))
}

fn count(log: &str, text: &str) -> usize {
    log.lines().filter(|line| line.contains(text)).count()
}

/// What the fake drivers are told, until the end of a test.
struct Orders(&'static [&'static str]);

impl Orders {
    fn give(
        all: &'static [(&'static str, &'static str)],
        names: &'static [&'static str],
    ) -> Orders {
        all.iter().for_each(|(name, value)| order(name, Some(value)));
        Orders(names)
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        self.0.iter().for_each(|name| order(name, None));
    }
}

/// `cuda` and `cpu`: a product with these steps behind it, of the inputs `a`, `b` and those of the steps, `x0` ...
fn product(
    b: &mut GraphBuilder<'_>,
    [m, k, n]: [i64; 3],
    steps: &[&str],
) -> Result<(), GraphError> {
    let mut inputs = vec![
        b.placeholder("a", DType::FLOAT, shape(&[m, k]))?,
        b.placeholder("b", DType::FLOAT, shape(&[k, n]))?,
    ];
    for (at, step) in steps.iter().filter(|step| ["BiasAdd", "Add"].contains(step)).enumerate() {
        let dims: &[i64] = if *step == "Add" { &[m, n] } else { &[n] };
        inputs.push(b.placeholder(&format!("x{at}"), DType::FLOAT, shape(dims))?);
    }
    for (device, name) in [(CUDA, "cuda"), (CPU, "cpu")] {
        let node = b.op("_FusedMatMul").name(name).inputs(inputs.iter().copied()).device(device);
        let more = inputs.len() as i64 - 2;
        node.attr("num_args", more).attr("fused_ops", strings(steps)).build()?;
    }
    Ok(())
}

/// A product on both devices: the results, and the log.
fn multiply(runtime: &Runtime, sizes: [i64; 3], steps: &[&str]) -> ([Vec<f32>; 2], String) {
    let session = session_as_written(runtime, |b| product(b, sizes, steps));
    multiply_in(&session, sizes, steps)
}

/// A step of such a session.
fn multiply_in(session: &Session, [m, k, n]: [i64; 3], steps: &[&str]) -> ([Vec<f32>; 2], String) {
    let mut feeds = vec![("a", numbers(&[m, k], 1)), ("b", numbers(&[k, n], 2))];
    let names = ["x0", "x1"];
    for (at, step) in steps.iter().filter(|step| ["BiasAdd", "Add"].contains(step)).enumerate() {
        let dims: &[i64] = if *step == "Add" { &[m, n] } else { &[n] };
        feeds.push((names[at], numbers(dims, 5)));
    }
    take_log();
    let found = run(session, &feeds, &["cuda", "cpu"]).expect("the step runs");
    ([values(&found[0]), values(&found[1])], take_log())
}

#[test]
fn a_vector_and_a_matrix_are_added_within_the_product() {
    let _turn = turn();
    let runtime = eager(&[]);
    let (found, log) = multiply(&runtime, [7, 12, 20], &["BiasAdd", "Add"]);
    assert_eq!(found[0], found[1]);
    assert_eq!(count(&log, "cublaslt algorithm=1 epilogue=4 adds=1 type=0"), 1, "{log}");
    assert_eq!(count(&log, "launch kernel="), 0, "{log}");
    let (found, log) = multiply(&runtime, [7, 12, 20], &["Add", "Relu"]);
    assert_eq!(found[0], found[1]);
    assert_eq!(count(&log, "epilogue=1 adds=1"), 1, "{log}");
    assert_eq!(count(&log, "launch kernel=gemm_after"), 1, "{log}");
}

#[test]
fn a_relu_is_within_the_product_where_that_is_asked_for() {
    let _turn = turn();
    let steps = ["BiasAdd", "Relu"];
    let (found, log) = multiply(&eager(&[]), [7, 12, 20], &steps);
    assert_eq!(found[0], found[1]);
    assert_eq!(
        (count(&log, "epilogue=4"), count(&log, "launch kernel=gemm_after")),
        (1, 1),
        "{log}"
    );
    let (found, log) = multiply(&eager(&[("cuda.fuse_relu", "true")]), [7, 12, 20], &steps);
    assert_eq!(found[0], found[1]);
    assert_eq!(
        (count(&log, "epilogue=6"), count(&log, "launch kernel=gemm_after")),
        (1, 0),
        "{log}"
    );
}

#[test]
fn products_that_the_library_refuses_are_the_plugins_own() {
    let _turn = turn();
    let _orders = Orders::give(&[("CUBLASLT_REFUSES", ",0,")], &["CUBLASLT_REFUSES"]);
    let (found, log) = multiply(&eager(&[]), [7, 12, 20], &["BiasAdd", "Relu"]);
    assert_eq!(found[0], found[1]);
    assert_eq!((count(&log, "cublaslt "), count(&log, "launch kernel=gemm ")), (0, 1), "{log}");
    let session = session_as_written(&eager(&[]), |b| {
        let x = b.placeholder("x", DType::FLOAT, shape(&[3, 4, 6]))?;
        let y = b.placeholder("y", DType::FLOAT, shape(&[3, 6, 5]))?;
        for (device, name) in [(CUDA, "cuda"), (CPU, "cpu")] {
            b.op("BatchMatMulV2").name(name).input(x).input(y).device(device).build()?;
        }
        Ok(())
    });
    let feeds = [("x", numbers(&[3, 4, 6], 3)), ("y", numbers(&[3, 6, 5], 4))];
    let found = run(&session, &feeds, &["cuda", "cpu"]).expect("the step runs");
    assert_eq!(values(&found[0]), values(&found[1]));
}

#[test]
fn steps_that_the_library_refuses_are_a_pass_behind_its_product() {
    let _turn = turn();
    let _orders = Orders::give(&[("CUBLASLT_LACKS", ",4,")], &["CUBLASLT_LACKS"]);
    let runtime = eager(&[]);
    for steps in [&["BiasAdd", "Add"][..], &["BiasAdd", "Relu"]] {
        let session = session_as_written(&runtime, |b| product(b, [7, 12, 20], steps));
        for _ in 0..2 {
            let (found, log) = multiply_in(&session, [7, 12, 20], steps);
            assert_eq!(found[0], found[1]);
            assert_eq!(count(&log, "epilogue=1 adds=0"), 1, "{log}");
            let launches = (count(&log, "launch kernel=gemm_after"), count(&log, "launch kernel="));
            assert_eq!(launches, (1, 1), "{log}");
        }
    }
}

#[test]
fn a_search_finds_the_fastest_algorithm_for_a_product_once() {
    let _turn = turn();
    let _orders = Orders::give(&[("CUBLASLT_SLOW", "1")], &["CUBLASLT_SLOW"]);
    let sizes = [64, 96, 96];
    let runtime = eager(&[("cuda.search_products", "true")]);
    let session = session_as_written(&runtime, |b| product(b, sizes, &["BiasAdd"]));
    let (found, log) = multiply_in(&session, sizes, &["BiasAdd"]);
    assert_eq!(found[0], found[1]);
    // One run and three that are timed, of each; then the product.
    assert_eq!((count(&log, "algorithm=1 "), count(&log, "algorithm=2 ")), (4, 5), "{log}");
    // Another node's product of the same sizes, while the first one is there: the device remembers.
    let (found, log) = multiply(&runtime, sizes, &["BiasAdd"]);
    assert_eq!(found[0], found[1]);
    assert_eq!((count(&log, "algorithm=1 "), count(&log, "algorithm=2 ")), (0, 1), "{log}");
    // A small one is not worth it.
    let (_, log) = multiply(&runtime, [8, 8, 8], &["BiasAdd"]);
    assert_eq!(count(&log, "cublaslt "), 1, "{log}");
}

const IMAGE: [i64; 4] = [2, 9, 8, 12];
const FILTER: [i64; 4] = [3, 3, 12, 20];

/// `cuda` and `cpu`: a convolution of `image`, with a bias and a ReLU, negated; the filter is a constant, or fed as `filter`.
fn convolution(b: &mut GraphBuilder<'_>, is_constant: bool) -> Result<(), GraphError> {
    let image = b.placeholder("image", DType::FLOAT, shape(&IMAGE))?;
    let filter = match is_constant {
        true => b.constant("filter", numbers(&FILTER, 7))?,
        false => b.placeholder("filter", DType::FLOAT, shape(&FILTER))?,
    };
    let bias = b.placeholder("bias", DType::FLOAT, shape(&FILTER[3..]))?;
    for (device, name) in [(CUDA, "cuda"), (CPU, "cpu")] {
        let node = b.op("_FusedConv2D").input(image).input(filter).input(bias).device(device);
        let y = node
            .attr("num_args", 1i64)
            .attr("fused_ops", strings(&["BiasAdd", "Relu"]))
            .attr("strides", vec![1i64; 4])
            .attr("padding", "SAME")
            .build()?;
        // One command alone is not recorded.
        b.op("Neg").name(name).input(y).device(device).build()?;
    }
    Ok(())
}

fn convolve(session: &Session, is_constant: bool, seed: i64) -> String {
    let mut feeds = vec![("image", numbers(&IMAGE, seed)), ("bias", numbers(&FILTER[3..], 3))];
    if !is_constant {
        feeds.push(("filter", numbers(&FILTER, 7)));
    }
    take_log();
    let found = run(session, &feeds, &["cuda", "cpu"]).expect("the step runs");
    assert_eq!(values(&found[0]), values(&found[1]), "of seed {seed}");
    take_log()
}

#[test]
fn a_constant_filter_is_brought_into_order_once() {
    let _turn = turn();
    let runtime = eager(&[]);
    for is_constant in [false, true] {
        let session = session_as_written(&runtime, |b| convolution(b, is_constant));
        for seed in 0..3 {
            let log = convolve(&session, is_constant, seed);
            assert_eq!(count(&log, "cudnn convolution algorithm=1 bias=1"), 1, "{log}");
            let moved = count(&log, "launch kernel=transpose_filter");
            assert_eq!(moved, usize::from(!is_constant), "{log}");
        }
    }
}

#[test]
fn a_recorded_step_has_the_constant_filter_too() {
    let _turn = turn();
    let knobs = [("runtime.record_after", "1"), ("cuda.search_convolutions", "true")];
    let session = session_as_written(&cuda_runtime(&knobs), |b| convolution(b, true));
    let logs: Vec<String> = (0..5).map(|seed| convolve(&session, true, seed)).collect();
    let all = logs.concat();
    assert_eq!(count(&all, "launch kernel=transpose_filter"), 0, "{all}");
    assert!(count(&logs[4], "cudnn convolution") == 0 && all.contains("graph_launch"), "{all}");
}

#[test]
fn an_algorithm_that_does_not_do_what_follows_gives_way_to_the_next() {
    let _turn = turn();
    let runtime = eager(&[]);
    for is_constant in [false, true] {
        let session = session_as_written(&runtime, |b| convolution(b, is_constant));
        let orders = Orders::give(&[("CUDNN_FAILS", "1")], &["CUDNN_FAILS"]);
        let log = convolve(&session, is_constant, 0);
        assert_eq!(count(&log, "cudnn convolution algorithm=0"), 1, "{log}");
        drop(orders);
        let session = session_as_written(&runtime, |b| convolution(b, is_constant));
        let _orders = Orders::give(&[("CUDNN_FAILS", "01")], &["CUDNN_FAILS"]);
        for seed in 0..2 {
            let log = convolve(&session, is_constant, seed);
            assert_eq!(count(&log, "cudnn convolution"), 0, "{log}");
            assert!(log.contains("launch kernel=conv"), "{log}");
        }
    }
}

#[test]
fn a_search_finds_the_fastest_algorithm_for_a_convolution_once() {
    let _turn = turn();
    let _orders = Orders::give(&[("CUDNN_SLOW", "1")], &["CUDNN_SLOW"]);
    let runtime = eager(&[("cuda.search_convolutions", "true")]);
    let session = session_as_written(&runtime, |b| convolution(b, true));
    let log = convolve(&session, true, 0);
    assert_eq!((count(&log, "algorithm=1 "), count(&log, "algorithm=0 ")), (4, 5), "{log}");
    let log = convolve(&session, true, 1);
    assert_eq!((count(&log, "algorithm=1 "), count(&log, "algorithm=0 ")), (0, 1), "{log}");
}

/// What is logged of a convolution by a filter of one pixel with such a stride and these steps, on the GPU by this
/// kernel, if one is named; its values are the CPU's.
fn convolve_pixels(runtime: &Runtime, stride: i64, steps: &[&str], kernel: Option<&str>) -> String {
    let [images, rows, columns, _] = IMAGE;
    let y = [images, (rows + stride - 1) / stride, (columns + stride - 1) / stride, FILTER[3]];
    let further: Vec<(&str, &[i64])> = steps
        .iter()
        .filter_map(|step| match *step {
            "BiasAdd" => Some(("bias", &FILTER[3..])),
            "Add" => Some(("added", &y[..])),
            _ => None,
        })
        .collect();
    let session = session_as_written(runtime, |b| {
        let image = b.placeholder("image", DType::FLOAT, shape(&IMAGE))?;
        let mut inputs = vec![image, b.constant("filter", numbers(&[1, 1, 12, 20], 7))?];
        for (name, dims) in &further {
            inputs.push(b.placeholder(name, DType::FLOAT, shape(dims))?);
        }
        for (device, name) in [(CUDA, "cuda"), (CPU, "cpu")] {
            let node = b.op("_FusedConv2D").name(name).inputs(inputs.clone()).device(device);
            let kernel = kernel.filter(|_| device == CUDA);
            let node = kernel.into_iter().fold(node, |node, kernel| node.attr("_kernel", kernel));
            node.attr("num_args", further.len() as i64)
                .attr("fused_ops", strings(steps))
                .attr("strides", vec![1, stride, stride, 1])
                .attr("padding", "SAME")
                .build()?;
        }
        Ok(())
    });
    let mut feeds = vec![("image", numbers(&IMAGE, 1))];
    feeds.extend(further.iter().map(|(name, dims)| (*name, numbers(dims, 3))));
    take_log();
    let found = run(&session, &feeds, &["cuda", "cpu"]).expect("the step runs");
    assert_eq!(values(&found[0]), values(&found[1]), "{steps:?}");
    take_log()
}

#[test]
fn a_filter_of_one_pixel_is_a_product() {
    let _turn = turn();
    let (plain, fusing) = (eager(&[]), eager(&[("cuda.fuse_relu", "true")]));
    let relu = ["BiasAdd", "Add", "Relu"];
    let found = |log: &str| {
        ["cudnn convolution", "cublaslt ", "launch kernel=conv", "launch kernel=gemm_after"]
            .map(|text| count(log, text))
    };
    // cuDNN comes first, and knows no addition without a bias.
    let log = convolve_pixels(&fusing, 1, &relu, None);
    assert_eq!(found(&log), [1, 0, 0, 0], "{log}");
    let log = convolve_pixels(&plain, 1, &["Add"], None);
    assert_eq!(found(&log), [0, 1, 0, 0], "{log}");
    assert_eq!(count(&log, "epilogue=1 adds=1"), 1, "{log}");
    let log = convolve_pixels(&fusing, 1, &relu, Some("cublaslt"));
    assert_eq!(found(&log), [0, 1, 0, 0], "{log}");
    assert_eq!(count(&log, "epilogue=6 adds=1"), 1, "{log}");
    // Another stride, and a step that the library does not do.
    let log = convolve_pixels(&plain, 2, &["Add"], None);
    assert_eq!(found(&log), [0, 0, 1, 0], "{log}");
    let log = convolve_pixels(&plain, 1, &["Add", "Relu6"], None);
    assert_eq!(found(&log), [0, 0, 1, 0], "{log}");
}

/// A pooling and a normalisation by cuDNN, beside the CPU's.
fn windows(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, shape(&[2, 7, 5, 6]))?;
    let list = b.placeholder("list", DType::FLOAT, shape(&[6]))?;
    for (device, name) in [(CUDA, "cuda"), (CPU, "cpu")] {
        for op in ["MaxPool", "AvgPool"] {
            let node = b.op(op).name(&format!("{name}_{op}")).input(x).device(device);
            let node = if device == CUDA { node.attr("_kernel", "cudnn") } else { node };
            node.attr("ksize", vec![1i64, 3, 3, 1])
                .attr("strides", vec![1i64, 2, 2, 1])
                .attr("padding", "SAME")
                .build()?;
        }
        let node = b.op("FusedBatchNormV3").name(&format!("{name}_norm")).device(device);
        let node = node.inputs([x, list, list, list, list]).attr("is_training", false);
        let node = if device == CUDA { node.attr("_kernel", "cudnn") } else { node };
        node.attr("U", DType::FLOAT).build()?;
    }
    Ok(())
}

#[test]
fn poolings_and_normalisations_go_through_cudnn_where_that_is_asked_for() {
    let _turn = turn();
    let session = session_as_written(&eager(&[]), windows);
    let list = Tensor::from_slice(&[6], &[0.5f32, 1.0, 2.0, 4.0, 0.25, 3.0]).expect("a shape");
    let feeds = [("x", numbers(&[2, 7, 5, 6], 1)), ("list", list)];
    let names = ["MaxPool", "AvgPool", "norm"];
    let fetches: Vec<String> = ["cuda", "cpu"]
        .iter()
        .flat_map(|device| names.map(|name| format!("{device}_{name}")))
        .collect();
    let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
    let step = |launches: usize| {
        take_log();
        let found = run(&session, &feeds, &fetches).expect("the step runs");
        let log = take_log();
        for (at, name) in names.iter().enumerate() {
            for (found, expected) in values(&found[at]).iter().zip(values(&found[at + 3])) {
                assert!((found - expected).abs() <= 1e-5, "{name}: {found}, expected {expected}");
            }
        }
        let by_cudnn = ["cudnn pooling mode=0", "cudnn pooling mode=2", "cudnn normalisation"];
        let found = by_cudnn.map(|text| count(&log, text));
        assert_eq!(found, [1 - launches; 3], "{log}");
        assert_eq!(count(&log, "launch kernel=pool"), 2 * launches, "{log}");
        assert_eq!(count(&log, "launch kernel=normalise"), launches, "{log}");
    };
    step(0);
    let _orders = Orders::give(&[("CUDNN_LACKS", "0")], &["CUDNN_LACKS"]);
    step(1);
}
