//! Runs each plugin in a process of its own, so that a failing plugin does not end the host.
//!
//! What it is:
//!
//! ```text
//!   host process                                  worker process, one for each plugin
//!   registry: KernelDef { remote } ─┐             the library, opened as in a host; its kernels
//!   executor ── compute ── request ─┼─ channel ──> state, call record, services ── compute
//!                 ^   answers, reply <─────────────┘        (asks the host for memory and more)
//!   tensors: host's arena ── read only ──>  inputs, where they are
//!            worker's arena <── written ──  outputs, where they stay
//!   socket: start, destroy, cancel, knobs ──> ; ready, log <── ; closed: the worker ends
//! ```
//!
//! The host reads the manifest, digests the library and seals a copy of it; the worker opens that
//! copy and sends its registrations; the host checks them as it checks any plugin's. Each state of
//! a kernel is made by a message, so that it can be made again in the next worker.
//!
//! **Trust.** The host believes no message of a worker: `protocol` is the table of what each
//! message may do to each kind of output.
//!
//! **Faults.** A fault is a crash, a call over its deadline, memory beyond the limit, a message out
//! of order, or a start that fails. The process ends, the call's step fails with an error that
//! names the kernel, other calls in that process fail as aborted, and the next call starts a new
//! process. A plugin that keeps failing is quarantined: its kernels refuse, and sessions may choose
//! others.
//!
//! **Damage.** A worker can spoil only what it wrote itself: it reads the host's tensors through a
//! mapping that it cannot write. It runs as the same user: isolation protects from faults, not from
//! malice.
//!
//! **What cannot cross**: devices and their memory, resources, variants and references. Kernels
//! that are given them say so (`supports`). A plugin that brings a device type, or kernels for one
//! that is not the host's, is refused; its graph passes do not run. A shape function sees
//! constants, and nothing of values that are known in part. State that a plugin keeps between calls
//! is gone when its process is.
//!
//! What it is not: finding and checking files (`tenon_host::loader`), or sessions, which may choose
//! other kernels for those of a quarantined plugin (`tenon_runtime`).
//!
//! # Invariants
//! - The host dereferences no address that a worker sent, and reads a byte of a worker's arena only
//!   as a type for which every byte is a value.
//! - A worker never outlives its host, and no process that it started outlives the worker.
//! - A call that waits for a worker waits no longer than the step, the deadline of a call or the
//!   limit of a start.
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
pub mod descriptors;
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
pub mod shared;
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
