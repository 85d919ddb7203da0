//! Files of checkpoints, read and written: TensorFlow's bundles (V2) and older files (V1), and safetensors.
//!
//! What it is: what the plugin of the checkpoint ops and the command share. [`Bundle`] and [`BundleWriter`] are of bundles,
//! [`merge`] makes one of several; [`SliceFiles`] and [`write_slices`] are of V1 files, [`SafeFile`] and [`SafeWriter`] of
//! safetensors. Beneath them, `table` is the sorted table that bundles and V1 files have in common, `ordered` the keys of
//! slices, `strings` the form of elements whose sizes differ, `boxes` the copying between slices.
//!
//! What it is not: kernels, which are in plugins/checkpoint; training's list of recent checkpoints.
//!
//! # Invariants
//! - Every access to a file goes through `tenon-files`; [`Files`] names the argument for its messages.
//! - A checksum is verified whenever what it is of is read.
//! - Memory is taken only for bytes that a file has: a size in a file is compared with the size of the file first.
//! - A file is written under a temporary name, made durable, and then renamed. The index of a bundle is the last. A bundle
//!   that replaces one of the same prefix has another number of data files, so that the old one is complete until its
//!   index is replaced; TensorFlow reads both.
//! - Writers of one folder give their files names one after the other.
//!
//! ```
//! use tenon_bundle::{Bundle, BundleWriter, Content, Files};
//! use tenon_files::Access;
//! use tenon_sdk::DType;
//!
//! let folder = tempfile::tempdir().unwrap();
//! let (prefix, access) = (folder.path().join("model"), Access::to_any());
//! let files = Files::new(&access, "prefix");
//! let mut writer = BundleWriter::create(files, &prefix)?;
//! writer.add(b"w", DType::UINT8, &[3], Content::Bytes(&[1, 2, 3]))?;
//! writer.finish()?;
//!
//! let mut bundle = Bundle::open(files, &prefix)?;
//! let entry = bundle.find(b"w")?.expect("it was saved");
//! let mut bytes = [0; 3];
//! bundle.read(b"w", &entry, None, &mut bytes)?;
//! assert_eq!((entry.dims, bytes), (vec![3], [1, 2, 3]));
//! # Ok::<(), tenon_bundle::BundleError>(())
//! ```

mod boxes;
mod entry;
mod error;
mod files;
#[doc(hidden)]
pub mod fuzzing;
mod merge;
mod messages;
mod ordered;
mod reader;
mod safe;
mod slice;
mod strings;
mod table;
mod v1;
mod writer;

pub use entry::{Entry, element_count, stored_size};
pub use error::BundleError;
pub use files::{Files, Observer, Operation};
pub use merge::merge;
pub use reader::{Bundle, data_file, index_file};
pub use safe::{SafeFile, SafeTensor, SafeWriter};
pub use slice::{Extent, Part, TensorSlice, WHOLE};
pub use strings::Strings;
pub use table::Table;
pub use v1::{Saved, SavedTensor, SliceFiles, write_slices};
pub use writer::{BundleWriter, Content};

#[cfg(test)]
mod tests;
