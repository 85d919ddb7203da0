//! Feeds libFuzzer's bytes to the requests that tests/process_wide/requests.rs makes of seeds.

#![no_main]

use tenon_cluster::rogue::Stage;
use tenon_runtime::{Runtime, RuntimeOptions, Worker, host::Settings};
use tenon_testkit::host::library;

/// The memory of tensors, in MiB.
const LIMIT: &str = "256";

thread_local! {
    static STAGE: Stage = stage();
}

fn stage() -> Stage {
    let plugins = ["tenon-cpu", "tenon-data"].map(library);
    let set = [("host.memory_limit_mb".to_owned(), LIMIT.to_owned())].into();
    let options = RuntimeOptions {
        threads: Some(2),
        settings: Settings { set, ..Settings::default() },
        ..RuntimeOptions::with_plugins(plugins)
    };
    let (runtime, report) = Runtime::new(options).expect("the runtime starts");
    report.into_result().expect("every library is a plugin");
    Stage::new(Worker::new(&runtime))
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    STAGE.with(|stage| {
        if let Err(fault) = stage.play(data) {
            panic!("{fault}");
        }
    });
});
