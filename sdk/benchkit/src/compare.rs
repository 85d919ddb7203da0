//! What follows from records: which variant is faster, from where on, and whether anything became slower.
//!
//! Variants of one run are compared round by round ([`side_by_side`]), records of different runs as wholes
//! ([`against_baseline`]). In both, a difference is one that the interval (or the test) shows and that is larger than
//! a threshold. Each pair has its own: never below what either of the two differs from itself by, and never raised by
//! the noise of a third.

mod baseline;
mod busy;
mod crossover;
mod sides;

use crate::{
    record::{Record, Samples, Variant},
    stats::{
        bootstrap,
        describe::{median, quantile, sorted},
        lehmann::{self, Ratio},
    },
};
pub use baseline::{Baseline, against_baseline, against_record};
pub use crossover::crossovers;
pub use sides::{Against, side_by_side};

/// Smaller differences between variants of one run do not count.
pub const LEAST_BETWEEN_VARIANTS: f64 = 0.02;
/// Smaller differences between runs do not count.
pub const LEAST_BETWEEN_RUNS: f64 = 0.05;
/// From this many processes on, processes are what is compared.
const ENOUGH_PROCESSES: usize = 5;

/// Whether samples come from so many processes that their medians are compared, and not their blocks.
fn by_process(samples: &Samples) -> Option<Vec<Vec<f64>>> {
    let groups = bootstrap::by_process(&samples.ns, &samples.processes);
    (groups.len() >= ENOUGH_PROCESSES).then_some(groups)
}

/// By which factor the times of `a` are those of `b`, where both were taken in the same rounds.
fn paired(a: &Samples, b: &Samples, seed: u64) -> Option<Ratio> {
    match (by_process(a), by_process(b)) {
        (Some(a), Some(b)) if a.len() == b.len() => {
            let of_process = |(a, b): (&Vec<f64>, &Vec<f64>)| {
                let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
                median(&ratios)
            };
            let ratios: Vec<f64> = a.iter().zip(&b).map(of_process).collect();
            lehmann::paired(&ratios, &vec![1.0; ratios.len()], seed)
        }
        _ => lehmann::paired(&a.ns, &b.ns, seed),
    }
}

/// What two measurements of one kernel differ by on this machine, as a ratio less one: the 95th percentile over the
/// records, for a reader. `None` where there is too little to tell.
pub fn noise_floor(records: &[Record]) -> Option<f64> {
    let differences: Vec<f64> =
        records.iter().filter_map(|record| own_difference(&record.kernel)).collect();
    if differences.is_empty() {
        return None;
    }
    Some(quantile(&sorted(&differences), 0.95))
}

/// How far samples differ among themselves. With several processes one half of them is compared with the other, else one
/// half of the rounds: by ones, by twos and by fours in turn, of which the largest difference counts, since one alone is
/// small by luck.
fn own_difference(samples: &Samples) -> Option<f64> {
    let several =
        samples.processes.iter().any(|&process| Some(&process) != samples.processes.first());
    let keys = if several { &samples.processes } else { &samples.rounds };
    let differences = (0..3).filter_map(|shift| {
        let half = |wanted: u32| {
            let own = samples.ns.iter().zip(keys).filter(|(_, key)| (*key >> shift) % 2 == wanted);
            own.map(|(ns, _)| *ns).collect::<Vec<f64>>()
        };
        let (even, odd) = (half(0), half(1));
        // A half of a few samples says nothing of the whole.
        let few = even.len().min(odd.len()) * 4 < samples.ns.len();
        (!few).then(|| (median(&even) / median(&odd)).ln().abs().exp_m1())
    });
    differences.reduce(f64::max)
}

/// The threshold of a pair: what the user wants, else a least, and not below what either of the two differs from itself
/// by.
fn threshold(wanted: Option<f64>, least: f64, a: &Samples, b: &Samples) -> f64 {
    let own = [a, b].into_iter().filter_map(own_difference);
    own.fold(wanted.unwrap_or(least), f64::max)
}

/// Variants by the names that distinguish them: label, then plugin and device where they differ.
pub fn short_names(variants: &[&Variant]) -> Vec<String> {
    let one_device = variants.windows(2).all(|pair| pair[0].device == pair[1].device);
    let name = |variant: &&Variant| {
        let beside = || variants.iter().filter(|other| other.device == variant.device);
        let label = if variant.label.is_empty() { "ordinary" } else { &variant.label };
        let mut name = label.to_owned();
        if beside().any(|other| other.plugin != variant.plugin) {
            name = format!("{name} of {}", variant.plugin);
        } else if beside().any(|other| other.digest != variant.digest) {
            let digest = &variant.digest[..variant.digest.len().min(6)];
            name = format!("{name} of {} {digest}", variant.plugin);
        }
        if one_device { name } else { format!("{name} on {}", variant.device) }
    };
    variants.iter().map(name).collect()
}

#[cfg(test)]
mod tests;
