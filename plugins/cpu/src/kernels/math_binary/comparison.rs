//! Comparisons.

use crate::{
    kernels::{
        array::{Word, words},
        elementwise::any::{for_runs, zip, zip_slices},
    },
    lane::Compute,
};
use half::{bf16, f16};
use num_complex::Complex;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Element,
    geometry::{BroadcastPlan, broadcast_shape},
    reg::Numerics,
    register_kernel,
};

macro_rules! ordered {
    ($($op:literal $name:ident: $compare:tt;)*) => {$(
        fn $name<T: Compute>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            zip(c, 0.3, |x: T, y: T| x.up() $compare y.up())
        }

        register_kernel!($op on "CPU": fn $name<T>
            for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
            numerics = Numerics::EXACT);
    )*};
}

ordered! {
    "Less" less: <;
    "LessEqual" less_equal: <=;
    "Greater" greater: >;
    "GreaterEqual" greater_equal: >=;
}

/// A function that compares, and negates the result where the flag is set.
type Compare = fn(&ComputeContext<'_>, bool) -> Result<(), KernelError>;

/// Compares integers, truth values and quantised numbers, which are equal where their bits are.
fn equal_words<W: Word + PartialEq>(
    c: &ComputeContext<'_>,
    negate: bool,
) -> Result<(), KernelError> {
    let sides = [words::<W>(c.input_bytes(0)?)?, words::<W>(c.input_bytes(1)?)?];
    zip_slices(c, 0.3, sides, |x, y| (x == y) != negate)
}

fn equal_floats<T: Compute>(c: &ComputeContext<'_>, negate: bool) -> Result<(), KernelError> {
    zip(c, 0.3, |x: T, y: T| (x.up() == y.up()) != negate)
}

fn equal_complex<T: Element>(c: &ComputeContext<'_>, negate: bool) -> Result<(), KernelError> {
    zip(c, 0.5, |x: T, y: T| (x == y) != negate)
}

fn equal_strings(c: &ComputeContext<'_>, negate: bool) -> Result<(), KernelError> {
    let plan = BroadcastPlan::new([c.dims(0), c.dims(1)])?;
    let (x, y) = (c.strings(0)?, c.strings(1)?);
    let z = c.output::<bool>(0, plan.output_dims())?.data;
    for_runs(c, &plan, 20.0, z, |run, z| {
        for (i, z) in z.iter_mut().enumerate() {
            let [x_at, y_at] = [0, 1].map(|n| run.offsets[n] + i * run.strides[n]);
            *z = (x[x_at] == y[y_at]) != negate;
        }
    })
}

fn equality(dtype: DType) -> Option<Compare> {
    Some(match dtype {
        DType::BOOL | DType::INT8 | DType::UINT8 | DType::QINT8 | DType::QUINT8 => {
            equal_words::<u8>
        }
        DType::INT16 | DType::UINT16 | DType::QINT16 | DType::QUINT16 => equal_words::<u16>,
        DType::INT32 | DType::UINT32 | DType::QINT32 => equal_words::<u32>,
        DType::INT64 | DType::UINT64 => equal_words::<u64>,
        DType::HALF => equal_floats::<f16>,
        DType::BFLOAT16 => equal_floats::<bf16>,
        DType::FLOAT => equal_floats::<f32>,
        DType::DOUBLE => equal_floats::<f64>,
        DType::COMPLEX64 => equal_complex::<Complex<f32>>,
        DType::COMPLEX128 => equal_complex::<Complex<f64>>,
        DType::STRING => equal_strings,
        _ => return None,
    })
}

/// `Equal`, or `NotEqual` where it negates. Shapes that do not broadcast are an error or unequal,
/// by an attribute.
struct Equality<const NEGATE: bool> {
    compare: Compare,
    wants_one_shape: bool,
}

impl<const NEGATE: bool> Kernel for Equality<NEGATE> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let dtype: DType = c.attr("T")?;
        let compare = equality(dtype).ok_or_else(|| {
            KernelError::unimplemented(format!("comparison of {dtype} is not supported"))
        })?;
        Ok(Equality { compare, wants_one_shape: c.attr("incompatible_shape_error")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if !self.wants_one_shape && broadcast_shape(c.dims(0), c.dims(1)).is_err() {
            c.output::<bool>(0, &[])?.data.fill(NEGATE);
            return Ok(());
        }
        (self.compare)(c, NEGATE)
    }
}

const COMPARED: &[DType] = &[
    DType::BOOL,
    DType::INT8,
    DType::INT16,
    DType::INT32,
    DType::INT64,
    DType::UINT8,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
    DType::QINT8,
    DType::QINT16,
    DType::QINT32,
    DType::QUINT8,
    DType::QUINT16,
    DType::HALF,
    DType::BFLOAT16,
    DType::FLOAT,
    DType::DOUBLE,
    DType::COMPLEX64,
    DType::COMPLEX128,
    DType::STRING,
];

register_kernel!("Equal" on "CPU": Equality<false>, types = ("T", COMPARED),
    numerics = Numerics::EXACT);
register_kernel!("NotEqual" on "CPU": Equality<true>, types = ("T", COMPARED),
    numerics = Numerics::EXACT);

struct ApproximateEqual<T> {
    tolerance: T,
}

impl<T: Compute<Wide = T>> Kernel for ApproximateEqual<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(ApproximateEqual { tolerance: T::from_f64(f64::from(c.attr::<f32>("tolerance")?)) })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if c.dims(0) != c.dims(1) {
            return Err(KernelError::invalid_argument(format!(
                "x and y must be of the same shape: x has {:?}, y has {:?}",
                c.dims(0),
                c.dims(1)
            )));
        }
        zip(c, 0.3, |x: T, y: T| {
            let difference = x.sub(y);
            let below = T::ZERO.sub(self.tolerance);
            difference < self.tolerance && difference > below
        })
    }
}

register_kernel!("ApproximateEqual" on "CPU": ApproximateEqual<T> for "T" in [f32, f64],
    numerics = Numerics::EXACT);
