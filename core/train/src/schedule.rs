//! Learning rates that change with the steps.
//!
//! A [`Schedule`] is a formula; [`Schedule::build`] adds it to a graph, as nodes that read the global step when a step of
//! the session runs. Formulas and boundaries are those of `tf.compat.v1.train` and of Keras. With `t` the step:
//!
//! | schedule | rate |
//! |---|---|
//! | constant | `r` |
//! | exponential | `r * decay^(t / steps)`; with `staircase` the exponent is rounded down |
//! | natural exponential | `r * exp(-decay * t / steps)`; `staircase` likewise |
//! | inverse time | `r / (1 + decay * t / steps)`; `staircase` likewise |
//! | piecewise constant | `values[i]` up to and including the step `boundaries[i]`, then the next value |
//! | polynomial | `(r - end) * (1 - min(t, steps) / steps)^power + end`; with `cycle`, `steps` grows to its next multiple |
//! | cosine | `r * ((1 - alpha) * (1 + cos(pi * min(t, steps) / steps)) / 2 + alpha)` |
//! | cosine with restarts | the same over periods, each `t_mul` as long as the one before and `m_mul` as high |
//! | warm-up | from `from` to `to` in a line over `steps`, then any schedule, which counts its steps from there |

use crate::{TrainError, Variable, nodes::Scope};
use std::f64::consts::PI;
use tenon_framework::DType;
use tenon_graph::{GraphBuilder, Output};

/// A learning rate as a function of the global step.
#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    /// The same rate in each step.
    Constant(f64),
    /// A rate that falls by a factor.
    Decay {
        /// How it falls.
        kind: Decay,
        /// The rate at first.
        rate: f64,
        /// The steps in which it falls by the factor.
        steps: f64,
        /// The factor.
        decay: f64,
        /// Whether it falls once after these steps, and not in each step.
        staircase: bool,
    },
    /// Fixed rates between steps.
    Piecewise {
        /// The last step of each value but the last one, in ascending order.
        boundaries: Vec<i64>,
        /// The rates, one more than boundaries.
        values: Vec<f64>,
    },
    /// A polynomial of the steps that are left.
    Polynomial {
        /// The rate at first.
        rate: f64,
        /// The steps.
        steps: f64,
        /// The rate at the end.
        end: f64,
        /// The exponent.
        power: f64,
        /// Whether it begins again after the steps, over one more time these steps.
        cycle: bool,
    },
    /// Half a period of a cosine.
    Cosine {
        /// The rate at first.
        rate: f64,
        /// The steps.
        steps: f64,
        /// The rate at the end, as a part of `rate`.
        alpha: f64,
    },
    /// Halves of periods of a cosine, one after the other (Loshchilov and Hutter 2017).
    CosineRestarts {
        /// The rate at first.
        rate: f64,
        /// The steps of the first period.
        steps: f64,
        /// How many times as long a period is as the one before; at least 1.
        t_mul: f64,
        /// How many times as high a period begins as the one before.
        m_mul: f64,
        /// The rate at the end of periods, as a part of `rate`.
        alpha: f64,
    },
    /// A rate that grows in a line, then another schedule.
    Warmup {
        /// The rate at first.
        from: f64,
        /// The rate after the steps.
        to: f64,
        /// The steps.
        steps: f64,
        /// The schedule that follows.
        then: Box<Schedule>,
    },
}

/// How a rate falls by a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decay {
    /// `decay^p`.
    Exponential,
    /// `exp(-decay * p)`.
    NaturalExponential,
    /// `1 / (1 + decay * p)`.
    InverseTime,
}

impl Schedule {
    /// An exponential decay in each step.
    pub fn exponential(rate: f64, steps: f64, decay: f64) -> Schedule {
        Schedule::Decay { kind: Decay::Exponential, rate, steps, decay, staircase: false }
    }

    /// A line from `rate` to `end`.
    pub fn linear(rate: f64, steps: f64, end: f64) -> Schedule {
        Schedule::Polynomial { rate, steps, end, power: 1.0, cycle: false }
    }

    /// A cosine from `rate` to 0.
    pub fn cosine(rate: f64, steps: f64) -> Schedule {
        Schedule::Cosine { rate, steps, alpha: 0.0 }
    }

    /// This schedule after a warm-up.
    #[must_use]
    pub fn after_warmup(self, from: f64, to: f64, steps: f64) -> Schedule {
        Schedule::Warmup { from, to, steps, then: Box::new(self) }
    }

