//! Updates of parts of a variable, which indices name.
//!
//! `combine` says what an update does to an element, `places` which elements it reaches; `rows` and
//! `slices` have the kernels whose indices name rows and whose index vectors name slices, `boxes`
//! those of strided boxes.
//!
//! # Invariants
//! - Updates are applied in the order of the indices. A bad index is an error: what precedes it in
//!   the indices is written, and nothing after it.
//! - A handle's variable is locked shared, so that several calls update it at the same time, unless
//!   the op says `use_locking` or the elements are strings. The variable behind a reference is
//!   locked by one call at a time.

mod boxes;
mod combine;
mod places;
mod rows;
mod slices;

pub use combine::Product;
