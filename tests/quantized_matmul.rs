//! `_QuantizedFusedMatMul` through the loaded plugin: against plain sums in 64 bits and the stages of
//! `fixed_point`, on every instruction set of this CPU, with constants packed and not; and what it refuses.

use std::{
    ops::Deref,
    sync::{Mutex, MutexGuard},
};
use tenon_framework::{
    DType, KernelError, Tensor,
    attr::AttrValue,
    fixed_point::{Activation, Multiplier, QuantizedRange, Scale, multiply_by_float},
};
use tenon_runtime::host::instance::{PackCache, call_once};
use tenon_testkit::host::{Node, TestHost, library};

/// A host with this instruction set, one at a time: a library that is loaded twice has its knobs once.
struct Alone {
    host: TestHost,
    _alone: MutexGuard<'static, ()>,
}

impl Deref for Alone {
    type Target = TestHost;
    fn deref(&self) -> &TestHost {
        &self.host
    }
}

fn host(isa: &str) -> Alone {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(|poison| poison.into_inner());
    let host = TestHost::with_settings([library("tenon-int8")], &[("int8.isa", isa)]);
    Alone { host, _alone: alone }
}

/// The instruction sets of this CPU, as the plugin names them when it is asked for another. Its code is not linked here,
/// else the library would not be loaded.
fn isas() -> Vec<String> {
    let call = Call::new([1, 1, 1], BYTES, DType::QINT32);
    let message = call.refused(&host("z80"));
    let (names, _) = message
        .strip_prefix("knob isa: expected one of ")
        .and_then(|rest| rest.split_once(", which this CPU has, found 'z80'"))
        .unwrap_or_else(|| panic!("no list of instruction sets: {message}"));
    let names: Vec<String> = names.split(", ").map(str::to_owned).collect();
    assert!(names.iter().any(|name| name == "portable"), "{names:?}");
    names
}

/// A node with its inputs.
#[derive(Clone)]
struct Call {
    sizes: [usize; 3],
    types: [DType; 2],
    out: DType,
    transposed: [bool; 2],
    requantize: &'static str,
    activation: &'static str,
    clamp: [f32; 2],
    a: Vec<u8>,
    b: Vec<u8>,
    a_scale: f32,
    a_zero: i32,
    b_scale: Vec<f32>,
    b_zero: Vec<i32>,
    out_scale: f32,
    out_zero: i32,
    bias: Option<Vec<i32>>,
}

impl Call {
    /// A call of these sizes with values from a fixed sequence.
    fn new(sizes: [usize; 3], types: [DType; 2], out: DType) -> Call {
        let [m, n, k] = sizes;
        let bytes = |count: usize, salt: usize| -> Vec<u8> {
            (0..count).map(|at| ((at + salt).wrapping_mul(2_654_435_761) >> 13) as u8).collect()
        };
        Call {
            sizes,
            types,
            out,
            transposed: [false; 2],
            requantize: "FLOAT",
            activation: "NONE",
            clamp: [0.0, 6.0],
            a: bytes(m * k, 1),
            b: bytes(k * n, 7),
            a_scale: 0.02,
            a_zero: 3,
            b_scale: vec![0.01],
            b_zero: vec![5],
            out_scale: 0.25,
            out_zero: 7,
            bias: Some((0..n as i32).map(|j| j * 531 - 2000).collect()),
        }
    }

    /// Columns with scales and zero points of their own.
    fn per_column(mut self) -> Call {
        let n = self.sizes[1];
        self.b_scale = (0..n).map(|j| 0.001 * (1 + j % 17) as f32).collect();
        self.b_zero = (0..n as i32).map(|j| j % 7).collect();
        self
    }

    fn b_dims(&self) -> [i64; 2] {
        let [_, n, k] = self.sizes.map(|size| size as i64);
        if self.transposed[1] { [n, k] } else { [k, n] }
    }

    fn inputs(&self) -> Vec<Tensor> {
        let [m, _, k] = self.sizes.map(|size| size as i64);
        let a_dims = if self.transposed[0] { [k, m] } else { [m, k] };
        let dims = |len: usize| if len == 1 { vec![] } else { vec![len as i64] };
        let mut inputs = vec![
            Tensor::from_bytes(self.types[0], &a_dims, &self.a),
            Tensor::from_bytes(self.types[1], &self.b_dims(), &self.b),
            Tensor::scalar(self.a_scale),
            Tensor::scalar(self.a_zero),
            Tensor::from_slice(&dims(self.b_scale.len()), &self.b_scale),
            Tensor::from_slice(&dims(self.b_zero.len()), &self.b_zero),
            Tensor::scalar(self.out_scale),
            Tensor::scalar(self.out_zero),
        ];
        inputs.extend(self.bias.iter().map(|bias| Tensor::from_slice(&[bias.len() as i64], bias)));
        inputs.into_iter().collect::<Result<_, _>>().expect("tensors")
    }

