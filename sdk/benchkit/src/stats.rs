//! Statistics of samples of time.
//!
//! Times are skewed, have outliers, and neighbours resemble one another. So everything here goes by order:
//! medians, ranks, the Hodges-Lehmann estimate; intervals come from resampling blocks of neighbours; outliers
//! are counted and never removed. Results are a function of samples and seed.
//!
//! Methods from books are named where they are used. The tests compare with SciPy's results, which
//! `tests/stats/make.py` computes.

pub mod bootstrap;
pub mod describe;
pub mod holm;
pub mod lehmann;
pub mod random;
pub mod rank;

/// Level of all intervals.
pub const LEVEL: f64 = 0.95;

#[cfg(test)]
mod golden;
