//! The loader's interface to plugins in processes of their own.
//!
//! A program that isolates plugins passes an [`Isolation`] to [`Plugins`](crate::Plugins), which
//! starts a process for a library and represents it here. The knobs of isolation belong to the
//! host's scope, whichever implementation isolates.

use crate::{
    error::LoadError,
    loader::{PluginFile, Policy, image::Image},
    manifest::Manifest,
};
use std::{any::Any, sync::Arc};
use tenon_framework::{
    knob::Knobs,
    register_knob,
    registry::{PluginInfo, Transaction},
};

register_knob!(
    "isolate_deadline_ms": INT = "10000",
    "Milliseconds after which a call of an isolated plugin is given up and its process stopped; at least 1."
);
register_knob!(
    "isolate_memory_mb": INT = "4096",
    "MiB of memory of its own that the process of an isolated plugin may have; 0 means no limit."
);
register_knob!(
    "isolate_tensors_mb": INT = "4096",
    "MiB of memory for the tensors that an isolated plugin writes; 0 is as much as the machine has."
);
register_knob!(
    "isolate_start_ms": INT = "10000",
    "Milliseconds that a new process of an isolated plugin may take to open its library; at least 1."
);
register_knob!(
    "isolate_environment": STRING = "",
    "Environment variables that the process of an isolated plugin is given beside the usual ones: names with commas between them, a '*' at the end of one stands for any rest."
);
register_knob!(
    "isolate_faults": INT = "5",
    "Faults of an isolated plugin within a minute after which it is quarantined; 0 is never."
);
register_knob!(
    "isolate_fallback": BOOL = "true",
    "Whether sessions give the nodes of a quarantined plugin to the next candidates."
);
register_knob!(
    "isolate_look_us": INT = "100",
    "Microseconds that the process of an isolated plugin looks for the next call before it sleeps."
);
register_knob!(
    "isolate_worker": STRING = "",
    "Program that runs isolated plugins, such as tenon; empty is the running program, which has to call tenon_runtime::isolate::work()."
);

/// Starts plugins in processes of their own.
pub trait Isolation: Send + Sync {
    /// Steps 3 to 8 of [loading](crate::loader), in a process in which kernels compute on `threads`
    /// threads.
    ///
    /// # Errors
    /// The errors of these steps; no process can be started.
    fn open(
        &self,
        file: PluginFile,
        image: Image,
        policy: &Policy,
        knobs: &Knobs,
        threads: usize,
    ) -> Result<Arc<dyn IsolatedCode>, LoadError>;
}

/// A plugin that is open in a process of its own.
pub trait IsolatedCode: Any + Send + Sync {
    /// The manifest of what its process opened.
    fn manifest(&self) -> &Manifest;

    /// SHA-256 of its library.
    fn digest(&self) -> &str;

    /// Steps 8 and 9 of [loading](crate::loader): the registrations, under `info`.
    ///
    /// # Errors
    /// Registrations that an isolated plugin cannot have; differences between manifest and
    /// registrations.
    fn collect(&self, info: PluginInfo) -> Result<Transaction, LoadError>;
}
