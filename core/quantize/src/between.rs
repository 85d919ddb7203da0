//! Nodes between layers that are computed on 8 bits, so that no tensor becomes float only to be
//! quantised again.

use super::{
    layers::{activation, only_user},
    step::{Step, Uses},
};
use tenon_graph::{NodeId, Output};

/// The 8-bit form of a node between layers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Between {
    /// The same op on the bytes, with the scale of the input.
    Moved,
    /// Like [`Between::Moved`], with this number of inputs that share one scale.
    Joined(usize),
    /// `PadV2` with the zero point, in place of a `Pad` with 0.
    Padded,
    /// `QuantizedMaxPool`, with the scale of the input.
    MaxPool,
    /// `_QuantizedFusedAvgPool`, with a scale of its own.
    AvgPool,
    /// `_QuantizedFusedMean`, with a scale of its own.
    Mean,
    /// `_QuantizedFusedAdd`, with a scale of its own and an activation.
    Add(&'static str),
    /// `_QuantizedLookup`, with a scale of its own.
    Lookup,
}

/// Ops that move elements and have kernels on 8 bits.
const MOVES: &[&str] = &[
    "EnsureShape",
    "ExpandDims",
    "Identity",
    "MirrorPad",
    "Reshape",
    "Slice",
    "Snapshot",
    "Squeeze",
    "StopGradient",
    "StridedSlice",
];

/// Functions of one number that are finite for finite arguments.
const FUNCTIONS: &[&str] = &[
    "Abs",
    "Elu",
    "Erf",
    "LeakyRelu",
    "Neg",
    "Relu",
    "Relu6",
    "Selu",
    "Sigmoid",
    "Softplus",
    "Softsign",
    "Square",
    "Tanh",
];

/// A node that can be computed on 8 bits.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub what: Between,
    pub id: NodeId,
    /// The tensors that the node reads as values.
    pub inputs: Vec<Output>,
    /// The output of the node, or of its activation.
    pub output: Output,
}

impl Candidate {
    /// Whether the output has a scale of its own, which calibration finds.
    pub fn rescales(&self) -> bool {
        matches!(self.what, Between::AvgPool | Between::Mean | Between::Add(_) | Between::Lookup)
    }
}

/// The 8-bit form of a node; `None` if there is none.
pub(super) fn find(
    step: Step<'_>,
    uses: &Uses,
    kept: &dyn Fn(NodeId) -> bool,
    id: NodeId,
) -> Option<Candidate> {
    let node = step.node(id);
    let fed = (0..node.outputs().len()).any(|at| step.is_fed(Output::new(id, at as u32)));
    if kept(id) || fed || node.outputs().len() != 1 || !step.is_float(id.into()) {
        return None;
    }
    let what = what(step, id)?;
    let inputs = match what {
        Between::Joined(count) => node.inputs[..count].to_vec(),
        Between::Add(_) => node.inputs.clone(),
        _ => vec![node.inputs[0]],
    };
    if !inputs.iter().all(|&input| step.is_float(input)) {
        return None;
    }
    let mut found = Candidate { what, id, inputs, output: id.into() };
    if let Between::Add(bounds) = &mut found.what
        && let Some(next) = only_user(step, uses, found.output).filter(|next| !kept(*next))
        && let Some(name) = activation(step, next)
    {
        (*bounds, found.output) = (name, next.into());
    }
    Some(found)
}

fn what(step: Step<'_>, id: NodeId) -> Option<Between> {
    let inputs = &step.node(id).inputs;
    let constant = |at: usize| step.constant(inputs[at]).is_some();
    match step.op(id) {
        op if MOVES.contains(&op) => Some(Between::Moved),
        op if FUNCTIONS.contains(&op) => Some(Between::Lookup),
        "Pad" => Some(Between::Padded),
        "ConcatV2" => Some(Between::Joined(inputs.len() - 1)),
        "MaxPool" if pools(step, id) => Some(Between::MaxPool),
        "AvgPool" if pools(step, id) => Some(Between::AvgPool),
        "Mean" if constant(1) => Some(Between::Mean),
        "Add" | "AddV2" => Some(Between::Add("NONE")),
        _ => None,
    }
}

/// Whether a pooling reads channels-last images, with padding that is computed.
fn pools(step: Step<'_>, id: NodeId) -> bool {
    step.is_channels_last(id) && matches!(step.text(id, "padding"), Some("SAME" | "VALID"))
}
