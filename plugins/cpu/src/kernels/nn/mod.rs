//! Kernels of neural networks.

mod activation;
mod activation_grad;
pub(super) mod batch_norm;
mod bias;
pub(super) mod conv;
mod depthwise;
mod elu;
mod im2col;
pub(super) mod pool;
mod softmax;
