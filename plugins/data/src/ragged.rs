//! Ragged tensors: values, and for each ragged dimension a vector of splits, in which row `i` has what is from number `i`
//! to before number `i + 1`: values, or rows of the next ragged dimension.
//!
//! `splits` reads and checks splits. `dense` makes whole tensors, `sparse` sparse ones, `gather` picks rows, `range` makes
//! rows of numbers, `rows` gives values to rows that have none, and `variant` has ragged tensors as values of variants.
//!
//! # Invariants
//! - Splits come from anywhere: that they ascend from 0 to the number of what they split is checked before they are used.

mod dense;
mod gather;
mod range;
mod rows;
mod sparse;
mod splits;
mod variant;
