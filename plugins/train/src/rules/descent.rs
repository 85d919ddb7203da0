//! Gradient descent and momentum.

use super::{Given, MOST, Rule};
use crate::lane::Lane;
use tenon_sdk::prelude::*;

/// `var -= alpha delta`.
#[derive(Clone, Copy)]
pub struct GradientDescent<W> {
    alpha: W,
}

impl<W: Lane> Rule<W> for GradientDescent<W> {
    const SCALARS: &'static [&'static str] = &["alpha"];

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        Ok(GradientDescent { alpha: given.scalars[0] })
    }

    #[inline(always)]
    fn update(&self, [var, b, c, d]: [W; MOST], gradient: W) -> [W; MOST] {
        [var - gradient * self.alpha, b, c, d]
    }
}

/// `accum = accum momentum + grad; var -= lr accum`, with Nesterov's momentum
/// `var -= lr grad + lr momentum accum`. Of rows, the product of `lr` and `momentum` is rounded first.
#[derive(Clone, Copy)]
pub struct Momentum<W, const OF_ROWS: bool> {
    lr: W,
    momentum: W,
    use_nesterov: bool,
}

impl<W: Lane, const OF_ROWS: bool> Rule<W> for Momentum<W, OF_ROWS> {
    const SCALARS: &'static [&'static str] = &["lr", "momentum"];
    const FLAG: Option<&'static str> = Some("use_nesterov");

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        let [lr, momentum, ..] = given.scalars;
        Ok(Momentum { lr, momentum, use_nesterov: given.flag })
    }

    #[inline(always)]
    fn update(&self, [var, accum, c, d]: [W; MOST], gradient: W) -> [W; MOST] {
        let Momentum { lr, momentum, use_nesterov } = *self;
        let accum = accum * momentum + gradient;
        let change = match (use_nesterov, OF_ROWS) {
            (true, true) => gradient * lr + accum * (momentum * lr),
            (true, false) => gradient * lr + accum * momentum * lr,
            (false, _) => accum * lr,
        };
        [var - change, accum, c, d]
    }
}

/// `accum = accum momentum - lr grad; var += accum`, with Nesterov's momentum
/// `var += accum momentum - lr grad`.
#[derive(Clone, Copy)]
pub struct KerasMomentum<W> {
    lr: W,
    momentum: W,
    use_nesterov: bool,
}

impl<W: Lane> Rule<W> for KerasMomentum<W> {
    const SCALARS: &'static [&'static str] = &["lr", "momentum"];
    const FLAG: Option<&'static str> = Some("use_nesterov");

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        let [lr, momentum, ..] = given.scalars;
        Ok(KerasMomentum { lr, momentum, use_nesterov: given.flag })
    }

    #[inline(always)]
    fn update(&self, [var, accum, c, d]: [W; MOST], gradient: W) -> [W; MOST] {
        let accum = accum * self.momentum - gradient * self.lr;
        let change = match self.use_nesterov {
            true => accum * self.momentum - gradient * self.lr,
            false => accum,
        };
        [var + change, accum, c, d]
    }
}
