//! Adagrad.

use crate::{
    lane::{Lane, Real},
    rules::{Given, MOST, Rule, by_root},
};
use tenon_sdk::prelude::*;

/// `accum += grad^2; var -= lr grad / sqrt(accum)`; without `update_slots`, `accum` stays.
#[derive(Clone, Copy)]
pub struct Adagrad<W> {
    lr: W,
    updates_slots: bool,
    is_single: bool,
}

impl<W: Lane> Adagrad<W> {
    #[inline(always)]
    fn step(
        &self,
        [var, accum, c, d]: [W; MOST],
        gradient: W,
        rsqrt: impl Fn(W) -> W,
    ) -> [W; MOST] {
        let accum = if self.updates_slots { accum + gradient.square() } else { accum };
        let step = gradient * self.lr;
        let change = match self.is_single {
            true => step / accum.sqrt(),
            false => step * rsqrt(accum),
        };
        [var - change, accum, c, d]
    }
}

impl<W: Lane> Rule<W> for Adagrad<W> {
    const SCALARS: &'static [&'static str] = &["lr"];
    const FLAG: Option<&'static str> = Some("update_slots");

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        let is_single = given.is_single;
        Ok(Adagrad { lr: given.scalars[0], updates_slots: given.flag, is_single })
    }

    by_root!();
}

/// `accum += grad^2; var -= lr grad / (sqrt(accum) + epsilon)`; without `update_slots`, `accum` stays.
#[derive(Clone, Copy)]
pub struct AdagradV2<W> {
    lr: W,
    epsilon: W,
    updates_slots: bool,
}

impl<W: Lane> Rule<W> for AdagradV2<W> {
    const SCALARS: &'static [&'static str] = &["lr", "epsilon"];
    const FLAG: Option<&'static str> = Some("update_slots");

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        let [lr, epsilon, ..] = given.scalars;
        Ok(AdagradV2 { lr, epsilon, updates_slots: given.flag })
    }

    #[inline(always)]
    fn update(&self, [var, accum, c, d]: [W; MOST], gradient: W) -> [W; MOST] {
        let accum = if self.updates_slots { accum + gradient.square() } else { accum };
        [var - gradient * self.lr / (accum.sqrt() + self.epsilon), accum, c, d]
    }
}

/// The sums g of the gradients and gg of their squares, and
/// `var = -lr sign(g) max(|g| - step l1, 0) / (l2 step lr + sqrt(gg))`.
#[derive(Clone, Copy)]
pub struct AdagradDa<W> {
    /// `-lr`.
    factor: W,
    /// `step l1`, or nothing where `l1` is not positive.
    threshold: Option<W>,
    /// `l2 step lr`.
    offset: W,
}

impl<W: Real> Rule<W> for AdagradDa<W> {
    const SCALARS: &'static [&'static str] = &["lr", "l1", "l2"];
    const HAS_STEP: bool = true;

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        let [lr, l1, l2, ..] = given.scalars;
        // TensorFlow takes the step as a float, whatever the element type is.
        let step = W::of(f64::from(given.step as f32));
        Ok(AdagradDa {
            factor: lr * W::of(-1.0),
            threshold: (l1 > W::of(0.0)).then(|| step * l1),
            offset: l2 * (step * lr),
        })
    }

    #[inline(always)]
    fn update(&self, [_, sum, squares, d]: [W; MOST], gradient: W) -> [W; MOST] {
        let (sum, squares) = (sum + gradient, squares + gradient.square());
        let weight = match self.threshold {
            Some(threshold) => self.factor * sum.sign() * (sum.abs() - threshold).max(W::of(0.0)),
            None => self.factor * sum,
        };
        [weight / (self.offset + squares.sqrt()), sum, squares, d]
    }
}

/// Of rows: as [`AdagradDa`], divided by `step lr`:
/// `var = -sign(g) max(|g| / step - l1, 0) / (l2 + sqrt(gg) / (step lr))`. Of rows of one element the
/// weight is computed in double, by the formula of [`AdagradDa`].
#[derive(Clone, Copy)]
pub struct AdagradDaRows<W> {
    step: W,
    l1: W,
    l2: W,
    /// `step lr`.
    rate: W,
    is_cut: bool,
    single: Option<InDouble>,
}

/// The scalars of [`AdagradDa`] in double.
#[derive(Clone, Copy)]
struct InDouble {
    lr: f64,
    /// `step l1`.
    threshold: f64,
    /// `l2 step lr`.
    offset: f64,
}

impl<W: Real> AdagradDaRows<W> {
    /// The sum of squares after a gradient, and the weight.
    #[inline(always)]
    fn in_double(&self, of: InDouble, sum: W, squares: W, gradient: W) -> (W, W) {
        let wide = gradient.to_f64();
        let squares = W::of(squares.to_f64() + wide * wide);
        let sum = sum.to_f64();
        let weight = match self.is_cut {
            true => Real::sign(-sum) * of.lr * Real::max(sum.abs() - of.threshold, 0.0),
            false => -sum * of.lr,
        };
        (squares, W::of(weight / (of.offset + squares.sqrt().to_f64())))
    }
}

impl<W: Real> Rule<W> for AdagradDaRows<W> {
    const SCALARS: &'static [&'static str] = &["lr", "l1", "l2"];
    const HAS_STEP: bool = true;

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        let [lr, l1, l2, ..] = given.scalars;
        let (step, wide) = (W::of(given.step as f64), given.step as f64);
        let single = given.is_single.then(|| InDouble {
            lr: lr.to_f64(),
            threshold: wide * l1.to_f64(),
            offset: wide * l2.to_f64() * lr.to_f64(),
        });
        Ok(AdagradDaRows { step, l1, l2, rate: step * lr, is_cut: l1 > W::of(0.0), single })
    }

    #[inline(always)]
    fn update(&self, [_, sum, squares, d]: [W; MOST], gradient: W) -> [W; MOST] {
        let sum = sum + gradient;
        if let Some(single) = self.single {
            let (squares, weight) = self.in_double(single, sum, squares, gradient);
            return [weight, sum, squares, d];
        }
        let squares = squares + gradient.square();
        let mean = match self.is_cut {
            true => {
                let size = (sum.abs() / self.step - self.l1).max(W::of(0.0));
                W::of(-1.0) * sum.sign() * size
            }
            false => W::of(-1.0) * (sum / self.step),
        };
        [mean / (self.l2 + squares.sqrt() / self.rate), sum, squares, d]
    }
}
