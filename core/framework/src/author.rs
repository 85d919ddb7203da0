//! What authors write against: the [`Kernel`] trait, the contexts that a kernel or a shape function is
//! given, and the wrapper that keeps panics on the author's side of the boundary.
//!
//! These stand here and not in `tenon-sdk` because the standard ops and the host's own kernels are
//! written against them too; the SDK adds the door (`export_plugin!`) and the prelude.

mod attrs;
mod call;
mod compute;
mod create;
mod encoded;
mod integers;
mod interned;
mod kept;
mod kernel;
mod memory;
mod misuse;
mod native;
mod parallel;
mod pass;
mod plain;
mod resource;
mod shape;
mod slots;
mod state;
mod strings;
mod variant;
mod watch;

pub use crate::{
    attr::FromAttr,
    plugin::{
        KeptKnobs, Knob, Knobs, PluginHandle, guard, host, install_host, install_panic_hook, log,
        panic_message, plugin_path, spawn,
    },
};
pub use attrs::AttrReader;
pub use call::{AsyncCall, CancelGuard};
pub use compute::{ComputeContext, InOut};
pub use create::{CreateContext, Supported};
pub use encoded::{EncodedValue, TensorSink};
pub use kept::Kept;
pub use kernel::{FnTable, Kernel, KernelFn, Mode, Packed, Prepack, Supports};
#[doc(hidden)]
pub use kernel::{
    Optional, PrepackEntries, SupportsEntry, WithoutPrepack, WithoutSupports, type_table,
};
pub use native::Native;
pub use pass::{NewNode, NodeNumber, PassContext, enter_pass};
pub use resource::{Handle, ResourceHandle, ResourceValue};
pub use shape::{Dim, ShapeContext, ShapeFunction, ShapeHandle, ShapeResult, shape_entry};
pub use state::{SharedVars, StateContext, Var, VarGuard};
pub(crate) use variant::table as variant_table;
pub use variant::{CopyTarget, Variant, VariantRef, VariantValue};
pub use watch::StepWatch;
