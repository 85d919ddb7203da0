//! NVIDIA GPUs: device type `CUDA`.
//!
//! One binary serves machines with and without a GPU. Building the plugin needs no part of CUDA,
//! and the plugin links none: it looks for the driver and NVIDIA's libraries when a host probes for
//! devices ([`libraries`]). Where the driver is missing, too old or without a device, the host
//! shows that as the reason; where another library is missing, the kernels that need it are
//! unsupported and say so.
//!
//! | module | what |
//! |---|---|
//! | [`libraries`] | which of NVIDIA's libraries are installed, checked before any of them is called |
//! | [`fault`] | what the driver's results mean: an error of this call, or the loss of the device |
//! | [`device`] | the device type: memory, copies, streams, events, loss |
//! | [`cublaslt`] | matrix products by cuBLASLt |
//! | [`compile`] | compiles CUDA C to machine code with NVRTC, and caches it on disk |
//! | [`launch`] | launches a kernel's call on its stream |
//! | [`cudnn`] | convolutions, poolings and batch normalisation by cuDNN, where it is installed |
//! | [`kernels`] | the kernels: registrations in Rust, code for the device in `kernels/cu` |
//! | `arguments` | addresses and scaling factors in the form that NVIDIA's libraries take |
//! | `search` | finds the fastest of a library's algorithms by measurement, on request |
//! | [`settings`] | the plugin's knobs |
//!
//! # Invariants
//! - [`libraries::require`] confirms that a library is installed before any function of it is
//!   called: cudarc panics when one is missing.
//! - A step waits only for its own streams; nothing synchronises a whole device.
//! - Once a device is lost, only functions of CUDA that release resources are called for it.

mod arguments;
pub mod compile;
pub mod cublaslt;
pub mod cudnn;
pub mod device;
pub mod fault;
pub mod kernels;
pub mod launch;
pub mod libraries;
mod search;
pub mod settings;

pub use device::Cuda;
pub use settings::Settings;

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();
