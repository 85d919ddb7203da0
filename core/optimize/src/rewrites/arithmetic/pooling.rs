//! Gradients through the maximum of a pooling, which go to one element of each window: what follows
//! can be computed of the smaller gradient of the pooling's output.

use super::{
    Simpler,
    facts::{integers_attr, source_of_op},
};
use crate::{Draft, NewNode};
use tenon_framework::attr::AttrValue;
use tenon_graph::{NodeId, Output};

/// The inputs of a `MaxPoolGrad`: the pooling's input, its output, and the gradient of its output.
fn pooled(draft: &Draft<'_>, id: NodeId, index: usize) -> Option<(NodeId, [Output; 3])> {
    let inner = source_of_op(draft, id, index, "MaxPoolGrad")?;
    let inputs = <[Output; 3]>::try_from(&draft.node(inner).inputs[..]).ok()?;
    Some((inner, inputs))
}

/// The value of an attribute that is a text.
fn text<'d>(draft: &'d Draft<'_>, id: NodeId, name: &str) -> Option<&'d [u8]> {
    match draft.attr(id, name) {
        Some(AttrValue::String(text)) => Some(text),
        _ => None,
    }
}

/// Whether two nodes have the same windows.
fn same_windows(draft: &Draft<'_>, a: NodeId, b: NodeId) -> bool {
    let lists = ["ksize", "strides", "explicit_paddings"];
    let texts = ["padding", "data_format"];
    lists.iter().all(|name| integers_attr(draft, a, name) == integers_attr(draft, b, name))
        && texts.iter().all(|name| text(draft, a, name) == text(draft, b, name))
}

/// Replaces the gradient of an activation before a pooling by that of the pooling's output: of the
/// element that is the maximum, the activation's slope is that of the maximum; the gradients of the
/// others are 0 before and after.
pub(super) fn activation(draft: &Draft<'_>, id: NodeId) -> Option<Simpler> {
    let node = draft.node(id);
    if !matches!(node.op.name.as_str(), "ReluGrad" | "Relu6Grad") {
        return None;
    }
    let &[_, input] = &node.inputs[..] else { return None };
    let (inner, [pool_input, output, gradient]) = pooled(draft, id, 0)?;
    let only = draft.users(inner).len() == 1 && !draft.is_kept(inner);
    let pool = draft.source(output).filter(|&pool| draft.node(pool).op.name == "MaxPool")?;
    let fits = pool_input == input
        && draft.node(pool).inputs[..] == [input]
        && same_windows(draft, pool, inner);
    if !only || !fits {
        return None;
    }
    let mut new = NewNode::new("MaxPoolGrad").input(input).input(output);
    new.attrs.clone_from(draft.attrs(inner));
    let slope = NewNode::new(&node.op.name).input(gradient).input(output);
    Some(Simpler::Through { new, inner: slope, instead: inner })
}

/// Replaces the sum over a gradient that a pooling spreads by the sum over what is spread.
pub(super) fn bias(draft: &Draft<'_>, id: NodeId) -> Option<Simpler> {
    if draft.node(id).op.name != "BiasAddGrad" {
        return None;
    }
    let (inner, [_, _, gradient]) = pooled(draft, id, 0)?;
    // With other paddings there may be windows without elements, whose gradients go nowhere.
    let is_whole = matches!(text(draft, inner, "padding")?, b"SAME" | b"VALID");
    let same = text(draft, id, "data_format") == text(draft, inner, "data_format");
    let new = NewNode::new("BiasAddGrad").input(gradient);
    let new = NewNode { attrs: draft.attrs(id).clone(), ..new };
    (is_whole && same).then_some(Simpler::Node(new))
}
