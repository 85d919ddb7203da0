//! The gradients of GELU and of layer normalisation.
//!
//! Frameworks write these functions in many forms, and the gradient of each form is another set of
//! nodes, which reads what is inside the function. No pattern lists them all. Here the function is
//! found by the patterns of its fusion, whatever else reads its inner nodes; what the nodes after
//! them compute is read as polynomials in the operand, the gradient of the result, and a few values
//! inside the function ([`reader`]). A node whose polynomial is that of the gradient becomes the
//! fused op, and so do the sums that are the gradients of scale and offset. Nodes that another node
//! reads too stay, and with them all: nothing would be saved.

mod polynomial;
mod reader;

use super::{build, conditions, matcher};
use crate::{Draft, NewNode, spread};
use polynomial::{Atom, Polynomial};
use reader::{Reader, Space, Value};
use std::{collections::HashSet, sync::Arc};
use tenon_framework::{
    attr::AttrMap,
    fusion::{FusionDef, Term},
};
use tenon_graph::{NodeId, Output, required_ops};

/// The fused functions, and the op of the gradient of each.
const FUNCTIONS: [(&str, &str); 2] =
    [("_FusedGelu", "_FusedGeluGrad"), ("_FusedLayerNorm", "_FusedLayerNormGrad")];
/// The most values that are tried as the gradient of a result.
const MOST_GRADIENTS: usize = 8;
/// The most nodes in which the gradient of an operand is looked for.
const MOST_NODES: usize = 128;

/// A function that a fusion would take.
struct Function {
    /// The op of its gradient.
    op: &'static str,
    attrs: AttrMap,
    x: Output,
    scale: Option<Output>,
    /// The length of a row, for a normalisation.
    length: Option<f64>,
    /// The last node, and all nodes.
    last: NodeId,
    nodes: Vec<NodeId>,
    tolerance: f64,
}

impl Function {
    fn has(&self, id: NodeId) -> bool {
        self.nodes.contains(&id)
    }
}

/// Nodes that compute gradients of a function.
struct Gradient {
    /// The gradient of the result.
    of: Output,
    /// The node that becomes the fused op, and those of its inputs that are summed with it.
    root: NodeId,
    rest: Vec<Output>,
    /// The sums that are the gradients of scale and offset: the output of the fused op, and the
    /// nodes up to the sum.
    sums: Vec<(u32, Vec<NodeId>)>,
}

/// Fuses all gradients of functions whose last node is one of these.
pub(super) fn fuse(draft: &mut Draft<'_>, order: &[NodeId]) {
    let fusions: Vec<Arc<FusionDef>> = draft.registry().fusions().cloned().collect();
    let wanted = |fusion: &FusionDef| {
        let found = FUNCTIONS.iter().find(|(op, _)| *op == fusion.result.op);
        found.is_some_and(|(_, gradient)| draft.view().has_any_kernel(gradient))
    };
    let fusions: Vec<Arc<FusionDef>> = fusions.into_iter().filter(|f| wanted(f)).collect();
    for &id in order {
        if draft.is_stopped() {
            return;
        }
        for fusion in &fusions {
            if !ends_with(fusion, draft, id) {
                continue;
            }
            let Some(function) = function(draft, id, fusion) else { continue };
            let mut found = gradients(draft, &function).into_iter();
            let found = found.find_map(|of| Search::new(draft, &function, of).run());
            if let Some(gradient) = found
                && apply(draft, &function, &gradient)
            {
                break;
            }
        }
    }
}

/// Whether a node may be the last one of a fusion's pattern.
fn ends_with(fusion: &FusionDef, draft: &Draft<'_>, id: NodeId) -> bool {
    let Term::Call(call) = &fusion.pattern.term else { return false };
    draft.is_live(id) && call.ops.contains(&draft.node(id).op.name)
}

/// The function that a node is the last one of.
fn function(draft: &Draft<'_>, id: NodeId, fusion: &FusionDef) -> Option<Function> {
    let found = matcher::find_open(draft, id, fusion)?;
    if !fusion.conditions.iter().all(|condition| conditions::holds(draft, &found, condition)) {
        return None;
    }
    let fused = build::node(draft, &found, &fusion.result)?;
    let (_, op) = *FUNCTIONS.iter().find(|(op, _)| *op == fused.op)?;
    let (x, scale) = (*fused.inputs.first()?, fused.inputs.get(1).copied());
    let dims = draft.value(x)?.shape.dims()?;
    let length = match scale {
        None => None,
        // Over rows of one element, the operand and its mean have the same shape.
        Some(_) => Some(dims.last()?.value()).filter(|&last| last > 1 && dims.len() > 1),
    };
    if scale.is_some() != length.is_some() {
        return None;
    }
    Some(Function {
        op,
        attrs: fused.attrs,
        x,
        scale,
        length: length.map(|length| length as f64),
        last: id,
        nodes: found.nodes,
        tolerance: reader::tolerance(draft.dtype(x))?,
    })
}

