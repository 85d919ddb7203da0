//! Which nodes may end a step with an error.
//!
//! A node that runs and fails ends the step, whoever reads it. So one that may fail runs though a pass took all its
//! readers away, unless the pass answers for its errors: what it put there fails where the node does. Only what is
//! known before the step counts here: an op of which nothing is known may fail.

use super::{
    Draft,
    broadcast::surely_broadcast,
    elements::{Number, has_no},
};
use crate::{ControlFlow, Node, NodeId, Output};
use tenon_framework::{
    attr::{AttrList, AttrValue},
    infer::Item,
};

/// Ops that take every input that their signature lets through.
const NEVER: &str = "Abs Acos Acosh Asin Asinh Atan Atanh Cast Ceil Conj Const Cos Cosh Digamma Elu Erf Erfc Exp \
    Expm1 Floor Identity IdentityN Imag Inv Invert IsFinite IsInf IsNan LeakyRelu Lgamma Log Log1p LogicalNot Neg \
    NoOp OnesLike PreventGradient Rank Real Reciprocal Relu Relu6 Rint Round Rsqrt Selu Shape ShapeN Sigmoid Sign \
    Sin Sinh Size Snapshot Softplus Softsign Sqrt Square StopGradient Tan Tanh ZerosLike _FusedGelu";

/// Elementwise ops of two operands.
const PAIRS: &str = "Add AddV2 Atan2 BitwiseAnd BitwiseOr BitwiseXor Complex Div DivNoNan FloorDiv FloorMod Greater \
    GreaterEqual LeftShift Less LessEqual LogicalAnd LogicalOr Maximum Minimum Mod Mul MulNoNan Pow RealDiv \
    RightShift SquaredDifference Sub TruncateDiv TruncateMod";

/// Those of them that refuse a divisor of 0 when they divide integers.
const DIVISIONS: &str = "Div FloorDiv FloorMod Mod RealDiv TruncateDiv TruncateMod";

/// Ops of which the rank of the first input decides, and the constant axes that are the second one.
const BY_AXES: &str = "All Any ExpandDims Max Mean Min Prod ReverseV2 Sum";

/// Ops of which shapes decide, with the inputs whose values do too. Where all of that is known the shape function
/// has refused what a kernel would refuse.
const BY_SHAPE: &[(&str, &[usize])] = &[
    ("AvgPool", &[]),
    ("BatchMatMul", &[]),
    ("BatchMatMulV2", &[]),
    ("BiasAdd", &[]),
    ("BroadcastTo", &[1]),
    ("Conv2D", &[]),
    ("DepthwiseConv2dNative", &[]),
    ("Einsum", &[]),
    ("FusedBatchNormV3", &[]),
    ("MaxPool", &[]),
    ("MirrorPad", &[1]),
    ("Pad", &[1]),
    ("PadV2", &[1]),
    ("Slice", &[1, 2]),
    ("Split", &[0]),
    ("SplitV", &[1, 2]),
    ("StridedSlice", &[1, 2, 3]),
    ("Tile", &[1]),
    ("Unpack", &[]),
];

fn is_among(op: &str, ops: &str) -> bool {
    ops.split(' ').any(|other| other == op)
}

/// Whether a node may fail in some step.
pub(super) fn may_fail(draft: &Draft<'_>, id: NodeId) -> bool {
    let node = draft.node(id);
    let op = node.op.name.as_str();
    let rank = |at: usize| node.inputs.get(at).and_then(|&input| draft.shape(input).rank());
    let alike =
        |&input: &Output| input == node.inputs[0] || draft.same_shape(node.inputs[0], input);
    let safe = match node.control_flow() {
        ControlFlow::Switch => rank(1) == Some(0),
        ControlFlow::LoopCond => rank(0) == Some(0),
        ControlFlow::No => match op {
            _ if is_among(op, NEVER) => true,
            _ if is_among(op, PAIRS) => pairs(draft, node),
            "AddN" => node.inputs.iter().all(alike),
            "Pack" => rank(0).is_some() && node.inputs.iter().all(alike),
            "ConcatV2" => joins(draft, node).unwrap_or(false),
            "GatherV2" => gathers(draft, node).unwrap_or(false),
            "LogSoftmax" | "Softmax" => rank(0).is_some_and(|rank| rank > 0),
            "MatMul" => multiplies(draft, node).unwrap_or(false),
            "Reshape" => reshapes(draft, id).unwrap_or(false),
            "Select" => chooses(draft, node),
            "SelectV2" => selects(draft, node),
            "Squeeze" => squeezes(draft, node),
            "Transpose" => permutes(draft, node.inputs[0], node.inputs[1]),
            _ if is_among(op, BY_AXES) => {
                let is_constant = |&axes: &Output| draft.constant(axes).is_some();
                rank(0).is_some() && node.inputs.get(1).is_some_and(is_constant)
            }
            _ => by_shape(draft, node),
        },
        _ => true,
    };
    !safe
}

fn pairs(draft: &Draft<'_>, node: &Node) -> bool {
    let &[a, b] = &node.inputs[..] else { return false };
    let op = node.op.name.as_str();
    let dtype = node.signature.inputs[0];
    let defined = match op {
        "Pow" => !dtype.is_integer(),
        _ if is_among(op, DIVISIONS) && dtype.is_integer() => {
            draft.constant(b).is_some_and(|divisor| has_no(divisor, Number::Zero))
        }
        _ => true,
    };
    defined && surely_broadcast(draft, a, b)
}

fn selects(draft: &Draft<'_>, node: &Node) -> bool {
    let &[condition, yes, no] = &node.inputs[..] else { return false };
    [(condition, yes), (condition, no), (yes, no)]
        .into_iter()
        .all(|(a, b)| surely_broadcast(draft, a, b))
}

