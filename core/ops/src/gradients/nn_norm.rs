//! Gradients of batch normalisation, and of its gradient.
//!
//! With `n` elements in a channel, `m(v)` the mean of a channel, `x'` the normalised input and `r` the inverse of the
//! deviation, the gradient is `dx = s r (g - m(g) - x' m(g x'))`, `ds = sum(g x')`. Its own gradient, from those `u`
//! of `dx`, `v` of `ds` and `w` of the offset, is with `p = m(u g) - m(u) m(g)`, `a = m(u x')` and `b = m(g x')`:
//!
//! - by `g`: `s r (u - m(u) - x' a) + v x' + w`;
//! - by `x`: `-s r^2 (x' (p - a b) + b (u - m(u) - x' a) + a (g - m(g) - x' b)) + v r (g - m(g) - x' b)`;
//! - by `s`: `n r (p - a b)`.
//!
//! In inference mean and deviation are given, so that all terms with `m` are missing.

use super::{Made, Outcome};
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::{DType, KernelError, abi::GraphValue};

/// Sets the gradients of a batch normalisation by its gradient op. `last` is an input of that op that holds what the
/// forward op reserved in its last output.
pub(super) fn normalised(c: &GradientContext<'_>, op: &str, last: Option<GraphValue>) -> Outcome {
    let (mean, spread) = match c.attr::<bool>("is_training")? {
        true => (c.output(3), c.output(4)),
        false => (c.input(3), c.input(4)),
    };
    let node = c.op(op).input(c.gradient(0)?).input(c.input(0)).input(c.input(1));
    let node = node.input(mean).input(spread).inputs(last);
    let parts = node.copy(&["epsilon", "data_format", "is_training"]).outputs()?;
    (0..3).try_for_each(|index| c.set(index, parts[index]))
}

register_gradient!("FusedBatchNormGrad", second);
register_gradient!("FusedBatchNormGradV2", second);
register_gradient!("FusedBatchNormGradV3", second);

/// The axes of all dimensions but the channels', and the shape in which a value of each channel broadcasts.
struct Layout {
    axes: Vec<i64>,
    channels: Vec<i64>,
}

impl Layout {
    fn new(c: &GradientContext<'_>) -> Result<Layout, KernelError> {
        let format: &str = c.attr("data_format")?;
        let rank = format.len();
        let channel = if format.starts_with("NC") { 1 } else { rank - 1 };
        let axes = (0..rank).filter(|&axis| axis != channel).map(|axis| axis as i64).collect();
        let mut channels = vec![1; rank];
        channels[channel] = -1;
        Ok(Layout { axes, channels })
    }

    /// The value of each channel in a shape that broadcasts.
    fn wide(&self, c: &GradientContext<'_>, value: GraphValue) -> Made {
        c.reshape(value, c.ints(&self.channels)?)
    }

    /// The mean of each channel, in a shape that broadcasts.
    fn mean(&self, c: &GradientContext<'_>, value: GraphValue) -> Made {
        let node = c.op("Mean").input(value).input(c.ints(&self.axes)?);
        node.attr("keep_dims", true).done()
    }

    /// The sum of each channel, a vector.
    fn sum(&self, c: &GradientContext<'_>, value: GraphValue) -> Made {
        c.sum(value, c.ints(&self.axes)?, false)
    }
}

/// What the formulas are made of, in single precision.
struct Terms {
    layout: Layout,
    g: GraphValue,
    /// `u`, `v` and `w`.
    given: [GraphValue; 3],
    scale: GraphValue,
    /// `x'` and `r`.
    normal: GraphValue,
    inverse: GraphValue,
}

impl Terms {
    fn new(c: &GradientContext<'_>) -> Result<Terms, KernelError> {
        let layout = Layout::new(c)?;
        let float = |value| c.cast(value, DType::FLOAT);
        let (g, x) = (float(c.input(0))?, float(c.input(1))?);
        let (mean, variance) = match c.attr::<bool>("is_training")? {
            true => {
                let mean = layout.mean(c, x)?;
                let square = c.unary("Square", c.sub(x, mean)?)?;
                (mean, layout.mean(c, square)?)
            }
            false => (layout.wide(c, c.input(3))?, layout.wide(c, c.input(4))?),
        };
        let epsilon = c.number(DType::FLOAT, c.attr::<f32>("epsilon")?.into())?;
        let inverse = c.unary("Rsqrt", c.add(variance, epsilon)?)?;
        let normal = c.mul(c.sub(x, mean)?, inverse)?;
        let given = [
            float(c.gradient(0)?)?,
            layout.wide(c, float(c.gradient(1)?)?)?,
            layout.wide(c, float(c.gradient(2)?)?)?,
        ];
        let scale = layout.wide(c, float(c.input(2))?)?;
        Ok(Terms { layout, g, given, scale, normal, inverse })
    }

    /// `value - m(value) - x' along`.
    fn rest(&self, c: &GradientContext<'_>, value: GraphValue, along: GraphValue) -> Made {
        let centred = c.sub(value, self.layout.mean(c, value)?)?;
        c.sub(centred, c.mul(self.normal, along)?)
    }

    /// The gradients by `g`, `x` and `s` in training.
    fn training(&self, c: &GradientContext<'_>) -> Result<[GraphValue; 3], KernelError> {
        let ([u, v, w], g, mean) = (self.given, self.g, |value| self.layout.mean(c, value));
        let (a, b) = (mean(c.mul(u, self.normal)?)?, mean(c.mul(g, self.normal)?)?);
        let p = c.sub(mean(c.mul(u, g)?)?, c.mul(mean(u)?, mean(g)?)?)?;
        let q = c.sub(p, c.mul(a, b)?)?;
        let (of_u, of_g) = (self.rest(c, u, a)?, self.rest(c, g, b)?);
        let by_g = c.mul(c.mul(self.scale, self.inverse)?, of_u)?;
        let by_g = c.add(by_g, c.add(c.mul(v, self.normal)?, w)?)?;
        let inner = c.add(c.mul(b, of_u)?, c.mul(a, of_g)?)?;
        let inner = c.add(c.mul(self.normal, q)?, inner)?;
        let factor = c.mul(self.scale, c.unary("Square", self.inverse)?)?;
        let by_x = c.sub(c.mul(c.mul(v, self.inverse)?, of_g)?, c.mul(factor, inner)?)?;
        // A sum over the channel, as n times the mean.
        let all = c.mul(c.unary("OnesLike", g)?, c.mul(self.inverse, q)?)?;
        Ok([by_g, by_x, self.layout.sum(c, all)?])
    }

    /// The same in inference.
    fn inference(&self, c: &GradientContext<'_>) -> Result<[GraphValue; 3], KernelError> {
        let ([u, v, w], g) = (self.given, self.g);
        let by_g = c.mul(c.mul(self.scale, self.inverse)?, u)?;
        let by_g = c.add(by_g, c.add(c.mul(v, self.normal)?, w)?)?;
        let by_x = c.mul(c.mul(v, self.inverse)?, g)?;
        let by_scale = c.mul(c.mul(u, self.inverse)?, g)?;
        Ok([by_g, by_x, self.layout.sum(c, by_scale)?])
    }
}

fn second(c: &GradientContext<'_>) -> Outcome {
    let terms = Terms::new(c)?;
    let parts = match c.attr::<bool>("is_training")? {
        true => terms.training(c)?,
        false => terms.inference(c)?,
    };
    (0..3).try_for_each(|index| c.set(index, c.cast(parts[index], c.dtype(c.input(index)))?))
}
