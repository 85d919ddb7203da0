//! `Cast` between all pairs of bool, integers, floats and complex numbers.
//!
//! The real part of a complex number is cast, and a real number gets no imaginary part. Integers
//! keep their low bits; floats to integers truncate and saturate (out of range TensorFlow's result
//! is undefined), with 0 for NaN; to bool: whether the value is not 0. With `Truncate`, low bits of
//! a float that the narrower mantissa lacks are dropped instead of rounded, for the pairs for which
//! TensorFlow does so.

use crate::{
    arch::vectorised,
    kernels::elementwise::any::map,
    lane::Compute,
    split::{Parts, for_elements},
};
use half::{bf16, f16};
use num_complex::Complex;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel, Supported, Supports},
    element::Element,
    reg::{Numerics, join_types},
    register_kernel,
};

/// Conversion of one value.
pub trait Convert<D>: Element {
    /// Converts the value.
    fn convert(self) -> D;
}

macro_rules! converts_to {
    ($source:ty, |$x:ident| $value:expr; $($target:ty),*) => {$(
        impl Convert<$target> for $source {
            #[inline(always)]
            fn convert(self) -> $target {
                let $x = self;
                $value as $target
            }
        }
    )*};
}

macro_rules! converts {
    ($($source:ty: |$x:ident| $value:expr;)*) => {$(
        converts_to!($source, |$x| $value; f32, f64);
        impl Convert<f16> for $source {
            #[inline(always)]
            fn convert(self) -> f16 {
                let $x = self;
                f16::down($value as f32)
            }
        }
        impl Convert<bf16> for $source {
            #[inline(always)]
            fn convert(self) -> bf16 {
                let $x = self;
                bf16::down($value as f32)
            }
        }
        impl Convert<bool> for $source {
            #[inline(always)]
            fn convert(self) -> bool {
                let $x = self;
                $value != (0 as _)
            }
        }
    )*};
}

macro_rules! converts_to_integers {
    ($($source:ty: |$x:ident| $value:expr;)*) => {$(
        converts_to!($source, |$x| $value; i8, i16, i32, i64, u8, u16, u32, u64);
    )*};
}

/// Conversion of a float to an integer with saturation and without branches: the same as `as`, in
/// instructions that exist for vectors.
trait Saturate<D> {
    fn saturated(self) -> D;
}

macro_rules! saturates {
    ($($float:ident: $($target:ident by $through:ident),*;)*) => {$($(
        impl Saturate<$target> for $float {
            #[inline(always)]
            fn saturated(self) -> $target {
                const LOW: $float = $target::MIN as $float;
                // The largest float not above the largest integer, which may not be representable
                // itself.
                const HIGH: $float = {
                    let high = $target::MAX as $float;
                    let is_above = high as i128 > $target::MAX as i128;
                    if is_above { $float::from_bits(high.to_bits() - 1) } else { high }
                };
                let x = if self != self { 0.0 } else { self };
                let x = if x < LOW { LOW } else { x };
                let inside = if x > HIGH { HIGH } else { x };
                // SAFETY: the value is not NaN, and between the smallest and the largest integer.
                let y = unsafe { inside.to_int_unchecked::<$through>() as $target };
                if x > HIGH { $target::MAX } else { y }
            }
        }
    )*)*};
}

saturates! {
    f32: i8 by i32, i16 by i32, i32 by i32, i64 by i64, u8 by i32, u16 by i32, u32 by u32, u64 by u64;
    f64: i8 by i32, i16 by i32, i32 by i32, i64 by i64, u8 by i32, u16 by i32, u32 by u32, u64 by u64;
}

macro_rules! floats_convert_to {
    ($source:ty, |$x:ident| $value:expr; $($target:ty),*) => {$(
        impl Convert<$target> for $source {
            #[inline(always)]
            fn convert(self) -> $target {
                let $x = self;
                $value.saturated()
            }
        }
    )*};
}

macro_rules! floats_convert {
    ($($source:ty: |$x:ident| $value:expr;)*) => {$(
        floats_convert_to!($source, |$x| $value; i8, i16, i32, i64, u8, u16, u32, u64);
    )*};
}

