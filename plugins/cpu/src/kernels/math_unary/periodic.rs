//! Sine, cosine and tangent.

use crate::{
    arch::Isa,
    kernels::{
        elementary::angle,
        elementwise::{UnaryOp, any, map, map_in_place},
    },
    lane::Compute,
    split::for_parts,
};
use half::{bf16, f16};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, InOut},
    reg::Numerics,
    register_kernel,
};

/// The number of elements that a loop computes together if no angle among them is too large for it.
const ANGLES: usize = 256;

/// Whether the loop over these is right: what is not finite becomes NaN in it.
#[inline(always)]
fn are_small<T: Compute<Wide = f32>>(x: &[T]) -> bool {
    let is_small = |x: f32| (x < angle::LARGEST) | (x == f32::INFINITY) | x.is_nan();
    // Not `all`, which would stop at the first failure.
    x.iter().fold(true, |so_far, x| so_far & is_small(x.up().abs()))
}

/// The function of an angle of any size.
#[inline(always)]
fn one<T: Compute<Wide = f32>, O: Periodic>(x: T) -> T {
    let x = x.up();
    let is_large = x.abs() > angle::LARGEST;
    T::down(if is_large { O::large(x) } else { O::apply::<crate::arch::Baseline>(x) })
}

/// A function with a period.
trait Periodic: UnaryOp<f32> {
    /// The function of an angle beyond [`angle::LARGEST`].
    fn large(x: f32) -> f32;
}

fn periodic<T: Compute<Wide = f32>, O: Periodic>(
    c: &ComputeContext<'_>,
) -> Result<(), KernelError> {
    let level = crate::arch::level();
    match c.in_place::<T>(0, 0, c.dims(0))? {
        InOut::InPlace(y) => for_parts(c, y, O::COST_NS, |_, y| {
            for y in y.chunks_mut(ANGLES) {
                match are_small(y) {
                    true => map_in_place::<T, O>(level, y),
                    false => y.iter_mut().for_each(|y| *y = one::<T, O>(*y)),
                }
            }
        }),
        InOut::Separate(x, y) => for_parts(c, y, O::COST_NS, |start, y| {
            for (y, x) in y.chunks_mut(ANGLES).zip(x[start..].chunks(ANGLES)) {
                match are_small(x) {
                    true => map::<T, O>(level, x, y),
                    false => y.iter_mut().zip(x).for_each(|(y, &x)| *y = one::<T, O>(x)),
                }
            }
        }),
    }
}

macro_rules! periodic {
    ($($op:literal $fast:ident $name:ident $large:ident $double:ident, $cost:expr;)*) => {$(
        struct $fast;

        impl UnaryOp<f32> for $fast {
            const COST_NS: f64 = $cost;
            const BY_ISA: bool = true;
            #[inline(always)]
            fn apply<I: Isa>(x: f32) -> f32 {
                angle::$name::<I>(f64::from(x)) as f32
            }
        }

        impl Periodic for $fast {
            fn large(x: f32) -> f32 {
                angle::$large(x)
            }
        }

        fn $name<T: Compute<Wide = f32>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            periodic::<T, $fast>(c)
        }

        fn $double(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            any::map_in_place::<f64>(c, 4.0 * $cost, f64::$name)
        }

        register_kernel!($op on "CPU": fn $name<T> for "T" in [f16, bf16, f32],
            in_place = &[(0, 0)], numerics = Numerics::ulps(1.0));
        register_kernel!($op on "CPU": fn $double, types = ("T", &[DType::DOUBLE]),
            in_place = &[(0, 0)], numerics = Numerics::ulps(1.0));
    )*};
}

periodic! {
    "Sin" Sin sin sin_large sin_double, 1.5;
    "Cos" Cos cos cos_large cos_double, 1.5;
    "Tan" Tan tan tan_large tan_double, 2.0;
}
