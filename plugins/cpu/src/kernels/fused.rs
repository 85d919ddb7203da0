//! Kernels of the ops that fusion creates: each step computes and rounds like the op itself.

mod attention;
mod convolution;
mod descent;
mod elementwise;
mod epilogue;
mod functions;
mod gelu;
mod heads;
mod layer_norm;
mod layer_norm_grad;
mod mask;
mod matmul;
mod program;
mod softmax_scale;
