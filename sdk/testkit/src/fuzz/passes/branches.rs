//! Branches, and nodes that fail.

use super::pool::{Fate, Pool, Value, tensor_of};
use tenon_framework::{DType, PartialShape, attr::AttrMap};
use tenon_runtime::graph::Output;

/// A predicate, fed or constant, and its value.
fn predicate(pool: &mut Pool<'_, '_>) -> Option<(Value, bool)> {
    let value = pool.bytes.one_in(2);
    let tensor = tensor_of(DType::BOOL, &[], &[f64::from(u8::from(value))])?;
    let made = if pool.bytes.one_in(2) { pool.constant(tensor) } else { pool.placeholder(tensor) };
    Some((made?, value))
}

/// A value through a `Switch`: the output that is alive, and the dead one.
fn switched(pool: &mut Pool<'_, '_>, x: &Value, by: &(Value, bool)) -> Option<(Value, Value)> {
    let outputs = pool.node("Switch", &[x.output, by.0.output], AttrMap::new())?;
    let [mut no, mut yes] = <[Value; 2]>::try_from(outputs).ok()?;
    let taken = if by.1 { &mut no } else { &mut yes };
    taken.fate = Fate::Dead;
    pool.set_fate(taken.output, Fate::Dead);
    Some(if by.1 { (yes, no) } else { (no, yes) })
}

/// What happens to a value on a branch: nothing, a node, or a constant that waits for it.
fn passage(pool: &mut Pool<'_, '_>, x: Value) -> Option<Value> {
    let op = match pool.bytes.below(6) {
        0 => return Some(x),
        1 => "Identity",
        2 => "Neg",
        3 => {
            let identity = pool.node("Identity", &[x.output], AttrMap::new())?.pop()?;
            let tensor = pool.tensor(x.dtype, &x.dims)?;
            let attrs = AttrMap::from([
                ("dtype".to_owned(), tensor.dtype().into()),
                ("value".to_owned(), tensor.into()),
            ]);
            return pool.node_after("Const", &[], attrs, &[identity.output.node])?.pop();
        }
        4 => "Square",
        _ => "StopGradient",
    };
    pool.node(op, &[x.output], AttrMap::new())?.pop()
}

/// `if (p) ... else ...`, or one side of it with another value; the number of the branch may be read too.
pub(super) fn branch(pool: &mut Pool<'_, '_>) -> Option<()> {
    let x = pool.pick_alive(|x| x.dtype != DType::BOOL)?;
    let by = predicate(pool)?;
    let (alive, dead) = switched(pool, &x, &by)?;
    let (alive, dead) = (passage(pool, alive)?, passage(pool, dead)?);
    let (alive, dead) = (grouped(pool, alive)?, grouped(pool, dead)?);
    let inputs = match pool.bytes.below(3) {
        0 => [alive.output, dead.output],
        1 => [dead.output, alive.output],
        _ => [dead.output, x.output],
    };
    let merged = pool.node_after("Merge", &inputs, AttrMap::new(), &[])?;
    if let [value, index] = &merged[..] {
        let dims = x.dims.clone();
        for known in pool.values.iter_mut().filter(|known| known.output == value.output) {
            known.dims.clone_from(&dims);
        }
        let to = AttrMap::from([("DstT".to_owned(), DType::FLOAT.into())]);
        pool.node("Cast", &[index.output], to)?;
    }
    Some(())
}

/// A value, or what a node gives that has others beside it, which may be dead or fail.
fn grouped(pool: &mut Pool<'_, '_>, x: Value) -> Option<Value> {
    if !pool.bytes.one_in(2) {
        return Some(x);
    }
    group_of(pool, &x)
}

