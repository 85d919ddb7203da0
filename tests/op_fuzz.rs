//! Calls of the standard ops that are wrong in every way: none panics, ends the process, hangs, takes memory
//! without bound, is refused as anything but the caller's mistake, or without the name of an argument
//! (`tenon_testkit::fuzz`).
//!
//! The calls are made in a process of their own, which says which call comes next, so that one that does not
//! return is known by its op and seed.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Duration,
};
use tenon_testkit::fuzz::{CALL_BYTES, Ending, FAMILIES, Fuzzer, PLUGINS, bytes_of};
use tenon_tests::{build::repository, session::runtime};

/// Calls of each op.
const CALLS: u64 = 40;

/// Far more than any of the calls takes, on a busy machine too.
const DEADLINE: Duration = Duration::from_secs(60);
/// Until the first call: plugins are loaded, and golden calls read.
const START_DEADLINE: Duration = Duration::from_secs(300);

/// What is said of a process that makes no call.
const BEFORE: &str = "before the first call";

/// Where the process that makes the calls begins; set by the one that watches it.
const START: &str = "TENON_TEST_FUZZ_START";
/// Calls of each op, for longer runs by hand, and the only op.
const COUNT: &str = "TENON_TEST_FUZZ_CALLS";
const ONLY: &str = "TENON_TEST_FUZZ_OP";

fn calls() -> u64 {
    std::env::var(COUNT).ok().and_then(|count| count.parse().ok()).unwrap_or(CALLS)
}

fn fuzzer() -> Fuzzer {
    let plugins = PLUGINS.map(|package| package.replace('-', "_"));
    let runtime = runtime(&plugins.each_ref().map(String::as_str), &[]);
    let mut fuzzer = Fuzzer::new(&runtime, &FAMILIES).unwrap();
    for family in FAMILIES {
        fuzzer.learn(&repository().join("tests/goldens").join(family)).unwrap();
    }
    fuzzer
}

/// What the process that makes the calls writes, a line each.
const NEXT: &str = "next ";
const FAULT: &str = "fault ";
const COMPUTED: &str = "computed";
const DONE: &str = "done ";

#[test]
#[ignore = "started by no_call_is_answered_wrongly, which watches it"]
fn make_the_calls() {
    let Ok(start) = std::env::var(START) else { return };
    let start: usize = start.parse().unwrap();
    let fuzzer = fuzzer();
    let only = std::env::var(ONLY).ok();
    let ops = fuzzer.ops();
    let wanted = ops.iter().filter(|op| only.as_ref().is_none_or(|only| only == *op));
    let all = wanted.flat_map(|op| (0..calls()).map(move |seed| (*op, seed)));
    let mut out = std::io::stdout().lock();
    // The harness has begun a line.
    writeln!(out).unwrap();
    for (at, (op, seed)) in all.enumerate().skip(start) {
        writeln!(out, "{NEXT}{at} {op} {seed}").unwrap();
        let Some(call) = fuzzer.call_of(op, &bytes_of(&format!("{op} {seed}"), CALL_BYTES)) else {
            continue;
        };
        match fuzzer.judge(&call) {
            Ok(Ending::Computed) => writeln!(out, "{COMPUTED}").unwrap(),
            Ok(Ending::Refused(_)) => {}
            Err(fault) => {
                let text = format!("{fault}\n    {call}").replace('\n', "\u{1}");
                writeln!(out, "{FAULT}{text}").unwrap();
            }
        }
    }
    writeln!(out, "{DONE}{}", ops.len()).unwrap();
}

#[test]
fn no_call_is_answered_wrongly() {
    let mut watch = Watch::default();
    let mut start = 0;
    while let Some(next) = watch.follow(start) {
        start = next;
    }
    println!("{} calls of {} ops, {} computed", watch.calls, watch.ops, watch.computed);
    assert!(watch.faults.is_empty(), "{} faults:\n{}", watch.faults.len(), watch.faults.join("\n"));
    // As many as are refused at least a third of the calls reach the end, or the calls say little.
    assert!(watch.computed * 4 > watch.calls, "{} of {} computed", watch.computed, watch.calls);
}

/// What is known of the calls.
#[derive(Default)]
struct Watch {
    faults: Vec<String>,
    calls: usize,
    computed: usize,
    ops: usize,
}

impl Watch {
    /// Starts a process at this call and follows it; where to go on if it did not come to its end.
    fn follow(&mut self, start: usize) -> Option<usize> {
        let mut child = started(start);
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
                        self.calls += 1;
                    } else if let Some(text) = line.strip_prefix(FAULT) {
                        self.faults.push(format!("{current}: {}", text.replace('\u{1}', "\n")));
                    } else if line == COMPUTED {
                        self.computed += 1;
                    } else if let Some(ops) = line.strip_prefix(DONE) {
                        self.ops = ops.parse().unwrap_or_default();
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
        assert!(self.calls > 0 && self.faults.len() < 100, "{}", self.faults.join("\n"));
        Some(at + 1)
    }
}

/// This program, making the calls, with less address space than a size that nobody checked asks for.
fn started(start: usize) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 4000000; exec \"$0\" \"$@\""]).arg(program);
    command.args(["make_the_calls", "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(START, start.to_string()).env("RUST_BACKTRACE", "0").stdout(Stdio::piped());
    command.spawn().unwrap()
}

fn lines_of(child: &mut Child) -> Receiver<String> {
    let out = BufReader::new(child.stdout.take().unwrap());
    let (send, receive) = channel();
    thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    receive
}
