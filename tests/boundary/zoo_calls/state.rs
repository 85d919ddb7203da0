//! State that outlives a call.

use std::sync::{Mutex, PoisonError};
use tenon_abi::{Slot, slot_flags};
use tenon_framework::{Code, Tensor};
use tenon_host::{
    call::{CallFrame, StepEnv, Value},
    instance::{KernelInstance, PreparedCall, call_once},
};
use tenon_tests::{
    bench::{Bench, elements, floats, scalar},
    zoo::{Language, plugin},
};

/// Held by tests that count living counters: the count is the process's.
static COUNTERS: Mutex<()> = Mutex::new(());

#[test]
fn counter() {
    let _alone = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let next = |name: &str, container: &str, env: &StepEnv| {
            let node = bench.node(&language.op("CounterNext")).attr("shared_name", name);
            let instance = node.attr("container", container).create().unwrap();
            let outputs = call_once(&instance, &[], env).unwrap();
            (elements::<i64>(&outputs[0])[0], elements::<i64>(&outputs[1])[0])
        };
        let env = &bench.env;
        assert_eq!(next("a", "", env), (1, 1), "{language:?}");
        assert_eq!(next("a", "", env), (2, 1), "another kernel, the same counter");
        assert_eq!(next("b", "", env), (1, 2));
        assert_eq!(next("a", "box", env), (1, 3), "another container");
        let other = bench.fresh_env();
        assert_eq!(next("a", "", &other), (1, 4), "another session");
        drop(other);
        assert_eq!(next("a", "", env), (3, 3), "its counters went with it");
        let remove = || {
            let node = bench.node(&language.op("CounterRemove")).attr("shared_name", "a");
            elements::<bool>(&node.call(&[]).unwrap()[0])[0]
        };
        assert!(remove() && !remove(), "{language:?}");
        assert_eq!(next("a", "", env), (1, 3), "made anew");
        assert_eq!(env.resources.clear("box"), 1);
        assert_eq!(next("a", "", env).1, 2);
    }
}

#[test]
fn resource_handles() {
    let _alone = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let named = |op: &str| bench.node(&language.op(op)).attr("shared_name", "h");
        let handle = named("CounterHandle").call(&[]).unwrap();
        let read = || bench.node(&language.op("CounterRead")).call(&handle);
        assert_eq!(elements::<i64>(&read().unwrap()[0]), [0], "{language:?}");
        named("CounterNext").call(&[]).unwrap();
        assert_eq!(elements::<i64>(&read().unwrap()[0]), [1]);
        named("CounterRemove").call(&[]).unwrap();
        assert_eq!(elements::<i64>(&read().unwrap()[0]), [1], "a handle keeps its counter");
        let instance = named("CounterHandle").create().unwrap();
        let mut again = PreparedCall::new(&instance, &[], &bench.env).unwrap();
        (0..5).for_each(|_| again.run().unwrap());
        drop(again);

        let variable = variable(&bench, language, "no counter");
        let error = bench.node(&language.op("CounterRead")).call(&[variable]).unwrap_err();
        assert_eq!(error.code, Code::INVALID_ARGUMENT);
        assert!(error.message.contains("expected a resource of type"), "{error}");
    }
}

/// The handle of a variable.
fn variable(bench: &Bench, language: Language, name: &str) -> Tensor {
    let shape = tenon_framework::PartialShape::UNKNOWN;
    let node = bench.node(&language.op("Variable")).attr("shared_name", name).attr("shape", shape);
    node.call(&[]).unwrap().swap_remove(0)
}

fn read(bench: &Bench, language: Language, handle: &Tensor) -> Tensor {
    let node = bench.node(&language.op("VariableRead"));
    node.call(std::slice::from_ref(handle)).unwrap().swap_remove(0)
}

fn assign(bench: &Bench, language: Language, handle: &Tensor, value: Tensor) {
    bench.node(&language.op("VariableAssign")).call(&[handle.clone(), value]).unwrap();
}

