//! What becomes of processes and shared memory.

use super::support::{
    alone, children, good, group, one_node, other_build, plugin, runs, runtime, shared_memory,
    status, step, until,
};
use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::Arc,
    thread,
};
use tenon_runtime::{Runtime, RuntimeOptions, host::Settings};
use tenon_tests::{
    log::Lines,
    session::{Account, floats, library, turn},
};

#[test]
fn a_process_ends_with_its_plugin_and_leaves_nothing() {
    let _alone = alone();
    let _turn = turn();
    let run = || {
        let runtime = runtime(&["tenon_cpu"], &["zoo_fatal"], &[]);
        let session = one_node(&runtime, "FatalTwice", Some("fault"));
        good(&session, 1);
        assert!(step(&session, floats(&[1.0; 3])).is_err());
        good(&session, 2);
    };
    run();
    // The host's own arena, which it keeps, is there by now: a descriptor and a mapping.
    let arena = || shared_memory() == 2;
    until("shared memory is given back", arena);
    let before = Account::now();
    for _ in 0..3 {
        run();
    }
    before.check("after three lives of a plugin");
    until("shared memory is given back", arena);
    assert_eq!(children().len(), 0);
}

#[test]
fn retiring_ends_the_process_with_the_last_plan() {
    let _alone = alone();
    let runtime = runtime(&["tenon_cpu"], &["zoo_fatal"], &[]);
    let session = one_node(&runtime, "FatalTwice", Some("fault"));
    good(&session, 1);
    let pid = status(&runtime, "zoo-fatal").pid.expect("a process runs");
    runtime.plugins().retire("zoo-fatal").unwrap();
    assert!(runtime.plugins().isolated().is_empty());
    good(&session, 2);
    assert!(runs(pid), "the session has its kernels");
    drop(session);
    until("the process ends", || !runs(pid));
}

#[test]
fn a_new_build_takes_the_place_of_an_isolated_one_in_a_process_of_its_own() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let runtime = runtime(&["tenon_cpu"], &["zoo_fatal"], &[]);
    let session = one_node(&runtime, "FatalTwice", Some("fault"));
    good(&session, 1);
    let first = status(&runtime, "zoo-fatal").pid.expect("a process runs");
    let (info, _) = runtime.replace(other_build("zoo_fatal", folder.path(), 1)).unwrap();
    assert!(info.isolated);
    good(&session, 2);
    assert!(runs(first), "the session has not been refreshed");
    session.refresh().unwrap();
    good(&session, 3);
    until("the old build's process ends", || !runs(first));
    let second = status(&runtime, "zoo-fatal").pid.expect("a process runs");
    assert_ne!(first, second);
    let bad = folder.path().join("bad.so");
    std::fs::write(&bad, b"no library").unwrap();
    assert!(runtime.replace(&bad).is_err());
    good(&session, 4);
    assert_eq!(status(&runtime, "zoo-fatal").pid, Some(second), "a refused build changes nothing");
}

#[test]
fn states_are_made_again_in_the_next_process() {
    let _alone = alone();
    let runtime = runtime(&["tenon_cpu"], &["zoo_fatal"], &[]);
    let session = one_node(&runtime, "FatalTwice", Some("fault"));
    good(&session, 1);
    let first = status(&runtime, "zoo-fatal").pid.expect("a process runs");
    // A process that ends between calls is found dead by the next one, which runs in another.
    let killed = Command::new("kill").args(["-9", &first.to_string()]).status().unwrap();
    assert!(killed.success());
    until("its end is known", || status(&runtime, "zoo-fatal").pid.is_none());
    good(&session, 2);
    let now = status(&runtime, "zoo-fatal");
    assert!(
        now.pid.is_some_and(|pid| pid != first) && now.restarts == 1 && now.faults == 1,
        "{now:?}"
    );
}

#[test]
fn a_plugin_with_a_device_type_is_refused() {
    let _alone = alone();
    let worker = tenon_tests::bench::worker().display().to_string();
    let set = vec![("host.isolate_worker".to_owned(), worker)];
    let options = RuntimeOptions {
        settings: Settings { set, ..Settings::default() },
        isolate: vec![library("tenon_accel")],
        ..RuntimeOptions::with_plugins([library("tenon_cpu")])
    };
    let (runtime, report) = Runtime::new(options).unwrap();
    let error = report.into_result().unwrap_err().to_string();
    assert!(error.contains("only kernels that compute in host memory can be isolated"), "{error}");
    assert!(runtime.plugins().isolated().is_empty());
    until("no process is left", || children().is_empty());
}

