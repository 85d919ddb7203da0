//! Folds: the operations of a reduction on elements, which are the only part in which reductions
//! differ.

use crate::lane::Compute;
use half::{bf16, f16};
use num_complex::Complex;
use tenon_sdk::element::Number;

/// A reduction of many elements to one.
pub trait Fold<T>: Send + Sync + 'static {
    /// The state of the fold over the elements so far.
    type State: Copy + Send + Sync;
    /// The state of no elements.
    const START: Self::State;
    /// Adds one more element to a state.
    fn take(state: Self::State, x: T) -> Self::State;
    /// The state of the elements of both states.
    fn merge(a: Self::State, b: Self::State) -> Self::State;
    /// The result for `count` elements.
    fn finish(state: Self::State, count: usize) -> T;
}

/// The sum; 0 of no elements.
pub struct Sum;
/// The product; 1 of no elements.
pub struct Prod;
/// The largest element, NaN if one is NaN; the lowest value (negative infinity) of no elements.
pub struct Max;
/// The smallest element, NaN if one is NaN; the highest value (infinity) of no elements.
pub struct Min;

/// Defines folds whose state is a value of the type of computation, and which merge an element like
/// a state.
macro_rules! fold_wide {
    ($($fold:ty: $start:ident, |$a:ident, $b:ident| $merge:expr;)*) => {
        $(impl<T: Compute> Fold<T> for $fold {
            type State = T::Wide;
            const START: T::Wide = T::Wide::$start;
            #[inline(always)]
            fn take(state: T::Wide, x: T) -> T::Wide {
                <$fold as Fold<T>>::merge(state, x.up())
            }
            #[inline(always)]
            fn merge($a: T::Wide, $b: T::Wide) -> T::Wide {
                $merge
            }
            #[inline(always)]
            fn finish(state: T::Wide, _count: usize) -> T {
                T::down(state)
            }
        })*
    };
}

fold_wide! {
    Sum: ZERO, |a, b| a.add(b);
    Prod: ONE, |a, b| a.mul(b);
    Max: LOWEST, |a, b| if b > a || b.is_nan() { b } else { a };
    Min: HIGHEST, |a, b| if b < a || b.is_nan() { b } else { a };
}

/// A type of computation with a square root.
pub trait Rooted: Compute {
    /// The square root; of an integer, rounded down. For a negative integer, the result of a sum
    /// that wrapped, it is TensorFlow's conversion of NaN: the least number of 32 and 64 bits, else
    /// 0.
    fn root(self) -> Self;
}

macro_rules! rooted {
    ($($ty:ty: |$x:ident| $root:expr;)*) => {
        $(impl Rooted for $ty {
            #[inline(always)]
            fn root(self) -> $ty {
                let $x = self;
                $root
            }
        })*
    };
}

rooted! {
    f32: |x| x.sqrt();
    f64: |x| x.sqrt();
    i8: |x| f64::from(x).sqrt() as i8;
    i16: |x| f64::from(x).sqrt() as i16;
    i32: |x| if x < 0 { i32::MIN } else { f64::from(x).sqrt() as i32 };
    i64: |x| if x < 0 { i64::MIN } else { (x as f64).sqrt() as i64 };
    u8: |x| x.isqrt();
    u16: |x| x.isqrt();
    u32: |x| x.isqrt();
    u64: |x| (x as f64).sqrt() as u64;
}

/// The square root of the sum of squares; 0 of no elements. Integers wrap before the root is taken,
/// see [`Rooted`].
pub struct EuclideanNorm;

impl<T: Compute<Wide: Rooted>> Fold<T> for EuclideanNorm {
    type State = T::Wide;
    const START: T::Wide = T::Wide::ZERO;
    #[inline(always)]
    fn take(state: T::Wide, x: T) -> T::Wide {
        state.add(x.up().mul(x.up()))
    }
    #[inline(always)]
    fn merge(a: T::Wide, b: T::Wide) -> T::Wide {
        a.add(b)
    }
    #[inline(always)]
    fn finish(state: T::Wide, _count: usize) -> T {
        T::down(state.root())
    }
}

/// Whether all are true; true of no elements.
pub struct All;
/// Whether one is true; false of no elements.
pub struct Any;

/// Defines folds of truth values, whose state is a byte: loops over bytes vectorise.
macro_rules! fold_truth {
    ($($fold:ty: $start:expr, |$a:ident, $b:ident| $merge:expr;)*) => {
        $(impl Fold<bool> for $fold {
            type State = u8;
            const START: u8 = $start;
            #[inline(always)]
            fn take(state: u8, x: bool) -> u8 {
                <$fold as Fold<bool>>::merge(state, u8::from(x))
            }
            #[inline(always)]
            fn merge($a: u8, $b: u8) -> u8 {
                $merge
            }
            #[inline(always)]
            fn finish(state: u8, _count: usize) -> bool {
                state != 0
            }
        })*
    };
}

