//! How long steps take: a histogram of fixed size.
//!
//! Each power of two is divided into 16 buckets, so a percentile is accurate to 6 %. Two readings
//! of the clock take some 80 ns in a virtual machine, more than half the time of a step with one
//! small node. Steps are therefore sampled: if the last measured step was shorter than `LONG_NS`,
//! one step in 64 is measured and counts as 64; otherwise every step is measured and counts as one.
//! A step that is not measured costs two loads and a multiplication. The weights keep percentiles
//! correct when short and long steps alternate.

use crate::sampling::wants;
use serde::{Deserialize, Serialize};
use std::{
    array,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::Instant,
};

/// One in this number of short steps is measured, as a power of two.
const EVERY_LOG2: u32 = 6;
/// From this duration on, reading the clock takes less than 1 % of a step.
const LONG_NS: u64 = 10_000;
/// The number of buckets for each power of two, as a power of two.
const PARTS_LOG2: u32 = 4;
const PARTS: usize = 1 << PARTS_LOG2;
/// The longest time with a bucket of its own is 2 to this power in nanoseconds, some 18 minutes.
const LONGEST_LOG2: u32 = 40;
const BUCKETS: usize = (LONGEST_LOG2 - PARTS_LOG2 + 1) as usize * PARTS;

/// The number of steps with times in one bucket. A counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyBucket {
    /// The longest time in the bucket, in nanoseconds. The last bucket has all longer times too.
    pub up_to_ns: u64,
    /// The number of successful steps with such a time, estimated from the measured ones.
    pub steps: u64,
}

/// The times of steps.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    /// One step in 2 to this power is measured now.
    every_log2: AtomicU32,
}

/// A step that is measured.
#[derive(Debug)]
pub(crate) struct Measured {
    began: Instant,
    /// The number of steps that it represents.
    weight: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        let buckets = array::from_fn(|_| AtomicU64::new(0));
        Histogram { buckets, every_log2: AtomicU32::new(EVERY_LOG2) }
    }
}

impl Histogram {
    /// Starts a step after `done` others; returns `None` if it is not measured.
    #[inline]
    pub fn begin(&self, done: u64) -> Option<Measured> {
        let every_log2 = self.every_log2.load(Ordering::Relaxed);
        wants(done, every_log2).then(|| Measured { began: Instant::now(), weight: 1 << every_log2 })
    }

    /// Adds a successful step.
    #[cold]
    pub fn end(&self, step: &Measured) {
        let ns = u64::try_from(step.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.add(ns, step.weight);
        self.every_log2.store(if ns < LONG_NS { EVERY_LOG2 } else { 0 }, Ordering::Relaxed);
    }

    fn add(&self, ns: u64, steps: u64) {
        self.buckets[place(ns)].fetch_add(steps, Ordering::Relaxed);
    }

    /// The buckets that have steps.
    pub fn buckets(&self) -> Vec<LatencyBucket> {
        let bucket = |(at, steps): (usize, &AtomicU64)| {
            let steps = steps.load(Ordering::Relaxed);
            (steps > 0).then(|| LatencyBucket { up_to_ns: longest(at), steps })
        };
        self.buckets.iter().enumerate().filter_map(bucket).collect()
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

/// The time in nanoseconds that this share of the steps since `before` did not exceed; `None` if
/// none was measured. If counters decreased, they belong to a new runtime and are counted from
/// zero.
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
    use std::time::Duration;

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
        (0..90).for_each(|_| histogram.add(1_000, 1));
        let before = histogram.buckets();
        (0..9).for_each(|_| histogram.add(10_000, 1));
        histogram.add(1_000_000, 1);
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
    fn the_same_share_is_measured_whatever_takes_turns() {
        for period in 1..=16u64 {
            let measured =
                (0..64_000).filter(|at| at % period == 0 && wants(*at, EVERY_LOG2)).count();
            let expected = 1_000.0 / period as f64;
            assert!((measured as f64 - expected).abs() <= 10.0, "{period}: {measured}");
        }
        assert!((0..100).all(|at| wants(at, 0)), "every long step is measured");
    }

    #[test]
    fn weights_make_up_for_short_steps_that_are_not_measured() {
        let histogram = Histogram::default();
        let (mut done, ago) = (0, |ns| Instant::now().checked_sub(Duration::from_nanos(ns)));
        let mut step = |ns: u64| {
            if let Some(measured) = histogram.begin(done) {
                // The values are half a second apart, so that a thread that waits for a core does
                // not blur the two.
                let began =
                    if ns == 0 { Instant::now() } else { ago(ns).unwrap_or(measured.began) };
                histogram.end(&Measured { began, ..measured });
            }
            done += 1;
        };
        (0..6_400).for_each(|_| step(0));
        (0..640).for_each(|_| step(1_000_000_000));
        let buckets = histogram.buckets();
        let of = |wanted: fn(u64) -> bool| -> u64 {
            buckets.iter().filter(|bucket| wanted(bucket.up_to_ns)).map(|bucket| bucket.steps).sum()
        };
        let (short, long) = (of(|ns| ns < 500_000_000), of(|ns| ns >= 500_000_000));
        assert!((5_760..=7_040).contains(&short), "{short} of 6,400");
        assert!((576..=704).contains(&long), "{long} of 640");
    }
}
