//! Plugins that keep failing.

use super::support::{alone, children, one_node, runtime, status, step};
use tenon_runtime::{Runtime, RuntimeError, Session, framework::Code};
use tenon_tests::session::{floats, library};

fn error_of(session: &Session) -> tenon_runtime::StepError {
    match step(session, floats(&[1.0, -3.0])) {
        Err(RuntimeError::Step(error)) => error,
        other => panic!("the kernel faults: {other:?}"),
    }
}

fn faulty(fallback: &str) -> (Runtime, Session) {
    let knobs = [("host.isolate_faults", "3"), ("host.isolate_fallback", fallback)];
    let runtime = runtime(&["tenon_cpu"], &["zoo_fatal"], &knobs);
    let session = one_node(&runtime, "Softsign", None);
    (runtime, session)
}

#[test]
fn after_so_many_faults_the_next_candidate_runs() {
    let _alone = alone();
    let (runtime, session) = faulty("true");
    for _ in 0..2 {
        let error = error_of(&session);
        assert_eq!(error.code, Code::INTERNAL, "{error}");
        assert!(error.message.contains("goes on in a new process"), "{error}");
    }
    let last = error_of(&session);
    assert!(
        last.message.contains("'zoo-fatal' is quarantined: 3 faults within a minute"),
        "{last}"
    );
    // x / (1 + |x|), by tenon-cpu.
    assert_eq!(step(&session, floats(&[1.0, -3.0])).unwrap(), [0.5, -0.75]);
    let explained = session.explain(Some("y")).unwrap();
    let kernels = explained[0].kernels.as_ref().unwrap();
    assert_eq!(&*kernels.winner.as_ref().unwrap().plugin_name, "tenon-cpu");
    let removed: Vec<String> = kernels
        .candidates
        .iter()
        .filter(|candidate| &*candidate.kernel.plugin_name == "zoo-fatal")
        .filter_map(|candidate| Some(candidate.removed.as_ref()?.to_string()))
        .collect();
    assert!(removed.len() == 1 && removed[0].contains("is quarantined"), "{removed:?}");
    let status = status(&runtime, "zoo-fatal");
    assert!(status.quarantined.is_some() && status.pid.is_none() && status.faults == 3);
    assert_eq!(children().len(), 0, "a plugin in quarantine has no process");
    let fresh = one_node(&runtime, "Softsign", None);
    assert_eq!(step(&fresh, floats(&[1.0, -3.0])).unwrap(), [0.5, -0.75]);
}

#[test]
fn without_fallback_a_session_keeps_its_plan_and_says_why() {
    let _alone = alone();
    let (_runtime, session) = faulty("false");
    for _ in 0..3 {
        error_of(&session);
    }
    for _ in 0..3 {
        let error = error_of(&session);
        assert_eq!(error.code, Code::FAILED_PRECONDITION, "{error}");
        assert!(error.message.contains("is quarantined"), "{error}");
    }
}

#[test]
fn an_op_of_no_other_plugin_stays_without_a_kernel() {
    let _alone = alone();
    let runtime = runtime(&["tenon_cpu"], &["zoo_fatal"], &[("host.isolate_faults", "1")]);
    let session = one_node(&runtime, "FatalTwice", Some("fault"));
    assert!(step(&session, floats(&[1.0; 3])).is_err());
    let error = step(&session, floats(&[1.0])).unwrap_err().to_string();
    assert!(error.contains("is quarantined"), "{error}");
    // Loading the plugin anew ends the quarantine.
    runtime.plugins().retire("zoo-fatal").unwrap();
    runtime.load_isolated([library("zoo_fatal")]).into_result().unwrap();
    session.refresh().unwrap();
    assert_eq!(step(&session, floats(&[1.5])).unwrap(), [3.0]);
}
