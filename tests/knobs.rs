//! Knobs, by environment and by settings, as kernels and devices see them.

use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    Runtime, RuntimeError, RuntimeOptions, framework::device::base::DeviceBase, host::Settings,
};
use tenon_tests::session::{library, run, session, turn};

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn start(settings: Settings) -> Result<Runtime, RuntimeError> {
    let libraries = ["tenon_cpu", "tenon_accel", "zoo_rust"].map(library);
    let options =
        RuntimeOptions { threads: Some(1), settings, ..RuntimeOptions::with_plugins(libraries) };
    let (runtime, report) = Runtime::new(options)?;
    report.into_result()?;
    Ok(runtime)
}

fn accel_devices(runtime: &Runtime) -> usize {
    let devices = runtime.devices().devices();
    devices.iter().filter(|device| device.device_type() == "ACCEL").count()
}

#[test]
fn settings_go_over_options_and_options_over_the_environment() {
    let _turn = turn();
    let environment = pairs(&[("TENON_ACCEL_DEVICES", "3")]);
    let runtime = start(Settings { environment: environment.clone(), ..Settings::default() });
    assert_eq!(accel_devices(&runtime.expect("it starts")), 3);
    let options = pairs(&[("accel.devices", "4")]);
    let settings = Settings { environment, options, ..Settings::default() };
    assert_eq!(accel_devices(&start(settings.clone()).expect("it starts")), 4);
    let settings = Settings { set: pairs(&[("accel.devices", "1")]), ..settings };
    assert_eq!(accel_devices(&start(settings).expect("it starts")), 1);
    assert_eq!(accel_devices(&start(Settings::default()).expect("it starts")), 2, "the default");
}

#[test]
fn unknown_knobs_and_wrong_values_are_errors() {
    let _turn = turn();
    let error = |list: &[(&str, &str)]| {
        let settings = Settings { set: pairs(list), ..Settings::default() };
        start(settings).expect_err("the setting is wrong").to_string()
    };
    let message = error(&[("accel.devicess", "1")]);
    assert!(message.contains("accel.devicess"), "{message}");
    let message = error(&[("accel.devices", "many")]);
    assert!(message.contains("accel.devices") && message.contains("many"), "{message}");
    let environment = pairs(&[("TENON_ACCEL_DEVICESS", "1")]);
    let error = start(Settings { environment, ..Settings::default() }).expect_err("no such knob");
    assert!(error.to_string().contains("TENON_ACCEL_DEVICESS"), "{error}");
    let environment = pairs(&[("TENON_ELSEWHERE_X", "1")]);
    start(Settings { environment, ..Settings::default() }).expect("a plugin that is not loaded");
}

/// Of this scope no plugin is loaded: what a program sets by name must be there.
#[test]
fn a_knob_of_a_plugin_that_is_not_there_is_an_error() {
    let _turn = turn();
    let settings = Settings { set: pairs(&[("elsewhere.x", "1")]), ..Settings::default() };
    let error = start(settings).expect_err("nobody declares it").to_string();
    assert!(error.contains("elsewhere.x"), "{error}");
}

fn knobs(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    b.op("ZooKnobs").name("knobs").build().map(|_| ())
}

fn seen_by_a_kernel(settings: Settings) -> String {
    let runtime = start(settings).expect("it starts");
    let fetched = run(&session(&runtime, knobs), &[], &["knobs"]).expect("a step");
    let texts = fetched[0].as_strings().expect("texts").into_iter();
    texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_kernel_reads_the_knobs_of_its_plugin() {
    let _turn = turn();
    assert_eq!(seen_by_a_kernel(Settings::default()), "true 42 0.5 hello");
    let set = pairs(&[("zoo_rust.ratio", "2.5"), ("zoo_rust.greeting", "good day")]);
    let environment = pairs(&[("TENON_ZOO_RUST_ANSWER", "7"), ("TENON_ZOO_RUST_RATIO", "9")]);
    let settings = Settings { set, environment, ..Settings::default() };
    assert_eq!(seen_by_a_kernel(settings), "true 7 2.5 good day");
}
