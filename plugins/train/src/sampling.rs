//! Samplers of classes: training with many classes computes with the true ones and some that are drawn.
//!
//! `range` has distributions that a formula gives, `unigram` one that is learned, `fixed` one of given weights, which
//! `alias` draws from.
//!
//! Numbers are TensorFlow's for the same seeds: tensorflow/core/kernels/{candidate_sampler_ops,range_sampler}.cc.

pub mod alias;
mod fixed;
mod range;
mod unigram;

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};
use tenon_philox::{Stream, Words};
use tenon_sdk::{growth, prelude::*};

/// Steps of the generator that a call takes for each drawn class.
const STEPS: u64 = 512;
/// Draws after which a call looks whether its step goes on.
const DRAWS_UNWATCHED: i32 = 1 << 16;

/// A distribution of classes.
trait Sampler: Send + Sync + Sized + 'static {
    /// Whether a call changes the distribution for the next ones.
    const LEARNS: bool = false;

    /// The distribution of a node with this number of classes, which is positive.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for other attributes that do not fit; `RESOURCE_EXHAUSTED` without memory.
    fn new(c: &CreateContext<'_>, range: i64) -> Result<Self, KernelError>;

    /// The number of classes that can be drawn, of `range`.
    fn drawable(&self, range: i64) -> i64 {
        range
    }

    /// A class.
    fn draw(&self, words: &mut Words) -> i64;

    /// The probability of a class.
    fn probability(&self, class: i64) -> f32;

    /// Takes true classes into account, which are in the range.
    fn learn(&mut self, _: &[i64]) {}
}

/// What all samplers have: the attributes, and the true classes.
struct Task {
    /// The number of true classes of a row.
    columns: i64,
    /// The number of classes to draw.
    drawn: i32,
    /// The number of all classes.
    range: i64,
}

impl Task {
    fn new(c: &CreateContext<'_>, range: &str) -> Result<Task, KernelError> {
        let drawn: i64 = c.attr("num_sampled")?;
        let few = i32::try_from(drawn).map_err(|_| {
            KernelError::invalid_argument(format!(
                "num_sampled: expected a number that fits 32 bits, found {drawn}"
            ))
        })?;
        Ok(Task { columns: c.attr("num_true")?, drawn: few, range: c.attr(range)? })
    }

    /// The input `true_classes`, checked.
    fn classes<'a>(&self, c: &ComputeContext<'a>) -> Result<View<'a, i64>, KernelError> {
        let classes = c.input::<i64>(0)?;
        if classes.dims.len() != 2 || classes.dims[1] != self.columns {
            return Err(KernelError::invalid_argument(format!(
                "true_classes must be a matrix with num_true = {} columns, found shape {:?}",
                self.columns, classes.dims
            )));
        }
        match classes.data.iter().find(|class| !(0..self.range).contains(*class)) {
            None => Ok(classes),
            Some(class) => Err(KernelError::invalid_argument(format!(
                "`true_candidate` out of range [0, {}), received {class}",
                self.range
            ))),
        }
    }
}

/// Fills a list with classes that differ; the number of draws that it took.
fn draw_unique(
    c: &ComputeContext<'_>,
    sampler: &impl Sampler,
    words: &mut Words,
    drawn: &mut [i64],
) -> Result<i32, KernelError> {
    let (mut seen, mut draws) = (HashMap::new(), 0i32);
    growth::reserve_entries(&mut seen, drawn.len())?;
    for place in drawn {
        loop {
            draws = draws.checked_add(1).ok_or_else(|| {
                let message = "the classes that are likely enough to be drawn are fewer than num_sampled: \
                               draw fewer, or set unique to false";
                KernelError::new(Code::RESOURCE_EXHAUSTED, message)
            })?;
            if draws % DRAWS_UNWATCHED == 0 {
                c.watch().check()?;
            }
            let class = sampler.draw(words);
            if seen.insert(class, ()).is_none() {
                *place = class;
                break;
            }
        }
    }
    Ok(draws)
}

/// How often a class of this probability is expected among `count` classes that took `draws` draws.
fn expected(probability: f32, count: i32, draws: i32) -> f32 {
    if count == draws {
        return probability * count as f32;
    }
    // 1 - (1 - p)^draws
    -(draws as f32 * (-probability).ln_1p()).exp_m1()
}

struct Candidates<S> {
    task: Task,
    is_unique: bool,
    stream: Stream,
    sampler: RwLock<S>,
}

impl<S: Sampler> Kernel for Candidates<S> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let task = Task::new(c, "range_max")?;
        let (is_unique, sampler) = (c.attr("unique")?, S::new(c, task.range)?);
        let stream = Stream::new(c.attr("seed")?, c.attr("seed2")?);
        Ok(Candidates { task, is_unique, stream, sampler: RwLock::new(sampler) })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let count = self.task.drawn;
        let classes = self.task.classes(c)?;
        let sampler = self.sampler.read().unwrap_or_else(PoisonError::into_inner);
        let drawable = sampler.drawable(self.task.range);
        if self.is_unique && i64::from(count) > drawable {
            return Err(KernelError::invalid_argument(format!(
                "Sampler's range is too small: expected at least num_sampled = {count} classes, found {drawable}"
            )));
        }
        let drawn = c.output::<i64>(0, &[count.into()])?.data;
        let mut words = Words::new(self.stream.take(STEPS * count as u64));
        let draws = match self.is_unique {
            true => draw_unique(c, &*sampler, &mut words, drawn)?,
            false => {
                drawn.iter_mut().for_each(|place| *place = sampler.draw(&mut words));
                count
            }
        };
        let of_true = c.output::<f32>(1, classes.dims)?.data;
        let of_drawn = c.output::<f32>(2, &[count.into()])?.data;
        for (classes, counts) in [(classes.data, of_true), (&*drawn, of_drawn)] {
            for (class, expectation) in classes.iter().zip(counts) {
                *expectation = expected(sampler.probability(*class), count, draws);
            }
        }
        drop(sampler);
        if S::LEARNS {
            let mut sampler = self.sampler.write().unwrap_or_else(PoisonError::into_inner);
            sampler.learn(classes.data);
        }
        Ok(())
    }
}

register_kernel!("UniformCandidateSampler" on "CPU": Candidates<range::Uniform>);
register_kernel!("LogUniformCandidateSampler" on "CPU": Candidates<range::LogUniform>);
register_kernel!("LearnedUnigramCandidateSampler" on "CPU": Candidates<unigram::Unigram>);
register_kernel!("ThreadUnsafeUnigramCandidateSampler" on "CPU": Candidates<unigram::Unigram>);
register_kernel!("FixedUnigramCandidateSampler" on "CPU": Candidates<fixed::Fixed>);

/// Draws every class once, in order.
struct All {
    task: Task,
}

impl Kernel for All {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(All { task: Task::new(c, "num_sampled")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let classes = self.task.classes(c)?;
        let dims = [self.task.range];
        for (class, place) in (0..).zip(c.output::<i64>(0, &dims)?.data) {
            *place = class;
        }
        c.output::<f32>(1, classes.dims)?.data.fill(1.0);
        c.output::<f32>(2, &dims)?.data.fill(1.0);
        Ok(())
    }
}

register_kernel!("AllCandidateSampler" on "CPU": All, numerics = Numerics::EXACT);
