//! Rules that shrink weights.

use super::{Given, MOST, Rule};
use crate::lane::Real;
use tenon_sdk::prelude::*;

fn refused(name: &str, expected: &str, found: impl Real) -> KernelError {
    KernelError::invalid_argument(format!("{name} is not {expected}: {}", found.to_f64()))
}

/// Checks that a scalar is 0 or more.
fn not_negative<W: Real>(name: &str, value: W) -> Result<(), KernelError> {
    if value >= W::of(0.0) {
        return Ok(());
    }
    Err(refused(name, "a non-negative scalar", value))
}

/// Checks that a scalar is more than 0.
fn positive<W: Real>(name: &str, value: W) -> Result<(), KernelError> {
    if value > W::of(0.0) { Ok(()) } else { Err(refused(name, "a positive scalar", value)) }
}

/// What shrinks a weight.
#[derive(Clone, Copy)]
struct Shrinking<W> {
    l1: W,
    l2: W,
    is_cut: bool,
    /// Whether the weight is one of a row of one element, whose quotient is computed in double.
    is_single: bool,
}

impl<W: Real> Shrinking<W> {
    fn new(l1: W, l2: W, is_single: bool) -> Self {
        Shrinking { l1, l2, is_cut: l1 > W::of(0.0), is_single }
    }

    /// `sign(p) max(|p| - rate l1, 0) / (1 + l2 rate)`; without `l1`, `p / (1 + l2 rate)`.
    #[inline(always)]
    fn shrunk(self, weight: W, rate: W) -> W {
        let kept = match self.is_cut {
            true => weight.sign() * (weight.abs() - rate * self.l1).max(W::of(0.0)),
            false => weight,
        };
        let growth = self.l2 * rate;
        match self.is_single {
            true => W::of(kept.to_f64() / (1.0 + growth.to_f64())),
            false => kept / (W::of(1.0) + growth),
        }
    }
}

/// `p = var - alpha delta; var = sign(p) max(|p| - alpha l1, 0) / (1 + alpha l2)`.
#[derive(Clone, Copy)]
pub struct ProximalGradientDescent<W> {
    alpha: W,
    shrinking: Shrinking<W>,
}

impl<W: Real> Rule<W> for ProximalGradientDescent<W> {
    const SCALARS: &'static [&'static str] = &["alpha", "l1", "l2"];

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        let [alpha, l1, l2, ..] = given.scalars;
        Ok(ProximalGradientDescent { alpha, shrinking: Shrinking::new(l1, l2, given.is_single) })
    }

    #[inline(always)]
    fn update(&self, [var, b, c, d]: [W; MOST], gradient: W) -> [W; MOST] {
        let ProximalGradientDescent { alpha, shrinking } = *self;
        [shrinking.shrunk(var - gradient * alpha, alpha), b, c, d]
    }
}

/// `accum += grad^2; a = lr / sqrt(accum); p = var - a grad; var = sign(p) max(|p| - a l1, 0) / (1 + a l2)`.
#[derive(Clone, Copy)]
pub struct ProximalAdagrad<W> {
    lr: W,
    shrinking: Shrinking<W>,
}

impl<W: Real> Rule<W> for ProximalAdagrad<W> {
    const SCALARS: &'static [&'static str] = &["lr", "l1", "l2"];

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        let [lr, l1, l2, ..] = given.scalars;
        positive("lr", lr)?;
        not_negative("l1 regularization strength", l1)?;
        not_negative("l2 regularization strength", l2)?;
        Ok(ProximalAdagrad { lr, shrinking: Shrinking::new(l1, l2, given.is_single) })
    }

    #[inline(always)]
    fn update(&self, [var, accum, c, d]: [W; MOST], gradient: W) -> [W; MOST] {
        let ProximalAdagrad { lr, shrinking } = *self;
        let accum = accum + gradient.square();
        let rate = if shrinking.is_single { lr / accum.sqrt() } else { lr * accum.rsqrt() };
        [shrinking.shrunk(var - gradient * rate, rate), accum, c, d]
    }
}

/// The scalars of Ftrl.
#[derive(Clone, Copy)]
struct OfFtrl<W> {
    lr: W,
    /// `l1`, or `l1 lr` with `multiply_linear_by_lr`.
    threshold: W,
    /// `2 l2`, or `2 l2 lr`.
    offset: W,
    /// `2 l2_shrinkage`, or nothing.
    shrinkage: Option<W>,
    /// `-lr_power`, or nothing where it is 0.5.
    power: Option<W>,
    multiplies: bool,
    is_single: bool,
}

/// The names of those scalars; Ftrl of the first version has all but the last one.
const OF_FTRL: &[&str] = &["lr", "l1", "l2", "lr_power", "l2_shrinkage"];
const MULTIPLIES: Option<&str> = Some("multiply_linear_by_lr");

impl<W: Real> OfFtrl<W> {
    fn new(given: &Given<W>, shrinks: bool) -> Self {
        let [lr, l1, l2, power, shrinkage, ..] = given.scalars;
        let (two, multiplies) = (W::of(2.0), given.flag);
        OfFtrl {
            lr,
            threshold: if multiplies { l1 * lr } else { l1 },
            offset: if multiplies { two * l2 * lr } else { two * l2 },
            shrinkage: shrinks.then(|| two * shrinkage),
            power: (power != W::of(-0.5)).then(|| -power),
            multiplies,
            is_single: given.is_single,
        }
    }

