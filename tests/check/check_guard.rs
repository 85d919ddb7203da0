//! What an examination under guarded memory finds of kernels that are wrong, and that it finds nothing of one
//! that is right. Each examination has a process of its own, since it guards its memory and may die.

mod kernels;

use std::{
    os::unix::process::ExitStatusExt,
    process::{Command, Output},
};
use tenon_framework::{DType, Tensor, attr::AttrMap};
use tenon_runtime::{
    Runtime,
    host::memory::{HostMemory, guarded::GuardOptions},
};
use tenon_testkit::{
    check::{
        Argument, CheckCase, Clause, Effort, Examiner, Expectation, FaultRecord, Fill, Finding,
        Progress, Subject, Tag, Verdict, install_fault_handler,
    },
    compare::Rule,
};
use tenon_tests::session::{library, runtime};

/// Says which op a child examines, and which clause, or `case`.
const OP: &str = "TENON_TEST_OP";
const WHAT: &str = "TENON_TEST_WHAT";

/// Prints what it is told, a line each.
struct Printed;

impl Progress for Printed {
    fn begin(&mut self, clause: Clause, case: &str) {
        println!("begin {clause} of {case}");
    }

    fn found(&mut self, finding: Finding) {
        match finding.verdict {
            Verdict::Passed => println!("passed {}", finding.clause),
            Verdict::Failed(message) => println!("failed {}: {message}", finding.clause),
            Verdict::Skipped(reason) => println!("skipped {}: {reason}", finding.clause),
        }
    }
}

fn floats(dims: &[i64], seed: u64) -> Argument {
    let fill = Fill::Uniform { low: 1.0, high: 2.0, seed };
    Argument { dtype: DType::FLOAT, dims: dims.to_vec(), fill, constant: false }
}

fn case(name: &str, tag: Tag, inputs: Vec<Argument>) -> CheckCase {
    CheckCase { name: name.to_owned(), tags: vec![tag], attrs: AttrMap::new(), inputs }
}

/// The cases of an op.
fn cases(op: &str) -> Vec<CheckCase> {
    if op == "GuardPick" {
        let at = Tensor::scalar(1i32).expect("memory");
        let fill = Fill::Explicit(at);
        let at = Argument { dtype: DType::INT32, dims: vec![], fill, constant: false };
        let mut pick = case("pick", Tag::Prime, vec![floats(&[7], 1), at]);
        pick.attrs.insert("step".to_owned(), 1i64.into());
        return vec![pick];
    }
    vec![
        case("prime", Tag::Prime, vec![floats(&[3, 7], 1)]),
        case("large", Tag::Large, vec![floats(&[4099], 2)]),
        case("empty", Tag::Empty, vec![floats(&[0], 3)]),
    ]
}

fn doubled(inputs: &[Tensor]) -> Expectation {
    let x = inputs[0].as_slice::<f32>().expect("floats");
    let twice: Vec<f32> = x.iter().map(|x| x * 2.0).collect();
    let y = Tensor::from_slice(inputs[0].shape().dims(), &twice).expect("as many elements");
    Expectation::Outputs(vec![(y, Rule::Exact)])
}

fn subject(runtime: &Runtime, op: &str) -> Subject {
    let registry = runtime.registry();
    let def = registry.op(op).unwrap_or_else(|| panic!("{op} is linked"));
    let kernel = registry.kernels_of(op).first().expect("it has one kernel");
    Subject { op: def.clone(), kernel: kernel.clone(), types: AttrMap::new() }
}

