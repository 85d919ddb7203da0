//! Follows a process that makes calls, or runs graphs, and says which comes next.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Duration,
};

/// Far more than any of the calls takes, on a busy machine too.
const DEADLINE: Duration = Duration::from_secs(60);
/// Until the first call: plugins are loaded, and golden calls read.
const START_DEADLINE: Duration = Duration::from_secs(300);

/// What is said of a process that makes no call.
const BEFORE: &str = "before the first call";

/// Where the process that makes the calls begins; set by the one that watches it.
pub const START: &str = "TENON_TEST_FUZZ_START";

/// What the process that makes the calls writes, a line each.
pub const NEXT: &str = "next ";
pub const FAULT: &str = "fault ";
pub const PASSED: &str = "computed";
pub const DONE: &str = "done ";

/// What is known of the calls.
pub struct Watch {
    /// The test that makes them.
    test: &'static str,
    pub faults: Vec<String>,
    pub begun: usize,
    pub passed: usize,
    /// What the process says at its end.
    pub done: usize,
}

impl Watch {
    pub fn of(test: &'static str) -> Watch {
        Watch { test, faults: Vec::new(), begun: 0, passed: 0, done: 0 }
    }

    /// Starts processes until one comes to its end.
    pub fn follow_to_the_end(&mut self) {
        let mut start = 0;
        while let Some(next) = self.follow(start) {
            start = next;
        }
    }

    /// Starts a process at this call and follows it; where to go on if it did not come to its end.
    fn follow(&mut self, start: usize) -> Option<usize> {
        let mut child = started(self.test, start);
        let lines = lines_of(&mut child);
        let mut current = BEFORE.to_owned();
        let mut at = start;
        let lost = loop {
            let deadline = if current == BEFORE { START_DEADLINE } else { DEADLINE };
            match lines.recv_timeout(deadline) {
                Ok(line) => {
                    if let Some(next) = line.strip_prefix(NEXT) {
                        at = next.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(at);
                        current = next.to_owned();
                        self.begun += 1;
                    } else if let Some(text) = line.strip_prefix(FAULT) {
                        self.faults.push(format!("{current}: {}", text.replace('\u{1}', "\n")));
                    } else if line == PASSED {
                        self.passed += 1;
                    } else if let Some(done) = line.strip_prefix(DONE) {
                        self.done = done.parse().unwrap_or_default();
                        break None;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    child.kill().unwrap();
                    break Some("does not return");
                }
                Err(RecvTimeoutError::Disconnected) => break Some("ends the process"),
            }
        };
        let status = child.wait().unwrap();
        let lost = lost?;
        self.faults.push(format!("{current}: {lost} ({status})"));
        assert!(self.begun > 0 && self.faults.len() < 100, "{}", self.faults.join("\n"));
        Some(at + 1)
    }
}

/// This program, running that test, with less address space than a size that nobody checked asks for.
fn started(test: &str, start: usize) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 4000000; exec \"$0\" \"$@\""]).arg(program);
    command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(START, start.to_string()).env("RUST_BACKTRACE", "0").stdout(Stdio::piped());
    command.spawn().unwrap()
}

fn lines_of(child: &mut Child) -> Receiver<String> {
    let out = BufReader::new(child.stdout.take().unwrap());
    let (send, receive) = channel();
    thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    receive
}
