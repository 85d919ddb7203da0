//! Kernels of the ops that fusion makes: each step computes what the op by itself does, rounded as it rounds.

mod attention;
mod convolution;
mod elementwise;
mod epilogue;
mod functions;
mod gelu;
mod heads;
mod layer_norm;
mod mask;
mod matmul;
mod program;
mod softmax_scale;
