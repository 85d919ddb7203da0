//! A fault in every tenth step, in every way that there is. `.ci/soak` ends processes for as long as it is told to.

use super::support::{alone, children, fatal as way, good, one_node, runtime, status, step};
use std::collections::BTreeMap;
use tenon_runtime::{Runtime, RuntimeError, Session, framework::Code};
use tenon_tests::session::floats;

const STEPS: usize = 200;
/// Every fault among these takes as long as a call may.
const HANGING_STEPS: usize = 40;
/// Long enough for a good step on a loaded machine, short enough to be waited for a few times.
const SHORT: (&str, &str) = ("host.isolate_deadline_ms", "1000");
/// No call takes so long where none hangs.
const LONG: (&str, &str) = ("host.isolate_deadline_ms", "60000");
const NEVER: (&str, &str) = ("host.isolate_faults", "0");

fn failed(result: Result<Vec<f32>, RuntimeError>) -> tenon_runtime::StepError {
    match result.expect_err("a fault fails its step") {
        RuntimeError::Step(error) => error,
        other => panic!("an error of a step: {other}"),
    }
}

/// Runs the steps; the codes that the faults gave, with one message of each.
fn all_of(session: &Session, steps: usize, faulty: usize) -> BTreeMap<i32, String> {
    let mut codes = BTreeMap::new();
    let mut failures = 0;
    for number in 0..steps {
        if number % faulty != 0 {
            good(session, number);
            continue;
        }
        let error = failed(step(session, floats(&[number as f32; 3])));
        assert_eq!(
            (&*error.node, &*error.device),
            ("y", "/job:localhost/replica:0/task:0/device:CPU:0")
        );
        assert!(error.message.contains("kernel of op '"), "names the kernel: {error}");
        codes.insert(error.code.0, error.message.to_string());
        failures += 1;
    }
    assert_eq!(failures, steps / faulty);
    codes
}

fn survives(op: &str, plugin: &str, how: Option<&str>, code: Code, says: &str) {
    let (steps, deadline) = match code {
        Code::DEADLINE_EXCEEDED => (HANGING_STEPS, SHORT),
        _ => (STEPS, LONG),
    };
    let runtime = runtime(&["tenon_cpu"], &[&plugin.replace('-', "_")], &[deadline, NEVER]);
    let session = one_node(&runtime, op, how);
    let codes = all_of(&session, steps, 10);
    let [(found, message)] = &codes.into_iter().collect::<Vec<_>>()[..] else {
        panic!("{op} {how:?}: one code")
    };
    assert_eq!(Code(*found), code, "{op} {how:?}: {message}");
    assert!(message.contains(says), "{op} {how:?}: expected {says:?} in {message}");
    let status = status(&runtime, plugin);
    let (faults, calls) = (steps as u64 / 10, steps as u64 / 10 * 9);
    assert_eq!((status.faults, status.calls), (faults, calls), "{op} {how:?}");
    assert!(children().len() <= 1, "one process at most, whatever happened");
    drop((session, runtime));
    assert_eq!(children().len(), 0, "no process is left");
}

fn fatal(how: &str, code: Code, says: &str) {
    survives("FatalTwice", "zoo-fatal", Some(how), code, says);
}

#[test]
fn a_memory_fault() {
    let _alone = alone();
    fatal("fault", Code::INTERNAL, "ended its process: signal 11 (SIGSEGV");
}

#[test]
fn an_abort() {
    let _alone = alone();
    fatal("abort", Code::INTERNAL, "signal 6 (SIGABRT");
}

#[test]
fn an_exit() {
    let _alone = alone();
    fatal("exit", Code::INTERNAL, "exit with status 3");
}

#[test]
fn a_stack_that_overflows() {
    let _alone = alone();
    fatal("stack", Code::INTERNAL, "signal ");
}

#[test]
fn a_fault_on_a_thread_of_the_plugin_s_own() {
    let _alone = alone();
    fatal("thread", Code::INTERNAL, "signal 11 (SIGSEGV");
}

#[test]
fn a_signal_that_cannot_be_handled() {
    let _alone = alone();
    fatal("kill", Code::INTERNAL, "signal 9");
}

#[test]
fn an_endless_loop() {
    let _alone = alone();
    fatal("hang", Code::DEADLINE_EXCEEDED, "did not return within 1s");
}

#[test]
fn the_wrong_kernels_of_the_zoo() {
    let _alone = alone();
    let wrong = |op, code, says| survives(op, "zoo-wrong", None, code, says);
    wrong(
        "WrongFaults",
        Code::INTERNAL,
        "SIGSEGV, a memory access that is not allowed) at address 0x8",
    );
    wrong("WrongAborts", Code::INTERNAL, "zoo: the wrong kernel aborts");
    wrong("WrongExits", Code::INTERNAL, "exit with status 0");
    wrong("WrongHangs", Code::DEADLINE_EXCEEDED, "did not return within 1s");
}

#[test]
fn a_plugin_that_closes_every_descriptor_loses_its_process_and_no_step() {
    let _alone = alone();
    let runtime = runtime(&["tenon_cpu"], &["zoo_fatal"], &[SHORT, NEVER]);
    let session = one_node(&runtime, "FatalTwice", Some("close"));
    for number in 0..20 {
        // The step may end before the host finds that the process has let go of it, or be ended by that.
        match step(&session, floats(&[1.0, 2.0, 3.0])) {
            Ok(y) => assert_eq!(y, [2.0, 4.0, 6.0]),
            Err(error) => assert!(error.to_string().contains("zoo-fatal"), "{error}"),
        }
        let again = (0..100).find_map(|_| step(&session, floats(&[number as f32])).ok());
        assert_eq!(again, Some(vec![2.0 * number as f32]));
    }
}

/// Steps of two sessions in one process: a fault of one ends calls of the other, which say so, and every result is
/// that of its own step.
#[test]
fn steps_beside_a_fault_fail_as_aborted_or_are_right() {
    let _alone = alone();
    let runtime = runtime(&["tenon_cpu"], &["zoo_fatal"], &[NEVER]);
    let faulty = one_node(&runtime, "FatalTwice", Some(&way()));
    let other = one_node(&runtime, "FatalTwice", Some(&way()));
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            let mut right = 0;
            for number in 0..STEPS {
                let x = number as f32 + 0.5;
                match step(&other, floats(&[x])) {
                    Ok(y) => {
                        assert_eq!(y, [2.0 * x]);
                        right += 1;
                    }
                    Err(RuntimeError::Step(error)) => {
                        assert_eq!(error.code, Code::ABORTED, "{error}");
                        assert!(error.message.contains("run the step again"), "{error}");
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            right
        });
        for number in 0..STEPS / 10 {
            let error = failed(step(&faulty, floats(&[number as f32; 3])));
            assert!(matches!(error.code, Code::INTERNAL | Code::ABORTED), "{error}");
        }
        let right = beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert!(right > 0);
    });
    check_still_good(&runtime);
}

fn check_still_good(runtime: &Runtime) {
    let session = one_node(runtime, "FatalTwice", Some(&way()));
    good(&session, 7);
}
