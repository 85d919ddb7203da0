//! Which ops do more than give a value.

use crate::Node;

/// Whether a node gives its outputs and does nothing else: equal inputs, equal outputs, and nobody notices
/// whether it runs once, twice or never. Not so are ops with state (random ones among them), those that take or
/// give references, resources and variants, those that the executor runs itself, and those that check or tell
/// something.
pub fn is_pure(node: &Node) -> bool {
    let types = || node.signature.inputs.iter().chain(&node.signature.outputs);
    !node.op.stateful
        && !node.op.is_built_in()
        && !node.op.facts().checks
        && types().all(|dtype| !dtype.is_ref() && !is_handle(*dtype))
}

/// Whether values of the type stand for something else.
fn is_handle(dtype: tenon_framework::DType) -> bool {
    matches!(dtype, tenon_framework::DType::RESOURCE | tenon_framework::DType::VARIANT)
}

/// Whether a pass may put another node in the place of this one: it is pure, and asks for no kernel of a
/// certain label.
pub fn is_rewritable(node: &Node) -> bool {
    is_pure(node) && node.attrs.get("_kernel").is_none()
}
