//! `tenon inspect`.

use crate::support::{Place, plugin};
use std::fs;

#[test]
fn a_plugin_is_shown_with_its_manifest_and_its_devices() {
    let place = Place::new();
    let file = plugin("accel").display().to_string();
    let shown = place.json(&["inspect", &file]);
    assert_eq!(shown["name"], "tenon-accel");
    assert_eq!(shown["door"], "1 (Rust)");
    assert_eq!(shown["digest"].as_str().unwrap().len(), 64);
    assert!(shown["refused"].is_null());
    let conv = |kernel: &&serde_json::Value| kernel["op"] == "Conv2D";
    assert!(shown["kernels"].as_array().unwrap().iter().any(|kernel| conv(&kernel)));
    assert_eq!(shown["probes"][0]["type"], "ACCEL");
    assert_eq!(shown["probes"][0]["count"], 2);
    let text = place.text(&["inspect", &file]);
    assert!(text.contains("loading    works") && text.contains("ACCEL: 2 devices"), "{text}");
}

#[test]
fn the_probe_says_why_a_device_is_not_there() {
    let file = plugin("accel").display().to_string();
    let shown = Place::new().json(&["inspect", &file, "--set", "accel.devices=0"]);
    assert_eq!(shown["probes"][0]["count"], 0);
    assert!(shown["probes"][0]["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
}

#[test]
fn what_is_no_plugin_is_an_error_that_names_the_file() {
    let place = Place::new();
    let missing = place.error(&["inspect", &place.arg("none.so")]);
    assert!(missing.starts_with("error [NOT_FOUND]") && missing.contains("none.so"), "{missing}");
    fs::write(place.path("text.so"), "not a library").unwrap();
    let text = place.error(&["inspect", &place.arg("text.so")]);
    assert!(text.contains("text.so"), "{text}");
    let folder = place.error(&["inspect", &place.arg("")]);
    assert!(folder.contains("folder"), "{folder}");
    let executable = place.error(&["inspect", env!("CARGO_BIN_EXE_tenon")]);
    assert!(executable.contains("tenon"), "{executable}");
    let whole = fs::read(plugin("accel")).unwrap();
    fs::write(place.path("cut.so"), &whole[..whole.len() / 2]).unwrap();
    let cut = place.error(&["inspect", &place.arg("cut.so")]);
    assert!(cut.contains("cut.so"), "{cut}");
}
