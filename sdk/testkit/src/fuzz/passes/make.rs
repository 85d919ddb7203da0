//! Nodes of all kinds that passes look at.

use super::{
    branches, patterns,
    pool::{Pool, Value, tensor_of},
};
use tenon_framework::{
    DType,
    attr::{AttrMap, AttrValue},
};
use tenon_runtime::graph::Output;

/// Values that a graph begins with, and steps that add to it.
const STEPS: usize = 14;

const SHAPES: &[&[i64]] =
    &[&[4], &[3, 4], &[], &[1, 4], &[3, 1], &[1], &[2, 3, 4], &[4, 4], &[1, 1], &[0, 4], &[0]];

/// Fills a graph.
pub(super) fn fill(pool: &mut Pool<'_, '_>) {
    for dtype in [DType::FLOAT, DType::FLOAT, DType::INT32] {
        let dims = pool.bytes.of(SHAPES);
        pool.leaf(dtype, dims);
    }
    for _ in 0..3 + pool.bytes.below(STEPS) {
        // What a step cannot make is left out.
        let _ = step(pool);
    }
}

fn step(pool: &mut Pool<'_, '_>) -> Option<()> {
    match pool.bytes.below(15) {
        0..=2 => patterns::pattern(pool),
        3 => unary(pool),
        4 => binary(pool),
        5 | 6 => neutral(pool),
        7 => choice(pool),
        8 => shapes(pool),
        9 => transposed(pool),
        10 => reduced(pool),
        11 => branches::branch(pool),
        12 => branches::group(pool),
        13 => branches::failing(pool),
        _ => leaf(pool),
    }
}

/// A node of one output.
pub(super) fn one(pool: &mut Pool<'_, '_>, op: &str, inputs: &[&Value]) -> Option<Value> {
    with(pool, op, inputs, [])
}

/// A node of one output with attributes.
pub(super) fn with<const N: usize>(
    pool: &mut Pool<'_, '_>,
    op: &str,
    inputs: &[&Value],
    attrs: [(&str, AttrValue); N],
) -> Option<Value> {
    let inputs: Vec<Output> = inputs.iter().map(|value| value.output).collect();
    let attrs: AttrMap = attrs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    pool.node(op, &inputs, attrs)?.into_iter().next()
}

fn leaf(pool: &mut Pool<'_, '_>) -> Option<()> {
    let dims = pool.bytes.of(SHAPES);
    let dtype = pool.bytes.of(&[DType::FLOAT, DType::FLOAT, DType::INT32, DType::DOUBLE]);
    pool.leaf(dtype, dims).map(drop)
}

fn is_number(value: &Value) -> bool {
    value.dtype != DType::BOOL
}

fn is_float(value: &Value) -> bool {
    matches!(value.dtype, DType::FLOAT | DType::DOUBLE)
}

fn unary(pool: &mut Pool<'_, '_>) -> Option<()> {
    let x = pool.pick_alive(is_number)?;
    if pool.bytes.one_in(5) {
        let wide = if x.dtype == DType::INT32 { DType::INT64 } else { DType::DOUBLE };
        let wide = with(pool, "Cast", &[&x], [("DstT", wide.into())])?;
        return with(pool, "Cast", &[&wide], [("DstT", x.dtype.into())]).map(drop);
    }
    let all = ["Neg", "Identity", "Relu", "Square", "Abs", "StopGradient", "Snapshot"];
    let float = ["Tanh", "Sigmoid", "Relu6", "Erf", "Softmax", "Elu"];
    let op = if is_float(&x) && pool.bytes.one_in(2) {
        pool.bytes.of(&float)
    } else {
        pool.bytes.of(&all)
    };
    let y = one(pool, op, &[&x])?;
    if pool.bytes.one_in(3) { one(pool, op, &[&y]).map(drop) } else { Some(()) }
}

