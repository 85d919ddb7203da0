//! Arithmetic simplification: a table of rules, each exact.
//!
//! A rule looks at one node and what makes its inputs, and says what gives the same for less. For
//! floating-point numbers only what holds for every value holds here: `x * 1`, `x / 1`, `x - 0`, `x + -0`,
//! and what moves signs; not `x + 0` (-0 + 0 is 0), `x * 0`, `x - x`, `x / x` (NaN, infinity). Of two negated
//! numbers a NaN may have the other sign. A product of transposed matrices has the same terms, which a kernel may add in
//! another order.
//!
//! A rule that takes a node away looks at whether it may fail; what it reads and may fail stays in the draft.

use crate::{
    NodeId, Output, made,
    optimize::{Draft, NewNode, Pass, PassError, constant_folding::constant},
};
use std::collections::HashSet;
use tenon_framework::Tensor;

mod casts;
mod facts;
mod neutral;
mod products;
mod shapes;
mod signs;

/// Arithmetic simplification.
pub(in crate::optimize) struct Arithmetic;

/// What may stand in the place of a node.
enum Simpler {
    /// The input of this number: it has the same value.
    Input(usize),
    /// Another tensor has the same value.
    Other(Output),
    /// A constant.
    Value(Tensor),
    /// Another node, which fails where this one does and where the inputs do that it does not read any more.
    Node(NewNode),
    /// Another node with a new constant as its last input, which stands where `like` does.
    With { new: NewNode, value: Tensor, like: Output },
    /// Another node, whose input `at` is a new node with such a constant.
    Inner { new: NewNode, at: usize, inner: NewNode, value: Tensor, like: Output },
}

type Rule = fn(&Draft<'_>, NodeId) -> Option<Simpler>;

/// The rules, in the order in which they are tried; each with what it says in reports.
const RULES: &[(&str, Rule)] = &[
    ("has a neutral operand", neutral::neutral),
    ("takes one value only", neutral::single),
    ("combines equal operands", neutral::equal_operands),
    ("is zero whatever the operand", neutral::zero),
    ("chooses by a constant", neutral::constant_choice),
    ("undoes what its input does", signs::undone),
    ("does what its input did already", signs::again),
    ("takes a sign into the operation", signs::signs),
    ("takes the transposition of an operand", products::operand),
    ("takes the transposition of the product", products::product),
    ("transposes what is transposed", shapes::transposed),
    ("reshapes what is reshaped", shapes::reshaped),
    ("leaves the shape as it is", shapes::unchanged),
    ("casts what is cast", casts::casts),
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
            // Every rule makes a node smaller or takes one away, so that this ends.
            while draft.is_rewritable(id) && !is_idle(draft, id) && simplify(draft, id) {}
        }
        Ok(())
    }
}

/// Takes away what nothing reads any more.
fn absorb_inner(draft: &mut Draft<'_>, id: NodeId, inner: Vec<NodeId>) {
    let is_idle = |other: &NodeId| *other != id && is_idle(draft, *other);
    let inner: Vec<NodeId> = inner.into_iter().filter(is_idle).collect();
    draft.absorb(inner);
}

/// Whether nothing reads the node.
fn is_idle(draft: &Draft<'_>, id: NodeId) -> bool {
    draft.users(id).is_empty() && !draft.is_kept(id)
}

fn simplify(draft: &mut Draft<'_>, id: NodeId) -> bool {
    for (what, rule) in RULES {
        let Some(simpler) = rule(draft, id) else { continue };
        let version = draft.version;
        // What a new node is computed from instead stands for what it was computed from: it fails where that does.
        let inner: Vec<NodeId> = match simpler {
            Simpler::Input(_) | Simpler::Other(_) | Simpler::Value(_) => Vec::new(),
            _ => draft.sources(id).collect(),
        };
        let done = match simpler {
            Simpler::Input(index) => draft.bypass(id, index).is_ok(),
            Simpler::Other(output) => stand_in(draft, id, output),
            Simpler::Node(new) => become_node(draft, id, new),
            Simpler::Value(value) => become_node(draft, id, constant(value)),
            Simpler::With { new, value, like } => with_constant(draft, id, new, value, like),
            Simpler::Inner { new, at, inner, value, like } => {
                with_inner(draft, id, (new, at), inner, value, like)
            }
        };
        if done && draft.version != version {
            absorb_inner(draft, id, inner);
            draft.note(id, *what);
            return true;
        }
    }
    false
}

/// Lets `output`, which something upstream of the node gives, stand in for it.
fn stand_in(draft: &mut Draft<'_>, id: NodeId, output: Output) -> bool {
    let made = become_node(draft, id, NewNode::new(made::IDENTITY).input(output));
    made && draft.bypass(id, 0).is_ok()
}

fn with_constant(
    draft: &mut Draft<'_>,
    id: NodeId,
    new: NewNode,
    value: Tensor,
    like: Output,
) -> bool {
    let made = draft.add(id, "simpler", constant(value).after(waits(draft, like)));
    made.is_ok_and(|made| become_node(draft, id, new.input(made)))
}

/// What a constant that stands where another does must wait for: in a loop it belongs to an iteration by that.
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
    let made = draft.add(id, "simpler", constant(value).after(waits(draft, like)));
    let Ok(made) = made else { return false };
    let Ok(made) = draft.add(id, "operand", inner.input(made)) else { return false };
    new.inputs[at] = made.into();
    become_node(draft, id, new)
}

/// Makes the node another one, which waits for all that the node waited for.
fn become_node(draft: &mut Draft<'_>, id: NodeId, new: NewNode) -> bool {
    let mut control = draft.node(id).control_inputs.clone();
    let kept: HashSet<Output> = new.inputs.iter().copied().collect();
    for &input in draft.node(id).inputs.iter().filter(|input| !kept.contains(input)) {
        let Some(anchors) = draft.anchors(input) else { return false };
        control.extend(anchors.into_iter().filter(|anchor| !is_read_through(draft, *anchor, &new)));
    }
    draft.replace(id, new.after(control)).is_ok()
}

/// Whether a node waits for nothing but what `new` reads itself.
fn is_read_through(draft: &Draft<'_>, id: NodeId, new: &NewNode) -> bool {
    // Of a switch one output is dead: only the same output says as much.
    let is_read = |input: &Output| {
        draft.source(*input).is_none_or(|up| draft.is_clean(up)) || new.inputs.contains(input)
    };
    draft.is_rewritable(id)
        && draft.node(id).inputs.iter().all(is_read)
        && draft.control_sources(id).all(|up| draft.is_clean(up))
}
