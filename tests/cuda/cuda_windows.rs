//! What slides windows over images, on CUDA beside the CPU: on the fake CUDA stack, for shapes that the golden data does
//! not have, of which channels go in packs and tiles are large.

use tenon_graph::{GraphBuilder, GraphError, NodeBuilder, Output};
use tenon_runtime::{
    Runtime,
    framework::{DType, PartialShape, Tensor},
};
use tenon_tests::{
    cuda::cuda_runtime,
    session::{run, session_as_written, turn, values},
};

const CUDA: &str = "/device:CUDA:0";
const CPU: &str = "/device:CPU:0";

const FLOATS: &[DType] = &[DType::HALF, DType::BFLOAT16, DType::FLOAT, DType::DOUBLE];
const POOLED: &[DType] = &[DType::BFLOAT16, DType::FLOAT];
const NUMBERS: &[DType] = &[
    DType::INT8,
    DType::INT16,
    DType::INT32,
    DType::INT64,
    DType::UINT8,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
    DType::HALF,
    DType::BFLOAT16,
    DType::FLOAT,
    DType::DOUBLE,
];

/// An op with the dimensions of its inputs, and its attributes.
struct Case {
    op: &'static str,
    types: &'static [DType],
    dims: &'static [&'static [i64]],
    attrs: for<'a, 'r> fn(NodeBuilder<'a, 'r>) -> NodeBuilder<'a, 'r>,
    /// What results may differ by, relative to the CPU's.
    within: f32,
}

/// Small whole numbers: sums of their products are exact in every type that they are taken in.
fn feed(dims: &[i64], seed: usize, least: i64) -> Tensor {
    let count: i64 = dims.iter().product();
    let value = |at: i64| ((at * 7 + at / 5 * 3 + seed as i64) % 9 + least) as f32;
    Tensor::from_slice(dims, &(0..count).map(value).collect::<Vec<f32>>()).expect("a shape")
}

fn cast(b: &mut GraphBuilder<'_>, x: Output, to: DType) -> Result<Output, GraphError> {
    Ok(b.op("Cast").input(x).attr("DstT", to).device(CPU).build()?.into())
}

impl Case {
    /// The case on both devices: of numbers of `ty`, and results as floats.
    fn run(&self, runtime: &Runtime, ty: DType) -> [Vec<f32>; 2] {
        let session = session_as_written(runtime, |b| {
            let mut inputs = Vec::new();
            for (at, dims) in self.dims.iter().enumerate() {
                let shape = PartialShape::new(dims).expect("a shape");
                let x = b.placeholder(&format!("x{at}"), DType::FLOAT, shape)?;
                inputs.push(cast(b, x, ty)?);
            }
            for (device, name) in [(CUDA, "cuda"), (CPU, "cpu")] {
                let node = b.op(self.op).inputs(inputs.iter().copied()).device(device);
                let y = (self.attrs)(node).build()?;
                b.op("Cast").name(name).input(y).attr("DstT", DType::FLOAT).device(CPU).build()?;
            }
            Ok(())
        });
        let unsigned = [DType::UINT8, DType::UINT16, DType::UINT32, DType::UINT64].contains(&ty);
        let least = if unsigned { 0 } else { -4 };
        let names: Vec<String> = (0..self.dims.len()).map(|at| format!("x{at}")).collect();
        let feeds: Vec<(&str, Tensor)> = names
            .iter()
            .zip(self.dims)
            .enumerate()
            .map(|(at, (name, dims))| (name.as_str(), feed(dims, at, least)))
            .collect();
        let found = run(&session, &feeds, &["cuda", "cpu"]).expect("the step runs");
        [values(&found[0]), values(&found[1])]
    }

    fn check(&self, runtime: &Runtime) {
        for &ty in self.types {
            let [found, expected] = self.run(runtime, ty);
            assert!(!expected.is_empty() && found.len() == expected.len(), "{} of {ty}", self.op);
            // A result that is not exact may round to the number beside the CPU's.
            let within = if ty == DType::HALF && self.within > 0.0 { 1e-3 } else { self.within };
            for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert!(
                    (found - expected).abs() <= within * expected.abs(),
                    "{} of {ty} over {:?}: y[{at}] is {found}, expected {expected}",
                    self.op,
                    self.dims
                );
            }
        }
    }
}

