//! Results that are too large to be judged whole.
//!
//! The reference is the plainest kernel there is, and asking it takes longer than timing all others. Where a part of
//! an input gives the same part of the output, some parts represent the whole: the first, the last, and others evenly
//! spread between them. The rest is not compared, and the record says so.

use crate::{
    calls::Call,
    cost,
    record::{Sampled, Work},
};
use std::fmt;
use tenon_framework::{DType, Tensor, attr::AttrValue};
use tenon_testkit::check::{CheckCase, Fill};

/// Operations up to which a result is judged whole. The oracle asks the reference some four times: for the result,
/// without denormals, and for the sums that tolerances are relative to.
const WHOLE: f64 = 256e6;
/// Parts that are judged at most, and at least.
const PARTS: (usize, usize) = (24, 2);
/// The most where an element of the result is a few elements of the inputs, and operations up to which such is whole: it
/// has so many elements that comparing each takes longer than an operation.
const CHEAP_PARTS: usize = 1024;
const CHEAP_WHOLE: f64 = 16e6;

/// An axis, from the front or, below zero, from the back.
type Axis = isize;

/// An op whose output can be judged in parts: each part of the output along an axis depends on that part of the first
/// input alone, and on the whole of the others; or, where `all` is set, on that part of every input that has as many.
struct Separable {
    op: &'static str,
    /// What the parts are.
    what: &'static str,
    /// The axis of the output, and of the input.
    axis: Axis,
    /// The attribute that moves the input's axis, and where to.
    moved: Option<(&'static str, Axis)>,
    /// Whether every input that has as many is in parts, and parts are cheap.
    all: bool,
}

#[rustfmt::skip]
const SEPARABLE: [Separable; 11] = [
    Separable { op: "MatMul", what: "rows", axis: -2, moved: Some(("transpose_a", -1)), all: false },
    Separable { op: "BatchMatMul", what: "rows", axis: -2, moved: Some(("adj_x", -1)), all: false },
    Separable { op: "BatchMatMulV2", what: "rows", axis: -2, moved: Some(("adj_x", -1)), all: false },
    Separable { op: "BatchMatMulV3", what: "rows", axis: -2, moved: Some(("adj_x", -1)), all: false },
    Separable { op: "Conv2D", what: "images", axis: 0, moved: None, all: false },
    Separable { op: "DepthwiseConv2dNative", what: "images", axis: 0, moved: None, all: false },
    Separable { op: "Softmax", what: "rows", axis: 0, moved: None, all: true },
    Separable { op: "Relu", what: "rows", axis: 0, moved: None, all: true },
    Separable { op: "Tanh", what: "rows", axis: 0, moved: None, all: true },
    Separable { op: "AddV2", what: "rows", axis: 0, moved: None, all: true },
    Separable { op: "Transpose", what: "columns", axis: 1, moved: None, all: true },
];

/// Some parts of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    what: &'static str,
    input_axis: usize,
    output_axis: usize,
    size: usize,
    taken: Vec<usize>,
    all: bool,
}

impl Part {
    /// The parts of a call that represent the whole; `None` where it is judged whole.
    pub fn of(call: &Call, inputs: &[Tensor], outputs: &[Tensor]) -> Option<Part> {
        let separable = SEPARABLE.iter().find(|known| known.op == call.op.name)?;
        let (input, [output]) = (inputs.first()?, outputs) else { return None };
        let moved = separable
            .moved
            .filter(|(name, _)| matches!(call.case.attrs.get(*name), Some(AttrValue::Bool(true))));
        let input_axis = match call.op.name == "Transpose" {
            true => turned(inputs)?,
            false => place(moved.map_or(separable.axis, |(_, axis)| axis), input)?,
        };
        // A vector has no rows, and what is broadcast along the first axis has others.
        let ranks = [input, output].map(|tensor| tensor.shape().dims().len());
        if separable.all && (ranks[0] < 2 || ranks[0] != ranks[1]) {
            return None;
        }
        let output_axis = place(separable.axis, output)?;
        let size = length(output, output_axis);
        let flops = work(call, inputs, outputs).flops.unwrap_or(0.0).max(output.elements() as f64);
        let whole = if separable.all { CHEAP_WHOLE } else { WHOLE };
        if flops <= whole || size == 0 || length(input, input_axis) != size {
            return None;
        }
        let wanted = (WHOLE / (flops / size as f64)) as usize;
        let most = if separable.all { CHEAP_PARTS } else { PARTS.0 };
        let count = wanted.clamp(PARTS.1, most);
        if count >= size {
            return None;
        }
        // The first and the last are among them.
        let taken = (0..count).map(|at| at * (size - 1) / (count - 1)).collect();
        let (what, all) = (separable.what, separable.all);
        Some(Part { what, input_axis, output_axis, size, taken, all })
    }