floats_convert! {
    f16: |x| x.up();
    bf16: |x| x.up();
    f32: |x| x;
    f64: |x| x;
}

converts_to_integers! {
    bool: |x| u8::from(x);
    i8: |x| x;
    i16: |x| x;
    i32: |x| x;
    i64: |x| x;
    u8: |x| x;
    u16: |x| x;
    u32: |x| x;
    u64: |x| x;
}

converts! {
    bool: |x| u8::from(x);
    i8: |x| x;
    i16: |x| x;
    i32: |x| x;
    i64: |x| x;
    u8: |x| x;
    u16: |x| x;
    u32: |x| x;
    u64: |x| x;
    f16: |x| x.up();
    bf16: |x| x.up();
    f32: |x| x;
    f64: |x| x;
}

/// A float without the low bits of its mantissa; NaN is preserved.
trait Truncate: Element {
    fn without_low_bits(self, count: u32) -> Self;
}

macro_rules! truncates {
    ($($ty:ty),*) => {$(
        impl Truncate for $ty {
            #[inline(always)]
            fn without_low_bits(self, count: u32) -> $ty {
                let kept = <$ty>::from_bits(self.to_bits() >> count << count);
                if self.is_nan() { self } else { kept }
            }
        }
    )*};
}

truncates!(f32, f64);

vectorised! {
    fn convert[S: Convert<D>, D: Element](x: &[S], y: &mut [D]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = x.convert();
        }
    }
}

type Run = fn(&ComputeContext<'_>) -> Result<(), KernelError>;

/// Casts a tensor.
fn cast<S: Convert<D>, D: Element>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<S>(0)?;
    let y = Parts::new(c.output::<D>(0, x.dims)?.data);
    for_elements(c, x.data.len(), 0.3, |range| {
        // SAFETY: ranges of one split are disjoint.
        convert(&x.data[range.clone()], unsafe { y.part(range) });
    })
}

/// Evaluates a value of type `Option` with `$t` naming the Rust type of a dtype; `None` for others.
macro_rules! by_type {
    ($dtype:expr, $t:ident => $value:expr) => {
        $crate::kernels::cast::by_type!(@arms $dtype, $t => $value; BOOL bool, INT8 i8, INT16 i16, INT32 i32, INT64 i64,
            UINT8 u8, UINT16 u16, UINT32 u32, UINT64 u64, HALF f16, BFLOAT16 bf16, FLOAT f32, DOUBLE f64)
    };
    (@arms $dtype:expr, $t:ident => $value:expr; $($name:ident $ty:ty),*) => {
        match $dtype {
            $(DType::$name => {
                type $t = $ty;
                $value
            })*
            _ => None,
        }
    };
}

pub(super) use by_type;

