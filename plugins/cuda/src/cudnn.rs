//! cuDNN: convolutions, poolings and batch normalisation by NVIDIA's library, where it is there.
//!
//! Its functions are taken from the library by name, all of them before the first is called (`Api`): a library that
//! lacks one is no library. Results are plain numbers here, since versions of cuDNN number them differently.
//!
//! | file | what |
//! |---|---|
//! | `api.rs` | the functions |
//! | `descriptors.rs` | what describes tensors, filters, convolutions |
//! | `handles.rs` | a handle for each stream of a GPU |
//! | `convolution.rs` | a convolution of some shapes: its descriptors, and the algorithms that the heuristics name |
//! | `shapes.rs` | what a convolution depends on, and what cuDNN does not have |
//! | `windows.rs` | a pooling, and a batch normalisation, of some shapes |
//! | `numbers.rs` | numbers of the library's headers, and what is believed of it, for `.ci/cuda-libraries` |
//!
//! # Invariants
//! - Handles and descriptors go before their GPU's context does: they are kept by kernels.
//! - Products of floats are products of floats: TF32 is used only where the knob `convolution_tf32` allows it.

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

/// The library, if it is there with all that is used of it.
///
/// # Errors
/// `UNAVAILABLE` with what is missing.
pub(crate) fn require() -> Result<(), KernelError> {
    libraries::require(Library::Cudnn)?;
    Api::get().map(|_| ())
}
