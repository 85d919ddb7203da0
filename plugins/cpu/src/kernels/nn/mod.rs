//! Kernels of neural networks.

pub(super) mod activation;
pub(super) mod batch_norm;
mod bias;
pub(super) mod conv;
pub(super) mod depthwise;
mod im2col;
pub(super) mod pool;
pub(super) mod softmax;
