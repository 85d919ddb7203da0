//! Feeds libFuzzer's bytes to the calls that tests/graphs/op_fuzz/calls.rs makes of seeds.

#![no_main]

use std::path::Path;
use tenon_runtime::{Runtime, RuntimeOptions};
use tenon_testkit::{
    fuzz::{FAMILIES, Fuzzer, PLUGINS},
    host::library,
};

thread_local! {
    static FUZZER: Fuzzer = fuzzer();
}

fn fuzzer() -> Fuzzer {
    let plugins = PLUGINS.map(library);
    let options = RuntimeOptions { threads: Some(1), ..RuntimeOptions::with_plugins(plugins) };
    let (runtime, report) = Runtime::new(options).expect("the runtime starts");
    report.into_result().expect("every library is a plugin");
    let mut fuzzer = Fuzzer::new(&runtime, &FAMILIES).expect("the CPU is a device");
    for family in FAMILIES {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../goldens").join(family);
        fuzzer.learn(&folder).expect("golden data can be read");
    }
    fuzzer
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    FUZZER.with(|fuzzer| {
        let Some(call) = fuzzer.call(data) else { return };
        if let Err(fault) = fuzzer.judge(&call) {
            panic!("{fault}\n{call}");
        }
    });
});
