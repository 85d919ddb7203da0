//! `FusedBatchNormV3`.

use tenon_framework::element::Float;
use tenon_geometry::ChannelSplit;

/// Attributes.
#[derive(Debug, Clone, Copy)]
pub struct BatchNormParams {
    /// Added to the variance.
    pub epsilon: f32,
    /// Share of this batch in the running mean and variance: `(1 - factor) * old + factor * new`.
    pub exponential_avg_factor: f32,
    /// Whether to normalise by the statistics of the batch, or by the given ones.
    pub is_training: bool,
}

impl BatchNormParams {
    /// Whether `mean` and `variance` are read, and so hold a value per channel: always but in training with
    /// a factor of 1, where TensorFlow's clients leave them empty.
    pub fn reads_statistics(&self) -> bool {
        !self.is_training || self.exponential_avg_factor != 1.0
    }
}

/// Inputs.
#[derive(Debug, Clone, Copy)]
pub struct BatchNormInputs<'a, T, U> {
    /// The tensor.
    pub x: &'a [T],
    /// Scale of each channel.
    pub scale: &'a [U],
    /// Offset of each channel.
    pub offset: &'a [U],
    /// Mean of each channel; may be empty unless [`BatchNormParams::reads_statistics`].
    pub mean: &'a [U],
    /// Variance of each channel; may be empty unless [`BatchNormParams::reads_statistics`].
    pub variance: &'a [U],
}

/// Outputs. The sixth, `reserve_space_3`, holds nothing on a CPU: it is a scalar 0 there.
#[derive(Debug)]
pub struct BatchNormOutputs<'a, T, U> {
    /// The normalised tensor.
    pub y: &'a mut [T],
    /// Running mean of each channel.
    pub batch_mean: &'a mut [U],
    /// Running variance of each channel.
    pub batch_variance: &'a mut [U],
    /// Training: mean of the batch, for the gradient. Inference: `mean` again (TensorFlow leaves it unset).
    pub reserve_space_1: &'a mut [U],
    /// Training: variance of the batch, for the gradient. Inference: `variance` again.
    pub reserve_space_2: &'a mut [U],
}

/// `y = (x - mean) / sqrt(variance + epsilon) * scale + offset`, channel by channel, computed in `f64` but for
/// the variance, which is rounded to `U`.
///
/// In training, mean and variance are those of the channel (the variance divided by the number of values
/// `n`), and the running statistics take the factor's share of the mean and of `variance * n / (n - 1)`. In
/// inference they are the given ones, which `batch_mean` and `batch_variance` repeat. A batch without elements
/// gives NaN for those two and 0 for the reserved ones, in both modes, as in TensorFlow.
pub fn fused_batch_norm<T: Float, U: Float>(
    split: &ChannelSplit,
    params: &BatchNormParams,
    inputs: &BatchNormInputs<'_, T, U>,
    outputs: &mut BatchNormOutputs<'_, T, U>,
) {
    for c in 0..split.channels {
        let given = |list: &[U]| if params.reads_statistics() { list[c].to_f64() } else { 0.0 };
        let old = [inputs.mean, inputs.variance].map(given);
        let values = places(split, c).map(|i| inputs.x[i].to_f64());
        let Statistics { used, running, reserved } = statistics(params, old, values);
        // The variance is one of type U, as the outputs give it: where it overflows, so it does here.
        let variance = U::from_f64(used[1]).to_f64();
        let scale = inputs.scale[c].to_f64() / (variance + f64::from(params.epsilon)).sqrt();
        let offset = inputs.offset[c].to_f64();
        for i in places(split, c) {
            outputs.y[i] = T::from_f64((inputs.x[i].to_f64() - used[0]) * scale + offset);
        }
        outputs.batch_mean[c] = U::from_f64(running[0]);
        outputs.batch_variance[c] = U::from_f64(running[1]);
        outputs.reserve_space_1[c] = U::from_f64(reserved[0]);
        outputs.reserve_space_2[c] = U::from_f64(reserved[1]);
    }
}

/// Offsets of the values of a channel.
fn places(split: &ChannelSplit, channel: usize) -> impl Iterator<Item = usize> + Clone {
    let ChannelSplit { outer, channels, inner } = *split;
    (0..outer).flat_map(move |o| {
        let first = (o * channels + channel) * inner;
        first..first + inner
    })
}

/// Mean and variance of a channel.
struct Statistics {
    /// By which it is normalised.
    used: [f64; 2],
    /// For `batch_mean` and `batch_variance`.
    running: [f64; 2],
    /// For the reserved outputs.
    reserved: [f64; 2],
}

