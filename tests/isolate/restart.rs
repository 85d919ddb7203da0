//! Processes that do not start again.

use super::support::{alone, children, one_node, runtime, status, step};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::{Duration, Instant},
};
use tenon_runtime::{RunOptions, Runtime, RuntimeError, Session, framework::Code};
use tenon_tests::{
    bench::worker,
    session::{floats, library, run_with},
};

/// A program that runs workers, and does something else from the second one on.
fn worker_once(folder: &Path, then: &str) -> String {
    let (program, mark) = (folder.join("worker"), folder.join("mark"));
    let text = format!(
        "#!/bin/sh\nif [ -e {mark} ]; then {then}; fi\ntouch {mark}\nexec {worker}\n",
        mark = mark.display(),
        worker = worker().display(),
    );
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program.display().to_string()
}

fn session(folder: &Path, then: &str, knobs: &[(&str, &str)]) -> (Runtime, Session) {
    let program = worker_once(folder, then);
    let all = [knobs, &[("host.isolate_worker", program.as_str())]].concat();
    let runtime = super::support::runtime_by(&["tenon_cpu"], &[library("zoo_fatal")], &all);
    let session = one_node(&runtime, "FatalTwice", Some("kill"));
    assert_eq!(step(&session, floats(&[1.0])).unwrap(), [2.0]);
    assert!(step(&session, floats(&[1.0; 3])).is_err(), "the kernel ends its process");
    (runtime, session)
}

fn error_of(result: Result<Vec<f32>, RuntimeError>) -> tenon_runtime::StepError {
    match result {
        Err(RuntimeError::Step(error)) => error,
        other => panic!("an error of a step: {other:?}"),
    }
}

#[test]
fn a_process_that_hangs_as_it_starts_again_holds_no_step_beyond_its_deadline() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let knobs = [("host.isolate_start_ms", "3000"), ("host.isolate_faults", "2")];
    let (runtime, session) = session(folder.path(), "exec sleep 600", &knobs);
    let options =
        RunOptions { deadline: Some(Duration::from_millis(300)), ..RunOptions::default() };
    let begin = Instant::now();
    let error = run_with(&session, &[("x", floats(&[1.0]))], &["y"], &options).unwrap_err();
    let RuntimeError::Step(error) = error else { panic!("an error of a step: {error}") };
    assert_eq!(error.code, Code::DEADLINE_EXCEEDED, "{error}");
    assert!(begin.elapsed() < Duration::from_millis(2500), "{:?}", begin.elapsed());
    // Whoever looks is answered meanwhile.
    let look = Instant::now();
    let now = status(&runtime, "zoo-fatal");
    assert!(look.elapsed() < Duration::from_millis(500), "{:?}", look.elapsed());
    assert!(now.pid.is_none() && now.faults == 1 && now.quarantined.is_none(), "{now:?}");
    // The start that goes on fails in its time, which is a fault like any other.
    let error = error_of(step(&session, floats(&[1.0])));
    let says = "was not ready within 3s and was ended (host.isolate_start_ms)";
    assert!(error.message.contains(says) || error.message.contains("quarantined"), "{error}");
    let why = status(&runtime, "zoo-fatal").quarantined.expect("two faults are the end");
    assert!(why.contains("2 faults within a minute, the last by") && why.contains(says), "{why}");
    assert_eq!(children().len(), 0);
}

#[test]
fn a_process_that_ends_as_it_starts_again_is_told_from_one_that_hangs() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let then = "echo no more >&2; exit 3";
    let (runtime, session) = session(folder.path(), then, &[("host.isolate_faults", "3")]);
    let begin = Instant::now();
    let error = error_of(step(&session, floats(&[1.0])));
    assert_eq!(error.code, Code::UNAVAILABLE, "{error}");
    assert!(error.message.contains("plugin 'zoo-fatal' cannot be started again"), "{error}");
    assert!(error.message.contains("its process ended before it was ready, after"), "{error}");
    assert!(error.message.contains("exit with status 3; it last wrote: no more"), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(8), "it is not waited for");
    let _ = step(&session, floats(&[1.0]));
    let status = status(&runtime, "zoo-fatal");
    assert!(status.quarantined.is_some() && status.faults == 3, "{status:?}");
}

#[test]
fn what_the_process_wrote_beside_its_outputs_is_given_back_with_it() {
    let _alone = alone();
    let runtime = runtime(&["tenon_cpu"], &["zoo_fatal"], &[("host.isolate_faults", "0")]);
    let session = one_node(&runtime, "FatalTwice", Some("wild"));
    assert_eq!(step(&session, floats(&[1.0])).unwrap(), [2.0]);
    let before = super::support::arena_bytes("zoo_fatal");
    for _ in 0..3 {
        assert!(step(&session, floats(&[1.0; 3])).is_err());
    }
    assert_eq!(step(&session, floats(&[1.0])).unwrap(), [2.0]);
    let after = super::support::arena_bytes("zoo_fatal");
    assert!(after < before + (4 << 20), "{before} bytes, and {after} after wild writes");
}
