//! Weights and biases as integers: weights of 8 bits, symmetric, with a scale for each output channel; biases of 32.

use super::layers::{Layer, REACH};
use tenon_geometry::fixed_point::Affine;

/// The greatest magnitude of a weight: so that the negative of each is one.
const MOST: f64 = 127.0;

/// Multipliers are kept above 2^-30: less than 2^-32 is refused by the kernels.
const LEAST_MULTIPLIER: f64 = 1.0 / (1u32 << 30) as f64;

/// The weights of a layer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Quantized {
    /// In the order of the weights.
    pub weights: Vec<i8>,
    /// One for each channel.
    pub scales: Vec<f32>,
    /// One for each channel, in steps of the input's scale times the channel's; none where nothing is added, or the
    /// input's scale is not known ahead.
    pub bias: Option<Vec<i32>>,
}

impl Quantized {
    /// The weights of a layer, whose values are `weights`.
    ///
    /// `scale = max |weight| / 127` for each channel, and more where a bias of 32 bits, or a multiplier, would not fit:
    /// - the bias must leave room for the sum of products, whatever they are: `|bias| <= 2^31 - 1 - depth * 255 * 128`;
    /// - `input scale * scale / output scale >= 2^-30`.
    pub fn new(
        layer: &Layer,
        weights: &[f32],
        input: Option<Affine>,
        output: Option<Affine>,
    ) -> Quantized {
        let factors = &layer.fold.factors;
        let value = |at: usize| f64::from(weights[at]) * factors[layer.weights.channel(at)];
        let greatest = layer.greatest.iter().zip(factors);
        let greatest = greatest.map(|(most, factor)| f64::from(*most) * factor.abs());
        let room = room(layer.weights.depth);
        let least = |channel: usize| least_scale(layer, channel, room, input, output);
        let scales: Vec<f32> = (greatest.enumerate())
            .map(|(channel, most)| scale((most / MOST).max(least(channel))))
            .collect();
        let step = |at: usize| {
            let steps = value(at) / f64::from(scales[layer.weights.channel(at)]);
            steps.round_ties_even().clamp(-MOST, MOST) as i8
        };
        let bias = input.and_then(|input| bias(layer, &scales, input, room));
        Quantized { weights: (0..weights.len()).map(step).collect(), scales, bias }
    }
}

/// A scale that kernels take: a normal float above 0. Weights of next to nothing have few levels, but are not lost.
fn scale(value: f64) -> f32 {
    if value == 0.0 { 1.0 } else { (value as f32).clamp(f32::MIN_POSITIVE, f32::MAX) }
}

/// The greatest magnitude of a bias.
fn room(depth: usize) -> f64 {
    let [left, right] = REACH.map(|reach| reach as f64);
    (f64::from(i32::MAX) - depth as f64 * left * right).max(0.0)
}

fn least_scale(
    layer: &Layer,
    channel: usize,
    room: f64,
    input: Option<Affine>,
    output: Option<Affine>,
) -> f64 {
    let Some(input) = input.map(|input| f64::from(input.scale)) else { return 0.0 };
    let shift = layer.fold.shifts.as_ref().map_or(0.0, |shifts| shifts[channel].abs());
    // Rounding a scale to a float and a bias to an integer must not leave the room.
    let for_bias = 1.000_001 * shift / (input * (room - 1.0).max(1.0));
    let for_output = output.map_or(0.0, |out| LEAST_MULTIPLIER * f64::from(out.scale) / input);
    for_bias.max(for_output)
}

fn bias(layer: &Layer, scales: &[f32], input: Affine, room: f64) -> Option<Vec<i32>> {
    let shifts = layer.fold.shifts.as_ref()?;
    let steps = |(shift, scale): (&f64, &f32)| {
        let steps = shift / (f64::from(input.scale) * f64::from(*scale));
        steps.round_ties_even().clamp(-room, room) as i32
    };
    Some(shifts.iter().zip(scales).map(steps).collect())
}
