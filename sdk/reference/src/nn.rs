//! Neural networks: `Relu`, `Relu6`, `BiasAdd`, `Softmax` (here), `Conv2D`, `DepthwiseConv2dNative`,
//! `MaxPool`, `AvgPool`, `FusedBatchNormV3`.

mod activation;
mod batch_norm;
mod conv;
mod pool;

pub use activation::{bias_add, relu, relu6, softmax};
pub use batch_norm::{BatchNormInputs, BatchNormOutputs, BatchNormParams, fused_batch_norm};
pub use conv::conv2d;
pub use pool::{avg_pool, max_pool};
