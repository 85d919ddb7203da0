//! Distributions that a formula gives.

use super::Sampler;
use tenon_philox::Words;
use tenon_sdk::prelude::*;

/// All classes are equally likely.
pub struct Uniform {
    range: u64,
    probability: f32,
}

impl Sampler for Uniform {
    fn new(_: &CreateContext<'_>, range: i64) -> Result<Uniform, KernelError> {
        Ok(Uniform { range: range as u64, probability: (1.0 / range as f64) as f32 })
    }

    fn draw(&self, words: &mut Words) -> i64 {
        words.below_u64(self.range) as i64
    }

    fn probability(&self, _: i64) -> f32 {
        self.probability
    }
}

/// Class k has the probability ln((k + 2) / (k + 1)) / ln(range + 1): about that of the k-th word of a language.
pub struct LogUniform {
    range: i64,
    log_range: f64,
}

impl Sampler for LogUniform {
    fn new(_: &CreateContext<'_>, range: i64) -> Result<LogUniform, KernelError> {
        Ok(LogUniform { range, log_range: (range as f64).ln_1p() })
    }

    fn draw(&self, words: &mut Words) -> i64 {
        let class = (words.next_f64() * self.log_range).exp() as i64 - 1;
        // Rounding may lead out of the range.
        class % self.range
    }

    fn probability(&self, class: i64) -> f32 {
        let class = class as f64;
        (((class + 2.0) / (class + 1.0)).ln() / self.log_range) as f32
    }
}
