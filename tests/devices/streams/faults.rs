//! A device that fails among several streams fails the step, and leaves nothing behind.

use super::support::*;
use tenon_graph::{GraphBuilder, GraphError, Output};
use tenon_runtime::framework::Code;
use tenon_tests::session::{
    Account, good_nodes, good_step, run, runtime, session_as_written as session, turn,
};

/// Four branches with a row of nodes each, that meet at the end.
fn branches(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    good_nodes(b)?;
    let x = input(b, "x", vector(LARGE))?;
    let mut ends = Vec::new();
    for branch in 0..4 {
        let mut value = x;
        for op in ["Neg", "Relu", "Square", "Neg"] {
            value = b.op(op).input(value).device(ACCEL).build()?.into();
        }
        let name = format!("end{branch}");
        ends.push(b.op("Tanh").name(&name).input(value).device(ACCEL).build()?.into());
    }
    let sum = |b: &mut GraphBuilder<'_>, one: Output, two: Output| {
        b.op("Add").input(one).input(two).device(ACCEL).build().map(Output::from)
    };
    let (left, right) = (sum(b, ends[0], ends[1])?, sum(b, ends[2], ends[3])?);
    b.op("Add").name("y").input(left).input(right).device(ACCEL).build().map(|_| ())
}

/// Steps over several streams fail like this when the knob is set, and leave nothing behind.
fn fault(knob: &str, at: usize, code: Code, parts: &[&str]) {
    let before = Account::now();
    {
        let (at, order) = (at.to_string(), (at * 7).to_string());
        let knobs = [(knob, at.as_str()), ("accel.reorder_seed", order.as_str())];
        let runtime = runtime(BOTH, &knobs);
        let session = session(&runtime, branches);
        let step = |at| run(&session, &[("x", feed(LARGE, at))], &["y", "end0", "end3"]);
        let failed = (0..100).find_map(|at| step(at).err());
        let error = failed.unwrap_or_else(|| panic!("{knob} = {at} changed nothing"));
        let message = error.to_string();
        assert_eq!(error.code(), code, "{knob} = {at}: {message}");
        for part in parts {
            assert!(message.contains(part), "{knob} = {at}: expected '{part}' in: {message}");
        }
        good_step(&session);
        let again = step(0);
        match code {
            // A command fails once, a device is lost for good.
            Code::INTERNAL => drop(again.expect("its streams are new ones")),
            _ => assert_eq!(again.expect_err("it stays so").code(), code),
        }
        good_step(&session);
    }
    before.check(&format!("{knob} = {at}, after the devices are closed"));
}

#[test]
fn a_device_that_is_lost_among_several_streams_fails_the_step() {
    let _turn = turn();
    for at in 1..40 {
        let parts = ["ACCEL:0 is lost: the knob lose_after_commands"];
        fault("accel.lose_after_commands", at, Code::UNAVAILABLE, &parts);
    }
}

#[test]
fn a_command_that_fails_on_one_of_several_streams_fails_the_step() {
    let _turn = turn();
    for at in 1..40 {
        fault("accel.fail_command_after", at, Code::INTERNAL, &["ACCEL:0"]);
    }
}

#[test]
fn memory_that_runs_out_among_several_streams_fails_the_step() {
    let _turn = turn();
    for at in 1..12 {
        let parts = ["device memory of", "ACCEL:0"];
        let bytes = 20_480 * at + 100;
        fault("accel.fail_alloc_after_bytes", bytes, Code::RESOURCE_EXHAUSTED, &parts);
    }
}

/// The device is lost while one stream stands still and others wait for it: the step ends, and so do they.
#[test]
fn a_loss_ends_streams_that_wait_for_others() {
    let _turn = turn();
    let before = Account::now();
    {
        // Copies and the kernels before `square` come first; `relu` brings the loss.
        let runtime = runtime(BOTH, &[("accel.lose_after_commands", "3")]);
        let session = session(&runtime, |b| {
            good_nodes(b)?;
            diamond(ACCEL, vector(4))(b)
        });
        let back = Held::back(&runtime, "square");
        let error = run(&session, &[("x", feed(4, 0))], &["z", "c"]).expect_err("it is lost");
        drop(back);
        assert_eq!(error.code(), Code::UNAVAILABLE, "{error}");
        good_step(&session);
    }
    before.check("after the devices are closed");
}
