//! What a convolution depends on.

use super::{
    api::Number,
    descriptors::{Extents, Steps},
    numbers::{DEFAULT_MATH, FMA_MATH, TENSOR_MATH},
};
use cudarc::cudnn::sys::cudnnDataType_t as DataType;
use std::ffi::c_int;
use tenon_sdk::{
    DType, KernelError,
    geometry::{Conv2dGeometry, DataFormat, WindowDim},
};

/// Order of the dimensions of a filter and of the images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Order {
    /// Outputs, rows, columns, channels.
    ChannelsLast,
    /// Outputs, channels, rows, columns.
    ChannelsFirst,
}

impl Order {
    /// The order that corresponds to a data format.
    pub fn of(format: DataFormat) -> Order {
        match format {
            DataFormat::Nhwc => Order::ChannelsLast,
            DataFormat::Nchw => Order::ChannelsFirst,
        }
    }
}

/// What follows the convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Ending {
    /// A vector of one value for each output channel.
    pub bias: bool,
    /// A tensor of the output's shape.
    pub other: bool,
    /// `max(x, 0)`.
    pub relu: bool,
}

impl Ending {
    pub fn is_none(self) -> bool {
        self == Ending::default()
    }
}

/// Everything that a convolution depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Shapes {
    pub order: Order,
    pub dtype: DType,
    pub tf32: bool,
    pub ending: Ending,
    pub(super) x: Extents,
    pub(super) filter: Extents,
    pub(super) y: Extents,
    pub(super) steps: Steps,
    pub(super) groups: c_int,
}

impl Shapes {
    /// The shapes of a known geometry; as an error, the reason why cuDNN does not support them.
    pub fn new(
        g: &Conv2dGeometry,
        dtype: DType,
        tf32: bool,
        ending: Ending,
    ) -> Result<Shapes, String> {
        let (h, w) = (&g.height, &g.width);
        check_padding([h, w])?;
        Ok(Shapes {
            order: Order::of(g.format),
            dtype,
            tf32,
            ending,
            x: extents([g.batch, g.in_channels, h.input, w.input])?,
            filter: extents([g.out_channels, g.filter_channels, h.kernel, w.kernel])?,
            y: extents([g.batch, g.out_channels, h.output, w.output])?,
            steps: Steps {
                padding: pair(h.pad_before, w.pad_before)?,
                strides: pair(h.stride, w.stride)?,
                dilations: pair(h.dilation, w.dilation)?,
            },
            groups: small(g.groups)?,
        })
    }

    /// The element type, and the type of sums.
    pub(super) fn types(&self) -> Result<(DataType, DataType), KernelError> {
        let ty = type_of(self.dtype)?;
        Ok((ty, if ty == DataType::CUDNN_DATA_DOUBLE { ty } else { DataType::CUDNN_DATA_FLOAT }))
    }

    /// The products that are allowed.
    pub(super) fn math(&self) -> Number {
        match (self.dtype, self.tf32) {
            (DType::FLOAT, false) | (DType::DOUBLE, _) => FMA_MATH,
            (DType::FLOAT, true) => DEFAULT_MATH,
            _ => TENSOR_MATH,
        }
    }
}

/// cuDNN's name of an element type.
pub(super) fn type_of(dtype: DType) -> Result<DataType, KernelError> {
    Ok(match dtype {
        DType::FLOAT => DataType::CUDNN_DATA_FLOAT,
        DType::DOUBLE => DataType::CUDNN_DATA_DOUBLE,
        DType::HALF => DataType::CUDNN_DATA_HALF,
        DType::BFLOAT16 => DataType::CUDNN_DATA_BFLOAT16,
        other => {
            let what = format!("the plugin hands cuDNN no tensors of {other}");
            return Err(KernelError::unimplemented(what));
        }
    })
}

fn small(value: i64) -> Result<c_int, String> {
    c_int::try_from(value).map_err(|_| format!("cuDNN has sizes below 2^31, found {value}"))
}

pub(super) fn pair(rows: i64, columns: i64) -> Result<[c_int; 2], String> {
    Ok([small(rows)?, small(columns)?])
}

pub(super) fn extents(all: [i64; 4]) -> Result<Extents, String> {
    let elements = all.iter().try_fold(1i64, |product, one| product.checked_mul(*one));
    if elements.is_none_or(|elements| elements >= 1 << 31) {
        return Err(format!("cuDNN has tensors of fewer than 2^31 elements, found {all:?}"));
    }
    let [a, b, c, d] = all.map(small);
    Ok([a?, b?, c?, d?])
}

/// As an error, the reason why cuDNN cannot describe the windows.
pub(super) fn check_padding(dims: [&WindowDim; 2]) -> Result<(), String> {
    match dims.into_iter().find(|dim| !is_symmetric(dim)) {
        None => Ok(()),
        Some(dim) => Err(format!(
            "cuDNN pads both sides alike, found {} before and {} after for {} outputs",
            dim.pad_before, dim.pad_after, dim.output
        )),
    }
}

/// Whether padding of `pad_before` on both sides gives these outputs. Padding at the end that no
/// window reaches does not count.
fn is_symmetric(dim: &WindowDim) -> bool {
    let WindowDim { input, kernel, stride, dilation, pad_before, output, .. } = *dim;
    let span = (kernel - 1).checked_mul(dilation).and_then(|span| span.checked_add(1));
    let padded = pad_before.checked_mul(2).and_then(|padding| padding.checked_add(input));
    match padded.zip(span) {
        Some((padded, span)) if padded >= span => (padded - span) / stride + 1 == output,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::geometry::DimPadding;

    #[test]
    fn padding_counts_as_far_as_windows_reach() {
        let symmetric = |input, kernel, stride, padding| {
            is_symmetric(&WindowDim::new("rows", input, kernel, stride, 1, padding).unwrap())
        };
        assert!(symmetric(9, 3, 1, DimPadding::Same));
        assert!(symmetric(9, 3, 2, DimPadding::Valid));
        // One before and one behind, although the geometry only requires one behind.
        assert!(symmetric(9, 3, 2, DimPadding::Same));
        // None before, one behind.
        assert!(!symmetric(8, 3, 2, DimPadding::Same));
        // Two behind that no window reaches.
        assert!(symmetric(8, 3, 4, DimPadding::Explicit { before: 0, after: 2 }));
    }
}
