//! Arithmetic simplification: a table of rules, each exact.
//!
//! A rule looks at one node and the nodes of its inputs, and returns a cheaper equivalent. A
//! floating-point rule must hold for every value: `x * 1`, `x / 1`, `x - 0`, `x + -0`, and moves of
//! signs are rules; `x + 0` (-0 + 0 is 0), `x * 0`, `x - x` and `x / x` (NaN, infinity) are not.
//! For two negated numbers, a NaN may change its sign. A product of transposed matrices, or a sum
//! over the gradient of a pooling, has the same terms, which a kernel may add in another order; a
//! zero may change its sign there, and where a sum over dimensions of size 1 is left out.
//!
//! A rule that removes a node checks whether it may fail; inputs of the node that may fail stay in
//! the draft.

use crate::{Draft, NewNode, Pass, PassError};
use std::collections::HashSet;
use tenon_framework::Tensor;
use tenon_graph::{NodeId, Output, required_ops};

mod casts;
mod facts;
mod neutral;
mod pooling;
mod products;
mod shapes;
mod signs;

/// Arithmetic simplification.
pub(crate) struct Arithmetic;

/// A replacement for a node.
enum Simpler {
    /// The input with this number, which has the same value.
    Input(usize),
    /// Another tensor with the same value.
    Other(Output),
    /// A constant.
    Value(Tensor),
    /// Another node, which fails where this one does and where its dropped inputs do.
    Node(NewNode),
    /// Another node with a new constant as its last input; the constant takes the control inputs of
    /// `like`.
    With { new: NewNode, value: Tensor, like: Output },
    /// Another node, whose input `at` is a new node with such a constant.
    Inner { new: NewNode, at: usize, inner: NewNode, value: Tensor, like: Output },
    /// Another node, whose last input is a new node. Together they read what the node `instead` and
    /// this one read, and they fail where these do.
    Through { new: NewNode, inner: NewNode, instead: NodeId },
}

