//! Products and convolutions of floats through the loaded plugin, on every instruction set of this CPU, with constant
//! right factors packed and not, beside the reference kernels in double.

use half::bf16;
use std::sync::{Mutex, MutexGuard};
use tenon_framework::{
    DType, Tensor,
    attr::{AttrList, AttrValue},
};
use tenon_runtime::host::instance::{PackCache, call_once};
use tenon_testkit::host::{Node, TestHost, elements, library};

/// A host with this instruction set, one at a time: a library that is loaded twice has its knobs once.
pub fn host(isa: &str) -> (TestHost, MutexGuard<'static, ()>) {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(|poison| poison.into_inner());
    // Where shapes are open, Winograd's kernels would be taken, and leave the convolution to tiles at the call.
    let settings = [("cpu.isa", isa), ("cpu.winograd", "never")];
    (TestHost::with_settings([library("tenon-cpu")], &settings), alone)
}

/// What the plugin answers when it is asked for an instruction set that there is not.
fn refusal() -> String {
    let (host, _alone) = host("z80");
    match CASES[0].node(&host, "").create() {
        Err(refusal) => refusal.message,
        Ok(_) => panic!("a refusal"),
    }
}

/// The instruction sets of this CPU, as the plugin names them. Its code is not linked here, else the library would not be
/// loaded.
pub fn isas() -> Vec<String> {
    let message = refusal();
    let names = message
        .split_once("knob isa: expected one of ")
        .and_then(|(_, rest)| rest.split_once(", which this CPU has, found 'z80'"))
        .unwrap_or_else(|| panic!("no list of instruction sets: {message}"))
        .0;
    names.split(", ").map(str::to_owned).collect()
}

