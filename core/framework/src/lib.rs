//! Types, definitions and registries of Tenon's kernel layer.
//!
//! What stands here is what an op, a kernel and a device are: element types ([`element`]), shapes, host
//! tensors, attributes, definitions, the registry, the traits that authors implement ([`author`]), and the
//! registration macros ([`reg`]). What is not here: the shapes and visiting orders of particular ops
//! (`tenon-geometry`), loading libraries and allocators (`tenon-host`), graphs (`tenon-graph`), steps
//! (`tenon-runtime`).

pub mod attr;
pub mod attr_view;
pub mod author;
pub mod device;
pub mod element;
mod error;
pub mod fusion;
pub mod growth;
pub mod infer;
pub mod knob;
pub mod op;
pub mod pages;
pub mod pass;
mod plugin;
pub mod reg;
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
