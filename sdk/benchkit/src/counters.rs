//! The processor's own counters, by Linux's perf events.
//!
//! What it is: a look at cycles, instructions, and misses of the last cache and of the translations of addresses, before
//! and after some more calls, in user mode alone. Each counter is open for every thread that the process has, since kernels
//! compute on the pool's. What it is not: a profiler; `perf record` shows where in the code events occur.
//!
//! Counters are a favour: a virtual machine may have none, and the system may keep them to itself. [`count`] says why, with
//! what to do.

use crate::{record::Counts, sampler::Subject};
use thiserror::Error;

/// Why nothing is counted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CounterError {
    /// The system forbids it.
    #[error(
        "the system does not let this process read the processor's counters (kernel.perf_event_paranoid is {level}): \
         `sudo sysctl kernel.perf_event_paranoid=2`, or in a container --cap-add PERFMON and a seccomp profile that \
         has perf_event_open"
    )]
    Forbidden {
        /// What the knob of the system says.
        level: String,
    },
    /// There are no counters.
    #[error(
        "this machine has no counters that can be read, as most virtual machines do: measure on the hardware, or ask the \
         hypervisor for a virtual PMU"
    )]
    Absent,
    /// No Linux.
    #[error("counters are read by Linux's perf events, which this system does not have")]
    System,
    /// A call failed.
    #[error("{0}")]
    Call(String),
}

/// The line to type where counters cannot be read here, or more than sums are wanted.
pub fn perf_lines(command: &[String]) -> [String; 2] {
    let words = command.iter().filter(|word| *word != "--counters").map(|word| quoted(word));
    let command = words.collect::<Vec<_>>().join(" ");
    let events = "cycles,instructions,LLC-load-misses,dTLB-load-misses";
    [
        format!("perf stat -e {events} -- {command}"),
        format!("perf record -e cycles -g -- {command} && perf report"),
    ]
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(not(target_os = "linux"))]
mod linux {
    use super::{CounterError, Counts, Subject};

    pub fn count(_: &mut dyn Subject, _: bool) -> Result<Counts, CounterError> {
        Err(CounterError::System)
    }
}

#[cfg(target_os = "linux")]
mod linux;

/// Counts some more calls of a subject: as many as take some milliseconds; where caches are cold, some with caches emptied
/// before each.
///
/// # Errors
/// Nothing can be counted.
pub fn count(subject: &mut dyn Subject, cold: bool) -> Result<Counts, CounterError> {
    linux::count(subject, cold)
}

/// Whether anything can be counted, for a word to the user before it is tried.
///
/// # Errors
/// Why not.
pub fn available() -> Result<(), CounterError> {
    linux::count(&mut |_: u64| Ok(()), false).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_allowed_says_why_and_what_to_type() {
        let forbidden = CounterError::Forbidden { level: "4".into() }.to_string();
        assert!(forbidden.contains("is 4)") && forbidden.contains("sysctl"), "{forbidden}");
        let command = ["tenon", "bench", "--counters", "Add", "--shape", "x=[n,2*n]"];
        let [stat, record] = perf_lines(&command.map(str::to_owned));
        assert!(stat.ends_with("-- tenon bench Add --shape 'x=[n,2*n]'"), "{stat}");
        assert!(record.starts_with("perf record ") && !record.contains("--counters"), "{record}");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }

    #[test]
    fn counters_count_or_say_why_not() {
        let mut sum = 0u64;
        let mut work = |calls: u64| {
            for at in 0..1000 * calls {
                sum = std::hint::black_box(sum.wrapping_add(at));
            }
            Ok(())
        };
        match count(&mut work, false) {
            // A round of the loop is some instructions.
            Ok(Counts { instructions: Some(each), calls, .. }) => {
                assert!(each > 1000.0 && calls > 0, "{each} in {calls}");
            }
            Ok(counts) => assert!(counts.cycles.is_some() || counts.cache_misses.is_some()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
