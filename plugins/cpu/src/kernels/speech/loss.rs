//! `CTCLoss` and `CTCLossV2`.
//!
//! The labels of a sequence are extended by blanks before, between and after them. `forward` are the logarithms of the
//! probabilities that the steps so far gave the extended labels so far, `backward` of those that the later steps give
//! the later ones (A. Graves, "Supervised sequence labelling with recurrent neural networks", 7.3).

use super::sequences::Sequences;
use std::marker::PhantomData;
use tenon_sdk::{
    Code, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    geometry::GeometryError,
    growth,
    reg::Numerics,
    register_kernel,
};

/// Approximate nanoseconds of a label in a step.
const COST_NS: f64 = 80.0;
/// The logarithm of 0.
const NEVER: f64 = f64::NEG_INFINITY;

/// `ln(e^a + e^b)`.
pub fn log_sum(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if high == NEVER { NEVER } else { high + (low - high).exp().ln_1p() }
}

/// The attributes.
#[derive(Debug, Clone, Copy)]
struct Rule {
    /// Whether equal labels in succession are one before anything else.
    collapses: bool,
    /// Whether a label that several steps in succession give is one.
    merges: bool,
    /// Whether a sequence that is too short for its labels has no loss, instead of being an error.
    ignores_long: bool,
}

/// The extended labels of a sequence.
struct Extended {
    labels: Vec<usize>,
    blank: usize,
}

impl Extended {
    /// The extended labels before and including which each of `length` steps may be, and after and including which it
    /// has to be.
    fn reachable(&self, step: usize, length: usize) -> std::ops::Range<usize> {
        let count = self.labels.len();
        count.saturating_sub(2 * (length - step))..count.min(2 * (step + 1))
    }

    /// Whether a path may go on to a label from the one before the blank before it.
    fn skips_to(&self, at: usize, rule: Rule) -> bool {
        let label = self.labels[at];
        label != self.blank && !(rule.merges && at > 1 && label == self.labels[at - 2])
    }

    fn stays(&self, at: usize, rule: Rule) -> bool {
        rule.merges || self.labels[at] == self.blank
    }
}

/// Probabilities of classes at each step, `length` rows of them, and their logarithms.
struct Probabilities {
    values: Vec<f64>,
    classes: usize,
}

impl Probabilities {
    /// The softmax of the scores of a sequence.
    fn new<T: Number>(of: &Sequences<'_, T>, sequence: usize) -> Result<Self, KernelError> {
        let (length, classes) = (of.length(sequence), of.classes);
        let mut values = growth::with_room(length * classes)?;
        for step in 0..length {
            let scores = of.scores(step, sequence).iter().map(|score| score.to_f64());
            let most = scores.clone().fold(f64::NEG_INFINITY, f64::max);
            let start = values.len();
            values.extend(scores.map(|score| (score - most).exp()));
            let sum: f64 = values[start..].iter().sum();
            values[start..].iter_mut().for_each(|value| *value /= sum);
        }
        Ok(Probabilities { values, classes })
    }

    fn log(&self, step: usize, class: usize) -> f64 {
        self.values[step * self.classes + class].ln()
    }
}

/// The logarithms of probabilities of extended labels, a row for each step.
struct Logs {
    values: Vec<f64>,
    width: usize,
}

impl Logs {
    fn new(length: usize, width: usize) -> Result<Logs, KernelError> {
        let count = length
            .checked_mul(width)
            .ok_or(GeometryError::TooLarge { dims: vec![length as i64, width as i64] })?;
        Ok(Logs { values: growth::filled(count, NEVER)?, width })
    }

    fn at(&self, step: usize, label: usize) -> f64 {
        self.values[step * self.width + label]
    }

    fn set(&mut self, step: usize, label: usize, value: f64) {
        self.values[step * self.width + label] = value;
    }
}

