//! What the authors of ops, kernels, devices, passes and variants write against.
//!
//! What it is: the traits that authors implement ([`Kernel`], [`device::DeviceKind`],
//! [`ResourceValue`], [`VariantValue`]), the contexts that their functions receive, the entries
//! around those functions, and the macros that register ([`reg`]). Plugins use it through
//! `tenon-sdk`, which adds the door (`export_plugin!`) and the prelude. The standard ops and the
//! host's own kernels use it directly.
//!
//! What it is not: what a host, a graph or a step knows of an op or a kernel. Definitions, tensors
//! and the registry are in `tenon-framework`.
//!
//! # Invariants
//! - A linked kernel and a loaded one are the same code behind the same table of entries.
//! - A panic of an author's code stays in the author's library: the wrapper around each entry turns
//!   it into an error.
//! - A registration is one constant, from which both the list entry and the manifest's record are
//!   made, so that the two cannot differ. The list ([`reg::registrations`]) is also a
//!   [`Source`](tenon_framework::linked::Source) of the process.
//!
//! ```standalone_crate
//! use tenon_author::{ComputeContext, ShapeContext, reg::registrations, register_kernel, register_op};
//! use tenon_framework::KernelError;
//!
//! register_op!(
//!     "Twice",
//!     inputs = &["x: float"],
//!     outputs = &["y: float"],
//!     shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
//! );
//!
//! fn twice(c: &ComputeContext<'_>) -> Result<(), KernelError> {
//!     let x = c.input::<f32>(0)?;
//!     let y = c.output::<f32>(0, x.dims)?;
//!     y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = x + x);
//!     Ok(())
//! }
//!
//! register_kernel!("Twice" on "CPU": fn twice);
//!
//! # fn main() {
//! let lines: Vec<String> = registrations().into_iter().map(|entry| entry.line()).collect();
//! assert_eq!(lines, ["op Twice", "kernel Twice - "]);
//! # }
//! ```

mod attrs;
mod call;
mod cells;
mod collective;
mod compute;
mod create;
pub mod device;
mod encoded;
mod function;
mod gradient;
mod integers;
mod interned;
mod kept;
mod kernel;
mod knobs;
mod links;
mod memory;
mod misuse;
mod native;
mod parallel;
mod pass;
mod pieces;
mod plain;
pub mod reg;
mod resource;
mod shape;
mod slots;
mod state;
mod strings;
#[doc(hidden)]
pub mod testing;
mod variant;
mod variants;
mod watch;

pub use attrs::AttrReader;
pub use call::{AsyncCall, CancelGuard};
pub use cells::Cells;
pub use collective::{Collective, CollectivePlace, CollectiveSpec};
pub use compute::{ComputeContext, InOut};
pub use create::{CreateContext, Supported};
pub use encoded::{EncodedValue, TensorSink};
pub use function::{Function, FunctionResults, Schedule};
pub use gradient::{GradientContext, GradientFunction, NodeMaker, enter_gradient};
pub use kept::Kept;
pub use kernel::{FnTable, Kernel, KernelFn, Mode, Packed, Prepack, Supports};
#[doc(hidden)]
pub use kernel::{
    Optional, PrepackEntries, SupportsEntry, WithoutPrepack, WithoutSupports, type_table,
};
pub use knobs::{KeptKnobs, Knob, Knobs};
pub use native::Native;
pub use pass::{NewNode, NodeNumber, PassContext, enter_pass};
pub use pieces::Piece;
pub use resource::{Handle, ResourceHandle, ResourceValue};
pub use shape::{Dim, ShapeContext, ShapeFunction, ShapeHandle, ShapeResult, shape_entry};
pub use state::{SharedVars, StateContext, Var, VarGuard};
pub(crate) use variant::table as variant_table;
pub use variant::{CopyTarget, Variant, VariantRef, VariantValue};
pub use variants::EncodedVariant;
pub use watch::StepWatch;

/// For the expansion of macros only.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
}
#[doc(hidden)]
pub use tenon_framework::abi;