#[test]
fn without_a_program_that_runs_workers_the_error_says_what_to_do() {
    let _alone = alone();
    let options = RuntimeOptions {
        settings: Settings::default(),
        isolate: vec![library("zoo_fatal")],
        ..RuntimeOptions::with_plugins([library("tenon_cpu")])
    };
    let (_runtime, report) = Runtime::new(options).unwrap();
    let error = report.into_result().unwrap_err().to_string();
    assert!(error.contains("host.isolate_worker") && error.contains("isolate::work()"), "{error}");
}

#[test]
fn a_worker_that_is_none_is_refused_with_what_it_said() {
    let _alone = alone();
    let set = vec![("host.isolate_worker".to_owned(), "/bin/false".to_owned())];
    let options = RuntimeOptions {
        settings: Settings { set, ..Settings::default() },
        isolate: vec![library("zoo_fatal")],
        ..RuntimeOptions::with_plugins([library("tenon_cpu")])
    };
    let (_runtime, report) = Runtime::new(options).unwrap();
    let error = report.into_result().unwrap_err().to_string();
    assert!(error.contains("its process ended before it was ready"), "{error}");
    assert!(error.contains("by exit with status 1"), "{error}");
}

#[test]
fn what_a_plugin_logs_and_writes_comes_to_the_host_s_log() {
    let _alone = alone();
    let lines = Lines::default();
    // The lines come on threads of their own.
    tracing::subscriber::set_global_default(lines.clone()).expect("no other subscriber");
    let runtime = runtime(&["tenon_cpu"], &["zoo_wrong"], &[]);
    let session = one_node(&runtime, "WrongAborts", None);
    assert!(step(&session, floats(&[1.0; 3])).is_err());
    until("the line is logged", || {
        lines.all().iter().any(|line| line.contains("zoo: the wrong kernel aborts"))
    });
}

/// Not a test of its own: a host that runs steps until it is killed.
#[test]
#[ignore = "started by another test, which kills it"]
fn host_to_be_killed() {
    let runtime = runtime(&["tenon_cpu"], &["zoo_fatal"], &[]);
    let session = one_node(&runtime, "FatalTwice", Some("spawn"));
    good(&session, 1);
    println!("worker {}", status(&runtime, "zoo-fatal").pid.expect("a process runs"));
    // In the middle of a call.
    let _ = step(&session, floats(&[1.0; 3]));
}

#[test]
fn a_worker_ends_when_its_host_is_killed_in_the_middle_of_a_call() {
    let _alone = alone();
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "life::host_to_be_killed", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines();
    let pid = lines.find_map(|line| line.ok()?.rsplit_once("worker ")?.1.trim().parse().ok());
    let pid = pid.expect("the host says which process its worker is");
    until("the plugin starts a process", || group(pid).len() == 2);
    host.kill().unwrap();
    host.wait().unwrap();
    until("the worker ends, and what it started", || group(pid).is_empty());
}

#[test]
fn what_a_plugin_started_ends_with_its_process() {
    let _alone = alone();
    let deadline = ("host.isolate_deadline_ms", "2000");
    let runtime = runtime(&["tenon_cpu"], &["zoo_fatal"], &[deadline]);
    let session = one_node(&runtime, "FatalTwice", Some("spawn"));
    good(&session, 1);
    let pid = status(&runtime, "zoo-fatal").pid.expect("a process runs");
    thread::scope(|scope| {
        let failing = scope.spawn(|| step(&session, floats(&[1.0; 3])));
        until("the plugin starts a process", || group(pid).len() == 2);
        assert!(failing.join().unwrap().is_err());
    });
    until("no process of the group is left", || group(pid).is_empty());
    good(&session, 2);
}

#[test]
fn the_same_file_again_is_no_second_process() {
    let _alone = alone();
    let runtime = runtime(&["tenon_cpu"], &["zoo_fatal"], &[]);
    let first = plugin(&runtime, "zoo-fatal");
    let report = runtime.load_isolated([library("zoo_fatal")]);
    assert_eq!(report.present.len(), 1);
    assert!(Arc::ptr_eq(&first, &plugin(&runtime, "zoo-fatal")));
    assert_eq!(children().len(), 1);
}
