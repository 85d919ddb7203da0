//! `CTCBeamSearchDecoder`.
//!
//! A prefix of labels has two probabilities: that the steps so far gave it and a label last, or a blank last. A step
//! goes on with the most probable prefixes, and with those that one more label makes of them (Graves, "Sequence
//! transduction with recurrent neural networks", 2012). The order of comparisons is TensorFlow's.

use super::{
    loss::log_sum,
    sequences::{Sequences, without_labels, write_labels},
};
use std::{collections::HashMap, marker::PhantomData};
use tenon_sdk::{
    Code, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Number,
    growth,
    reg::Numerics,
    register_kernel,
};

/// Approximate nanoseconds of a class in a step, for each prefix.
const COST_NS: f64 = 30.0;
/// The logarithm of 0.
const NEVER: f64 = f64::NEG_INFINITY;
/// The number of the prefix without labels.
const ROOT: usize = 0;

/// Logarithms of probabilities of a prefix.
#[derive(Debug, Clone, Copy)]
struct Chance {
    total: f64,
    /// With a blank last.
    blank: f64,
    /// With a label last.
    label: f64,
}

impl Chance {
    const NONE: Chance = Chance { total: NEVER, blank: NEVER, label: NEVER };
}

/// A prefix of labels.
struct Prefix {
    /// The prefix without the last label.
    parent: usize,
    /// The last label; none of the root.
    label: Option<usize>,
    before: Chance,
    now: Chance,
}

/// The search in one sequence.
struct Search {
    prefixes: Vec<Prefix>,
    /// The prefixes that one more label makes.
    longer: HashMap<(usize, usize), usize>,
    /// The prefixes that are gone on with.
    beam: Vec<usize>,
    width: usize,
}

impl Search {
    fn new(width: usize) -> Search {
        let now = Chance { total: 0.0, blank: 0.0, label: NEVER };
        let root = Prefix { parent: ROOT, label: None, before: Chance::NONE, now };
        Search { prefixes: vec![root], longer: HashMap::new(), beam: vec![ROOT], width }
    }

    fn total(&self, prefix: usize) -> f64 {
        self.prefixes[prefix].now.total
    }

    /// The place of the least probable prefix in the beam.
    fn least(&self) -> Option<usize> {
        let totals = self.beam.iter().map(|&prefix| self.total(prefix));
        let least = totals.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        least.map(|(at, _)| at)
    }

    /// Whether a prefix of this probability enters the beam, of which this is the least one.
    fn enters(&self, total: f64, least: Option<usize>) -> bool {
        let has_room = self.beam.len() < self.width;
        total > NEVER && (has_room || least.is_some_and(|at| total > self.total(self.beam[at])))
    }

    /// Takes a step, of logarithms of probabilities of classes; the last one is the blank.
    fn step(&mut self, logs: &[f64]) -> Result<(), KernelError> {
        let Some((&blank, labels)) = logs.split_last() else { return Ok(()) };
        let mut old = std::mem::take(&mut self.beam);
        old.sort_by(|&a, &b| self.total(b).total_cmp(&self.total(a)));
        for &prefix in &old {
            self.prefixes[prefix].before = self.prefixes[prefix].now;
        }
        for &prefix in &old {
            self.go_on(prefix, labels, blank);
        }
        self.beam = growth::copied(&old)?;
        let mut least = self.least();
        for &prefix in &old {
            if !self.enters(self.prefixes[prefix].before.total, least) {
                continue;
            }
            for (label, &log) in labels.iter().enumerate() {
                if self.lengthen(prefix, label, log, least)? {
                    least = self.least();
                }
            }
        }
        Ok(())
    }

    /// The probabilities of a prefix after a step.
    fn go_on(&mut self, prefix: usize, labels: &[f64], blank: f64) {
        let Prefix { parent, label, before, mut now } = self.prefixes[prefix];
        if let Some(label) = label {
            let parent = &self.prefixes[parent];
            if parent.now.total != NEVER {
                let same = parent.label == Some(label);
                let from = if same { parent.before.blank } else { parent.before.total };
                now.label = log_sum(now.label, from);
            }
            now.label += labels[label];
        }
        now.blank = before.total + blank;
        now.total = log_sum(now.blank, now.label);
        self.prefixes[prefix].now = now;
    }

