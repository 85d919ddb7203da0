//! `--isolate`: a plugin in a process of its own, by every command.
#![cfg(target_os = "linux")]

use crate::support::{Place, plugin};
use std::fs;
use tenon_runtime::framework::{DType, PartialShape, Tensor};
use tenon_testkit::npy;

fn fft() -> String {
    plugin("fft").display().to_string()
}

#[test]
fn a_graph_runs_on_an_isolated_plugin_with_the_same_result() {
    let place = Place::new();
    let graph = place.graph("g.pb", |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[8]).unwrap())?;
        let length = b.constant("length", Tensor::from_slice(&[1], &[8i32]).unwrap())?;
        let spectrum = b.op("RFFT").name("spectrum").input(x).input(length).build()?;
        b.op("IRFFT").name("y").input(spectrum).input(length).build().map(drop)
    });
    let x = Tensor::from_slice(&[8], &[1f32, -2.0, 3.0, 0.5, 0.0, 7.0, -1.0, 2.0]).unwrap();
    let feed = format!("x={}", place.array("x.npy", &x));
    let run = |isolate: &[&str], out: &str| {
        let args = ["run", &graph, "--feed", &feed, "--fetch", "spectrum", "y", "--out", out];
        place.json(&[&args[..], isolate].concat());
        ["spectrum.npy", "y.npy"].map(|file| fs::read(place.path(out).join(file)).unwrap())
    };
    let (here, apart) = (place.arg("here"), place.arg("apart"));
    assert_eq!(run(&[], &here), run(&["--isolate", &fft()], &apart));
    let y = npy::read(place.path("apart/y.npy"), None).unwrap();
    for (y, x) in y.as_slice::<f32>().unwrap().iter().zip(x.as_slice::<f32>().unwrap()) {
        assert!((y - x).abs() < 1e-5, "{y} for {x}");
    }
}

#[test]
fn the_list_says_which_plugins_are_isolated() {
    let place = Place::new();
    let list = place.json(&["list", "--isolate", &fft()]);
    let isolated = |name: &str| {
        let all = list["plugins"].as_array().unwrap();
        all.iter().find(|info| info["name"] == name).unwrap()["isolated"].as_bool().unwrap()
    };
    assert!(isolated("tenon-fft") && !isolated("tenon-cpu"));
    assert!(place.text(&["list", "--isolate", &fft()]).contains("(isolated)"));
}

#[test]
fn what_cannot_be_isolated_is_an_error_that_says_why() {
    let place = Place::new();
    let graph = place.relu("g.pb");
    let cpu = plugin("cpu").display().to_string();
    let error = place.error(&["run", &graph, "--isolate", &cpu, "--target", "layer/y"]);
    assert!(error.contains("it registers device type 'CPU'"), "{error}");
    let missing = place.error(&["run", &graph, "--isolate", "nowhere.so", "--target", "layer/y"]);
    assert!(missing.contains("nowhere.so"), "{missing}");
}
