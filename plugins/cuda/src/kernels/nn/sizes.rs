//! Sizes of windows as kernel parameters, in the layouts of `windows.cuh`.

use crate::{
    kernels::divisor::{Divide, Divisor},
    launch::Operand,
};
use tenon_sdk::{
    DType, KernelError,
    geometry::{DataFormat, WindowDim},
};

/// Limit of positions along an axis, so that sums of two of them are 32-bit integers.
const FAR: i64 = 1 << 30;

/// `Axis` in `windows.cuh`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    input: i32,
    output: i32,
    kernel: i32,
    stride: i32,
    dilation: i32,
    before: i32,
}

impl Axis {
    /// The axis of a dimension of a known geometry.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for positions from 2^30 on, padding included.
    pub fn new(window: &WindowDim) -> Result<Axis, KernelError> {
        // A stride that is only multiplied by 0 is irrelevant.
        let stride = if window.output > 1 { window.stride } else { 1 };
        let dilation = if window.kernel > 1 { window.dilation } else { 1 };
        let reach = |count: i64, step: i64| (count - 1).max(0).checked_mul(step);
        let last = reach(window.output, stride)
            .zip(reach(window.kernel, dilation))
            .and_then(|(first, tap)| first.checked_add(tap));
        let sizes =
            [window.input, window.output, window.kernel, stride, dilation, window.pad_before];
        if last.is_none_or(|last| last >= FAR) || sizes.iter().any(|size| *size >= FAR) {
            return Err(KernelError::unimplemented(format!(
                "CUDA has windows over fewer than {FAR} positions, padding included: found {window:?}"
            )));
        }
        let [input, output, kernel, stride, dilation, before] = sizes.map(|size| size as i32);
        Ok(Axis { input, output, kernel, stride, dilation, before })
    }
}

/// A divisor for numbers of elements.
///
/// # Errors
/// `UNIMPLEMENTED` for divisors that are not from 1 to 2^31.
pub(super) fn divisor(by: i64) -> Result<Divisor<u32>, KernelError> {
    if !(1..=1 << 31).contains(&by) {
        return Err(KernelError::unimplemented(format!(
            "CUDA divides numbers of elements by 1 to 2^31, found {by}"
        )));
    }
    Ok(u32::divisor(by as u64))
}

/// `ImageStrides` in `windows.cuh`: strides in memory of images, rows, columns and channels.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Strides {
    pub image: i64,
    pub row: i64,
    pub column: i64,
    pub channel: i64,
}

impl Strides {
    /// Strides of images of `rows` rows, `columns` columns and `channels` channels.
    pub fn new(format: DataFormat, rows: i64, columns: i64, channels: i64) -> Strides {
        let image = rows * columns * channels;
        match format {
            DataFormat::Nhwc => {
                Strides { image, row: columns * channels, column: channels, channel: 1 }
            }
            DataFormat::Nchw => Strides { image, row: columns, column: 1, channel: rows * columns },
        }
    }
}

/// `Items` in `windows.cuh`, or with 4 parts `VolumeItems`: the extents of the images' dimensions,
/// innermost first.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Items<const N: usize = 3> {
    parts: [Divisor<u32>; N],
    count: u32,
}

/// An output: its format and sizes.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputSizes {
    pub format: DataFormat,
    pub images: i64,
    pub rows: i64,
    pub columns: i64,
    pub channels: i64,
}

impl OutputSizes {
    /// Strides of the output.
    pub fn strides(&self) -> Strides {
        Strides::new(self.format, self.rows, self.columns, self.channels)
    }

    /// Items of `channels` channels, a divisor of the output's, by `columns` columns. There is at
    /// least one output.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for 2^31 items or more.
    pub fn items(&self, channels: i64, columns: i64) -> Result<Items, KernelError> {
        let columns = (self.columns - 1) / columns + 1;
        let channels = self.channels / channels;
        let parts = match self.format {
            DataFormat::Nhwc => [channels, columns, self.rows],
            DataFormat::Nchw => [columns, self.rows, channels],
        };
        Items::new(self.images, parts)
    }
}

