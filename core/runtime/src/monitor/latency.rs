//! How long steps take: a histogram of fixed size, filled by one step in sixteen.
//!
//! Buckets are an eighth of a power of two and less wide, so that a percentile is right to 6 %. A step that is not
//! measured costs a load and a multiplication; one that is, two looks at the clock and an addition.

use serde::{Deserialize, Serialize};
use std::{
    array,
    sync::atomic::{AtomicU64, Ordering},
};

/// One step in so many is measured, as a power of two.
const EVERY_LOG2: u32 = 4;
/// Buckets of each power of two, as a power of two.
const PARTS_LOG2: u32 = 4;
const PARTS: usize = 1 << PARTS_LOG2;
/// The longest time that has a bucket of its own is 2 to this many nanoseconds, some 18 minutes.
const LONGEST_LOG2: u32 = 40;
const BUCKETS: usize = (LONGEST_LOG2 - PARTS_LOG2 + 1) as usize * PARTS;

/// Steps whose times lie in one bucket. A counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyBucket {
    /// The longest time in it, in nanoseconds; the last one has the longer ones too.
    pub up_to_ns: u64,
    /// Measured steps that took so long and ended well.
    pub steps: u64,
}

/// The times of steps.
#[derive(Debug)]
pub(crate) struct Histogram([AtomicU64; BUCKETS]);

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram(array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Histogram {
    /// Whether the step after so many is to be measured. Multiples of the golden ratio come past every remainder equally
    /// often: two graphs that take turns are both seen.
    pub fn wants(done: u64) -> bool {
        (done as u32).wrapping_mul(0x9E37_79B1) >> (u32::BITS - EVERY_LOG2) == 0
    }

    /// Adds a step.
    pub fn add(&self, ns: u64) {
        self.0[place(ns)].fetch_add(1, Ordering::Relaxed);
    }

    /// The buckets that have steps.
    pub fn buckets(&self) -> Vec<LatencyBucket> {
        let bucket = |(at, steps): (usize, &AtomicU64)| {
            let steps = steps.load(Ordering::Relaxed);
            (steps > 0).then(|| LatencyBucket { up_to_ns: longest(at), steps })
        };
        self.0.iter().enumerate().filter_map(bucket).collect()
    }
}

fn place(ns: u64) -> usize {
    let Some(log) = ns.checked_ilog2().filter(|log| *log >= PARTS_LOG2) else { return ns as usize };
    let part = (ns >> (log - PARTS_LOG2)) as usize & (PARTS - 1);
    ((log - PARTS_LOG2 + 1) as usize * PARTS + part).min(BUCKETS - 1)
}

fn longest(place: usize) -> u64 {
    if place < PARTS {
        return place as u64;
    }
    let (power, part) = (place / PARTS - 1, place % PARTS);
    (((PARTS + part + 1) as u64) << power) - 1
}

/// The time in nanoseconds that this share of the steps did not exceed since `before`; `None` where none was measured.
/// Counters that went back are another runtime's, and count from nothing.
pub fn percentile_ns(now: &[LatencyBucket], before: &[LatencyBucket], share: f64) -> Option<u64> {
    let known = |bucket: &LatencyBucket| {
        let earlier = before.iter().find(|earlier| earlier.up_to_ns == bucket.up_to_ns);
        earlier.map_or(0, |earlier| earlier.steps)
    };
    let went_back = now.iter().any(|bucket| known(bucket) > bucket.steps);
    let new = |bucket: &LatencyBucket| bucket.steps - if went_back { 0 } else { known(bucket) };
    let total: u64 = now.iter().map(new).sum();
    let wanted = ((total as f64 * share).ceil() as u64).max(1);
    let mut so_far = 0;
    let reaches = |bucket: &&LatencyBucket| {
        so_far += new(bucket);
        so_far >= wanted
    };
    now.iter().find(reaches).map(|bucket| bucket.up_to_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_times_and_is_narrow() {
        for ns in (0..2000).chain([1 << 20, (1 << 20) + 12_345, 987_654_321, 1 << 39]) {
            let longest = longest(place(ns));
            assert!(
                longest >= ns && (longest - ns) as f64 <= 0.0625 * ns as f64,
                "{ns}: {longest}"
            );
            assert!(place(ns) == 0 || super::longest(place(ns) - 1) < ns, "{ns}");
        }
        assert_eq!(place(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_those_of_the_steps_meanwhile() {
        let histogram = Histogram::default();
        assert_eq!(percentile_ns(&histogram.buckets(), &[], 0.5), None);
        (0..90).for_each(|_| histogram.add(1_000));
        let before = histogram.buckets();
        (0..9).for_each(|_| histogram.add(10_000));
        histogram.add(1_000_000);
        let now = histogram.buckets();
        let of = |before: &[LatencyBucket]| {
            [0.5, 0.9, 0.99, 1.0].map(|share| percentile_ns(&now, before, share).unwrap())
        };
        let [half, most, nearly, all] = of(&[]);
        assert!((1_000..1_063).contains(&half) && half == most);
        assert!((10_000..10_625).contains(&nearly) && (1_000_000..1_062_500).contains(&all));
        assert_eq!(of(&before)[0], nearly, "of the ten since then");
        let fewer = [LatencyBucket { steps: 10, ..before[0] }];
        assert_eq!(percentile_ns(&fewer, &before, 0.5), Some(half), "another runtime's counters");
        assert_eq!(percentile_ns(&before, &before, 0.5), None);
    }

    #[test]
    fn a_sixteenth_is_measured_whatever_takes_turns() {
        for period in 1..=16u64 {
            let measured =
                (0..16_000).filter(|at| at % period == 0 && Histogram::wants(*at)).count();
            let expected = 1_000.0 / period as f64;
            assert!((measured as f64 - expected).abs() <= 10.0, "{period}: {measured}");
        }
    }
}
