//! Convolutions by Winograd's algorithm: TensorFlow's results by each label, which kernel a session gets, and that
//! results do not depend on the threads.

use std::{collections::BTreeMap, path::Path};
use tenon_runtime::{
    Runtime, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor},
};
use tenon_testkit::{
    Form, GoldenCase, Harness, Outcome,
    golden::{self, Expected},
};
use tenon_tests::{
    exceptions::REFUSED_WITH_SHAPES,
    session::{run, runtime, runtime_of, session_with, values},
};

const LABELS: [&str; 3] = ["winograd2", "winograd4", "winograd5"];

/// Runs the golden cases of an op that these kernels take, whatever is faster, and counts them.
fn goldens(family: &str, op: &str) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens").join(family);
    let harness = Harness::new(&runtime(&["tenon_cpu"], &[("cpu.winograd", "always")]), "CPU");
    let harness = harness.expect("there is a CPU");
    let cases = golden::read_op(&folder.join(format!("{op}.json"))).expect("golden data");
    let mut passed = 0;
    // What the shape function refuses has no shapes that a kernel could be asked with.
    let has_shapes = |case: &&GoldenCase| {
        !REFUSED_WITH_SHAPES.iter().any(|exception| exception.covers(&case.op, &case.name))
    };
    let cases = cases.iter().filter(has_shapes);
    for (case, label) in cases.flat_map(|case| LABELS.map(|label| (case, label))) {
        // The kernels are asked when shapes are known.
        match harness.run_forms(case, Some(label), &[Form::Shapes, Form::Packed, Form::Planned]) {
            Outcome::Passed if matches!(case.expected, Expected::Outputs(_)) => passed += 1,
            Outcome::Passed | Outcome::NoKernel(_) => {}
            Outcome::Failed(failure) => panic!("{op}, {}, {label}: {failure:?}", case.name),
        }
    }
    passed
}

#[test]
fn golden_convolutions_are_those_of_tensorflow() {
    let passed = goldens("nn", "Conv2D");
    println!("{passed} cases of Conv2D");
    assert!(passed >= 8, "{passed} cases of Conv2D");
}

#[test]
fn golden_fused_convolutions_are_those_of_tensorflow() {
    let passed = goldens("fused", "_FusedConv2D");
    println!("{passed} cases of _FusedConv2D");
    // Two cases have a dense filter of 3x3.
    assert!(passed >= 4, "{passed} cases of _FusedConv2D");
}

#[test]
fn golden_gradients_by_the_input_are_those_of_tensorflow() {
    let passed = goldens("nn_grad", "Conv2DBackpropInput");
    println!("{passed} cases of Conv2DBackpropInput");
    // A dense filter of 3x3 with the padding SAME.
    assert!(passed >= 2, "{passed} cases of Conv2DBackpropInput");
}

/// Numbers of [-1, 1), reproducible.
fn numbers(dims: &[i64], seed: u64) -> Tensor {
    let count = dims.iter().product::<i64>();
    let mut state = seed;
    let values: Vec<f32> = (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed | 1);
            (state >> 40) as f32 / 8_388_608.0 - 1.0
        })
        .collect();
    Tensor::from_slice(dims, &values).expect("as many numbers as elements")
}

/// A convolution `conv` of a placeholder `x` with a constant filter, and with knobs of the session.
fn convolution(
    runtime: &Runtime,
    [input, filter]: [[i64; 4]; 2],
    format: &str,
    knobs: &[(&str, &str)],
) -> Session {
    let own = knobs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let mut options = SessionOptions::as_written();
    options.knobs.extend(own.collect::<BTreeMap<_, _>>());
    session_with(runtime, options, |b| {
        let shape = PartialShape::new(&input).expect("a shape");
        let x = b.placeholder("x", DType::FLOAT, shape)?;
        let filter = b.constant("filter", numbers(&filter, 7))?;
        let conv = b.op("Conv2D").name("conv").input(x).input(filter);
        let conv = conv.attr("strides", vec![1i64; 4]).attr("padding", "SAME");
        conv.attr("data_format", format).build().map(|_| ())
    })
}

/// The label of the kernel that `conv` gets.
fn label(session: &Session) -> String {
    let explained = session.explain(Some("conv")).expect("the node is there");
    let kernels = explained[0].kernels.as_ref().expect("a kernel runs it");
    kernels.result().expect("a kernel takes it").label.clone()
}

