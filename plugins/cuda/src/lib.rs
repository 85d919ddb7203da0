//! NVIDIA GPUs: device type `CUDA`.
//!
//! What it is: one binary for machines with and without a GPU. Nothing of CUDA is needed to build
//! the plugin, and nothing is linked: the driver and NVIDIA's libraries are looked for when a host
//! probes for devices ([`libraries`]). If the driver is missing, too old or without a device, the
//! host shows that as the reason; if another library is missing, the kernels that need it are not
//! supported and say so.
//!
//! | module | what |
//! |---|---|
//! | [`libraries`] | which of NVIDIA's libraries are there, before a function of them is called |
//! | [`fault`] | what the driver's results mean: an error of this call, or the end of the device |
//! | [`device`] | the device type: memory, copies, streams, events, loss |
//! | [`cublaslt`] | matrix products by cuBLASLt |
//! | [`compile`] | compiles CUDA C to machine code with NVRTC, and caches it on disk |
//! | [`launch`] | launches a kernel's call on its stream |
//! | [`cudnn`] | convolutions, poolings and batch normalisation by cuDNN, where it is installed |
//! | [`kernels`] | the kernels: registrations in Rust, code for the device in `kernels/cu` |
//! | `arguments` | addresses and factors, as NVIDIA's libraries take them |
//! | `search` | the fastest of several algorithms of a library, by measurement, where a knob asks for it |
//! | [`settings`] | the plugin's knobs |
//!
//! What it is not: the stand-in for CUDA on which it is tested (`tests/fake_cuda`), or the checks
//! of its kernels by NVIDIA's tools (`tools`, `.ci/cuda-kernels`).
//!
//! # Invariants
//! - No function of a library is called before [`libraries::require`] has said that the library is
//!   there: cudarc panics when one is missing.
//! - A step waits for nothing but its own streams: a whole device is never synchronised.
//! - Once a device is lost, the only calls for it are those that give resources back.

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
