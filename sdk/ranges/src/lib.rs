//! Kernel calls and steps as ranges on the timeline of a profiler that is attached to the process.
//!
//! What it is: a [`TraceSink`] for two profilers. Each of them names its own library in the
//! environment of the process that it starts:
//!
//! | profiler | variable | interface |
//! |---|---|---|
//! | Intel VTune | `INTEL_LIBITTNOTIFY64` | tasks of ITT |
//! | NVIDIA Nsight Systems | `NVTX_INJECTION64_PATH` | ranges of NVTX 3 |
//!
//! [`Ranges::attached`] opens the library that is named, once for the process, and is `None`
//! without a profiler: then no library was opened. Where a step has [`Ranges`] as its trace, each
//! call of a kernel is a range with the node's name, on the thread that made it. [`Ranges::range`]
//! makes other ranges, such as one for a step around its nodes.
//!
//! What it is not: a profiler, or a record of its own (`tenon_runtime::trace::ChromeTrace` is one).
//! Spans that are reported after they end (those inside a kernel and those of a device's streams)
//! are not ranges, since the interfaces take only what begins and ends now. The profiler itself
//! sees what a device ran, and when.
//!
//! # Invariants
//! - Ranges nest on each thread. A range that begins on a thread ends there, even if the call in it
//!   fails or panics.
//! - A profiler that cannot be used costs its ranges and nothing else: [`Ranges::refusals`] and the
//!   log give the reason.
//! - A library is never closed once its code was asked to begin, since it may have threads of its
//!   own.
//!
//! ```
//! use tenon_ranges::Ranges;
//!
//! let sum = || (1..=10).sum::<u32>();
//! let sum = match Ranges::attached() {
//!     Some(ranges) => ranges.range("sum", sum),
//!     None => sum(),
//! };
//! assert_eq!(sum, 55);
//! assert!(Ranges::refusals().is_empty(), "no profiler is named, none is refused");
//! ```

mod itt;
mod nvtx;
mod refusal;

#[cfg(test)]
mod tests;

pub use refusal::Refusal;

use itt::Itt;
use nvtx::Nvtx;
use std::{
    collections::HashMap,
    env,
    ffi::{CString, c_void},
    path::{Path, PathBuf},
    ptr,
    sync::{Arc, OnceLock},
};
use tenon_framework::{DType, Shape, sync::Mutex};
use tenon_host::call::{CopySpan, TraceSink};

/// Names the library of VTune.
const ITT_VARIABLE: &str = "INTEL_LIBITTNOTIFY64";
/// Names the library of Nsight Systems.
const NVTX_VARIABLE: &str = "NVTX_INJECTION64_PATH";
/// Under which profilers show the ranges.
const DOMAIN: &str = "tenon";
/// Names that are given to a profiler beforehand: it keeps them for good. Later ones go as text with each range, or,
/// where ranges take no text, by [`OTHER`].
const MOST_NAMES: usize = 16_384;
/// What a range is called to ITT whose name is one too many.
const OTHER: &str = "other";

/// What a profiler gave, to be handed back to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Handle(*mut c_void);

// SAFETY: it is only handed back to the profiler, whose interface takes its handles on any thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    const NONE: Handle = Handle(ptr::null_mut());

    fn is_none(self) -> bool {
        self.0.is_null()
    }
}

/// A name as each profiler knows it.
#[derive(Debug, Clone, Copy)]
struct Known {
    itt: Handle,
    nvtx: Handle,
}