#[test]
fn a_session_gets_the_kernel_that_its_contract_allows() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let of = |shapes, format, knobs: &[_]| label(&convolution(&runtime, shapes, format, knobs));
    let large = [[1, 56, 56, 64], [3, 3, 64, 64]];
    assert_eq!(of(large, "NHWC", &[]), "winograd4");
    assert_eq!(of(large, "NHWC", &[("cpu.convolution_error", "7.9e-6")]), "winograd2");
    assert_eq!(of(large, "NHWC", &[("cpu.convolution_error", "3.9e-6")]), "");
    assert_eq!(of(large, "NHWC", &[("cpu.winograd", "never")]), "");
    // Where the factors are read once for few tiles.
    assert_eq!(of([[1, 14, 14, 512], [3, 3, 512, 512]], "NHWC", &[]), "winograd2");
    let wide = [[8, 14, 14, 32], [5, 5, 32, 64]];
    assert_eq!(of(wide, "NHWC", &[]), "winograd5");
    assert_eq!(of(wide, "NHWC", &[("cpu.convolution_error", "3.9e-6")]), "");
    for (shapes, format) in [
        ([[1, 56, 56, 32], [3, 3, 32, 64]], "NHWC"),
        ([[1, 56, 56, 64], [3, 3, 64, 32]], "NHWC"),
        ([[1, 13, 14, 64], [3, 3, 64, 64]], "NHWC"),
        ([[1, 56, 56, 64], [1, 1, 64, 64]], "NHWC"),
        ([[8, 14, 14, 16], [5, 5, 16, 64]], "NHWC"),
        ([[8, 14, 14, 64], [5, 3, 64, 64]], "NHWC"),
        ([[1, 64, 56, 56], [3, 3, 64, 64]], "NCHW"),
    ] {
        assert_eq!(of(shapes, format, &[]), "", "{shapes:?} {format}");
    }
}

#[test]
fn an_open_batch_is_decided_in_the_step() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let [open, filter] = [[-1, 14, 14, 64], [3, 3, 64, 64]];
    let session = convolution(&runtime, [open, filter], "NHWC", &[]);
    let plain = convolution(&runtime, [open, filter], "NHWC", &[("cpu.winograd", "never")]);
    for batch in [1, 3] {
        let x = numbers(&[batch, 14, 14, 64], 3);
        let of = |session| {
            let fetched = run(session, &[("x", x.clone())], &["conv"]).expect("a step");
            values(&fetched[0])
        };
        let (found, expected) = (of(&session), of(&plain));
        assert_ne!(found, expected, "another kernel rounds otherwise");
        // 576 terms of at most 1.
        let near = found.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 8e-6 * 576.0);
        assert!(near, "batch {batch}");
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let runtimes = [1, 2, 3].map(|threads| runtime_of(threads, &["tenon_cpu"], &[]));
    // A block that is shared, and blocks that are.
    for input in [[1, 29, 30, 64], [2, 70, 69, 64]] {
        let x = numbers(&input, 5);
        let [one, two, three] = runtimes.each_ref().map(|runtime| {
            let session = convolution(runtime, [input, [3, 3, 64, 64]], "NHWC", &[]);
            assert_eq!(label(&session), "winograd4");
            let fetched = run(&session, &[("x", x.clone())], &["conv"]).expect("a step");
            values(&fetched[0]).iter().map(|x| x.to_bits()).collect::<Vec<u32>>()
        });
        assert!(one == two && one == three, "{input:?}");
    }
}

/// The gradient `conv` by an input of these dimensions, for a gradient `x` of the outputs.
fn gradient(
    runtime: &Runtime,
    [input, output, filter]: [[i64; 4]; 3],
    paddings: &[i64],
    knob: &str,
) -> Session {
    let mut options = SessionOptions::as_written();
    options.knobs.insert("cpu.winograd".to_owned(), knob.to_owned());
    session_with(runtime, options, |b| {
        let shape = PartialShape::new(&output).expect("a shape");
        let dy = b.placeholder("x", DType::FLOAT, shape)?;
        let filter = b.constant("filter", numbers(&filter, 7))?;
        let sizes = input.map(|size| size as i32);
        let sizes = b.constant("sizes", Tensor::from_slice(&[4], &sizes).expect("a vector"))?;
        let padding = match paddings.is_empty() {
            true if input == output || input[1..3] == output[1..3] => "SAME",
            true => "VALID",
            false => "EXPLICIT",
        };
        let conv = b.op("Conv2DBackpropInput").name("conv").input(sizes).input(filter).input(dy);
        let conv = conv.attr("strides", vec![1i64; 4]).attr("padding", padding);
        conv.attr("explicit_paddings", paddings.to_vec()).build().map(|_| ())
    })
}

