//! Sums of quantised values with different scales: a residual addition, as on every instruction
//! set.

use tenon_sdk::{
    element::Quantised,
    fixed_point::{Addition, QuantizedRange},
};

/// The parameters of an addition of values with zero points.
#[derive(Debug, Clone, Copy)]
pub struct Residual {
    /// Converts summands to the steps of the output.
    pub addition: Addition,
    /// Zero points of the summands and of the output.
    pub zeros: [i32; 3],
    /// Bounds of the output.
    pub range: QuantizedRange,
}

impl Residual {
    /// The sum of two values.
    #[inline(always)]
    pub fn of<T: Quantised>(&self, x: T, y: T) -> T {
        let [a, b, out] = self.zeros;
        let steps = self.addition.apply(x.code() - a, y.code() - b);
        let code = (steps + out).clamp(self.range.low, self.range.high);
        T::saturated(code.clamp(T::LOWEST, T::HIGHEST).into())
    }
}

/// Adds adjacent values: compiled for an instruction set, where the compiler vectorises it.
#[inline(always)]
pub fn run<T: Quantised>(residual: &Residual, x: &[T], y: &[T], z: &mut [T]) {
    let residual = *residual;
    for (z, (&x, &y)) in z.iter_mut().zip(x.iter().zip(y)) {
        *z = residual.of(x, y);
    }
}
