//! A hidden subcommand of this program, in its own process.
//!
//! Its task is one JSON value on its standard input, and it reports its progress by one JSON value a line. Output of a
//! plugin goes elsewhere. A crash is known from what the process writes before it dies, and from the status with which
//! it ended.
//!
//! # Invariants
//! - A process that is dropped is gone, with its group.
//! - It lives no longer than what started it.

use super::build::end_group;
use crate::error::CliError;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    env,
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    os::{fd::AsRawFd, unix::process::CommandExt},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tenon_testkit::check::{
    FaultRecord, driver, install_fault_handler,
    worker::{end_with_parent, take_output},
};

/// How much of the process's standard error is kept, and how many lines are shown.
const KEPT: usize = 4 << 10;
const LINES: usize = 4;
/// What a process gets to end by itself once it closed its output.
const GRACE: Duration = Duration::from_secs(2);

/// What is heard.
#[derive(Debug)]
pub enum Heard<L> {
    /// It says this.
    Line(L),
    /// It said nothing in the time that was waited.
    Nothing,
    /// It closed its output: [`Apart::end`] says how it ended.
    Ended,
}

/// A line, or what a process writes before it dies.
enum Said<L> {
    Line(L),
    Fault(FaultRecord),
}

/// The process, as the program that started it has it.
pub struct Apart<L> {
    child: Child,
    said: Receiver<Said<L>>,
    noise: Option<JoinHandle<String>>,
    fault: Option<FaultRecord>,
}

impl<L: DeserializeOwned + Send + 'static> Apart<L> {
    /// Starts a subcommand with a task.
    ///
    /// # Errors
    /// No process can be started.
    pub fn start(subcommand: &str, task: &impl Serialize) -> Result<Apart<L>, CliError> {
        let lost = |source: io::Error| CliError::File { file: "tenon".into(), done: "run", source };
        let mut child = Command::new(env::current_exe().map_err(lost)?)
            .arg(subcommand)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(lost)?;
        if let Some(mut input) = child.stdin.take() {
            // One that is gone by now says so when it is listened to.
            let _ = serde_json::to_writer(&mut input, task);
        }
        let (sender, said) = channel();
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || forward(output, &sender));
        }
        let noise = child.stderr.take().map(|noise| thread::spawn(move || tail(noise)));
        Ok(Apart { child, said, noise, fault: None })
    }

    /// What is heard next, within a while.
    pub fn next(&mut self, patience: Duration) -> Heard<L> {
        match self.said.recv_timeout(patience) {
            Ok(Said::Line(line)) => Heard::Line(line),
            Ok(Said::Fault(record)) => {
                self.fault = Some(record);
                Heard::Nothing
            }
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => Heard::Ended,
        }
    }

    /// How it ended, where that was not well: with the signal, and what it wrote last.
    pub fn end(&mut self) -> Option<String> {
        let begin = Instant::now();
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if begin.elapsed() < GRACE => thread::sleep(Duration::from_millis(2)),
                _ => break None,
            }
        };
        end_group(&mut self.child);
        let how = match (self.fault.take(), status) {
            (Some(record), _) => format!("the process {record}"),
            (None, Some(status)) if status.success() => return None,
            (None, Some(status)) => driver::ended(status),
            (None, None) => "the process closed its pipe and went on".to_owned(),
        };
        Some(format!("{how}{}", self.last_words()))
    }

    fn last_words(&mut self) -> String {
        let Some(noise) = self.noise.take() else { return String::new() };
        let begin = Instant::now();
        while !noise.is_finished() && begin.elapsed() < GRACE {
            thread::sleep(Duration::from_millis(2));
        }
        let text =
            if noise.is_finished() { noise.join().unwrap_or_default() } else { String::new() };
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        match lines.len() {
            0 => String::new(),
            count => {
                format!("; it wrote last: {}", lines[count.saturating_sub(LINES)..].join(" / "))
            }
        }
    }
}

impl<L> Drop for Apart<L> {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            end_group(&mut self.child);
        }
    }
}

/// Reads lines until the pipe is closed or the receiver is gone. Text that is neither line nor fault is left out.
fn forward<L: DeserializeOwned>(pipe: impl Read, to: &Sender<Said<L>>) {
    for line in BufReader::new(pipe).lines().map_while(Result::ok) {
        let said = match serde_json::from_str(&line) {
            Ok(line) => Some(Said::Line(line)),
            Err(_) => FaultRecord::parse(&line).map(Said::Fault),
        };
        if said.is_some_and(|said| to.send(said).is_err()) {
            return;
        }
    }
}

/// Reads to the end, and keeps the end.
fn tail(mut pipe: impl Read) -> String {
    let (mut kept, mut block) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = pipe.read(&mut block) {
        kept.extend_from_slice(&block[..count]);
        let over = kept.len().saturating_sub(KEPT);
        kept.drain(..over);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// The process's own end: its task, and where it reports its progress.
pub struct Teller(File);

impl Teller {
    /// Takes the task, and has crashes reported. `None` if there is none.
    pub fn take<T: DeserializeOwned>() -> Option<(Teller, T)> {
        end_with_parent();
        let output = take_output().ok()?;
        let task = serde_json::from_reader(io::stdin().lock()).ok()?;
        install_fault_handler(output.as_raw_fd());
        Some((Teller(output), task))
    }

    /// Writes a line. If the reader is gone, there is nothing left to do.
    pub fn say(&self, line: &impl Serialize) {
        if let Ok(mut text) = serde_json::to_vec(line) {
            text.push(b'\n');
            let _ = (&self.0).write_all(&text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_faults_are_heard_and_what_a_plugin_prints_is_not() {
        let (sender, said) = channel::<Said<u32>>();
        forward("1\nhello\n2\n".as_bytes(), &sender);
        drop(sender);
        let lines: Vec<u32> = said
            .iter()
            .filter_map(|said| match said {
                Said::Line(line) => Some(line),
                Said::Fault(_) => None,
            })
            .collect();
        assert_eq!(lines, [1, 2]);
    }

    #[test]
    fn only_the_end_of_the_noise_is_kept() {
        let text = format!("{}last words", "x".repeat(3 * KEPT));
        let kept = tail(text.as_bytes());
        assert!(kept.ends_with("last words") && kept.len() <= KEPT, "{}", kept.len());
    }
}
