//! Instances and single calls.

use super::*;
use crate::{
    testing::{Bench, FORMS, attr},
    variants::encode,
};
use std::sync::atomic::Ordering;
use tenon_framework::{Code, PartialShape, Shape, registry::SupportAnswer};

fn x() -> Tensor {
    Tensor::from_slice(&[3], &[1.0f32, 2.0, 3.0]).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.as_slice::<f32>().unwrap().to_vec()
}

#[test]
fn a_prepared_call_runs_again_and_outputs_that_are_held_stay() {
    let bench = Bench::host();
    let instance = bench.instance("HostTestDouble", &[]).unwrap();
    let mut call = PreparedCall::new(&instance, &[x()], &bench.env).unwrap();
    call.run().unwrap();
    let first = call.outputs().remove(0);
    call.run().unwrap();
    let second = call.outputs().remove(0);
    assert_ne!(first.buffer().data(), second.buffer().data(), "the first is still held");
    drop(first);
    drop(call);
    assert_eq!(values(&second), [2.0, 4.0, 6.0]);
}

#[test]
fn a_call_is_plain_where_its_output_is_planned_in_the_shape_of_its_input() {
    let bench = Bench::host();
    let create = |spec: &KernelSpec<'_>| KernelInstance::create(spec).unwrap();
    let instance = bench.with_spec("HostTestDouble", "plain", &[], &[], create);
    let mut call = PreparedCall::new(&instance, &[x()], &bench.env).unwrap();
    let mut planned = |dims: &[&[i64]]| {
        let shapes: Vec<Shape> = dims.iter().map(|dims| Shape::new(dims).unwrap()).collect();
        call.run_planned(&shapes)?;
        let first = values(&call.outputs()[0]);
        call.repeat(1)?;
        Ok::<_, KernelError>([first, values(&call.outputs()[0])])
    };
    let (doubled, negated) = (vec![2.0, 4.0, 6.0], vec![-1.0, -2.0, -3.0]);
    assert_eq!(planned(&[&[3]]).unwrap(), [doubled.clone(), doubled.clone()]);
    // What the kernel allocated in the first run is still there in the second.
    assert_eq!(planned(&[]).unwrap(), [negated.clone(), doubled.clone()]);
    assert_eq!(planned(&[&[1, 3]]).unwrap(), [negated, doubled]);
    let error = planned(&[&[3], &[3]]).unwrap_err();
    assert_eq!(error.message, "output 1 does not exist: the node has 1");
}

/// A kernel that asks for gradual underflow gets it for its own arithmetic and on other threads
/// that it uses; other calls still flush denormals.
#[test]
fn a_kernel_that_asks_for_denormals_computes_with_them() {
    let bench = Bench::host();
    let create = |spec: &KernelSpec<'_>| KernelInstance::create(spec).unwrap();
    let ones = Tensor::from_slice(&[64], &[1.0f32; 64]).unwrap();
    for (label, expected) in [("flushed", 0.0), ("gradual", 1.0)] {
        let instance = bench.with_spec("HostTestDouble", label, &[], &[], create);
        assert_eq!(instance.def().keeps_denormals, expected == 1.0);
        let outputs = call_once(&instance, std::slice::from_ref(&ones), &bench.env).unwrap();
        assert_eq!(values(&outputs[0]), [expected; 64], "{label}");
        let mut call =
            PreparedCall::new(&instance, std::slice::from_ref(&ones), &bench.env).unwrap();
        call.run().unwrap();
        call.repeat(2).unwrap();
        assert_eq!(values(&call.outputs()[0]), [expected; 64], "{label}");
    }
}

#[test]
fn a_call_is_repeated_into_the_outputs_that_are_there() {
    let bench = Bench::host();
    let instance = bench.instance("HostTestDouble", &[]).unwrap();
    let mut call = PreparedCall::new(&instance, &[x()], &bench.env).unwrap();
    call.run().unwrap();
    let data = call.slots()[0].data;
    call.repeat(5).unwrap();
    assert_eq!(call.slots()[0].data, data);
    assert_eq!(values(&call.outputs()[0]), [2.0, 4.0, 6.0]);
    call.repeat(0).unwrap();
}

