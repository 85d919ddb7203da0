//! A worker process, as the driver holds it.
//!
//! # Invariants
//! - A `Child` that is dropped is gone: its process group is killed and the process waited for.
//! - The worker's own output, and that of the plugin, never comes between two messages: messages come
//!   over the pipe that was its standard output, everything else over the one that is its standard error.

use crate::{
    check::{
        FaultRecord,
        protocol::{Message, Order, Setup},
    },
    error::TestkitError,
};
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    ffi::OsString,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::{self, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How a worker is started: a program that calls [`worker::main`](crate::check::worker::main).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// What was heard of a worker.
#[derive(Debug)]
pub(super) enum Event {
    /// It said this.
    Message(Message),
    /// It is about to die, and reported the cause.
    Fault(FaultRecord),
    /// It wrote what is not a message.
    Garbage(String),
    /// It is gone, or closed its end.
    Ended,
    /// It said nothing within the limit.
    TimedOut,
}

/// How a worker ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    /// The event, in words.
    pub how: String,
    /// The last lines that were written to its standard error.
    pub said: String,
}

/// A running worker.
#[derive(Debug)]
pub(super) struct Child {
    process: process::Child,
    orders: Option<ChildStdin>,
    messages: Receiver<Event>,
    noise: Option<JoinHandle<String>>,
    /// Whether it was killed and waited for: its number may be another's by now.
    over: bool,
}

impl Child {
    /// Starts a worker and sends it its task.
    pub fn start(worker: &Worker, setup: &Setup) -> Result<Child, TestkitError> {
        Child::start_with(worker, setup, &[])
    }

    /// As [`Child::start`], with these variables of the environment besides.
    pub fn start_with(
        worker: &Worker,
        setup: &Setup,
        environment: &[(&str, &str)],
    ) -> Result<Child, TestkitError> {
        let failed = |error: io::Error| TestkitError::Worker {
            program: worker.program.clone(),
            detail: error.to_string(),
        };
        let mut process = Command::new(&worker.program)
            .args(&worker.args)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let (sender, messages) = channel();
        if let Some(stdout) = process.stdout.take() {
            spawn("check-messages", move || forward(stdout, &sender)).map_err(failed)?;
        }
        let noise = match process.stderr.take() {
            Some(stderr) => Some(spawn("check-noise", move || tail(stderr)).map_err(failed)?),
            None => None,
        };
        let orders = process.stdin.take();
        let mut child = Child { process, orders, messages, noise, over: false };
        child.send(setup);
        Ok(child)
    }

    /// Gives an order. Where the worker is gone, [`Child::next`] says so.
    pub fn order(&mut self, order: &Order) {
        self.send(order);
    }

    fn send(&mut self, value: &impl serde::Serialize) {
        let Ok(mut line) = serde_json::to_vec(value) else { return };
        line.push(b'\n');
        if let Some(orders) = &mut self.orders
            && orders.write_all(&line).is_err()
        {
            self.orders = None;
        }
    }

    /// What is heard next.
    pub fn next(&self, limit: Duration) -> Event {
        match self.messages.recv_timeout(limit) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => Event::TimedOut,
            Err(RecvTimeoutError::Disconnected) => Event::Ended,
        }
    }

    /// The last of it: how it ended by itself, or that it was ended.
    pub fn end(mut self) -> End {
        self.orders = None;
        let status = self.wait_for(Duration::from_secs(2));
        self.kill();
        let how = match status {
            Some(status) => words(status),
            None => "the process closed its pipe and went on".to_owned(),
        };
        End { how, said: self.said() }
    }

    /// Ends it now.
    pub fn stop(mut self) -> String {
        self.kill();
        self.said()
    }

    fn wait_for(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begin = Instant::now();
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if begin.elapsed() < limit => thread::sleep(Duration::from_millis(1)),
                _ => return None,
            }
        }
    }

    fn kill(&mut self) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let group = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            // Also what the plugin started, and what lives on though the worker is gone.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// The last lines of its standard error. What has left the process group may hold the pipe open: it is not
    /// waited for.
    fn said(&mut self) -> String {
        let Some(noise) = self.noise.take() else { return String::new() };
        let begin = Instant::now();
        while !noise.is_finished() && begin.elapsed() < Duration::from_millis(500) {
            thread::sleep(Duration::from_millis(1));
        }
        if noise.is_finished() { noise.join().unwrap_or_default() } else { String::new() }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    thread::Builder::new().name(name.to_owned()).spawn(body)
}

/// Reads messages until the pipe is closed or the receiver is gone.
fn forward(pipe: impl Read, to: &Sender<Event>) {
    for line in BufReader::new(pipe).lines() {
        let event = match line.map(|line| (serde_json::from_str(&line), line)) {
            Ok((Ok(message), _)) => Event::Message(message),
            Ok((Err(_), line)) => match FaultRecord::parse(&line) {
                Some(record) => Event::Fault(record),
                None => Event::Garbage(line),
            },
            Err(error) => Event::Garbage(error.to_string()),
        };
        if to.send(event).is_err() {
            return;
        }
    }
}

/// How much of a worker's standard error is kept: a cause, and the frames of the stack that a process writes after it.
const KEPT: usize = 32 << 10;

/// Reads to the end, and keeps the end.
fn tail(mut pipe: impl Read) -> String {
    let mut kept = Vec::new();
    let mut block = [0; 4096];
    loop {
        match pipe.read(&mut block) {
            Ok(0) => break,
            Ok(count) => kept.extend_from_slice(&block[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
        let over = kept.len().saturating_sub(KEPT);
        kept.drain(..over);
    }
    String::from_utf8_lossy(&kept).trim().to_owned()
}

/// How a process ended, in words.
pub fn words(status: ExitStatus) -> String {
    let Some(signal) = status.signal() else {
        return format!("the process ended itself with code {}", status.code().unwrap_or(-1));
    };
    let (name, meaning) = match Signal::from_named_raw(signal) {
        Some(Signal::SEGV) => ("SIGSEGV", "an address that is not mapped, or not for writing"),
        Some(Signal::BUS) => ("SIGBUS", "an address that is not aligned, or behind a file's end"),
        Some(Signal::ABORT) => ("SIGABRT", "abort"),
        Some(Signal::ILL) => ("SIGILL", "an instruction that this processor does not know"),
        Some(Signal::FPE) => ("SIGFPE", "a division by zero, or of the least integer by -1"),
        Some(Signal::TRAP) => ("SIGTRAP", "a trap"),
        Some(Signal::KILL) => ("SIGKILL", "killed from outside: is memory exhausted?"),
        _ => return format!("the process was ended by signal {signal}"),
    };
    format!("the process was ended by {name} ({meaning})")
}

#[cfg(test)]
#[path = "child_tests.rs"]
mod tests;
