//! What graphs compute, and how their kernels are chosen: passes, quantisation, kernels by shape and by time, the
//! figures of a runtime, files and images, and graphs and calls that are nearly right.
//!
//! Tests here run at the same time: none looks at what the whole process holds, and none sets a knob that another reads.

mod checkpoints;
mod files;
mod fused_gradients;
mod gradients;
mod graph_passes;
mod images;
mod monitor;
mod op_fuzz;
mod per_shape;
mod quantize;
mod tuning;
mod zoo_sessions;
