//! A distribution that is learned: a class is as likely as it was often true, and once besides.

use super::Sampler;
use tenon_philox::Words;
use tenon_sdk::{growth, prelude::*};

/// Weights of classes, as the leaves of a binary tree of sums.
pub struct Unigram {
    /// The sums by level, from the root on; a level has twice as many as the one before.
    levels: Vec<Vec<i32>>,
}

impl Unigram {
    /// Weights of 1.
    fn ones(range: usize) -> Result<Unigram, KernelError> {
        let depth = range.next_power_of_two().trailing_zeros();
        let mut levels = growth::with_room(depth as usize + 1)?;
        for level in 0..=depth {
            // A node has the leaves of its part of the range.
            let (nodes, leaves) = (1usize << level, 1usize << (depth - level));
            let sum = |node: usize| range.saturating_sub(node * leaves).min(leaves) as i32;
            growth::push(&mut levels, growth::collected((0..nodes).map(sum))?)?;
        }
        Ok(Unigram { levels })
    }

    fn total(&self) -> i32 {
        self.levels[0][0]
    }

    /// The class at a position in the row of all weights.
    fn class_at(&self, mut position: i32) -> usize {
        self.levels[1..].iter().fold(0, |above, level| {
            let left = level[2 * above];
            if position < left {
                return 2 * above;
            }
            position -= left;
            2 * above + 1
        })
    }
}

impl Sampler for Unigram {
    const LEARNS: bool = true;

    fn new(_: &CreateContext<'_>, range: i64) -> Result<Unigram, KernelError> {
        let few = i32::try_from(range).ok().filter(|&range| range < i32::MAX);
        let few = few.ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "range_max must be less than {} for unigram samplers, got {range}",
                i32::MAX
            ))
        })?;
        Unigram::ones(few as usize)
    }

    fn draw(&self, words: &mut Words) -> i64 {
        self.class_at(words.below(self.total() as u32) as i32) as i64
    }

    fn probability(&self, class: i64) -> f32 {
        let leaves = self.levels.last().and_then(|leaves| leaves.get(class as usize));
        leaves.map_or(0.0, |&weight| weight as f32 / self.total() as f32)
    }

    fn learn(&mut self, classes: &[i64]) {
        // The sum of all weights stays in its type.
        let room = (i32::MAX - self.total()) as usize;
        for &class in &classes[..classes.len().min(room)] {
            let mut node = class as usize;
            for level in self.levels.iter_mut().rev() {
                level[node] += 1;
                node /= 2;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_has_the_class_of_its_weight() {
        for range in [1, 2, 3, 5, 8, 13] {
            let mut weights = Unigram::ones(range).unwrap();
            let classes = [0, range as i64 - 1, range as i64 - 1];
            weights.learn(&classes);
            let count = |class: usize| {
                let at = |position: &i32| weights.class_at(*position) == class;
                (0..weights.total()).filter(at).count() as f32
            };
            for class in 0..range {
                let true_count = classes.iter().filter(|&&k| k == class as i64).count();
                assert_eq!(count(class), 1.0 + true_count as f32, "{class} of {range}");
                let probability = weights.probability(class as i64);
                assert_eq!(probability, count(class) / weights.total() as f32);
            }
        }
    }
}
