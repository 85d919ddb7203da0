//! The work of a call.
//!
//! Operations are those of the direct algorithm, whatever a kernel does instead (the field calls the resulting rate
//! effective): two for each product that is added up, one for each element of anything else. Bytes are those of
//! inputs and outputs, each counted once; what a kernel packs, keeps or reads again does not count.
//!
//! | family | operations |
//! |---|---|
//! | matrix product `M x K x N` | `2 M N K` per batch |
//! | convolution | `2 *` outputs `*` kernel height `*` width `*` input channels of the group |
//! | depthwise convolution | `2 *` outputs `*` kernel height `*` width |
//! | pooling | outputs `*` window height `*` width |
//! | elementwise, whatever the function | outputs |
//! | `AddN` of `N` | `(N - 1) *` outputs |
//! | reductions | inputs |
//! | attention | `2 *` queries `*` keys `*` (size of a key + size of a value), per batch and head |
//! | softmax | 5 (4 for its logarithm) for each element: maximum, difference, exponential, sum, quotient |
//! | layer normalisation | 7 for each element: sum, difference, square, sum, quotient, scale, shift |
//! | batch normalisation | 2 for each element; 5 with moments |
//! | what only moves elements | none |
//! | step of a graph | those of its products and convolutions |
//! | any other op | its own formula (`flops = ...` where it is registered); else not known: bytes only |
//!
//! An op's own formulas come before this table.

use crate::record::{CostSource, Work};
use tenon_framework::{
    DType,
    attr::{AttrList, AttrMap, AttrValue},
    op::{Formula, OpDef, Tensors},
};

/// A call as its cost sees it.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The op.
    pub op: &'a str,
    /// Its definition, where it is at hand.
    pub def: Option<&'a OpDef>,
    /// All attributes.
    pub attrs: &'a AttrMap,
    /// Types and shapes of the inputs.
    pub inputs: &'a [(DType, Vec<i64>)],
    /// Types and shapes of the outputs.
    pub outputs: &'a [(DType, Vec<i64>)],
    /// Whether the outputs are inputs under other shapes: nothing is moved.
    pub shares: bool,
}

/// The name in place of the op when a whole step of a graph is measured.
pub const STEP: &str = "step";

/// What an op does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    /// `transpose` names the attribute that turns the first matrix over.
    MatMul {
        transpose: &'static str,
    },
    Conv,
    Depthwise,
    Pool,
    Elementwise,
    AddN,
    Reduction,
    Softmax {
        each: u32,
    },
    BatchNorm,
    LayerNorm,
    Attention,
    Step,
    Move,
}

impl Family {
    /// Whether arithmetic, not memory, is what such an op is measured by.
    fn is_compute(self) -> bool {
        use Family::{Attention, Conv, Depthwise, MatMul, Step};
        matches!(self, MatMul { .. } | Conv | Depthwise | Attention | Step)
    }
}

