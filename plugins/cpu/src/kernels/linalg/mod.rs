//! Matrix products: [`product`] is the algorithm, [`matmul`] and [`batch_matmul`] are the ops.

pub mod batch_matmul;
pub mod matmul;
pub mod product;
mod tile;