#[test]
fn variables() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let handle = variable(&bench, language, "v");
        let error = bench.node(&language.op("VariableRead"));
        let error = error.call(std::slice::from_ref(&handle)).unwrap_err();
        assert_eq!(error.code, Code::FAILED_PRECONDITION, "{language:?}: {error}");
        assign(&bench, language, &handle, floats(&[1.0, 2.0]));
        let before = read(&bench, language, &handle);
        assert_eq!(elements::<f32>(&before), [1.0, 2.0], "{language:?}");
        let add = bench.node(&language.op("VariableAdd"));
        add.call(&[handle.clone(), scalar(10f32)]).unwrap();
        assert_eq!(elements::<f32>(&before), [1.0, 2.0], "{language:?}: a reader keeps its value");
        assert_eq!(elements::<f32>(&read(&bench, language, &handle)), [11.0, 12.0]);
        let sum = bench.node(&language.op("VariableSum"));
        let sum = sum.call(std::slice::from_ref(&handle)).unwrap();
        assert_eq!(elements::<f32>(&sum[0]), [23.0], "{language:?}");
        let error = add.call(&[scalar_resource(), scalar(1f32)]).unwrap_err();
        assert_eq!(error.code, Code::INVALID_ARGUMENT, "no handle: {error}");
    }
}

/// A resource tensor that holds none.
fn scalar_resource() -> Tensor {
    let shape = tenon_framework::Shape::new(&[]).unwrap();
    let memory = tenon_framework::tensor::host_memory();
    Tensor::allocate(memory, tenon_abi::DType::RESOURCE, shape).unwrap()
}

#[test]
fn value_of_a_variable() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let handle = variable(&bench, language, "value");
        let node = bench.node(&language.op("VariableValue"));
        let unset = node.call(std::slice::from_ref(&handle)).unwrap_err();
        assert_eq!(unset.code, Code::FAILED_PRECONDITION);
        assert!(unset.message.contains("uninitialized value value"), "{}", unset.message);
        assign(&bench, language, &handle, floats(&[1.0, 2.0]));
        let before = node.call(std::slice::from_ref(&handle)).unwrap();
        bench.node(&language.op("VariableAdd")).call(&[handle.clone(), scalar(1f32)]).unwrap();
        assert_eq!(
            elements::<f32>(&before[0]),
            [1.0, 2.0],
            "{language:?}: a reader keeps its value"
        );
        let after = node.call(std::slice::from_ref(&handle)).unwrap();
        assert_eq!(elements::<f32>(&after[0]), [2.0, 3.0], "{language:?}");
    }
}

#[test]
fn snapshot_of_a_variable() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let handle = variable(&bench, language, "s");
        let node = bench.node(&language.op("VariableSnapshot"));
        let inputs = [handle.clone(), scalar(10f32)];
        assert_eq!(node.call(&inputs).unwrap_err().code, Code::FAILED_PRECONDITION);
        assign(&bench, language, &handle, floats(&[1.0, 2.0]));
        let sums =
            || node.call(&inputs).unwrap().iter().flat_map(elements::<f32>).collect::<Vec<_>>();
        assert_eq!(sums(), [3.0, 23.0], "{language:?}: the update leaves what is kept alone");
        assert_eq!(sums(), [23.0, 43.0], "{language:?}: and the lock is free again");
    }
}

#[test]
fn two_plugins_update_one_variable() {
    let files = [Language::Rust.zoo(), Language::C.zoo(), plugin("zoo_second")];
    let bench = Bench::with(files);
    for (maker, other) in [(Language::Rust, Language::C), (Language::C, Language::Rust)] {
        let handle = variable(&bench, maker, &format!("made by {maker:?}"));
        assign(&bench, other, &handle, floats(&[1.0, 2.0]));
        bench.node("ZooSecondScale").call(&[handle.clone(), scalar(3f32)]).unwrap();
        let add = bench.node(&other.op("VariableAdd"));
        add.call(&[handle.clone(), scalar(1f32)]).unwrap();
        assert_eq!(elements::<f32>(&read(&bench, maker, &handle)), [4.0, 7.0], "{maker:?}");
        // The name says the same to all plugins.
        let same = variable(&bench, other, &format!("made by {maker:?}"));
        assert_eq!(elements::<f32>(&read(&bench, other, &same)), [4.0, 7.0]);
    }
}

#[test]
fn variables_are_locked_in_order() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let (a, b) = (variable(&bench, language, "a"), variable(&bench, language, "b"));
        assign(&bench, language, &a, floats(&[1000.0]));
        assign(&bench, language, &b, floats(&[1000.0]));
        let instance = bench.node(&language.op("VariableMove")).create().unwrap();
        let moves = |from: &Tensor, to: &Tensor| {
            let inputs = [from.clone(), to.clone(), scalar(1f32)];
            let mut call = PreparedCall::new(&instance, &inputs, &bench.env).unwrap();
            (0..500).for_each(|_| call.run().unwrap());
        };
        // Were the locks taken in the order of the arguments, the two would wait for each other.
        std::thread::scope(|scope| {
            scope.spawn(|| moves(&a, &b));
            scope.spawn(|| moves(&b, &a));
        });
        moves(&a, &a);
        let values = [&a, &b].map(|v| elements::<f32>(&read(&bench, language, v))[0]);
        assert_eq!(values, [1000.0, 1000.0], "{language:?}: nothing is lost");
    }
}

