//! Entries of a bundle's index, checked.

use crate::{BundleError, messages::TensorSliceProto, slice::TensorSlice};
use prost::Message;
use tenon_proto::{BundleEntryProto, Dim, TensorShapeProto};
use tenon_sdk::DType;

/// The most dimensions of a tensor, as in TensorFlow.
pub(crate) const MOST_DIMS: usize = 254;

/// What the index says of a tensor, or of one stored slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The type of its elements.
    pub dtype: DType,
    /// Its shape.
    pub dims: Vec<i64>,
    /// Number of the data file; 0 for a tensor in slices.
    pub shard: u32,
    /// Where it begins in that file.
    pub offset: u64,
    /// Its size in that file; 0 for a tensor in slices.
    pub size: u64,
    /// Its masked checksum; 0 for a tensor in slices.
    pub checksum: u32,
    /// The slices that it is stored in; empty if it is stored as a whole.
    pub slices: Vec<TensorSlice>,
}

/// The size of an element in a file; `None` for strings and variants, whose sizes differ. Types below one byte have a byte
/// for each element.
pub fn stored_size(dtype: DType) -> Option<usize> {
    match dtype {
        DType::STRING | DType::VARIANT | DType::RESOURCE => None,
        dtype => Some((dtype.bits() as usize).div_ceil(8)),
    }
}

/// The number of elements of a shape; `None` if it is negative or too large.
pub fn element_count(dims: &[i64]) -> Option<u64> {
    let count = dims.iter().try_fold(1u64, |count, &dim| {
        let dim = u64::try_from(dim).ok()?;
        count.checked_mul(dim).filter(|&count| count <= i64::MAX as u64)
    });
    // The product of the others must fit even where a dimension is 0.
    count.filter(|_| {
        let nonzero = dims.iter().filter(|&&dim| dim != 0);
        nonzero.copied().try_fold(1i64, i64::checked_mul).is_some()
    })
}

/// A shape from its message; `None` if it is not known completely.
pub(crate) fn dims_of(shape: Option<&TensorShapeProto>) -> Option<Vec<i64>> {
    let Some(shape) = shape else { return Some(Vec::new()) };
    if shape.unknown_rank || shape.dim.len() > MOST_DIMS {
        return None;
    }
    let dims: Vec<i64> = shape.dim.iter().map(|dim| dim.size).collect();
    element_count(&dims).map(|_| dims)
}

pub(crate) fn shape_of(dims: &[i64]) -> TensorShapeProto {
    let dim = |&size: &i64| Dim { size, name: String::new() };
    TensorShapeProto { dim: dims.iter().map(dim).collect(), unknown_rank: false }
}

impl Entry {
    /// Number of elements.
    pub fn elements(&self) -> u64 {
        element_count(&self.dims).unwrap_or(0)
    }

    /// Reads an entry of the index of `shards` data files.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(bytes: &[u8], shards: u32) -> Result<Entry, String> {
        let proto = BundleEntryProto::decode(bytes).map_err(|error| error.to_string())?;
        let dims = dims_of(proto.shape.as_ref()).ok_or("its shape is not complete")?;
        let dtype = u32::try_from(proto.dtype).map(DType).ok();
        let dtype = dtype.filter(|dtype| dtype.is_valid() && !dtype.is_ref());
        let dtype = dtype.ok_or_else(|| format!("it has the unknown type {}", proto.dtype))?;
        let slice = |bytes: &Vec<u8>| {
            let slice = TensorSliceProto::decode(&bytes[..]).map_err(|error| error.to_string())?;
            let slice = slice.to_slice();
            match slice.region(&dims) {
                Some(_) => Ok(slice),
                None => Err(format!("its slice {slice} is not within shape {dims:?}")),
            }
        };
        let slices = proto.slices.iter().map(slice).collect::<Result<Vec<_>, _>>()?;
        let number = |value: i64, name| {
            u64::try_from(value).map_err(|_| format!("its {name} is negative: {value}"))
        };
        let (offset, size) = (number(proto.offset, "offset")?, number(proto.size, "size")?);
        let shard = u32::try_from(proto.shard_id).ok().filter(|&shard| shard < shards);
        let shard =
            shard.ok_or_else(|| format!("it is in data file {} of {shards}", proto.shard_id))?;
        let entry = Entry { dtype, dims, shard, offset, size, checksum: proto.crc32c, slices };
        entry.check_size().map(|()| entry)
    }

    fn check_size(&self) -> Result<(), String> {
        let Some(each) = stored_size(self.dtype).filter(|_| self.slices.is_empty()) else {
            return Ok(());
        };
        let expected = self.elements().checked_mul(each as u64);
        match expected == Some(self.size) {
            true => Ok(()),
            false => Err(format!(
                "its size is {}, while type {} and shape {:?} have {}",
                self.size,
                self.dtype.name(),
                self.dims,
                expected.unwrap_or(u64::MAX)
            )),
        }
    }

    /// The entry as a message.
    ///
    /// # Errors
    /// An offset that the format has no place for.
    pub(crate) fn to_proto(&self) -> Result<BundleEntryProto, BundleError> {
        let number = |value: u64| {
            i64::try_from(value).map_err(|_| {
                BundleError::Argument(format!("a data file of {value} bytes is too large"))
            })
        };
        Ok(BundleEntryProto {
            dtype: self.dtype.0 as i32,
            shape: Some(shape_of(&self.dims)),
            shard_id: self.shard as i32,
            offset: number(self.offset)?,
            size: number(self.size)?,
            crc32c: self.checksum,
            slices: self.slices.iter().map(|slice| slice.to_proto().encode_to_vec()).collect(),
        })
    }
}
