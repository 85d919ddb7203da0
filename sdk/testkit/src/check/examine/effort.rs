//! How long is repeated what may go wrong now and then.

use std::time::Duration;

/// A share of the usual time: a plugin with many kernels and element types is not looked at for hours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort(f64);

impl Effort {
    /// The usual time.
    pub const USUAL: Effort = Effort(1.0);

    /// This many times the usual time.
    pub fn times(factor: f64) -> Effort {
        Effort(factor)
    }

    /// The time that is usually this.
    pub(super) fn of(self, usual: Duration) -> Duration {
        usual.mul_f64(self.0)
    }
}
