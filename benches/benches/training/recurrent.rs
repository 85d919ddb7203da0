//! A recurrent model: one layer of LSTM over a sequence, whose last state is classified.

use super::models::Layers;
use tenon_benches::Failure;
use tenon_framework::{DType, PartialShape, Tensor, attr::AttrValue};
use tenon_runtime::graph::{GraphBuilder, NodeId, Output};

/// Steps of the sequence, features of an input, and units of the layer.
const TIME: i64 = 64;
const FEATURES: i64 = 64;
const UNITS: i64 = 128;
/// The name of the frame of the loop.
const FRAME: &str = "sequence";

/// How the loop over time is expressed.
#[derive(Debug, Clone, Copy)]
pub enum Loop {
    /// By a frame: `Enter`, `Merge`, `Switch`, `NextIteration`.
    Frame,
    /// By `While` and its functions.
    Functions,
}

/// What every iteration reads and none changes.
#[derive(Clone, Copy)]
struct Fixed {
    sequence: Output,
    weights: Output,
    bias: Output,
}

fn op(b: &mut GraphBuilder<'_>, op: &str, inputs: &[Output]) -> Result<Output, Failure> {
    Ok(b.op(op).inputs(inputs.iter().copied()).build()?.into())
}

/// A scalar that runs after a node, and so in that node's frame.
fn number(b: &mut GraphBuilder<'_>, value: i32, after: Option<NodeId>) -> Result<Output, Failure> {
    let value = Tensor::scalar(value)?;
    let node = b.op("Const").attr("dtype", value.dtype()).attr("value", value);
    let node = after.into_iter().fold(node, |node, after| node.control(after));
    Ok(node.build()?.into())
}

/// The next output and state of the layer: gates are in the order input, candidate, forget, output.
fn cell(
    b: &mut GraphBuilder<'_>,
    at: Output,
    [output, state]: [Output; 2],
    fixed: &Fixed,
) -> Result<[Output; 2], Failure> {
    let zero = number(b, 0, Some(at.node))?;
    let one = number(b, 1, Some(at.node))?;
    let x = op(b, "GatherV2", &[fixed.sequence, at, zero])?;
    let joined: Output = b.op("ConcatV2").inputs([x, output]).input(one).build()?.into();
    let product = op(b, "MatMul", &[joined, fixed.weights])?;
    let sums = op(b, "BiasAdd", &[product, fixed.bias])?;
    let gates = b.op("Split").input(one).input(sums).attr("num_split", 4i64).build()?;
    let gate = |at: u32| Output::new(gates, at);
    let input = op(b, "Sigmoid", &[gate(0)])?;
    let candidate = op(b, "Tanh", &[gate(1)])?;
    let forget = op(b, "Sigmoid", &[gate(2)])?;
    let shown = op(b, "Sigmoid", &[gate(3)])?;
    let kept = op(b, "Mul", &[state, forget])?;
    let new = op(b, "Mul", &[input, candidate])?;
    let state = op(b, "AddV2", &[kept, new])?;
    let bounded = op(b, "Tanh", &[state])?;
    Ok([op(b, "Mul", &[bounded, shown])?, state])
}

