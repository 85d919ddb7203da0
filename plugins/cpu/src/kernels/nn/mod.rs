//! Kernels of neural networks.

mod activation;
pub(super) mod batch_norm;
mod bias;
pub(super) mod conv;
mod depthwise;
mod im2col;
pub(super) mod pool;
mod softmax;
