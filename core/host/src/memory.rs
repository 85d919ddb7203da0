//! Memory of the host, pooled and accounted, and of devices.
//!
//! Buffers come from a [`Memory`](tenon_framework::tensor::Memory): [`HostMemory`] for the host,
//! [`DeviceMemory`](crate::devices::DeviceMemory) for a kind of memory of a device. Both count
//! bytes in use, so that an out-of-memory error names the memory, the size requested, the bytes in
//! use, and the limit. A process that checks kernels can have its host memory [`guarded`].

mod copy;
pub mod guarded;
mod host;
mod limit;
mod pool;
mod stats;

pub use copy::{copy_of_slot, copy_on_host};
pub use host::{BlockSource, HOST_CACHE_BYTES, HostMemory, allocate_entry, deallocate_entry};
pub(crate) use limit::apply as apply_limit;
pub use pool::{Block, FreeLists, block_size};
pub use stats::{Account, MemoryStats};