fold_truth! {
    All: 1, |a, b| a & b;
    Any: 0, |a, b| a | b;
}

/// Defines folds whose state is an element.
macro_rules! fold_itself {
    ($($fold:ty, $ty:ty: $start:expr, |$a:ident, $b:ident| $merge:expr,
        |$state:ident, $count:ident| $finish:expr;)*) => {
        $(impl Fold<$ty> for $fold {
            type State = $ty;
            const START: $ty = $start;
            #[inline(always)]
            fn take(state: $ty, x: $ty) -> $ty {
                <$fold as Fold<$ty>>::merge(state, x)
            }
            #[inline(always)]
            fn merge($a: $ty, $b: $ty) -> $ty {
                $merge
            }
            #[inline(always)]
            fn finish($state: $ty, $count: usize) -> $ty {
                $finish
            }
        })*
    };
}

macro_rules! fold_complex {
    ($($float:ty),*) => {$(
        fold_itself! {
            Sum, Complex<$float>: Complex::new(0.0, 0.0), |a, b| a + b, |state, _count| state;
            Prod, Complex<$float>: Complex::new(1.0, 0.0), |a, b| a * b, |state, _count| state;
            // 0 of no elements, as in TensorFlow, where a real mean is NaN.
            Mean, Complex<$float>: Complex::new(0.0, 0.0), |a, b| a + b,
                |state, count| state / count.max(1) as $float;
        }

        impl Fold<Complex<$float>> for EuclideanNorm {
            type State = $float;
            const START: $float = 0.0;
            #[inline(always)]
            fn take(state: $float, x: Complex<$float>) -> $float {
                state + x.norm_sqr()
            }
            #[inline(always)]
            fn merge(a: $float, b: $float) -> $float {
                a + b
            }
            #[inline(always)]
            fn finish(state: $float, _count: usize) -> Complex<$float> {
                Complex::new(state.sqrt(), 0.0)
            }
        }
    )*};
}

fold_complex!(f32, f64);

/// A type whose elements have a mean.
pub trait Averaged: Compute {
    /// The type of sums: 64 bits for integers, which wrap.
    type Total: Compute<Wide = Self::Total>;
    /// Converts to the type of sums.
    fn total(self) -> Self::Total;
    /// The sum divided by the count, for integers rounded towards 0. Of no elements: NaN, 0 for
    /// integers.
    fn quotient(total: Self::Total, count: usize) -> Self;
}

macro_rules! averaged {
    ($total:ty, |$sum:ident, $count:ident| $quotient:expr; $($ty:ty),*) => {$(
        impl Averaged for $ty {
            type Total = $total;
            #[inline(always)]
            fn total(self) -> $total {
                <$total>::from(self.up())
            }
            #[inline(always)]
            fn quotient($sum: $total, $count: usize) -> $ty {
                $quotient
            }
        }
    )*};
}

averaged!(i64, |sum, count| sum.checked_div(count as i64).unwrap_or(0) as _; i8, i16, i32, i64);
averaged!(u64, |sum, count| sum.checked_div(count as u64).unwrap_or(0) as _; u8, u16, u32, u64);
averaged!(f32, |sum, count| Compute::down(sum / count as f32); f16, bf16, f32);
averaged!(f64, |sum, count| sum / count as f64; f64);

/// The mean.
pub struct Mean;

impl<T: Averaged> Fold<T> for Mean {
    type State = T::Total;
    const START: T::Total = T::Total::ZERO;
    #[inline(always)]
    fn take(state: T::Total, x: T) -> T::Total {
        state.add(x.total())
    }
    #[inline(always)]
    fn merge(a: T::Total, b: T::Total) -> T::Total {
        a.add(b)
    }
    #[inline(always)]
    fn finish(state: T::Total, count: usize) -> T {
        T::quotient(state, count)
    }
}

/// The sum divided by the square root of the number of elements.
pub struct RootMean;

impl<T: Compute> Fold<T> for RootMean {
    type State = T::Wide;
    const START: T::Wide = T::Wide::ZERO;
    #[inline(always)]
    fn take(state: T::Wide, x: T) -> T::Wide {
        state.add(x.up())
    }
    #[inline(always)]
    fn merge(a: T::Wide, b: T::Wide) -> T::Wide {
        a.add(b)
    }
    #[inline(always)]
    fn finish(state: T::Wide, count: usize) -> T {
        T::down(state.mul(T::Wide::from_f64(1.0 / (count as f64).sqrt())))
    }
}