/// A name as C takes it: a NUL byte would end it.
fn c_text(name: &str) -> CString {
    CString::new(name.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// What came of the environment.
struct Attached {
    ranges: Option<Arc<Ranges>>,
    refusals: Vec<Refusal>,
}

/// The profilers that are attached to this process. See the crate's docs.
pub struct Ranges {
    itt: Option<Itt>,
    nvtx: Option<Nvtx>,
    names: Mutex<HashMap<Box<str>, Known>>,
    other: Handle,
}

impl Ranges {
    /// The profilers that the environment names, where one of them can be used. Decided by the first call in the
    /// process, which opens them and logs those that it refuses.
    pub fn attached() -> Option<Arc<Ranges>> {
        Self::of_process().ranges.clone()
    }

    /// The profilers that the environment names and that cannot be used; none without a profiler.
    pub fn refusals() -> &'static [Refusal] {
        &Self::of_process().refusals
    }

    fn of_process() -> &'static Attached {
        static ATTACHED: OnceLock<Attached> = OnceLock::new();
        ATTACHED.get_or_init(|| {
            let named =
                |variable| env::var_os(variable).filter(|file| !file.is_empty()).map(PathBuf::from);
            let attached = attach(named(ITT_VARIABLE).as_deref(), named(NVTX_VARIABLE).as_deref());
            attached.refusals.iter().for_each(|refusal| tracing::warn!("{refusal}"));
            attached
        })
    }

    fn new(itt: Option<Itt>, nvtx: Option<Nvtx>) -> Ranges {
        let other = itt.as_ref().map_or(Handle::NONE, |itt| itt.register(&c_text(OTHER)));
        Ranges { itt, nvtx, names: Mutex::new(HashMap::new()), other }
    }

    /// Has a range of this name around `body`, on this thread.
    pub fn range<R>(&self, name: &str, body: impl FnOnce() -> R) -> R {
        let _open = Open::new(self, name);
        body()
    }

    /// A trace that feeds these ranges and `other`.
    pub fn beside(self: Arc<Self>, other: Arc<dyn TraceSink>) -> Arc<dyn TraceSink> {
        Arc::new(Beside { ranges: self, other })
    }

    fn push(&self, name: &str) {
        let known = self.known(name);
        if let Some(nvtx) = &self.nvtx {
            nvtx.push(known.nvtx, name);
        }
        if let Some(itt) = &self.itt {
            itt.push(known.itt);
        }
    }

    fn pop(&self) {
        if let Some(itt) = &self.itt {
            itt.pop();
        }
        if let Some(nvtx) = &self.nvtx {
            nvtx.pop();
        }
    }

    /// The name as the profilers know it; a new one is given to them, without a lock. Two threads that come with the same
    /// new name at once both tell it, and profilers give both the same.
    fn known(&self, name: &str) -> Known {
        {
            let names = self.names.lock();
            if let Some(known) = names.get(name) {
                return *known;
            }
            if names.len() >= MOST_NAMES {
                return Known { itt: self.other, nvtx: Handle::NONE };
            }
        }
        let text = c_text(name);
        let known = Known {
            itt: self.itt.as_ref().map_or(Handle::NONE, |itt| itt.register(&text)),
            nvtx: self.nvtx.as_ref().map_or(Handle::NONE, |nvtx| nvtx.register(&text)),
        };
        self.names.lock().insert(name.into(), known);
        known
    }
}

/// Opens the named libraries.
fn attach(itt: Option<&Path>, nvtx: Option<&Path>) -> Attached {
    let mut refusals = Vec::new();
    let itt = itt.and_then(|file| Itt::attach(file).map_err(|it| refusals.push(it)).ok());
    let nvtx = nvtx.and_then(|file| Nvtx::attach(file).map_err(|it| refusals.push(it)).ok());
    let is_there = itt.is_some() || nvtx.is_some();
    Attached { ranges: is_there.then(|| Arc::new(Ranges::new(itt, nvtx))), refusals }
}

impl TraceSink for Ranges {
    fn span(&self, _node: &str, _name: &str, _begin_ns: u64, _end_ns: u64) {}

    fn enters(&self, node: &str) {
        self.push(node);
    }

    fn leaves(&self, _node: &str) {
        self.pop();
    }
}

/// A range that ends with this value.
struct Open<'r>(&'r Ranges);

impl<'r> Open<'r> {
    fn new(ranges: &'r Ranges, name: &str) -> Open<'r> {
        ranges.push(name);
        Open(ranges)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.pop();
    }
}

/// Two traces in one.
struct Beside {
    ranges: Arc<Ranges>,
    other: Arc<dyn TraceSink>,
}

impl TraceSink for Beside {
    fn span(&self, node: &str, name: &str, begin_ns: u64, end_ns: u64) {
        self.other.span(node, name, begin_ns, end_ns);
    }

    fn tensors(&self, node: &str, inputs: &[(DType, Shape)], outputs: &[(DType, Shape)]) {
        self.other.tensors(node, inputs, outputs);
    }

    fn stream_span(&self, stream: &str, node: &str, begin_ns: u64, end_ns: u64) {
        self.other.stream_span(stream, node, begin_ns, end_ns);
    }

    fn copy_span(&self, copy: &CopySpan<'_>) {
        self.other.copy_span(copy);
    }

    fn enters(&self, node: &str) {
        self.other.enters(node);
        self.ranges.enters(node);
    }

    fn leaves(&self, node: &str) {
        self.ranges.leaves(node);
        self.other.leaves(node);
    }
}
