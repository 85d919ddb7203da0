//! Images on the CPU, as a separate plugin so that programs without them do not compile codecs.
//!
//! Its kernels are for device type `CPU`, which plugins/cpu registers. The layout of pixels is
//! `[batch, height, width, channels]`. `resize` has the common parts of the resizing ops.

mod bicubic;
mod bilinear;
mod boxes;
mod colour;
mod crop;
mod decode;
mod encode;
mod jpeg;
mod nearest;
mod resize;

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();