#[rustfmt::skip]
fn family(op: &str) -> Option<Family> {
    Some(match op {
        STEP => Family::Step,
        "MatMul" | "_FusedMatMul" | "QuantizedMatMul" | "_QuantizedFusedMatMul"
            => Family::MatMul { transpose: "transpose_a" },
        "BatchMatMul" | "BatchMatMulV2" | "BatchMatMulV3" => Family::MatMul { transpose: "adj_x" },
        "Conv2D" | "_FusedConv2D" | "QuantizedConv2D" | "_QuantizedFusedConv2D" => Family::Conv,
        "DepthwiseConv2dNative" | "_FusedDepthwiseConv2dNative" | "QuantizedDepthwiseConv2D"
            | "_QuantizedFusedDepthwiseConv2dNative" => Family::Depthwise,
        "_FusedAttention" => Family::Attention,
        "_FusedLayerNorm" => Family::LayerNorm,
        "MaxPool" | "AvgPool" | "QuantizedMaxPool" | "QuantizedAvgPool" => Family::Pool,
        "AddN" => Family::AddN,
        "Softmax" | "_FusedSoftmaxScale" => Family::Softmax { each: 5 },
        "LogSoftmax" => Family::Softmax { each: 4 },
        "FusedBatchNorm" | "FusedBatchNormV2" | "FusedBatchNormV3" => Family::BatchNorm,
        "Sum" | "Mean" | "Prod" | "Max" | "Min" | "All" | "Any" | "ArgMax" | "ArgMin" | "EuclideanNorm" | "L2Loss"
            => Family::Reduction,
        "Add" | "AddV2" | "Sub" | "Mul" | "Div" | "RealDiv" | "DivNoNan" | "FloorDiv" | "FloorMod" | "TruncateDiv"
            | "TruncateMod" | "Maximum" | "Minimum" | "Pow" | "SquaredDifference" | "Atan2" | "BiasAdd" | "Equal"
            | "NotEqual" | "Less" | "LessEqual" | "Greater" | "GreaterEqual" | "LogicalAnd" | "LogicalOr"
            | "LogicalNot" | "BitwiseAnd" | "BitwiseOr" | "BitwiseXor" | "Select" | "SelectV2" | "Neg" | "Abs"
            | "Square" | "Sqrt" | "Rsqrt" | "Exp" | "Expm1" | "Log" | "Log1p" | "Tanh" | "Sigmoid" | "Erf" | "Sin"
            | "Cos" | "Tan" | "Relu" | "Relu6" | "LeakyRelu" | "Elu" | "Selu" | "Softplus" | "Softsign" | "Floor"
            | "Ceil" | "Round" | "Rint" | "Sign" | "Reciprocal" | "Cast" | "ClipByValue" | "QuantizeV2" | "Dequantize"
            | "_FusedElementwise" | "_FusedGelu"
            => Family::Elementwise,
        "Identity" | "IdentityN" | "Snapshot" | "StopGradient" | "PreventGradient" | "EnsureShape" | "Reshape"
            | "Squeeze" | "ExpandDims" | "Shape" | "ShapeN" | "Size" | "Rank" | "Const" | "Fill" | "ConcatV2"
            | "Pack" | "Unpack" | "Split" | "SplitV" | "Slice" | "StridedSlice" | "Pad" | "PadV2" | "Transpose"
            | "Tile" | "Gather" | "GatherV2" | "PlaceholderWithDefault"
            => Family::Move,
        _ => return None,
    })
}

/// Whether a call is measured by its operations; else by its bytes.
pub fn is_compute(op: &str) -> bool {
    family(op).is_some_and(Family::is_compute)
}

/// Whether an op gives its input under another shape at most: the runtime moves nothing then.
pub fn passes_on(op: &str) -> bool {
    matches!(
        op,
        "Identity"
            | "Snapshot"
            | "StopGradient"
            | "PreventGradient"
            | "EnsureShape"
            | "Reshape"
            | "Squeeze"
            | "ExpandDims"
    )
}

/// The work of a call.
pub fn work(call: &Call<'_>) -> Work {
    let known = by_table(call);
    let Some(def) = call.def else { return known };
    let bench = def.bench();
    let value = |formula: &Option<Formula>, call: &Call<'_>| {
        let tensors = Tensors { inputs: call.inputs, outputs: call.outputs };
        formula.as_ref()?.value(def, call.attrs, tensors)
    };
    let mut work = match value(&bench.bytes, call) {
        // What is told is the sum; of it the outputs are written.
        Some(bytes) if !call.shares => Work {
            read: (bytes - known.written).max(0.0),
            written: known.written.min(bytes),
            ..known
        },
        _ => known,
    };
    if let Some(flops) = value(&bench.flops, call) {
        let (inputs, outputs) = (doubled(call.inputs), doubled(call.outputs));
        let larger = Call { inputs: &inputs, outputs: &outputs, ..*call };
        let growth = value(&bench.flops, &larger).unwrap_or(flops) / flops;
        let moved = (bytes(&inputs) + bytes(&outputs)) / (bytes(call.inputs) + bytes(call.outputs));
        work.flops = Some(flops);
        // Of a product 8 against 4; of what passes over its elements both grow alike.
        let products = growth > 1.5 * moved;
        work.source = if products { CostSource::DeclaredProducts } else { CostSource::Declared };
    }
    work
}