fn binary(pool: &mut Pool<'_, '_>) -> Option<()> {
    let x = pool.pick_alive(is_number)?;
    let y = pool.pick_alive(|y| y.dtype == x.dtype)?;
    let op =
        pool.bytes.of(&["AddV2", "Sub", "Mul", "Maximum", "Minimum", "AddN", "SquaredDifference"]);
    one(pool, op, &[&x, &y]).map(drop)
}

/// Shapes that broadcast with a shape: to it, or to another one.
pub(super) fn broadcasting(pool: &mut Pool<'_, '_>, dims: &[i64]) -> Vec<i64> {
    match pool.bytes.below(9) {
        0..=2 => Vec::new(),
        3 => vec![1],
        4 => vec![1; dims.len() + 1],
        5 => dims.last().map_or(vec![4], |last| vec![*last]),
        6 => vec![4],
        7 => dims.to_vec(),
        _ => [&[2], dims].concat(),
    }
}

/// An operand that changes nothing, or nearly, or decides all.
fn neutral(pool: &mut Pool<'_, '_>) -> Option<()> {
    let x = pool.pick(is_number)?;
    let dims = broadcasting(pool, &x.dims);
    let number = pool.bytes.of(&[0.0, 1.0, -0.0, 2.0]);
    let count = usize::try_from(dims.iter().product::<i64>()).ok()?;
    let c = pool.constant(tensor_of(x.dtype, &dims, &vec![number; count])?)?;
    let float = ["AddV2", "Mul", "Sub", "RealDiv"];
    let whole = ["AddV2", "Mul", "Sub", "FloorDiv", "Mul", "BitwiseOr"];
    let op = if is_float(&x) { pool.bytes.of(&float) } else { pool.bytes.of(&whole) };
    let swapped = !matches!(op, "RealDiv" | "FloorDiv") && pool.bytes.one_in(2);
    let division_by_zero = matches!(op, "RealDiv") && number == 0.0;
    match (division_by_zero, swapped, pool.bytes.one_in(6)) {
        (true, ..) => None,
        (_, _, true) => one(pool, "Sub", &[&x, &x]).map(drop),
        (_, true, _) => one(pool, op, &[&c, &x]).map(drop),
        _ => one(pool, op, &[&x, &c]).map(drop),
    }
}

/// A choice by a condition that may be constant.
fn choice(pool: &mut Pool<'_, '_>) -> Option<()> {
    let x = pool.pick(is_number)?;
    let y = pool.pick(|y| y.dtype == x.dtype)?;
    let dims = broadcasting(pool, &x.dims);
    let count = usize::try_from(dims.iter().product::<i64>()).ok()?;
    let all = f64::from(u8::from(pool.bytes.one_in(2)));
    let tensor = tensor_of(DType::BOOL, &dims, &vec![all; count])?;
    let condition =
        if pool.bytes.one_in(4) { pool.placeholder(tensor)? } else { pool.constant(tensor)? };
    let op = pool.bytes.of(&["SelectV2", "Select"]);
    one(pool, op, &[&condition, &x, &y]).map(drop)
}

/// Reshapes, what is computed from shapes, and what leaves some shapes as they are.
fn shapes(pool: &mut Pool<'_, '_>) -> Option<()> {
    let x = pool.pick_alive(is_number)?;
    match pool.bytes.below(8) {
        0..=2 => reshaped(pool, &x)?,
        3 | 4 => repeated(pool, &x)?,
        5 => {
            let zero = pool.ints(&[0])?;
            let more = one(pool, "ExpandDims", &[&x, &zero])?;
            let dims = AttrValue::from(vec![pool.bytes.of(&[0i64, 0, 1])]);
            with(pool, "Squeeze", &[&more], [("squeeze_dims", dims)])?
        }
        6 => {
            let y = pool.pick_alive(|y| y.dtype == x.dtype)?;
            let shape = one(pool, "Shape", &[&y])?;
            one(pool, "BroadcastTo", &[&x, &shape])?
        }
        _ => {
            let y = pool.pick_alive(|y| y.dtype == x.dtype)?;
            let axis = pool.constant(tensor_of(DType::INT32, &[], &[0.0])?)?;
            one(pool, "ConcatV2", &[&x, &y, &axis])?
        }
    };
    if pool.bytes.one_in(3) { branches::group(pool) } else { Some(()) }
}