/// What a child process does.
#[test]
#[ignore = "the other tests start it, each in a process of its own"]
fn child() {
    let (Ok(op), Ok(what)) = (std::env::var(OP), std::env::var(WHAT)) else {
        panic!("this test is started by the others");
    };
    HostMemory::guard(&GuardOptions::default()).expect("nothing is allocated yet");
    assert!(install_fault_handler(1));
    let runtime = runtime(&["tenon_cpu"], &[]);
    let subject = subject(&runtime, &op);
    let examiner = Examiner::new(&runtime, "CPU").expect("there is a CPU");
    match Clause::from_name(&what) {
        Some(clause) => examiner.clause(&subject, clause, &cases(&op), Effort::USUAL, &mut Printed),
        None => {
            for case in cases(&op) {
                let expect = |inputs: &[Tensor]| match op.as_str() {
                    "GuardPick" => Expectation::Unverified("nothing knows it".to_owned()),
                    _ => doubled(inputs),
                };
                examiner.case(&subject, &case, &expect, &mut Printed);
            }
        }
    }
    println!("end");
}

/// What an examination says, and how its process ended.
struct Said {
    lines: Vec<String>,
    fault: Option<FaultRecord>,
    signal: Option<i32>,
}

fn examine(op: &str, what: &str) -> Said {
    // Cargo has built it: the child does not look for it among others.
    library("tenon_cpu");
    let exe = std::env::current_exe().expect("a test knows its executable");
    let Output { stdout, stderr, status } = Command::new(exe)
        .args(["--exact", "check_guard::child", "--ignored", "--nocapture"])
        .envs([(OP, op), (WHAT, what)])
        .env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0")
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&stdout).into_owned();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let has_ended = lines.iter().any(|line| line == "end");
    assert!(
        has_ended || status.signal().is_some(),
        "{op}: {status}\n{text}\n{}",
        String::from_utf8_lossy(&stderr)
    );
    let fault = lines.iter().find_map(|line| FaultRecord::parse(line));
    Said { lines, fault, signal: status.signal() }
}

impl Said {
    fn failures(&self) -> Vec<&str> {
        self.lines.iter().filter_map(|line| line.strip_prefix("failed ")).collect()
    }

    /// The clause that was begun last.
    fn last_begun(&self) -> Option<&str> {
        self.lines.iter().rev().find_map(|line| line.strip_prefix("begin "))
    }
}

/// The op fails this clause and no other, the first time with these words.
fn finds(op: &str, what: &str, clause: Clause, words: &str) {
    let said = examine(op, what);
    let failures = said.failures();
    let first = failures.first().unwrap_or(&"nothing");
    assert!(first.contains(words), "{op}: expected '{words}' in: {first}");
    for failure in failures {
        let (found, _) = failure.split_once(": ").expect("a clause and a message");
        assert_eq!(found, clause.name(), "{op}: {failure}");
    }
    assert_eq!(said.signal, None, "{op}");
}

/// The op's process dies, and its record names this clause with these words.
fn dies(op: &str, clause: Option<Clause>, words: &str) {
    let said = examine(op, "case");
    assert_eq!(said.signal, Some(11), "{op}: {}", said.lines.join("\n"));
    let fault = said.fault.expect("the handler wrote a record");
    assert_eq!(fault.clause(), clause, "{op}: {fault}");
    assert!(fault.to_string().contains(words), "{op}: expected '{words}' in: {fault}");
    assert!(said.last_begun().is_some(), "{op}: it said what it began");
}

#[test]
fn nothing_is_found_of_a_right_kernel() {
    for what in ["case", "concurrent", "repeatable", "leak", "refusals", "cancellation"] {
        let said = examine("GuardRight", what);
        assert_eq!(said.failures(), [""; 0], "{what}");
        let passed =
            |clause: &str| said.lines.iter().any(|line| *line == format!("passed {clause}"));
        match what {
            "case" => {
                for clause in Examiner::CASE_CLAUSES {
                    assert!(passed(clause.name()), "{clause}: {}", said.lines.join("\n"));
                }
            }
            clause => assert!(passed(clause), "{}", said.lines.join("\n")),
        }
    }
}