fn forward(
    of: &Extended,
    rule: Rule,
    y: &Probabilities,
    length: usize,
) -> Result<Logs, KernelError> {
    let width = of.labels.len();
    let mut logs = Logs::new(length, width)?;
    for at in 0..width.min(2) {
        logs.set(0, at, y.log(0, of.labels[at]));
    }
    for step in 1..length {
        for at in of.reachable(step, length) {
            let mut sum = if of.stays(at, rule) { logs.at(step - 1, at) } else { NEVER };
            if at > 0 {
                sum = log_sum(sum, logs.at(step - 1, at - 1));
            }
            if at > 1 && of.skips_to(at, rule) {
                sum = log_sum(sum, logs.at(step - 1, at - 2));
            }
            logs.set(step, at, y.log(step, of.labels[at]) + sum);
        }
    }
    Ok(logs)
}

fn backward(
    of: &Extended,
    rule: Rule,
    y: &Probabilities,
    length: usize,
) -> Result<Logs, KernelError> {
    let width = of.labels.len();
    let mut logs = Logs::new(length, width)?;
    for at in width.saturating_sub(2)..width {
        logs.set(length - 1, at, 0.0);
    }
    for step in (0..length - 1).rev() {
        let next = |logs: &Logs, at: usize| logs.at(step + 1, at) + y.log(step + 1, of.labels[at]);
        for at in of.reachable(step, length) {
            let mut sum = if of.stays(at, rule) { next(&logs, at) } else { NEVER };
            if at + 1 < width {
                sum = log_sum(sum, next(&logs, at + 1));
            }
            if at + 2 < width && of.skips_to(at + 2, rule) {
                sum = log_sum(sum, next(&logs, at + 2));
            }
            logs.set(step, at, sum);
        }
    }
    Ok(logs)
}

/// The loss of a sequence; `set` gets the gradient of each step by class.
fn loss_of(
    of: &Extended,
    rule: Rule,
    y: &Probabilities,
    length: usize,
    mut set: impl FnMut(usize, usize, f64),
) -> Result<f64, KernelError> {
    let (forward, backward) = (forward(of, rule, y, length)?, backward(of, rule, y, length)?);
    let both = |step: usize, at: usize| forward.at(step, at) + backward.at(step, at);
    let log = (0..of.labels.len()).fold(NEVER, |sum, at| log_sum(sum, both(0, at)));
    let mut sums = growth::filled(y.classes, NEVER)?;
    for step in 0..length {
        sums.fill(NEVER);
        for (at, &label) in of.labels.iter().enumerate() {
            sums[label] = log_sum(sums[label], both(step, at));
        }
        for (class, &sum) in sums.iter().enumerate() {
            let probability = y.values[step * y.classes + class];
            // Where no path gives the labels, only the probability is left.
            let share = if log == NEVER { 0.0 } else { (sum - log).exp() };
            set(step, class, probability - share);
        }
    }
    Ok(-log)
}

struct Loss<T, const BLANK_FIRST: bool> {
    rule: Rule,
    of: PhantomData<fn(T)>,
}

/// The labels of each sequence, from a sparse tensor of them.
fn labels_in(c: &ComputeContext<'_>, count: usize) -> Result<Vec<Vec<i32>>, KernelError> {
    let (indices, values) = (c.input::<i64>(1)?, c.input::<i32>(2)?);
    if values.dims.len() != 1 || indices.dims != [values.dims[0], 2] {
        return Err(KernelError::invalid_argument(format!(
            "labels_indices: expected shape [labels, 2], found {:?} for labels of shape {:?}",
            indices.dims, values.dims
        )));
    }
    let mut labels = growth::filled(count, Vec::new())?;
    for (place, &value) in indices.data.chunks_exact(2).zip(values.data) {
        let row = usize::try_from(place[0]).ok().and_then(|row| labels.get_mut(row));
        let row = row.ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "labels_indices: expected sequences from 0 to before {count}, found {}",
                place[0]
            ))
        })?;
        growth::push(row, value)?;
    }
    Ok(labels)
}

