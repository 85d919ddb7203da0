//! The worker's end of the pipes.

use crate::check::protocol::Message;
use rustix::{
    process::{
        Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
    },
    stdio::dup2_stdout,
};
use std::{
    fs::{self, File},
    io::{self, Write},
    os::fd::{AsFd, AsRawFd},
    process,
};

/// Where messages go.
#[derive(Debug)]
pub(super) struct Pipe(File);

/// Takes the process's standard output for its own messages; what is printed from here on, by a plugin too, goes to
/// standard error.
///
/// # Errors
/// The system's message.
pub fn take_output() -> io::Result<File> {
    let messages = io::stdout().as_fd().try_clone_to_owned()?;
    dup2_stdout(io::stderr())?;
    Ok(File::from(messages))
}

/// Has the process end with the thread that started it. What the system refuses is left as it is.
pub fn end_with_parent() {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // Where the driver was gone before the line above, nothing ends this process but itself.
    if getppid().is_none_or(|parent| parent.is_init()) && process::id() != 1 {
        process::exit(1);
    }
}

impl Pipe {
    /// Takes the process's standard output.
    pub fn take() -> io::Result<Pipe> {
        take_output().map(Pipe)
    }

    /// Its descriptor, which stays open for as long as the process lives.
    pub fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Sends a message. If the reader is gone, there is nothing left to do.
    pub fn send(&self, message: &Message) {
        let Ok(mut line) = serde_json::to_vec(message) else { return };
        line.push(b'\n');
        if (&self.0).write_all(&line).is_err() {
            process::exit(1);
        }
    }
}

/// Limits what a plugin can do to the machine: no core files, no end of memory, no life without the driver.
/// What the system refuses is left as it is.
pub(super) fn limit_process() {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    if let Some(bytes) = most_memory() {
        let before = getrlimit(Resource::Data);
        let _ = setrlimit(Resource::Data, Rlimit { current: Some(bytes), ..before });
    }
    end_with_parent();
}

/// Bytes of memory that this process may hold: what it holds, and half of what is free, but some in any case.
fn most_memory() -> Option<u64> {
    const SOME: u64 = 2 << 30;
    let held = field("/proc/self/status", "VmData:")?;
    let free = field("/proc/meminfo", "MemAvailable:")?;
    Some(held + (free / 2).max(SOME))
}

/// A field of a file of the system that counts in KiB, in bytes.
fn field(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_system_says_how_much_memory_there_is() {
        assert!(field("/proc/meminfo", "MemTotal:").unwrap() > 1 << 20);
        assert!(field("/proc/meminfo", "Luck:").is_none());
        assert!(most_memory().unwrap() >= 2 << 30);
    }
}