fn statistics(
    params: &BatchNormParams,
    old: [f64; 2],
    values: impl Iterator<Item = f64> + Clone,
) -> Statistics {
    let n = values.clone().count() as f64;
    if n == 0.0 {
        return Statistics { used: old, running: [f64::NAN; 2], reserved: [0.0; 2] };
    }
    if !params.is_training {
        return Statistics { used: old, running: old, reserved: old };
    }
    let mean = values.clone().sum::<f64>() / n;
    let variance = values.map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    let unbiased = variance * n / (n - 1.0).max(1.0);
    let share = f64::from(params.exponential_avg_factor);
    let update = |old: f64, new: f64| (1.0 - share) * old + share * new;
    Statistics {
        used: [mean, variance],
        running: [update(old[0], mean), update(old[1], unbiased)],
        reserved: [mean, variance],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_geometry::DataFormat;

    /// y, batch mean, batch variance, reserved mean, reserved variance.
    type Results = (Vec<f32>, [[f32; 2]; 4]);

    fn run(dims: &[i64], x: &[f32], params: &BatchNormParams, format: DataFormat) -> Results {
        let split = ChannelSplit::new(dims, format).unwrap();
        let statistics: [&[f32]; 2] =
            if params.reads_statistics() { [&[1.0, 2.0], &[3.0, 4.0]] } else { [&[], &[]] };
        let inputs = BatchNormInputs {
            x,
            scale: &[1.0, 2.0],
            offset: &[0.5, -1.0],
            mean: statistics[0],
            variance: statistics[1],
        };
        let (mut y, mut per_channel) = (vec![9.0; x.len()], [[9.0; 2]; 4]);
        let [batch_mean, batch_variance, reserve_space_1, reserve_space_2] = &mut per_channel;
        let mut outputs = BatchNormOutputs {
            y: &mut y,
            batch_mean,
            batch_variance,
            reserve_space_1,
            reserve_space_2,
        };
        fused_batch_norm(&split, params, &inputs, &mut outputs);
        (y, per_channel)
    }

    fn params(is_training: bool, exponential_avg_factor: f32) -> BatchNormParams {
        BatchNormParams { epsilon: 1e-3, exponential_avg_factor, is_training }
    }

    fn close(found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len());
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 2e-6), "{found:?}");
    }

    const DIMS: [i64; 4] = [1, 2, 3, 2];

    #[test]
    fn training_is_tensorflow_s() {
        let x: Vec<f32> = (0..12).map(|i| i as f32).collect();
        let (y, found) = run(&DIMS, &x, &params(true, 1.0), DataFormat::Nhwc);
        close(&y[..4], &[-0.963787, -3.927574, -0.378272, -2.756544]);
        close(&y[8..], &[1.378272, 0.756544, 1.963787, 1.927574]);
        close(&found.concat(), &[5.0, 6.0, 14.0, 14.0, 5.0, 6.0, 11.666667, 11.666667]);
        let (_, found) = run(&DIMS, &x, &params(true, 0.25), DataFormat::Nhwc);
        close(&found.concat(), &[2.0, 3.0, 5.75, 6.5, 5.0, 6.0, 11.666667, 11.666667]);
        // One value per channel has no variance.
        let (y, found) = run(&[1, 1, 1, 2], &x[..2], &params(true, 1.0), DataFormat::Nhwc);
        close(&y, &[0.5, -1.0]);
        close(&found.concat(), &[0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn inference_is_tensorflow_s() {
        let x: Vec<f32> = (0..12).map(|i| i as f32).collect();
        let (y, found) = run(&DIMS, &x, &params(false, 1.0), DataFormat::Nhwc);
        close(&y[..4], &[-0.077254, -1.999875, 1.077254, -0.000124]);
        close(&found.concat(), &[1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
        let first: Vec<f32> = (0..12).map(|i| (i % 6 * 2 + i / 6) as f32).collect();
        let (z, _) = run(&[1, 2, 2, 3], &first, &params(false, 1.0), DataFormat::Nchw);
        assert_eq!((z[0], z[6], z[5], z[11]), (y[0], y[1], y[10], y[11]));
    }

    #[test]
    fn an_empty_batch_has_no_statistics() {
        for training in [true, false] {
            let (_, found) = run(&[0, 2, 3, 2], &[], &params(training, 1.0), DataFormat::Nhwc);
            assert!(found[..2].concat().iter().all(|x| x.is_nan()));
            assert_eq!(found[2..].concat(), [0.0; 4]);
        }
    }
}