/// The values that may be the gradient of the result: what is multiplied by a value inside the
/// function, or by the scale.
fn gradients(draft: &Draft<'_>, function: &Function) -> Vec<Output> {
    let inside = function.nodes.iter().filter(|id| **id != function.last);
    let inside = inside.map(|&id| Output::from(id)).chain(function.scale);
    let mut found = Vec::new();
    for value in inside {
        for reader in draft.readers(value) {
            let node = draft.node(reader);
            let &[a, b] = &node.inputs[..] else { continue };
            let other = if a == value { b } else { a };
            let is_known = other == function.x
                || Some(other) == function.scale
                || function.has(other.node)
                || draft.constant(other).is_some();
            let fits = node.op.name == "Mul"
                && !function.has(reader)
                && draft.same_shape(other, function.x)
                && draft.dtype(other) == draft.dtype(function.x);
            if fits && !is_known && !found.contains(&other) && found.len() < MOST_GRADIENTS {
                found.push(other);
            }
        }
    }
    found
}

/// The gradient of the operand of a function.
fn expected(draft: &Draft<'_>, function: &Function) -> Option<Polynomial> {
    use Atom::{Bell, Curve, Gradient, Mean, Root, Scale, Sum, WeightedSum, X};
    let term = Polynomial::term;
    if let Some(length) = function.length {
        // (x - mean) (sum(scale dy x) - mean sum(scale dy)) is a product of sums.
        let centred = term(1.0, &[(X, 1)]).plus(&term(-1.0, &[(Mean, 1)]));
        let weighted = term(1.0, &[(WeightedSum, 1)]).plus(&term(-1.0, &[(Mean, 1), (Sum, 1)]));
        let along = centred.times(&weighted)?.times(&term(-1.0 / length, &[(Root, 3)]))?;
        let own = term(1.0, &[(Gradient, 1), (Scale, 1), (Root, 1)]);
        return Some(own.plus(&term(-1.0 / length, &[(Root, 1), (Sum, 1)])).plus(&along));
    }
    let name = |id: &NodeId| draft.node(*id).op.name.as_str();
    let curve = function.nodes.iter().map(name).find(|op| ["Erf", "Erfc", "Tanh"].contains(op))?;
    let half = term(0.5, &[(Gradient, 1), (Curve, 1)]);
    if curve == "Tanh" {
        // sqrt(2 / pi) (x + 0.044715 x^3), differentiated.
        let inner = Polynomial::number(1.0).plus(&term(3.0 * 0.044_715, &[(X, 2)]));
        let slope = term(1.0, &[(Gradient, 1), (X, 1)])
            .plus(&term(-1.0, &[(Gradient, 1), (X, 1), (Curve, 2)]));
        let root = (2.0 / std::f64::consts::PI).sqrt();
        let along = slope.times(&inner)?.scaled(0.5 * root);
        return Some(half.plus(&term(0.5, &[(Gradient, 1)])).plus(&along));
    }
    let density = 1.0 / (2.0 * std::f64::consts::PI).sqrt();
    let along = term(density, &[(Gradient, 1), (X, 1), (Bell, 1)]);
    // erfc(-x / sqrt(2)) is 1 + erf(x / sqrt(2)).
    let one = if curve == "Erf" { term(0.5, &[(Gradient, 1)]) } else { Polynomial::default() };
    Some(half.plus(&one).plus(&along))
}

/// The search for the nodes that compute a gradient.
struct Search<'d, 'a> {
    draft: &'d Draft<'a>,
    function: &'d Function,
    of: Output,
    reader: Reader<'d, 'a>,
    root: Option<(NodeId, Vec<Output>)>,
    sums: Vec<(u32, Vec<NodeId>)>,
}

impl<'d, 'a> Search<'d, 'a> {
    fn new(draft: &'d Draft<'a>, function: &'d Function, of: Output) -> Search<'d, 'a> {
        let reader = Reader::new(draft, function, of);
        Search { draft, function, of, reader, root: None, sums: Vec::new() }
    }

