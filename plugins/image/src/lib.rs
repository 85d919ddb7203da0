//! Images on the CPU.
//!
//! What it is: a plugin with the kernels of TensorFlow's image ops for device type `CPU`: resizing
//! and its gradients, crops, projections, colours, boxes, PNG, JPEG, GIF and BMP. `resize` is shared by the resizing ops,
//! and `jpeg` decodes to TensorFlow's levels. It is a plugin of its own so that a build without
//! images does not compile codecs.
//!
//! What it is not: the device type, which plugins/cpu brings, or the ops, which `core/ops` defines.
//!
//! # Invariants
//! - Pixels are in the order `[batch, height, width, channels]`.
//! - A file may come from anywhere: decoding is safe code, and nothing is allocated by what a
//!   header says before it is compared with the limit of 1 GiB of pixels.
//! - PNG, and JPEG with Huffman codes and one or three components, are decoded to the levels that
//!   TensorFlow gives.

mod adjust;
mod any;
mod area;
mod bicubic;
mod bilinear;
mod bmp;
mod boxes;
mod colour;
mod crop;
mod crop_grad;
mod decode;
mod draw;
mod encode;
mod gif;
mod jpeg;
mod nearest;
mod project;
mod resize;
mod scale;

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();
