//! Finds the nodes that may fail at run time.
//!
//! A node that runs and fails ends the step even if nothing reads its outputs. A node that may fail
//! therefore runs after a pass removed all its readers, unless the pass replaced it by nodes that
//! fail in the same cases. The decision uses only what is known before the step: the failures that
//! the op declares for its kernels ([`Refusal`]), and further knowledge about a few ops. An op that
//! declares nothing may fail.

use crate::{
    Draft,
    broadcast::surely_broadcast,
    elements::{Number, has_no},
    failures::never_fails,
};
use tenon_framework::op::Refusal;
use tenon_graph::{ControlFlow, Node, NodeId, Output};

/// Whether a node may fail in some step.
pub(crate) fn may_fail(draft: &Draft<'_>, id: NodeId) -> bool {
    let node = draft.node(id);
    let safe = match node.control_flow() {
        ControlFlow::Switch => rank(draft, node, 1) == Some(0),
        ControlFlow::LoopCond => rank(draft, node, 0) == Some(0),
        ControlFlow::No => takes_inputs(draft, node) || never_fails(draft, id),
        _ => true,
    };
    !safe
}

fn rank(draft: &Draft<'_>, node: &Node, at: usize) -> Option<usize> {
    draft.shape(*node.inputs.get(at)?).rank()
}

/// Whether no input of a node has a property that the op's kernels may refuse.
fn takes_inputs(draft: &Draft<'_>, node: &Node) -> bool {
    let facts = node.op.facts();
    let is_integer = node.signature.inputs.first().is_some_and(|dtype| dtype.is_integer());
    let full = |output: &Output| draft.shape(*output).full().is_some();
    let alike = |&input: &Output| {
        let first = node.inputs[0];
        input == first || draft.same_shape(first, input)
    };
    match facts.refusal {
        Refusal::Anything => false,
        Refusal::Nothing => true,
        Refusal::Shapes if facts.elementwise => all_broadcast(draft, node),
        Refusal::Shapes => node.inputs.iter().all(full) && is_decided(draft, node),
        Refusal::Axes => rank(draft, node, 0).is_some() && is_decided(draft, node),
        Refusal::Divisors => {
            let divisor = node.inputs.get(1).and_then(|&divisor| draft.constant(divisor));
            let divides = divisor.is_some_and(|divisor| has_no(divisor, Number::Zero));
            (divides || !is_integer) && all_broadcast(draft, node)
        }
        Refusal::Integers => !is_integer && all_broadcast(draft, node),
        Refusal::UnequalShapes => node.inputs.iter().all(alike),
    }
}

/// Whether the values that decide what a kernel refuses are the same in every step: the shape
/// function has then checked them.
fn is_decided(draft: &Draft<'_>, node: &Node) -> bool {
    let deciding = node.op.facts().deciding;
    let arguments = node.signature.input_args.iter().take(u64::BITS as usize).enumerate();
    let mut decide = arguments.filter(|(at, _)| deciding >> at & 1 == 1);
    decide.all(|(_, range)| {
        let mut flat = node.inputs.iter().skip(range.start as usize).take(range.len as usize);
        flat.all(|&input| draft.constant(input).is_some())
    })
}

/// Whether every two inputs are certain to broadcast with each other.
fn all_broadcast(draft: &Draft<'_>, node: &Node) -> bool {
    let mut inputs = node.inputs.iter();
    while let Some(&a) = inputs.next() {
        if !inputs.as_slice().iter().all(|&b| surely_broadcast(draft, a, b)) {
            return false;
        }
    }
    true
}
