//! State services, used by kernels through their contexts.

use super::*;
use crate::{
    instance::PreparedCall,
    resources::VARIABLE_TYPE,
    testing::{Bench, FAKE, Fake, attr},
};
use std::sync::atomic::Ordering;
use tenon_framework::{device::DeviceName, resource::release_raw};

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len() as i64], values).unwrap()
}

fn read(bench: &Bench) -> Vec<f32> {
    let resource = bench.env.resources.of("").find("", "v", VARIABLE_TYPE).unwrap();
    let value = Variable::of(&resource).unwrap().value().unwrap();
    value.as_slice::<f32>().unwrap().to_vec()
}

#[test]
fn a_variable_is_assigned_and_updated_by_different_kernels() {
    let bench = Bench::host();
    let initial = floats(&[1.0, 2.0]);
    let inputs = [initial.clone()];
    let handle = bench.call("HostTestVariable", &[], &inputs).unwrap().remove(0);
    drop(inputs);
    assert_eq!(read(&bench), [1.0, 2.0]);
    let x = floats(&[10.0]);
    let before = bench.call("HostTestAdd", &[], &[handle.clone(), x.clone()]).unwrap();
    assert_eq!(read(&bench), [11.0, 12.0]);
    // The returned and the assigned tensors keep the old value: the update copied.
    assert_eq!(before[0].as_slice::<f32>().unwrap(), &[1.0, 2.0]);
    assert_eq!(initial.as_slice::<f32>().unwrap(), &[1.0, 2.0]);
    bench.call("HostTestAdd", &[], &[handle, x]).unwrap();
    assert_eq!(read(&bench), [21.0, 22.0]);
}

#[test]
fn a_handle_keeps_the_variable_and_a_wrong_one_is_refused() {
    let bench = Bench::host();
    let handle = bench.call("HostTestVariable", &[], &[floats(&[1.0])]).unwrap().remove(0);
    assert_eq!(bench.env.resources.clear(""), 1);
    let outputs = bench.call("HostTestAdd", &[], &[handle, floats(&[1.0])]).unwrap();
    assert_eq!(outputs[0].as_slice::<f32>().unwrap(), &[1.0]);
    let memory: Arc<dyn Memory> = HostMemory::shared().clone();
    let shape = tenon_framework::Shape::SCALAR;
    let empty = Tensor::allocate(&memory, DType::RESOURCE, shape).unwrap();
    let error = bench.call("HostTestAdd", &[], &[empty, floats(&[1.0])]).unwrap_err();
    assert_eq!(error.message, "input 0: expected the handle of a variable");
}

#[test]
fn a_plugin_s_resource_is_made_once_and_a_failing_factory_is_heard() {
    let bench = Bench::host();
    let error = bench.call("HostTestCounter", &[attr("fail", true)], &[]).unwrap_err();
    assert_eq!(error.code, Code::INVALID_ARGUMENT);
    for expected in [1i64, 2] {
        let outputs = bench.call("HostTestCounter", &[], &[]).unwrap();
        assert_eq!(outputs[0].as_slice::<i64>().unwrap(), &[expected]);
    }
    assert!(bench.env.resources.of("").remove("", "counter", "host-test.Counter"));
    let outputs = bench.call("HostTestCounter", &[], &[]).unwrap();
    assert_eq!(outputs[0].as_slice::<i64>().unwrap(), &[1]);
}

#[test]
fn a_reference_shows_the_variable_also_when_its_container_is_cleared() {
    let bench = Bench::host();
    bench.call("HostTestVariable", &[], &[floats(&[4.0])]).unwrap();
    let instance = bench.instance("HostTestRef", &[]).unwrap();
    let mut call = PreparedCall::new(&instance, &[], &bench.env).unwrap();
    call.run().unwrap();
    let slot = call.slots()[0];
    assert!(slot.data.is_null() && slot.flags & slot_flags::REF != 0);
    assert_eq!(bench.env.resources.clear(""), 1);
    let (mut shown, mut value) = (Slot::EMPTY, Value::default());
    let step = &bench.env.cancellation;
    // SAFETY: the slot of a reference, of a step that has not ended.
    unsafe { dereference(&slot, &mut shown, &mut value, step) }.unwrap();
    let tensor = Value::tensor(&shown).unwrap();
    assert_eq!(tensor.as_slice::<f32>().unwrap(), &[4.0]);
    value.release();
    assert!(!tensor.buffer().is_unique(), "the step has the variable");
    bench.env.end_step(true);
    assert!(tensor.buffer().is_unique(), "nothing has it any more");
    let plain = tensor.slot();
    // SAFETY: a filled slot that is not a reference.
    let error = unsafe { dereference(&plain, &mut shown, &mut value, step) }.unwrap_err();
    assert_eq!(error.message, "expected a variable, found none");
}

