//! What authors write against: the [`Kernel`] trait, the contexts that a kernel, a shape function or a pass is given, and
//! what a library has from the host that opened it.

pub use tenon_author::{
    AsyncCall, AttrReader, CancelGuard, Cells, ComputeContext, CopyTarget, CreateContext, Dim,
    EncodedValue, EncodedVariant, FnTable, GradientContext, GradientFunction, Handle, InOut, Kept,
    KeptKnobs, Kernel, KernelFn, Knob, Knobs, Mode, Native, NewNode, NodeMaker, NodeNumber, Packed,
    PassContext, Piece, Prepack, ResourceHandle, ResourceValue, ShapeContext, ShapeFunction,
    ShapeHandle, ShapeResult, SharedVars, StateContext, StepWatch, Supported, Supports, TensorSink,
    Var, VarGuard, Variant, VariantRef, VariantValue, enter_pass, shape_entry,
};
#[doc(hidden)]
pub use tenon_author::{
    Optional, PrepackEntries, SupportsEntry, WithoutPrepack, WithoutSupports, type_table,
};
pub use tenon_framework::{
    attr::FromAttr,
    plugin::{
        PluginHandle, guard, host, install_host, install_panic_hook, log, panic_message,
        plugin_path, spawn,
    },
};
