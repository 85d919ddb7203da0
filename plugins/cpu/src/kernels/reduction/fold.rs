//! What `Sum`, `Mean` and `Max` do with an element: the only part in which they differ.

use crate::lane::Compute;
use half::{bf16, f16};
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
