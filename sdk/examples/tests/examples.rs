//! Each example, run as a program, and what it prints.

use std::process::Command;

/// Runs an example; its output has to be these lines, with the plugins that are beside the program.
fn prints(name: &str, expected: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_tenon-examples")).arg(name).output();
    let output = output.expect("the program is there");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {told}");
    let found = String::from_utf8_lossy(&output.stdout);
    assert_eq!(found.lines().collect::<Vec<_>>(), expected, "{name}: {told}");
}

#[test]
fn graphs_are_built_and_read() {
    prints("build_graph", &["[2, 2] [9.0, 3.0, 1.0, 1.0]"]);
    prints("read_graph", &["x: Placeholder()", "y: Square(x)", "y = [9.0, 16.0]"]);
}

#[test]
fn steps_are_prepared_placed_and_traced() {
    prints("prepared_calls", &["[328350, 328350, 328350, 328350]"]);
    let nodes = [
        "product on ACCEL:0 by tenon-accel",
        "negative on CPU:0 by tenon-cpu",
        "y on CPU:0 by tenon-cpu",
        "[1.00, 7.39, 1.00, 54.60]",
    ];
    prints("devices", &nodes);
    prints("trace", &["product: traced", "y: traced"]);
}

#[test]
fn state_and_loops_have_values_and_ends() {
    prints("variables", &["before its first value: FAILED_PRECONDITION", "counter = 1"]);
    prints("loops", &["1: 1", "100: 128", "1000000000: 1073741800", "no end: DEADLINE_EXCEEDED"]);
    prints("cancel", &["CANCELLED"]);
}

#[test]
fn graphs_are_differentiated_trained_and_saved() {
    let derivatives = ["first:  [0.1966, 0.2500, 0.1966]", "second: [0.0909, 0.0000, -0.0909]"];
    prints("gradients", &derivatives);
    prints("training", &["y = 2.00 x + 1.00, loss below 0.001: true"]);
    prints("checkpoints", &["saved: model-100", "restored: [1.0, 2.0, 3.0]"]);
}

#[test]
fn a_server_answers_its_client() {
    let lines = [
        "a device of the server: /job:localhost/replica:0/task:0/device:CPU:0",
        "[0.0000, 0.7616]",
    ];
    prints("server", &lines);
}

#[test]
fn a_name_that_is_not_there_is_refused_with_those_that_are() {
    let output = Command::new(env!("CARGO_BIN_EXE_tenon-examples")).arg("nothing").output();
    let output = output.expect("the program is there");
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("build_graph") && told.contains("variables"), "{told}");
}
