//! What a kernel promises of its results.

use tenon_abi::{DType, Determinism, ToleranceKind};

/// Numerics contract of a kernel.
#[derive(Clone, Copy)]
pub struct Numerics(pub(crate) tenon_abi::Numerics);

impl Numerics {
    /// Nothing is stated.
    pub const UNSPECIFIED: Numerics = Numerics::of(ToleranceKind::UNSPECIFIED, 0.0, 0.0, 0.0);
    /// Equal bit for bit, whatever the machine and the threads.
    pub const EXACT: Numerics =
        Numerics::of(ToleranceKind::EXACT, 0.0, 0.0, 0.0).determinism(Determinism::BITWISE);

    const fn of(tolerance: ToleranceKind, ulps: f64, absolute: f64, relative: f64) -> Numerics {
        Numerics(tenon_abi::Numerics {
            tolerance,
            determinism: Determinism::NONE,
            ulps,
            absolute,
            relative,
            accumulation: DType::INVALID,
            reserved: 0,
        })
    }

    /// Within this number of units in the last place; the same bits from run to run.
    pub const fn ulps(ulps: f64) -> Numerics {
        Numerics::of(ToleranceKind::ULPS, ulps, 0.0, 0.0).determinism(Determinism::RUN_TO_RUN)
    }

    /// Within `absolute + relative * |expected|`, for sums relative to the sum of the absolute terms; the
    /// same bits from run to run.
    pub const fn relative(absolute: f64, relative: f64) -> Numerics {
        Numerics::of(ToleranceKind::ABSOLUTE_RELATIVE, 0.0, absolute, relative)
            .determinism(Determinism::RUN_TO_RUN)
    }

    /// What two runs share.
    pub const fn determinism(mut self, determinism: Determinism) -> Numerics {
        self.0.determinism = determinism;
        self
    }

    /// Type in which sums are kept.
    pub const fn accumulation(mut self, dtype: DType) -> Numerics {
        self.0.accumulation = dtype;
        self
    }

    /// As the boundary has it.
    pub const fn to_abi(self) -> tenon_abi::Numerics {
        self.0
    }
}
