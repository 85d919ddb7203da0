//! Neural networks: `Relu`, `Relu6`, `BiasAdd`, `Softmax` (here), `Conv2D`, `DepthwiseConv2dNative`,
//! `MaxPool`, `AvgPool`, `FusedBatchNormV3`, and the gradients that a classifier's training needs.

mod activation;
mod batch_norm;
mod conv;
mod gradient;
mod pool;

pub use activation::{bias_add, relu, relu6, softmax};
pub use batch_norm::{BatchNormInputs, BatchNormOutputs, BatchNormParams, fused_batch_norm};
pub use conv::conv2d;
pub use gradient::{
    bias_add_grad, conv2d_backprop_filter, conv2d_backprop_input, max_pool_grad, relu_grad,
    sparse_softmax_cross_entropy,
};
pub use pool::{avg_pool, max_pool};