    /// Adds the rate to a graph, as a scalar of a floating-point type, in nodes below `name`.
    ///
    /// # Errors
    /// Steps or `t_mul` are out of range, boundaries and values do not fit, or the graph refuses a node.
    pub fn build(
        &self,
        b: &mut GraphBuilder<'_>,
        name: &str,
        global_step: &Variable,
        dtype: DType,
    ) -> Result<Output, TrainError> {
        self.check()?;
        let name = b.unused_name(name);
        let mut scope = Scope::new(b, &name, "");
        let step = scope.node("ReadVariableOp").input(global_step.handle);
        let step = step.attr("dtype", global_step.dtype).device(&global_step.device).build()?;
        let step = scope.cast(step.into(), dtype)?;
        let rate = Formula { scope, dtype }.rate(self, step)?;
        Ok(b.op("Identity").name(&name).input(rate).build()?.into())
    }

    fn check(&self) -> Result<(), TrainError> {
        let refused = |what: &str, expected: &str, found: String| {
            Err(TrainError::argument(format!("{what} of a schedule"), expected, found))
        };
        match self {
            Schedule::Constant(_) => Ok(()),
            Schedule::Piecewise { boundaries, values } => {
                if !boundaries.is_sorted_by(|a, b| a < b) {
                    return refused("the boundaries", "ascending steps", format!("{boundaries:?}"));
                }
                if values.len() != boundaries.len() + 1 {
                    let expected = format!("{}, one more than boundaries", boundaries.len() + 1);
                    return refused("the number of values", &expected, values.len().to_string());
                }
                Ok(())
            }
            Schedule::CosineRestarts { t_mul, .. } if t_mul.is_nan() || *t_mul < 1.0 => {
                refused("t_mul", "at least 1", t_mul.to_string())
            }
            Schedule::Decay { steps, .. }
            | Schedule::Polynomial { steps, .. }
            | Schedule::Cosine { steps, .. }
            | Schedule::CosineRestarts { steps, .. }
            | Schedule::Warmup { steps, .. }
                if steps.is_nan() || *steps <= 0.0 =>
            {
                refused("the steps", "a positive number", steps.to_string())
            }
            Schedule::Warmup { then, .. } => then.check(),
            _ => Ok(()),
        }
    }
}

/// Adds the nodes of a formula.
struct Formula<'s, 'r> {
    scope: Scope<'s, 'r>,
    dtype: DType,
}

impl Formula<'_, '_> {
    fn number(&mut self, value: f64) -> Result<Output, TrainError> {
        self.scope.number("Const", self.dtype, value)
    }

    /// An op of a value and a number.
    fn with(&mut self, op: &str, x: Output, y: f64) -> Result<Output, TrainError> {
        let y = self.number(y)?;
        self.scope.binary(op, x, y)
    }

    /// An op of a number and a value.
    fn of(&mut self, op: &str, x: f64, y: Output) -> Result<Output, TrainError> {
        let x = self.number(x)?;
        self.scope.binary(op, x, y)
    }

    fn select(&mut self, which: Output, yes: Output, no: Output) -> Result<Output, TrainError> {
        Ok(self.scope.node("SelectV2").input(which).input(yes).input(no).build()?.into())
    }

    /// The rate at a step, which has the type of the rate.
    fn rate(&mut self, schedule: &Schedule, step: Output) -> Result<Output, TrainError> {
        match *schedule {
            Schedule::Constant(rate) => self.number(rate),
            Schedule::Decay { kind, rate, steps, decay, staircase } => {
                let mut p = self.with("RealDiv", step, steps)?;
                if staircase {
                    p = self.scope.unary("Floor", p)?;
                }
                self.decay(kind, rate, decay, p)
            }
            Schedule::Piecewise { ref boundaries, ref values } => {
                self.piecewise(boundaries, values, step)
            }
            Schedule::Polynomial { rate, steps, end, power, cycle } => {
                let p = self.part_of_cycle(step, steps, cycle)?;
                let left = self.of("Sub", 1.0, p)?;
                let left = self.with("Pow", left, power)?;
                let above = self.with("Mul", left, rate - end)?;
                self.with("AddV2", above, end)
            }
            Schedule::Cosine { rate, steps, alpha } => {
                let step = self.with("Minimum", step, steps)?;
                let part = self.with("RealDiv", step, steps)?;
                let one = self.number(1.0)?;
                self.cosine(rate, alpha, one, part)
            }
            Schedule::CosineRestarts { rate, steps, t_mul, m_mul, alpha } => {
                let part = self.with("RealDiv", step, steps)?;
                let (restart, part) = self.period(part, t_mul)?;
                let height = self.of("Pow", m_mul, restart)?;
                self.cosine(rate, alpha, height, part)
            }
            Schedule::Warmup { from, to, steps, ref then } => {
                let part = self.with("RealDiv", step, steps)?;
                let above = self.with("Mul", part, to - from)?;
                let warm = self.with("AddV2", above, from)?;
                let since = self.with("Sub", step, steps)?;
                let since = self.with("Maximum", since, 0.0)?;
                let after = self.rate(then, since)?;
                let is_warm = self.with("Less", step, steps)?;
                self.select(is_warm, warm, after)
            }
        }
    }