    fn node<'h>(&self, host: &'h TestHost) -> Node<'h> {
        host.node("_QuantizedFusedMatMul")
            .attr("Ta", AttrValue::Type(self.types[0]))
            .attr("Tb", AttrValue::Type(self.types[1]))
            .attr("Tout", AttrValue::Type(self.out))
            .attr("num_bias", i64::from(self.bias.is_some()))
            .attr("transpose_a", self.transposed[0])
            .attr("transpose_b", self.transposed[1])
            .attr("requantize", self.requantize)
            .attr("activation", self.activation)
            .attr("clamp_min", AttrValue::Float(self.clamp[0]))
            .attr("clamp_max", AttrValue::Float(self.clamp[1]))
    }

    fn run(&self, host: &TestHost) -> Result<Vec<u8>, KernelError> {
        let outputs = self.node(host).call(&self.inputs())?;
        assert_eq!(outputs[0].dtype(), self.out);
        Ok(outputs[0].as_bytes().expect("bytes").to_vec())
    }

    /// As [`Call::run`], with the right matrix packed when the kernel is made.
    fn run_packed(&self, host: &TestHost) -> Vec<u8> {
        let inputs = self.inputs();
        let mut kernel = self.node(host).create().expect("a kernel");
        let cache = PackCache::new();
        assert!(kernel.prepack(1, &inputs[1], &cache, "node/b").expect("a matrix to pack"));
        let outputs = call_once(&kernel, &inputs, &host.env).expect("the call");
        outputs[0].as_bytes().expect("bytes").to_vec()
    }

    /// The results by their definition.
    fn expected(&self) -> Vec<u8> {
        let [m, n, _] = self.sizes;
        (0..m * n).flat_map(|at| self.value(self.sum(at / n, at % n), at % n)).collect()
    }

    fn sum(&self, i: usize, j: usize) -> i32 {
        let [m, n, k] = self.sizes;
        let value = |byte: u8, dtype: DType| -> i64 {
            if dtype == DType::QINT8 { byte.cast_signed().into() } else { byte.into() }
        };
        let zero = i64::from(self.b_zero[j % self.b_zero.len()]);
        let terms = (0..k).map(|p| {
            let a = self.a[if self.transposed[0] { p * m + i } else { i * k + p }];
            let b = self.b[if self.transposed[1] { j * k + p } else { p * n + j }];
            (value(a, self.types[0]) - i64::from(self.a_zero)) * (value(b, self.types[1]) - zero)
        });
        let bias = self.bias.as_ref().map_or(0, |bias| i64::from(bias[j]));
        i32::try_from(terms.sum::<i64>() + bias).expect("32 bits")
    }

    fn value(&self, sum: i32, j: usize) -> Vec<u8> {
        let activation = Activation::parse(self.activation, self.clamp).expect("an activation");
        let out_scale = if self.out == DType::FLOAT { 1.0 } else { self.out_scale };
        let b_scale = self.b_scale[j % self.b_scale.len()];
        let scale = Scale::requantize(["a_scale", "b_scale"], self.a_scale, b_scale, out_scale)
            .expect("scales");
        match self.out {
            DType::QINT32 if self.activation == "RELU" => sum.max(0).to_le_bytes().to_vec(),
            DType::QINT32 => sum.to_le_bytes().to_vec(),
            DType::FLOAT => {
                let [low, high] = activation.bounds();
                let real = sum as f32 * scale.as_real().expect("a scale");
                real.max(low).min(high).to_le_bytes().to_vec()
            }
            _ => {
                let range =
                    QuantizedRange::new(activation, self.out, self.out_scale, self.out_zero);
                let range = range.expect("a range");
                let [low, high] = range.steps();
                let steps = if self.requantize == "FLOAT" {
                    multiply_by_float(sum, scale.as_float().expect("a scale"), [low, high])
                } else {
                    Multiplier::new(scale).expect("a multiplier").apply(sum).clamp(low, high)
                };
                let bytes = if self.out == DType::QINT16 { 2 } else { 1 };
                (steps + range.zero_point).to_le_bytes()[..bytes].to_vec()
            }
        }
    }

    fn refused(&self, host: &TestHost) -> String {
        self.run(host).expect_err("refused").message
    }
}

