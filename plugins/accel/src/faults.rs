//! Simulated faults, and the health of the device.
//!
//! A test sets [`Faults`] through the plugin's knobs, or directly in [`crate::Settings`].
//! [`Health`] says whether the device is lost: the only part of this module that a real device has
//! too.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use tenon_sdk::{Code, KernelError, device::author::DeviceHandle};

/// The faults of one device. Numbers count from its opening; 0 is never.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    /// An allocation fails if it would bring the total of all allocations above this many bytes.
    pub fail_alloc_after_bytes: u64,
    /// The command after this many others fails once, with `INTERNAL`.
    pub fail_command_after: u64,
    /// The device is lost once it has run this many commands.
    pub lose_after_commands: u64,
}

/// The outcome of the next command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It runs.
    Run,
    /// It fails.
    Fail,
    /// The device is lost instead.
    Lose,
}

impl Faults {
    /// The fate of the command that comes after `done` others.
    pub fn fate(&self, done: u64) -> Fate {
        if self.lose_after_commands != 0 && done >= self.lose_after_commands {
            Fate::Lose
        } else if self.fail_command_after != 0 && done == self.fail_command_after {
            Fate::Fail
        } else {
            Fate::Run
        }
    }
}

/// Whether a device is lost, which is final.
pub struct Health {
    handle: DeviceHandle,
    is_lost: AtomicBool,
    reason: OnceLock<String>,
    commands: AtomicU64,
}

impl Health {
    /// The health of a newly opened device.
    pub fn new(handle: DeviceHandle) -> Health {
        Health {
            handle,
            is_lost: AtomicBool::new(false),
            reason: OnceLock::new(),
            commands: AtomicU64::new(0),
        }
    }

    /// Fails if the device is lost; every entry of the device calls this first.
    ///
    /// # Errors
    /// `UNAVAILABLE` with the reason, if the device is lost.
    pub fn check(&self) -> Result<(), KernelError> {
        match self.is_lost() {
            false => Ok(()),
            true => Err(self.error()),
        }
    }

    /// Whether the device is lost.
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// The error of every call on a lost device.
    pub fn error(&self) -> KernelError {
        let reason = self.reason.get().map_or("no reason was given", String::as_str);
        KernelError::new(Code::UNAVAILABLE, format!("the device is lost: {reason}"))
    }

    /// Marks the device as lost and tells the host; only the first reason counts.
    pub fn lose(&self, reason: &str) {
        if self.reason.set(reason.to_owned()).is_ok() {
            // The host first: every later failure is an error that can give the reason.
            self.handle.lost(reason);
            self.is_lost.store(true, Ordering::Release);
        }
    }

    /// Counts one command, and returns the number of commands before it.
    pub fn count_command(&self) -> u64 {
        self.commands.fetch_add(1, Ordering::Relaxed)
    }

    /// Number of commands so far: kernels and copies, including failed ones.
    pub fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_orders_no_fault() {
        for done in [0, 1, u64::MAX] {
            assert_eq!(Faults::default().fate(done), Fate::Run);
        }
    }

    #[test]
    fn a_command_fails_once_and_a_loss_stays() {
        let faults = Faults { fail_command_after: 2, lose_after_commands: 4, ..Faults::default() };
        let fates: Vec<Fate> = (0..6).map(|done| faults.fate(done)).collect();
        use Fate::{Fail, Lose, Run};
        assert_eq!(fates, [Run, Run, Fail, Run, Lose, Lose]);
    }

    #[test]
    fn the_first_reason_of_a_loss_stays() {
        let health = Health::new(DeviceHandle::NONE);
        assert!(health.check().is_ok());
        health.lose("cable cut");
        health.lose("fan stopped");
        let error = health.check().unwrap_err();
        assert_eq!(error.code, Code::UNAVAILABLE);
        assert_eq!(error.message, "the device is lost: cable cut");
    }
}
