//! Tensors by the coordinates of their values: `[values, rank]` numbers that say where each value is, the values, and the
//! shape of the whole. What no coordinates name is 0.
//!
//! `places` reads and checks coordinates, `moved` copies values of any type from place to place. `dense` makes whole
//! tensors and adds to them, `product` multiplies by a matrix, `factors` whole matrices of many zeros, `elements` computes with values where they are, `reduce`
//! with those of a row, which `counts` counts, `sets` takes as sets and `distance` as sequences. `order`, `join` and
//! `rows` change places: sorting and reshaping, joining, cutting, splitting, and values for rows that have none. `serial`
//! writes and reads messages.
//!
//! # Invariants
//! - Coordinates come from anywhere: each is compared with the shape before it is used.
//! - Sums are taken in the order of the values.

mod add;
mod counts;
mod dense;
mod distance;
mod elements;
mod factors;
mod join;
mod moved;
mod order;
mod places;
mod product;
mod reduce;
mod rows;
mod serial;
mod sets;

pub use moved::{MOVED, Values};
pub use rows::Filled;
