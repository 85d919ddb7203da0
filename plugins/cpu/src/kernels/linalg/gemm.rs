//! Products of large float matrices: `C = A B` by tiles of `C` that stay in registers.
//!
//! - [`vector`]: the operations of a vector register; an instruction set's file names the
//!   instructions.
//! - [`accumulate`]: the tile. For each factor along the depth it loads a few vectors of a row of
//!   `B`, broadcasts one factor of each row of `A`, and adds the products.
//! - [`left`] and [`right`]: the factors as tiles read them, in place or packed. Rows of `A` are
//!   packed from anything that implements [`left::Left`]: a matrix, or the windows of images, for
//!   which no matrix of patches is made.
//! - [`lines`]: rows of the left factor that overlap in memory, and are read from there;
//!   [`pieces`]: the positions of the factors of a row.
//! - [`blocks`]: the loops around a tile, which keep its operands in the caches.
//! - [`ending`]: the operations on results before they leave the registers, or the cache.
//! - [`matrices`]: matrices as right factors, read in place or packed for one product;
//!   [`turned`]: few rows times a matrix that is stored by columns.
//! - [`spread`]: distribution over threads; [`constant`]: right factors that are packed once.
//!
//! A sum is that of its terms in order, in blocks along the depth whose length depends only on the
//! matrices' sizes and the instruction set: results are the same for any number of threads. A sum
//! of few rows is kept in several parts.

pub mod accumulate;
pub mod blocks;
pub mod constant;
pub mod ending;
pub mod isa;
pub mod left;
pub mod lines;
pub mod matrices;
pub mod output;
pub mod pieces;
pub mod right;
pub mod scratch;
pub mod spread;
pub mod turned;
pub mod vector;

#[cfg(test)]
mod tests;
