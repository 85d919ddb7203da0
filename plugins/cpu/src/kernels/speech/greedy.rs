//! `CTCGreedyDecoder`.

use super::sequences::{Sequences, without_labels, write_labels};
use std::marker::PhantomData;
use tenon_sdk::{
    Code, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    growth,
    reg::Numerics,
    register_kernel,
};

struct Greedy<T> {
    merges: bool,
    blank: i64,
    of: PhantomData<fn(T)>,
}

impl<T: Number> Greedy<T> {
    /// The blank's class: a negative one counts from the end.
    fn blank(&self, classes: usize) -> Result<i64, KernelError> {
        let high = classes as i64;
        let blank = if self.blank < 0 { self.blank + high } else { self.blank };
        match (0..high).contains(&blank) {
            true => Ok(blank),
            false => Err(KernelError::invalid_argument(format!(
                "blank_index: expected at least -{high} and less than {high}, found {}",
                self.blank
            ))),
        }
    }
}

/// The first class of the greatest score, and this score.
fn best<T: Number>(scores: &[T]) -> (i64, T) {
    let better = |best: (i64, T), (class, &score): (usize, &T)| {
        if score > best.1 { (class as i64, score) } else { best }
    };
    scores.iter().enumerate().fold((0, scores[0]), better)
}

impl<T: Number> Kernel for Greedy<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (merges, blank) = (c.attr("merge_repeated")?, c.attr("blank_index")?);
        Ok(Greedy { merges, blank, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let sequences = Sequences::<T>::new(c, 1, Code::FAILED_PRECONDITION)?;
        let blank = self.blank(sequences.classes)?;
        let mut labels = without_labels(sequences.count)?;
        let sums = c.output::<T>(3, &[sequences.count as i64, 1])?.data;
        for (sequence, (labels, sum)) in labels.iter_mut().zip(sums).enumerate() {
            (*sum, *labels) = (T::ZERO, growth::with_room(sequences.length(sequence))?);
            let mut last = None;
            for step in 0..sequences.length(sequence) {
                let (class, score) = best(sequences.scores(step, sequence));
                *sum = sum.sub(score);
                if class != blank && !(self.merges && last == Some(class)) {
                    labels.push(class);
                }
                last = Some(class);
            }
        }
        write_labels(c, [0, 1, 2], &labels)
    }
}

register_kernel!("CTCGreedyDecoder" on "CPU": Greedy<T> for "T" in [f32, f64],
    numerics = Numerics::EXACT);