fn check(cases: &[Case]) {
    let _turn = turn();
    let runtime = cuda_runtime(&[]);
    cases.iter().for_each(|case| case.check(&runtime));
}

#[test]
fn convolutions_over_three_dimensions() {
    let exact = |dims, attrs| Case { op: "Conv3D", types: FLOATS, dims, attrs, within: 0.0 };
    check(&[
        exact(&[&[2, 5, 6, 7, 8], &[3, 2, 3, 8, 16]], |node| {
            node.attr("strides", vec![1i64, 2, 1, 1, 1]).attr("padding", "SAME")
        }),
        // Two groups, and taps apart.
        exact(&[&[1, 6, 5, 4, 16], &[2, 2, 3, 8, 16]], |node| {
            node.attr("strides", vec![1i64; 5])
                .attr("dilations", vec![1i64, 2, 1, 1, 1])
                .attr("padding", "SAME")
        }),
        // Large tiles, in packs and not.
        exact(&[&[1, 8, 9, 10, 8], &[1, 2, 2, 8, 72]], |node| {
            node.attr("strides", vec![1i64; 5]).attr("padding", "SAME")
        }),
        exact(&[&[1, 9, 9, 10, 3], &[2, 2, 1, 3, 70]], |node| {
            node.attr("strides", vec![1i64; 5]).attr("padding", "VALID")
        }),
        exact(&[&[2, 8, 5, 6, 7], &[3, 2, 3, 8, 16]], |node| {
            node.attr("strides", vec![1i64, 1, 1, 2, 1])
                .attr("padding", "SAME")
                .attr("data_format", "NCDHW")
        }),
    ]);
}

#[test]
fn poolings_over_three_dimensions() {
    let both = |dims: &'static [&'static [i64]], attrs| {
        ["MaxPool3D", "AvgPool3D"].map(|op| Case { op, types: POOLED, dims, attrs, within: 0.0 })
    };
    check(&both(&[&[2, 5, 6, 7, 16]], |node| {
        node.attr("ksize", vec![1i64, 2, 3, 2, 1])
            .attr("strides", vec![1i64, 2, 2, 1, 1])
            .attr("padding", "SAME")
    }));
    check(&both(&[&[2, 3, 5, 6, 7]], |node| {
        node.attr("ksize", vec![1i64, 1, 3, 2, 2])
            .attr("strides", vec![1i64, 1, 1, 2, 3])
            .attr("padding", "VALID")
            .attr("data_format", "NCDHW")
    }));
}

#[test]
fn responses_of_neighbouring_channels() {
    const TYPES: &[DType] = &[DType::HALF, DType::FLOAT];
    let case = |dims, attrs| Case { op: "LRN", types: TYPES, dims, attrs, within: 1e-6 };
    check(&[
        case(&[&[2, 3, 5, 24]], |node| node.attr("depth_radius", 2i64).attr("beta", 0.75f32)),
        case(&[&[2, 3, 5, 24]], |node| node.attr("bias", 2.0f32).attr("alpha", 0.5f32)),
        case(&[&[1, 3, 2, 40]], |node| node.attr("depth_radius", 13i64).attr("beta", 0.6f32)),
        case(&[&[1, 3, 2, 16]], |node| node.attr("depth_radius", 100i64)),
        case(&[&[1, 3, 2, 15]], |node| node.attr("depth_radius", 3i64).attr("beta", -0.5f32)),
    ]);
}

#[test]
fn dilation_of_every_number() {
    let exact = |dims, attrs| Case { op: "Dilation2D", types: NUMBERS, dims, attrs, within: 0.0 };
    check(&[
        exact(&[&[2, 7, 9, 16], &[2, 3, 16]], |node| {
            node.attr("strides", vec![1i64, 1, 2, 1])
                .attr("rates", vec![1i64, 2, 1, 1])
                .attr("padding", "SAME")
        }),
        exact(&[&[1, 6, 11, 5], &[3, 2, 5]], |node| {
            node.attr("strides", vec![1i64; 4])
                .attr("rates", vec![1i64, 1, 3, 1])
                .attr("padding", "VALID")
        }),
    ]);
}
