//! `tenon top`: the figures of a running process.

use crate::support::Place;
use std::{
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};
use tenon_runtime::framework::Tensor;

/// A process that runs steps until it is ended.
struct Running {
    child: Child,
    port: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn running(place: &Place) -> Running {
    let graph = place.relu("g.pb");
    let x = Tensor::from_slice(&[2], &[-1.0f32, 2.0]).unwrap();
    let feed = format!("x={}", place.array("x.npy", &x));
    // A port that was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    drop(listener);
    let monitor = format!("runtime.monitor={port}");
    let args =
        ["run", &graph, "--feed", &feed, "--fetch", "layer/y", "--repeat", "4000000000", "--set"];
    let mut command = place.command(env!("CARGO_BIN_EXE_tenon").as_ref());
    command.args(args).arg(&monitor).stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running { child: command.spawn().unwrap(), port };
    let end = Instant::now() + Duration::from_secs(60);
    while !place.tenon(&["top", &running.port, "--once"]).status.success() {
        assert!(Instant::now() < end, "the process tells its figures");
        thread::sleep(Duration::from_millis(20));
    }
    running
}

#[test]
fn a_running_process_tells_its_figures_in_three_forms() {
    let place = Place::new();
    let process = running(&place);
    let port = process.port.as_str();
    let first = place.json(&["top", port, "--once"]);
    assert_eq!(first["pid"], process.child.id());
    let done = |figures: &serde_json::Value| figures["steps"]["done"].as_u64().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    let later = loop {
        let later = place.json(&["top", port, "--once"]);
        let kernels = later["kernels"].as_array().unwrap();
        let has_time = |kernel: &serde_json::Value| kernel["seconds"].as_f64() > Some(0.0);
        if done(&later) > done(&first) && kernels.iter().any(has_time) {
            break later;
        }
        assert!(Instant::now() < end, "steps go on");
    };
    let kernels = later["kernels"].as_array().unwrap();
    let relu = kernels.iter().find(|kernel| kernel["op"] == "Relu").expect("the kernel that runs");
    assert_eq!((&relu["plugin"], &relu["nodes"]), (&"tenon-cpu".into(), &1.into()));
    let (calls, seconds) = (relu["calls"].as_u64().unwrap(), relu["seconds"].as_f64().unwrap());
    assert!(
        calls > 0 && seconds > 1e-9 * calls as f64,
        "a call takes a nanosecond at least: {relu}"
    );
    let text = place.text(&["top", port, "--once"]);
    for part in ["steps:", "/s since the start", "tenon-cpu", "Relu", "in use"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let prometheus = place.text(&["top", port, "--prometheus"]);
    assert!(prometheus.contains("tenon_steps_total{result=\"ok\"} "), "{prometheus}");
}

#[test]
fn where_nobody_tells_figures_the_error_says_where_it_looked() {
    let place = Place::new();
    let error = place.error(&["top", "1", "--once"]);
    assert!(error.contains("http://127.0.0.1:1/metrics"), "{error}");
    let graph = place.relu("g.pb");
    let open = ["run", &graph, "--target", "layer/y", "--set", "runtime.monitor=0.0.0.0:9100"];
    let refused = place.error(&open);
    assert!(refused.contains("loopback"), "{refused}");
}

#[test]
fn a_command_whose_port_is_any_says_which_it_is() {
    let place = Place::new();
    let graph = place.relu("g.pb");
    let x = Tensor::from_slice(&[2], &[-1.0f32, 2.0]).unwrap();
    let feed = format!("x={}", place.array("x.npy", &x));
    let run = ["run", &graph, "--feed", &feed, "--fetch", "layer/y", "--set", "runtime.monitor=0"];
    let output = place.tenon(&run);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("figures of this process: tenon top 127.0.0.1:"), "{said}");
}