#[test]
fn writes_beside_buffers_are_named() {
    let said = examine("GuardWritesBeyond", "case");
    let words = "bounds: with known shapes: byte 84 of output 0, a buffer of 84 bytes, just beyond its end, \
                 was written: expected 0xcb, found 0x00, as 3 further bytes there; inputs: float [3, 7]";
    assert_eq!(said.failures()[0], words);
    let fault = said.fault.expect("behind an empty output nothing can be written");
    assert_eq!(fault.clause(), Some(Clause::Bounds));
    let said = examine("GuardWritesBefore", "case");
    let words = "bounds: with known shapes: byte -4 of output 0, a buffer of 84 bytes, 4 before its start, \
                 was written";
    assert!(said.failures()[0].starts_with(words), "{:?}", said.failures());
    // In the call whose buffers begin where their pages do.
    let fault = said.fault.expect("before a page nothing can be written");
    assert_eq!(fault.clause(), Some(Clause::Bounds));
    assert!(fault.to_string().contains("4 before its start"), "{fault}");
}

#[test]
fn reads_beside_buffers_are_named() {
    let near = examine("GuardReadsBeyond", "case");
    let words =
        "bounds: the result changes with bytes beside its inputs: output 0: 1 of 21 elements";
    assert!(near.failures().iter().all(|failure| failure.starts_with("bounds: ")));
    assert!(near.failures()[0].starts_with(words), "{:?}", near.failures());
    let empty = near.fault.expect("behind an empty input nothing can be read").to_string();
    assert!(empty.contains("which read byte 0 of input 0, a buffer of 0 bytes"), "{empty}");
    let far =
        "which read byte 128 of input 0, a buffer of 84 bytes that is read-only, 44 beyond its end";
    dies("GuardReadsFar", Some(Clause::Bounds), far);
}

#[test]
fn a_write_to_an_input_is_named() {
    let words = "which wrote byte 80 of input 0, a buffer of 84 bytes that is read-only";
    dies("GuardWritesInput", Some(Clause::Inputs), words);
}

#[test]
fn use_after_release_and_null_pointers_are_told_apart() {
    let words = "a buffer of 84 bytes that was given back";
    dies("GuardReadsFreed", Some(Clause::Bounds), words);
    dies("GuardNull", None, "which wrote address 0: a null pointer");
}

#[test]
fn use_of_memory_that_nobody_wrote_is_found() {
    let words = "the result changes with memory that nobody wrote: output 0";
    finds("GuardAddsToOutput", "case", Clause::Uninitialised, words);
    finds("GuardScratch", "case", Clause::Uninitialised, words);
}

#[test]
fn wrong_results_are_told_with_their_place() {
    let words = "1 of 21 elements are wrong; at [2, 6] got ";
    finds("GuardWrongValues", "case", Clause::Values, words);
    let words =
        "with inputs that may be taken over for outputs: output 0: 21 of 21 elements are wrong";
    finds("GuardInPlaceTwice", "case", Clause::InPlace, words);
}

#[test]
fn an_output_of_another_shape_is_found() {
    let said = examine("GuardWrongShape", "case");
    let words = "the shape function says [3,7], the kernel gave [22]";
    assert!(
        said.failures()
            .iter()
            .any(|failure| failure.starts_with("shapes: ") && failure.contains(words))
    );
}

#[test]
fn calls_that_disturb_each_other_are_found() {
    let words = "gives other results than alone";
    finds("GuardRacy", "concurrent", Clause::Concurrent, words);
    let words = "gives other results than the first";
    finds("GuardSecondCall", "repeatable", Clause::Repeatable, words);
}

#[test]
fn a_leak_is_measured() {
    finds("GuardLeaks", "leak", Clause::Leak, "bytes with each call");
}

#[test]
fn an_index_that_is_not_checked_is_a_crash_of_its_clause() {
    let said = examine("GuardPick", "refusals");
    assert_eq!(said.signal, Some(11));
    let begun = said.last_begun().expect("it said what it began");
    assert!(begun.starts_with("refusals of pick with "), "{begun}");
    assert_eq!(said.fault.expect("a record").signal, 11);
}

#[test]
fn a_slow_kernel_is_not_taken_for_one_that_hangs() {
    for what in ["cancellation", "leak"] {
        assert_eq!(examine("GuardSleeps", what).failures(), [""; 0], "{what}");
    }
}
