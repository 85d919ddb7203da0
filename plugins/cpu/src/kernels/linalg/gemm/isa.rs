//! The instruction sets for which there are tiles, and the choice of one.
//!
//! An instruction set is described by a value, [`Isa`]. The choice is a pure function of these
//! values ([`choose`]), which the knob `isa` overrides.

#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::{
    super::product::Factor,
    accumulate::{self, Compiled, Strip},
    vector::Vector,
};
use crate::arch::{Level, level};
use tenon_sdk::{KernelError, author::Knobs, register_knob};

register_knob!(
    "isa": STRING = "",
    "The instruction set that products of floats use; empty for the fastest that the CPU has."
);

/// A tile of [`accumulate`], for one instruction set and one type.
#[derive(Debug)]
pub struct Isa<S: 'static> {
    /// Its name, for the knob.
    pub name: &'static str,
    /// The instructions that the CPU must have.
    pub level: Level,
    /// Rows of a tile.
    pub rows: usize,
    /// Columns of a vector, and of a panel.
    pub lanes: usize,
    /// See `lanes`.
    pub columns: usize,
    /// Approximate number of products per nanosecond.
    pub rate: f64,
    run: unsafe fn(&Strip<'_, S>),
}

impl<S: 'static> Isa<S> {
    /// The description of a tile.
    const fn of<C: Compiled<Vector: Vector<Scalar = S>>>(
        name: &'static str,
        level: Level,
        rate: f64,
    ) -> Isa<S> {
        Isa {
            name,
            level,
            rows: C::ROWS,
            lanes: C::Vector::LANES,
            columns: C::VECTORS * C::Vector::LANES,
            rate,
            run: accumulate::run::<C>,
        }
    }

    /// Whether this CPU has its instructions.
    pub fn is_supported(&self) -> bool {
        self.level <= level()
    }

    /// Computes the tiles of a strip.
    ///
    /// # Safety
    /// - The caller upholds what [`accumulate::strip`] requires.
    #[inline(always)]
    pub unsafe fn run(&self, strip: &Strip<'_, S>) {
        // SAFETY: the caller upholds what `accumulate::strip` requires: the strip's pointers are
        // valid, nothing else uses its sums, and the CPU has the instructions.
        unsafe { (self.run)(strip) }
    }
}

/// Compiles the tiles of an instruction set for these CPU features, with a function for each number
/// of rows.
macro_rules! compiled {
    ($(#[$meta:meta])* $name:ident of $vector:ty, rows = $rows:literal, vectors = $vectors:literal
        $(, features = $features:literal)?) => {
        $(#[$meta])*
        pub struct $name;

        // SAFETY: the functions only run instructions of the set.
        unsafe impl $crate::kernels::linalg::gemm::accumulate::Compiled for $name {
            type Vector = $vector;
            const ROWS: usize = $rows;
            const VECTORS: usize = $vectors;

            unsafe fn strip<const ROWS: usize>(
                strip: &$crate::kernels::linalg::gemm::accumulate::Strip<
                    '_,
                    <$vector as $crate::kernels::linalg::gemm::vector::Vector>::Scalar,
                >,
            ) {
                $(#[target_feature(enable = $features)])?
                #[inline(never)]
                // The caller upholds the conditions of `accumulate::strip`.
                unsafe fn compiled<const ROWS: usize>(
                    strip: &$crate::kernels::linalg::gemm::accumulate::Strip<
                        '_,
                        <$vector as $crate::kernels::linalg::gemm::vector::Vector>::Scalar,
                    >,
                ) {
                    // SAFETY: the caller upholds what `accumulate::strip` requires: the strip's
                    // pointers are valid, nothing else uses its sums, and the CPU has the
                    // instructions.
                    unsafe {
                        $crate::kernels::linalg::gemm::accumulate::strip::<$name, ROWS, $vectors>(strip)
                    }
                }

                // SAFETY: the caller guarantees that the CPU has the features, and the rest that
                // `accumulate::strip` asks for.
                unsafe { compiled::<ROWS>(strip) }
            }
        }
    };
}

use compiled;

/// Types for which there are tiles.
pub trait Tiled: Sized + 'static {
    /// The sets for which this plugin is compiled, the fastest first.
    const ALL: &'static [&'static Isa<Self>];
}

macro_rules! tiled {
    ($ty:ident: $avx512:ident, $avx2:ident, $neon:ident, $portable:ident) => {
        impl Tiled for $ty {
            const ALL: &'static [&'static Isa<$ty>] = &[
                #[cfg(target_arch = "x86_64")]
                &Isa::of::<x86::$avx512>("avx512", Level::Avx512, 70.0),
                #[cfg(target_arch = "x86_64")]
                &Isa::of::<x86::$avx2>("avx2", Level::Avx2, 40.0),
                #[cfg(target_arch = "aarch64")]
                &Isa::of::<neon::$neon>("neon", Level::Baseline, 20.0),
                &Isa::of::<portable::$portable>("portable", Level::Baseline, 4.0),
            ];
        }
    };
}

