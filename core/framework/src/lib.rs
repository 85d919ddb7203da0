//! Types, definitions and registries of Tenon's kernel layer.
//!
//! What it is: what an op, a kernel and a device are. This crate has element types ([`element`]),
//! shapes, host tensors, attributes, the definitions of ops ([`op`]), the registry ([`registry`]),
//! shape inference ([`infer`]), what the host knows of devices ([`device`]), and the list of what is
//! linked in ([`linked`]).
//!
//! What it is not: the traits that authors implement and the registration macros (`tenon-author`),
//! the shapes and visiting orders of particular ops (`tenon-geometry`), the standard ops
//! (`tenon-ops`), loading of libraries and allocators (`tenon-host`), graphs (`tenon-graph`), steps
//! (`tenon-runtime`). Plugins import it through `tenon-sdk`.
//!
//! # Invariants
//! - A [`registry::Registry`] is an immutable snapshot. All registrations of a plugin are
//!   committed, or none is, and the order in which libraries register changes nothing.
//! - Choosing a kernel is a pure function over a snapshot and a query ([`registry::candidates`]).
//! - Locks and atomics come from [`sync`]. Every lock has a rank, and a thread takes locks in
//!   rising order of rank.
//!
//! ```
//! use tenon_framework::{
//!     op::OpDef,
//!     registry::{PluginId, PluginInfo, Registry, Transaction, commit_all},
//! };
//!
//! let mut plugin = Transaction::new(PluginInfo::linked(PluginId(0), "ops", "0", 0));
//! plugin.add_op(OpDef::from_spec("Twice", &["x: T"], &["y: T"], &["T: {float, double}"])?);
//! let before = Registry::new();
//! let (after, _) = commit_all(&before, vec![plugin]).unwrap();
//! assert!(before.op("Twice").is_none(), "a snapshot never changes");
//! assert!(after.op("Twice").is_some());
//! # Ok::<(), tenon_framework::op::OpError>(())
//! ```

pub mod attr;
pub mod attr_view;
pub mod device;
pub mod element;
mod error;
pub mod fusion;
pub mod gradient;
pub mod growth;
pub mod infer;
pub mod knob;
pub mod linked;
pub mod op;
pub mod pages;
pub mod pass;
pub mod plugin;
pub mod registry;
pub mod resource;
pub mod shape;
pub mod symbolic;
pub mod sync;
pub mod tensor;
#[doc(hidden)]
pub mod testing;
pub mod text;
mod view;

pub use error::{Code, KernelError};
pub use shape::{PartialShape, Shape};
pub use tenon_abi::{self as abi, DType};
pub use tensor::Tensor;
pub use view::{View, ViewMut};

/// For the expansion of macros only.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
}
