//! Plain kernels that specify the standard ops.