    fn decay(
        &mut self,
        kind: Decay,
        rate: f64,
        decay: f64,
        p: Output,
    ) -> Result<Output, TrainError> {
        match kind {
            Decay::Exponential => {
                let factor = self.of("Pow", decay, p)?;
                self.with("Mul", factor, rate)
            }
            Decay::NaturalExponential => {
                let exponent = self.with("Mul", p, -decay)?;
                let factor = self.scope.unary("Exp", exponent)?;
                self.with("Mul", factor, rate)
            }
            Decay::InverseTime => {
                let divisor = self.with("Mul", p, decay)?;
                let divisor = self.with("AddV2", divisor, 1.0)?;
                self.of("RealDiv", rate, divisor)
            }
        }
    }

    fn piecewise(
        &mut self,
        boundaries: &[i64],
        values: &[f64],
        step: Output,
    ) -> Result<Output, TrainError> {
        let (last, values) =
            values.split_last().map_or((0.0, values), |(last, rest)| (*last, rest));
        let mut rate = self.number(last)?;
        for (&boundary, &value) in boundaries.iter().zip(values).rev() {
            let is_before = self.with("LessEqual", step, boundary as f64)?;
            let value = self.number(value)?;
            rate = self.select(is_before, value, rate)?;
        }
        Ok(rate)
    }

    /// The part of the steps, between 0 and 1, of a polynomial.
    fn part_of_cycle(
        &mut self,
        step: Output,
        steps: f64,
        cycle: bool,
    ) -> Result<Output, TrainError> {
        if !cycle {
            let step = self.with("Minimum", step, steps)?;
            return self.with("RealDiv", step, steps);
        }
        let cycles = self.with("RealDiv", step, steps)?;
        let cycles = self.scope.unary("Ceil", cycles)?;
        let is_first = self.with("Equal", step, 0.0)?;
        let one = self.number(1.0)?;
        let cycles = self.select(is_first, one, cycles)?;
        let all = self.with("Mul", cycles, steps)?;
        self.scope.binary("RealDiv", step, all)
    }

    /// The number of a period, and the part of it, of steps as a multiple of the first period.
    fn period(&mut self, part: Output, t_mul: f64) -> Result<(Output, Output), TrainError> {
        if t_mul == 1.0 {
            let restart = self.scope.unary("Floor", part)?;
            return Ok((restart, self.scope.binary("Sub", part, restart)?));
        }
        let scaled = self.with("Mul", part, 1.0 - t_mul)?;
        let rest = self.of("Sub", 1.0, scaled)?;
        let log = self.scope.unary("Log", rest)?;
        let base = self.number(t_mul)?;
        let base = self.scope.unary("Log", base)?;
        let periods = self.scope.binary("RealDiv", log, base)?;
        let restart = self.scope.unary("Floor", periods)?;
        let length = self.of("Pow", t_mul, restart)?;
        let before = self.of("Sub", 1.0, length)?;
        let before = self.with("RealDiv", before, 1.0 - t_mul)?;
        let since = self.scope.binary("Sub", part, before)?;
        Ok((restart, self.scope.binary("RealDiv", since, length)?))
    }

    /// `rate * ((1 - alpha) * height * (1 + cos(pi * part)) / 2 + alpha)`.
    fn cosine(
        &mut self,
        rate: f64,
        alpha: f64,
        height: Output,
        part: Output,
    ) -> Result<Output, TrainError> {
        let angle = self.with("Mul", part, PI)?;
        let cosine = self.scope.unary("Cos", angle)?;
        let above = self.with("AddV2", cosine, 1.0)?;
        let half = self.with("Mul", height, 0.5)?;
        let decayed = self.scope.binary("Mul", half, above)?;
        let decayed = self.with("Mul", decayed, 1.0 - alpha)?;
        let decayed = self.with("AddV2", decayed, alpha)?;
        self.with("Mul", decayed, rate)
    }
}
