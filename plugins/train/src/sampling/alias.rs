//! Draws from given weights in a constant time.
//!
//! Source: Walker, "An efficient method for generating discrete random variables with general distributions", 1977.

use tenon_philox::Words;
use tenon_sdk::{growth, prelude::*};

/// A table in which each row has one or two of the numbers: its own with a chance, another one else.
pub struct Alias {
    chances: Vec<f32>,
    others: Vec<u32>,
}

impl Alias {
    /// The table of these weights. The order in which rows are paired is TensorFlow's.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` without weights, and for more than fit 31 bits; `RESOURCE_EXHAUSTED` without memory.
    pub fn new(weights: &[f32]) -> Result<Alias, KernelError> {
        let count = i32::try_from(weights.len()).ok().filter(|&count| count > 0);
        let count = count.ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "weights: expected 1 to {} of them, found {}",
                i32::MAX,
                weights.len()
            ))
        })?;
        let sum: f64 = weights.iter().fold(0.0, |sum, &weight| sum + f64::from(weight));
        let scaled = |&weight: &f32| f64::from(weight * count as f32) / sum;
        let mut shares = growth::collected(weights.iter().map(scaled))?;
        let mut others = growth::collected(0..count as u32)?;
        let (mut low, mut high) =
            (growth::with_room(weights.len())?, growth::with_room(weights.len())?);
        for (row, &share) in (0..count as u32).zip(&shares) {
            growth::push(if share < 1.0 { &mut low } else { &mut high }, row)?;
        }
        while let (Some(&small), Some(&large)) = (low.last(), high.last()) {
            low.pop();
            high.pop();
            others[small as usize] = large;
            let left = shares[large as usize] - (1.0 - shares[small as usize]);
            shares[large as usize] = left;
            growth::push(if left < 1.0 { &mut low } else { &mut high }, large)?;
        }
        // What is left is whole but for rounding.
        for row in low.into_iter().chain(high) {
            shares[row as usize] = 1.0;
            others[row as usize] = row;
        }
        let chances = growth::collected(shares.iter().map(|&share| share as f32))?;
        Ok(Alias { chances, others })
    }

    /// A number, which takes two words, and more where one is refused.
    pub fn draw(&self, words: &mut Words) -> usize {
        let chance = words.next_f32();
        let row = words.below(self.others.len() as u32) as usize;
        if chance < self.chances[row] { row } else { self.others[row] as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_philox::Philox;

    #[test]
    fn numbers_come_as_often_as_their_weights_say() {
        let weights = [1.0, 0.0, 5.0, 2.0];
        let table = Alias::new(&weights).unwrap();
        let (mut words, mut counts) = (Words::new(Philox::keyed(7, [0, 0])), [0; 4]);
        (0..8000).for_each(|_| counts[table.draw(&mut words)] += 1);
        for (count, weight) in counts.into_iter().zip(weights) {
            let expected = 1000.0 * weight;
            assert!((count as f32 - expected).abs() <= 100.0, "{counts:?}");
        }
        assert_eq!(counts[1], 0);
    }

    #[test]
    fn weights_that_are_no_numbers_are_drawn_somehow() {
        for weights in [&[f32::NAN, 1.0][..], &[0.0, 0.0], &[f32::INFINITY, 1.0], &[-1.0, 1.0]] {
            let table = Alias::new(weights).unwrap();
            let mut words = Words::new(Philox::keyed(1, [0, 0]));
            assert!((0..100).all(|_| table.draw(&mut words) < 2), "{weights:?}");
        }
        assert!(Alias::new(&[]).is_err());
    }
}
