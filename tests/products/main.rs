//! Products and convolutions through loaded plugins, on every instruction set of this CPU.
//!
//! The instruction set is a knob that a loaded library has once in a process: tests of one plugin take turns, and nothing
//! else here loads it.

mod float_gradients;
mod float_products;
mod quantized_conv;
mod quantized_matmul;
