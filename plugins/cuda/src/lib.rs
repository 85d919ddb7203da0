//! NVIDIA GPUs: device type `CUDA`.
//!
//! One binary serves machines with and without a GPU. Nothing of CUDA is needed to build the plugin, and nothing
//! is linked: the driver and NVIDIA's libraries are looked for when a host probes for devices
//! ([`libraries`]). Where the driver is missing, too old or without a device, that is the reason that the
//! host shows; where another library is missing, the kernels that need it are not supported and say so.
//!
//! | module | what |
//! |---|---|
//! | [`libraries`] | which of NVIDIA's libraries are there, before anything of them is called |
//! | [`fault`] | what the driver's results mean: an error of this call, or the end of the device |
//! | [`device`] | the device type: memory, copies, streams, events, loss |
//! | [`cublaslt`] | products of matrices by NVIDIA's library |
//! | [`compile`] | CUDA C to machine code by NVRTC, kept on disk |
//! | [`launch`] | a kernel's call as a launch on its stream |
//! | [`cudnn`] | convolutions, poolings and batch normalisation by cuDNN, where it is there |
//! | [`kernels`] | the kernels: registrations in Rust, code for the device in `kernels/cu` |
//! | `arguments` | addresses and factors, as NVIDIA's libraries take them |
//! | `search` | the fastest of several algorithms of a library, by measurement, for who asks for it |
//! | [`settings`] | the plugin's knobs |
//!
//! # Invariants
//! - No function of a library is called before [`libraries::require`] has said that the library is there: cudarc
//!   panics when one is missing.
//! - A step waits for nothing but its own streams: there is no synchronisation of a whole device.
//! - Once a device is lost, nothing of CUDA is called for it any more but what gives resources back.

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
