//! Kernels of neural networks.

mod activation;
mod activation_grad;
pub(super) mod batch_norm;
mod batch_norm_grad;
mod bias;
pub(super) mod conv;
mod conv_grad;
mod conv_volume;
mod depthwise;
mod depthwise_grad;
mod dilation;
mod elu;
mod im2col;
mod loss;
mod lrn;
pub(super) mod pool;
mod pool_argmax;
mod pool_grad;
mod pool_volume;
mod softmax;
mod volume;
