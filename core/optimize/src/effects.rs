//! Which ops have effects beyond their outputs.

use tenon_graph::Node;

/// Whether a node is pure: equal inputs give equal outputs, and the node may be duplicated, merged
/// or dropped. Not pure are ops with state (random ones included), ops that read or write
/// references, resources or variants, ops that the executor runs itself, and ops that check or
/// print values.
pub fn is_pure(node: &Node) -> bool {
    let types = || node.signature.inputs.iter().chain(&node.signature.outputs);
    !node.op.stateful
        && !node.op.is_built_in()
        && !node.op.facts().checks
        && types().all(|dtype| !dtype.is_ref() && !is_handle(*dtype))
}

/// Whether values of this type are handles to something else.
fn is_handle(dtype: tenon_framework::DType) -> bool {
    matches!(dtype, tenon_framework::DType::RESOURCE | tenon_framework::DType::VARIANT)
}

/// Whether a pass may replace this node: it is pure and requests no kernel label.
pub fn is_rewritable(node: &Node) -> bool {
    is_pure(node) && node.attrs.get("_kernel").is_none()
}
