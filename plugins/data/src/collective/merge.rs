//! The arithmetic of reductions.

use tenon_sdk::prelude::*;

/// How two values become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Merge {
    Add,
    Mul,
    Min,
    Max,
}

impl Merge {
    /// # Errors
    /// Another text.
    pub fn parse(text: &str) -> Result<Merge, KernelError> {
        match text {
            "Add" => Ok(Merge::Add),
            "Mul" => Ok(Merge::Mul),
            "Min" => Ok(Merge::Min),
            "Max" => Ok(Merge::Max),
            other => Err(KernelError::invalid_argument(format!(
                "merge_op '{other}': expected Add, Mul, Min or Max"
            ))),
        }
    }

    /// Merges the values of an earlier member with those of this one. NaN stays.
    pub fn apply<T: Merged>(self, own: &mut [T], earlier: &[T]) {
        let pairs = own.iter_mut().zip(earlier);
        match self {
            Merge::Add => pairs.for_each(|(own, &earlier)| *own = earlier.add(*own)),
            Merge::Mul => pairs.for_each(|(own, &earlier)| *own = earlier.mul(*own)),
            Merge::Min => pairs.for_each(|(own, &it)| {
                if it < *own || it.is_nan() {
                    *own = it;
                }
            }),
            Merge::Max => pairs.for_each(|(own, &it)| {
                if it > *own || it.is_nan() {
                    *own = it;
                }
            }),
        }
    }
}

/// A type whose values can be merged.
pub(super) trait Merged: Number + Send + Sync {
    /// The value divided by a number of members; integers are rounded towards zero.
    fn divided(self, members: u32) -> Self;
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Merged for $ty {
            fn divided(self, members: u32) -> $ty {
                // A group has fewer members than the type has values.
                <$ty>::try_from(members).map_or(0, |members| self.wrapping_div(members.max(1)))
            }
        }
    )*};
}
integers!(i32, i64);

macro_rules! floats {
    ($($ty:ty),*) => {$(
        impl Merged for $ty {
            fn divided(self, members: u32) -> $ty {
                // A quotient in twice the digits, rounded once more, is the rounded quotient.
                <$ty>::from_f64(self.to_f64() / f64::from(members))
            }
        }
    )*};
}
floats!(f16, bf16, f32, f64);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn merged<T: Merged>(merge: Merge, own: &[T], earlier: &[T]) -> Vec<T> {
        let mut own = own.to_vec();
        merge.apply(&mut own, earlier);
        own
    }

    #[test]
    fn values_are_merged_by_element() {
        let (own, earlier) = ([1i32, 5, i32::MAX], [2, -3, 1]);
        assert_eq!(merged(Merge::Add, &own, &earlier), [3, 2, i32::MIN]);
        assert_eq!(merged(Merge::Mul, &own, &earlier), [2, -15, i32::MAX]);
        assert_eq!(merged(Merge::Min, &own, &earlier), [1, -3, 1]);
        assert_eq!(merged(Merge::Max, &own, &earlier), [2, 5, i32::MAX]);
        assert!(Merge::parse("Sub").unwrap_err().message.contains("'Sub'"));
    }

    #[test]
    fn not_a_number_stays() {
        for merge in [Merge::Add, Merge::Mul, Merge::Min, Merge::Max] {
            let got = merged(merge, &[f32::NAN, 1.0], &[1.0, f32::NAN]);
            assert!(got.iter().all(|it| it.is_nan()), "{merge:?} {got:?}");
        }
    }

    #[test]
    fn quotients_are_tensorflow_s() {
        assert_eq!([-3i32, 5, 13].map(|it| it.divided(2)), [-1, 2, 6]);
        assert_eq!(7f32.divided(3), 2.333_333_3);
        assert_eq!(f16::from_f64(14.0).divided(3).to_f64(), 4.667_968_75);
        assert_eq!(bf16::from_f64(14.0).divided(3).to_f64(), 4.656_25);
    }
}
