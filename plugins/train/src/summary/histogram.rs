//! Histograms whose buckets grow by a tenth: tensorflow/core/lib/histogram/histogram.cc.

use super::message::Message;
use std::sync::OnceLock;
use tenon_sdk::{growth, prelude::*};

/// The upper limits of the buckets: the negative ones, 0, the positive ones. The outermost are the
/// largest doubles.
fn limits() -> &'static [f64] {
    static LIMITS: OnceLock<Vec<f64>> = OnceLock::new();
    LIMITS.get_or_init(|| {
        let mut positive = Vec::new();
        let mut limit = 1e-12;
        while limit < 1e20 {
            positive.push(limit);
            limit *= 1.1;
        }
        positive.push(f64::MAX);
        let negative = positive.iter().rev().map(|limit| -limit);
        negative.chain([0.0]).chain(positive.iter().copied()).collect()
    })
}

/// Numbers of values by bucket, and sums.
pub struct Histogram {
    least: f64,
    greatest: f64,
    count: f64,
    sum: f64,
    squares: f64,
    buckets: Vec<f64>,
}

impl Histogram {
    /// A histogram of nothing.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` without memory.
    pub fn new() -> Result<Histogram, KernelError> {
        let buckets = growth::filled(limits().len(), 0.0)?;
        Ok(Histogram {
            least: f64::MAX,
            greatest: -f64::MAX,
            count: 0.0,
            sum: 0.0,
            squares: 0.0,
            buckets,
        })
    }

    /// Adds a finite value.
    pub fn add(&mut self, value: f64) {
        // The largest double is the limit of the last bucket, and belongs to it.
        let bucket = limits().partition_point(|&limit| limit <= value);
        self.buckets[bucket.min(limits().len() - 1)] += 1.0;
        self.least = self.least.min(value);
        self.greatest = self.greatest.max(value);
        self.count += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    /// The message `HistogramProto`. A row of empty buckets is one bucket.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` without memory.
    pub fn message(&self) -> Result<Message, KernelError> {
        let (mut ends, mut counts): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
        let mut filled = false;
        for (&limit, &count) in limits().iter().zip(&self.buckets) {
            match ends.last_mut() {
                Some(end) if !filled && count == 0.0 => *end = limit,
                _ => {
                    growth::push(&mut ends, limit)?;
                    growth::push(&mut counts, count)?;
                }
            }
            filled = count > 0.0;
        }
        let mut message = Message::default();
        message.double(1, self.least)?;
        message.double(2, self.greatest)?;
        message.double(3, self.count)?;
        message.double(4, self.sum)?;
        message.double(5, self.squares)?;
        message.doubles(6, &ends)?;
        message.doubles(7, &counts)?;
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_ascend_and_rows_of_empty_buckets_are_one() {
        assert!(limits().windows(2).all(|pair| pair[0] < pair[1]));
        let mut histogram = Histogram::new().unwrap();
        [1.0, -1.0, f64::MAX].into_iter().for_each(|value| histogram.add(value));
        let message = histogram.message().unwrap();
        let fields = super::super::message::fields(message.as_bytes()).unwrap();
        let (_, counts) = fields.last().unwrap();
        let counts: Vec<f64> = counts
            .unwrap()
            .chunks_exact(8)
            .map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()))
            .collect();
        assert_eq!(counts, [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
    }
}
