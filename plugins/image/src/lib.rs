//! Images on the CPU: a plugin of its own, so that who needs none does not compile codecs.
//!
//! Its kernels are for device type `CPU`, which plugins/cpu brings. Pixels lie as
//! `[batch, height, width, channels]`. `resize` holds what the resizing ops share.

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
