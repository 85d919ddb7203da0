//! What a node's op says about how its outputs come about.

use super::Choice;
use tenon_framework::op::{Passed, Refusal};
use tenon_graph::{PartKind, PartNode};
use tenon_host::call::is_handle;

/// Whether a node's kernel only passes its input on: a kernel of the host's, for an op that gives its
/// one input as it is and refuses nothing.
pub(super) fn passes_on(node: &PartNode, choice: &Choice) -> bool {
    let (PartKind::Op(op), Choice::Made(_)) = (&node.kind, choice) else { return false };
    let facts = op.def.facts();
    let same = Passed { input: 0, output: 0, reshaped: false };
    let ([input], [output]) = (&*node.signature.inputs, &*node.signature.outputs) else {
        return false;
    };
    choice.is_host_own()
        && facts.passed == Some(same)
        && facts.refusal == Refusal::Nothing
        && !input.is_ref()
        && !output.is_ref()
}

/// Whether everything that a node reads is state. Its kernel may return a buffer that the state holds,
/// such as the value of a variable, which the node must not keep after the last reader: the next update
/// would copy it.
pub(super) fn reads_state_alone(node: &PartNode) -> bool {
    let inputs = &node.signature.inputs;
    !inputs.is_empty() && inputs.iter().all(|&dtype| dtype.is_ref() || is_handle(dtype))
}
