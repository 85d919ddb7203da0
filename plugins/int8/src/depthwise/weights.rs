//! The filter of a depthwise convolution, packed.

use crate::{isa::Isa, kept::Room, spread::too_large};
use std::ops::DerefMut;
use tenon_sdk::{DType, KernelError};

/// A packed filter.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a> {
    /// For each tap, one word per padded channel: the weight, with 0 above it.
    pub(super) words: &'a [i32],
    /// Initial values of the channels' sums.
    pub(super) begin: &'a [i32],
}

/// The filter and its parameters.
#[derive(Debug, Clone, Copy)]
pub struct Filter<'a> {
    /// For each tap, a value per output channel.
    pub data: &'a [u8],
    /// The type of the values.
    pub dtype: DType,
    /// Their zero points: one, or one for each output channel.
    pub zeros: &'a [i32],
    /// The zero point of the images.
    pub left_zero: i32,
    /// One for each output channel, or none.
    pub bias: &'a [i32],
}

/// [`Weights`] with their memory: what sums begin with, then the words.
pub struct KeptWeights<M> {
    memory: M,
    padded: usize,
}

impl<M: DerefMut<Target = [i32]>> KeptWeights<M> {
    /// Computes the filter's values minus their zero points, and the initial values of sums:
    /// `bias - left_zero * (sum of the channel's weights)`, modulo 2^32. There is at least one of
    /// the `channels`.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(
        room: &impl Room<Memory = M>,
        isa: &Isa,
        channels: usize,
        filter: &Filter<'_>,
    ) -> Result<KeptWeights<M>, KernelError> {
        let padded = channels.checked_next_multiple_of(isa.columns).ok_or_else(too_large)?;
        let taps = filter.data.len() / channels;
        let count = (taps + 1).checked_mul(padded).ok_or_else(too_large)?;
        let mut memory = room.zeros(count)?;
        let (begin, words) = memory.split_at_mut(padded);
        for (words, values) in
            words.chunks_exact_mut(padded).zip(filter.data.chunks_exact(channels))
        {
            for (at, (word, &value)) in words.iter_mut().zip(values).enumerate() {
                let zero = *filter.zeros.get(at).unwrap_or(&filter.zeros[0]);
                let signed = filter.dtype == DType::QINT8;
                let value = if signed { value.cast_signed().into() } else { i32::from(value) };
                begin[at] = begin[at].wrapping_add(value - zero);
                *word = i32::from((value - zero) as u16);
            }
        }
        for (at, begin) in begin.iter_mut().enumerate() {
            let bias = filter.bias.get(at).copied().unwrap_or(0);
            *begin = bias.wrapping_sub(filter.left_zero.wrapping_mul(*begin));
        }
        Ok(KeptWeights { memory, padded })
    }

    /// The weights.
    pub fn view(&self) -> Weights<'_> {
        let (begin, words) = self.memory.split_at(self.padded);
        Weights { words, begin }
    }
}