/// The same with every size twice as large.
fn doubled(tensors: &[(DType, Vec<i64>)]) -> Vec<(DType, Vec<i64>)> {
    let double = |(dtype, dims): &(DType, Vec<i64>)| {
        (*dtype, dims.iter().map(|dim| dim.saturating_mul(2)).collect())
    };
    tensors.iter().map(double).collect()
}

fn by_table(call: &Call<'_>) -> Work {
    let family = family(call.op);
    let source = if family.is_some() { CostSource::Op } else { CostSource::Bytes };
    let flops = family.and_then(|family| operations(family, call));
    let moved = |tensors: &[(DType, Vec<i64>)]| if call.shares { 0.0 } else { bytes(tensors) };
    Work { flops, read: moved(call.inputs), written: moved(call.outputs), source }
}

/// Elements of strings and the like count with the size that they have in the tensor.
fn bytes(tensors: &[(DType, Vec<i64>)]) -> f64 {
    tensors.iter().map(|(dtype, dims)| elements(dims) * dtype.size().unwrap_or(0) as f64).sum()
}

fn elements(dims: &[i64]) -> f64 {
    dims.iter().map(|&dim| dim.max(0) as f64).product()
}

fn operations(family: Family, call: &Call<'_>) -> Option<f64> {
    let input = |at: usize| call.inputs.get(at).map(|(_, dims)| dims.as_slice());
    let first = elements(input(0)?);
    let outputs = call.outputs.first().map_or(0.0, |(_, dims)| elements(dims));
    Some(match family {
        Family::MatMul { transpose } => {
            let [.., rows, columns] = input(0)? else { return None };
            let turned = matches!(call.attrs.get(transpose), Some(AttrValue::Bool(true)));
            2.0 * outputs * if turned { *rows } else { *columns } as f64
        }
        // The filter is height, width, channels of the group, outputs.
        Family::Conv => {
            let [height, width, channels, _] = input(1)? else { return None };
            2.0 * outputs * elements(&[*height, *width, *channels])
        }
        Family::Depthwise => {
            let [height, width, ..] = input(1)? else { return None };
            2.0 * outputs * elements(&[*height, *width])
        }
        Family::Pool => match call.attrs.get("ksize") {
            Some(AttrValue::List(AttrList::Int(sizes))) => outputs * elements(sizes),
            _ => return None,
        },
        Family::Elementwise => outputs,
        Family::AddN => outputs * call.inputs.len().saturating_sub(1) as f64,
        Family::Reduction => first,
        Family::Softmax { each } => f64::from(each) * first,
        Family::BatchNorm => {
            let trains = matches!(call.attrs.get("is_training"), Some(AttrValue::Bool(true)));
            first * if trains { 5.0 } else { 2.0 }
        }
        Family::LayerNorm => 7.0 * first,
        Family::Attention => attention(call.attrs, input(1)?, input(2)?, outputs)?,
        Family::Step | Family::Move => return None,
    })
}

/// Queries of all batches and heads are the rows of the output, and each meets every key and every value.
fn attention(attrs: &AttrMap, keys: &[i64], values: &[i64], outputs: f64) -> Option<f64> {
    let inside =
        matches!(attrs.get("layout"), Some(AttrValue::String(name)) if name == b"HEADS_INSIDE");
    let count = if inside { keys.get(1) } else { keys.iter().rev().nth(1) };
    let (&key, &value) = (keys.last()?, values.last()?);
    Some(2.0 * outputs / value as f64 * *count? as f64 * (key + value) as f64)
}

