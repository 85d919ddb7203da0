//! Rules that compare the sign of a gradient with that of the gradients before.

use super::{Given, MOST, Rule};
use crate::lane::Real;
use tenon_sdk::prelude::*;

/// `m = m beta + (1 - beta) grad; var -= lr (alpha + sign_decay sign(grad) sign(m)) grad`.
#[derive(Clone, Copy)]
pub struct AddSign<W> {
    lr: W,
    alpha: W,
    sign_decay: W,
    beta: W,
    rest: W,
}

impl<W: Real> Rule<W> for AddSign<W> {
    const SCALARS: &'static [&'static str] = &["lr", "alpha", "sign_decay", "beta"];

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        let [lr, alpha, sign_decay, beta, ..] = given.scalars;
        Ok(AddSign { lr, alpha, sign_decay, beta, rest: W::of(1.0) - beta })
    }

    #[inline(always)]
    fn update(&self, [var, m, c, d]: [W; MOST], gradient: W) -> [W; MOST] {
        let m = m * self.beta + gradient * self.rest;
        let scale = self.alpha + self.sign_decay * (gradient.sign() * m.sign());
        [var - self.lr * scale * gradient, m, c, d]
    }
}

/// `m = m beta + (1 - beta) grad; var -= lr exp(logbase sign_decay sign(grad) sign(m)) grad`.
#[derive(Clone, Copy)]
pub struct PowerSign<W> {
    lr: W,
    beta: W,
    rest: W,
    /// The factors of `lr grad` where the signs agree, where one of them is 0, and where they differ.
    scales: [W; 3],
}

impl<W: Real> Rule<W> for PowerSign<W> {
    const SCALARS: &'static [&'static str] = &["lr", "logbase", "sign_decay", "beta"];

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        let [lr, logbase, sign_decay, beta, ..] = given.scalars;
        let scales = [1.0, 0.0, -1.0].map(|sign| (logbase * sign_decay * W::of(sign)).exp());
        Ok(PowerSign { lr, beta, rest: W::of(1.0) - beta, scales })
    }

    #[inline(always)]
    fn update(&self, [var, m, c, d]: [W; MOST], gradient: W) -> [W; MOST] {
        let m = m * self.beta + gradient * self.rest;
        let (sign, zero) = (gradient.sign() * m.sign(), W::of(0.0));
        let [same, none, other] = self.scales;
        let below = if sign < zero { other } else { none };
        let scale = if sign > zero { same } else { below };
        [var - self.lr * scale * gradient, m, c, d]
    }
}
