//! What a call brings.

use std::sync::{Arc, Mutex};
use tenon_abi::DType;
use tenon_framework::{Code, Tensor};
use tenon_host::{
    call::{TraceSink, monotonic_ns},
    instance::{PreparedCall, call_once},
};
use tenon_tests::{
    bench::{Bench, elements, floats, scalar},
    zoo::Language,
};

#[test]
fn variadic_arguments() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = |n: i64, m: i64| bench.node(&language.op("Variadic")).attr("N", n).attr("M", m);
        let inputs = [floats(&[1.0]), floats(&[2.0, 3.0]), floats(&[10.0]), floats(&[20.0, 30.0])];
        let outputs = node(2, 2).call(&inputs).unwrap();
        let all: Vec<Vec<f32>> = outputs.iter().map(elements).collect();
        assert_eq!(all, [vec![61.0], vec![62.0, 63.0], vec![60.0]], "{language:?}");
        let outputs = node(1, 0).call(&inputs[..1]).unwrap();
        assert_eq!(elements::<f32>(&outputs[1]), [0.0], "an argument of no values");
    }
}

#[test]
fn type_list() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let types = vec![DType::FLOAT, DType::INT64, DType::BOOL];
        let node = bench.node(&language.op("TypeList")).attr("T", types);
        let outputs = node.call(&[floats(&[1.0, 2.0]), scalar(1i64), scalar(true)]).unwrap();
        assert_eq!(elements::<i64>(&outputs[0]), [8, 8, 1], "{language:?}");
    }
}

#[test]
fn slot_facts() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = bench.node(&language.op("SlotFacts")).attr("T", DType::INT16);
        let a = Tensor::from_slice(&[2, 3], &[0i16; 6]).unwrap();
        let facts = elements::<i64>(&node.call(&[a.clone(), a.clone()]).unwrap()[0]);
        assert_eq!(facts[..6], [5, 2, 0, 6, 12, 0], "{language:?}");
        let other = Tensor::from_slice(&[1], &[0i16]).unwrap();
        let apart = elements::<i64>(&node.call(&[a, other]).unwrap()[0]);
        // 0 says nothing; the same number says the same buffer.
        assert!(facts[6] == facts[7], "one tensor twice: {facts:?}");
        assert!(apart[6] == 0 || apart[6] != apart[7], "two tensors: {apart:?}");
    }
}

#[test]
fn step_facts() {
    for language in Language::ALL {
        let mut bench = Bench::zoo(language);
        bench.env.step.step_id = 77;
        let outputs = bench.node(&language.op("StepFacts")).call(&[]).unwrap();
        assert_eq!(elements::<i64>(&outputs[0]), [77, 0, 0], "{language:?}");
    }
}

#[test]
fn cancel_flag() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = bench.node(&language.op("CancelFlag"));
        assert_eq!(elements::<bool>(&node.call(&[]).unwrap()[0]), [false]);
        bench.env.cancellation.cancel();
        let error = node.call(&[]).unwrap_err();
        assert_eq!((error.code, &*error.message), (Code::CANCELLED, "the step is cancelled"));
    }
}

#[test]
fn deadline() {
    for language in Language::ALL {
        let mut bench = Bench::zoo(language);
        let op = language.op("Deadline");
        assert_eq!(elements::<i64>(&bench.node(&op).call(&[]).unwrap()[0]), [-1], "none");
        bench.env.step.deadline_ns = monotonic_ns() + 3_600_000_000_000;
        let left = elements::<i64>(&bench.node(&op).call(&[]).unwrap()[0])[0];
        assert!((3_000_000_000_000..=3_600_000_000_000).contains(&left), "{language:?}: {left}");
        bench.env.step.deadline_ns = 1;
        assert_eq!(elements::<i64>(&bench.node(&op).call(&[]).unwrap()[0]), [0], "past");
    }
}

#[test]
fn scratch() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = bench.node(&language.op("Scratch"));
        let instance = node.create().unwrap();
        for values in [&[1.0, 2.0, 3.0][..], &[], &[4.0; 10_000]] {
            let outputs = call_once(&instance, &[floats(values)], &bench.env).unwrap();
            let mut expected = values.to_vec();
            expected.reverse();
            assert_eq!(elements::<f32>(&outputs[0]), expected, "{language:?}");
        }
    }
}

#[derive(Default)]
struct Spans(Mutex<Vec<(String, String, u64, u64)>>);

impl TraceSink for Spans {
    fn span(&self, node: &str, name: &str, begin_ns: u64, end_ns: u64) {
        self.0.lock().unwrap().push((node.to_owned(), name.to_owned(), begin_ns, end_ns));
    }
}

/// A kernel adds its span only when a trace is asked for. A call without a graph asks for none, so that a span
/// that comes all the same would be an error here; tests of sessions see the span itself.
#[test]
fn trace_event() {
    for language in Language::ALL {
        let mut bench = Bench::zoo(language);
        let spans = Arc::new(Spans::default());
        bench.env.trace = Some(spans.clone());
        let node = bench.node(&language.op("Trace")).named("traced");
        let outputs = node.call(&[floats(&[1.5])]).unwrap();
        assert_eq!(elements::<f32>(&outputs[0]), [3.0], "{language:?}");
        for (node, name, begin, end) in spans.0.lock().unwrap().iter() {
            assert_eq!((&**node, &**name), ("traced", "zoo.double"));
            assert!(begin <= end);
        }
    }
}

#[test]
fn failure() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        for code in 1..=16 {
            let message = format!("failed with {code}: \u{fc}");
            let node = bench.node(&language.op("Failure")).attr("code", i64::from(code));
            let error = node.attr("message", &*message).call(&[]).unwrap_err();
            assert_eq!((error.code, error.message), (Code(code), message), "{language:?}");
        }
        let node = bench.node(&language.op("Failure")).attr("code", 0i64).attr("message", "");
        assert_eq!(node.call(&[]).unwrap_err().code, Code::INVALID_ARGUMENT, "create refuses");
    }
}

#[test]
fn panics_become_errors() {
    let bench = Bench::zoo(Language::Rust);
    for (when, said) in [
        ("create", "the kernel's constructor panicked: zoo panic in create"),
        ("compute", "the kernel panicked: zoo panic in compute"),
        ("parallel", "parallel work panicked: zoo panic in parallel work"),
    ] {
        let error = bench.node("ZooPanic").attr("when", when).call(&[]).unwrap_err();
        assert_eq!(error.code, Code::INTERNAL, "{error}");
        assert!(error.message.starts_with(said), "{error}");
        assert!(error.message.contains("compute.rs:"), "the place of the panic: {error}");
    }
}

#[test]
fn a_kernel_is_called_any_number_of_times() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let instance = bench.node(&language.op("Scratch")).create().unwrap();
        let inputs = [floats(&[1.0, 2.0])];
        let mut call = PreparedCall::new(&instance, &inputs, &bench.env).unwrap();
        for _ in 0..100 {
            call.run().unwrap();
            assert_eq!(elements::<f32>(&call.outputs()[0]), [2.0, 1.0], "{language:?}");
        }
    }
}
