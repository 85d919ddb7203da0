//! Messages of checkpoints that `tenon-proto` does not have.

use crate::slice::{Extent, TensorSlice};
use tenon_proto::{TensorProto, TensorShapeProto, VersionDef};

/// A part of a tensor.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorSliceProto {
    /// One for each dimension.
    #[prost(message, repeated, tag = "1")]
    pub extent: Vec<ExtentProto>,
}

/// A part of a dimension.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExtentProto {
    /// The first element.
    #[prost(int64, tag = "1")]
    pub start: i64,
    /// The number of elements; missing for all.
    #[prost(int64, optional, tag = "2")]
    pub length: Option<i64>,
}

impl TensorSliceProto {
    pub fn of(extents: &[Extent]) -> TensorSliceProto {
        let one = |extent: &Extent| ExtentProto { start: extent.start, length: extent.length };
        TensorSliceProto { extent: extents.iter().map(one).collect() }
    }

    pub fn to_slice(&self) -> TensorSlice {
        let one = |extent: &ExtentProto| Extent { start: extent.start, length: extent.length };
        TensorSlice(self.extent.iter().map(one).collect())
    }
}

/// A value of a V1 file: what it has, or the data of one slice.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SavedTensorSlices {
    /// What the file has; under the empty key.
    #[prost(message, optional, tag = "1")]
    pub meta: Option<SavedTensorSliceMeta>,
    /// The data of a slice.
    #[prost(message, optional, tag = "2")]
    pub data: Option<SavedSlice>,
}

/// What a V1 file has.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SavedTensorSliceMeta {
    /// Its tensors.
    #[prost(message, repeated, tag = "1")]
    pub tensor: Vec<SavedSliceMeta>,
    /// Versions of the format.
    #[prost(message, optional, tag = "2")]
    pub versions: Option<VersionDef>,
}

/// A tensor of a V1 file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SavedSliceMeta {
    /// Its name.
    #[prost(bytes = "vec", tag = "1")]
    pub name: Vec<u8>,
    /// Its whole shape.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
    /// Its type.
    #[prost(int32, tag = "3")]
    pub r#type: i32,
    /// The slices in this file.
    #[prost(message, repeated, tag = "4")]
    pub slice: Vec<TensorSliceProto>,
}

/// The data of a slice in a V1 file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SavedSlice {
    /// Name of the tensor.
    #[prost(bytes = "vec", tag = "1")]
    pub name: Vec<u8>,
    /// The slice.
    #[prost(message, optional, tag = "2")]
    pub slice: Option<TensorSliceProto>,
    /// The elements, in the list of their type.
    #[prost(message, optional, tag = "3")]
    pub data: Option<TensorProto>,
}