type Rule = fn(&Draft<'_>, NodeId) -> Option<Simpler>;

/// The rules in the order in which they are tried, each with its text for reports.
const RULES: &[(&str, Rule)] = &[
    ("has a neutral operand", neutral::neutral),
    ("has a single operand", neutral::single),
    ("adds two terms", neutral::two_terms),
    ("combines equal operands", neutral::equal_operands),
    ("is zero for any operand", neutral::zero),
    ("selects by a constant", neutral::constant_choice),
    ("undoes its input's op", signs::undone),
    ("repeats its input's op", signs::again),
    ("absorbs a sign", signs::signs),
    ("absorbs the transposition of an operand", products::operand),
    ("absorbs the transposition of the product", products::product),
    ("is computed before a maximum is spread", pooling::activation),
    ("sums what a maximum spreads", pooling::bias),
    ("merges consecutive transpositions", shapes::transposed),
    ("merges consecutive reshapes", shapes::reshaped),
    ("leaves its input unchanged", shapes::unchanged),
    ("merges nested casts", casts::casts),
];

impl Pass for Arithmetic {
    fn name(&self) -> &str {
        "arithmetic"
    }

    fn run(&self, draft: &mut Draft<'_>) -> Result<(), PassError> {
        for id in draft.order()? {
            if draft.is_stopped() {
                break;
            }
            // Every rule makes a node smaller or removes one, so the loop ends.
            while draft.is_rewritable(id) && !is_idle(draft, id) && simplify(draft, id) {}
        }
        Ok(())
    }
}

/// Absorbs the inner nodes that have no users left.
fn absorb_inner(draft: &mut Draft<'_>, id: NodeId, inner: Vec<NodeId>) {
    let is_idle = |other: &NodeId| *other != id && is_idle(draft, *other);
    let inner: Vec<NodeId> = inner.into_iter().filter(is_idle).collect();
    draft.absorb(inner);
}

/// Whether the node has no users and need not be kept.
fn is_idle(draft: &Draft<'_>, id: NodeId) -> bool {
    draft.users(id).is_empty() && !draft.is_kept(id)
}

fn simplify(draft: &mut Draft<'_>, id: NodeId) -> bool {
    for (what, rule) in RULES {
        let Some(simpler) = rule(draft, id) else { continue };
        let version = draft.version;
        // A new node replaces the nodes that its inputs came from: it fails where they do.
        let inner: Vec<NodeId> = match simpler {
            Simpler::Input(_) | Simpler::Other(_) | Simpler::Value(_) => Vec::new(),
            _ => draft.sources(id).collect(),
        };
        let done = match simpler {
            Simpler::Input(index) => draft.bypass(id, index).is_ok(),
            Simpler::Other(output) => replace_by_tensor(draft, id, output),
            Simpler::Node(new) => become_node(draft, id, new),
            Simpler::Value(value) => become_node(draft, id, NewNode::constant(value)),
            Simpler::With { new, value, like } => with_constant(draft, id, new, value, like),
            Simpler::Inner { new, at, inner, value, like } => {
                with_inner(draft, id, (new, at), inner, value, like)
            }
            Simpler::Through { new, inner, instead } => through(draft, id, new, inner, instead),
        };
        if done && draft.version != version {
            absorb_inner(draft, id, inner);
            draft.note(id, *what);
            return true;
        }
    }
    false
}

/// Replaces the node by `output`, which a node upstream computes.
fn replace_by_tensor(draft: &mut Draft<'_>, id: NodeId, output: Output) -> bool {
    let made = become_node(draft, id, NewNode::new(required_ops::IDENTITY).input(output));
    made && draft.bypass(id, 0).is_ok()
}

fn with_constant(
    draft: &mut Draft<'_>,
    id: NodeId,
    new: NewNode,
    value: Tensor,
    like: Output,
) -> bool {
    let made = draft.add(id, "simpler", NewNode::constant(value).after(waits(draft, like)));
    made.is_ok_and(|made| become_node(draft, id, new.input(made)))
}

/// The control inputs for a constant that replaces another; in a loop, they tie it to the
/// iteration.
fn waits(draft: &Draft<'_>, like: Output) -> Vec<NodeId> {
    let control = draft.source(like).map(|source| draft.node(source).control_inputs.clone());
    control.unwrap_or_default()
}

fn with_inner(
    draft: &mut Draft<'_>,
    id: NodeId,
    (mut new, at): (NewNode, usize),
    inner: NewNode,
    value: Tensor,
    like: Output,
) -> bool {
    let made = draft.add(id, "simpler", NewNode::constant(value).after(waits(draft, like)));
    let Ok(made) = made else { return false };
    let Ok(made) = draft.add(id, "operand", inner.input(made)) else { return false };
    new.inputs[at] = made.into();
    become_node(draft, id, new)
}

/// Replaces the node by `new` of `inner`, which wait for what the node and `instead` waited for.
fn through(
    draft: &mut Draft<'_>,
    id: NodeId,
    new: NewNode,
    inner: NewNode,
    instead: NodeId,
) -> bool {
    let mut control = draft.node(id).control_inputs.clone();
    control.extend(&draft.node(instead).control_inputs);
    let Ok(made) = draft.add(id, "operand", inner.after(control.clone())) else { return false };
    draft.replace(id, new.input(made).after(control)).is_ok()
}

/// Replaces the node and keeps all its dependencies.
fn become_node(draft: &mut Draft<'_>, id: NodeId, new: NewNode) -> bool {
    let mut control = draft.node(id).control_inputs.clone();
    let kept: HashSet<Output> = new.inputs.iter().copied().collect();
    for &input in draft.node(id).inputs.iter().filter(|input| !kept.contains(input)) {
        let Some(anchors) = draft.anchors(input) else { return false };
        control.extend(anchors.into_iter().filter(|anchor| !is_read_through(draft, *anchor, &new)));
    }
    draft.replace(id, new.after(control)).is_ok()
}

/// Whether a node waits for nothing except inputs that `new` reads itself.
fn is_read_through(draft: &Draft<'_>, id: NodeId, new: &NewNode) -> bool {
    // One output of a `Switch` is dead, so `new` must read the same output.
    let is_read = |input: &Output| {
        draft.source(*input).is_none_or(|up| draft.is_clean(up)) || new.inputs.contains(input)
    };
    draft.is_rewritable(id)
        && draft.node(id).inputs.iter().all(is_read)
        && draft.control_sources(id).all(|up| draft.is_clean(up))
}
