//! Calls of quantised products and convolutions through the loaded plugin, and their results by definition: plain sums
//! in 64 bits, and the stages of `fixed_point`.

mod windows;

pub use windows::Windows;

use std::{
    ops::Deref,
    sync::{Mutex, MutexGuard},
};
use tenon_framework::{DType, KernelError, Tensor, attr::AttrValue};
use tenon_geometry::fixed_point::{
    Activation, Multiplier, QuantizedRange, Scale, multiply_by_float,
};
use tenon_runtime::host::instance::{PackCache, call_once};
use tenon_testkit::host::{Node, TestHost, library};

/// A host with one instruction set, one at a time: a library that is loaded twice has its knobs once.
pub struct Alone {
    host: TestHost,
    _alone: MutexGuard<'static, ()>,
}

impl Deref for Alone {
    type Target = TestHost;
    fn deref(&self) -> &TestHost {
        &self.host
    }
}

/// A host with this instruction set, or the one that the plugin chooses.
pub fn host(isa: &str) -> Alone {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(|poison| poison.into_inner());
    let host = TestHost::with_settings([library("tenon-int8")], &[("int8.isa", isa)]);
    Alone { host, _alone: alone }
}

/// The instruction sets of this CPU, as the plugin names them when it is asked for another. Its code is not linked here,
/// else the library would not be loaded.
pub fn isas() -> Vec<String> {
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

/// What is multiplied.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// Matrices, each transposed or not.
    MatMul([bool; 2]),
    /// Images and a filter.
    Conv(Windows),
    /// Images and a filter for each channel.
    Depthwise(Windows),
}

/// A node with its inputs.
#[derive(Clone)]
pub struct Call {
    /// What is multiplied.
    pub form: Form,
    /// Rows, columns and factors of a sum.
    pub sizes: [usize; 3],
    /// Types of both factors.
    pub types: [DType; 2],
    /// Type of the output.
    pub out: DType,
    /// Attribute `requantize`.
    pub requantize: &'static str,
    /// Attribute `activation`.
    pub activation: &'static str,
    /// Attributes `clamp_min` and `clamp_max`.
    pub clamp: [f32; 2],
    /// The left factor.
    pub a: Vec<u8>,
    /// The right one.
    pub b: Vec<u8>,
    /// Its scale.
    pub a_scale: f32,
    /// Its zero point.
    pub a_zero: i32,
    /// Scales of the right factor: one, or one for each column.
    pub b_scale: Vec<f32>,
    /// Its zero points.
    pub b_zero: Vec<i32>,
    /// The output's scale.
    pub out_scale: f32,
    /// The output's zero point.
    pub out_zero: i32,
    /// One for each column.
    pub bias: Option<Vec<i32>>,
}

