//! The plugin for NVIDIA's GPUs, on the fake CUDA stack (`tests/fake_cuda`).
//!
//! A test here takes its turn (`session::turn`), since the fake driver and its orders are the process's, or runs in a
//! process of its own (`process::alone`), since the plugin looks for NVIDIA's libraries once.

mod cuda;
mod cuda_author;
mod cuda_cache;
mod cuda_calls;
mod cuda_machines;
mod cuda_memory;
mod cuda_nvidia;
mod cuda_overlap;
mod cuda_pinned;
mod cuda_recorded;
mod cuda_reduction;
mod cuda_refused;
mod cuda_training;
mod cuda_windows;
mod goldens_cuda;
mod goldens_cuda_nvidia;
