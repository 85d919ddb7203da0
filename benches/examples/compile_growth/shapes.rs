//! Graphs of any size, each large in its own way: from `x`, and `p` where there are branches, to `last`.

use tenon_benches::Failure;
use tenon_framework::{DType, PartialShape, Shape as Dims, Tensor};
use tenon_runtime::graph::{GraphBuilder, NodeId, Output};

/// Inputs that one node may have.
const MOST_INPUTS: usize = 1 << 16;

type Make = fn(&mut GraphBuilder<'_>, usize) -> Result<(), Failure>;

/// A kind of graph.
pub struct Shape {
    pub name: &'static str,
    /// Whether `x` is fed.
    pub feeds_x: bool,
    /// Whether `p`, a truth value, is fed.
    pub feeds_p: bool,
    /// Builds some `n` nodes.
    pub make: Make,
}

const fn shape(name: &'static str, make: Make) -> Shape {
    Shape { name, feeds_x: true, feeds_p: false, make }
}

const fn constant(name: &'static str, make: Make) -> Shape {
    Shape { name, feeds_x: false, feeds_p: false, make }
}

pub const SHAPES: &[Shape] = &[
    constant("chain of a constant", folded),
    shape("chain of Relu and Sin", chain),
    shape("chain of MatMul", products),
    shape("different nodes into AddN", different),
    constant("constants into AddN", constants),
    shape("control edges, 8 a node", controls),
    shape("ladder", ladder),
    shape("bushy, 16 inputs a node", bushy),
    Shape { feeds_p: true, ..shape("conditionals", conditionals) },
    shape("nested frames, n/10 deep", nested),
    shape("loops, n/9", loops),
    shape("equal nodes into AddN", equal),
    shape("equal Cumsum into AddN", cumsum),
    shape("identities, one waits for all", waits),
    shape("IdentityN of all", identity_n),
    constant("constant in n parts", parts),
];

fn dims(dims: &[i64]) -> Result<PartialShape, Failure> {
    Ok(PartialShape::from(Dims::new(dims)?))
}

fn x(b: &mut GraphBuilder<'_>, of: &[i64]) -> Result<Output, Failure> {
    Ok(b.placeholder("x", DType::FLOAT, dims(of)?)?)
}

fn op(
    b: &mut GraphBuilder<'_>,
    op: &str,
    name: &str,
    inputs: &[Output],
) -> Result<NodeId, Failure> {
    Ok(b.op(op).name(name).inputs(inputs.iter().copied()).build()?)
}

fn last(b: &mut GraphBuilder<'_>, value: Output) -> Result<(), Failure> {
    op(b, "Neg", "last", &[value]).map(drop)
}

fn sum(b: &mut GraphBuilder<'_>, values: &[Output]) -> Result<(), Failure> {
    op(b, "AddN", "last", values).map(drop)
}

fn folded(b: &mut GraphBuilder<'_>, n: usize) -> Result<(), Failure> {
    let mut value = b.constant("c", Tensor::from_slice(&[2], &[0.5f32, 0.25])?)?;
    for at in 0..n {
        value = op(b, "Sin", &format!("n{at}"), &[value])?.into();
    }
    last(b, value)
}

fn chain(b: &mut GraphBuilder<'_>, n: usize) -> Result<(), Failure> {
    let mut value = x(b, &[2])?;
    for at in 0..n {
        value = op(b, ["Relu", "Sin"][at % 2], &format!("n{at}"), &[value])?.into();
    }
    last(b, value)
}

fn products(b: &mut GraphBuilder<'_>, n: usize) -> Result<(), Failure> {
    let mut value = x(b, &[4, 8])?;
    let weights = b.constant("w", Tensor::from_slice(&[8, 8], &[0.125f32; 64])?)?;
    for at in 0..n {
        value = op(b, "MatMul", &format!("n{at}"), &[value, weights])?.into();
    }
    last(b, value)
}

fn different(b: &mut GraphBuilder<'_>, n: usize) -> Result<(), Failure> {
    let base = x(b, &[2])?;
    let mut values = Vec::new();
    for at in 0..n.min(MOST_INPUTS) / 2 {
        let c = b.constant(&format!("c{at}"), Tensor::scalar(at as f32)?)?;
        values.push(op(b, "Pow", &format!("n{at}"), &[base, c])?.into());
    }
    sum(b, &values)
}

fn constants(b: &mut GraphBuilder<'_>, n: usize) -> Result<(), Failure> {
    let mut values = Vec::new();
    for at in 0..n.min(MOST_INPUTS) {
        values.push(b.constant(&format!("c{at}"), Tensor::scalar(at as f32)?)?);
    }
    sum(b, &values)
}

fn controls(b: &mut GraphBuilder<'_>, n: usize) -> Result<(), Failure> {
    let base = x(b, &[2])?;
    let mut made: Vec<NodeId> = Vec::new();
    for at in 0..n {
        let mut node = b.op("Relu").name(&format!("n{at}")).input(base);
        for &before in made.iter().rev().take(8) {
            node = node.control(before);
        }
        made.push(node.build()?);
    }
    let end = made.last().ok_or("no nodes")?;
    last(b, (*end).into())
}

fn ladder(b: &mut GraphBuilder<'_>, n: usize) -> Result<(), Failure> {
    let base = x(b, &[2])?;
    let (mut left, mut right) = (base, op(b, "Sin", "first", &[base])?.into());
    for at in 0..n / 2 {
        let sum = op(b, "AddV2", &format!("a{at}"), &[left, right])?;
        right = op(b, "Maximum", &format!("b{at}"), &[left, right])?.into();
        left = sum.into();
    }
    sum(b, &[left, right])
}

fn bushy(b: &mut GraphBuilder<'_>, n: usize) -> Result<(), Failure> {
    let base = x(b, &[2])?;
    let mut layer: Vec<Output> = vec![base; 16];
    for at in 0..n / 16 {
        let mut next = Vec::with_capacity(16);
        for node in 0..16 {
            // Turned, so that no two of them are the same.
            layer.rotate_left(1);
            let of = if at == 0 { &layer[..=node] } else { &layer[..] };
            next.push(op(b, "AddN", &format!("n{at}_{node}"), of)?.into());
        }
        layer = next;
    }
    sum(b, &layer)
}

fn conditionals(b: &mut GraphBuilder<'_>, n: usize) -> Result<(), Failure> {
    let mut value = x(b, &[2])?;
    let p = b.placeholder("p", DType::BOOL, dims(&[])?)?;
    for at in 0..n / 4 {
        let switch = op(b, "Switch", &format!("s{at}"), &[value, p])?;
        let no = op(b, "Relu", &format!("r{at}"), &[Output::new(switch, 0)])?;
        let yes = op(b, "Sin", &format!("t{at}"), &[Output::new(switch, 1)])?;
        value = op(b, "Merge", &format!("m{at}"), &[no.into(), yes.into()])?.into();
    }
    last(b, value)
}

fn nested(b: &mut GraphBuilder<'_>, n: usize) -> Result<(), Failure> {
    let mut value = x(b, &[2])?;
    for at in 0..n / 10 {
        let enter = b.op("Enter").name(&format!("e{at}")).input(value);
        value = enter.attr("frame_name", format!("f{at}").as_str()).build()?.into();
        for node in 0..8 {
            value = op(b, ["Relu", "Sin"][node % 2], &format!("n{at}_{node}"), &[value])?.into();
        }
    }
    for at in 0..n / 10 {
        value = op(b, "Exit", &format!("x{at}"), &[value])?.into();
    }
    last(b, value)
}

fn loops(b: &mut GraphBuilder<'_>, n: usize) -> Result<(), Failure> {
    let mut value = x(b, &[])?;
    for at in 0..n / 9 {
        let name = |part: &str| format!("{part}{at}");
        let enter = b.op("Enter").name(&name("e")).input(value);
        let enter: Output = enter.attr("frame_name", name("f").as_str()).build()?.into();
        let merge = op(b, "Merge", &name("m"), &[enter, enter])?;
        let limit = Tensor::scalar(3f32)?;
        let limit =
            b.op("Const").name(&name("limit")).attr("dtype", DType::FLOAT).attr("value", limit);
        let limit = limit.control(merge).build()?;
        let less = op(b, "Less", &name("l"), &[merge.into(), limit.into()])?;
        let cond = op(b, "LoopCond", &name("c"), &[less.into()])?;
        let switch = op(b, "Switch", &name("s"), &[merge.into(), cond.into()])?;
        let body = op(b, "AddV2", &name("b"), &[Output::new(switch, 1); 2])?;
        let next = op(b, "NextIteration", &name("n"), &[body.into()])?;
        b.back_edge(merge, 1, next)?;
        value = op(b, "Exit", &name("x"), &[Output::new(switch, 0)])?.into();
    }
    last(b, value)
}

fn equal(b: &mut GraphBuilder<'_>, n: usize) -> Result<(), Failure> {
    let base = x(b, &[2])?;
    let mut values = Vec::new();
    for at in 0..n.min(MOST_INPUTS) {
        values.push(op(b, "Sin", &format!("n{at}"), &[base])?.into());
    }
    sum(b, &values)
}

fn cumsum(b: &mut GraphBuilder<'_>, n: usize) -> Result<(), Failure> {
    let base = x(b, &[2])?;
    let axis = b.constant("axis", Tensor::scalar(0i32)?)?;
    let mut values = Vec::new();
    for at in 0..n.min(MOST_INPUTS) {
        values.push(op(b, "Cumsum", &format!("n{at}"), &[base, axis])?.into());
    }
    sum(b, &values)
}

fn waits(b: &mut GraphBuilder<'_>, n: usize) -> Result<(), Failure> {
    let base = x(b, &[2])?;
    let y: Output = op(b, "Relu", "y", &[base])?.into();
    let mut made = Vec::new();
    for at in 0..n {
        made.push(op(b, "Identity", &format!("n{at}"), &[y])?);
    }
    let mut end = b.op("Identity").name("last").input(y);
    for id in made {
        end = end.control(id);
    }
    end.build()?;
    Ok(())
}

fn identity_n(b: &mut GraphBuilder<'_>, n: usize) -> Result<(), Failure> {
    let base = x(b, &[2])?;
    let mut values: Vec<Output> = Vec::new();
    for at in 0..n.min(MOST_INPUTS) / 2 {
        let bias = b.constant(&format!("c{at}"), Tensor::scalar(at as f32)?)?;
        values.push(op(b, "AddV2", &format!("n{at}"), &[base, bias])?.into());
    }
    let count = values.len() as u32;
    let all = op(b, "IdentityN", "all", &values)?;
    let values: Vec<Output> = (0..count).map(|at| Output::new(all, at)).collect();
    sum(b, &values)
}

fn parts(b: &mut GraphBuilder<'_>, n: usize) -> Result<(), Failure> {
    let count = n.min(MOST_INPUTS) / 2;
    let numbers: Vec<f32> = (0..count).map(|at| at as f32).collect();
    let whole = b.constant("c", Tensor::from_slice(&[count as i64], &numbers)?)?;
    let unpack = b.op("Unpack").name("parts").input(whole).attr("num", count as i64).build()?;
    let mut values = Vec::new();
    for at in 0..count {
        let part = Output::new(unpack, at as u32);
        values.push(op(b, "Sin", &format!("n{at}"), &[part])?.into());
    }
    sum(b, &values)
}
