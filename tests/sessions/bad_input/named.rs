//! What a user reads when a step is refused: node, op, the argument by its name, what was expected and found.

use tenon_graph::{GraphBuilder, GraphError, Output};
use tenon_runtime::framework::{Code, DType, PartialShape, Tensor};
use tenon_tests::session::{floats, run, survives};

const PLUGINS: &[&str] = &["tenon_cpu", "tenon_linalg", "tenon_image"];

/// A node named `bad`, over `a` and `b`, whose shapes are known to nobody before the step.
type Make = fn(&mut GraphBuilder<'_>, Output, Output) -> Result<(), GraphError>;

struct Refused {
    make: Make,
    inputs: [Tensor; 2],
    /// Parts of the message.
    says: &'static [&'static str],
}

fn ints(dims: &[i64], values: &[i32]) -> Tensor {
    Tensor::from_slice(dims, values).expect("as many values as the shape says")
}

fn zeros(dims: &[i64]) -> Tensor {
    let count = dims.iter().product::<i64>() as usize;
    floats(&vec![0.0; count]).reshaped(dims).expect("as many elements")
}

fn op(
    b: &mut GraphBuilder<'_>,
    name: &str,
    inputs: impl IntoIterator<Item = Output>,
) -> Result<(), GraphError> {
    let node = inputs.into_iter().fold(b.op(name).name("bad"), |node, input| node.input(input));
    node.build().map(|_| ())
}

fn cases() -> Vec<Refused> {
    let text = |bytes: &[u8]| Tensor::from_strings(&[], &[bytes]).expect("one text");
    vec![
        Refused {
            make: |b, x, y| op(b, "Atan2", [x, y]),
            inputs: [floats(&[1.0; 2]), floats(&[1.0; 3])],
            says: &["Atan2", "do not broadcast", "y is [2], x is [3]"],
        },
        Refused {
            make: |b, x, axis| op(b, "Sum", [x, axis]),
            inputs: [zeros(&[2, 3]), ints(&[1], &[2])],
            says: &["Sum", "reduction_indices must lie in [-2, 2), got 2"],
        },
        Refused {
            make: |b, x, y| op(b, "FloorDiv", [x, y]),
            inputs: [ints(&[2], &[1, 2]), ints(&[2], &[1, 0])],
            says: &["FloorDiv", "division by zero: y must hold no 0, found one at position 1"],
        },
        Refused {
            make: |b, x, paddings| op(b, "Pad", [x, paddings]),
            inputs: [floats(&[1.0]), ints(&[1, 2], &[0, -3])],
            says: &["Pad", "paddings must be at least 0, got -3"],
        },
        Refused {
            make: |b, x, paddings| op(b, "Pad", [x, paddings]),
            inputs: [floats(&[1.0]), ints(&[1, 3], &[0; 3])],
            says: &["Pad", "paddings must ", "3"],
        },
        Refused {
            make: |b, x, shape| op(b, "Reshape", [x, shape]),
            inputs: [zeros(&[2, 3]), ints(&[1], &[4])],
            says: &["Reshape", "shape must have as many elements as tensor, which is 6", "[4]"],
        },
        Refused {
            make: |b, dims, value| op(b, "Fill", [dims, value]),
            inputs: [ints(&[3], &[i32::MAX; 3]), floats(&[0.0]).reshaped(&[]).expect("one")],
            says: &["Fill", "2147483647", "dims"],
        },
        Refused {
            make: |b, matrix, rhs| op(b, "MatrixSolve", [matrix, rhs]),
            inputs: [zeros(&[2, 2]), zeros(&[2, 1])],
            says: &["MatrixSolve", "matrix is not invertible"],
        },
        Refused {
            make: |b, contents, _| op(b, "DecodePng", [contents]),
            inputs: [text(b"\x89PNG\r\n\x1a\nand no more"), floats(&[])],
            says: &["DecodePng", "contents"],
        },
        Refused {
            make: |b, contents, _| op(b, "DecodeJpeg", [contents]),
            inputs: [text(b"\xff\xd8\xff\xe0\x00"), floats(&[])],
            says: &["DecodeJpeg", "contents"],
        },
    ]
}

/// Makes a step of `a` and `b`, fed where `fed`, else constants.
#[track_caller]
fn check(case: &Refused, fed: bool) {
    let [a, b] = &case.inputs;
    let make = |graph: &mut GraphBuilder<'_>| {
        let mut input = |name: &str, value: &Tensor| match fed {
            true => graph.placeholder(name, value.dtype(), PartialShape::UNKNOWN),
            false => graph.constant(name, value.clone()),
        };
        let (a, b) = (input("a", a)?, input("b", b)?);
        (case.make)(graph, a, b)
    };
    survives(PLUGINS, &[], make, |session| {
        let feeds = [("a", a.clone()), ("b", b.clone())];
        let feeds = if fed { &feeds[..] } else { &[] };
        let error = run(session, feeds, &["bad"]).expect_err("the step cannot run");
        let message = error.to_string();
        let code = error.code();
        assert!([Code::INVALID_ARGUMENT, Code::RESOURCE_EXHAUSTED].contains(&code), "{message}");
        assert!(message.starts_with("node 'bad' "), "{message}");
        for part in case.says {
            assert!(message.contains(part), "expected '{part}' in: {message}");
        }
    });
}

#[test]
fn what_only_the_step_knows_names_the_argument() {
    cases().iter().for_each(|case| check(case, true));
}

#[test]
fn what_the_graph_says_names_the_argument() {
    cases().iter().for_each(|case| check(case, false));
}

#[test]
fn inputs_that_must_be_equal_are_named() {
    let make = |b: &mut GraphBuilder<'_>| {
        let shape = |dims: &[i64]| PartialShape::new(dims).expect("a shape");
        let x = b.placeholder("a", DType::FLOAT, shape(&[2, 3]))?;
        let y = b.placeholder("b", DType::FLOAT, shape(&[2, 4]))?;
        b.op("ApproximateEqual").name("bad").input(x).input(y).build().map(|_| ())
    };
    survives(PLUGINS, &[], make, |session| {
        let feeds = [("a", zeros(&[2, 3])), ("b", zeros(&[2, 4]))];
        let message = run(session, &feeds, &["bad"]).expect_err("3 is not 4").to_string();
        assert!(message.contains("node 'bad' (op 'ApproximateEqual')"), "{message}");
        assert!(message.contains("x is [2,3], y is [2,4]"), "{message}");
    });
}
