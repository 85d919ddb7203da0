//! A report as a page sees it: the variants as series with one mark throughout, the records as families.

use crate::{
    compare::{Baseline, short_names},
    record::{Comparison, Record, Report, SweepAxis, Variant},
};

/// A variant throughout the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// The name that distinguishes it for a reader.
    pub name: String,
}

/// A record with its place in the report and its series.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The record.
    pub record: &'a Record,
    /// Its place in the report.
    pub place: usize,
    /// Place of its series.
    pub series: usize,
}

/// Records that follow one another and are of one op: a sweep, or calls with the same attributes.
#[derive(Debug)]
pub struct Family<'a> {
    /// Op and element type, and the shapes along a sweep.
    pub title: String,
    /// Its records.
    pub entries: Vec<Entry<'a>>,
    /// The axis, where the calls are a sweep of two points at least.
    pub sweep: Option<&'a SweepAxis>,
}

/// A report as a page sees it.
#[derive(Debug)]
pub struct Model<'a> {
    /// The report.
    pub report: &'a Report,
    /// Comparisons with an earlier run.
    pub baseline: Option<&'a Baseline>,
    /// The variants.
    pub series: Vec<Series>,
    /// The records.
    pub families: Vec<Family<'a>>,
}

impl<'a> Model<'a> {
    /// The model of a report.
    pub fn new(report: &'a Report, baseline: Option<&'a Baseline>) -> Model<'a> {
        let mut variants: Vec<&Variant> = Vec::new();
        for record in &report.records {
            if !variants.iter().any(|known| is_series(known, &record.variant)) {
                variants.push(&record.variant);
            }
        }
        let series = short_names(&variants).into_iter().map(|name| Series { name }).collect();
        let series_of = |record: &Record| {
            variants.iter().position(|known| is_series(known, &record.variant)).unwrap_or(0)
        };
        let entries: Vec<Entry<'_>> = report
            .records
            .iter()
            .enumerate()
            .map(|(place, record)| Entry { record, place, series: series_of(record) })
            .collect();
        let together = |a: &Entry<'_>, b: &Entry<'_>| {
            let same =
                a.record.bench == b.record.bench && a.record.case.attrs == b.record.case.attrs;
            same && a.record.case.at <= b.record.case.at
        };
        let sweep = report.run.sweep.as_ref();
        let families = entries.chunk_by(together).map(|chunk| family(chunk, sweep)).collect();
        Model { report, baseline, series, families }
    }

    /// What the variants of a record's case say of it; the base has the name that its series has throughout the page.
    pub fn comparison(&self, place: usize) -> Option<Comparison> {
        let found = self.report.comparisons.iter().find(|found| found.record as usize == place)?;
        let base = found.base.and_then(|base| self.entries().find(|e| e.place == base as usize));
        let against = base.map_or(&found.against, |base| &self.series[base.series].name);
        Some(Comparison { against: against.clone(), ..found.clone() })
    }

    /// What the earlier run says of a record.
    pub fn change(&self, place: usize) -> Option<&'a Comparison> {
        self.baseline?.comparisons.iter().find(|found| found.record as usize == place)
    }

    /// All records.
    pub fn entries(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.families.iter().flat_map(|family| &family.entries)
    }

    /// Name of a record's series.
    pub fn name(&self, entry: &Entry<'_>) -> &str {
        &self.series[entry.series].name
    }

    /// The place of a record, in a word or two: for a call of a graph the node.
    pub fn at(&self, entry: &Entry<'_>) -> String {
        let case = &entry.record.case;
        match &case.node {
            Some(node) => format!("{node} ({})", case.op),
            None if case.at.is_some() && self.report.run.sweep.is_some() => self.case(entry),
            None => format!("{} {}", case.op, self.case(entry)),
        }
    }

    /// The case of a record, as short as it is clear within its family.
    pub fn case(&self, entry: &Entry<'_>) -> String {
        let case = &entry.record.case;
        match (&self.report.run.sweep, case.at, &case.node) {
            (Some(sweep), Some(at), _) => format!("{} = {at}", sweep.symbol),
            (_, _, Some(node)) => format!("{node}: {}", entry.record.size),
            _ if entry.record.size.is_empty() => "without inputs".to_owned(),
            _ => entry.record.size.clone(),
        }
    }

    /// The ops, each once.
    pub fn ops(&self) -> Vec<&'a str> {
        let mut ops: Vec<&str> = Vec::new();
        for record in &self.report.records {
            if !ops.contains(&record.bench.as_str()) {
                ops.push(&record.bench);
            }
        }
        ops
    }
}