/// Reshapes to what is known in part, and back.
fn reshaped(pool: &mut Pool<'_, '_>, x: &Value) -> Option<Value> {
    let shape = one(pool, "Shape", &[x])?;
    if pool.bytes.one_in(3) {
        // The first dimension of the shape, and the rest left open.
        let [zero, first] = [pool.ints(&[0])?, pool.ints(&[1])?];
        let shrink = [("shrink_axis_mask", AttrValue::Int(1))];
        let rows = with(pool, "StridedSlice", &[&shape, &zero, &first, &first], shrink)?;
        let open = pool.constant(tensor_of(DType::INT32, &[], &[-1.0])?)?;
        let wanted = one(pool, "Pack", &[&rows, &open])?;
        return one(pool, "Reshape", &[x, &wanted]);
    }
    let wanted = pool.bytes.of(&[&[-1][..], &[-1, 4], &[-1, 1], &[4, -1], &[2, -1]]);
    let wanted = pool.ints(wanted)?;
    let made = one(pool, "Reshape", &[x, &wanted])?;
    one(pool, "Reshape", &[&made, &shape])
}

/// One repetition, or no padding, of a rank that is seldom another.
fn repeated(pool: &mut Pool<'_, '_>, x: &Value) -> Option<Value> {
    let rank = x.dims.len() + usize::from(pool.bytes.one_in(6));
    if pool.bytes.one_in(2) {
        let ones = pool.ints(&vec![1; rank])?;
        return one(pool, "Tile", &[x, &ones]);
    }
    let none = tensor_of(DType::INT32, &[rank as i64, 2], &vec![0.0; rank * 2])?;
    let none = pool.constant(none)?;
    one(pool, "Pad", &[x, &none])
}

fn permutation(pool: &mut Pool<'_, '_>, rank: usize) -> Option<Value> {
    let mut perm: Vec<i64> = (0..rank as i64).collect();
    for at in (1..rank).rev() {
        let other = pool.bytes.below(at + 1);
        perm.swap(at, other);
    }
    pool.ints(&perm)
}

/// Transpositions, alone, of each other, and of what a product takes or gives.
fn transposed(pool: &mut Pool<'_, '_>) -> Option<()> {
    let x = pool.pick_alive(is_number)?;
    let rank = if pool.bytes.one_in(8) { 2 } else { x.dims.len() };
    let perm = permutation(pool, rank)?;
    let once = one(pool, "Transpose", &[&x, &perm])?;
    match pool.bytes.below(3) {
        0 => Some(()),
        1 => {
            let perm = permutation(pool, rank)?;
            one(pool, "Transpose", &[&once, &perm]).map(drop)
        }
        _ => {
            let columns = once.dims.last().copied().unwrap_or(4);
            let weights = pool.leaf(once.dtype, &[columns, 4])?;
            let op = pool.bytes.of(&["MatMul", "BatchMatMulV2"]);
            let product = one(pool, op, &[&once, &weights])?;
            let perm = permutation(pool, once.dims.len())?;
            one(pool, "Transpose", &[&product, &perm]).map(drop)
        }
    }
}

fn reduced(pool: &mut Pool<'_, '_>) -> Option<()> {
    let x = pool.pick_alive(is_number)?;
    let axes = pool.bytes.of(&[&[][..], &[-1], &[0], &[1]]);
    let axes = pool.ints(axes)?;
    let op = pool.bytes.of(&["Sum", "Max", "Prod", "Mean"]);
    let keep = AttrValue::from(pool.bytes.one_in(2));
    with(pool, op, &[&x, &axes], [("keep_dims", keep)]).map(drop)
}
