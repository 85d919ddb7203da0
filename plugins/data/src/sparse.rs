//! Tensors by the coordinates of their values: `[values, rank]` numbers that say where each value is, the values, and the
//! shape of the whole. What no coordinates name is 0.
//!
//! `places` reads and checks coordinates, `moved` copies values of any type from place to place. `dense` makes whole
//! tensors and adds to them, `product` multiplies by a matrix, `elements` computes with values where they are, `reduce`
//! with those of a row; `order`, `join` and `rows` change places: sorting and reshaping, joining, cutting, splitting, and
//! values for rows that have none.
//!
//! # Invariants
//! - Coordinates come from anywhere: each is compared with the shape before it is used.
//! - Sums are taken in the order of the values.

mod add;
mod dense;
mod elements;
mod join;
mod moved;
mod order;
mod places;
mod product;
mod reduce;
mod rows;

pub use moved::{MOVED, Values};
pub use rows::Filled;
