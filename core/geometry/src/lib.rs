//! Op geometry and fixed-point arithmetic, shared by the shape functions and the kernels of an op.
//!
//! What it is: the functions and plans at the root of this crate say which shapes and attributes an
//! op accepts, which shape it gives, and in which order its elements are visited. [`fixed_point`]
//! is the arithmetic by which quantised kernels bring sums to their output's scale, and [`fused`]
//! reads the attributes of fused ops. The shape functions of `tenon-ops`, the kernels of plugins
//! (as `tenon_sdk::geometry`), the reference kernels and the passes of `tenon-optimize` call the same
//! functions, so that they accept and refuse the same arguments.
//!
//! What it is not: a definition of ops (`tenon-ops`) or kernels (plugins, `tenon-reference`). The
//! elements of tensors are neither read nor written, apart from the small integer lists that an op
//! has as arguments (axes, sizes, segment ids). Shapes with named unknown dimensions are in
//! [`tenon_framework::infer`].
//!
//! # Invariants
//! - Every function is a pure function of its arguments. No shape function and no constructor of a
//!   plan panics, whatever the dimensions and attributes are: sizes are computed with checked
//!   arithmetic, and a size that does not fit is an error ([`GeometryError`], or a `KernelError`
//!   with `INVALID_ARGUMENT`) that names the argument, what was expected and what was found.
//! - Dimensions are `i64` as in TensorFlow. A function whose name or docs speak of *unknown*
//!   dimensions takes -1 for a dimension that is not known yet, as shape inference needs, and gives
//!   -1 where the result depends on it. Plans (`*Plan`) are for kernels and need every dimension to
//!   be known.
//! - Shapes and plans allocate nothing, since a [`Dims`] holds up to [`tenon_abi::MAX_RANK`]
//!   dimensions. Einstein sums and attributes that are read once for a kernel hold lists.
//!
//! ```
//! use tenon_geometry::{BroadcastKind, BroadcastPlan, broadcast_shape};
//!
//! assert_eq!(broadcast_shape(&[-1, 1, 5], &[4, 1])?, [-1, 4, 5]);
//! let plan = BroadcastPlan::new([&[2, 3, 5], &[5]])?;
//! assert_eq!(plan.kind(), BroadcastKind::RowRight { rows: 6, cols: 5 });
//! let error = BroadcastPlan::new([&[2, 3], &[4]]).unwrap_err();
//! assert!(error.to_string().starts_with("shapes [2, 3] and [4] do not broadcast"), "{error}");
//! # Ok::<(), tenon_geometry::GeometryError>(())
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
pub mod fixed_point;
mod format;
mod fractional;
pub mod fused;
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
mod stitch;
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
pub use fractional::fractional_dims;
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
    Dims, byte_size, element_count, known_element_count, row_major_strides, validate_dims,
    validate_partial_dims,
};
pub use slice::{SliceMasks, StridedSlice, StridedSliceSpec};
pub use space::{DepthFormat, SpaceBatchPlan, batch_to_space_dims, space_to_batch_dims};
pub use split::{slice_dims, split_dims, split_sizes, unpack_dims};
pub use stitch::{shape_after, shape_behind, stitch_rows};
pub use tenon_framework::shape::same_dims;
pub use transpose::{TransposeKind, TransposePlan, transpose_dims, validate_permutation};
pub use volume::{Conv3dGeometry, Pool3dGeometry};
pub use window::{DimPadding, WindowDim, check_windows};

#[cfg(test)]
mod hostile_tests;
