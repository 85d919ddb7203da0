//! Feeds libFuzzer's bytes to the graphs that tests/graphs/graph_passes makes of seeds.

#![no_main]

use tenon_runtime::{Runtime, RuntimeOptions};
use tenon_testkit::{fuzz::passes::Case, host::library};

thread_local! {
    static RUNTIME: Runtime = runtime();
}

fn runtime() -> Runtime {
    let plugins = [library("tenon-cpu")];
    let options = RuntimeOptions { threads: Some(1), ..RuntimeOptions::with_plugins(plugins) };
    let (runtime, report) = Runtime::new(options).expect("the runtime starts");
    report.into_result().expect("every library is a plugin");
    runtime
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    RUNTIME.with(|runtime| {
        let Some(case) = Case::new(&runtime.registry(), data) else { return };
        if let Err(fault) = case.judge(runtime) {
            panic!("{fault}\n{case}");
        }
    });
});