/// Bytes from a fixed sequence.
fn bytes(count: usize, salt: usize) -> Vec<u8> {
    (0..count).map(|at| ((at + salt).wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

impl Call {
    /// A product of these sizes with values from a fixed sequence.
    pub fn new(sizes: [usize; 3], types: [DType; 2], out: DType) -> Call {
        let [m, n, k] = sizes;
        Call::with(Form::MatMul([false; 2]), sizes, [m * k, k * n], types, out)
    }

    /// A convolution with values from a fixed sequence.
    pub fn convolution(windows: Windows, types: [DType; 2], out: DType) -> Call {
        let [height, width, channels, columns] = windows.filter;
        let sizes = [windows.pixels(), columns, height * width * channels];
        Call::with(Form::Conv(windows), sizes, windows.lens(), types, out)
    }

    /// A depthwise convolution with values from a fixed sequence.
    pub fn depthwise(windows: Windows, types: [DType; 2], out: DType) -> Call {
        let [height, width, channels, multiplier] = windows.filter;
        let sizes = [windows.pixels(), channels * multiplier, height * width];
        Call::with(Form::Depthwise(windows), sizes, windows.lens(), types, out)
    }

    fn with(
        form: Form,
        sizes: [usize; 3],
        [a, b]: [usize; 2],
        types: [DType; 2],
        out: DType,
    ) -> Call {
        Call {
            form,
            sizes,
            types,
            out,
            requantize: "FLOAT",
            activation: "NONE",
            clamp: [0.0, 6.0],
            a: bytes(a, 1),
            b: bytes(b, 7),
            a_scale: 0.02,
            a_zero: 3,
            b_scale: vec![0.01],
            b_zero: vec![5],
            out_scale: 0.25,
            out_zero: 7,
            bias: Some((0..sizes[1] as i32).map(|j| j * 531 - 2000).collect()),
        }
    }

    /// Columns with their own scales and zero points.
    pub fn per_column(mut self) -> Call {
        let n = self.sizes[1];
        self.b_scale = (0..n).map(|j| 0.001 * (1 + j % 17) as f32).collect();
        self.b_zero = (0..n as i32).map(|j| j % 7).collect();
        self
    }

    /// A call that uses what number `at` of many has: types, activations, ways to requantise.
    pub fn varied(self, at: usize) -> Call {
        let call = if at.is_multiple_of(3) { self.per_column() } else { self };
        Call {
            requantize: if at % 7 < 4 { "FLOAT" } else { "FIXED_POINT" },
            activation: match (call.out, at % 4) {
                (DType::QINT32, 0 | 1) | (_, 0) => "NONE",
                (DType::QINT32, _) | (_, 1) => "RELU",
                (_, 2) => "RELU6",
                _ => "CLAMP",
            },
            clamp: [-1.5, 2.25],
            bias: call.bias.clone().filter(|_| at % 5 != 4),
            ..call
        }
    }

    fn dims(&self) -> [Vec<i64>; 2] {
        let as_dims = |dims: &[usize]| dims.iter().map(|&dim| dim as i64).collect::<Vec<_>>();
        let [m, n, k] = self.sizes;
        match self.form {
            Form::MatMul([transpose_a, transpose_b]) => [
                as_dims(&if transpose_a { [k, m] } else { [m, k] }),
                as_dims(&if transpose_b { [n, k] } else { [k, n] }),
            ],
            Form::Conv(windows) | Form::Depthwise(windows) => {
                [as_dims(&windows.input), as_dims(&windows.filter)]
            }
        }
    }

    /// The tensors.
    pub fn inputs(&self) -> Vec<Tensor> {
        let [a_dims, b_dims] = self.dims();
        let dims = |len: usize| if len == 1 { vec![] } else { vec![len as i64] };
        let mut inputs = vec![
            Tensor::from_bytes(self.types[0], &a_dims, &self.a),
            Tensor::from_bytes(self.types[1], &b_dims, &self.b),
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

    /// The node, to change or to make a kernel of.
    pub fn node<'h>(&self, host: &'h TestHost) -> Node<'h> {
        let node = match self.form {
            Form::MatMul([transpose_a, transpose_b]) => host
                .node("_QuantizedFusedMatMul")
                .attr("transpose_a", transpose_a)
                .attr("transpose_b", transpose_b),
            Form::Conv(windows) => windows.attrs(host.node("_QuantizedFusedConv2D")),
            Form::Depthwise(windows) => {
                windows.attrs(host.node("_QuantizedFusedDepthwiseConv2dNative"))
            }
        };
        node.attr("Ta", AttrValue::Type(self.types[0]))
            .attr("Tb", AttrValue::Type(self.types[1]))
            .attr("Tout", AttrValue::Type(self.out))
            .attr("num_bias", i64::from(self.bias.is_some()))
            .attr("requantize", self.requantize)
            .attr("activation", self.activation)
            .attr("clamp_min", AttrValue::Float(self.clamp[0]))
            .attr("clamp_max", AttrValue::Float(self.clamp[1]))
    }

    /// Makes the kernel and calls it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn run(&self, host: &TestHost) -> Result<Vec<u8>, KernelError> {
        let outputs = self.node(host).call(&self.inputs())?;
        assert_eq!(outputs[0].dtype(), self.out);
        Ok(outputs[0].as_bytes().expect("bytes").to_vec())
    }

    /// As [`Call::run`], with all inputs but the first one as constants: the second call has what the first one kept.
    pub fn run_packed(&self, host: &TestHost) -> Vec<u8> {
        let inputs = self.inputs();
        let mut kernel = self.node(host).create().expect("a kernel");
        let cache = PackCache::new();
        for (at, constant) in inputs.iter().enumerate().skip(1) {
            let packed = kernel.prepack(at as u32, constant, &cache, &format!("node/{at}"));
            assert!(packed.expect("a constant"), "input {at} is taken");
        }
        let call = || {
            let outputs = call_once(&kernel, &inputs, &host.env).expect("the call");
            outputs[0].as_bytes().expect("bytes").to_vec()
        };
        let first = call();
        assert_eq!(call(), first, "the second call");
        first
    }

    /// The results by their definition.
    pub fn expected(&self) -> Vec<u8> {
        let [m, n, _] = self.sizes;
        (0..m * n).flat_map(|at| self.value(self.sum(at / n, at % n), at % n)).collect()
    }

    /// The sum of a row and a column.
    fn sum(&self, i: usize, j: usize) -> i32 {
        let [m, n, k] = self.sizes;
        let terms = match self.form {
            Form::MatMul([transpose_a, transpose_b]) => (0..k)
                .map(|p| {
                    let a = if transpose_a { p * m + i } else { i * k + p };
                    self.term(a, if transpose_b { j * k + p } else { p * n + j }, j)
                })
                .sum(),
            Form::Conv(windows) => windows.sum(i, |channels, taps| {
                (0..channels).map(|c| self.term(taps[0] + c, (taps[1] + c) * n + j, j)).sum()
            }),
            Form::Depthwise(windows) => {
                let channel = j / windows.filter[3];
                windows.sum(i, |channels, [pixel, tap]| {
                    self.term(pixel + channel, tap / channels * n + j, j)
                })
            }
        };
        let bias = self.bias.as_ref().map_or(0, |bias| i64::from(bias[j]));
        i32::try_from(terms + bias).expect("32 bits")
    }

    /// The product of two factors, of column `j`.
    fn term(&self, a: usize, b: usize, j: usize) -> i64 {
        let value = |byte: u8, dtype: DType| -> i64 {
            if dtype == DType::QINT8 { byte.cast_signed().into() } else { byte.into() }
        };
        let zero = i64::from(self.b_zero[j % self.b_zero.len()]);
        (value(self.a[a], self.types[0]) - i64::from(self.a_zero))
            * (value(self.b[b], self.types[1]) - zero)
    }

    fn value(&self, sum: i32, j: usize) -> Vec<u8> {
        let activation = Activation::parse(self.activation, self.clamp).expect("an activation");
        let out_scale = if self.out == DType::FLOAT { 1.0 } else { self.out_scale };
        let b_scale = self.b_scale[j % self.b_scale.len()];
        let names = ["a_scale", "b_scale"];
        let scale = Scale::requantize(names, self.a_scale, b_scale, out_scale).expect("scales");
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

    /// The message with which it is refused.
    pub fn refused(&self, host: &TestHost) -> String {
        self.run(host).expect_err("refused").message
    }
}

/// An unsigned and a signed type of bytes.
pub const BYTES: [DType; 2] = [DType::QUINT8, DType::QINT8];

/// The types that an output can have.
pub const OUTPUTS: [DType; 5] =
    [DType::QUINT8, DType::QINT8, DType::QINT16, DType::QINT32, DType::FLOAT];

/// Each call is refused with a message that contains the text.
pub fn all_refused<const N: usize>(host: &TestHost, refusals: [(Call, &str); N]) {
    for (call, expected) in refusals {
        let message = call.refused(host);
        assert!(message.contains(expected), "expected {expected:?} in {message:?}");
    }
}
