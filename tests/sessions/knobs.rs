//! Knobs, by environment and by settings, as kernels and devices see them.

use std::sync::Barrier;
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    Runtime, RuntimeError, RuntimeOptions, Session, SessionOptions,
    framework::{Code, device::base::DeviceBase},
    host::Settings,
};
use tenon_tests::{
    bench::texts,
    session::{library, run, session, session_with, turn},
    zoo::Language,
};

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
    texts(&fetched[0]).join(" ")
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

fn scope(language: Language) -> String {
    language.plugin().replace('-', "_")
}

fn over(language: Language, settings: Settings) -> Runtime {
    let files = [library("tenon_cpu"), language.zoo()];
    let options = RuntimeOptions { settings, ..RuntimeOptions::with_plugins(files) };
    let (runtime, report) = Runtime::new(options).expect("it starts");
    report.into_result().expect("both are plugins");
    runtime
}

/// A session with knobs of the zoo. The kernel of `made` reads them when it is created, that of `running` in each call.
fn with_knobs(
    runtime: &Runtime,
    language: Language,
    knobs: &[(&str, &str)],
) -> Result<Session, RuntimeError> {
    let named =
        |(name, value): &(&str, &str)| (format!("{}.{name}", scope(language)), (*value).to_owned());
    let knobs = knobs.iter().map(named).collect();
    let options = SessionOptions { knobs, ..SessionOptions::default() };
    // Wrong options are refused here, before there is a graph.
    drop(Session::new(runtime, options.clone())?);
    Ok(session_with(runtime, options, |b| {
        b.op(&language.op("KnobsAtCreate")).name("made").build()?;
        b.op(&language.op("Knobs")).name("running").build().map(|_| ())
    }))
}

fn seen(session: &Session, node: &str) -> String {
    texts(&run(session, &[], &[node]).expect("a step")[0]).join(" ")
}

#[test]
fn two_sessions_of_a_runtime_have_knobs_of_their_own() {
    let _turn = turn();
    for language in Language::ALL {
        let runtime = over(language, Settings::default());
        let of = |knobs: &[(&str, &str)]| with_knobs(&runtime, language, knobs).expect("knobs");
        let (first, second, plain) = (
            of(&[("answer", "7"), ("greeting", "good day")]),
            of(&[("answer", "8"), ("enabled", "false")]),
            of(&[]),
        );
        for _ in 0..2 {
            for node in ["made", "running"] {
                assert_eq!(seen(&first, node), "true 7 0.5 good day", "{language:?}");
                assert_eq!(seen(&second, node), "false 8 0.5 hello", "{language:?}");
                assert_eq!(seen(&plain, node), "true 42 0.5 hello", "{language:?}");
            }
            for session in [&first, &second, &plain] {
                session.refresh().expect("nothing has changed");
            }
        }
        assert_eq!(first.knobs().int(&scope(language), "answer"), Some(7));
        assert_eq!(plain.knobs().int(&scope(language), "answer"), Some(42));
    }
}

/// A library is in the process once, and both runtimes use it at the same time: its kernels, and its devices.
#[test]
fn two_runtimes_of_a_process_have_knobs_of_their_own() {
    let _turn = turn();
    for language in Language::ALL {
        let knob =
            |name: &str, value: &str| (format!("{}.{name}", scope(language)), value.to_owned());
        let with =
            |set: Vec<(String, String)>| over(language, Settings { set, ..Settings::default() });
        let (first, second) = (with(vec![knob("answer", "1")]), with(vec![knob("answer", "2")]));
        let session = |runtime: &Runtime| with_knobs(runtime, language, &[]).expect("no knobs");
        let (one, two) = (session(&first), session(&second));
        for node in ["made", "running"] {
            assert_eq!(seen(&one, node), "true 1 0.5 hello", "{language:?}");
            assert_eq!(seen(&two, node), "true 2 0.5 hello", "{language:?}");
        }
        drop((first, one));
        assert_eq!(seen(&session(&second), "running"), "true 2 0.5 hello", "{language:?}");
    }
    let with = |count: &str| {
        start(Settings { set: pairs(&[("accel.devices", count)]), ..Settings::default() })
    };
    let (first, second) = (with("1").expect("it starts"), with("3").expect("it starts"));
    assert_eq!((accel_devices(&first), accel_devices(&second)), (1, 3));
    assert!(first.load(Vec::<std::path::PathBuf>::new()).rejected.is_empty());
    assert_eq!((accel_devices(&first), accel_devices(&second)), (1, 3));
}

