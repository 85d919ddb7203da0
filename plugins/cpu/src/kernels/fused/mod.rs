//! Kernels of the ops that fusion makes.

mod matmul;
