//! Linear algebra: products, decompositions and what is solved with them.

mod decompose;
mod diag;
mod einsum;
mod product;

pub(crate) use product::{matmul, matmul_shape};