    /// As [`OfFtrl::new`], of rows, whose ops check their scalars.
    fn of_rows(given: &Given<W>, shrinks: bool) -> Result<Self, KernelError> {
        let [lr, l1, l2, power, shrinkage, ..] = given.scalars;
        // Only `multiply_linear_by_lr` does not divide by the rate.
        if !(given.flag && lr >= W::of(0.0)) {
            positive("lr", lr)?;
        }
        not_negative("l1 regularization strength", l1)?;
        not_negative("l2 regularization strength", l2)?;
        if shrinks {
            not_negative("l2 shrinkage regularization strength", shrinkage)?;
        }
        if power > W::of(0.0) {
            return Err(refused("lr_power", "a non-positive scalar", power));
        }
        Ok(Self::new(given, shrinks))
    }

    #[inline(always)]
    fn powered(&self, accum: W) -> W {
        match self.power {
            None => accum.sqrt(),
            Some(power) => accum.pow(power),
        }
    }

    /// The sums `accum` and `linear` after an update, and the divisor of the weight.
    #[inline(always)]
    fn sums(&self, [var, accum, linear, _]: [W; MOST], gradient: W) -> [W; 3] {
        let shifted = match self.shrinkage {
            Some(shrinkage) => gradient + shrinkage * var,
            None => gradient,
        };
        let after = accum + gradient.square();
        let powered = self.powered(after);
        let growth = powered - self.powered(accum);
        let (gain, loss, divisor) = match self.multiplies {
            true => (shifted * self.lr, growth * var, powered),
            false => (shifted, growth / self.lr * var, powered / self.lr),
        };
        let linear = match self.is_single {
            true => linear + gain - loss,
            false => linear + (gain - loss),
        };
        [after, linear, divisor + self.offset]
    }
}

/// `n = accum + grad^2; linear += grad - (n^p - accum^p) / lr var; accum = n`, with `p = -lr_power`, and
/// `var = (sign(linear) l1 - linear) / (n^p / lr + 2 l2)` where `|linear| > l1`, else 0. The second version adds
/// `2 l2_shrinkage var` to the gradient in the sum; `multiply_linear_by_lr` multiplies `linear` by `lr`.
#[derive(Clone, Copy)]
pub struct Ftrl<W, const SHRINKS: bool>(OfFtrl<W>);

impl<W: Real, const SHRINKS: bool> Rule<W> for Ftrl<W, SHRINKS> {
    const SCALARS: &'static [&'static str] = if SHRINKS { OF_FTRL } else { OF_FTRL.split_at(4).0 };
    const FLAG: Option<&'static str> = MULTIPLIES;
    const COST_NS: f64 = 2.0;

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        Ok(Ftrl(OfFtrl::new(given, SHRINKS)))
    }

    #[inline(always)]
    fn update(&self, variables: [W; MOST], gradient: W) -> [W; MOST] {
        let [accum, linear, divisor] = self.0.sums(variables, gradient);
        let threshold = self.0.threshold;
        let weight = (threshold * linear.sign() - linear) / divisor;
        let var = if linear.abs() > threshold { weight } else { W::of(0.0) };
        [var, accum, linear, variables[3]]
    }
}

/// Of rows: as [`Ftrl`], with the weight `(min(max(linear, -l1), l1) - linear) / (n^p / lr + 2 l2)`.
#[derive(Clone, Copy)]
pub struct FtrlRows<W, const SHRINKS: bool>(OfFtrl<W>);

impl<W: Real, const SHRINKS: bool> Rule<W> for FtrlRows<W, SHRINKS> {
    const SCALARS: &'static [&'static str] = Ftrl::<W, SHRINKS>::SCALARS;
    const FLAG: Option<&'static str> = MULTIPLIES;
    const COST_NS: f64 = 2.0;

    fn new(given: &Given<W>) -> Result<Self, KernelError> {
        Ok(FtrlRows(OfFtrl::of_rows(given, SHRINKS)?))
    }

    #[inline(always)]
    fn update(&self, variables: [W; MOST], gradient: W) -> [W; MOST] {
        let [accum, linear, divisor] = self.0.sums(variables, gradient);
        let threshold = self.0.threshold;
        let kept = linear.min(threshold).max(-threshold);
        [(kept - linear) / divisor, accum, linear, variables[3]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ftrl of rows with this rate and lr_power -0.5, without other scalars.
    fn of_rate(lr: f32, flag: bool) -> Result<FtrlRows<f32, false>, KernelError> {
        let scalars = [lr, 0.0, 0.0, -0.5, 0.0, 0.0, 0.0, 0.0];
        FtrlRows::new(&Given { scalars, step: 0, flag, is_single: false })
    }

    #[test]
    fn a_rate_of_zero_is_for_a_sum_that_it_multiplies() {
        for (lr, flag) in [(0.0, false), (-1.0, false), (-1.0, true), (f32::NAN, true)] {
            let error = of_rate(lr, flag).err().unwrap_or_else(|| panic!("{lr} {flag}"));
            assert_eq!(error.code, Code::INVALID_ARGUMENT);
            assert!(
                error.message.starts_with("lr is not a positive scalar: "),
                "{}",
                error.message
            );
        }
        // The sum of squares grows to 4 + 5, so that the linear sum is 1 - (3 - 2) 4 = -3, and the weight 3 / 3.
        let rule = of_rate(0.0, true).unwrap_or_else(|error| panic!("{}", error.message));
        let found = rule.update([4.0, 4.0, 1.0, 0.0], 5f32.sqrt());
        for (found, expected) in found.into_iter().zip([1.0f32, 9.0, -3.0, 0.0]) {
            assert!((found - expected).abs() < 1e-5, "{found} {expected}");
        }
        assert!(of_rate(0.1, false).is_ok());
    }
}
