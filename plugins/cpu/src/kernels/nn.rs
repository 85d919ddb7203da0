//! Kernels of neural networks.

pub(super) mod activation;
mod activation_grad;
pub(super) mod batch_norm;
mod batch_norm_grad;
mod bias;
pub(super) mod conv;
mod conv_grad;
mod conv_volume;
pub(super) mod depthwise;
mod depthwise_grad;
mod dilation;
pub(super) mod elu;
mod frame;
mod im2col;
mod loss;
mod lrn;
mod patches;
pub(super) mod pool;
mod pool_argmax;
mod pool_grad;
mod pool_volume;
pub(super) mod softmax;
mod volume;
mod windows;
pub(super) mod winograd;
