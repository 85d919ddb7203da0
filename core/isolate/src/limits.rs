//! Limits of an isolated plugin, from the knobs `host.isolate_*`.

use std::{path::PathBuf, time::Duration};
use tenon_framework::knob::Knobs;

/// How long the host polls for a reply before it sleeps.
pub(super) const HOST_LOOK: Duration = Duration::from_micros(100);
/// How long a waiting thread sleeps before it checks whether the step is cancelled or the worker
/// gone.
pub(super) const SLICE: Duration = Duration::from_millis(5);
/// How many times a question is repeated because another call ended the process.
pub(super) const ASKED_AGAIN: u32 = 32;
/// Least time for a plugin's first worker to open its library: only the thread that loads the
/// plugin waits for it.
pub(super) const FIRST_START: Duration = Duration::from_secs(60);
/// Age at which a fault no longer counts.
pub(super) const FORGOTTEN: Duration = Duration::from_secs(60);

/// Limits of an isolated plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How long a call may take.
    pub deadline: Duration,
    /// Most bytes of private memory of its process; 0 is no limit.
    pub memory: u64,
    /// Most bytes of memory for the tensors that it writes; 0 is as much as the machine has.
    pub tensors: u64,
    /// How long a new process may take to open its library.
    pub start: Duration,
    /// Environment variables that its process receives in addition to the usual ones; a name may
    /// end in `*`.
    pub environment: Vec<String>,
    /// Faults within a minute after which it is quarantined; 0 is never.
    pub faults: u32,
    /// Whether its ops fall back to other kernels once it is quarantined.
    pub fallback: bool,
    /// How long its process polls for the next call before it sleeps.
    pub look: Duration,
    /// The program that runs it; `None` is the running program.
    pub worker: Option<PathBuf>,
}

impl Limits {
    /// Limits from the host's knobs.
    pub fn from_knobs(knobs: &Knobs) -> Limits {
        let figure = |name: &str, or: i64| knobs.int("host", name).unwrap_or(or).max(0) as u64;
        let worker = knobs.text("host", "isolate_worker").filter(|path| !path.is_empty());
        Limits {
            deadline: Duration::from_millis(figure("isolate_deadline_ms", 10_000).max(1)),
            memory: figure("isolate_memory_mb", 4096).saturating_mul(1 << 20),
            tensors: figure("isolate_tensors_mb", 4096).saturating_mul(1 << 20),
            start: Duration::from_millis(figure("isolate_start_ms", 10_000).max(1)),
            environment: names(knobs.text("host", "isolate_environment").unwrap_or_default()),
            faults: figure("isolate_faults", 5).min(u64::from(u32::MAX)) as u32,
            fallback: knobs.bool("host", "isolate_fallback").unwrap_or(true),
            look: Duration::from_micros(figure("isolate_look_us", 100).min(1_000_000)),
            worker: worker.map(PathBuf::from),
        }
    }
}

/// The names of a comma-separated list.
fn names(list: &str) -> Vec<String> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::from_knobs(&Knobs::default())
    }
}