/// An op with the dimensions of its inputs, and its attributes.
struct Case {
    op: &'static str,
    dims: [&'static [i64]; 2],
    attrs: fn(Node<'_>) -> Node<'_>,
}

fn same(node: Node<'_>, stride: i64) -> Node<'_> {
    node.attr("strides", vec![1i64, stride, stride, 1]).attr("padding", "SAME")
}

const CASES: [Case; 12] = [
    Case { op: "MatMul", dims: [&[37, 70], &[70, 100]], attrs: |node| node },
    Case {
        op: "MatMul",
        dims: [&[70, 37], &[99, 70]],
        attrs: |node| node.attr("transpose_a", true).attr("transpose_b", true),
    },
    Case { op: "MatMul", dims: [&[1, 1300], &[1300, 130]], attrs: |node| node },
    // Few rows: a few panels of columns are packed at a time; and by columns, the product is turned.
    Case { op: "MatMul", dims: [&[20, 700], &[700, 300]], attrs: |node| node },
    Case {
        op: "MatMul",
        dims: [&[21, 700], &[515, 700]],
        attrs: |node| node.attr("transpose_b", true),
    },
    Case {
        op: "MatMul",
        dims: [&[130, 17], &[512, 130]],
        attrs: |node| node.attr("transpose_a", true).attr("transpose_b", true),
    },
    Case { op: "BatchMatMulV2", dims: [&[3, 2, 9, 33], &[1, 33, 50]], attrs: |node| node },
    Case {
        op: "BatchMatMulV2",
        dims: [&[3, 33, 9], &[50, 33]],
        attrs: |node| node.attr("adj_x", true).attr("adj_y", true),
    },
    Case { op: "Conv2D", dims: [&[2, 9, 8, 17], &[3, 3, 17, 50]], attrs: |node| same(node, 1) },
    Case { op: "Conv2D", dims: [&[2, 9, 8, 64], &[1, 1, 64, 33]], attrs: |node| same(node, 1) },
    Case { op: "Conv2D", dims: [&[1, 19, 18, 3], &[7, 7, 3, 64]], attrs: |node| same(node, 2) },
    Case { op: "Conv2D", dims: [&[2, 9, 8, 12], &[3, 3, 4, 30]], attrs: |node| same(node, 1) },
];

/// Between -1 and 1, with sums that cancel.
pub fn values(dims: &[i64], seed: u32) -> Vec<f32> {
    let count = dims.iter().product::<i64>() as u32;
    (0..count)
        .map(|at| {
            let hash = (at + seed).wrapping_mul(2_654_435_761).rotate_left(11).wrapping_mul(seed);
            f32::from(i16::try_from(hash >> 17).expect("15 bits") - 0x4000) / 16_384.0
        })
        .collect()
}

impl Case {
    fn node<'h>(&self, host: &'h TestHost, label: &str) -> Node<'h> {
        let node = (self.attrs)(host.node(self.op));
        match label {
            "" => node.attr("T", AttrValue::Type(DType::FLOAT)),
            _ => node.attr("T", AttrValue::Type(DType::DOUBLE)).label(label),
        }
    }

    fn inputs(&self) -> [Vec<f32>; 2] {
        [values(self.dims[0], 77_777), values(self.dims[1], 12_345)]
    }

    /// Of the result of a `MatMul`; transposed where the right operand has 99 rows.
    fn rows(&self) -> usize {
        self.dims[0][usize::from(self.dims[1][0] == 99)] as usize
    }

    fn tensors(&self) -> Vec<Tensor> {
        let tensors = self.inputs().into_iter().zip(self.dims);
        tensors.map(|(x, dims)| Tensor::from_slice(dims, &x).expect("a tensor")).collect()
    }

    /// By the reference kernel, in double.
    fn expected(&self, host: &TestHost) -> Vec<f64> {
        let inputs = self.inputs().into_iter().zip(self.dims).map(|(x, dims)| {
            let x: Vec<f64> = x.into_iter().map(f64::from).collect();
            Tensor::from_slice(dims, &x).expect("a tensor")
        });
        let inputs: Vec<Tensor> = inputs.collect();
        elements(&self.node(host, "reference").call(&inputs).expect("the reference")[0])
    }

    fn packed(&self, node: &Node<'_>, host: &TestHost, inputs: &[Tensor]) -> Vec<f32> {
        let mut kernel = node.create().expect("a kernel");
        let cache = PackCache::new();
        let packs = kernel.prepack(1, &inputs[1], &cache, "node/b").expect("a factor to pack");
        assert!(packs, "{} of {:?}: {}", self.op, self.dims, kernel.def());
        elements(&call_once(&kernel, inputs, &host.env).expect("the call")[0])
    }
}

/// Within what sums of at most 1,300 products of numbers below 1 lose.
pub fn assert_close(found: &[f32], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (at, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        assert!((f64::from(found) - expected).abs() < 1e-4, "{what}: {at}: {found}, {expected}");
    }
}

#[test]
fn every_instruction_set_agrees_with_the_reference() {
    for isa in isas() {
        let (host, _alone) = host(&isa);
        for (number, case) in CASES.iter().enumerate() {
            let what = format!("{isa}, case {number}, {}", case.op);
            let (inputs, expected) = (case.tensors(), case.expected(&host));
            let node = case.node(&host, "");
            let found = elements(&node.call(&inputs).expect("the call")[0]);
            assert_close(&found, &expected, &what);
            assert_close(
                &case.packed(&node, &host, &inputs),
                &expected,
                &format!("{what}, packed"),
            );
        }
    }
}

/// Bias and activation, over outputs wider and narrower than what is computed at a time.
#[test]
fn fused_products_finish_every_part_of_the_result() {
    for isa in isas() {
        let (host, _alone) = host(&isa);
        for columns in [40, 700] {
            let dims: [&[i64]; 2] =
                [&[50, 600], if columns == 40 { &[600, 40] } else { &[600, 700] }];
            let case = Case { op: "MatMul", dims, attrs: |node| node };
            let bias = values(&[columns], 99);
            let mut inputs = case.tensors();
            inputs.push(Tensor::from_slice(&[columns], &bias).expect("a tensor"));
            let steps = ["BiasAdd", "Relu"].map(|name| name.as_bytes().to_vec()).to_vec();
            let node = host
                .node("_FusedMatMul")
                .attr("T", AttrValue::Type(DType::FLOAT))
                .attr("num_args", 1i64)
                .attr("fused_ops", AttrValue::List(AttrList::String(steps)));
            let expected = case.expected(&host).into_iter().enumerate();
            let expected: Vec<f64> =
                expected.map(|(at, x)| (x + f64::from(bias[at % bias.len()])).max(0.0)).collect();
            let found = elements(&node.call(&inputs).expect("the call")[0]);
            assert_close(&found, &expected, &isa);
            assert_close(&case.packed(&node, &host, &inputs), &expected, &format!("{isa}, packed"));
        }
    }
}

/// The gradient of a layer by its inputs, with the slope of the activation before: few rows by a matrix that is stored by
/// columns.
#[test]
fn turned_products_finish_every_part_of_the_result() {
    for isa in isas() {
        let (host, _alone) = host(&isa);
        fn attrs(node: Node<'_>) -> Node<'_> {
            node.attr("transpose_b", true)
        }
        let case = Case { op: "MatMul", dims: [&[19, 300], &[258, 300]], attrs };
        let active = values(&[19, 258], 77);
        let mut inputs = case.tensors();
        inputs.push(Tensor::from_slice(&[19, 258], &active).expect("a tensor"));
        let node = attrs(host.node("_FusedMatMul"))
            .attr("T", AttrValue::Type(DType::FLOAT))
            .attr("num_args", 1i64)
            .attr("fused_ops", AttrValue::List(AttrList::String(vec![b"ReluGrad".to_vec()])));
        let expected = case.expected(&host).into_iter().zip(&active);
        let expected: Vec<f64> = expected.map(|(x, &y)| if y > 0.0 { x } else { 0.0 }).collect();
        let found = elements(&node.call(&inputs).expect("the call")[0]);
        assert_close(&found, &expected, &isa);
    }
}

#[test]
fn an_instruction_set_that_there_is_not_is_refused() {
    assert!(refusal().contains("portable"), "{}", refusal());
}

/// A case's inputs, rounded to bfloat16: as such, and as doubles.
fn narrowed(case: &Case) -> [Vec<Tensor>; 2] {
    let inputs = case.inputs().into_iter().zip(case.dims);
    let (narrow, wide): (Vec<Tensor>, Vec<Tensor>) = inputs
        .map(|(x, dims)| {
            let x: Vec<bf16> = x.into_iter().map(bf16::from_f32).collect();
            let wide: Vec<f64> = x.iter().map(|x| x.to_f64()).collect();
            let narrow = Tensor::from_slice(dims, &x).expect("a tensor");
            (narrow, Tensor::from_slice(dims, &wide).expect("a tensor"))
        })
        .unzip();
    [narrow, wide]
}

/// That a product of bfloat16 is what is expected, with the right factor packed or not; what is added to a sum is rounded
/// once more.
fn assert_pairs(
    node: &Node<'_>,
    host: &TestHost,
    inputs: &[Tensor],
    expected: &[f64],
    bias: Option<f64>,
) {
    let mut kernel = node.create().expect("a kernel");
    let alone: Vec<bf16> = elements(&call_once(&kernel, inputs, &host.env).expect("the call")[0]);
    let cache = PackCache::new();
    assert!(kernel.prepack(1, &inputs[1], &cache, "node/b").expect("a factor to pack"));
    let packed: Vec<bf16> = elements(&call_once(&kernel, inputs, &host.env).expect("the call")[0]);
    assert_eq!(alone, packed, "a constant makes no difference");
    for (at, (found, sum)) in packed.iter().zip(expected).enumerate() {
        let expected = bias.map_or(*sum, |bias| (sum + bias).max(0.0));
        // Half a unit in the last place of each.
        let most = 2f64.powi(-8) * (expected.abs() + sum.abs()) + 1e-4;
        assert!((found.to_f64() - expected).abs() <= most, "{at}: {found}, {expected}");
    }
}

/// Dot products of pairs of bfloat16, where the CPU has them: an odd depth, transposed operands, and bias with activation.
#[test]
fn pairs_of_bfloat16_agree_with_the_reference() {
    let (host, _alone) = host("");
    let cases = [
        Case { op: "MatMul", dims: [&[37, 71], &[71, 100]], attrs: |node| node },
        Case { op: "MatMul", dims: [&[1, 64], &[64, 30]], attrs: |node| node },
        Case {
            op: "MatMul",
            dims: [&[70, 37], &[99, 70]],
            attrs: |node| node.attr("transpose_a", true).attr("transpose_b", true),
        },
    ];
    for case in &cases {
        let node = |op: &'static str| {
            let node = (case.attrs)(host.node(op)).attr("T", AttrValue::Type(DType::BFLOAT16));
            node.label("bf16_dot")
        };
        if let Err(refusal) = node("MatMul").create() {
            assert!(refusal.message.contains("avx512bf16"), "{}", refusal.message);
            return;
        }
        let [mut inputs, wide] = narrowed(case);
        let expected: Vec<f64> =
            elements(&case.node(&host, "reference").call(&wide).expect("the reference")[0]);
        assert_pairs(&node("MatMul"), &host, &inputs, &expected, None);
        let bias = vec![bf16::from_f32(0.5); expected.len() / case.rows()];
        inputs.push(Tensor::from_slice(&[bias.len() as i64], &bias).expect("a tensor"));
        let steps = ["BiasAdd", "Relu"].map(|name| name.as_bytes().to_vec()).to_vec();
        let fused = node("_FusedMatMul")
            .attr("num_args", 1i64)
            .attr("fused_ops", AttrValue::List(AttrList::String(steps)));
        assert_pairs(&fused, &host, &inputs, &expected, Some(0.5));
    }
}