    /// Adds a label to a prefix, unless that one is in the beam already; whether the beam has changed.
    fn lengthen(
        &mut self,
        prefix: usize,
        label: usize,
        log: f64,
        least: Option<usize>,
    ) -> Result<bool, KernelError> {
        let known = self.longer.get(&(prefix, label)).copied();
        if known.is_some_and(|known| self.total(known) != NEVER) {
            return Ok(false);
        }
        let of = &self.prefixes[prefix];
        let from = if of.label == Some(label) { of.before.blank } else { of.before.total };
        let total = log + from;
        let now = Chance { total, blank: NEVER, label: total };
        if !self.enters(total, least) {
            if let Some(known) = known {
                (self.prefixes[known].before, self.prefixes[known].now) =
                    (Chance::NONE, Chance::NONE);
            }
            return Ok(false);
        }
        let number = match known {
            Some(known) => {
                self.prefixes[known].now = now;
                known
            }
            None => {
                let new = Prefix { parent: prefix, label: Some(label), before: Chance::NONE, now };
                growth::push(&mut self.prefixes, new)?;
                growth::reserve_entries(&mut self.longer, 1)?;
                self.longer.insert((prefix, label), self.prefixes.len() - 1);
                self.prefixes.len() - 1
            }
        };
        if let Some(at) = least.filter(|_| self.beam.len() == self.width) {
            let last = self.beam.swap_remove(at);
            self.prefixes[last].now = Chance::NONE;
        }
        growth::push(&mut self.beam, number)?;
        Ok(true)
    }

    /// The labels of a prefix; equal ones in succession are one where they are merged.
    fn labels(&self, mut prefix: usize, merges: bool) -> Result<Vec<i64>, KernelError> {
        let (mut labels, mut last) = (Vec::new(), None);
        while let Some(label) = self.prefixes[prefix].label {
            if !merges || last != Some(label) {
                growth::push(&mut labels, label as i64)?;
            }
            (last, prefix) = (Some(label), self.prefixes[prefix].parent);
        }
        labels.reverse();
        Ok(labels)
    }
}

struct Beams<T> {
    width: usize,
    paths: usize,
    merges: bool,
    of: PhantomData<fn(T)>,
}

/// The logarithms of the softmax of scores.
fn log_softmax<T: Number>(scores: &[T], logs: &mut [f64]) {
    let most = scores.iter().map(|score| score.to_f64()).fold(NEVER, f64::max);
    logs.iter_mut().zip(scores).for_each(|(log, score)| *log = score.to_f64() - most);
    let sum = logs.iter().map(|log| log.exp()).sum::<f64>().ln();
    logs.iter_mut().for_each(|log| *log -= sum);
}

impl<T: Number> Kernel for Beams<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let (width, paths) = (c.attr::<i64>("beam_width")?, c.attr::<i64>("top_paths")?);
        if paths > width {
            return Err(KernelError::invalid_argument(format!(
                "top_paths: expected at most {width}, as beam_width is, found {paths}"
            )));
        }
        let merges = c.attr("merge_repeated")?;
        Ok(Beams { width: width as usize, paths: paths as usize, merges, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let sequences = Sequences::<T>::new(c, 1, Code::FAILED_PRECONDITION)?;
        let (count, paths) = (sequences.count, self.paths);
        let mut found = growth::with_room(paths)?;
        for _ in 0..paths {
            found.push(without_labels(count)?);
        }
        let dims = [count as i64, paths as i64];
        let totals = c.output::<T>(3 * paths, &dims)?.data;
        let mut slots = growth::with_room(count)?;
        let mut rows: Vec<_> = growth::with_room(paths)?;
        rows.extend(found.iter_mut().map(|labels| labels.iter_mut()));
        for totals in totals.chunks_exact_mut(paths) {
            let labels = rows.iter_mut().filter_map(Iterator::next);
            slots.push((growth::collected(labels)?, totals));
        }
        let cost = COST_NS * (sequences.steps * sequences.classes * self.width) as f64;
        c.parallel_items(slots, cost, |sequence, (labels, totals)| {
            let mut search = Search::new(self.width);
            let mut logs = growth::filled(sequences.classes, 0.0)?;
            for step in 0..sequences.length(sequence) {
                log_softmax(sequences.scores(step, sequence), &mut logs);
                search.step(&logs)?;
            }
            let mut best = growth::copied(&search.beam)?;
            best.sort_by(|&a, &b| search.total(b).total_cmp(&search.total(a)));
            if best.len() < paths {
                return Err(KernelError::invalid_argument(format!(
                    "top_paths: expected at most {}, the prefixes that sequence {sequence} has, found {paths}",
                    best.len()
                )));
            }
            for ((labels, total), &prefix) in labels.into_iter().zip(totals).zip(&best) {
                *labels = search.labels(prefix, self.merges)?;
                *total = T::from_f64(search.total(prefix));
            }
            Ok(())
        })?;
        for (path, labels) in found.iter().enumerate() {
            write_labels(c, [path, paths + path, 2 * paths + path], labels)?;
        }
        Ok(())
    }
}

register_kernel!("CTCBeamSearchDecoder" on "CPU": Beams<T> for "T" in [f32, f64],
    numerics = Numerics::relative(1e-5, 1e-5));
