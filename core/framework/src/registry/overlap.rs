//! Kernels among which neither key nor priority decides.

use super::kernel_def::KernelDef;

/// Whether some node could be served by both, with nothing but the declared order to decide.
pub(super) fn same_key(a: &KernelDef, b: &KernelDef) -> bool {
    a.op == b.op
        && a.device_type == b.device_type
        && a.label == b.label
        && a.priority == b.priority
        && constraints_overlap(a, b)
}

/// No attribute that both constrain distinguishes them.
fn constraints_overlap(a: &KernelDef, b: &KernelDef) -> bool {
    a.constraints.iter().all(|constraint| match b.types_of(&constraint.attr) {
        Some(types) => constraint.types.iter().any(|dtype| types.contains(dtype)),
        None => true,
    })
}