fn group_of(pool: &mut Pool<'_, '_>, x: &Value) -> Option<Value> {
    let mut inputs = vec![x.output];
    for _ in 0..1 + pool.bytes.below(2) {
        let wanted = pool.bytes.below(3);
        let other = pool.pick(|value| match wanted {
            0 => value.fate == Fate::Alive,
            1 => value.fate == Fate::Dead,
            _ => true,
        });
        inputs.extend(other.map(|other| other.output));
    }
    let at = pool.bytes.below(inputs.len());
    inputs.swap(0, at);
    let outputs = pool.node("IdentityN", &inputs, AttrMap::new())?;
    outputs.into_iter().nth(at)
}

/// `IdentityN` of several values, or a node that looks at no value but its shape.
pub(super) fn group(pool: &mut Pool<'_, '_>) -> Option<()> {
    let x = pool.pick(|_| true)?;
    match pool.bytes.below(3) {
        0 => group_of(pool, &x).map(drop),
        1 => {
            let op = pool.bytes.of(&["Shape", "Size", "Rank", "ZerosLike", "OnesLike"]);
            let made = pool.node(op, &[x.output], AttrMap::new())?.pop()?;
            let to = AttrMap::from([("DstT".to_owned(), DType::FLOAT.into())]);
            pool.node("Cast", &[made.output], to).map(drop)
        }
        _ => {
            let other = pool.pick_alive(|other| other.dtype != DType::BOOL)?;
            let op = pool.bytes.of(&["Identity", "Neg"]);
            pool.node_after(op, &[other.output], AttrMap::new(), &[x.output.node]).map(drop)
        }
    }
}

/// A node that fails, or one of its kind that does not.
pub(super) fn failing(pool: &mut Pool<'_, '_>) -> Option<()> {
    let fails = pool.bytes.one_in(2);
    let value = match pool.bytes.below(4) {
        0 => division(pool, fails)?,
        1 => {
            let x = pool.pick_alive(|_| true)?;
            let mut dims = x.dims.clone();
            if fails {
                dims.push(1);
            }
            let shape =
                AttrMap::from([("shape".to_owned(), PartialShape::new(&dims).ok()?.into())]);
            pool.node("EnsureShape", &[x.output], shape)?.pop()?
        }
        2 => {
            let x = pool.pick_alive(|_| true)?;
            let count: i64 = x.dims.iter().product();
            let dims = [count + i64::from(fails)];
            let tensor = tensor_of(DType::INT32, &[1], &[dims[0] as f64])?;
            let shape =
                if pool.bytes.one_in(4) { pool.constant(tensor) } else { pool.placeholder(tensor) };
            pool.node("Reshape", &[x.output, shape?.output], AttrMap::new())?.pop()?
        }
        _ => {
            let x = pool.pick_alive(|x| !x.dims.is_empty())?;
            let index = if fails { x.dims[0] } else { 0 };
            let index = tensor_of(DType::INT32, &[], &[index as f64])?;
            let (index, axis) = (pool.placeholder(index)?, tensor_of(DType::INT32, &[], &[0.0])?);
            let axis = pool.constant(axis)?;
            let inputs = [x.output, index.output, axis.output];
            pool.node("GatherV2", &inputs, AttrMap::new())?.pop()?
        }
    };
    if fails && value.fate == Fate::Alive {
        pool.fails(&value);
    }
    // A neighbour, through which it is seen or not.
    let neighbour = pool.bytes.one_in(2);
    if neighbour { group(pool) } else { Some(()) }
}

/// A division of integers.
fn division(pool: &mut Pool<'_, '_>, fails: bool) -> Option<Value> {
    let x = pool.leaf(DType::INT32, &[])?;
    let by = tensor_of(DType::INT32, &[], &[if fails { 0.0 } else { 2.0 }])?;
    let by = if pool.bytes.one_in(2) { pool.constant(by)? } else { pool.placeholder(by)? };
    let op = pool.bytes.of(&["FloorDiv", "FloorMod", "TruncateDiv"]);
    let inputs: [Output; 2] = [x.output, by.output];
    pool.node(op, &inputs, AttrMap::new())?.pop()
}
