//! Linear algebra: products, decompositions and solvers.

mod decompose;
mod diag;
mod einsum;
mod product;
mod solvers;

pub(crate) use product::{matmul, matmul_shape, matmul_shape_of};