/// The rate of a record, and its unit: operations for products of matrices and the like, bytes for
/// what only passes over its elements, calls where nothing is moved.
pub fn rate(op: &str, dtype: DType, work: &Work) -> (f64, &'static str) {
    let computes = is_compute(op) || work.source == CostSource::DeclaredProducts;
    match work.flops.filter(|_| computes) {
        Some(flops) if dtype.is_floating() || dtype.is_complex() => (flops, "GFLOP/s"),
        Some(operations) => (operations, "GOP/s"),
        None if work.read + work.written > 0.0 => (work.read + work.written, "GB/s"),
        None => (1.0, "Gcall/s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(op: &str, attrs: &[(&str, AttrValue)], inputs: &[&[i64]], output: &[i64]) -> Work {
        let attrs: AttrMap =
            attrs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let inputs: Vec<_> = inputs.iter().map(|dims| (DType::FLOAT, dims.to_vec())).collect();
        let outputs = [(DType::FLOAT, output.to_vec())];
        let (attrs, inputs, outputs) = (&attrs, &inputs, &outputs);
        work(&Call { op, def: None, attrs, inputs, outputs, shares: false })
    }

    fn flops(
        op: &str,
        attrs: &[(&str, AttrValue)],
        inputs: &[&[i64]],
        output: &[i64],
    ) -> Option<f64> {
        cost(op, attrs, inputs, output).flops
    }

    #[test]
    fn a_product_counts_two_for_each_term() {
        assert_eq!(flops("MatMul", &[], &[&[2, 3], &[3, 5]], &[2, 5]), Some(60.0));
        let turned = [("transpose_a", true.into())];
        assert_eq!(flops("MatMul", &turned, &[&[3, 2], &[3, 5]], &[2, 5]), Some(60.0));
        let batches: [&[i64]; 2] = [&[7, 1, 2, 3], &[4, 3, 5]];
        assert_eq!(flops("BatchMatMulV2", &[], &batches, &[7, 4, 2, 5]), Some(28.0 * 60.0));
    }

    #[test]
    fn a_convolution_counts_the_channels_of_its_group() {
        let (input, output): (&[i64], &[i64]) = (&[1, 8, 8, 6], &[1, 8, 8, 10]);
        let whole = flops("Conv2D", &[], &[input, &[3, 3, 6, 10]], output);
        assert_eq!(whole, Some(2.0 * 640.0 * 54.0));
        let groups = flops("Conv2D", &[], &[input, &[3, 3, 3, 10]], output);
        assert_eq!(groups, Some(2.0 * 640.0 * 27.0));
        let depthwise = flops("DepthwiseConv2dNative", &[], &[input, &[3, 3, 6, 1]], input);
        assert_eq!(depthwise, Some(2.0 * 384.0 * 9.0));
    }

    #[test]
    fn attention_counts_scores_and_their_products_with_the_values() {
        // Two heads of three queries and five keys, keys of four, values of six.
        let first: [&[i64]; 3] = [&[2, 3, 4], &[2, 5, 4], &[2, 5, 6]];
        let expected = Some(2.0 * 2.0 * 3.0 * 5.0 * (4.0 + 6.0));
        assert_eq!(flops("_FusedAttention", &[], &first, &[2, 3, 6]), expected);
        let inside: [&[i64]; 3] = [&[1, 3, 2, 4], &[1, 5, 2, 4], &[1, 5, 2, 6]];
        let layout = [("layout", "HEADS_INSIDE".into())];
        assert_eq!(flops("_FusedAttention", &layout, &inside, &[1, 3, 2, 6]), expected);
        assert_eq!(flops("_FusedLayerNorm", &[], &[&[4, 3], &[3], &[3]], &[4, 3]), Some(84.0));
    }

    #[test]
    fn other_families_count_elements() {
        assert_eq!(flops("Add", &[], &[&[4, 1], &[3]], &[4, 3]), Some(12.0));
        assert_eq!(flops("AddN", &[], &[&[5], &[5], &[5]], &[5]), Some(10.0));
        assert_eq!(flops("Sum", &[], &[&[4, 3], &[1]], &[4]), Some(12.0));
        assert_eq!(flops("Softmax", &[], &[&[4, 3]], &[4, 3]), Some(60.0));
        let window = [("ksize", vec![1i64, 2, 2, 1].into())];
        assert_eq!(flops("MaxPool", &window, &[&[1, 4, 4, 3]], &[1, 2, 2, 3]), Some(48.0));
        assert_eq!(flops("MaxPool", &[], &[&[1, 4, 4, 3]], &[1, 2, 2, 3]), None);
        let training = [("is_training", true.into())];
        assert_eq!(flops("FusedBatchNormV3", &training, &[&[2, 2]], &[2, 2]), Some(20.0));
        assert_eq!(flops("Transpose", &[], &[&[4, 3], &[2]], &[3, 4]), None);
    }

    #[test]
    fn bytes_are_those_of_inputs_and_outputs() {
        let add = cost("Add", &[], &[&[10], &[10]], &[10]);
        assert_eq!((add.read, add.written, add.source), (80.0, 40.0, CostSource::Op));
        let own = cost("Cube", &[], &[&[10]], &[10]);
        assert_eq!((own.flops, own.read, own.source), (None, 40.0, CostSource::Bytes));
        let inputs = [(DType::DOUBLE, vec![4])];
        let call = Call {
            op: "Reshape",
            def: None,
            attrs: &AttrMap::new(),
            inputs: &inputs,
            outputs: &inputs,
            shares: true,
        };
        assert_eq!(work(&call).read, 0.0);
    }

    #[test]
    fn an_op_s_own_formulas_come_first_and_say_whether_it_is_a_product() {
        let spec = |flops: &str, bytes: &str| {
            let mut op =
                OpDef::from_spec("Own", &["a: T", "b: T"], &["y: T"], &["T: type"]).unwrap();
            op.set_bench::<&str>(&[], flops, bytes).unwrap();
            op
        };
        let of = |op: &OpDef| {
            let tensor = |dims: &[i64]| (DType::FLOAT, dims.to_vec());
            let inputs = [tensor(&[8, 16]), tensor(&[16, 4])];
            let outputs = [tensor(&[8, 4])];
            let attrs = AttrMap::from([("T".to_owned(), DType::FLOAT.into())]);
            let (inputs, outputs, attrs) = (&inputs, &outputs, &attrs);
            work(&Call { op: "Own", def: Some(op), attrs, inputs, outputs, shares: false })
        };
        let product = of(&spec("2 * y * a[-1]", ""));
        assert_eq!((product.flops, product.source), (Some(1024.0), CostSource::DeclaredProducts));
        assert_eq!(rate("Own", DType::FLOAT, &product), (1024.0, "GFLOP/s"));
        let rows = of(&spec("4 * a", "2 * bytes(y) + 100"));
        assert_eq!((rows.flops, rows.source), (Some(512.0), CostSource::Declared));
        assert_eq!((rows.read, rows.written), (128.0 + 100.0, 128.0));
        assert_eq!(rate("Own", DType::FLOAT, &rows), (356.0, "GB/s"));
        // A formula that has no value for this call says nothing.
        assert_eq!(of(&spec("y[5]", "")).source, CostSource::Bytes);
    }

    #[test]
    fn a_rate_has_the_unit_of_what_limits_the_op() {
        let unit = |op: &str, dtype, work: &Work| rate(op, dtype, work).1;
        let product = cost("MatMul", &[], &[&[2, 3], &[3, 5]], &[2, 5]);
        assert_eq!(unit("MatMul", DType::FLOAT, &product), "GFLOP/s");
        assert_eq!(unit("MatMul", DType::INT32, &product), "GOP/s");
        let sum = cost("Add", &[], &[&[10], &[10]], &[10]);
        assert_eq!(rate("Add", DType::FLOAT, &sum), (120.0, "GB/s"));
        let nothing = Work { flops: None, read: 0.0, written: 0.0, source: CostSource::Op };
        assert_eq!(unit("Identity", DType::FLOAT, &nothing), "Gcall/s");
    }
}