tiled!(f32: Avx512F32, Avx2F32, NeonF32, PortableF32);
tiled!(f64: Avx512F64, Avx2F64, NeonF64, PortableF64);

/// Sums of products of pairs of bfloat16, with a pair in the bits of a float
/// (`super::super::bf16_dot`): for kernels that are registered with the CPU feature.
#[cfg(target_arch = "x86_64")]
pub static BF16_DOT: Isa<f32> = Isa::of::<x86::Avx512Bf16>("bf16_dot", Level::Avx512, 70.0);

/// The set of this name, or with an empty name the first that is supported.
///
/// # Errors
/// No set has this name, or it is not supported.
pub fn choose<S: 'static>(
    all: &[&'static Isa<S>],
    forced: &str,
    is_supported: impl Fn(&Isa<S>) -> bool,
) -> Result<&'static Isa<S>, KernelError> {
    let mut supported = all.iter().filter(|isa| is_supported(isa));
    let found = supported.find(|isa| forced.is_empty() || isa.name == forced);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> =
            all.iter().filter(|isa| is_supported(isa)).map(|isa| isa.name).collect();
        let names = names.join(", ");
        KernelError::invalid_argument(format!(
            "knob isa: expected one of {names}, which this CPU has, found '{forced}'"
        ))
    })
}

/// The set that the knob names, or the fastest of this CPU; `None` for integers.
///
/// # Errors
/// As [`choose`].
pub fn chosen<S: Factor>(knobs: Knobs<'_>) -> Result<Option<&'static Isa<S>>, KernelError> {
    let forced = knobs.text("isa")?;
    if S::TILES.is_empty() {
        return Ok(None);
    }
    choose(S::TILES, &forced, Isa::is_supported).map(Some)
}

/// The fastest set of this CPU; `None` for integers.
#[inline]
pub fn fastest<S: Factor>() -> Option<&'static Isa<S>> {
    S::TILES.iter().find(|isa| isa.is_supported()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_supported_is_chosen_and_a_name_forces_one() {
        let name =
            |forced, most| choose(f32::ALL, forced, |isa| isa.level <= most).map(|isa| isa.name);
        let first = f32::ALL.first().expect("there is one");
        assert_eq!(name("", Level::Avx512).expect("one is supported"), first.name);
        assert_eq!(name("portable", Level::Avx512).expect("it always is"), "portable");
        let error = name("avx1024", Level::Avx512).expect_err("there is none");
        assert!(error.message.contains("found 'avx1024'"), "{}", error.message);
        #[cfg(target_arch = "x86_64")]
        {
            assert_eq!(name("", Level::Avx2).expect("one is supported"), "avx2");
            assert!(name("avx512", Level::Avx2).is_err(), "the CPU lacks it");
        }
    }
}
