//! Convolutions, poolings and batch normalisation by cuDNN, where it is installed.
//!
//! Its functions are looked up in the library by name, all of them before the first is called
//! (`Api`): a library that lacks one is not used. Results are plain numbers here, since versions of
//! cuDNN number them differently.
//!
//! | file | what |
//! |---|---|
//! | `api.rs` | the functions |
//! | `descriptors.rs` | descriptors of tensors, filters and convolutions |
//! | `handles.rs` | a handle for each stream of a GPU |
//! | `convolution.rs` | a convolution of given shapes: its descriptors, and the algorithms that the heuristics name |
//! | `shapes.rs` | what a convolution depends on, and which ones cuDNN does not support |
//! | `windows.rs` | a pooling, and a batch normalisation, of given shapes |
//! | `numbers.rs` | numbers of the library's headers, and what the plugin assumes about it, for `.ci/cuda-libraries` |
//!
//! # Invariants
//! - Kernels own handles and descriptors, and drop them before their GPU's context.
//! - Float products are computed in float precision: TF32 is used only where the knob
//!   `convolution_tf32` allows it.

mod api;
mod convolution;
mod descriptors;
mod handles;
mod numbers;
mod shapes;
mod windows;

pub(crate) use convolution::{Addresses, Convolution};
pub(crate) use handles::Handles;
#[doc(hidden)]
pub use numbers::{believed, describe};
pub(crate) use shapes::{Ending, Order, Shapes};
pub(crate) use windows::{Lists, Normalisation, PoolShapes, Pooling};

use crate::libraries::{self, Library};
use api::Api;
use tenon_sdk::KernelError;

/// Checks that the library is installed and has every function that is called.
///
/// # Errors
/// `UNAVAILABLE`, naming what is missing.
pub(crate) fn require() -> Result<(), KernelError> {
    libraries::require(Library::Cudnn)?;
    Api::get().map(|_| ())
}