    /// Visits what reads the gradient of the result, and what reads that, as far as it is a
    /// polynomial.
    fn run(mut self) -> Option<Gradient> {
        let (draft, function) = (self.draft, self.function);
        let expected = expected(draft, function)?;
        let mut seen: Vec<NodeId> = Vec::new();
        let push = |seen: &mut Vec<NodeId>, value: Output| {
            for id in draft.readers(value).filter(|id| !function.has(*id)) {
                if !seen.contains(&id) && seen.len() < MOST_NODES {
                    seen.push(id);
                }
            }
        };
        push(&mut seen, self.of);
        let mut next = 0;
        while let Some(&id) = seen.get(next) {
            next += 1;
            let value = self.reader.read(id.into());
            let is_whole = value.as_ref().is_some_and(|value| value.space == Space::Whole);
            match value {
                Some(value) if is_whole && value.polynomial.is(&expected, function.tolerance) => {
                    self.root.get_or_insert_with(|| (id, Vec::new()));
                }
                Some(_) => {
                    push(&mut seen, id.into());
                    self.look_at(id, &expected);
                }
                None => self.look_at(id, &expected),
            }
        }
        let (root, rest) = self.root?;
        Some(Gradient { of: self.of, root, rest, sums: self.sums })
    }

    /// Looks at a node that is not the gradient of the operand alone: it may sum that with other
    /// values, such as the gradient of a connection past the function, or be the gradient of scale
    /// or offset.
    fn look_at(&mut self, id: NodeId, expected: &Polynomial) {
        let draft = self.draft;
        let node = draft.node(id);
        match (node.op.name.as_str(), &node.inputs[..]) {
            ("AddN" | "AddV2" | "Add", inputs) if self.root.is_none() => {
                let (mut sum, mut rest) = (Polynomial::default(), Vec::new());
                for &input in inputs {
                    let value = self.reader.read(input);
                    let is_part = |value: &Value| !value.polynomial.is_multiple_of(Atom::Gradient);
                    match value.filter(is_part) {
                        Some(value) => sum = sum.plus(&value.polynomial),
                        None => rest.push(input),
                    }
                }
                let same = rest.iter().all(|&input| draft.same_shape(input, self.function.x));
                if same && sum.is(expected, self.function.tolerance) {
                    self.root = Some((id, rest));
                }
            }
            ("Sum", &[x, axes]) => {
                if let Some(output) = self.vector(x).filter(|_| self.reader.sums_columns(axes))
                    && let Some(nodes) = self.up_to_vector(id)
                    && self.sums.iter().all(|(other, _)| *other != output)
                {
                    self.sums.push((output, nodes));
                }
            }
            _ => {}
        }
    }

    /// The output of the fused op that is the sum of a value over all rows.
    fn vector(&mut self, x: Output) -> Option<u32> {
        self.function.scale?;
        if x == self.of {
            return Some(2);
        }
        let value = self.reader.read(x).filter(|value| value.space == Space::Whole)?;
        let factors = [(Atom::Gradient, 1), (Atom::Root, 1)];
        let [own, mean] = [(1.0, Atom::X), (-1.0, Atom::Mean)]
            .map(|(number, atom)| Polynomial::term(number, &[factors[0], factors[1], (atom, 1)]));
        value.polynomial.is(&own.plus(&mean), self.function.tolerance).then_some(1)
    }

    /// The nodes from the one that gives a sum the shape of the scale up to the sum.
    fn up_to_vector(&self, sum: NodeId) -> Option<Vec<NodeId>> {
        let scale = self.function.scale?;
        if self.draft.same_shape(sum.into(), scale) {
            return Some(vec![sum]);
        }
        let mut users = self.draft.users(sum).iter();
        let (Some(&only), None) = (users.next(), users.next()) else { return None };
        let is_shaped = self.draft.node(only).op.name == "Reshape"
            && self.draft.is_rewritable(only)
            && self.draft.same_shape(only.into(), scale);
        is_shaped.then(|| vec![only, sum])
    }
}

/// The node that computes the axes of a sum.
fn axes_of(draft: &Draft<'_>, sum: NodeId) -> Option<NodeId> {
    let axes = *draft.node(sum).inputs.get(1)?;
    draft.source(axes).filter(|_| spread::operands(draft, axes).is_some())
}