impl<T: Number, const BLANK_FIRST: bool> Loss<T, BLANK_FIRST> {
    /// The extended labels of a sequence.
    fn extended(
        &self,
        sequence: usize,
        labels: &[i32],
        classes: usize,
    ) -> Result<Extended, KernelError> {
        let blank = if BLANK_FIRST { 0 } else { classes - 1 };
        let mut extended = growth::with_room(2 * labels.len() + 1)?;
        extended.push(blank);
        let mut has_ended = false;
        for (at, &label) in labels.iter().enumerate() {
            if self.rule.collapses && at > 0 && labels[at - 1] == label {
                continue;
            }
            let class = usize::try_from(label).ok();
            // Where the blank is the last class, it and what is beyond may fill up the labels of a sequence.
            if !BLANK_FIRST && class.is_some_and(|class| class >= blank) {
                has_ended = true;
                continue;
            }
            let class = class.filter(|&class| class < classes && class != blank && !has_ended);
            let class = class.ok_or_else(|| {
                KernelError::invalid_argument(format!(
                    "labels_values: expected classes from 0 to before {classes}, without the blank {blank} and not \
                     after it, found {label} as label {at} of sequence {sequence}"
                ))
            })?;
            extended.extend([class, blank]);
        }
        Ok(Extended { labels: extended, blank })
    }

    /// Whether a sequence has a loss: one without steps has none.
    fn has_loss(&self, sequence: usize, of: &Extended, length: usize) -> Result<bool, KernelError> {
        let needed = of.labels.len() / 2;
        match needed > length {
            true if !self.rule.ignores_long => Err(KernelError::invalid_argument(format!(
                "sequence_length: expected at least {needed}, the labels of sequence {sequence}, found {length}; \
                 ignore_longer_outputs_than_inputs gives such a sequence no loss"
            ))),
            is_long => Ok(length > 0 && !is_long),
        }
    }
}

impl<T: Number, const BLANK_FIRST: bool> Kernel for Loss<T, BLANK_FIRST> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let rule = Rule {
            collapses: c.attr("preprocess_collapse_repeated")?,
            merges: c.attr("ctc_merge_repeated")?,
            ignores_long: c.attr("ignore_longer_outputs_than_inputs")?,
        };
        Ok(Loss { rule, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let sequences = Sequences::<T>::new(c, 3, Code::INVALID_ARGUMENT)?;
        let labels = labels_in(c, sequences.count)?;
        let losses = c.output::<T>(0, &[sequences.count as i64])?.data;
        let gradient = c.output::<T>(1, c.dims(0))?.data;
        gradient.fill(T::ZERO);
        // Each sequence writes its own rows of every step.
        let each = sequences.classes;
        let mut rows = growth::with_room(sequences.count)?;
        for _ in 0..sequences.count {
            rows.push(growth::with_room::<&mut [T]>(sequences.steps)?);
        }
        for (at, row) in gradient.chunks_exact_mut(each).enumerate() {
            rows[at % sequences.count].push(row);
        }
        let mean = labels.iter().map(Vec::len).sum::<usize>() / sequences.count.max(1) + 1;
        let cost = COST_NS * (sequences.steps * mean * 2) as f64;
        let items = losses.iter_mut().zip(rows).zip(labels);
        c.parallel_items(items, cost, |sequence, ((loss, mut rows), labels)| {
            *loss = T::ZERO;
            let length = sequences.length(sequence);
            let extended = self.extended(sequence, &labels, each)?;
            if !self.has_loss(sequence, &extended, length)? {
                return Ok(());
            }
            let y = Probabilities::new(&sequences, sequence)?;
            let set = |step: usize, class: usize, by: f64| rows[step][class] = T::from_f64(by);
            *loss = T::from_f64(loss_of(&extended, self.rule, &y, length, set)?);
            Ok(())
        })
    }
}

type CtcLoss<T> = Loss<T, false>;
type CtcLossV2 = Loss<f32, true>;

register_kernel!("CTCLoss" on "CPU": CtcLoss<T> for "T" in [f32], numerics = Numerics::relative(1e-5, 1e-5));
register_kernel!("CTCLoss" on "CPU": CtcLoss<T> for "T" in [f64], numerics = Numerics::relative(1e-12, 1e-12));
register_kernel!("CTCLossV2" on "CPU": CtcLossV2, numerics = Numerics::relative(1e-5, 1e-5));