/// Casts the real parts of a tensor.
fn cast_real_parts<R: Convert<D>, D: Element>(c: &ComputeContext<'_>) -> Result<(), KernelError>
where
    Complex<R>: Element,
{
    map(c, 0.5, |x: Complex<R>| x.re.convert())
}

/// Casts a tensor of real numbers to complex ones.
fn cast_to_complex<S: Convert<R>, R: Element>(c: &ComputeContext<'_>) -> Result<(), KernelError>
where
    Complex<R>: Element,
{
    map(c, 0.5, |x: S| Complex::new(x.convert(), R::default()))
}

/// Casts both parts.
fn cast_parts<R: Convert<Q>, Q: Element>(c: &ComputeContext<'_>) -> Result<(), KernelError>
where
    Complex<R>: Element,
    Complex<Q>: Element,
{
    map(c, 0.5, |x: Complex<R>| Complex::new(x.re.convert(), x.im.convert()))
}

/// The function for a pair with one complex type.
fn complex(source: DType, target: DType) -> Option<Run> {
    Some(match (source, target) {
        (DType::COMPLEX64, DType::COMPLEX64) => same_type::<Complex<f32>>,
        (DType::COMPLEX128, DType::COMPLEX128) => same_type::<Complex<f64>>,
        (DType::COMPLEX64, DType::COMPLEX128) => cast_parts::<f32, f64>,
        (DType::COMPLEX128, DType::COMPLEX64) => cast_parts::<f64, f32>,
        (DType::COMPLEX64, _) => {
            return by_type!(target, D => Some(cast_real_parts::<f32, D> as Run));
        }
        (DType::COMPLEX128, _) => {
            return by_type!(target, D => Some(cast_real_parts::<f64, D> as Run));
        }
        (_, DType::COMPLEX64) => {
            return by_type!(source, S => Some(cast_to_complex::<S, f32> as Run));
        }
        (_, DType::COMPLEX128) => {
            return by_type!(source, S => Some(cast_to_complex::<S, f64> as Run));
        }
        _ => return None,
    })
}

/// Casts a tensor after dropping the `BITS` low bits of each element.
fn cast_truncated<S: Convert<D> + Truncate, D: Element, const BITS: u32>(
    c: &ComputeContext<'_>,
) -> Result<(), KernelError> {
    let x = c.input::<S>(0)?;
    let y = c.output::<D>(0, x.dims)?;
    for (y, x) in y.data.iter_mut().zip(x.data) {
        *y = x.without_low_bits(BITS).convert();
    }
    Ok(())
}

/// Up to this many bytes a copy costs less than sharing the input's buffer.
const SMALL_BYTES: u64 = 4096;

fn same_type<T: Element>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (slot, dims) = (c.slot(0)?, c.dims(0));
    if slot.bytes > SMALL_BYTES {
        return c.share(0, 0, dims);
    }
    let x = c.input::<T>(0)?.data;
    c.output::<T>(0, dims)?.data.copy_from_slice(x);
    Ok(())
}

fn same_strings(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.share(0, 0, c.dims(0))
}

/// Copies: integers of the same size differ only in the meaning of their bits.
fn same_bits<S: Convert<D>, D: Element>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<S>(0)?;
    convert_bits(x.data, c.output::<D>(0, x.dims)?.data);
    Ok(())
}

/// A separate function, so that the compiler knows that the slices do not overlap and makes it a
/// copy.
#[inline(never)]
fn convert_bits<S: Convert<D>, D: Element>(x: &[S], y: &mut [D]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = x.convert();
    }
}

/// The function for two integer types of the same size.
fn copy(source: DType, target: DType) -> Option<Run> {
    Some(match (source, target) {
        (DType::INT8, DType::UINT8) => same_bits::<i8, u8>,
        (DType::UINT8, DType::INT8) => same_bits::<u8, i8>,
        (DType::INT16, DType::UINT16) => same_bits::<i16, u16>,
        (DType::UINT16, DType::INT16) => same_bits::<u16, i16>,
        (DType::INT32, DType::UINT32) => same_bits::<i32, u32>,
        (DType::UINT32, DType::INT32) => same_bits::<u32, i32>,
        (DType::INT64, DType::UINT64) => same_bits::<i64, u64>,
        (DType::UINT64, DType::INT64) => same_bits::<u64, i64>,
        _ => return None,
    })
}

fn to_any<S>(target: DType) -> Option<Run>
where
    S: Convert<bool> + Convert<i8> + Convert<i16> + Convert<i32> + Convert<i64> + Convert<u8>,
    S: Convert<u16> + Convert<u32> + Convert<u64> + Convert<f16> + Convert<bf16>,
    S: Convert<f32> + Convert<f64>,
{
    by_type!(target, D => Some(cast::<S, D> as Run))
}

/// The function for a pair of types; `None` if there is none.
fn choose(source: DType, target: DType, truncate: bool) -> Option<Run> {
    match (source, target) {
        (DType::STRING, DType::STRING) => return Some(same_strings),
        (source, target) if source == target && !COMPLEX.contains(&source) => {
            return by_type!(source, T => Some(same_type::<T> as Run));
        }
        (DType::DOUBLE, DType::FLOAT) if truncate => return Some(cast_truncated::<f64, f32, 29>),
        (DType::DOUBLE, DType::HALF) if truncate => return Some(cast_truncated::<f64, f16, 42>),
        (DType::FLOAT, DType::HALF) if truncate => return Some(cast_truncated::<f32, f16, 13>),
        (DType::FLOAT, DType::BFLOAT16) if truncate => {
            return Some(cast_truncated::<f32, bf16, 16>);
        }
        _ => {}
    }
    copy(source, target)
        .or_else(|| complex(source, target))
        .or_else(|| by_type!(source, S => to_any::<S>(target)))
}

