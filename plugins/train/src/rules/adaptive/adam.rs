//! Adam and its kin.

use crate::{
    lane::{Lane, Real},
    rules::{Given, MOST, Rule},
};
use tenon_sdk::prelude::*;

/// The scalars of Adam.
#[derive(Clone, Copy)]
struct OfAdam<W> {
    /// `lr sqrt(1 - beta2_power) / (1 - beta1_power)`.
    alpha: W,
    beta1: W,
    rest1: W,
    rest2: W,
    epsilon: W,
}

const OF_ADAM: &[&str] = &["beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"];

impl<W: Lane> OfAdam<W> {
    fn new(given: &Given<W>) -> Self {
        let [power1, power2, lr, beta1, beta2, epsilon, ..] = given.scalars;
        let one = W::of(1.0);
        OfAdam {
            alpha: lr * (one - power2).sqrt() / (one - power1),
            beta1,
            rest1: one - beta1,
            rest2: one - beta2,
            epsilon,
        }
    }

    /// The moments after an update.
    #[inline(always)]
    fn moments(&self, m: W, v: W, gradient: W) -> (W, W) {
        (m + (gradient - m) * self.rest1, v + (gradient.square() - v) * self.rest2)
    }
}

/// `m += (grad - m) (1 - beta1); v += (grad^2 - v) (1 - beta2); var -= alpha m / (sqrt(v) + epsilon)`, with Nesterov's
/// momentum `beta1 m + (1 - beta1) grad` instead of `m`.
#[derive(Clone, Copy)]
pub struct Adam<W> {
    of: OfAdam<W>,
    use_nesterov: bool,
}

impl<W: Lane> Rule<W> for Adam<W> {
    const SCALARS: &'static [&'static str] = OF_ADAM;
    const FLAG: Option<&'static str> = Some("use_nesterov");

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        Ok(Adam { of: OfAdam::new(given), use_nesterov: given.flag })
    }

    #[inline(always)]
    fn update(&self, [var, m, v, d]: [W; MOST], gradient: W) -> [W; MOST] {
        let OfAdam { alpha, beta1, rest1, epsilon, .. } = self.of;
        let (m, v) = self.of.moments(m, v, gradient);
        let direction = match self.use_nesterov {
            true => gradient * rest1 + beta1 * m,
            false => m,
        };
        [var - direction * alpha / (v.sqrt() + epsilon), m, v, d]
    }
}

/// As [`Adam`]; `vhat = max(vhat, v)` takes the place of `v` in the update of `var`.
#[derive(Clone, Copy)]
pub struct Amsgrad<W>(OfAdam<W>);

impl<W: Real> Rule<W> for Amsgrad<W> {
    const SCALARS: &'static [&'static str] = OF_ADAM;

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        Ok(Amsgrad(OfAdam::new(given)))
    }

    #[inline(always)]
    fn update(&self, [var, m, v, vhat]: [W; MOST], gradient: W) -> [W; MOST] {
        let OfAdam { alpha, epsilon, .. } = self.0;
        let (m, v) = self.0.moments(m, v, gradient);
        let vhat = vhat.max(v);
        [var - m * alpha / (vhat.sqrt() + epsilon), m, v, vhat]
    }
}

/// `m += (grad - m) (1 - beta1); v = max(beta2 v, |grad|); var -= lr / (1 - beta1_power) m / (v + epsilon)`.
#[derive(Clone, Copy)]
pub struct AdaMax<W> {
    rate: W,
    rest1: W,
    beta2: W,
    epsilon: W,
}

impl<W: Real> Rule<W> for AdaMax<W> {
    const SCALARS: &'static [&'static str] = &["beta1_power", "lr", "beta1", "beta2", "epsilon"];

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        let [power1, lr, beta1, beta2, epsilon, ..] = given.scalars;
        let one = W::of(1.0);
        Ok(AdaMax { rate: lr / (one - power1), rest1: one - beta1, beta2, epsilon })
    }

    #[inline(always)]
    fn update(&self, [var, m, v, d]: [W; MOST], gradient: W) -> [W; MOST] {
        let m = m + (gradient - m) * self.rest1;
        let v = (self.beta2 * v).max(gradient.abs());
        [var - self.rate * (m / (v + self.epsilon)), m, v, d]
    }
}
