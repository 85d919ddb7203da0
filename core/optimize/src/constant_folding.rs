//! Constant folding: values that are the same in every step are computed once, at compilation.
//!
//! Constants have two sources: shape inference (`Shape`, `Size`, `Rank` of known shapes and the
//! integers computed from them), and kernels, run through [`Evaluate`](tenon_graph::Evaluate) on constant
//! inputs. A node that fails, or has no kernel there, stays and fails at run time. A node that may
//! fail also stays, even if shape inference knows its value.
//!
//! A constant larger than [`Draft::folding_limit`] is created only if it is not larger than its
//! distinct inputs together. The total bytes and the total time of folding are limited too
//! ([`Limits`](crate::Limits)), since in a small graph each node can double the size of a constant.

use crate::{Draft, NewNode, Pass, PassError, effects, fallible::may_fail};
use std::{collections::HashSet, time::Instant};
use tenon_framework::{DType, Tensor, attr::AttrValue};
use tenon_graph::{NodeId, Output};

/// Constant folding.
pub(crate) struct ConstantFolding;

impl Pass for ConstantFolding {
    fn name(&self) -> &str {
        "constant_folding"
    }

    fn run(&self, draft: &mut Draft<'_>) -> Result<(), PassError> {
        let order = draft.order()?;
        // Nodes whose outputs are known better than before.
        let mut better = vec![false; draft.nodes.len()];
        for id in order {
            if draft.is_stopped() {
                break;
            }
            let sources: Vec<NodeId> = draft.sources(id).collect();
            if sources.iter().any(|source| better.get(source.index()).copied().unwrap_or(false)) {
                let known = knowledge(draft, id);
                draft.refresh(id);
                better[id.index()] = knowledge(draft, id) > known;
            }
            if is_foldable(draft, id) && fold(draft, id) {
                better[id.index()] = true;
            }
        }
        Ok(())
    }
}

/// A measure of how much is known about the outputs of a node.
fn knowledge(draft: &Draft<'_>, id: NodeId) -> usize {
    let known = |at: usize| {
        let output = Output::new(id, at as u32);
        let shape = draft.shape(output);
        let dims = shape.dims().map_or(0, |dims| 1 + dims.iter().filter(|dim| **dim >= 0).count());
        dims + usize::from(draft.constant(output).is_some())
            + usize::from(draft.integers(output).is_some())
    };
    (0..draft.node(id).outputs().len()).map(known).sum()
}

fn is_foldable(draft: &Draft<'_>, id: NodeId) -> bool {
    let node = draft.node(id);
    draft.is_rewritable(id)
        && !node.op.is_constant()
        && !node.inputs.is_empty()
        && !node.outputs().is_empty()
        && node.outputs().iter().all(|dtype| !dtype.is_reserved() && *dtype != DType::INVALID)
        && effects::is_pure(node)
}

/// Replaces a node by constants; returns whether it did.
fn fold(draft: &mut Draft<'_>, id: NodeId) -> bool {
    let Some(control) = control_of(draft, id) else { return false };
    if draft.node(id).outputs().len() > 1 {
        return fold_several(draft, id, &control);
    }
    let inferred = known(draft, Output::new(id, 0)).filter(|_| !may_fail(draft, id));
    let Some(value) = inferred.or_else(|| evaluated(draft, id)?.pop()) else { return false };
    let bytes = value.byte_len();
    let constant = NewNode::constant(value).after(control);
    let made = draft.replace(id, constant).is_ok();
    if made {
        draft.note(id, format!("is a constant of {bytes} bytes"));
    }
    made
}

/// The control inputs of the constant: those of the node, and those of its inputs that have effects
/// or may be dead.
fn control_of(draft: &Draft<'_>, id: NodeId) -> Option<Vec<NodeId>> {
    let mut control = draft.node(id).control_inputs.clone();
    for &input in &draft.node(id).inputs {
        control.extend(draft.anchors(input)?);
    }
    control.retain(|other| *other != id);
    Some(control)
}