impl<'a> Family<'a> {
    /// The series that occur.
    pub fn shown(&self) -> Vec<usize> {
        shown(self.entries.iter())
    }

    /// Records of one case after those of another.
    pub fn cases(&self) -> impl Iterator<Item = &[Entry<'a>]> {
        self.entries.chunk_by(|a, b| a.record.case == b.record.case)
    }

    /// Records of one series, along the sweep.
    pub fn line(&self, series: usize) -> impl Iterator<Item = &Entry<'a>> {
        self.entries.iter().filter(move |entry| entry.series == series)
    }
}

/// The series that occur among records.
pub fn shown<'a>(entries: impl Iterator<Item = &'a Entry<'a>>) -> Vec<usize> {
    let mut shown: Vec<usize> = entries.map(|entry| entry.series).collect();
    shown.sort_unstable();
    shown.dedup();
    shown
}

/// The same kernel of the same build, whether or not the policy chooses it.
fn is_series(a: &Variant, b: &Variant) -> bool {
    a.same_kernel(b) && a.digest == b.digest
}

fn family<'a>(entries: &[Entry<'a>], sweep: Option<&'a SweepAxis>) -> Family<'a> {
    let mut points: Vec<i64> = entries.iter().filter_map(|entry| entry.record.case.at).collect();
    points.dedup();
    let sweep = sweep.filter(|_| points.len() > 1);
    let case = &entries[0].record.case;
    let dtype = case.inputs.first().map(|input| input.dtype.as_str()).unwrap_or_default();
    let mut title = format!("{} {dtype}", case.op).trim_end().to_owned();
    if let Some(sweep) = sweep {
        title = format!("{title}, {}", pattern(entries, &sweep.symbol));
    }
    Family { title, entries: entries.to_vec(), sweep }
}

/// The shapes along a sweep: `a=nx64 b=64xn`.
fn pattern(entries: &[Entry<'_>], symbol: &str) -> String {
    let inputs = entries[0].record.case.inputs.iter().enumerate().map(|(input, first)| {
        let dims = (0..first.dims.len()).map(|dim| {
            let sizes = entries.iter().map(|entry| {
                let case = &entry.record.case;
                (case.at.unwrap_or(1), case.inputs.get(input).and_then(|of| of.dims.get(dim)))
            });
            size(&sizes.collect::<Vec<_>>(), symbol)
        });
        let dims: Vec<String> = dims.collect();
        let dims = if dims.is_empty() { "[]".to_owned() } else { dims.join("\u{d7}") };
        format!("{}={dims}", first.name)
    });
    inputs.collect::<Vec<_>>().join(" ")
}

/// One size along a sweep: the same everywhere, a multiple of the symbol, or neither.
fn size(sizes: &[(i64, Option<&i64>)], symbol: &str) -> String {
    let first = sizes[0].1.copied().unwrap_or_default();
    if sizes.iter().all(|(_, size)| *size == Some(&first)) {
        return first.to_string();
    }
    let factor = first / sizes[0].0.max(1);
    let is_multiple = |(at, size): &(i64, Option<&i64>)| *size == Some(&(factor * at));
    match sizes.iter().all(is_multiple) {
        true if factor == 1 => symbol.to_owned(),
        true => format!("{factor}{symbol}"),
        false => format!("f({symbol})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_along_a_sweep_are_said_with_its_symbol() {
        let along = |sizes: [i64; 3]| {
            let pairs = [4, 8, 16].into_iter().zip(sizes.iter().map(Some));
            size(&pairs.collect::<Vec<_>>(), "n")
        };
        assert_eq!(along([4, 8, 16]), "n");
        assert_eq!(along([12, 24, 48]), "3n");
        assert_eq!(along([7, 7, 7]), "7");
        assert_eq!(along([5, 9, 17]), "f(n)");
    }
}
