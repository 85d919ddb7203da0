//! Kernels of neural networks.

mod activation;
mod batch_norm;
mod bias;
mod conv;
mod depthwise;
mod im2col;
mod pool;
mod softmax;
