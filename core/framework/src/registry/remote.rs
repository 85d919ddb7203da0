//! Kernels and shape functions that are not in this process.
//!
//! A definition says by itself where its entries are: a kernel of an isolated plugin has a [`RemoteKernel`] beside a
//! table that only knows how to compute and to end, an op has a [`RemoteShape`] in the place of its shape function.
//! The code that chooses, plans and runs kernels sees no difference.

use crate::tensor::Memory;
use std::sync::Arc;
use tenon_abi::{Code, Create, KernelState, Support};

/// The replacement of those entries of a kernel that need to know to which kernel they belong.
pub trait RemoteKernel: Send + Sync {
    /// As the entry `create` of a kernel's table.
    ///
    /// # Safety
    /// A filled struct, and a place for the state.
    unsafe fn create(&self, create: &Create, state: *mut *mut KernelState) -> Code;

    /// As the entry `supports` of a kernel's table.
    ///
    /// # Safety
    /// A filled struct.
    unsafe fn supports(&self, create: &Create) -> Support;

    /// The memory that outputs are put into: host memory that the kernel's process can write.
    fn memory(&self) -> &Arc<dyn Memory>;
}
