//! From where on a sweep a variant is the faster one.

use super::short_names;
use crate::record::{Comparison, Crossover, Record, Variant, Verdict};

/// The points of a sweep at which one variant overtakes another, for each variant that was compared with a base. A
/// variant that wins, or loses, wherever there is a difference has one entry without `after`.
pub fn crossovers(records: &[Record], comparisons: &[Comparison]) -> Vec<Crossover> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for comparison in comparisons {
        let Some(base) = comparison.base else { continue };
        let (record, base) = (&records[comparison.record as usize], &records[base as usize]);
        let Some(at) = record.case.at else { continue };
        let is_it = |line: &&mut Line<'_>| {
            line.record.bench == record.bench
                && line.record.variant == chosen_as(&record.variant, line.record)
                && same_but_for_sizes(line.record, record)
        };
        let point = (at, comparison.verdict);
        match lines.iter_mut().find(is_it) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { record, base, points: vec![point] }),
        }
    }
    lines.iter_mut().flat_map(Line::crossovers).collect()
}

/// The same variant whether or not the policy chooses it at this size.
fn chosen_as(variant: &Variant, other: &Record) -> Variant {
    Variant { chosen: other.variant.chosen, ..variant.clone() }
}

fn same_but_for_sizes(a: &Record, b: &Record) -> bool {
    let types = |record: &Record| {
        record
            .case
            .inputs
            .iter()
            .map(|input| (input.name.clone(), input.dtype.clone(), input.dims.len()))
            .collect::<Vec<_>>()
    };
    a.case.attrs == b.case.attrs && types(a) == types(b)
}

/// A variant against its base along a sweep.
struct Line<'a> {
    record: &'a Record,
    base: &'a Record,
    points: Vec<(i64, Verdict)>,
}

impl Line<'_> {
    fn crossovers(&mut self) -> Vec<Crossover> {
        self.points.sort_by_key(|(at, _)| *at);
        let sure =
            |(_, verdict): &&(i64, Verdict)| matches!(verdict, Verdict::Faster | Verdict::Slower);
        let sure: Vec<(i64, Verdict)> = self.points.iter().filter(sure).copied().collect();
        let turns = sure.windows(2).filter(|pair| pair[0].1 != pair[1].1);
        let turns: Vec<Crossover> =
            turns.map(|pair| self.turn(pair[1].1, Some(pair[0].0), pair[1].0)).collect();
        match (turns.is_empty(), sure.first()) {
            (true, Some(&(at, verdict))) => vec![self.turn(verdict, None, at)],
            _ => turns,
        }
    }

    /// From `from` on the variant is as `verdict` says; up to `after` it was the other way round.
    fn turn(&self, verdict: Verdict, after: Option<i64>, from: i64) -> Crossover {
        let names = short_names(&[&self.record.variant, &self.base.variant]);
        let [own, base] = [names[0].clone(), names[1].clone()];
        let (above, below) = if verdict == Verdict::Faster { (own, base) } else { (base, own) };
        Crossover { op: self.record.bench.clone(), above, below, after, from: Some(from) }
    }
}
