//! Shape inference: what is known of the outputs of a node before it runs.
//!
//! [`infer`] runs the shape function of one op over what is known of the inputs ([`ValueInfo`]) and gives
//! the same for the outputs, so that a pass over a graph feeds the results of one node to the next. The
//! shape function sees opaque handles and the entries of [`SHAPE_TABLE`]; [`InferenceContext`] is what those
//! handles mean.
//!
//! **Identity of unknown dimensions.** An unknown dimension is a [`Symbol`], made by the graph's [`Symbols`];
//! equal symbols are equal sizes throughout the graph. What a shape function merges holds for its own outputs
//! only: a node states nothing about its inputs if it does not run, as on a branch that is not taken.
//!
//! **Values.** Beside its shape, a value may be known as a constant, or as a short list of integers of which
//! some are known and some are dimensions ([`SymbolicValue`]). [`infer`] carries both by the rule that the op states
//! ([`ValueRule`](crate::op::ValueRule)), and through what the op passes on, so that a shape computed in the graph
//! reaches `Reshape` or `Fill`. Ops that state no rule give shapes only.
//!
//! What it is not: the order of the nodes, loops, feeds. A caller that feeds a tensor overwrites its
//! [`ValueInfo`]; in a loop it gives the inputs of a `Merge` that are not computed yet as unknown, or under a shape
//! that it then confirms.
//!
//! ```
//! use tenon_framework::{PartialShape, infer::{SymbolicShape, Symbols}};
//!
//! let mut symbols = Symbols::default();
//! let shape = SymbolicShape::from_partial(&PartialShape::new(&[-1, 3])?, &mut symbols);
//! assert_eq!(shape.partial().to_string(), "[?,3]");
//! # Ok::<(), tenon_framework::shape::ShapeError>(())
//! ```

mod context;
mod propagate;
mod table;

pub use crate::symbolic::{
    Dimension, HandlePart, Item, Symbol, SymbolicShape, SymbolicValue, Symbols, ValueInfo,
};
pub use context::InferenceContext;
pub use table::SHAPE_TABLE;

use crate::{
    KernelError,
    attr_view::AttrTable,
    op::{OpDef, OpError, Signature},
    plugin::host,
};
use std::ptr;

/// Infers what is known of the outputs of a node.
///
/// `attrs` holds every attribute, defaults included; `inputs` has an element per flat input; `symbols` is the
/// graph's, and gives the unknown dimensions of the outputs that no input has.
///
/// # Errors
/// What the shape function refuses, a panic in it, contradictions among shapes (`INVALID_ARGUMENT`), another
/// number of inputs than the attributes say.
///
/// # Panics
/// When no host's table is installed ([`crate::plugin::install_host`]).
pub fn infer(
    op: &OpDef,
    attrs: &AttrTable,
    inputs: &[&ValueInfo],
    symbols: &mut Symbols,
) -> Result<Vec<ValueInfo>, KernelError> {
    let signature = Signature::resolve(op, attrs.attrs()).map_err(op_error)?;
    if inputs.len() != signature.inputs.len() {
        return Err(KernelError::invalid_argument(format!(
            "op {}: expected {} inputs, found {}",
            op.name,
            signature.inputs.len(),
            inputs.len()
        )));
    }
    let outputs = match &op.remote {
        Some(remote) => remote.infer(attrs, inputs, symbols),
        None => infer_here(op, attrs, inputs, &signature, symbols),
    };
    let shape = |at: usize| inputs[at].shape.partial().to_string();
    let mut outputs =
        outputs.map_err(|error| op.naming_inputs(error, &signature.input_args, shape))?;
    propagate::propagate(op, attrs, &signature, inputs, &mut outputs);
    Ok(outputs)
}

/// Runs the shape function of this process.
fn infer_here(
    op: &OpDef,
    attrs: &AttrTable,
    inputs: &[&ValueInfo],
    signature: &Signature,
    symbols: &mut Symbols,
) -> Result<Vec<ValueInfo>, KernelError> {
    let mut context = InferenceContext::new(attrs, inputs, signature, std::mem::take(symbols));
    let ran = run(op, &mut context);
    let outputs = ran.and_then(|()| context.outputs());
    *symbols = context.into_symbols();
    outputs
}

fn op_error(error: OpError) -> KernelError {
    KernelError::new(error.code(), error.to_string())
}

/// Runs the shape function; without one the outputs stay unknown.
fn run(op: &OpDef, context: &mut InferenceContext) -> Result<(), KernelError> {
    let Some(entry) = op.shape.run else { return Ok(()) };
    let call = ptr::from_mut(context).cast();
    // SAFETY: the definition keeps its shape function callable; the context lives through the call and
    // no other code uses it.
    let code = unsafe { entry(host(), call) };
    if code.is_ok() {
        return Ok(());
    }
    let message = context.take_message().unwrap_or_else(|| {
        format!("the shape function of op {} refused its inputs without a message", op.name)
    });
    Err(KernelError::new(code, message))
}
