//! The CPU's vector instructions, and loops compiled once for each level of them.
//!
//! A loop is written once, in `vectorised!`; the macro compiles it for the baseline, for AVX2 with
//! FMA and for AVX-512, and a call selects one by [`level`]. The loop itself is plain Rust that the
//! compiler vectorises: iterators over slices of equal length, without branches on the elements
//! other than selections.

use crate::vector::{Plain, Vector};
use std::sync::atomic::{AtomicU8, Ordering};

/// Instructions that a loop may use; each level includes the lower ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// The instructions that the target guarantees.
    Baseline = 1,
    /// AVX2 and FMA.
    Avx2 = 2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512 = 3,
}

static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The highest level of this CPU, determined once.
#[inline(always)]
pub fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        1 => Level::Baseline,
        2 => Level::Avx2,
        3 => Level::Avx512,
        _ => detect(),
    }
}

#[cold]
#[inline(never)]
fn detect() -> Level {
    let level = supported();
    LEVEL.store(level as u8, Ordering::Relaxed);
    level
}

#[cfg(target_arch = "x86_64")]
fn supported() -> Level {
    // A virtual machine may hide features that came with the same CPUs.
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (avx2, avx512) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        _ => Level::Baseline,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn supported() -> Level {
    Level::Baseline
}

/// Properties of the level for which a loop is compiled.
pub trait Isa {
    /// Whether `mul_add` is one instruction; otherwise it is a call of the C library.
    const FMA: bool;
    /// Whether vectors have 32 bytes or more, with the instructions of AVX2.
    const WIDE: bool;
    /// A vector of floats, for loops that are only compiled for the level.
    type Floats: Vector;
}

/// [`Level::Baseline`].
pub enum Baseline {}
/// [`Level::Avx2`].
pub enum Avx2 {}
/// [`Level::Avx512`].
pub enum Avx512 {}

impl Isa for Baseline {
    const FMA: bool = cfg!(target_feature = "fma");
    const WIDE: bool = cfg!(target_feature = "avx2");
    type Floats = Plain;
}
impl Isa for Avx2 {
    const FMA: bool = true;
    const WIDE: bool = true;
    #[cfg(target_arch = "x86_64")]
    type Floats = std::arch::x86_64::__m256;
    #[cfg(not(target_arch = "x86_64"))]
    type Floats = Plain;
}
impl Isa for Avx512 {
    const FMA: bool = true;
    const WIDE: bool = true;
    #[cfg(target_arch = "x86_64")]
    type Floats = std::arch::x86_64::__m512;
    #[cfg(not(target_arch = "x86_64"))]
    type Floats = Plain;
}

/// Compiles a function for every level. The form is `fn name[T: Bound, U: Bound](arguments) -> Type
/// { body }`; in the body, `I` is the [`Isa`]. `fn name at level[...]` takes the level as an
/// argument instead of using the highest one.
///
/// Everything that the body calls must be `#[inline(always)]`; otherwise it is compiled for the
/// baseline.
#[macro_export]
macro_rules! vectorised {
    ($(#[$meta:meta])* $vis:vis fn $name:ident [$($g:ident : $bound:path),*]
        ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[inline]
        $vis fn $name<$($g: $bound),*>($($arg: $ty),*) $(-> $ret)? {
            $crate::arch::vectorised!(@levels $crate::arch::level(), [$($g : $bound),*]
                ($($arg : $ty),*) ($($ret)?) $body)
        }
    };
    ($(#[$meta:meta])* $vis:vis fn $name:ident at level [$($g:ident : $bound:path),*]
        ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[inline]
        $vis fn $name<$($g: $bound),*>(level: $crate::arch::Level, $($arg: $ty),*) $(-> $ret)? {
            $crate::arch::vectorised!(@levels level.min($crate::arch::level()), [$($g : $bound),*]
                ($($arg : $ty),*) ($($ret)?) $body)
        }
    };
    (@levels $level:expr, [$($g:ident : $bound:path),*]
        ($($arg:ident : $ty:ty),*) ($($ret:ty)?) $body:block) => {{
        #[allow(clippy::extra_unused_type_parameters, reason = "many loops need not know the level")]
        #[inline(always)]
        fn body<I: $crate::arch::Isa, $($g: $bound),*>($($arg: $ty),*) $(-> $ret)? $body

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        fn avx2<$($g: $bound),*>($($arg: $ty),*) $(-> $ret)? {
            body::<$crate::arch::Avx2, $($g),*>($($arg),*)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
        fn avx512<$($g: $bound),*>($($arg: $ty),*) $(-> $ret)? {
            body::<$crate::arch::Avx512, $($g),*>($($arg),*)
        }

        /// Not inlined, like the other levels: otherwise every caller would contain a copy of the
        /// loop.
        #[inline(never)]
        fn baseline<$($g: $bound),*>($($arg: $ty),*) $(-> $ret)? {
            body::<$crate::arch::Baseline, $($g),*>($($arg),*)
        }

        match $level {
            // SAFETY: the level says that the CPU has these instructions; every CPU with AVX2 has
            // the bit manipulation ones.
            #[cfg(target_arch = "x86_64")]
            $crate::arch::Level::Avx512 => unsafe { avx512::<$($g),*>($($arg),*) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            $crate::arch::Level::Avx2 => unsafe { avx2::<$($g),*>($($arg),*) },
            _ => baseline::<$($g),*>($($arg),*),
        }
    }};
}

pub use vectorised;

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::element::Number;

    vectorised! {
        fn total at level[T: Number](x: &[T]) -> T {
            x.iter().fold(T::ZERO, |sum, &x| sum.add(x))
        }
    }

    #[test]
    fn every_level_of_this_cpu_computes_the_same() {
        let x: Vec<i32> = (0..1000).collect();
        for at in [Level::Baseline, Level::Avx2, Level::Avx512] {
            assert_eq!(total(at, &x), 499_500, "{at:?}");
        }
    }
}
