//! Layouts of extension links, for their hashes.

use super::StructLayout;
use crate::{
    CollectiveJoin, ExtBench, ExtCapture, ExtCases, ExtCollectives, ExtCost, ExtFacts,
    ExtFunctions, ExtGradient, ExtHandles, ExtNative, ExtNativeOf, ExtPass, ExtTimers, ExtVariant,
    ExtVariants, Facts, GradientNode, GradientParts, GradientTable,
};

/// Layout of [`ExtCases`], for its hash.
pub const EXT_CASES: StructLayout = struct_layout!(ExtCases { header, cases });
/// Layout of [`ExtBench`], for its hash.
pub const EXT_BENCH: StructLayout = struct_layout!(ExtBench { header, calls, flops, bytes });
/// Layout of [`Facts`], which a link holds.
pub(super) const FACTS: StructLayout = struct_layout!(Facts {
    flags,
    role,
    value,
    refusal,
    symmetry,
    gradient,
    passed_input,
    passed_output,
    deciding_inputs
});
/// Layout of [`ExtFacts`], for its hash.
pub const EXT_FACTS: StructLayout = struct_layout!(ExtFacts { header, facts });
/// Layout of [`ExtCost`], for its hash.
pub const EXT_COST: StructLayout = struct_layout!(ExtCost { header, fixed_ns, per_element_ns });
/// Layout of [`ExtPass`], for its hash.
pub const EXT_PASS: StructLayout =
    struct_layout!(ExtPass { header, name, help, run, source, late });
/// Layout of [`ExtVariant`], for its hash.
pub const EXT_VARIANT: StructLayout = struct_layout!(ExtVariant { header, table, source });
/// Layout of [`ExtNative`], for its hash.
pub const EXT_NATIVE: StructLayout = struct_layout!(ExtNative { header, api, device, stream });
/// Layout of [`ExtNativeOf`], for its hash.
pub const EXT_NATIVE_OF: StructLayout = struct_layout!(ExtNativeOf { header, native });
/// Layout of [`ExtFunctions`], for its hash.
pub const EXT_FUNCTIONS: StructLayout =
    struct_layout!(ExtFunctions { header, find, retain, release, call, cancel });
/// Layout of [`ExtCollectives`], for its hash.
pub const EXT_COLLECTIVES: StructLayout =
    struct_layout!(ExtCollectives { header, join, send, recv, abort, release });
/// Layout of [`CollectiveJoin`].
pub(super) const COLLECTIVE_JOIN: StructLayout = struct_layout!(CollectiveJoin {
    struct_size,
    kind,
    group_key,
    group_size,
    instance_key,
    dtype,
    is_source,
    rank,
    dims,
    timeout_ns
});
/// Layout of [`ExtGradient`], for its hash.
pub const EXT_GRADIENT: StructLayout = struct_layout!(ExtGradient { header, gradient });
/// Layout of [`GradientParts`].
pub(super) const GRADIENT_PARTS: StructLayout =
    struct_layout!(GradientParts { kind, reserved, values, indices, dense_shape });
/// Layout of [`GradientNode`].
pub(super) const GRADIENT_NODE: StructLayout = struct_layout!(GradientNode {
    struct_size,
    reserved,
    op,
    name,
    inputs,
    input_count,
    control,
    control_count,
    attrs,
    attr_count,
    copied
});
/// Layout of [`GradientTable`].
pub(super) const GRADIENT_TABLE: StructLayout = struct_layout!(GradientTable {
    struct_size,
    reserved,
    name,
    op,
    scope,
    attrs,
    input_count,
    output_count,
    input,
    output,
    is_wanted,
    gradient,
    dense_gradient,
    dtype,
    shape,
    constant,
    same_shape,
    add,
    set,
    fail
});
/// Layout of [`ExtHandles`], for its hash.
pub const EXT_HANDLES: StructLayout = struct_layout!(ExtHandles { header, remove, has_name });
/// Layout of [`ExtVariants`], for its hash.
pub const EXT_VARIANTS: StructLayout = struct_layout!(ExtVariants { header, encode, decode });
/// Layout of [`ExtTimers`], for its hash.
pub const EXT_TIMERS: StructLayout = struct_layout!(ExtTimers { header, create, elapsed_ns });
/// Layout of [`ExtCapture`], for its hash.
pub const EXT_CAPTURE: StructLayout =
    struct_layout!(ExtCapture { header, begin, end, launch, destroy });
