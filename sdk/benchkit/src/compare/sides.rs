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
    seed: u64,
) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    let mut first = 0;
    for case in records.chunk_by(|a, b| a.case == b.case) {
        for (at, record) in case.iter().enumerate() {
            let Some(base) = base(case, record, against).filter(|&base| base != at) else {
                continue;
            };
            let (record_at, base_at) = ((first + at) as u32, (first + base) as u32);
            let found = compare(record, &case[base], wanted, seed);
            comparisons.extend(found.map(|found| Comparison {
                record: record_at,
                base: Some(base_at),
                ..found
            }));
        }
        first += case.len();
    }
    comparisons
}

/// The base of a record among the variants of its case: the one that the policy chooses, on the CPU where there are
/// several; of another build of a plugin rather the one of the record's own label.
fn base(case: &[Record], record: &Record, against: &Against) -> Option<usize> {
    let is_base = |base: &Record| match against {
        Against::Chosen => base.variant.chosen,
        Against::Label(label) => base.variant.label == *label,
        Against::Plugin(digest) => base.variant.digest == *digest,
    };
    let like = |base: &Record| {
        let other_build = matches!(against, Against::Plugin(_));
        other_build
            && (&base.variant.label, &base.variant.device)
                == (&record.variant.label, &record.variant.device)
    };
    let key = |base: &Record| (like(base), base.variant.chosen, base.variant.device == "CPU");
    // Of equals the last: the hosts of other builds come last.
    let bases = case.iter().enumerate().filter(|(_, base)| is_base(base));
    bases.max_by_key(|(_, base)| key(base)).map(|(at, _)| at)
}

fn compare(record: &Record, base: &Record, wanted: Option<f64>, seed: u64) -> Option<Comparison> {
    let threshold = threshold(wanted, LEAST_BETWEEN_VARIANTS, &base.kernel, &record.kernel);
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