#[test]
fn a_repeated_call_waits_for_asynchronous_kernels_and_streams_and_stops_at_an_error() {
    let bench = Bench::host();
    let later = |mode: &str, calls: u64| {
        let instance = bench.instance("HostTestLater", &[attr("mode", mode)]).unwrap();
        let mut call = PreparedCall::new(&instance, &[x()], &bench.env).unwrap();
        let first = call.run();
        first.and_then(|()| call.repeat(calls)).map(|()| values(&call.outputs()[0]))
    };
    assert_eq!(later("thread", 3).unwrap(), [2.0, 4.0, 6.0]);
    let instance = bench.instance("HostTestLater", &[attr("mode", "error")]).unwrap();
    let mut call = PreparedCall::new(&instance, &[x()], &bench.env).unwrap();
    assert_eq!(
        call.repeat(3).unwrap_err(),
        KernelError::invalid_argument("as asked for: x is [3]")
    );
    let bench = Bench::with_fake_device();
    let instance = bench.instance("HostTestDouble", &[]).unwrap();
    let mut call = PreparedCall::new(&instance, &[x()], &bench.env).unwrap();
    call.run().unwrap();
    call.repeat(4).unwrap();
    assert_eq!(values(&call.host_outputs().unwrap()[0]), [2.0, 4.0, 6.0]);
}

#[test]
fn a_donated_input_is_taken_over_and_a_held_one_is_not() {
    let bench = Bench::host();
    let instance = bench.instance("HostTestDouble", &[]).unwrap();
    let (outputs, taken) = call_donating(&instance, vec![x()], &bench.env).unwrap();
    assert_eq!((values(&outputs[0]), &taken[..]), (vec![2.0, 4.0, 6.0], &[Some(0)][..]));
    let held = x();
    let (outputs, taken) = call_donating(&instance, vec![held.clone()], &bench.env).unwrap();
    assert_eq!((values(&outputs[0]), &taken[..]), (vec![2.0, 4.0, 6.0], &[None][..]));
    assert_eq!(values(&held), [1.0, 2.0, 3.0]);
}

#[test]
fn variants_are_changed_in_place_where_nobody_else_holds_them() {
    let bench = Bench::host();
    let make = || bench.call("HostTestLetters", &[], &[]).unwrap().remove(0);
    let texts = |tensor: &Tensor| -> Vec<Vec<u8>> {
        encode(tensor).unwrap().into_iter().map(|value| value.metadata).collect()
    };
    let create = |spec: &KernelSpec<'_>| KernelInstance::create(spec).unwrap();
    for (label, expected) in [("", Some(0)), ("looks", None)] {
        let instance = bench.with_spec("HostTestLetter", label, &[], &[], create);
        let (outputs, taken) = call_donating(&instance, vec![make()], &bench.env).unwrap();
        assert_eq!(
            (texts(&outputs[0]), &taken[..]),
            (vec![b"a0".into(), b"b1".into()], &[expected][..])
        );
        let held = make();
        let (outputs, taken) = call_donating(&instance, vec![held.clone()], &bench.env).unwrap();
        assert_eq!(
            (texts(&outputs[0]), &taken[..]),
            (vec![b"a0".into(), b"b1".into()], &[None][..])
        );
        assert_eq!(texts(&held), [b"a", b"b"]);
    }
    let numbers = bench.call("HostTestLetter", &[], &[x()]).unwrap_err();
    assert_eq!(numbers.code, Code::INVALID_ARGUMENT, "{numbers}");
}

#[test]
fn asynchronous_kernels_are_waited_for_however_they_end() {
    let bench = Bench::host();
    let end = |mode: &str| bench.call("HostTestLater", &[attr("mode", mode)], &[x()]);
    assert_eq!(values(&end("thread").unwrap()[0]), [2.0, 4.0, 6.0]);
    assert_eq!(values(&end("now").unwrap()[0]), [2.0, 4.0, 6.0]);
    assert_eq!(end("error").unwrap_err(), KernelError::invalid_argument("as asked for: x is [3]"));
    for mode in ["panic", "drop"] {
        let error = end(mode).unwrap_err();
        assert_eq!(error.code, Code::INTERNAL);
        assert!(error.message.contains("without finishing it"), "{}", error.message);
    }
}

#[test]
fn on_a_stream_the_call_waits_and_copies_back() {
    let bench = Bench::with_fake_device();
    let outputs = bench.call("HostTestDouble", &[], &[x()]).unwrap();
    assert!(outputs[0].is_on_host());
    assert_eq!(values(&outputs[0]), [2.0, 4.0, 6.0]);
    let device = bench.device.as_ref().unwrap();
    let stats = device.memory_stats(tenon_abi::MemoryKind::DEVICE).unwrap();
    assert_eq!((stats.live_bytes, stats.live_count), (0, 0));
}

#[test]
fn a_device_that_computes_in_host_memory_copies_nothing() {
    let bench = Bench::on("LOOSE:0");
    let instance = bench.instance("HostTestDouble", &[]).unwrap();
    let (_, taken) = call_donating(&instance, vec![x()], &bench.env).unwrap();
    // The global allocator provides the tensor, which is ordinary host memory.
    assert_eq!(taken, [Some(0)]);
}

