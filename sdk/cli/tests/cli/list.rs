//! `tenon list`.

use crate::support::{Place, output, plugin, stderr};
use std::fs;

#[test]
fn json_names_plugins_devices_ops_and_kernels() {
    let list = Place::new().json(&["list"]);
    let names = |key: &str, field: &str| -> Vec<String> {
        let all = list[key].as_array().unwrap().iter();
        all.map(|entry| entry[field].as_str().unwrap().to_owned()).collect()
    };
    let plugins = names("plugins", "name");
    assert!(plugins.contains(&"tenon-cpu".into()) && plugins.contains(&"tenon-accel".into()));
    let devices = names("devices", "name");
    for device in ["CPU:0", "ACCEL:0"] {
        let full = format!("/job:localhost/replica:0/task:0/device:{device}");
        assert!(devices.contains(&full), "{devices:?}");
    }
    assert!(names("ops", "name").contains(&"Conv2D".to_owned()));
    let kernels = list["kernels"].as_array().unwrap();
    let conv = |label: &str| {
        let wanted = |kernel: &&serde_json::Value| {
            kernel["op"] == "Conv2D" && kernel["device_type"] == "CPU" && kernel["label"] == label
        };
        kernels.iter().filter(wanted).count()
    };
    assert!(conv("") > 0 && conv("reference") > 0);
    assert_eq!(list["rejected"], serde_json::json!([]));
}

#[test]
fn text_is_a_table_of_each() {
    let text = Place::new().text(&["list"]);
    for part in ["PLUGIN", "tenon-cpu", "DEVICE", "CPU:0", "OP", "Conv2D", "reference*"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line == line.trim_end()));
}

#[test]
fn knobs_are_listed_with_who_set_them() {
    let place = Place::new();
    let knobs = place.json(&["list", "--knobs", "--set", "accel.devices=1"]);
    let knobs = knobs["knobs"].as_array().unwrap();
    let knob = knobs.iter().find(|knob| knob["name"] == "accel.devices").unwrap();
    let shown = (knob["value"].as_str(), knob["default"].as_str(), knob["origin"].as_str());
    assert_eq!(shown, (Some("1"), Some("2"), Some("--set")));
    assert_eq!(knob["variable"], "TENON_ACCEL_DEVICES");
    let devices = place.json(&["--set", "accel.devices=1", "list"])["devices"].clone();
    let accel = |device: &&serde_json::Value| device["type"] == "ACCEL";
    assert_eq!(devices.as_array().unwrap().iter().filter(accel).count(), 1);
}

/// There was no way to see one op of eight hundred.
#[test]
fn names_and_device_types_say_what_is_listed() {
    let place = Place::new();
    let text = place.text(&["list", "relu", "Max*"]);
    for part in ["Relu", "MaxPool", "tenon-cpu"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for part in ["MatMul", "Relu6", "STREAMS", "tenon-text"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
    let list = place.json(&["list", "MatMul", "--device", "ACCEL"]);
    let of = |key: &str, field: &str| {
        let all = list[key].as_array().unwrap().iter();
        all.map(|entry| entry[field].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(of("kernels", "op").iter().all(|op| op == "MatMul") && !of("kernels", "op").is_empty());
    assert!(of("kernels", "device_type").iter().all(|name| name == "ACCEL"));
    assert_eq!(
        (of("ops", "name"), of("plugins", "name")),
        (vec!["MatMul".into()], vec!["tenon-accel".into()])
    );
    assert!(of("devices", "type").iter().all(|name| name == "ACCEL"));
    let of_plugin = place.json(&["list", "tenon-fft"]);
    let kernels = of_plugin["kernels"].as_array().unwrap();
    assert!(!kernels.is_empty() && kernels.iter().all(|kernel| kernel["plugin"] == "tenon-fft"));
    let knobs = place.json(&["list", "--knobs", "isolate_*", "cpu.isa"]);
    let knobs = knobs["knobs"].as_array().unwrap();
    let name = |knob: &serde_json::Value| knob["name"].as_str().unwrap().to_owned();
    assert!(
        knobs.iter().map(name).all(|name| name.starts_with("host.isolate_") || name == "cpu.isa")
    );
    assert!(knobs.iter().map(name).any(|name| name == "host.isolate_deadline_ms"));
}

#[test]
fn a_name_that_nothing_has_is_an_error_with_the_nearest() {
    let place = Place::new();
    let op = place.error(&["list", "Rleu"]);
    assert!(op.contains("no op or plugin of this name; did you mean 'Relu'?"), "{op}");
    let device = place.error(&["list", "--device", "ACEL"]);
    assert!(device.contains("no device type of this name; did you mean 'ACCEL'?"), "{device}");
    let knob = place.error(&["list", "--knobs", "isolate_dedline_ms"]);
    assert!(
        knob.contains("no knob of this name; did you mean 'host.isolate_deadline_ms'?"),
        "{knob}"
    );
}

#[test]
fn wrong_settings_are_errors() {
    let place = Place::new();
    let unknown = place.error(&["list", "--set", "accel.device=1"]);
    assert!(unknown.contains("accel.device") && unknown.contains("did you mean"), "{unknown}");
    let value = place.error(&["list", "--set", "accel.devices=many"]);
    assert!(value.contains("int") && value.contains("many"), "{value}");
    let form = place.error(&["list", "--set", "accel.devices"]);
    assert!(form.contains("--set"), "{form}");
}

#[test]
fn a_bad_plugin_is_reported_and_hides_no_other() {
    let place = Place::new();
    fs::write(place.path("bad.so"), "not a library").unwrap();
    let output = place.tenon(&["list", "--plugin", &place.arg("bad.so"), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("bad.so"), "{}", stderr(&output));
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rejected = list["rejected"].as_array().unwrap();
    assert_eq!(rejected.len(), 1);
    assert_eq!(rejected[0]["step"], "manifest");
    let names: Vec<&str> =
        list["plugins"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"tenon-cpu"), "{names:?}");
}

#[test]
fn without_plugins_only_what_is_built_in_is_listed() {
    let place = Place::new();
    let alone = place.alone();
    let list = output(place.command(&alone).arg("list"));
    assert!(list.status.success(), "{}", stderr(&list));
    let text = String::from_utf8(list.stdout).unwrap();
    assert!(text.contains("no plugin was found") && text.contains("Const"), "{text}");
    assert!(!text.contains("tenon-cpu"), "{text}");
}

/// Was passed over without a word: only libtenon_* was looked at.
#[test]
fn the_path_variable_names_a_folder_of_plugins_of_any_name() {
    let place = Place::new();
    let alone = place.alone();
    fs::create_dir(place.path("plugins")).unwrap();
    fs::copy(plugin("cpu"), place.path("plugins/libmine.so")).unwrap();
    fs::copy(plugin("accel"), place.path("plugins/libtenon_accel.so")).unwrap();
    fs::write(place.path("plugins/libtext.so"), "not a library").unwrap();
    fs::copy(env!("CARGO_BIN_EXE_tenon"), place.path("plugins/program.so")).unwrap();
    let list = |folder: &str| {
        let mut command = place.command(&alone);
        output(command.arg("list").env("TENON_PLUGIN_PATH", place.path(folder)))
    };
    let found = list("plugins");
    let text = String::from_utf8(found.stdout.clone()).unwrap();
    assert!(text.contains("tenon-cpu") && text.contains("tenon-accel"), "{text}");
    assert_eq!(stderr(&found), "", "a file that is not a plugin is passed over");
    let missing = list("nowhere");
    assert!(stderr(&missing).contains("refused at step find"), "{}", stderr(&missing));
}