/// The value according to shape inference.
fn known(draft: &Draft<'_>, output: Output) -> Option<Tensor> {
    if let Some(value) = draft.constant(output) {
        return Some(value.clone());
    }
    draft.value(output)?.value.as_ref()?.to_tensor(draft.dtype(output))
}

/// Creates a constant for each output that is used. The node is removed once nothing needs it.
fn fold_several(draft: &mut Draft<'_>, id: NodeId, control: &[NodeId]) -> bool {
    let count = draft.node(id).outputs().len();
    let outputs: Vec<Output> = (0..count).map(|at| Output::new(id, at as u32)).collect();
    let used: Vec<Output> =
        outputs.iter().copied().filter(|&output| draft.uses(output) > 0).collect();
    if used.is_empty() {
        return false;
    }
    let inferred: Option<Vec<Tensor>> =
        outputs.iter().map(|&output| known(draft, output)).collect();
    let has_run = inferred.is_none();
    let Some(values) = inferred.or_else(|| evaluated(draft, id)) else { return false };
    if has_run {
        draft.give_up_effects(id);
    }
    let mut any = false;
    for output in used {
        let Some(value) = values.get(output.output as usize).cloned() else { continue };
        let new = NewNode::constant(value).after(control.iter().copied());
        let suffix = format!("folded_{}", output.output);
        if let Ok(made) = draft.add(id, &suffix, new) {
            any |= draft.redirect(output, made.into()).is_ok();
        }
    }
    if any {
        draft.note(id, "is constants, one for each output that is used");
    }
    any
}

/// Computes the outputs by running the kernel.
fn evaluated(draft: &Draft<'_>, id: NodeId) -> Option<Vec<Tensor>> {
    let node = draft.node(id);
    let inputs: Option<Vec<Tensor>> =
        node.inputs.iter().map(|&input| draft.constant(input).cloned()).collect();
    let inputs = inputs?;
    let most = draft.folding_limit().max(distinct_bytes(&inputs));
    let expected =
        (0..node.outputs().len()).map(|at| size_of_output(draft, Output::new(id, at as u32)));
    let expected = expected.fold(0, usize::saturating_add);
    let budget = draft.budget();
    if expected > most || !draft.may_fold(expected) {
        return None;
    }
    let begin = Instant::now();
    let outputs = draft.evaluate().evaluate_within(node, &inputs, budget.folding_time());
    budget.folded_for(begin.elapsed());
    let outputs = outputs.ok()?;
    let types = outputs.iter().map(Tensor::dtype).eq(node.outputs().iter().copied());
    let made = outputs.iter().map(Tensor::byte_len).fold(0, usize::saturating_add);
    let fits = made <= most && draft.may_fold(made);
    let is_sound = types && fits && outputs.iter().all(Tensor::is_on_host);
    is_sound.then(|| {
        budget.folded(made);
        outputs
    })
}

impl Draft<'_> {
    /// Whether constants of this size in bytes may be added to those already folded.
    pub(crate) fn may_fold(&self, bytes: usize) -> bool {
        self.budget().may_fold(bytes, || constant_bytes(self))
    }
}

/// The bytes of the tensors; a buffer shared by several counts once.
fn distinct_bytes<'t>(tensors: impl IntoIterator<Item = &'t Tensor>) -> usize {
    let mut seen = HashSet::new();
    let new = tensors.into_iter().filter(|tensor| seen.insert(tensor.buffer().data()));
    new.map(Tensor::byte_len).fold(0, usize::saturating_add)
}

/// The bytes of the constants in the original graph.
fn constant_bytes(draft: &Draft<'_>) -> usize {
    let own = draft.sub.order.iter().map(|&id| draft.base.node(id));
    distinct_bytes(own.filter(|node| node.op.is_constant()).filter_map(|node| {
        match node.attrs.get("value") {
            Some(AttrValue::Tensor(value)) => Some(value),
            _ => None,
        }
    }))
}

/// The bytes of an output; 0 if its shape is unknown.
fn size_of_output(draft: &Draft<'_>, output: Output) -> usize {
    let elements = draft.shape(output).full().map_or(0, |shape| shape.elements());
    elements.saturating_mul(draft.dtype(output).size().unwrap_or(0))
}
