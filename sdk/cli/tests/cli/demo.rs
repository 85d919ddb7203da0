//! `tenon demo`.

use crate::support::{Place, output, stderr};
use std::path::Path;

#[test]
fn every_run_classifies_as_tensorflow_did() {
    let demo = Place::new().json(&["demo"]);
    let runs = demo["runs"].as_array().unwrap();
    let names: Vec<&str> = runs.iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["CPU", "ACCEL", "both"]);
    for run in runs {
        assert_eq!((&run["right"], &run["as_tensorflow"]), (&488.into(), &500.into()), "{run}");
        assert!(run["max_logit_difference"].as_f64().unwrap() <= 1e-4, "{run}");
        assert!(run["problem"].is_null());
        let kernels = run["kernels"].as_array().unwrap();
        let convolutions: Vec<&str> = kernels
            .iter()
            .filter(|kernel| kernel["op"] == "Conv2D")
            .map(|kernel| kernel["device"].as_str().unwrap())
            .collect();
        let expected = if run["name"] == "CPU" { "CPU:0" } else { "ACCEL:0" };
        assert_eq!(convolutions, [expected], "{kernels:?}");
    }
    let variants = demo["variants"]["variants"].as_array().unwrap();
    assert_ne!(variants[0]["label"], variants[1]["label"]);
    assert!(demo["variants"]["max_difference"].as_f64().unwrap() <= 1e-4);
    let (float, int8) = (&demo["quantized"]["float"], &demo["quantized"]["int8"]);
    assert_eq!(float["right"], 488);
    // Half a point of 500 images.
    assert!(int8["right"].as_u64().unwrap() >= 488 - 2, "{int8}");
    assert!(int8["bytes"].as_u64().unwrap() * 5 < float["bytes"].as_u64().unwrap() * 2, "{int8}");
    assert!(int8["median_ns"].as_u64().unwrap() > 0);
}

#[test]
fn text_ends_with_what_to_type_next() {
    let text = Place::new().text(&["demo"]);
    for part in ["CPU:0", "ACCEL:0", "97.6 %", "500 of 500", "8 bits", "next, type", "explain"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The graph that it names is there.
    let (_, rest) = text.rsplit_once(" explain ").unwrap();
    let graph = rest.split(' ').next().unwrap();
    assert!(graph.ends_with("digits.pb") && Path::new(graph).is_file(), "{graph}");
}

#[test]
fn without_its_plugins_it_fails_and_says_what_to_do() {
    let place = Place::new();
    let alone = place.alone();
    let demo = output(place.command(&alone).arg("demo"));
    assert_eq!(demo.status.code(), Some(1));
    let error = stderr(&demo);
    assert!(error.contains("CPU and ACCEL"), "{error}");
    assert!(error.contains("cargo run --release -- demo"), "{error}");
}

#[test]
fn trainings_agree_on_two_devices_and_after_a_kill() {
    let place = Place::new();
    let page = place.path("training.html");
    let args =
        ["demo", "train", "--steps", "20", "--save-every", "4", "--page", page.to_str().unwrap()];
    let demo = place.json(&args);
    assert_eq!((&demo["killed_at"], &demo["resumed_from"]), (&10.into(), &8.into()));
    assert_eq!(demo["different_weights"], 0);
    assert!(demo["max_loss_difference"].as_f64().unwrap() <= 1e-5, "{demo}");
    let losses = |at: usize| -> Vec<f64> {
        let losses = demo["trainings"][at]["losses"].as_array().unwrap();
        losses.iter().map(|loss| loss.as_f64().unwrap()).collect()
    };
    let (cpu, accelerators) = (losses(0), losses(1));
    assert_eq!((cpu.len(), accelerators.len()), (20, 20));
    // Ten classes: at first the loss is about ln 10, and it falls.
    assert!((1.5..4.0).contains(&cpu[0]) && cpu[19] < cpu[0], "{cpu:?}");
    assert!(std::fs::read_to_string(page).unwrap().contains("killed, then resumed"));
}

#[test]
fn a_training_of_too_few_steps_is_refused() {
    let place = Place::new();
    let refused = place.tenon(&["demo", "train", "--steps", "3"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("20..=1000000"), "{}", stderr(&refused));
}
