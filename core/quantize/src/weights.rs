//! Converts weights and biases to integers: weights of 8 bits, symmetric, with a scale per output
//! channel; biases of 32 bits.

use super::layers::{Layer, MAX_MAGNITUDES};
use tenon_geometry::fixed_point::Affine;

/// The greatest magnitude of a weight, so that its negative is a weight too.
const MAX_WEIGHT: f64 = 127.0;

/// The minimum multiplier: the kernels refuse multipliers below 2^-32.
const MIN_MULTIPLIER: f64 = 1.0 / (1u32 << 30) as f64;

/// The weights of a layer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Quantized {
    /// The weights, in their original order.
    pub weights: Vec<i8>,
    /// The scale of each channel.
    pub scales: Vec<f32>,
    /// The bias of each channel, in steps of the input's scale times the channel's; `None` if there
    /// is no bias, or the input's scale is known only at run time.
    pub bias: Option<Vec<i32>>,
}

impl Quantized {
    /// Quantises the weights of a layer with these values.
    ///
    /// `scale = max |weight| / 127` for each channel, and more if a bias of 32 bits, or a
    /// multiplier, would not fit:
    /// - the bias must leave room for any sum of products:
    ///   `|bias| <= 2^31 - 1 - depth * 255 * 128`;
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
            .map(|(channel, most)| scale((most / MAX_WEIGHT).max(least(channel))))
            .collect();
        let step = |at: usize| {
            let steps = value(at) / f64::from(scales[layer.weights.channel(at)]);
            steps.round_ties_even().clamp(-MAX_WEIGHT, MAX_WEIGHT) as i8
        };
        let bias = input.and_then(|input| bias(layer, &scales, input, room));
        Quantized { weights: (0..weights.len()).map(step).collect(), scales, bias }
    }
}

/// A scale that kernels accept: a normal float above 0. Tiny weights get few levels, but are not
/// lost.
fn scale(value: f64) -> f32 {
    if value == 0.0 { 1.0 } else { (value as f32).clamp(f32::MIN_POSITIVE, f32::MAX) }
}

/// The greatest magnitude of a bias.
fn room(depth: usize) -> f64 {
    let [left, right] = MAX_MAGNITUDES.map(|reach| reach as f64);
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
    // Rounding the scale to a float and the bias to an integer must not exceed the room.
    let for_bias = 1.000_001 * shift / (input * (room - 1.0).max(1.0));
    let for_output = output.map_or(0.0, |out| MIN_MULTIPLIER * f64::from(out.scale) / input);
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
