//! Runs each plugin in a process of its own, so that a failing plugin does not end the host.
//!
//! ```text
//!   host process                                  worker process, one for each plugin
//!   registry: KernelDef { remote } ─┐             library, opened as usual; its kernels
//!   executor ── compute ── request ─┼─ channel ──> state, call record, services ── compute
//!                 ^   answers, reply <─────────────┘        (asks the host for memory and more)
//!   tensors: host's arena ── read only ──>  inputs, where they are
//!            worker's arena <── written ──  outputs, where they stay
//!   socket: start, destroy, cancel, knobs ──> ; ready, log <── ; closed: the worker ends
//! ```
//!
//! The host reads the manifest, digests the library and seals a copy of it; the worker opens that
//! copy and reports what it registers; the host checks the report like any plugin's registrations.
//! Each kernel state keeps the message that creates it, so that it can be created again in the next
//! worker.
//!
//! **Messages of a worker** are not trusted: `protocol` is the table of what each message may do to
//! each kind of output.
//!
//! **Faults.** These are a crash, a call over its deadline, memory beyond the limit, an unexpected
//! message, and a start that fails. On each, the process ends, the call's step fails with an error
//! that names the kernel, other calls in the process fail as aborted, and the next call starts a
//! new process. A plugin that keeps failing is quarantined: its kernels refuse to run, and sessions
//! may choose others.
//!
//! **A worker can corrupt** only what it wrote itself: it reads the host's tensors through a
//! read-only mapping. It runs as the same user: isolation protects against faults, not against
//! malice.
//!
//! **These cannot cross processes**: devices and their memory, resources, variants and references.
//! Kernels that receive them report themselves as unsupported (`supports`). A plugin that registers
//! a device type, or kernels for a device type other than the host's, is refused; graph passes of a
//! plugin do not run. A shape function sees constants, but no partially known values. State that a
//! plugin keeps between calls is lost with its process.
//!
//! Finding and checking files is in `tenon_host::loader`; `tenon_runtime`'s sessions choose other
//! kernels for those of a quarantined plugin.
//!
//! # Invariants
//! - The host dereferences no address that a worker sent, and interprets bytes of a worker's arena
//!   only as types for which every value is valid.
//! - A worker never outlives its host, and no process that it started outlives the worker.
//! - A call waits for a worker at most until the step ends, the call's deadline passes, or a start
//!   takes too long.
//!
//! ```
//! use tenon_host::{Plugins, search::SearchPath};
//!
//! // First thing in `main`: a process that is started to run a plugin goes no further.
//! tenon_isolate::work();
//! let plugins = Plugins::new()?.with_isolation(tenon_isolate::ISOLATION);
//! let report = plugins.load_search(&SearchPath::default().isolating(["no/such/plugin.so".into()]));
//! assert_eq!(report.rejected.len(), 1);
//! assert!(tenon_isolate::isolated(&plugins).is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg(target_os = "linux")]

mod arena;
mod arena_view;
mod channel;
mod compute;
mod crash;
mod definition;
mod descriptors;
mod extents;
mod kernel;
mod limits;
mod listener;
mod load;
mod outputs;
mod plugin;
mod process;
mod protocol;
#[cfg(any(all(test, not(loom)), feature = "fuzzing"))]
pub mod rogue;
mod shape;
mod shared;
mod start;
mod surroundings;
mod talk;
mod values;
mod wire;
mod worker;
mod worker_call;

pub use limits::Limits;
pub use load::{ISOLATION, isolated};
pub use plugin::{Isolated, IsolationStatus, quarantines};

use std::sync::atomic::{AtomicBool, Ordering};

/// Environment variable that is 1 in a process that was started as a worker.
const WORKER_VARIABLE: &str = "TENON_ISOLATED_WORKER";

static RUNS_WORKERS: AtomicBool = AtomicBool::new(false);

/// Runs the worker if this process was started as one, and then does not return; otherwise returns
/// at once. A program that isolates plugins calls this first thing in `main`.
pub fn work() {
    RUNS_WORKERS.store(true, Ordering::Release);
    if std::env::var_os(WORKER_VARIABLE).is_some() {
        worker::run();
    }
}

/// Whether this program can be started as a worker.
fn runs_workers() -> bool {
    RUNS_WORKERS.load(Ordering::Acquire)
}
