//! Convolutions with 3x3 and 5x5 filters by Winograd's algorithm: labels `winograd2`, `winograd4` and
//! `winograd5`; and the gradients of such convolutions by their inputs, which are convolutions over the
//! gradients of the outputs ([`by_input`]); and their gradients by their filters ([`by_filter`]).
//!
//! The image is cut into tiles of 2x2 or 4x4 outputs, F(2x2, 3x3) and F(4x4, 3x3). A tile's 4x4 or
//! 6x6 inputs are transformed, multiplied with the transformed filter, and transformed back: 16
//! multiplications for 4 outputs, or 36 for 16, where the definition has 9 for each. At each of the
//! 16 or 36 points, that is one matrix product of all tiles' channels with a constant factor.
//! [`transforms`] has the matrices, `tiles` applies them, `factors` are the transformed filters,
//! `blocks` puts it all together, [`contract`] says what results are worth and when a kernel takes
//! a convolution.
//!
//! The algorithm is not valid for infinities. An infinity or NaN in one input, or an overflow on
//! the way, reaches all outputs of its tile. A tile whose outputs are not all finite is therefore
//! computed again by the definition, so that exactly those outputs are infinite or NaN that are so
//! by the definition.

mod blocks;
mod by_filter;
mod by_input;
pub mod contract;
mod factors;
pub mod kernel;
#[cfg(test)]
mod tests;
mod tiles;
pub mod transforms;
