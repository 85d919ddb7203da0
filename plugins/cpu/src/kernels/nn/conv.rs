//! `Conv2D`: the windows of the images times the filter; 1x1 filters take the images unchanged.
//! With channels first, and for integers, the left factor is a matrix of patches: see
//! `super::patches`.

use super::{
    patches::{self, Sizes, is_pointwise},
    windows::Windows,
};
use crate::{
    kernels::linalg::{
        gemm::{
            constant::{RIGHT, RightFactor},
            isa::Isa,
            left::Left,
            output::{self, Columns, Rows},
            spread,
        },
        product::{Factor, Operand},
    },
    lane::Compute,
};
use half::{bf16, f16};
use tenon_sdk::{
    DType, KernelError,
    abi::Slot,
    author::{ComputeContext, CreateContext, Kernel, Packed, Prepack},
    geometry::{Conv2dGeometry, ConvAttributes, DataFormat},
    reg::Numerics,
    register_kernel,
};

pub use crate::kernels::linalg::gemm::ending::{After, Ending};

/// The filter of a convolution, which may be a constant.
pub struct Filter<T: Compute>(RightFactor<T>);

impl<T: Compute<Wide: Factor>> Filter<T> {
    /// Returns a filter that is not packed yet.
    ///
    /// # Errors
    /// As [`RightFactor::new`].
    pub fn new(c: &CreateContext<'_>) -> Result<Filter<T>, KernelError> {
        RightFactor::new(c).map(Filter)
    }

    /// Packs a constant filter, for images with channels last.
    pub fn prepack(
        &self,
        attributes: &ConvAttributes,
        input: usize,
        view: &Slot,
    ) -> Option<Packed> {
        if attributes.format() != DataFormat::Nhwc {
            return None;
        }
        self.0.prepack(input, view, |dims, data| {
            let &[_, _, _, outputs] = dims else { return None };
            let outputs = outputs as usize;
            Some(Operand::dense(data, data.len() / outputs.max(1), outputs))
        })
    }

    /// Takes over the packed filter.
    pub fn attach(&mut self, input: usize, packed: &Packed) {
        self.0.attach(input, packed);
    }

    /// The columns of the filter for a group of channels.
    fn columns<'f, 'a: 'f>(
        &'f self,
        c: &ComputeContext<'a>,
        isa: &'static Isa<T::Wide>,
        s: &Sizes,
        group: usize,
    ) -> Result<Columns<'f, T>, KernelError> {
        if s.groups > 1
            && let Some(filter) = self.0.unpacked(c)?
        {
            let columns = filter.columns_from(group * s.group_outputs, s.group_outputs);
            return Ok(Columns::Packed(spread::pack::<T::Wide>(c, isa, &columns)?));
        }
        Ok(match self.0.packed() {
            Some(right) => Columns::Packed(right),
            None => Columns::Matrix(s.filter(c.input::<T>(RIGHT)?.data, group)),
        })
    }
}

/// A convolution of images with channels last, as products of their windows.
fn by_windows<T: Compute<Wide: Factor>>(
    c: &ComputeContext<'_>,
    g: &Conv2dGeometry,
    isa: &'static Isa<T::Wide>,
    filter: &Filter<T>,
    y: &mut [T],
    ending: Ending<'_, T>,
) -> Result<(), KernelError> {
    let (s, x) = (Sizes::new(g), c.input::<T>(0)?.data);
    for group in 0..s.groups {
        let to = Rows { all: &mut *y, first: group * s.group_outputs, stride: s.outputs };
        let columns = filter.columns(c, isa, &s, group)?;
        let windows = Windows::new(x, g, group);
        let channels = g.in_channels as usize;
        let pixels = Operand {
            data: x.get(group * s.patch..).unwrap_or_default(),
            rows: s.pixels * g.batch as usize,
            cols: s.patch,
            strides: [channels, 1],
        };
        let left: &dyn Left<T::Wide> = if is_pointwise(g) { &pixels } else { &windows };
        output::write(c, isa, left, columns, to, ending)?;
    }
    Ok(())
}

struct Conv2d<T: Compute> {
    attributes: ConvAttributes,
    filter: Filter<T>,
}

impl<T: Compute<Wide: Factor>> Kernel for Conv2d<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Conv2d { attributes: ConvAttributes::new(c)?, filter: Filter::new(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let g = Conv2dGeometry::new(&self.attributes.params(c.dims(0), c.dims(1)))?;
        convolve::<T>(c, &g, &self.filter, Ending::NONE)
    }
}