    /// The case and the inputs that give these parts.
    pub fn inputs(&self, case: &CheckCase, inputs: &[Tensor]) -> Option<(CheckCase, Vec<Tensor>)> {
        let rank = inputs.first()?.shape().dims().len();
        let has_them = |input: &Tensor| {
            input.shape().dims().len() == rank && length(input, self.input_axis) == self.size
        };
        let mut case = case.clone();
        let mut cut = inputs.to_vec();
        for (at, (argument, input)) in case.inputs.iter_mut().zip(&mut cut).enumerate() {
            if at == 0 || (self.all && has_them(input)) {
                *input = some(input, self.input_axis, &self.taken)?;
                argument.dims = input.shape().dims().to_vec();
                argument.fill = Fill::Explicit(input.clone());
            }
        }
        Some((case, cut))
    }

    /// These parts of the outputs.
    pub fn outputs(&self, outputs: &[Tensor]) -> Option<Vec<Tensor>> {
        outputs.iter().map(|output| some(output, self.output_axis, &self.taken)).collect()
    }

    /// As a record has it.
    pub fn sampled(&self) -> Sampled {
        Sampled {
            what: self.what.to_owned(),
            judged: self.taken.len() as u64,
            of: self.size as u64,
        }
    }
}

impl fmt::Display for Part {
    /// `rows 0, 89, 178 of 179`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken: Vec<String> = self.taken.iter().take(PARTS.0).map(usize::to_string).collect();
        let more = if self.taken.len() > PARTS.0 { " ..." } else { "" };
        write!(f, "{} {}{more} of {}", self.what, taken.join(", "), self.size)
    }
}

fn work(call: &Call, inputs: &[Tensor], outputs: &[Tensor]) -> Work {
    let shapes = |tensors: &[Tensor]| -> Vec<(DType, Vec<i64>)> {
        let shape = |tensor: &Tensor| (tensor.dtype(), tensor.shape().dims().to_vec());
        tensors.iter().map(shape).collect()
    };
    let (inputs, outputs) = (shapes(inputs), shapes(outputs));
    cost::work(&cost::Call {
        op: &call.op.name,
        def: Some(&call.op),
        attrs: &call.case.attrs,
        inputs: &inputs,
        outputs: &outputs,
        shares: false,
    })
}

/// The axis of the input that becomes the columns of a transposed matrix; `None` for other permutations.
fn turned(inputs: &[Tensor]) -> Option<usize> {
    let permutation = inputs.get(1)?;
    let swaps = permutation.as_slice::<i32>().is_ok_and(|axes| axes == [1, 0])
        || permutation.as_slice::<i64>().is_ok_and(|axes| axes == [1, 0]);
    swaps.then_some(0)
}

fn place(axis: Axis, tensor: &Tensor) -> Option<usize> {
    let rank = tensor.shape().dims().len();
    let place = if axis < 0 { rank.checked_sub(axis.unsigned_abs())? } else { axis as usize };
    (place < rank).then_some(place)
}

fn length(tensor: &Tensor, axis: usize) -> usize {
    tensor.shape().dims()[axis].max(0) as usize
}

