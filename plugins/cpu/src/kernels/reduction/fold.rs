//! What a reduction does with an element: the only part in which reductions differ.

use crate::lane::Compute;
use half::{bf16, f16};
use num_complex::Complex;
use tenon_sdk::element::Number;

/// A reduction of many elements to one.
pub trait Fold<T>: Send + Sync + 'static {
    /// What is known of the elements so far.
    type State: Copy + Send + Sync;
    /// Of no elements.
    const START: Self::State;
    /// Takes one more element.
    fn take(state: Self::State, x: T) -> Self::State;
    /// Of the elements of both.
    fn merge(a: Self::State, b: Self::State) -> Self::State;
    /// The result for `count` elements.
    fn finish(state: Self::State, count: usize) -> T;
}

/// The sum; 0 of nothing.
pub struct Sum;

impl<T: Compute> Fold<T> for Sum {
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
    fn finish(state: T::Wide, _count: usize) -> T {
        T::down(state)
    }
}

/// The largest element, NaN when one is NaN; the lowest value (negative infinity) of nothing.
pub struct Max;

impl<T: Compute> Fold<T> for Max {
    type State = T::Wide;
    const START: T::Wide = T::Wide::LOWEST;
    #[inline(always)]
    fn take(state: T::Wide, x: T) -> T::Wide {
        <Max as Fold<T>>::merge(state, x.up())
    }
    #[inline(always)]
    fn merge(a: T::Wide, b: T::Wide) -> T::Wide {
        if b > a || b.is_nan() { b } else { a }
    }
    #[inline(always)]
    fn finish(state: T::Wide, _count: usize) -> T {
        T::down(state)
    }
}

/// The smallest element, NaN when one is NaN; the highest value (infinity) of nothing.
pub struct Min;

impl<T: Compute> Fold<T> for Min {
    type State = T::Wide;
    const START: T::Wide = T::Wide::HIGHEST;
    #[inline(always)]
    fn take(state: T::Wide, x: T) -> T::Wide {
        <Min as Fold<T>>::merge(state, x.up())
    }
    #[inline(always)]
    fn merge(a: T::Wide, b: T::Wide) -> T::Wide {
        if b < a || b.is_nan() { b } else { a }
    }
    #[inline(always)]
    fn finish(state: T::Wide, _count: usize) -> T {
        T::down(state)
    }
}

/// The product; 1 of nothing.
pub struct Prod;

impl<T: Compute> Fold<T> for Prod {
    type State = T::Wide;
    const START: T::Wide = T::Wide::ONE;
    #[inline(always)]
    fn take(state: T::Wide, x: T) -> T::Wide {
        state.mul(x.up())
    }
    #[inline(always)]
    fn merge(a: T::Wide, b: T::Wide) -> T::Wide {
        a.mul(b)
    }
    #[inline(always)]
    fn finish(state: T::Wide, _count: usize) -> T {
        T::down(state)
    }
}

/// A type of computation with a square root.
pub trait Rooted: Compute {
    /// The square root; of an integer, rounded down.
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
    i32: |x| f64::from(x).sqrt() as i32;
    i64: |x| (x as f64).sqrt() as i64;
    u8: |x| x.isqrt();
    u16: |x| x.isqrt();
    u32: |x| x.isqrt();
    u64: |x| (x as f64).sqrt() as u64;
}

/// The square root of the sum of squares; 0 of nothing. Integers wrap before the root is taken.
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

/// Whether all are true; true of nothing.
pub struct All;
/// Whether one is true; false of nothing.
pub struct Any;

macro_rules! fold_bools {
    ($($fold:ty: $start:literal, |$a:ident, $b:ident| $merge:expr;)*) => {
        $(impl Fold<bool> for $fold {
            type State = bool;
            const START: bool = $start;
            #[inline(always)]
            fn take($a: bool, $b: bool) -> bool {
                $merge
            }
            #[inline(always)]
            fn merge($a: bool, $b: bool) -> bool {
                $merge
            }
            #[inline(always)]
            fn finish(state: bool, _count: usize) -> bool {
                state
            }
        })*
    };
}

fold_bools! {
    All: true, |a, b| a & b;
    Any: false, |a, b| a | b;
}

macro_rules! fold_complex {
    ($($float:ty),*) => {$(
        impl Fold<Complex<$float>> for Sum {
            type State = Complex<$float>;
            const START: Complex<$float> = Complex::new(0.0, 0.0);
            #[inline(always)]
            fn take(state: Self::State, x: Complex<$float>) -> Self::State {
                state + x
            }
            #[inline(always)]
            fn merge(a: Self::State, b: Self::State) -> Self::State {
                a + b
            }
            #[inline(always)]
            fn finish(state: Self::State, _count: usize) -> Complex<$float> {
                state
            }
        }

        impl Fold<Complex<$float>> for Mean {
            type State = Complex<$float>;
            const START: Complex<$float> = Complex::new(0.0, 0.0);
            #[inline(always)]
            fn take(state: Self::State, x: Complex<$float>) -> Self::State {
                state + x
            }
            #[inline(always)]
            fn merge(a: Self::State, b: Self::State) -> Self::State {
                a + b
            }
            #[inline(always)]
            fn finish(state: Self::State, count: usize) -> Complex<$float> {
                // Of nothing: 0, as in TensorFlow, where a real mean is NaN.
                state / count.max(1) as $float
            }
        }

        impl Fold<Complex<$float>> for Prod {
            type State = Complex<$float>;
            const START: Complex<$float> = Complex::new(1.0, 0.0);
            #[inline(always)]
            fn take(state: Self::State, x: Complex<$float>) -> Self::State {
                state * x
            }
            #[inline(always)]
            fn merge(a: Self::State, b: Self::State) -> Self::State {
                a * b
            }
            #[inline(always)]
            fn finish(state: Self::State, _count: usize) -> Complex<$float> {
                state
            }
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

/// A type of which means are taken.
pub trait Averaged: Compute {
    /// Holds sums: 64 bits for integers, which wrap.
    type Total: Compute<Wide = Self::Total>;
    /// Widens.
    fn total(self) -> Self::Total;
    /// The sum divided by the count, of integers rounded towards 0. Of nothing: NaN, 0 for integers.
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
