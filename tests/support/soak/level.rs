//! What a process holds, and whether that grows.

use std::{fmt, fs, time::Duration};

/// The part of the time that is warm-up: pools of memory and stacks of threads fill for some minutes, to a level of some
/// 18 MiB.
const WARM_UP: f64 = 0.5;
/// The part at the end that is compared with as long a part after the warm-up.
const PART: f64 = 0.2;
/// How much more memory there may be at the end.
const GROWTH: f64 = 0.05;
/// How many more descriptors there may be at the end.
const DESCRIPTORS: f64 = 8.0;

/// What the process holds at one moment.
#[derive(Clone, Copy)]
pub struct Sample {
    after: Duration,
    /// KiB of its own memory, and KiB of shared memory.
    own: u64,
    shared: u64,
    descriptors: usize,
    threads: usize,
    mappings: usize,
}

impl Sample {
    /// Now, so long after the beginning, of a process: its number, or `self`.
    pub fn of(process: &str, after: Duration) -> Sample {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let figure = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|line| line.split_whitespace().next());
            word.and_then(|word| word.parse::<u64>().ok()).unwrap_or(0)
        };
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        Sample {
            after,
            own: figure("RssAnon:"),
            shared: figure("RssShmem:"),
            descriptors: fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count),
            threads: figure("Threads:") as usize,
            mappings: maps.lines().count(),
        }
    }

    fn memory(&self) -> u64 {
        self.own + self.shared
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:5.0} s: {} MiB of its own, {} MiB shared, {} descriptors, {} threads, {} mappings",
            self.after.as_secs_f64(),
            self.own >> 10,
            self.shared >> 10,
            self.descriptors,
            self.threads,
            self.mappings
        )
    }
}

fn median(samples: &[Sample], of: impl Fn(&Sample) -> u64) -> f64 {
    let mut all: Vec<u64> = samples.iter().map(of).collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or(0) as f64
}

/// Compares the end with what was after the warm-up.
///
/// # Errors
/// Memory has grown by more than 5 %, or descriptors by more than 8, or there were too few looks.
pub fn verdict(samples: &[Sample]) -> Result<String, String> {
    let at = |part: f64| (samples.len() as f64 * part) as usize;
    let (warm, part) = (at(WARM_UP), at(PART));
    if part < 4 {
        return Err(format!("{} looks are too few to compare", samples.len()));
    }
    let (first, last) = (&samples[warm..warm + part], &samples[samples.len() - part..]);
    let (before, after) = (median(first, Sample::memory), median(last, Sample::memory));
    let growth = after / before - 1.0;
    let text = format!(
        "memory {:.1} MiB after the warm-up, {:.1} MiB at the end: {:+.1} % (at most {:+.0} %); at the end {}",
        before / 1024.0,
        after / 1024.0,
        100.0 * growth,
        100.0 * GROWTH,
        samples[samples.len() - 1]
    );
    let open = |part: &[Sample]| median(part, |sample| sample.descriptors as u64);
    if open(last) > open(first) + DESCRIPTORS {
        let (before, after) = (open(first), open(last));
        return Err(format!("descriptors grow from {before} to {after}: {text}"));
    }
    if growth > GROWTH { Err(format!("memory grows: {text}")) } else { Ok(text) }
}
