//! Workers that are shell scripts: what a driver makes of them.

use super::super::follow::{How, Outcome, follow};
use super::*;
use crate::check::{Clause, protocol::Sampling};
use rustix::process::test_kill_process_group;

fn setup() -> Setup {
    Setup {
        plugin: "plugin.so".into(),
        others: Vec::new(),
        search: false,
        set: Vec::new(),
        ops: Vec::new(),
        devices: Vec::new(),
        sampling: Sampling { seed: 1, cases: 1, full: false },
        goldens: None,
        scratch: PathBuf::new(),
        unsupported: Vec::new(),
    }
}

fn script(text: &str) -> Child {
    let args = ["-c".into(), text.into()].into();
    Child::start(&Worker { program: "/bin/sh".into(), args }, &setup()).unwrap()
}

const BEGIN: &str =
    r#"echo '{"begin":{"step":4,"name":"prime_1","clause":"values","oracle":false}}';"#;

/// What becomes of a script that begins a step and goes on so.
fn begins_and(rest: &str, limit: Duration) -> Outcome {
    let (left, outcome) = follow(script(&format!("{BEGIN} {rest}")), limit, &mut |_, _| {});
    assert!(left.is_none() || matches!(outcome, Outcome::Done));
    outcome
}

const LONG: Duration = Duration::from_secs(30);

#[test]
fn ends_are_told_in_words() {
    assert!(words(ExitStatus::from_raw(11)).contains("SIGSEGV"));
    assert!(words(ExitStatus::from_raw(6)).contains("SIGABRT (abort)"));
    assert_eq!(words(ExitStatus::from_raw(3 << 8)), "the process ended itself with code 3");
    assert_eq!(words(ExitStatus::from_raw(1)), "the process was ended by signal 1");
}

#[test]
fn only_the_end_of_the_noise_is_kept() {
    let text = format!("{}\nlast words\n", "x".repeat(3 * KEPT));
    let kept = tail(text.as_bytes());
    assert!(kept.ends_with("last words") && kept.len() <= KEPT, "{}", kept.len());
}

#[test]
fn an_order_that_is_carried_out_leaves_the_worker() {
    let child = script(r#"read setup; read order; echo '"done"'; sleep 60"#);
    let mut child = child;
    child.order(&Order::Run { unit: 0, from: 0, without: Vec::new() });
    let (child, outcome) = follow(child, LONG, &mut |_, _| {});
    assert!(matches!(outcome, Outcome::Done), "{outcome:?}");
    assert!(child.is_some());
}

#[test]
fn a_worker_that_ends_is_told_with_its_last_words() {
    let outcome = begins_and("echo 'corrupted heap' >&2; kill -ABRT $$", LONG);
    let Outcome::Gone(gone) = outcome else { panic!("{outcome:?}") };
    let at = gone.at.clone().unwrap();
    assert_eq!((at.step, at.name.as_str()), (4, "prime_1"));
    assert_eq!(gone.said, "corrupted heap");
    let blamed = gone.blame();
    assert_eq!(blamed.clause, Clause::Values);
    assert!(format!("{:?}", blamed.verdict).contains("SIGABRT"), "{blamed:?}");
    let outcome = begins_and("exit 0", LONG);
    let Outcome::Gone(gone) = outcome else { panic!("{outcome:?}") };
    assert_eq!(gone.how, How::Ended("the process ended itself with code 0".to_owned()));
}

#[test]
fn a_worker_that_hangs_is_ended() {
    let limit = Duration::from_millis(200);
    let begin = Instant::now();
    let outcome = begins_and("sleep 60", limit);
    assert!(begin.elapsed() < LONG);
    let Outcome::Gone(gone) = outcome else { panic!("{outcome:?}") };
    assert_eq!(gone.how, How::TimedOut(limit));
    assert_eq!(gone.blame().clause, Clause::Progress);
}

#[test]
fn a_worker_that_talks_nonsense_is_no_longer_believed() {
    let outcome = begins_and("echo hello; sleep 60", LONG);
    let Outcome::Broken(error) = outcome else { panic!("{outcome:?}") };
    assert!(error.contains("hello"), "{error}");
}

/// What a plugin started goes with the worker, also when the worker itself is gone already.
#[test]
fn nothing_of_a_worker_is_left() {
    for rest in ["sleep 60 & exit 1", "sleep 60 & sleep 60"] {
        let child = script(&format!("{BEGIN} {rest}"));
        let group = Pid::from_raw(child.process.id() as i32).unwrap();
        let begin = Instant::now();
        drop(follow(child, Duration::from_millis(200), &mut |_, _| {}));
        while test_kill_process_group(group).is_ok() {
            assert!(begin.elapsed() < LONG, "{rest}: a process of the group lives on");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let worker = Worker { program: "/no/such/program".into(), args: Vec::new() };
    let error = Child::start(&worker, &setup()).unwrap_err().to_string();
    assert!(error.starts_with("worker /no/such/program: "), "{error}");
}
