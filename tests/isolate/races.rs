//! Replacing, retiring and quarantining an isolated plugin while steps run.

use super::support::{alone, children, fatal, one_node, other_build, runtime, step};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tenon_runtime::{RuntimeError, framework::Code};
use tenon_tests::session::{floats, library};

/// What a step may end with while its plugin is taken out of use, fails or is quarantined: nothing else.
fn is_expected(error: &RuntimeError) -> bool {
    match error {
        RuntimeError::Step(error) => {
            let codes = [Code::ABORTED, Code::INTERNAL, Code::FAILED_PRECONDITION];
            codes.contains(&error.code)
        }
        // Planned anew while no plugin had the op, or its kernel refused.
        RuntimeError::NoKernel { .. } | RuntimeError::Kernel { .. } | RuntimeError::Graph(_) => {
            true
        }
        _ => false,
    }
}

#[test]
fn steps_run_while_the_plugin_comes_and_goes() {
    let _alone = alone();
    let runtime = runtime(&["tenon_cpu"], &["zoo_fatal"], &[("host.isolate_faults", "2")]);
    let folder = tempfile::tempdir().unwrap();
    let (over, right) = (AtomicBool::new(false), AtomicUsize::new(0));
    let sessions: Vec<_> =
        (0..3).map(|_| one_node(&runtime, "FatalTwice", Some(&fatal()))).collect();
    std::thread::scope(|scope| {
        for (at, session) in sessions.iter().enumerate() {
            let (over, right) = (&over, &right);
            scope.spawn(move || {
                let mut number = 0;
                while !over.load(Ordering::Relaxed) {
                    number += 1;
                    let x = (number * 4 + at) as f32;
                    // One thread has every twentieth step fault.
                    let bad = at == 0 && number % 20 == 0;
                    let result = match bad {
                        true => step(session, floats(&[x; 3])),
                        false => step(session, floats(&[x])),
                    };
                    match result {
                        Ok(y) => {
                            assert!(!bad);
                            assert_eq!(y, [2.0 * x]);
                            right.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => assert!(is_expected(&error), "{error}"),
                    }
                }
            });
        }
        for round in 0..20 {
            if round % 2 == 0 {
                runtime.plugins().retire("zoo-fatal").unwrap();
                runtime.load_isolated([library("zoo_fatal")]).into_result().unwrap();
            } else {
                runtime.replace(other_build("zoo_fatal", folder.path(), round)).unwrap();
            }
            sessions.iter().for_each(|session| session.refresh().unwrap());
            let before = right.load(Ordering::Relaxed);
            super::support::until("steps go well again", || right.load(Ordering::Relaxed) > before);
        }
        over.store(true, Ordering::Relaxed);
    });
    drop((sessions, runtime));
    assert_eq!(children().len(), 0);
}
