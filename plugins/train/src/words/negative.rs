//! `NegTrain`: an example's vector moves towards that of its label, and away from those of words that are drawn.
//!
//! With the sigmoid s, the score x of an example with another word (the product of their vectors) and the learning rate r,
//! both vectors change by the other one times r s(-x) for the label, and times -r s(x) for a drawn word.

use crate::sampling::alias::Alias;
use tenon_philox::{Stream, Words};
use tenon_sdk::{growth, prelude::*};

/// Steps of the generator that a call takes for each drawn word.
const STEPS: u64 = 2;

struct NegTrain {
    drawn: u64,
    alias: Alias,
    entries: usize,
    stream: Stream,
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Adds `factor` times the addends.
fn add_scaled(sums: &mut [f32], addends: &[f32], factor: f32) {
    for (sum, addend) in sums.iter_mut().zip(addends) {
        *sum += addend * factor;
    }
}

/// The rows of a batch, which are words of the vocabulary.
fn rows<'a>(
    c: &ComputeContext<'a>,
    input: usize,
    name: &str,
    entries: usize,
) -> Result<&'a [i32], KernelError> {
    let words = c.input::<i32>(input)?;
    if words.dims.len() != 1 {
        return Err(KernelError::invalid_argument(format!(
            "{name}: Must be a vector, found shape {:?}",
            words.dims
        )));
    }
    let is_entry = |word: &i32| usize::try_from(*word).is_ok_and(|word| word < entries);
    match words.data.iter().find(|word| !is_entry(word)) {
        None => Ok(words.data),
        Some(word) => Err(KernelError::invalid_argument(format!(
            "{name}: expected words from 0 to below vocab_size = {entries}, found {word}"
        ))),
    }
}

/// What a call updates.
struct Update<'a> {
    /// The size of a vector.
    size: usize,
    w_in: &'a mut [f32],
    w_out: &'a mut [f32],
    rate: f32,
    /// The change of the example's vector.
    change: Vec<f32>,
}

impl Update<'_> {
    /// Takes a word into account that has this slope, by its score with the example.
    fn pair(&mut self, example: usize, word: usize, slope: fn(f32) -> f32) {
        let vector = &self.w_in[example * self.size..][..self.size];
        let other = &mut self.w_out[word * self.size..][..self.size];
        let factor = slope(dot(vector, other)) * self.rate;
        add_scaled(&mut self.change, other, factor);
        add_scaled(other, vector, factor);
    }

    fn finish(&mut self, example: usize) {
        let vector = &mut self.w_in[example * self.size..][..self.size];
        add_scaled(vector, &self.change, 1.0);
        self.change.fill(0.0);
    }
}

impl NegTrain {
    /// The size of a vector, of matrices of these shapes.
    fn size(&self, w_in: &[i64], w_out: &[i64]) -> Result<usize, KernelError> {
        match w_in {
            &[entries, size] if w_in == w_out && entries as usize == self.entries => {
                Ok(size as usize)
            }
            _ => Err(KernelError::invalid_argument(format!(
                "expected matrices w_in and w_out of one shape with vocab_size = {} rows, found shapes {w_in:?} and {w_out:?}",
                self.entries
            ))),
        }
    }
}

impl Kernel for NegTrain {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let counts: Vec<i64> = c.attr("vocab_count")?;
        let drawn: i64 = c.attr("num_negative_samples")?;
        let weight = |count: &i64| (*count as i32 as f32).powf(0.75);
        let weights = growth::collected(counts.iter().map(weight))?;
        // The op has no seeds.
        let stream = Stream::new(0, 0);
        let drawn = u64::try_from(drawn).unwrap_or(0);
        Ok(NegTrain { drawn, alias: Alias::new(&weights)?, entries: counts.len(), stream })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        let (w_in, w_out) = (state.input_ref(0)?, state.input_ref(1)?);
        let variables = [&w_in, &w_out];
        let mut locked = state.lock(&variables)?;
        let [w_in, w_out] = locked.views_mut::<f32, 2>()?;
        let size = self.size(w_in.dims, w_out.dims)?;
        let examples = rows(c, 2, "examples", self.entries)?;
        let labels = rows(c, 3, "labels", self.entries)?;
        let rate = c.input::<f32>(4)?;
        let (&[rate], []) = (rate.data, rate.dims) else {
            let message = format!("lr: Must be a scalar, found shape {:?}", rate.dims);
            return Err(KernelError::invalid_argument(message));
        };
        if examples.len() != labels.len() {
            return Err(KernelError::invalid_argument(format!(
                "examples.shape == labels.shape: found {} and {} words",
                examples.len(),
                labels.len()
            )));
        }
        let steps = (examples.len() as u64).wrapping_mul(self.drawn).wrapping_mul(STEPS);
        let mut words = Words::new(self.stream.take(steps));
        let change = growth::filled(size, 0.0)?;
        let mut update = Update { size, w_in: w_in.data, w_out: w_out.data, rate, change };
        for (&example, &label) in examples.iter().zip(labels) {
            c.watch().check()?;
            let (example, label) = (example as usize, label as usize);
            update.pair(example, label, |score| 1.0 / (score.exp() + 1.0));
            for _ in 0..self.drawn {
                let word = self.alias.draw(&mut words);
                if word != label {
                    update.pair(example, word, |score| -1.0 / ((-score).exp() + 1.0));
                }
            }
            update.finish(example);
        }
        Ok(())
    }
}

register_kernel!("NegTrain" on "CPU": NegTrain);
