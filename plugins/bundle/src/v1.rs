//! V1 files: all of a checkpoint, or a shard of it, in one table, with the elements in messages.

mod reader;
mod values;
mod writer;

pub use reader::{SavedTensor, SliceFiles};
pub use writer::{Saved, write_slices};

/// The version of the format that this crate reads and writes.
const VERSION: i32 = 1;
