//! Looks at what a device type promises, on each of its devices.
//!
//! What it is: memory, copies, streams and events as the host uses them, through
//! [`LocalDevice`](tenon_framework::device::base::LocalDevice); and failures, where the device declares knobs
//! to order them. What it is not: a look at its kernels, which an [`Examiner`](super::Examiner) examines.
//!
//! # Faults to order
//! A device that can be ordered to fail declares integer knobs of these names in its plugin, read when a device
//! is opened; 0 is never. The knobs count from the opening of each device.
//!
//! | knob | what it orders |
//! |---|---|
//! | `fail_alloc_after_bytes` | an allocation that would bring what was ever allocated above this many bytes fails with `RESOURCE_EXHAUSTED` |
//! | `fail_command_after` | the command after this many fails, once |
//! | `lose_after_commands` | the device is lost after this many commands |
//!
//! # Invariants
//! - Each clause is begun once per device, under the device's name, and reported once per device type.
//! - Nothing is enqueued any more on a stream, and no buffer is in use, when an examination ends.

mod allocation;
mod copies;
mod faults;
mod lane;
mod order;

use super::{clause::Clause, examine::Verdicts, progress::Progress};
use std::sync::Arc;
use tenon_framework::device::base::DeviceBase;
use tenon_runtime::{Runtime, host::devices::PluginDevice};

/// Clauses of devices, in the order in which they are judged: a lost device is of no more use.
pub const DEVICE_CLAUSES: [Clause; 7] = [
    Clause::Allocation,
    Clause::Copies,
    Clause::StreamOrder,
    Clause::Events,
    Clause::Streams,
    Clause::Faults,
    Clause::Loss,
];

/// Judges all clauses of a device type.
pub fn examine_device(runtime: &Runtime, device_type: &str, progress: &mut dyn Progress) {
    for clause in DEVICE_CLAUSES {
        examine_device_clause(runtime, device_type, clause, progress);
    }
}

/// Judges one clause of a device type; one that is not of devices is skipped.
pub fn examine_device_clause(
    runtime: &Runtime,
    device_type: &str,
    clause: Clause,
    progress: &mut dyn Progress,
) {
    let mut verdicts = Verdicts::new(progress, device_type);
    verdicts.begin(clause);
    let devices = devices_of(runtime, device_type);
    if devices.is_empty() {
        return verdicts.skip(clause, &why_none(runtime, device_type));
    }
    match clause {
        Clause::Faults => return faults::faults(runtime, device_type, &mut verdicts),
        Clause::Loss => return faults::loss(runtime, device_type, &mut verdicts),
        _ => {}
    }
    for device in &devices {
        verdicts.set_case(device.full_name());
        verdicts.begin(clause);
        let result = match clause {
            Clause::Allocation => allocation::examine(device),
            Clause::Copies => copies::examine(device, &devices),
            Clause::StreamOrder => order::one_stream(device),
            Clause::Events => order::events(device),
            Clause::Streams => order::many_streams(device),
            _ => Err(Stop::Skip("it is not a clause of devices".to_owned())),
        };
        match result {
            Ok(()) => {}
            Err(Stop::Skip(reason)) => return verdicts.skip(clause, &reason),
            Err(Stop::Wrong(problem)) => {
                return verdicts.fail(clause, format!("{}: {problem}", device.full_name()));
            }
        }
    }
    verdicts.pass(clause);
}

/// Why an examination ends before its end.
#[derive(Debug)]
enum Stop {
    /// There is nothing to look at.
    Skip(String),
    /// A promise is broken.
    Wrong(String),
}

/// The problem, in words.
fn wrong<T>(problem: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Wrong(problem.into()))
}

/// An operation that is to succeed, named for the message.
fn expect<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) -> Result<T, Stop> {
    result.map_err(|error| Stop::Wrong(format!("{what}: {error}")))
}

fn devices_of(runtime: &Runtime, device_type: &str) -> Vec<Arc<PluginDevice>> {
    let devices = runtime.devices().devices().into_iter();
    devices.filter(|device| device.device_type() == device_type).collect()
}

fn why_none(runtime: &Runtime, device_type: &str) -> String {
    let absent = runtime.devices().absent();
    let why = absent.iter().find(|absent| absent.device_type == device_type);
    why.map_or("there is no device of the type".to_owned(), |absent| absent.reason.clone())
}
