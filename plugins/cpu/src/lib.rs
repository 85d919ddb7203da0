//! The host device and its kernels.
