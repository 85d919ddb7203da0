//! The instruction sets for which there are kernels, and the choice of one.
//!
//! An instruction set is described by a value, [`Isa`]. The choice is a pure function of these
//! values ([`choose`]), which the knob `isa` overrides. All sets that this CPU supports compute the
//! same bits.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
mod aarch64_vectors;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
mod x86_vectors;

use crate::{
    accumulate::Compiled,
    depthwise::Depthwise,
    pack::Source,
    product::{self, Product},
    residual::Residual,
    vector::{VECTORS, Vector},
};
use std::{ops::Range, sync::OnceLock};
use tenon_sdk::{
    KernelError,
    abi::LogLevel,
    author::{Knobs, log},
    element::{QInt8, QUInt8, Quantised},
    register_knob,
};

register_knob!(
    "isa": STRING = "",
    "The instruction set that quantised products use; empty for the fastest that the CPU has."
);

type PackRight = unsafe fn(&Source<'_>, usize, &mut [u8], &mut [i32]);
type RunDepthwise = unsafe fn(&Depthwise<'_>, Range<usize>);
type RunAdd<T> = unsafe fn(&Residual, &[T], &[T], &mut [T]);
type Run = unsafe fn(&Product<'_>, Range<usize>, Range<usize>, &mut [u8]);

/// A kernel of [`crate::accumulate`], for one instruction set.
#[derive(Debug)]
pub struct Isa {
    /// Its name, for the knob.
    pub name: &'static str,
    /// Rows of a tile.
    pub rows: usize,
    /// Columns of a tile.
    pub columns: usize,
    /// Whether packed values are words.
    pub words: bool,
    /// Whether packed left values are signed.
    pub left_signed: bool,
    /// Approximate number of products per nanosecond.
    pub rate: f64,
    supported: fn() -> bool,
    pack_right: PackRight,
    run: Run,
    depthwise: RunDepthwise,
    add_unsigned: RunAdd<QUInt8>,
    add_signed: RunAdd<QInt8>,
}

impl Isa {
    /// The description of a vector type.
    const fn of<D: Compiled>(name: &'static str, rate: f64, supported: fn() -> bool) -> Isa {
        Isa {
            name,
            rows: D::ROWS,
            columns: VECTORS * D::Sums::LANES,
            words: D::WORDS,
            left_signed: D::LEFT_SIGNED,
            rate,
            supported,
            pack_right: D::pack_right,
            run: product::run::<D>,
            depthwise: D::depthwise,
            add_unsigned: D::add_unsigned,
            add_signed: D::add_signed,
        }
    }

    /// Whether this CPU has its instructions.
    pub fn is_supported(&self) -> bool {
        (self.supported)()
    }

    /// Packs a panel of a right matrix, like `crate::pack::pack_right`.
    pub fn pack_right(
        &self,
        source: &Source<'_>,
        first: usize,
        panel: &mut [u8],
        sums: &mut [i32],
    ) {
        assert!(self.is_supported(), "the CPU has {}", self.name);
        // SAFETY: the CPU has the instructions.
        unsafe { (self.pack_right)(source, first, panel, sums) }
    }

    /// Runs the loops of a product.
    ///
    /// # Safety
    /// - The caller upholds what `crate::product::run` requires, except that this function checks
    ///   the CPU's instructions, and that the product is packed for them.
    pub unsafe fn run(
        &self,
        product: &Product<'_>,
        rows: Range<usize>,
        columns: Range<usize>,
        scratch: &mut [u8],
    ) {
        assert!(self.is_supported(), "the CPU has {}", self.name);
        assert!(std::ptr::eq(self, product.isa()), "packed for {}", self.name);
        // SAFETY: the CPU has the instructions; the caller guarantees the sizes, and that nothing
        // else computes these panels.
        unsafe { (self.run)(product, rows, columns, scratch) }
    }

    /// Adds adjacent values, like [`crate::residual::run`].
    pub fn add<T: Summand>(&self, residual: &Residual, x: &[T], y: &[T], z: &mut [T]) {
        assert!(self.is_supported(), "the CPU has {}", self.name);
        // SAFETY: the CPU has the instructions.
        unsafe { T::of(self)(residual, x, y, z) }
    }

    /// Computes parts of a depthwise convolution.
    ///
    /// # Safety
    /// - The caller upholds what `crate::depthwise::run` requires, except that this function checks
    ///   the CPU's instructions, and that the convolution is packed for them.
    pub unsafe fn depthwise(&self, convolution: &Depthwise<'_>, units: Range<usize>) {
        assert!(self.is_supported(), "the CPU has {}", self.name);
        assert!(std::ptr::eq(self, convolution.isa()), "packed for {}", self.name);
        assert!(units.end <= convolution.units(), "parts of the convolution");
        // SAFETY: the CPU has the instructions; the caller guarantees that nothing else computes
        // these parts.
        unsafe { (self.depthwise)(convolution, units) }
    }
}

/// An 8-bit type whose values can be added.
pub trait Summand: Quantised {
    /// An instruction set's function for it.
    #[doc(hidden)]
    fn of(isa: &Isa) -> RunAdd<Self>;
}

impl Summand for QUInt8 {
    fn of(isa: &Isa) -> RunAdd<QUInt8> {
        isa.add_unsigned
    }
}

impl Summand for QInt8 {
    fn of(isa: &Isa) -> RunAdd<QInt8> {
        isa.add_signed
    }
}

/// Compiles the inner loops of an instruction set for these CPU features, each as a separate
/// function.
macro_rules! compiled {
    ($dot:ty $(, $features:literal)?) => {
        // SAFETY: the functions only run instructions of the set.
        unsafe impl $crate::accumulate::Compiled for $dot {
            $crate::isa::compiled! {
                @each ($(#[target_feature(enable = $features)])?)
                fn pack_right(source: &$crate::pack::Source<'_>, first: usize, panel: &mut [u8], sums: &mut [i32]) {
                    $crate::pack::pack_right::<$dot>(source, first, panel, sums)
                }
                fn pack_left(left: &$crate::pack::Left<'_>, first: usize, panel: &mut [u8], sums: &mut [i32]) {
                    $crate::pack::pack_left::<$dot>(left, first, panel, sums)
                }
                fn add_unsigned(
                    residual: &$crate::residual::Residual,
                    x: &[tenon_sdk::element::QUInt8],
                    y: &[tenon_sdk::element::QUInt8],
                    z: &mut [tenon_sdk::element::QUInt8]
                ) {
                    $crate::residual::run(residual, x, y, z)
                }
                fn add_signed(
                    residual: &$crate::residual::Residual,
                    x: &[tenon_sdk::element::QInt8],
                    y: &[tenon_sdk::element::QInt8],
                    z: &mut [tenon_sdk::element::QInt8]
                ) {
                    $crate::residual::run(residual, x, y, z)
                }
                fn depthwise(convolution: &$crate::depthwise::Depthwise<'_>, units: std::ops::Range<usize>) {
                    // SAFETY: the caller guarantees that nothing else computes these parts, and
                    // that the CPU has the instructions.
                    unsafe { $crate::depthwise::run::<$dot>(convolution, units) }
                }
                fn strip<const ROWS: usize>(strip: &$crate::accumulate::Strip<'_>) {
                    // SAFETY: the caller upholds what `accumulate::strip` requires: the strip's
                    // pointers are valid, nothing else uses its results, and the CPU has the
                    // instructions.
                    unsafe { $crate::accumulate::strip::<$dot, ROWS>(strip) }
                }
            }
        }
    };
    (@each ($(#[$features:meta])?)) => {};
    (@each ($(#[$features:meta])?)
        fn $name:ident $(<const $rows:ident: usize>)? ($($arg:ident: $ty:ty),*) $body:block $($rest:tt)*) => {
        unsafe fn $name $(<const $rows: usize>)? ($($arg: $ty),*) {
            $(#[$features])?
            #[inline(never)]
            unsafe fn compiled $(<const $rows: usize>)? ($($arg: $ty),*) $body

            // SAFETY: the caller guarantees that the CPU has the features, and the rest that this
            // function asks for.
            unsafe { compiled $(::<$rows>)? ($($arg),*) }
        }
        $crate::isa::compiled! { @each ($(#[$features])?) $($rest)* }
    };
}

use compiled;

/// All instruction sets for which this plugin is compiled, the fastest first.
pub static ALL: &[&Isa] = &[
    #[cfg(target_arch = "x86_64")]
    &x86::AVX512_VNNI,
    #[cfg(target_arch = "x86_64")]
    &x86::AVX_VNNI,
    #[cfg(target_arch = "x86_64")]
    &x86::AVX2,
    #[cfg(target_arch = "aarch64")]
    &aarch64::NEON_DOT,
    #[cfg(target_arch = "aarch64")]
    &aarch64::NEON,
    &portable::PORTABLE,
];

/// Sets that no knob names: each has another set's source, compiled for instructions that more CPUs
/// have, so that its results can be tested on CPUs without that set.
pub static TWINS: &[&Isa] = &[
    #[cfg(target_arch = "x86_64")]
    &x86::AVX_VNNI_TWIN,
];

/// The set of this name, or with an empty name the first that is supported.
///
/// # Errors
/// No set has this name, or it is not supported.
pub fn choose<'a>(
    all: &[&'a Isa],
    forced: &str,
    is_supported: impl Fn(&Isa) -> bool,
) -> Result<&'a Isa, KernelError> {
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

/// The set that the knob names, or the fastest of this CPU; the first choice is logged.
///
/// # Errors
/// As [`choose`].
pub fn chosen(knobs: Knobs<'_>) -> Result<&'static Isa, KernelError> {
    static LOGGED: OnceLock<()> = OnceLock::new();
    let forced = knobs.text("isa")?;
    let isa = choose(ALL, &forced, Isa::is_supported)?;
    LOGGED.get_or_init(|| log(LogLevel::INFO, &format!("quantised products use {}", isa.name)));
    Ok(isa)
}
