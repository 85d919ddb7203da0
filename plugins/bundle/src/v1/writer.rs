//! Writing of V1 files.

use super::{VERSION, values};
use crate::{
    BundleError, Content,
    entry::{element_count, shape_of, stored_size},
    files::{Files, Temporary},
    messages::{
        SavedSlice, SavedSliceMeta, SavedTensorSliceMeta, SavedTensorSlices, TensorSliceProto,
    },
    ordered::slice_key,
    slice::{Part, TensorSlice},
    table::TableWriter,
};
use prost::Message;
use std::{collections::BTreeMap, path::Path};
use tenon_proto::VersionDef;
use tenon_sdk::DType;

/// A tensor that is saved, or a part of one.
#[derive(Debug, Clone, Copy)]
pub struct Saved<'s> {
    /// Name of the tensor.
    pub name: &'s [u8],
    /// Which part of the tensor it is; `None` for all.
    pub part: Option<&'s Part>,
    /// The type of its elements.
    pub dtype: DType,
    /// The shape of what is saved.
    pub dims: &'s [i64],
    /// The elements.
    pub content: Content<'s>,
}

/// The most bytes of a message.
const MOST: usize = i32::MAX as usize;

impl Saved<'_> {
    fn slice(&self) -> TensorSlice {
        self.part.map_or_else(|| TensorSlice::whole(self.dims.len()), |part| part.slice.clone())
    }

    fn check(&self) -> Result<(), BundleError> {
        let name = String::from_utf8_lossy(self.name);
        if !values::is_supported(self.dtype) {
            return Err(BundleError::Unsupported(format!(
                "tensor '{name}': saving data type {} is not supported in V1 files: save it with SaveV2",
                self.dtype.name()
            )));
        }
        let count = element_count(self.dims);
        let (expected, found) = match self.content {
            Content::Bytes(bytes) => {
                let size = stored_size(self.dtype).unwrap_or(0) as u64;
                (count.and_then(|count| count.checked_mul(size)), bytes.len())
            }
            Content::Strings(texts) => (count, texts.len()),
        };
        match expected == Some(found as u64) {
            true => Ok(()),
            false => Err(BundleError::Argument(format!(
                "tensor '{name}': shape {:?} does not have {found} bytes or elements",
                self.dims
            ))),
        }
    }

    fn encoded(&self) -> Result<Vec<u8>, BundleError> {
        let proto = values::proto_of(self.dtype, self.content)?;
        let slice = Some(TensorSliceProto::of(&self.slice().0));
        let data = SavedSlice { name: self.name.to_vec(), slice, data: proto };
        let message = SavedTensorSlices { meta: None, data: Some(data) };
        let len = message.encoded_len();
        if len > MOST {
            let name = String::from_utf8_lossy(self.name);
            return Err(BundleError::Argument(format!(
                "tensor '{name}': it has {len} bytes in a V1 file, while {MOST} is the most: save it in slices, or with \
                 SaveV2"
            )));
        }
        Ok(message.encode_to_vec())
    }
}

/// The tensors of a file, each with its slices, in the order in which their names come first.
fn meta_of(saved: &[Saved<'_>]) -> Result<SavedTensorSliceMeta, BundleError> {
    let mut tensors: Vec<SavedSliceMeta> = Vec::new();
    let mut places = BTreeMap::new();
    for one in saved {
        let dims = one.part.map_or(one.dims, |part| &part.dims);
        let (shape, kind) = (Some(shape_of(dims)), one.dtype.0 as i32);
        let at = *places.entry(one.name).or_insert_with(|| {
            let (name, shape) = (one.name.to_vec(), shape.clone());
            tensors.push(SavedSliceMeta { name, shape, r#type: kind, slice: Vec::new() });
            tensors.len() - 1
        });
        if tensors[at].shape != shape || tensors[at].r#type != kind {
            let name = String::from_utf8_lossy(one.name);
            return Err(BundleError::Argument(format!(
                "tensor '{name}': expected slices of one type and shape, found another type or shape {dims:?}"
            )));
        }
        tensors[at].slice.push(TensorSliceProto::of(&one.slice().0));
    }
    let versions = Some(VersionDef { producer: VERSION, ..VersionDef::default() });
    Ok(SavedTensorSliceMeta { tensor: tensors, versions })
}

/// Writes a V1 file; one that is there is replaced in one step.
///
/// # Errors
/// Two tensors or slices are the same; a type that V1 files have no place for; the system's error.
pub fn write_slices(files: Files<'_>, path: &Path, saved: &[Saved<'_>]) -> Result<(), BundleError> {
    saved.iter().try_for_each(Saved::check)?;
    let mut keys = BTreeMap::new();
    for one in saved {
        if keys.insert(slice_key(one.name, &one.slice().0), one).is_some() {
            let name = String::from_utf8_lossy(one.name);
            return Err(BundleError::Argument(format!("Adding duplicate key: {name}")));
        }
    }
    let meta = SavedTensorSlices { meta: Some(meta_of(saved)?), data: None };
    let mut table = TableWriter::new(Temporary::create(files, path)?);
    table.add(b"", &meta.encode_to_vec())?;
    for (key, one) in keys {
        table.add(&key, &one.encoded()?)?;
    }
    let mut file = table.finish()?;
    file.sync()?;
    let publishing = files.lock(path)?;
    file.publish(path)?;
    publishing.sync()
}