/// Whether there is a function for the types of a node; they are examined again when its kernel is
/// created.
pub(super) fn supported(c: &CreateContext<'_>) -> Supported {
    match (c.attr("SrcT"), c.attr("DstT")) {
        (Ok(source), Ok(target)) if (source == DType::STRING) != (target == DType::STRING) => {
            Supported::No(unsupported(source, target).message)
        }
        (Ok(_), Ok(_)) => Supported::Yes,
        (Err(error), _) | (_, Err(error)) => Supported::No(error.message),
    }
}

/// The error for a pair without a function.
pub(super) fn unsupported(source: DType, target: DType) -> KernelError {
    KernelError::unimplemented(format!("cast of {source} to {target} is not supported"))
}

struct Cast(Run);

impl Kernel for Cast {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (source, target): (DType, DType) = (c.attr("SrcT")?, c.attr("DstT")?);
        let run = choose(source, target, c.attr("Truncate")?);
        run.map(Cast).ok_or_else(|| unsupported(source, target))
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        (self.0)(c)
    }
}

impl Supports for Cast {
    fn supports(c: &CreateContext<'_>) -> Supported {
        supported(c)
    }
}

/// Real types that are cast.
const REAL: &[DType] = &[
    DType::BOOL,
    DType::INT8,
    DType::INT16,
    DType::INT32,
    DType::INT64,
    DType::UINT8,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
    DType::HALF,
    DType::BFLOAT16,
    DType::FLOAT,
    DType::DOUBLE,
];

const COMPLEX: &[DType] = &[DType::COMPLEX64, DType::COMPLEX128];

/// Types that the reference casts; strings to strings only.
pub(super) const PLAIN_TYPES: &[DType] = &join_types::<{ REAL.len() + 1 }>(REAL, &[DType::STRING]);

/// Types that are cast.
const TYPES: &[DType] = &join_types::<{ PLAIN_TYPES.len() + 2 }>(PLAIN_TYPES, COMPLEX);

register_kernel!("Cast" on "CPU": Cast, types = ("SrcT", TYPES), types = ("DstT", TYPES),
    numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::values;
    use tenon_reference::cast as reference;

    #[test]
    fn every_pair_has_a_function() {
        for &source in TYPES {
            for &target in TYPES {
                let strings =
                    [source, target].iter().filter(|&&dtype| dtype == DType::STRING).count();
                assert_eq!(
                    choose(source, target, false).is_some(),
                    strings != 1,
                    "{source} {target}"
                );
            }
        }
        assert!(choose(DType::STRING, DType::FLOAT, false).is_none());
        assert!(choose(DType::FLOAT, DType::QINT8, false).is_none());
    }

    #[test]
    fn values_are_those_of_the_reference() {
        fn check<S: Compute + Convert<D> + reference::CastElement, D: reference::CastElement>() {
            let mut x = values::<S>(300, 4);
            x[0] = S::from_f64(f64::NAN);
            x[1] = S::HIGHEST;
            x[2] = S::LOWEST;
            let (mut expected, mut found) = (vec![D::default(); 300], vec![D::default(); 300]);
            reference::cast(&x, &mut expected, false);
            convert(&x, &mut found);
            let same = |(a, b): (&D, &D)| a == b || (a != a && b != b);
            assert!(found.iter().zip(&expected).all(same), "{} {}", S::DTYPE, D::DTYPE);
        }
        check::<f32, i32>();
        check::<f32, u8>();
        check::<f64, u64>();
        check::<f64, bf16>();
        check::<i64, f16>();
        check::<u16, i8>();
        check::<f16, bool>();
        check::<bf16, f64>();
    }

    #[test]
    fn truncation_is_that_of_the_reference() {
        let x = values::<f32>(100, 6);
        let mut expected = vec![bf16::ZERO; 100];
        reference::cast(&x, &mut expected, true);
        let found: Vec<bf16> = x.iter().map(|x| x.without_low_bits(16).convert()).collect();
        assert_eq!(found, expected);
        assert!(f32::NAN.without_low_bits(16).is_nan());
    }
}
