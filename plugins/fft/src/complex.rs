//! `FFT` and `IFFT` over one, two and three dimensions.

use crate::{
    columns::transform_axis,
    plans::{Complex, ComplexPlan, Plans, Real, complex_plan, scale, transform_rows},
};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Element,
    geometry::{FftDirection, GeometryError},
    reg::Numerics,
    register_kernel,
};

/// A transform over the last `RANK` dimensions.
struct Transform<T, const RANK: usize, const INVERSE: bool> {
    plans: Plans<ComplexPlan<T>>,
}

impl<T: Real, const RANK: usize, const INVERSE: bool> Transform<T, RANK, INVERSE> {
    const DIRECTION: FftDirection =
        if INVERSE { FftDirection::Inverse } else { FftDirection::Forward };

    fn plan(&self, length: usize) -> Result<std::sync::Arc<ComplexPlan<T>>, KernelError> {
        self.plans.get(length, || complex_plan(length, Self::DIRECTION))
    }
}

impl<T: Real, const RANK: usize, const INVERSE: bool> Kernel for Transform<T, RANK, INVERSE>
where
    Complex<T>: Element,
{
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Transform { plans: Plans::new() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<Complex<T>>(0)?;
        let outer = x.dims.len().checked_sub(RANK).ok_or(GeometryError::RankTooSmall {
            what: "input",
            expected: RANK,
            found: x.dims.len(),
        })?;
        let y = c.output::<Complex<T>>(0, x.dims)?.data;
        if y.is_empty() {
            return Ok(());
        }
        let count: i64 = x.dims[outer..].iter().product();
        let scale = scale::<T>(count as usize, Self::DIRECTION);
        let cols = x.dims[x.dims.len() - 1] as usize;
        // In several dimensions, the last transform, that of the outermost one, divides by the total size.
        let row_scale = scale.filter(|_| RANK == 1);
        y.copy_from_slice(x.data);
        transform_rows(c, &*self.plan(cols)?, y, |_, _| {})?;
        if let Some(scale) = row_scale {
            y.iter_mut().for_each(|y| *y = *y * scale);
        }
        if RANK == 1 {
            return Ok(());
        }
        let spare = c.scratch_slice::<Complex<T>>(y.len())?;
        for axis in (outer..x.dims.len() - 1).rev() {
            let rows = x.dims[axis] as usize;
            let cols = x.dims[axis + 1..].iter().product::<i64>() as usize;
            let scale = scale.filter(|_| axis == outer);
            transform_axis(c, &*self.plan(rows)?, [rows, cols], (y, spare), scale)?;
        }
        Ok(())
    }
}

/// Bounds relative to the sum of the absolute terms.
pub const FLOAT: Numerics = Numerics::relative(1e-30, 2e-6).accumulation(DType::FLOAT);
/// As [`FLOAT`].
pub const DOUBLE: Numerics = Numerics::relative(1e-300, 4e-15).accumulation(DType::DOUBLE);

macro_rules! transforms {
    ($($op:literal, $rank:literal, $inverse:literal;)*) => {$(
        register_kernel!($op on "CPU": Transform<f32, $rank, $inverse>,
            types = ("Tcomplex", &[DType::COMPLEX64]), numerics = FLOAT);
        register_kernel!($op on "CPU": Transform<f64, $rank, $inverse>,
            types = ("Tcomplex", &[DType::COMPLEX128]), numerics = DOUBLE);
    )*};
}

transforms! {
    "FFT", 1, false;
    "IFFT", 1, true;
    "FFT2D", 2, false;
    "IFFT2D", 2, true;
    "FFT3D", 3, false;
    "IFFT3D", 3, true;
}
