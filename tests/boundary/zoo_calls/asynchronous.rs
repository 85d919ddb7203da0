//! Completion from a foreign thread, and waiting that cancellation ends.

use std::{
    thread,
    time::{Duration, Instant},
};
use tenon_framework::Code;
use tenon_host::instance::PreparedCall;
use tenon_tests::{
    bench::{Bench, elements, floats},
    zoo::Language,
};

#[test]
fn asynchronous_kernel() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let instance = bench.node(&language.op("Async")).create().unwrap();
        // The host waits for a call of another process as for one that blocks.
        assert_eq!(
            (instance.is_async(), instance.is_blocking()),
            (!super::ISOLATED, super::ISOLATED)
        );
        let inputs = [floats(&[1.0, 2.5])];
        let mut call = PreparedCall::new(&instance, &inputs, &bench.env).unwrap();
        for _ in 0..20 {
            call.run().unwrap();
            assert_eq!(elements::<f32>(&call.outputs()[0]), [2.0, 5.0], "{language:?}");
        }
        let failing = bench.node(&language.op("Async")).attr("mode", "error");
        let error = failing.call(&inputs).unwrap_err();
        assert_eq!((error.code, &*error.message), (Code::ABORTED, "zoo error on a thread"));
    }
}

#[test]
fn a_call_that_a_thread_loses_fails() {
    let bench = Bench::zoo(Language::Rust);
    for mode in ["panic", "drop"] {
        let node = bench.node("ZooAsync").attr("mode", mode);
        let error = node.call(&[floats(&[1.0])]).unwrap_err();
        assert_eq!(error.code, Code::INTERNAL, "{mode}: {error}");
        assert!(error.message.contains("without finishing it"), "{mode}: {error}");
    }
}

#[test]
fn blocking_kernel_is_woken() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = bench.node(&language.op("Blocking"));
        let instance = node.create().unwrap();
        assert!(instance.is_blocking());
        let cancellation = bench.env.cancellation.clone();
        let canceller = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            cancellation.cancel();
        });
        let begin = Instant::now();
        let error = PreparedCall::new(&instance, &[], &bench.env).unwrap().run().unwrap_err();
        canceller.join().unwrap();
        assert_eq!((error.code, &*error.message), (Code::CANCELLED, "woken by cancellation"));
        assert!(begin.elapsed() < Duration::from_secs(20), "{language:?}: woken, not timed out");
        // Already cancelled: the callback runs at once.
        let error = node.call(&[]).unwrap_err();
        assert_eq!(error.code, Code::CANCELLED, "{language:?}: {error}");
    }
}

#[test]
fn blocking_kernel_gives_up() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = bench.node(&language.op("Blocking")).attr("limit_ms", 5i64);
        assert_eq!(node.call(&[]).unwrap_err().code, Code::DEADLINE_EXCEEDED, "{language:?}");
    }
}