/// A tensor with these places of an axis alone; `None` where it has them not, or its elements are not of one size.
fn some(tensor: &Tensor, axis: usize, taken: &[usize]) -> Option<Tensor> {
    let element = tensor.dtype().size()?;
    let mut dims = tensor.shape().dims().to_vec();
    if *taken.last()? as i64 >= *dims.get(axis)? {
        return None;
    }
    let after: usize = dims[axis + 1..].iter().map(|&dim| dim as usize).product();
    let (length, chunk) = (dims[axis] as usize, after * element);
    let bytes = tensor.as_bytes().ok()?;
    let mut kept = Vec::with_capacity(bytes.len() / length.max(1) * taken.len());
    for slab in bytes.chunks_exact((length * chunk).max(1)) {
        taken.iter().for_each(|&at| kept.extend_from_slice(&slab[at * chunk..(at + 1) * chunk]));
    }
    dims[axis] = taken.len() as i64;
    Tensor::from_bytes(tensor.dtype(), &dims, &kept).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tenon_framework::op::OpDef;
    use tenon_testkit::check::Argument;

    fn tensor(dims: &[i64]) -> Tensor {
        let count: i64 = dims.iter().product();
        Tensor::from_slice(dims, &(0..count).map(|at| at as f32).collect::<Vec<_>>()).unwrap()
    }

    /// A call of an op that is a name alone: only that counts here.
    fn call(op: &str, turned: Option<&str>, inputs: &[Tensor]) -> Call {
        let argument = |tensor: &Tensor| Argument {
            dtype: tensor.dtype(),
            dims: tensor.shape().dims().to_vec(),
            fill: Fill::Explicit(tensor.clone()),
            constant: false,
        };
        let attrs = turned.map(|name| (name.to_owned(), AttrValue::Bool(true)));
        let case = CheckCase {
            name: "case".into(),
            tags: Vec::new(),
            attrs: attrs.into_iter().collect(),
            inputs: inputs.iter().map(argument).collect(),
        };
        let none: [&str; 0] = [];
        let op = OpDef::from_spec(op, &none, &none, &none).unwrap();
        Call { op: Arc::new(op), case, at: None, node: None, calls: 1 }
    }

    #[test]
    fn a_large_product_is_judged_by_rows_that_hold_the_first_and_the_last() {
        let (a, b, c) = (tensor(&[700, 400]), tensor(&[400, 500]), tensor(&[700, 500]));
        let inputs = [a, b];
        let part =
            Part::of(&call("MatMul", None, &inputs), &inputs, std::slice::from_ref(&c)).unwrap();
        assert_eq!(part.taken.len(), PARTS.0);
        assert_eq!((part.taken[0], part.taken[23], part.size), (0, 699, 700));
        assert!(part.taken.windows(2).all(|pair| pair[0] < pair[1]));
        let (case, rows) = part.inputs(&call("MatMul", None, &inputs).case, &inputs).unwrap();
        assert_eq!(case.inputs[0].dims, [24, 400]);
        assert_eq!(
            rows[0].as_slice::<f32>().unwrap()[400..402],
            [30.0 * 400.0, 30.0 * 400.0 + 1.0]
        );
        assert_eq!(rows[1].shape().dims(), [400, 500]);
        let kept = part.outputs(&[c]).unwrap();
        assert_eq!(kept[0].as_slice::<f32>().unwrap()[23 * 500], 699.0 * 500.0);
        assert!(part.to_string().starts_with("rows 0, 30, "), "{part}");
        assert_eq!(part.sampled(), Sampled { what: "rows".into(), judged: 24, of: 700 });
    }

    #[test]
    fn the_turned_input_is_cut_along_its_columns() {
        let inputs = [tensor(&[2, 300, 800]), tensor(&[2, 300, 600])];
        let out = tensor(&[2, 800, 600]);
        let of = call("BatchMatMulV2", Some("adj_x"), &inputs);
        let part = Part::of(&of, &inputs, &[out]).unwrap();
        assert_eq!((part.input_axis, part.output_axis), (2, 1));
        let (_, cut) = part.inputs(&of.case, &inputs).unwrap();
        assert_eq!(cut[0].shape().dims(), [2, 300, 24]);
        assert_eq!(cut[0].as_slice::<f32>().unwrap()[23..25], [799.0, 800.0]);
    }

    #[test]
    fn what_is_computed_row_by_row_is_judged_by_rows_of_all_that_has_them() {
        let bytes = |rows: i64| {
            Tensor::from_bytes(DType::UINT8, &[rows, 1 << 16], &vec![7; (rows << 16) as usize])
        };
        // A softmax has five operations an element.
        let inputs = [bytes(800).unwrap()];
        let part = Part::of(&call("Softmax", None, &inputs), &inputs, &inputs).unwrap();
        assert_eq!((part.taken.len(), part.taken[0], part.size), (781, 0, 800));
        assert_eq!((part.taken[780], part.all), (799, true));
        assert!(part.to_string().ends_with(" 23 ... of 800"), "{part}");
        let inputs = [tensor(&[3, 2]), tensor(&[3, 2]), tensor(&[2])];
        let part = Part { taken: vec![0, 2], size: 3, ..part };
        let (case, cut) = part.inputs(&call("AddV2", None, &inputs).case, &inputs).unwrap();
        assert_eq!(cut[0].as_slice::<f32>().unwrap(), [0.0, 1.0, 4.0, 5.0]);
        assert_eq!(cut[1].as_slice::<f32>().unwrap(), [0.0, 1.0, 4.0, 5.0]);
        assert_eq!((&case.inputs[1].dims[..], &case.inputs[2].dims[..]), (&[2, 2][..], &[2][..]));
        // A column has a row for each; a row and a vector serve all of them.
        let inputs = [tensor(&[3, 2]), tensor(&[3, 1]), tensor(&[1, 2])];
        let (_, cut) = part.inputs(&call("AddV2", None, &inputs).case, &inputs).unwrap();
        assert_eq!(cut[1].as_slice::<f32>().unwrap(), [0.0, 2.0]);
        assert_eq!(cut[2].shape().dims(), [1, 2]);
        let vector = [tensor(&[300])];
        assert_eq!(Part::of(&call("Relu", None, &vector), &vector, &vector), None);
    }

    #[test]
    fn columns_of_a_transposed_matrix_are_rows_of_the_matrix() {
        let axes = |axes: &[i32]| Tensor::from_slice(&[2], axes).unwrap();
        let matrix = tensor(&[3, 2]);
        assert_eq!(turned(&[matrix.clone(), axes(&[1, 0])]), Some(0));
        assert_eq!(turned(&[matrix.clone(), axes(&[0, 1])]), None);
        let (input_axis, output_axis, taken) = (0, 1, vec![0, 2]);
        let part = Part { what: "columns", input_axis, output_axis, size: 3, taken, all: true };
        let inputs = [matrix.clone(), axes(&[1, 0])];
        let (_, cut) = part.inputs(&call("Transpose", None, &inputs).case, &inputs).unwrap();
        assert_eq!(cut[0].as_slice::<f32>().unwrap(), [0.0, 1.0, 4.0, 5.0]);
        assert_eq!(cut[1].as_slice::<i32>().unwrap(), [1, 0]);
        let turned = Tensor::from_slice(&[2, 3], &[0f32, 2.0, 4.0, 1.0, 3.0, 5.0]).unwrap();
        let kept = part.outputs(&[turned]).unwrap();
        assert_eq!(kept[0].as_slice::<f32>().unwrap(), [0.0, 4.0, 1.0, 5.0]);
    }

    #[test]
    fn small_products_and_other_ops_are_judged_whole() {
        let small = [tensor(&[64, 64]), tensor(&[64, 64])];
        assert_eq!(Part::of(&call("MatMul", None, &small), &small, &[tensor(&[64, 64])]), None);
        let large = [tensor(&[700, 400]), tensor(&[400, 500])];
        assert_eq!(Part::of(&call("Mine", None, &large), &large, &[tensor(&[700, 500])]), None);
    }

    #[test]
    fn dear_parts_are_fewer() {
        // 128 operations of each of 3 million elements of an image.
        let inputs = [tensor(&[8, 100, 100, 8]), tensor(&[8, 8, 8, 30])];
        let out = tensor(&[8, 100, 100, 30]);
        let part = Part::of(&call("Conv2D", None, &inputs), &inputs, &[out]).unwrap();
        assert_eq!((part.taken, part.what), (vec![0, 7], "images"));
    }
}