#[test]
fn gradients_by_the_input_are_those_of_the_ordinary_kernel() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    for (sizes, paddings, expected) in [
        ([[2, 9, 11, 5], [2, 9, 11, 7], [3, 3, 5, 7]], &[][..], "winograd4"),
        ([[2, 9, 11, 5], [2, 7, 9, 7], [3, 3, 5, 7]], &[], ""),
        ([[3, 9, 11, 5], [3, 9, 11, 7], [5, 5, 5, 7]], &[], "winograd5"),
        ([[1, 14, 13, 33], [1, 14, 13, 19], [5, 5, 33, 19]], &[], "winograd5"),
        ([[1, 14, 14, 33], [1, 10, 10, 19], [5, 5, 33, 19]], &[], ""),
        ([[1, 3, 2, 4], [1, 3, 2, 6], [5, 5, 4, 6]], &[], "winograd5"),
        ([[1, 6, 6, 4], [1, 9, 8, 6], [3, 3, 4, 6]], &[0, 0, 3, 2, 1, 3, 0, 0], ""),
    ] {
        let [found, plain] = ["always", "never"].map(|knob| {
            let session = gradient(&runtime, sizes, paddings, knob);
            let x = numbers(&sizes[1], 3);
            let fetched = run(&session, &[("x", x)], &["conv"]).expect("a step");
            (label(&session), values(&fetched[0]))
        });
        assert_eq!(found.0, expected, "{sizes:?}");
        assert_eq!(plain.0, "", "{sizes:?}");
        assert_eq!(found.1.len() as i64, sizes[0].iter().product::<i64>(), "{sizes:?}");
        let [rows, columns, _, outputs] = sizes[2];
        let allowed = 8e-6 * (rows * columns * outputs) as f32;
        let near = found.1.iter().zip(&plain.1).all(|(x, y)| (x - y).abs() < allowed);
        assert!(near, "{sizes:?}");
    }
}

#[test]
fn a_gradient_gets_the_kernel_that_is_fastest() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let of = |sizes| label(&gradient(&runtime, sizes, &[], "faster"));
    assert_eq!(of([[32, 14, 14, 32], [32, 14, 14, 64], [5, 5, 32, 64]]), "winograd5");
    assert_eq!(of([[1, 56, 56, 64], [1, 56, 56, 64], [3, 3, 64, 64]]), "winograd4");
    assert_eq!(of([[32, 14, 14, 16], [32, 14, 14, 64], [5, 5, 16, 64]]), "");
    // Many small images, and few channels, since the filter's factors are needed in this call only.
    assert_eq!(of([[32, 8, 8, 64], [32, 8, 8, 64], [3, 3, 64, 64]]), "winograd4");
    assert_eq!(of([[32, 32, 32, 16], [32, 32, 32, 16], [3, 3, 16, 16]]), "winograd4");
    assert_eq!(of([[32, 32, 32, 8], [32, 32, 32, 8], [3, 3, 8, 8]]), "");
}

/// The gradient `conv` by a filter of these dimensions, for inputs `x` and a gradient `dy` of the outputs.
fn by_filter(runtime: &Runtime, [input, output, filter]: [[i64; 4]; 3], knob: &str) -> Session {
    let mut options = SessionOptions::as_written();
    options.knobs.insert("cpu.winograd".to_owned(), knob.to_owned());
    session_with(runtime, options, |b| {
        let shape = |dims: &[i64]| PartialShape::new(dims).expect("a shape");
        let x = b.placeholder("x", DType::FLOAT, shape(&input))?;
        let dy = b.placeholder("dy", DType::FLOAT, shape(&output))?;
        let sizes = filter.map(|size| size as i32);
        let sizes = b.constant("sizes", Tensor::from_slice(&[4], &sizes).expect("a vector"))?;
        let padding = if input[1..3] == output[1..3] { "SAME" } else { "VALID" };
        let conv = b.op("Conv2DBackpropFilter").name("conv").input(x).input(sizes).input(dy);
        conv.attr("strides", vec![1i64; 4]).attr("padding", padding).build().map(|_| ())
    })
}