/// The last output, by a frame.
fn by_frame(
    b: &mut GraphBuilder<'_>,
    fixed: &Fixed,
    start: [Output; 2],
) -> Result<Output, Failure> {
    let enter = |b: &mut GraphBuilder<'_>, value: Output, stays: bool| {
        let node = b.op("Enter").input(value).attr("frame_name", FRAME);
        node.attr("is_constant", AttrValue::Bool(stays)).build().map(Output::from)
    };
    let first = number(b, 0, None)?;
    let mut merges = Vec::new();
    for value in [first, start[0], start[1]] {
        let entered = enter(b, value, false)?;
        merges.push(b.op("Merge").inputs([entered, entered]).build()?);
    }
    let fixed = Fixed {
        sequence: enter(b, fixed.sequence, true)?,
        weights: enter(b, fixed.weights, true)?,
        bias: enter(b, fixed.bias, true)?,
    };
    let limit = number(b, TIME as i32, Some(merges[0]))?;
    let goes_on = op(b, "Less", &[merges[0].into(), limit])?;
    let goes_on = op(b, "LoopCond", &[goes_on])?;
    let mut switches = Vec::new();
    let mut inside = Vec::new();
    for &merge in &merges {
        let switch = op(b, "Switch", &[merge.into(), goes_on])?.node;
        switches.push(switch);
        inside.push(op(b, "Identity", &[Output::new(switch, 1)])?);
    }
    let one = number(b, 1, Some(inside[0].node))?;
    let next = op(b, "AddV2", &[inside[0], one])?;
    let [output, state] = cell(b, inside[0], [inside[1], inside[2]], &fixed)?;
    for (&merge, value) in merges.iter().zip([next, output, state]) {
        let next = op(b, "NextIteration", &[value])?;
        b.back_edge(merge, 1, next)?;
    }
    op(b, "Exit", &[Output::new(switches[1], 0)])
}

/// The last output, by `While`: its functions take the number of the step, output and state, and
/// what stays.
fn by_functions(
    b: &mut GraphBuilder<'_>,
    fixed: &Fixed,
    start: [Output; 2],
    batch: i64,
) -> Result<Output, Failure> {
    let dims: [&[i64]; 6] = [
        &[],
        &[batch, UNITS],
        &[batch, UNITS],
        &[TIME, batch, FEATURES],
        &[FEATURES + UNITS, 4 * UNITS],
        &[4 * UNITS],
    ];
    let args = |body: &mut GraphBuilder<'_>| {
        let arg = |(at, dims): (usize, &&[i64])| {
            let dtype = if at == 0 { DType::INT32 } else { DType::FLOAT };
            body.placeholder(&format!("a{at}"), dtype, PartialShape::new(dims).unwrap_or_default())
        };
        dims.iter().enumerate().map(arg).collect::<Result<Vec<_>, _>>()
    };
    let mut body = GraphBuilder::new(b.registry());
    let given = args(&mut body)?;
    let limit = number(&mut body, TIME as i32, None)?;
    let goes_on = op(&mut body, "Less", &[given[0], limit])?;
    b.define("goes_on", &body.finish(), &given, &[goes_on])?;

    let mut body = GraphBuilder::new(b.registry());
    let given = args(&mut body)?;
    let one = number(&mut body, 1, None)?;
    let next = op(&mut body, "AddV2", &[given[0], one])?;
    let inside = Fixed { sequence: given[3], weights: given[4], bias: given[5] };
    let [output, state] = cell(&mut body, given[0], [given[1], given[2]], &inside)?;
    let results = [next, output, state, given[3], given[4], given[5]];
    b.define("advance", &body.finish(), &given, &results)?;

    let first = number(b, 0, None)?;
    let node = b.op("While").inputs([
        first,
        start[0],
        start[1],
        fixed.sequence,
        fixed.weights,
        fixed.bias,
    ]);
    let node = node.attr("cond", AttrValue::function("goes_on"));
    let node = node.attr("body", AttrValue::function("advance")).build()?;
    Ok(Output::new(node, 1))
}

impl Layers<'_, '_> {
    /// The logits of the classes of sequences.
    pub fn recurrent(&mut self, batch: i64, how: Loop) -> Result<Output, Failure> {
        let sequence = self.data(&[TIME, batch, FEATURES])?;
        let [weights, bias] = self.parameters(&[FEATURES + UNITS, 4 * UNITS])?;
        let fixed = Fixed { sequence, weights: weights.value, bias: bias.value };
        let zeros = vec![0f32; (batch * UNITS) as usize];
        let zeros = self.b.constant("start", Tensor::from_slice(&[batch, UNITS], &zeros)?)?;
        let last = match how {
            Loop::Frame => by_frame(self.b, &fixed, [zeros; 2])?,
            Loop::Functions => by_functions(self.b, &fixed, [zeros; 2], batch)?,
        };
        self.layer(last, &[UNITS, 10], true)
    }
}