impl<T: Compute<Wide: Factor>> Prepack for Conv2d<T> {
    fn prepack(&self, input: usize, view: &Slot) -> Result<Option<Packed>, KernelError> {
        Ok(self.filter.prepack(&self.attributes, input, view))
    }

    fn attach_packed(&mut self, input: usize, packed: &Packed) {
        self.filter.attach(input, packed);
    }
}

/// Computes the convolution of inputs 0 and 1 into output 0, and applies `ending` to the results.
///
/// # Errors
/// No memory; or the call was cancelled.
pub fn convolve<T: Compute<Wide: Factor>>(
    c: &ComputeContext<'_>,
    g: &Conv2dGeometry,
    filter: &Filter<T>,
    ending: Ending<'_, T>,
) -> Result<(), KernelError> {
    let y = c.output::<T>(0, &g.output_dims())?.data;
    if y.is_empty() {
        return Ok(());
    }
    if let Some(isa) = filter.0.isa().filter(|_| g.format == DataFormat::Nhwc) {
        return by_windows(c, g, isa, filter, y, ending);
    }
    patches::convolve(c, g, y, ending.all)
}

register_kernel!("Conv2D" on "CPU": Conv2d<T> for "T" in [f32],
    numerics = Numerics::relative(1e-30, 4e-6).accumulation(DType::FLOAT));
register_kernel!("Conv2D" on "CPU": Conv2d<T> for "T" in [f64],
    numerics = Numerics::relative(1e-300, 8e-15).accumulation(DType::DOUBLE));
register_kernel!("Conv2D" on "CPU": Conv2d<T> for "T" in [i32], numerics = Numerics::EXACT);
register_kernel!("Conv2D" on "CPU": Conv2d<T> for "T" in [f16],
    numerics = Numerics::relative(6e-8, 2e-3).accumulation(DType::FLOAT));
register_kernel!("Conv2D" on "CPU": Conv2d<T> for "T" in [bf16],
    numerics = Numerics::relative(1e-30, 1.6e-2).accumulation(DType::FLOAT));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, values};
    use tenon_reference::{Accumulate, nn::conv2d};
    use tenon_sdk::geometry::{Conv2dParams, Padding};

    /// Input, filter, strides, dilations (rows, columns), padding, format.
    type Case = ([i64; 4], [i64; 4], [i64; 2], [i64; 2], Padding, DataFormat);

    const CASES: [Case; 6] = [
        ([2, 6, 7, 3], [3, 3, 3, 5], [1, 1], [1, 1], Padding::Same, DataFormat::Nhwc),
        ([1, 9, 8, 4], [3, 2, 2, 6], [2, 1], [1, 2], Padding::Same, DataFormat::Nhwc),
        ([2, 3, 6, 7], [3, 3, 3, 5], [1, 2], [1, 1], Padding::Same, DataFormat::Nchw),
        ([1, 4, 9, 8], [2, 3, 2, 6], [1, 1], [2, 1], Padding::Valid, DataFormat::Nchw),
        ([1, 20, 19, 2], [5, 5, 2, 3], [1, 1], [1, 1], Padding::Valid, DataFormat::Nhwc),
        ([1, 3, 3, 1], [5, 5, 1, 1], [1, 1], [1, 1], Padding::Same, DataFormat::Nhwc),
    ];

    fn check<T: Compute<Wide: Factor> + Accumulate>(relative: f64) {
        for (input, filter, strides, dilations, padding, format) in &CASES {
            let strides = format.order(1, strides[0], strides[1], 1);
            let dilations = format.order(1, dilations[0], dilations[1], 1);
            let params = Conv2dParams {
                input,
                filter,
                strides: &strides,
                dilations: &dilations,
                padding: *padding,
                explicit_paddings: &[],
                format: *format,
            };
            let g = Conv2dGeometry::new(&params).unwrap();
            let count = |dims: &[i64]| dims.iter().product::<i64>() as usize;
            let (x, f) = (values::<T>(count(input), 1), values::<T>(count(filter), 2));
            let len = count(&g.output_dims());
            let (mut expected, mut found) = (vec![T::ZERO; len], vec![T::ONE; len]);
            conv2d(&g, &x, &f, &mut expected);
            patches::alone(&g, &x, &f, &mut found);
            assert_close(&found, &expected, 300.0 * relative, relative);
        }
    }

    #[test]
    fn convolutions_agree_with_the_reference() {
        check::<f32>(1e-5);
        check::<f64>(1e-13);
        check::<i32>(0.0);
        check::<f16>(2e-3);
        check::<bf16>(1.6e-2);
    }
}