impl<const N: usize> Items<N> {
    /// Items of images with these numbers of items along each dimension.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for 2^31 items or more.
    pub fn new(images: i64, extents: [i64; N]) -> Result<Items<N>, KernelError> {
        let count = extents.iter().try_fold(images, |count, extent| count.checked_mul(*extent));
        let Some(count) = count.filter(|count| *count < 1 << 31) else {
            return Err(KernelError::unimplemented(format!(
                "CUDA has windows with fewer than 2^31 outputs or packs of outputs, found {images} images of \
                 {extents:?}"
            )));
        };
        let mut parts = [Divisor::default(); N];
        for (part, extent) in parts.iter_mut().zip(extents) {
            *part = divisor(extent)?;
        }
        Ok(Items { parts, count: count as u32 })
    }

    /// Number of items.
    pub fn count(&self) -> u64 {
        self.count.into()
    }
}

/// Number of elements in 16 bytes; 0 for types that do not divide them.
pub(super) fn lanes_of(dtype: DType) -> i64 {
    dtype.size().and_then(|size| 16usize.checked_div(size)).unwrap_or(0) as i64
}

/// Number of channels that are moved at once: as many as fill 16 bytes where the channels, which
/// are last, divide into whole packs and all operands begin at multiples of 16 bytes; else 1. All
/// operands are of one type.
pub(super) fn packed_lanes(channels: i64, operands: &[&Operand]) -> i64 {
    let lanes = operands.first().map_or(0, |operand| lanes_of(operand.dtype));
    let packed =
        lanes > 1 && channels % lanes == 0 && operands.iter().all(|operand| operand.is_aligned(16));
    if packed { lanes } else { 1 }
}

/// A number as a 32-bit parameter.
///
/// # Errors
/// `UNIMPLEMENTED` from 2^30 on.
pub(super) fn small(what: &str, value: i64) -> Result<u32, KernelError> {
    match u32::try_from(value) {
        Ok(small) if value < FAR => Ok(small),
        _ => Err(KernelError::unimplemented(format!(
            "CUDA has convolutions with fewer than {FAR} {what}, found {value}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::geometry::DimPadding;

    #[test]
    fn divisors_divide() {
        for d in [1, 2, 3, 5, 7, 64, 147, 1000, 65_537, (1 << 30) - 1, 1 << 31] {
            let it = divisor(d).unwrap();
            for n in [0u64, 1, 2, 6, 146, 147, 65_536, 1 << 20, (1 << 31) - 1] {
                let high = (n * u64::from(it.magic)) >> 32;
                let quotient = (high + n) >> it.shift;
                assert_eq!(quotient, n / d as u64, "{n} / {d}");
            }
        }
        assert!(divisor(0).is_err() && divisor((1 << 31) + 1).is_err());
    }

    #[test]
    fn packs_are_of_whole_channels_at_aligned_places() {
        let operand = |address| Operand { address, elements: 1, dtype: DType::HALF };
        let (aligned, other) = (operand(512), operand(520));
        assert_eq!(packed_lanes(16, &[&aligned, &aligned]), 8);
        assert_eq!(packed_lanes(12, &[&aligned, &aligned]), 1);
        assert_eq!(packed_lanes(16, &[&aligned, &other]), 1);
    }

    #[test]
    fn items_are_packs_and_groups() {
        let sizes = |format| OutputSizes { format, images: 2, rows: 3, columns: 5, channels: 8 };
        let items = sizes(DataFormat::Nhwc).items(4, 4).unwrap();
        assert_eq!((items.count(), items.parts.map(|part| part.divisor)), (24, [2, 2, 3]));
        let items = sizes(DataFormat::Nchw).items(1, 1).unwrap();
        assert_eq!((items.count(), items.parts.map(|part| part.divisor)), (240, [5, 3, 8]));
        let many = OutputSizes { images: 1 << 28, ..sizes(DataFormat::Nhwc) };
        assert!(many.items(1, 1).is_err());
    }

    #[test]
    fn axes_refuse_what_32_bits_do_not_hold() {
        let axis = |input, kernel, stride, dilation, padding| {
            Axis::new(&WindowDim::new("rows", input, kernel, stride, dilation, padding).unwrap())
        };
        assert!(axis(9, 3, 2, 1, DimPadding::Same).is_ok());
        // A stride and a dilation that are only multiplied by 0.
        let one = axis(1, 1, 1 << 40, 1 << 40, DimPadding::Valid).unwrap();
        assert_eq!((one.stride, one.dilation), (1, 1));
        let far = DimPadding::Explicit { before: 1 << 31, after: 0 };
        let error = axis(1, 1, 1 << 31, 1, far).unwrap_err();
        assert!(error.message.contains("fewer than 1073741824 positions"), "{}", error.message);
    }
}
