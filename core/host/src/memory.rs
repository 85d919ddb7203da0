//! Memory: the host's own, pooled and accounted, and that of devices.
//!
//! Buffers come from a [`Memory`](tenon_framework::tensor::Memory): [`HostMemory`] for the host,
//! [`DeviceMemory`](crate::devices::DeviceMemory) for a kind of memory of a device. Both count what is in use, so that an error for want
//! of memory names the memory, what was asked for, what is in use, and the limit. A process that examines
//! kernels has its host memory [`guarded`].

mod copy;
pub mod guarded;
mod host;
mod limit;
mod pool;
mod stats;

pub use copy::copy_on_host;
pub use host::{BlockSource, HOST_CACHE_BYTES, HostMemory, allocate_entry, deallocate_entry};
pub(crate) use limit::apply as apply_limit;
pub use pool::{Block, FreeLists, block_size};
pub use stats::{Account, MemoryStats};
