//! Variants of one run beside a base.

use super::{LEAST_BETWEEN_VARIANTS, paired, short_names, threshold};
use crate::record::{Comparison, Record, Verdict};

/// What the others are compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Against {
    /// The variant that the policy chooses.
    Chosen,
    /// The variant of this label.
    Label(String),
    /// The variants of this plugin, by the digest of its file.
    Plugin(String),
}

/// Compares the variants of each case with its base. A case without the base is left out.
pub fn side_by_side(
    records: &[Record],
    against: &Against,
    wanted: Option<f64>,
    floor: Option<f64>,
    seed: u64,
) -> Vec<Comparison> {
    let threshold = threshold(wanted, LEAST_BETWEEN_VARIANTS, &[floor]);
    let mut comparisons = Vec::new();
    let mut first = 0;
    for case in records.chunk_by(|a, b| a.case == b.case) {
        if let Some(base) = base(case, against) {
            for (at, record) in case.iter().enumerate().filter(|(at, _)| *at != base) {
                let (record_at, base_at) = ((first + at) as u32, (first + base) as u32);
                let found = compare(record, &case[base], threshold, seed);
                comparisons.extend(found.map(|found| Comparison {
                    record: record_at,
                    base: Some(base_at),
                    ..found
                }));
            }
        }
        first += case.len();
    }
    comparisons
}

/// The base among the variants of one case. Of several on different devices the first counts: hosts come first.
fn base(case: &[Record], against: &Against) -> Option<usize> {
    let is_base = |record: &Record| match against {
        Against::Chosen => record.variant.chosen,
        Against::Label(label) => record.variant.label == *label,
        Against::Plugin(digest) => record.variant.digest == *digest,
    };
    let best =
        |record: &&Record| (is_base(record), record.variant.chosen, record.variant.device == "CPU");
    let base = case.iter().max_by_key(best).filter(|record| is_base(record))?;
    case.iter().position(|record| std::ptr::eq(record, base))
}

fn compare(record: &Record, base: &Record, threshold: f64, seed: u64) -> Option<Comparison> {
    let ratio = paired(&base.kernel, &record.kernel, seed)?;
    let verdict = match ratio.differs(threshold) {
        true if ratio.ratio > 1.0 => Verdict::Faster,
        true => Verdict::Slower,
        false => Verdict::Same,
    };
    let names = short_names(&[&base.variant, &record.variant]);
    Some(Comparison {
        record: 0,
        base: None,
        against: names.into_iter().next().unwrap_or_default(),
        paired: true,
        speedup: ratio.ratio,
        interval: ratio.interval,
        p: None,
        threshold,
        verdict,
        note: None,
    })
}