#[test]
fn kernel_state() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = bench.node(&language.op("CallCount"));
        let (first, second) = (node.create().unwrap(), node.create().unwrap());
        let count = |instance: &KernelInstance| {
            elements::<i64>(&call_once(instance, &[], &bench.env).unwrap()[0])[0]
        };
        assert_eq!([count(&first), count(&first), count(&second)], [1, 2, 1], "{language:?}");
    }
}

#[test]
fn kept_tensors() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let node = |op: &str| bench.node(&language.op(op)).attr("shared_name", "stack");
        let push = |x: &Tensor| {
            let outputs = node("KeptPush").call(std::slice::from_ref(x)).unwrap();
            elements::<i64>(&outputs[0])[0]
        };
        let (a, b) = (floats(&[1.0, 2.0]), floats(&[5.0; 10_000]));
        assert_eq!((push(&a), push(&b)), (1, 2), "{language:?}");
        let at = b.buffer().data();
        drop(b);
        let peek = || node("KeptPeek").call(&[]);
        assert_eq!(elements::<f32>(&peek().unwrap()[0]), [50_000.0], "kept beyond its call");
        let pop = || node("KeptPop").call(&[]);
        let top = pop().unwrap().swap_remove(0);
        assert_eq!(top.buffer().data(), at, "{language:?}: without a copy");
        assert_eq!(elements::<f32>(&pop().unwrap()[0]), [1.0, 2.0]);
        let error = pop().unwrap_err();
        assert_eq!(error.code, Code::FAILED_PRECONDITION);
        assert!(error.message.contains("push a tensor first"), "{error}");
        push(&a);
        drop(bench);
        assert!(a.buffer().is_unique(), "{language:?}: the stack gave it back");
    }
}

/// Calls a kernel on slots as they are, references among them; gives the slot of its output, and the value that
/// the slot points into.
fn call_on_slots(instance: &KernelInstance, inputs: &[Slot], env: &StepEnv) -> (Slot, Box<Value>) {
    let node = instance.node();
    let slots: Box<[*const Slot]> = inputs.iter().map(std::ptr::from_ref).collect();
    let values = vec![std::ptr::null_mut(); inputs.len()].into_boxed_slice();
    let [spec] = &node.outputs[..] else { panic!("{instance:?} has one output") };
    let mut output = Slot { dtype: spec.dtype.base(), memory: spec.memory.kind(), ..Slot::EMPTY };
    let mut value = Box::new(Value::default());
    // SAFETY: all that the frame points to outlives it; the kernel has one output.
    unsafe {
        let mut frame =
            Box::new(CallFrame::new(node, env, slots, values, &mut output, &mut *value));
        frame.settle();
        let code = instance.compute()(instance.state(), frame.call());
        assert_eq!(code, Code::OK, "{instance:?}: {}", frame.take_error(code));
        frame.end();
    }
    (output, value)
}

#[test]
fn references() {
    for language in Language::ALL {
        let bench = Bench::zoo(language);
        let make = |op: &str| bench.node(&language.op(op)).create().unwrap();
        let node = bench.node(&language.op("RefVariable")).attr("shared_name", "r");
        let made = node.create().unwrap();
        let (reference, _cell) = call_on_slots(&made, &[], &bench.env);
        assert_ne!(reference.flags & slot_flags::REF, 0, "{language:?}");
        assert!(reference.data.is_null() && !reference.buffer.is_null());
        let value = floats(&[3.0, 4.0]);
        let (assign, read) = (make("RefAssign"), make("RefRead"));
        let (out, _value) = call_on_slots(&assign, &[reference, value.slot()], &bench.env);
        assert_eq!(out.buffer, reference.buffer, "{language:?}: the same cell");
        let (slot, held) = call_on_slots(&read, &[out], &bench.env);
        let tensor = Value::tensor(&slot).unwrap();
        assert_eq!(elements::<f32>(&tensor), [3.0, 4.0], "{language:?}");
        drop(held);
    }
}
