//! The process in which code of the plugin runs.
//!
//! It is started by a driver, and talks with it over its standard input and what was its standard output
//! ([`protocol`](super::protocol)). It guards host memory, loads the plugin, says what there is to check, and
//! then does what it is ordered to.
//!
//! # Invariants
//! - It says what it is about to do before it does it.
//! - What there is to check, and in which order, depends on plugin and setup alone.
//! - It lives no longer than its driver.

mod agenda;
mod arrays;
mod budget;
mod pipe;
mod steps;

use super::{
    install_fault_handler,
    protocol::{Message, Order, Setup},
};
use agenda::Agenda;
use pipe::{Pipe, limit_process};
pub use pipe::{end_with_parent, take_output};
use std::{
    io::{self, BufRead},
    process::ExitCode,
};
use tenon_runtime::host::memory::{HostMemory, guarded::GuardOptions};

/// Runs a worker to its end. The caller is a program that does nothing else.
pub fn main() -> ExitCode {
    let Ok(pipe) = Pipe::take() else { return ExitCode::FAILURE };
    limit_process();
    let mut lines = io::stdin().lock().lines();
    let mut next = || lines.next()?.ok();
    let Some(setup) = next().and_then(|line| serde_json::from_str::<Setup>(&line).ok()) else {
        return ExitCode::FAILURE;
    };
    let guarded = HostMemory::guard(&GuardOptions::default());
    install_fault_handler(pipe.descriptor());
    let agenda = match Agenda::load(setup) {
        Ok(mut agenda) => {
            // Kernels that write files write them there.
            let entered = std::env::set_current_dir(&agenda.setup.scratch);
            agenda
                .notes
                .extend(entered.err().map(|error| format!("the folder of the check: {error}")));
            agenda.notes.extend(guarded.err().map(|error| error.message));
            agenda
        }
        Err(error) => {
            pipe.send(&Message::Refused { error });
            pipe.send(&Message::Done);
            return ExitCode::SUCCESS;
        }
    };
    pipe.send(&Message::Ready { units: agenda.units(), notes: agenda.notes.clone() });
    pipe.send(&Message::Done);
    while let Some(line) = next() {
        let last = match serde_json::from_str::<Order>(&line) {
            Ok(order) => steps::carry_out(&agenda, &pipe, &order),
            Err(error) => Message::Broken { error: format!("an order is none: {error}") },
        };
        pipe.send(&last);
    }
    ExitCode::SUCCESS
}