const BYTES: [DType; 2] = [DType::QUINT8, DType::QINT8];

fn calls() -> Vec<Call> {
    let outs = [DType::QUINT8, DType::QINT8, DType::QINT16, DType::QINT32, DType::FLOAT];
    let mut calls = Vec::new();
    for (at, out) in outs.into_iter().cycle().take(40).enumerate() {
        let sizes = [1 + at * 7 % 31, 1 + at * 13 % 70, 1 + at * 29 % 150];
        let call = Call::new(sizes, [BYTES[at % 2], BYTES[at / 2 % 2]], out);
        let call = if at % 3 == 0 { call.per_column() } else { call };
        calls.push(Call {
            transposed: [at % 4 == 1, at % 5 < 2],
            requantize: if at % 7 < 4 { "FLOAT" } else { "FIXED_POINT" },
            activation: match (out, at % 4) {
                (DType::QINT32, 0 | 1) | (_, 0) => "NONE",
                (DType::QINT32, _) | (_, 1) => "RELU",
                (_, 2) => "RELU6",
                _ => "CLAMP",
            },
            clamp: [-1.5, 2.25],
            bias: call.bias.clone().filter(|_| at % 5 != 4),
            ..call
        });
    }
    calls
}

#[test]
fn every_instruction_set_gives_what_the_definition_says() {
    for isa in isas() {
        let host = host(&isa);
        for call in calls() {
            let expected = call.expected();
            let what = format!("{isa} {:?} {:?} {}", call.sizes, call.types, call.out);
            assert_eq!(call.run(&host).expect("the call"), expected, "{what}");
            assert_eq!(call.run_packed(&host), expected, "{what}, packed");
        }
    }
}

/// Large enough that the host's two threads share the work, by rows and by columns.
#[test]
fn threads_do_not_change_results() {
    let host = host("");
    for sizes in [[300, 96, 64], [5, 700, 64]] {
        let call = Call::new(sizes, BYTES, DType::QUINT8).per_column();
        assert_eq!(call.run(&host).expect("the call"), call.expected(), "{sizes:?}");
        assert_eq!(call.run_packed(&host), call.expected(), "{sizes:?}, packed");
    }
}

#[test]
fn nothing_to_sum_leaves_the_bias_and_no_rows_leave_nothing() {
    let host = host("");
    for sizes in [[3, 4, 0], [0, 4, 3], [3, 0, 4]] {
        let call = Call::new(sizes, BYTES, DType::QINT8);
        assert_eq!(call.run(&host).expect("the call"), call.expected(), "{sizes:?}");
    }
}

/// Each call is refused with a message that contains the text.
fn all_refused<const N: usize>(host: &TestHost, refusals: [(Call, &str); N]) {
    for (call, expected) in refusals {
        let message = call.refused(host);
        assert!(message.contains(expected), "expected {expected:?} in {message:?}");
    }
}

#[test]
fn a_scale_that_is_none_is_refused() {
    let host = host("");
    let call = Call::new([2, 3, 4], [DType::QUINT8, DType::QINT8], DType::QUINT8);
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        for bad in [
            Call { a_scale: scale, ..call.clone() },
            Call { b_scale: vec![0.5, scale, 0.5], ..call.clone() },
            Call { out_scale: scale, ..call.clone() },
        ] {
            let message = bad.refused(&host);
            assert!(message.contains("scale must be finite and above 0, got"), "{message}");
        }
    }
    let refusals = [
        (Call { a_scale: 1e30, ..call.clone() }, "must be in [2^-32, 2^30)"),
        (
            Call { out: DType::QINT32, b_scale: vec![0.5, f32::NAN, 0.5], ..call.clone() },
            "b_scale must be finite and above 0, got NaN",
        ),
        (
            Call { out: DType::FLOAT, a_scale: 1e19, b_scale: vec![1e19], ..call.clone() },
            "must be in [2^-126, 2^97)",
        ),
        (
            Call { out: DType::FLOAT, a_scale: 1e-30, b_scale: vec![1e-30], ..call.clone() },
            "must be in [2^-126, 2^97)",
        ),
        (
            Call { sizes: [0, 3, 4], a: vec![], b_scale: vec![0.5, 0.5, -1.0], ..call.clone() },
            "b_scale must be finite and above 0, got -1",
        ),
    ];
    all_refused(&host, refusals);
}