/// The nodes that compute a value from the function, but those of the function; and the nodes that
/// compute lengths of rows and axes for them.
fn above(
    draft: &Draft<'_>,
    function: &Function,
    of: Output,
    from: &[Output],
) -> (Vec<NodeId>, Vec<NodeId>) {
    let (mut found, mut lengths, mut next) = (Vec::new(), Vec::new(), from.to_vec());
    while let Some(value) = next.pop() {
        let is_given = value == function.x || value == of || Some(value) == function.scale;
        let id = value.node;
        let node = draft.node(id);
        let is_known = is_given || draft.constant(value).is_some() || function.has(id);
        if is_known || found.contains(&id) || lengths.contains(&id) {
            continue;
        }
        match node.op.name.as_str() {
            "Cast" | "FloorDiv" | "Maximum" => {
                lengths.push(id);
                next.extend(&node.inputs);
            }
            "Size" => lengths.push(id),
            // Other inputs of these are axes and shapes.
            "Sum" | "Mean" | "Reshape" | "Squeeze" | "ExpandDims" | "BroadcastTo" => {
                found.push(id);
                lengths.extend(axes_of(draft, id));
                next.extend(node.inputs.first());
            }
            _ => {
                found.push(id);
                next.extend(&node.inputs);
            }
        }
    }
    (found, lengths)
}

/// Replaces the nodes of a gradient; `false` if that is not possible or saves nothing.
fn apply(draft: &mut Draft<'_>, function: &Function, gradient: &Gradient) -> bool {
    let Gradient { of, root, rest, sums } = gradient;
    let inputs_of = |id: NodeId| draft.node(id).inputs.clone();
    let mut from: Vec<Output> =
        inputs_of(*root).into_iter().filter(|input| !rest.contains(input)).collect();
    from.extend(sums.iter().filter_map(|(_, nodes)| inputs_of(*nodes.last()?).first().copied()));
    let (mut nodes, mut lengths) = above(draft, function, *of, &from);
    let last = sums.iter().filter_map(|(_, nodes)| nodes.last().copied());
    lengths.extend(last.filter_map(|sum| axes_of(draft, sum)));
    let replaced: Vec<NodeId> =
        sums.iter().filter_map(|(_, nodes)| nodes.first().copied()).chain([*root]).collect();
    nodes.extend(sums.iter().flat_map(|(_, nodes)| nodes.iter().skip(1)));
    nodes.retain(|id| !replaced.contains(id));
    let all: HashSet<NodeId> = nodes.iter().chain(&replaced).copied().collect();
    let is_closed = |id: &NodeId| {
        !draft.is_kept(*id)
            && !draft.is_waited_for(*id)
            && draft.users(*id).iter().all(|user| all.contains(user))
    };
    let waits = |id: &NodeId| !draft.node(*id).control_inputs.is_empty();
    if !nodes.iter().all(is_closed) || all.iter().any(waits) {
        return false;
    }
    let inputs = [*of, function.x].into_iter().chain(function.scale);
    let mut new = NewNode::new(function.op).inputs(inputs);
    new.attrs.clone_from(&function.attrs);
    let found = matcher::Found { nodes: all.iter().copied().collect(), ..Default::default() };
    let kept: Vec<Output> = new.inputs.iter().chain(rest).copied().collect();
    if build::waits(draft, &found, &kept).is_none_or(|control| !control.is_empty()) {
        return false;
    }
    let count = nodes.len() + usize::from(rest.is_empty()) + sums.len();
    let Some(fused) = placed(draft, *root, rest, new) else { return false };
    for (output, nodes) in sums {
        let new = NewNode::new(required_ops::IDENTITY).input(Output::new(fused, *output));
        if draft.replace(nodes[0], new).is_ok() {
            // Where that is not possible, it stays as an identity.
            let _ = draft.bypass(nodes[0], 0);
        }
    }
    draft.note(fused, format!("is {} now, for {count} nodes", function.op));
    // The length of a row is a quotient that cannot fail: the number of rows counts as 1 at least.
    // Axes are those of operands that the function broadcasts.
    nodes.extend(sums.iter().map(|(_, nodes)| nodes[0]).chain(lengths));
    draft.absorb(nodes);
    true
}

/// Puts the fused node in place of the root; where the root adds more values, into a sum with these.
fn placed(draft: &mut Draft<'_>, root: NodeId, rest: &[Output], new: NewNode) -> Option<NodeId> {
    if rest.is_empty() {
        return draft.replace(root, new).ok().map(|()| root);
    }
    let made = draft.add(root, "fused", new).ok()?;
    let op = if rest.len() == 1 { "AddV2" } else { "AddN" };
    let sum = NewNode::new(op).input(made).inputs(rest.iter().copied());
    draft.replace(root, sum).ok().map(|()| made)
}
