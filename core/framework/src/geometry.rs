//! Geometry that shape functions and kernels share: what shapes an op accepts, which shape it gives, and in
//! which order its elements are visited.
//!
//! Everything here is a pure function of dimensions and attributes. Nothing reads or writes elements, and
//! nothing allocates: up to [`tenon_abi::MAX_RANK`] dimensions stand in a [`Dims`].
//!
//! Dimensions are `i64` as in TensorFlow. A function whose name or docs speak of *unknown* dimensions takes
//! -1 for a dimension that is not known yet, as shape inference needs, and gives -1 where the result depends
//! on it. Plans (`*Plan`) are for kernels and want every dimension known.
//!
//! ```
//! use tenon_framework::geometry::{BroadcastKind, BroadcastPlan, broadcast_shape};
//!
//! assert_eq!(broadcast_shape(&[-1, 1, 5], &[4, 1])?, [-1, 4, 5]);
//! let plan = BroadcastPlan::new([&[2, 3, 5], &[5]])?;
//! assert_eq!(plan.kind(), BroadcastKind::RowRight { rows: 6, cols: 5 });
//! # Ok::<(), tenon_framework::geometry::GeometryError>(())
//! ```

mod attributes;
mod broadcast;
mod channel;
mod concat;
mod conv;
mod counting;
mod diag;
mod dilation;
mod einsum;
mod error;
mod fft;
mod format;
mod gather;
mod image;
mod matmul;
mod matrix;
mod offsets;
mod pad;
mod patches;
mod pool;
mod ranking;
mod reduce;
mod repeat;
mod reshape;
mod response;
mod segment;
mod size;
mod slice;
mod space;
mod split;
mod transpose;
mod volume;
mod window;

pub use attributes::{BatchNormAttributes, ConvAttributes, PoolAttributes};
pub use broadcast::{BroadcastKind, BroadcastPlan, Run, Runs, broadcast_shape, broadcast_shapes};
pub use channel::ChannelSplit;
pub use concat::{ConcatPlan, concat_axis, concat_dims, pack_axis, pack_dims};
pub use conv::{Conv2dGeometry, Conv2dParams, OutputPixel};
pub use counting::{HistogramRange, check_bincount};
pub use diag::{DiagAlign, DiagBand, DiagGeometry, Diagonal};
pub use dilation::{Dilation2dGeometry, Dilation2dParams};
pub use einsum::{EinsumAxis, EinsumBox, EinsumEquation, EinsumOperand, EinsumPlan};
pub use error::GeometryError;
pub use fft::{FftDirection, check_fft_input, real_fft_dims};
pub use format::{DataFormat, Padding};
pub use gather::{GatherPlan, SlicePlan, gather_dims, gather_nd_dims};
pub use image::{PixelGrid, check_colour, resized_dims};
pub use matmul::{
    BatchMatMulGeometry, MatMulGeometry, batch_matmul_dims, equal_batches, matmul_dims,
};
pub use matrix::square_size;
pub use offsets::Offsets;
pub use pad::{PadPlan, pad_dims};
pub use patches::PatchGeometry;
pub use pool::{Pool2dGeometry, Pool2dParams};
pub use ranking::RankedRows;
pub use reduce::{
    ArgGeometry, AxisSet, AxisSplit, ReduceKind, ReducePlan, join_dims, normalize_axis, reduce_dims,
};
pub use repeat::{
    broadcast_gradient_axes, check_broadcast_to, float_range_len, mirror_offset, mirror_pad_dims,
    mirror_pad_grad_dims, one_hot_dims, range_len, roll_shifts, tile_dims,
};
pub use reshape::{bitcast_dims, expand_dims, reshape_dims, squeeze_dims};
pub use response::{response_channels, response_radius};
pub use segment::SegmentPlan;
pub use size::{
    Dims, byte_size, element_count, known_element_count, row_major_strides, same_dims,
    validate_dims, validate_partial_dims,
};
pub use slice::{SliceMasks, StridedSlice, StridedSliceSpec};
pub use space::{DepthFormat, SpaceBatchPlan, batch_to_space_dims, space_to_batch_dims};
pub use split::{slice_dims, split_dims, split_sizes, unpack_dims};
pub use transpose::{TransposeKind, TransposePlan, transpose_dims, validate_permutation};
pub use volume::{Conv3dGeometry, Pool3dGeometry};
pub use window::{DimPadding, WindowDim, check_windows};

#[cfg(test)]
mod hostile_tests;
