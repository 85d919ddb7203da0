//! Functions of two and three numbers, and sums of many.

mod accumulate;
mod arithmetic;
mod beta;
mod bitwise;
mod comparison;
mod complex;
mod division;
mod powers;
mod selection;

pub use arithmetic::{Add, Maximum, Minimum, Mul, RealDiv, Sub, add};
pub use powers::SquaredDifference;