#[test]
fn a_knob_that_is_set_is_seen_by_what_is_opened_later() {
    let _turn = turn();
    let (runtime, other) =
        (over(Language::Rust, Settings::default()), over(Language::C, Settings::default()));
    let session =
        |runtime: &Runtime, language| with_knobs(runtime, language, &[]).expect("no knobs");
    let before = session(&runtime, Language::Rust);
    assert_eq!(seen(&before, "running"), "true 42 0.5 hello");
    runtime.plugins().set_knob("zoo_rust.answer", "6").expect("a knob");
    runtime.plugins().set_knob("zoo_rust.answer", "7").expect("a knob");
    assert_eq!(seen(&session(&runtime, Language::Rust), "running"), "true 7 0.5 hello");
    assert_eq!(seen(&session(&other, Language::C), "running"), "true 42 0.5 hello");
    for (knob, value) in [("zoo_rust.anser", "1"), ("zoo_rust.answer", "many")] {
        assert!(runtime.plugins().set_knob(knob, value).is_err(), "{knob} = {value} is wrong");
    }
    assert_eq!(runtime.plugins().knobs().int("zoo_rust", "answer"), Some(7));
}

/// Kernels of several sessions are made at the same time, each on its own thread.
#[test]
fn sessions_that_compile_at_once_do_not_see_each_other() {
    let _turn = turn();
    for language in Language::ALL {
        let runtime = over(language, Settings::default());
        let together = Barrier::new(4);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (runtime, together) = (&runtime, &together);
                scope.spawn(move || {
                    let answer = (100 + thread).to_string();
                    let session = with_knobs(runtime, language, &[("answer", &answer)]);
                    let session = session.expect("a knob");
                    for _ in 0..20 {
                        together.wait();
                        assert_eq!(seen(&session, "made"), format!("true {answer} 0.5 hello"));
                        session.refresh().expect("nothing has changed");
                    }
                });
            }
        });
    }
}

#[test]
fn a_session_s_knobs_go_over_options_and_set_goes_over_them() {
    let _turn = turn();
    for language in Language::ALL {
        let knob = |name: &str| format!("{}.{name}", scope(language));
        let settings = Settings {
            environment: vec![
                (format!("TENON_{}_ANSWER", scope(language)).to_uppercase(), "1".to_owned()),
                (format!("TENON_{}_RATIO", scope(language)).to_uppercase(), "0.125".to_owned()),
            ],
            options: vec![(knob("answer"), "2".to_owned()), (knob("greeting"), "2".to_owned())],
            set: vec![(knob("greeting"), "4".to_owned())],
        };
        let runtime = over(language, settings);
        let knobs = [("answer", "3"), ("greeting", "3")];
        let session = with_knobs(&runtime, language, &knobs).expect("knobs");
        assert_eq!(seen(&session, "made"), "true 3 0.125 4", "{language:?}");
        let plain = with_knobs(&runtime, language, &[]).expect("no knobs");
        assert_eq!(seen(&plain, "made"), "true 2 0.125 4", "{language:?}");
    }
}

/// What a kernel supports may depend on a knob: here it supports nothing while `ratio` is negative.
#[test]
fn supports_sees_the_knobs_of_the_session() {
    let _turn = turn();
    for language in Language::ALL {
        let runtime = over(language, Settings::default());
        let session = with_knobs(&runtime, language, &[("ratio", "-1")]).expect("a knob");
        let error = run(&session, &[], &["made"]).expect_err("the only kernel says no");
        assert_eq!(error.code(), Code::NOT_FOUND, "{error}");
        assert!(error.to_string().contains("supports says no: ratio is negative"), "{error}");
        let explained = session.explain(Some("made")).expect("explained");
        let kernels = explained[0].kernels.as_ref().expect("an ordinary op");
        assert!(kernels.winner.is_none(), "{language:?}: explain sees them too");
    }
}

#[test]
fn knobs_that_no_session_can_set_are_refused() {
    let _turn = turn();
    let runtime = over(Language::Rust, Settings::default());
    let refused = |knob: &str, value: &str| {
        let knobs = [(knob.to_owned(), value.to_owned())].into();
        let options = SessionOptions { knobs, ..SessionOptions::default() };
        match Session::new(&runtime, options) {
            Ok(_) => panic!("{knob} = {value} is wrong"),
            Err(error) => (error.code(), error.to_string()),
        }
    };
    let (code, text) = refused("zoo_rust.anser", "1");
    assert_eq!(code, Code::NOT_FOUND);
    assert_eq!(
        text,
        "unknown knob 'zoo_rust.anser' (session option): did you mean 'zoo_rust.answer'?"
    );
    let (code, text) = refused("zoo_rust.answer", "many");
    assert_eq!(code, Code::INVALID_ARGUMENT);
    assert_eq!(text, "knob 'zoo_rust.answer' (session option) is of type int, found 'many'");
    let (code, text) = refused("host.refuse_writable", "true");
    assert_eq!(code, Code::INVALID_ARGUMENT);
    assert_eq!(
        text,
        "knob 'host.refuse_writable' (session option) is read when plugins are loaded: set it for the runtime, \
         by its settings, --set or the environment"
    );
}