#[test]
fn what_cannot_be_right_is_refused() {
    let host = host("");
    let call = Call::new([2, 3, 4], [DType::QUINT8, DType::QINT8], DType::QUINT8);
    let refusals = [
        (
            Call { a_zero: 256, ..call.clone() },
            "a_zero_point must be a value of quint8, in [0, 255], got 256",
        ),
        (
            Call { b_zero: vec![0, 0, -129], ..call.clone() },
            "b_zero_point must be a value of qint8, in [-128, 127], got -129",
        ),
        (
            Call { out_zero: -1, ..call.clone() },
            "out_zero_point must be a value of quint8, in [0, 255], got -1",
        ),
        (Call { b_scale: vec![0.5; 2], ..call.clone() }, "b_scale must hold 3 values, got 2"),
        (Call { b_zero: vec![0; 4], ..call.clone() }, "b_zero_point must hold 3 values, got 4"),
        (Call { bias: Some(vec![0; 2]), ..call.clone() }, "bias must hold 3 values, got 2"),
        (
            Call { activation: "CLAMP", clamp: [2.0, 2.0], ..call.clone() },
            "clamp_min must be below clamp_max",
        ),
        (
            Call { activation: "RELU6", out: DType::QINT32, ..call.clone() },
            "activation RELU6 needs the output's scale",
        ),
        (Call { bias: Some(vec![0, i32::MAX, 0]), ..call.clone() }, "can leave 32 bits"),
    ];
    all_refused(&host, refusals);
}

#[test]
fn an_empty_product_costs_nothing_however_wide_or_deep() {
    let host = host("");
    let empty = |sizes: [usize; 3]| Call {
        sizes,
        a: vec![255; sizes[0] * sizes[2]],
        b: vec![],
        b_scale: vec![0.5],
        bias: None,
        ..Call::new([0, 0, 0], [DType::QUINT8; 2], DType::QINT32)
    };
    // No columns of many terms, and many columns of none for no rows.
    for (mut call, zeros) in [(empty([1, 0, 9_000_000]), vec![]), (empty([0, 1 << 34, 0]), vec![5])]
    {
        call.b_zero = zeros;
        assert!(call.run(&host).expect("the call").is_empty());
    }
}

#[test]
fn the_deepest_product_is_computed_and_a_deeper_one_refused() {
    let host = host("");
    let deep = |k: usize| Call {
        a: vec![255; k],
        b: vec![255; k],
        a_zero: 0,
        b_zero: vec![0],
        bias: None,
        ..Call::new([1, 1, k], [DType::QUINT8; 2], DType::QINT32)
    };
    let call = deep(33_025);
    assert_eq!(call.run(&host).expect("the deepest"), (33_025 * 65_025i32).to_le_bytes());
    let message = deep(33_026).refused(&host);
    assert!(message.contains("allow up to 33025 products"), "{message}");
}

/// The worked example of plugins/int8/docs/quantization.md: its numbers are those that the op gives.
#[test]
fn the_worked_example_is_what_the_op_gives() {
    let text = include_str!("../plugins/int8/docs/quantization.md");
    let host = host("");
    let sums = Call {
        a: vec![20, 30, 10, 12],
        b: vec![1, 254, 3, 4],
        a_scale: 0.5,
        a_zero: 10,
        b_scale: vec![0.25, 0.125],
        b_zero: vec![0, 0],
        out_scale: 0.5,
        out_zero: 100,
        bias: Some(vec![5, -8]),
        ..Call::new([2, 2, 2], [DType::QUINT8, DType::QINT8], DType::QINT32)
    };
    let as_i32s = |bytes: Vec<u8>| -> Vec<i32> {
        bytes.as_chunks().0.iter().map(|&bytes| i32::from_le_bytes(bytes)).collect()
    };
    let found = as_i32s(sums.run(&host).expect("the sums"));
    assert_eq!(found, [75, 52, 11, 0]);
    let floats = Call { out: DType::QUINT8, ..sums.clone() };
    let fixed = Call { requantize: "FIXED_POINT", ..floats.clone() };
    let (floats, fixed) = (floats.run(&host).expect("floats"), fixed.run(&host).expect("fixed"));
    for line in [
        format!("sums       {found:?}"),
        format!("FLOAT       {floats:?}"),
        format!("FIXED_POINT {fixed:?}"),
    ] {
        assert!(text.contains(&line), "the example has no line {line:?}");
    }
}
