//! Gradients: of each op by central differences in float64, and of whole graphs against TensorFlow's.

mod array;
mod beyond;
mod engine;
mod frames;
mod functions;
mod goldens;
mod graphs;
mod many_calls;
mod math;
mod numeric;
mod second;
