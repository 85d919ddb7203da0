//! Tensors of the host process: a reference-counted buffer on one device and memory kind, an element
//! type, and a shape. Dense and row-major; host memory is aligned to 64 bytes at least.
//!
//! Plugins never see these types: they see the slots and views of a call.

mod buffer;
mod filler;
mod host_memory;
mod string;
mod value;

pub use buffer::{Buffer, Memory};
pub use filler::TensorFiller;
pub use host_memory::host_memory;
pub use string::{StringMeter, StringStorage, destroy_strings, set_string, set_string_meter};
pub use value::{Tensor, TensorError};