/// The condition of `Select` is a scalar, of the shape of both choices, or a vector along their first dimension.
fn chooses(draft: &Draft<'_>, node: &Node) -> bool {
    let &[condition, yes, no] = &node.inputs[..] else { return false };
    let dims = |output| draft.value(output).and_then(|value| value.shape.dims());
    let fits = match (dims(condition), dims(yes)) {
        (Some([]), _) => true,
        (Some(&[rows]), Some(&[first, ..])) => rows == first,
        _ => draft.same_shape(condition, yes),
    };
    fits && (yes == no || draft.same_shape(yes, no))
}

fn squeezes(draft: &Draft<'_>, node: &Node) -> bool {
    let Some(dims) = draft.value(node.inputs[0]).and_then(|value| value.shape.dims()) else {
        return false;
    };
    match node.attrs.get("squeeze_dims") {
        Some(AttrValue::List(AttrList::Int(axes))) => axes.iter().all(|&axis| {
            let at = if axis < 0 { axis + dims.len() as i64 } else { axis };
            let dim = usize::try_from(at).ok().and_then(|at| dims.get(at));
            dim.is_some_and(|dim| dim.value() == 1)
        }),
        _ => true,
    }
}

/// Whether a permutation is one of the dimensions of a tensor.
pub(super) fn permutes(draft: &Draft<'_>, x: Output, perm: Output) -> bool {
    let rank = draft.shape(x).rank();
    draft.integers(perm).is_some_and(|perm| Some(perm.len()) == rank && is_permutation(&perm))
}

/// Constant indices within the dimension that they count.
fn gathers(draft: &Draft<'_>, node: &Node) -> Option<bool> {
    let &[params, indices, axis] = &node.inputs[..] else { return None };
    let plain = matches!(node.attrs.get("batch_dims"), Some(AttrValue::Int(0)));
    let dims = draft.value(params)?.shape.dims()?;
    let axis = *draft.integers(axis)?.first()?;
    let axis = usize::try_from(if axis < 0 { axis + dims.len() as i64 } else { axis }).ok()?;
    let end = dims.get(axis)?.value();
    Some(plain && draft.integers(indices)?.iter().all(|index| (0..end).contains(index)))
}

/// Whether each number below their count is there once.
pub(super) fn is_permutation(perm: &[i64]) -> bool {
    let mut sorted = perm.to_vec();
    sorted.sort_unstable();
    sorted.iter().enumerate().all(|(at, &dim)| dim == at as i64)
}

fn joins(draft: &Draft<'_>, node: &Node) -> Option<bool> {
    let (axis, values) = node.inputs.split_last()?;
    let axis = *draft.integers(*axis)?.first()?;
    let mut all = values.iter().map(|&value| draft.value(value)?.shape.dims());
    let first = all.next()??;
    let rank = first.len() as i64;
    let axis = usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()?;
    let fits = |other: &[_]| {
        other.len() == first.len()
            && (0..first.len()).all(|at| at == axis || other[at] == first[at])
    };
    Some(axis < first.len() && all.all(|dims| dims.is_some_and(fits)))
}

fn multiplies(draft: &Draft<'_>, node: &Node) -> Option<bool> {
    let &[a, b] = &node.inputs[..] else { return None };
    let flag = |name| matches!(node.attrs.get(name), Some(AttrValue::Bool(true)));
    let dims = |output| match draft.value(output)?.shape.dims()? {
        &[rows, columns] => Some([rows, columns]),
        _ => None,
    };
    let (a, b) = (dims(a)?, dims(b)?);
    Some(a[usize::from(!flag("transpose_a"))] == b[usize::from(flag("transpose_b"))])
}

/// Whether a reshape fits every value of its input. Where a size is left open (-1) the others must be known and
/// not 0; a vector that says the shape of the input itself always fits.
fn reshapes(draft: &Draft<'_>, id: NodeId) -> Option<bool> {
    let &[x, wanted] = &draft.node(id).inputs[..] else { return None };
    let only_open = draft.integers(wanted).is_some_and(|sizes| sizes == [-1]);
    let made = Output::new(id, 0);
    let full = |output| draft.shape(output).full().is_some();
    let as_many = draft.same_shape(x, made) || (full(x) && full(made));
    Some(only_open || (as_many && fits_open(draft, id)))
}

/// Whether the size that a reshape leaves open (-1) follows from the number of elements whatever is fed: the others
/// are known and not 0. Or none is left open.
pub(super) fn fits_open(draft: &Draft<'_>, id: NodeId) -> bool {
    let wanted = draft.node(id).inputs.get(1).and_then(|&wanted| draft.value(wanted));
    let Some(wanted) = wanted.and_then(|value| value.symbolic_value()) else { return false };
    let count = |fits: fn(&Item) -> bool| wanted.items().iter().filter(|item| fits(item)).count();
    let open = count(|item| matches!(item, Item::Known(-1)));
    let sized = count(|item| matches!(item, Item::Known(1..)));
    let unknown = count(|item| matches!(item, Item::Unknown));
    unknown == 0 && (open == 0 || (open == 1 && sized + 1 == wanted.items().len()))
}

fn by_shape(draft: &Draft<'_>, node: &Node) -> bool {
    let full = |output: &Output| draft.shape(*output).full().is_some();
    let found = BY_SHAPE.iter().find(|(op, _)| *op == node.op.name);
    found.is_some_and(|(_, values)| {
        let constant = |at: &usize| draft.constant(node.inputs[*at]).is_some();
        node.inputs.iter().all(full) && values.iter().all(constant)
    })
}