/// The results of a step of [`by_filter`].
fn filters(session: &Session, x: &Tensor, dy: &Tensor) -> Vec<f32> {
    let fetched = run(session, &[("x", x.clone()), ("dy", dy.clone())], &["conv"]);
    values(&fetched.expect("a step")[0])
}

/// Shapes of an input, of outputs and of a filter, and the label of the kernel that takes them.
const FILTERS: [([[i64; 4]; 3], &str); 7] = [
    ([[2, 9, 11, 5], [2, 9, 11, 7], [3, 3, 5, 7]], "winograd4"),
    ([[2, 10, 11, 5], [2, 8, 9, 7], [3, 3, 5, 7]], "winograd4"),
    ([[70, 13, 14, 33], [70, 13, 14, 19], [3, 3, 33, 19]], "winograd4"),
    ([[3, 9, 11, 5], [3, 9, 11, 7], [5, 5, 5, 7]], "winograd5"),
    ([[9, 14, 14, 32], [9, 10, 10, 64], [5, 5, 32, 64]], "winograd5"),
    ([[2, 7, 9, 5], [2, 7, 9, 7], [3, 3, 5, 7]], ""),
    ([[2, 9, 9, 5], [2, 9, 9, 7], [1, 1, 5, 7]], ""),
];

#[test]
fn gradients_by_the_filter_are_those_of_the_ordinary_kernel() {
    let runtimes = [1, 3].map(|threads| runtime_of(threads, &["tenon_cpu"], &[]));
    for (sizes, expected) in FILTERS {
        let (x, dy) = (numbers(&sizes[0], 3), numbers(&sizes[1], 5));
        let [one, three] = runtimes.each_ref().map(|runtime| by_filter(runtime, sizes, "always"));
        let plain = by_filter(&runtimes[0], sizes, "never");
        assert_eq!(label(&one), expected, "{sizes:?}");
        assert_eq!(label(&plain), "", "{sizes:?}");
        let found = filters(&one, &x, &dy);
        assert_eq!(found.len() as i64, sizes[2].iter().product::<i64>(), "{sizes:?}");
        assert_eq!(found, filters(&three, &x, &dy), "{sizes:?}: threads");
        let [batch, rows, columns, _] = sizes[1];
        // Terms are a quarter of 1 on average.
        let allowed = 8e-6 * (batch * rows * columns) as f32 / 4.0;
        let plain = filters(&plain, &x, &dy);
        let worst = found.iter().zip(&plain).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
        assert!(worst < allowed, "{sizes:?}: {worst:e}, where {allowed:e} is allowed");
    }
}

#[test]
fn gradients_by_the_filter_are_infinite_where_the_ordinary_kernel_has_them() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    for (sizes, label) in FILTERS {
        let [found, plain] = ["always", "never"].map(|knob| {
            let session = by_filter(&runtime, sizes, knob);
            let mut x = values(&numbers(&sizes[0], 3));
            let middle = x.len() / 2;
            x[middle] = f32::INFINITY;
            let x = Tensor::from_slice(&sizes[0], &x).expect("as many numbers as elements");
            filters(&session, &x, &numbers(&sizes[1], 5))
        });
        let bits = |all: &[f32]| all.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
        assert!(plain.iter().any(|x| x.is_infinite()), "{sizes:?}");
        assert_eq!(bits(&found), bits(&plain), "{sizes:?} {label}");
    }
}

#[test]
fn a_gradient_by_the_filter_gets_the_kernel_that_is_fastest() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let of = |sizes| label(&by_filter(&runtime, sizes, "faster"));
    assert_eq!(of([[32, 8, 8, 64], [32, 8, 8, 64], [3, 3, 64, 64]]), "winograd4");
    assert_eq!(of([[32, 16, 16, 32], [32, 16, 16, 32], [3, 3, 32, 32]]), "winograd4");
    assert_eq!(of([[32, 14, 14, 32], [32, 14, 14, 64], [5, 5, 32, 64]]), "winograd5");
    assert_eq!(of([[32, 32, 32, 16], [32, 32, 32, 16], [3, 3, 16, 16]]), "");
}