#[test]
fn wrong_inputs_are_refused_before_the_kernel_runs() {
    let bench = Bench::host();
    let instance = bench.instance("HostTestDouble", &[]).unwrap();
    let error = call_once(&instance, &[], &bench.env).unwrap_err();
    assert!(error.message.ends_with("takes 1 inputs, found 0"), "{}", error.message);
    let wrong = Tensor::scalar(1i32).unwrap();
    let error = call_once(&instance, &[wrong], &bench.env).unwrap_err();
    assert!(error.message.ends_with("input 0 is float, found int32"), "{}", error.message);
}

#[test]
fn an_output_left_unset_is_the_kernel_s_error() {
    let bench = Bench::host();
    let create = |spec: &KernelSpec<'_>| KernelInstance::create(spec).unwrap();
    let instance = bench.with_spec("HostTestDouble", "forgetful", &[], &[], create);
    let error = call_once(&instance, &[x()], &bench.env).unwrap_err();
    assert_eq!(error.code, Code::INTERNAL);
    assert!(error.message.ends_with("left output 0 unset"), "{}", error.message);
}

#[test]
fn packed_forms_are_shared_and_go_with_the_last_instance() {
    let bench = Bench::host();
    let cache = PackCache::new();
    let factor = Tensor::from_slice(&[1], &[3.0f32]).unwrap();
    let make = || {
        let mut instance = bench.instance("HostTestScale", &[]).unwrap();
        assert!(!instance.prepack(0, &factor, &cache, "node/x").unwrap(), "declined");
        assert!(instance.prepack(1, &factor, &cache, "node/factor").unwrap());
        assert_eq!(instance.packed_bytes(), 4);
        instance
    };
    let (first, second) = (make(), make());
    assert_eq!((FORMS.load(Ordering::SeqCst), cache.len()), (1, 1));
    // The kernel computes from the packed form: the call's constant differs.
    let other = Tensor::from_slice(&[1], &[100.0f32]).unwrap();
    let outputs = call_once(&second, &[x(), other], &bench.env).unwrap();
    assert_eq!(values(&outputs[0]), [3.0, 6.0, 9.0]);
    drop(first);
    assert_eq!(FORMS.load(Ordering::SeqCst), 1);
    drop(second);
    assert_eq!((FORMS.load(Ordering::SeqCst), cache.is_empty()), (0, true));
    let mut instance = bench.instance("HostTestScale", &[]).unwrap();
    let error = instance.prepack(1, &x(), &cache, "node/bad").unwrap_err();
    assert_eq!(error.message, "factor: expected one element");
}

#[test]
fn supports_is_answered_with_its_reason() {
    let bench = Bench::host();
    let ask = |shapes: &[PartialShape], limit: i64| {
        let attrs = [attr("limit", limit)];
        bench.with_spec("HostTestScale", "", &attrs, shapes, |spec| spec.supports().unwrap())
    };
    let matrix = PartialShape::new(&[-1, 2]).unwrap();
    assert_eq!(ask(&[], 4), SupportAnswer::DependsOnShapes);
    assert_eq!(ask(&[PartialShape::UNKNOWN], 4), SupportAnswer::DependsOnShapes);
    assert_eq!(ask(std::slice::from_ref(&matrix), 4), SupportAnswer::Yes);
    assert_eq!(ask(&[matrix], 1), SupportAnswer::No("rank 2 is above 1".to_owned()));
}

/// If a kernel ignores that its loop was cut short, the outputs of its call are not published.
#[test]
fn outputs_of_a_loop_that_was_cut_short_are_not_published() {
    let mut bench = Bench::host();
    let instance = bench.instance("HostTestLoop", &[]).unwrap();
    let x = Tensor::from_slice(&[400], &[1.0f32; 400]).unwrap();
    bench.env.step.deadline_ns = crate::call::monotonic_ns() + 50_000_000;
    let error = call_once(&instance, std::slice::from_ref(&x), &bench.env).unwrap_err();
    assert_eq!(error.code, Code::DEADLINE_EXCEEDED);
    assert_eq!(error.message, "the deadline passed while the kernel computed");
    let bench = Bench::host();
    bench.env.cancellation.cancel();
    let error = call_once(&instance, std::slice::from_ref(&x), &bench.env).unwrap_err();
    assert_eq!(error.code, Code::CANCELLED);
    assert_eq!(error.message, "the step was cancelled while the kernel computed");
    let whole = call_once(&instance, &[x], &Bench::host().env).unwrap();
    assert!(values(&whole[0]).iter().all(|&y| y == 2.0));
}