#[test]
fn a_variable_without_a_value_takes_that_of_the_output_that_becomes_its_reference() {
    let bench = Bench::host();
    let instance = bench.instance("HostTestRef", &[]).unwrap();
    let mut call = PreparedCall::new(&instance, &[], &bench.env).unwrap();
    call.run().unwrap();
    assert_eq!(read(&bench), [9.0]);
    bench.call("HostTestVariable", &[], &[floats(&[4.0])]).unwrap();
    call.run().unwrap();
    assert_eq!(read(&bench), [4.0], "a value that is there stays");
}

/// A variable is read or replaced by work on a stream; `act` receives the call and the variable.
fn stays_until_the_stream_is_done(act: unsafe fn(*mut CallRecord, *mut RawVariable) -> Code) {
    let bench = Bench::host();
    let device = bench.devices.find(&DeviceName::local(FAKE, 0)).unwrap();
    let memory = device.ordinary_memory();
    let first = copy_tensor(&floats(&[1.0]), None, &memory, Some(&*device)).unwrap();
    let on_device = Bench { device: Some(device), ..bench };
    let instance = on_device.instance("HostTestDouble", &[]).unwrap();
    let env = &on_device.env;
    let variable = env.resources.of("").variable("", "v", DType::FLOAT).unwrap();
    Variable::of(&variable).unwrap().set(Some(first.clone())).unwrap();
    let inputs = [floats(&[2.0])];
    let mut call = PreparedCall::new(&instance, &inputs, env).unwrap();
    call.run().unwrap();
    let (record, stream) = (call.planned().record, call.planned().stream);
    let raw = variable.clone().into_raw();
    // SAFETY: the record of a call that has not ended, and a live variable that nothing else uses.
    let code = unsafe { act(record, raw.cast()) };
    assert!(code.is_ok());
    Variable::of(&variable).unwrap().set(None).unwrap();
    assert!(!first.buffer().is_unique(), "the step has it");
    env.release_kept(Some(std::ptr::null_mut()));
    assert!(!first.buffer().is_unique(), "that was another stream");
    env.release_kept(Some(stream));
    assert!(first.buffer().is_unique());
    // SAFETY: the reference that was given away above.
    unsafe { release_raw(raw) };
}

/// Work enqueued before an assignment to a variable may still use the former value.
#[test]
fn a_value_that_is_replaced_on_a_stream_stays_until_the_stream_is_done() {
    // SAFETY: the arguments come from the caller, as the entry requires.
    stays_until_the_stream_is_done(|record, variable| unsafe {
        assign_variable(record, variable, 0)
    });
}

/// Work that a call enqueues may read a variable after another step has replaced its value.
#[test]
fn a_value_that_is_read_on_a_stream_stays_until_the_stream_is_done() {
    stays_until_the_stream_is_done(|record, variable| {
        let mut value = Slot::EMPTY;
        // SAFETY: the arguments come from the caller, as the entry requires; the result pointer is
        // valid for writes.
        unsafe { read_variable(record, variable, &mut value) }
    });
}

/// How often streams of a fake device were waited for.
fn waits(bench: &Bench) -> usize {
    let device = bench.device.as_ref().expect("a fake device");
    // SAFETY: an open device of this type, linked into this library.
    let fake = unsafe { tenon_author::device::device_of::<Fake>(device.state()) };
    fake.log.synchronised.load(Ordering::Relaxed)
}

