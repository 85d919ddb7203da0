//! Feeds libFuzzer's bytes to the changes of graphs that tests/graphs/op_fuzz/graphs.rs makes of seeds.

#![no_main]

use std::path::Path;
use tenon_runtime::{Runtime, RuntimeOptions};
use tenon_testkit::{fuzz::graphs::GraphFuzzer, host::library};

thread_local! {
    static FUZZER: GraphFuzzer = fuzzer();
}

fn fuzzer() -> GraphFuzzer {
    let plugins = [library("tenon-cpu")];
    let options = RuntimeOptions { threads: Some(1), ..RuntimeOptions::with_plugins(plugins) };
    let (runtime, report) = Runtime::new(options).expect("the runtime starts");
    report.into_result().expect("every library is a plugin");
    let mut fuzzer = GraphFuzzer::new(runtime);
    for folder in ["graphs", "frozen"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../goldens").join(folder);
        fuzzer.learn(&folder).expect("golden graphs can be read");
    }
    fuzzer
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    FUZZER.with(|fuzzer| {
        let mutant = fuzzer.mutant(data);
        if let Err(fault) = fuzzer.judge(&mutant) {
            panic!("{fault}\n{mutant:?}");
        }
    });
});