#[test]
fn a_call_waits_for_the_stream_of_another_that_writes_the_variable() {
    let bench = Bench::with_fake_device();
    let memory = bench.device.as_ref().expect("a fake device").ordinary_memory();
    let device = bench.device.clone().expect("a fake device");
    let first = copy_tensor(&floats(&[1.0]), None, &memory, Some(&*device)).unwrap();
    let variable = bench.env.resources.of("").variable("", "v", DType::FLOAT).unwrap();
    Variable::of(&variable).unwrap().set(Some(first)).unwrap();
    let instance = bench.instance("HostTestDouble", &[]).unwrap();
    let inputs = [floats(&[2.0])];
    let mut writer = PreparedCall::new(&instance, &inputs, &bench.env).unwrap();
    let mut reader = PreparedCall::new(&instance, &inputs, &bench.env).unwrap();
    writer.run().unwrap();
    reader.run().unwrap();
    let raw: *mut RawVariable = variable.clone().into_raw().cast();
    // How often a call for the lock of the variable waits for a stream.
    let waits_of = |record: *mut CallRecord| {
        let before = waits(&bench);
        // SAFETY: the record of a call that has not ended, and a live variable.
        unsafe {
            assert!(lock_variables(record, &raw, 1).is_ok());
            unlock(record, &raw, 1);
        }
        waits(&bench) - before
    };
    let (own, other) = (writer.planned(), reader.planned());
    let (record, stream, other) = (own.record, own.stream, other.record);
    assert_eq!(waits_of(other), 0, "nobody writes it");
    let mut value = Slot::EMPTY;
    // SAFETY: as above; the call has locked the variable, and the result pointer is valid for writes.
    unsafe {
        assert!(lock_variables(record, &raw, 1).is_ok());
        assert!(update_variable(record, raw, &mut value).is_ok());
        unlock(record, &raw, 1);
    }
    assert_eq!((waits_of(record), waits_of(other)), (0, 1), "its own stream is in order");
    bench.env.release_kept(Some(stream));
    assert_eq!(waits_of(other), 0, "the stream is done");
    // SAFETY: the reference that was given away above.
    unsafe { release_raw(raw.cast()) };
}

#[test]
fn variants_of_any_type_are_encoded_and_made_again_by_kernels() {
    let bench = Bench::host();
    let crates = bench.call("HostTestCrates", &[], &[floats(&[1.0, 2.5])]).unwrap();
    let stored = bench.call("HostTestStored", &[], &crates).unwrap().remove(0);
    assert_eq!(stored.shape().dims(), [2]);
    let encoded = crate::variants::encode(&stored).unwrap();
    assert_eq!((&*encoded[0].type_name, &*encoded[0].metadata), ("test.Crate", &b"one"[..]));
    assert_eq!(encoded[0].tensors[0].as_slice::<f32>().unwrap(), [1.0, 2.5]);
    assert_eq!(encoded[1].type_name, "", "an element without a value stays one");
}

#[test]
fn a_variant_that_cannot_be_made_is_refused_with_what_is_wrong() {
    let bench = Bench::host();
    let made = |type_name: &'static str, bytes: &'static str| {
        let attrs = [attr("type_name", type_name), attr("bytes", bytes)];
        bench.call("HostTestMade", &attrs, &[]).unwrap_err()
    };
    let error = made("test.Nobody", "one");
    assert_eq!(error.code, Code::NOT_FOUND);
    assert!(error.message.contains("no plugin has registered"), "{}", error.message);
    let error = made("test.Crate", "two");
    assert_eq!(error.code, Code::INVALID_ARGUMENT);
    assert!(error.message.contains("expected one tensor"), "{}", error.message);
    let error = made("test.Crate", "one");
    assert!(error.message.contains("expected more than 0 tensors"), "{}", error.message);
    // A type without `decode` is not registered.
    let letters = bench.call("HostTestLetters", &[], &[]).unwrap();
    let error = bench.call("HostTestStored", &[], &letters).unwrap_err();
    assert_eq!(error.code, Code::NOT_FOUND);
    // Steps without a registry have no types.
    let mut bench = Bench::host();
    bench.env.resources = Arc::new(crate::resources::Resources::new());
    let attrs = [attr("type_name", "test.Crate"), attr("bytes", "one")];
    let error = bench.call("HostTestMade", &attrs, &[]).unwrap_err();
    assert_eq!(error.code, Code::UNIMPLEMENTED);
}
