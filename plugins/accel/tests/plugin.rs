//! The plugin through the tables that it registers: device, knobs, kernels.

mod mini_host;

use mini_host::{Attr, Input, Node, Opened, on_host, scalar_on_host, tensor};
use std::ptr;
use tenon_accel as _;
use tenon_sdk::{Code, abi::DeviceAttributes};

fn node(op: &'static str) -> Node {
    Node { op, attrs: Vec::new() }
}

fn with(op: &'static str, attrs: Vec<(&'static str, Attr)>) -> Node {
    Node { op, attrs }
}

fn window() -> Vec<(&'static str, Attr)> {
    vec![
        ("strides", Attr::Ints(vec![1, 1, 1, 1])),
        ("dilations", Attr::Ints(vec![1, 1, 1, 1])),
        ("ksize", Attr::Ints(vec![1, 2, 2, 1])),
        ("explicit_paddings", Attr::Ints(vec![])),
        ("padding", Attr::Text("VALID")),
        ("data_format", Attr::Text("NHWC")),
    ]
}

fn matrix() -> Input {
    tensor(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])
}

#[test]
fn registers_one_device_type_and_these_ops() {
    mini_host::load();
    assert_eq!(mini_host::device_types(), [("ACCEL".to_owned(), -100)]);
    let ops = mini_host::ops();
    let names: Vec<&str> = ops.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "Add",
            "AddV2",
            "ArgMax",
            "AssignAddVariableOp",
            "AssignSubVariableOp",
            "BiasAdd",
            "BiasAddGrad",
            "Conv2D",
            "Conv2DBackpropFilter",
            "Conv2DBackpropInput",
            "Exp",
            "MatMul",
            "MaxPool",
            "MaxPoolGrad",
            "Maximum",
            "Mean",
            "Minimum",
            "Mul",
            "Neg",
            "RealDiv",
            "Relu",
            "ReluGrad",
            "Sigmoid",
            "Softmax",
            "SparseSoftmaxCrossEntropyWithLogits",
            "Square",
            "Sub",
            "Sum",
            "Tanh",
            "Transpose"
        ]
    );
    for (op, argument) in [
        ("ArgMax", "dimension"),
        ("Conv2DBackpropFilter", "filter_sizes"),
        ("Conv2DBackpropInput", "input_sizes"),
        ("Mean", "reduction_indices"),
        ("Sum", "reduction_indices"),
        ("Transpose", "perm"),
    ] {
        assert_eq!(ops[op], [argument]);
    }
}

#[test]
fn attributes_outlive_their_reading() {
    let device = Opened::new(1, &[("memory_limit", 4096), ("streams", 3)]);
    // SAFETY: a struct of pointers and numbers; the entry fills it.
    let attributes = unsafe {
        let mut attributes: DeviceAttributes = std::mem::zeroed();
        device.table.attributes.unwrap()(device.state, &mut attributes);
        attributes
    };
    // SAFETY: the device lives, and what it described with it.
    let (text, memory) = unsafe { (attributes.description.text(), *attributes.memories) };
    assert_eq!(text, Some("simulated accelerator 1"));
    assert_eq!((attributes.memory_count, memory.limit, memory.alignment), (1, 4096, 256));
    assert_eq!((attributes.stream_count, attributes.flags), (3, 4));
    assert_eq!(device.allocate(4097), Err(Code::RESOURCE_EXHAUSTED));
    assert!(mini_host::last_message().contains("0 of 4096 are in use"));
}

#[test]
fn elementwise_kernels() {
    let run = |op, y: Input| node(op).run::<f32>(&[matrix(), y], &[2, 3]);
    let row = || tensor(&[3], &[1.0f32, 2.0, 4.0]);
    assert_eq!(run("AddV2", row()), Ok(vec![2.0, 4.0, 7.0, 5.0, 7.0, 10.0]));
    assert_eq!(run("Sub", row()), Ok(vec![0.0, 0.0, -1.0, 3.0, 3.0, 2.0]));
    assert_eq!(run("Mul", row()), Ok(vec![1.0, 4.0, 12.0, 4.0, 10.0, 24.0]));
    assert_eq!(run("RealDiv", row()), Ok(vec![1.0, 1.0, 0.75, 4.0, 2.5, 1.5]));
    assert_eq!(run("Maximum", row()), Ok(vec![1.0, 2.0, 4.0, 4.0, 5.0, 6.0]));
    assert_eq!(run("Minimum", row()), Ok(vec![1.0, 2.0, 3.0, 1.0, 2.0, 4.0]));
    let ints = || tensor(&[2], &[i32::MAX, -2]);
    assert_eq!(node("Add").run(&[ints(), ints()], &[2]), Ok(vec![-2i32, -4]));
    assert_eq!(node("Neg").run(&[ints()], &[2]), Ok(vec![-i32::MAX, 2]));
    assert_eq!(node("Square").run(&[tensor(&[1], &[3.0f64])], &[1]), Ok(vec![9.0f64]));
    assert_eq!(node("Relu").run(&[tensor(&[2], &[-1.0f32, 2.0])], &[2]), Ok(vec![0.0f32, 2.0]));
    for (op, value) in [("Exp", 1.0), ("Tanh", 0.0), ("Sigmoid", 0.5)] {
        assert_eq!(node(op).run(&[tensor(&[1], &[0.0f64])], &[1]), Ok(vec![value]));
    }
    assert_eq!(node("Exp").run::<f32>(&[tensor::<f32>(&[0], &[])], &[0]), Ok(vec![]));
}

#[test]
fn products_reductions_and_movement() {
    let matmul =
        |a, b| with("MatMul", vec![("transpose_a", Attr::Bool(a)), ("transpose_b", Attr::Bool(b))]);
    assert_eq!(
        matmul(0, 1).run(&[matrix(), matrix()], &[2, 2]),
        Ok(vec![14.0f32, 32.0, 32.0, 77.0])
    );
    let keep = |op, keep| with(op, vec![("keep_dims", Attr::Bool(keep))]);
    assert_eq!(keep("Sum", 0).run(&[matrix(), on_host(&[0])], &[3]), Ok(vec![5.0f32, 7.0, 9.0]));
    assert_eq!(keep("Mean", 1).run(&[matrix(), on_host(&[-1])], &[2, 1]), Ok(vec![2.0f32, 5.0]));
    assert_eq!(node("ArgMax").run(&[matrix(), scalar_on_host(1)], &[2]), Ok(vec![2i64, 2]));
    assert_eq!(node("ArgMax").run(&[matrix(), scalar_on_host(0)], &[3]), Ok(vec![1i32, 1, 1]));
    assert_eq!(
        node("Transpose").run(&[matrix(), on_host(&[1, 0])], &[3, 2]),
        Ok(vec![1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0])
    );
}

#[test]
fn kernels_of_neural_networks() {
    let image = || tensor(&[1, 3, 3, 1], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    let filter = tensor(&[2, 2, 1, 1], &[1.0f32, 0.0, 0.0, 1.0]);
    assert_eq!(
        with("Conv2D", window()).run(&[image(), filter], &[1, 2, 2, 1]),
        Ok(vec![6.0f32, 8.0, 12.0, 14.0])
    );
    assert_eq!(
        with("MaxPool", window()).run(&[image()], &[1, 2, 2, 1]),
        Ok(vec![5.0f32, 6.0, 8.0, 9.0])
    );
    assert_eq!(
        with("BiasAdd", window()).run(&[matrix(), tensor(&[3], &[1.0f32, 0.0, -1.0])], &[2, 3]),
        Ok(vec![2.0f32, 2.0, 2.0, 5.0, 5.0, 5.0])
    );
    assert_eq!(
        node("Softmax").run(&[tensor(&[1, 2], &[3.0f32, 3.0])], &[1, 2]),
        Ok(vec![0.5f32, 0.5])
    );
}

#[test]
fn wrong_inputs_are_refused_before_anything_is_enqueued() {
    let code = |result: Result<Vec<f32>, (Code, String)>| result.unwrap_err().0;
    let long = tensor(&[4], &[0.0f32; 4]);
    assert_eq!(code(node("AddV2").run(&[matrix(), long], &[2, 3])), Code::INVALID_ARGUMENT);
    let axis = on_host(&[7]);
    let sum = with("Sum", vec![("keep_dims", Attr::Bool(0))]);
    assert_eq!(code(sum.run(&[matrix(), axis], &[3])), Code::INVALID_ARGUMENT);
    let scalar = tensor(&[], &[1.0f32]);
    assert_eq!(code(node("Softmax").run(&[scalar], &[])), Code::INVALID_ARGUMENT);
    assert_eq!(code(with("Conv2D", vec![]).run(&[matrix()], &[])), Code::NOT_FOUND);
    let elsewhere = on_host(&[1]);
    let result = node("Neg").run::<i32>(&[elsewhere], &[1]);
    assert_eq!(result.unwrap_err().0, Code::INTERNAL);
}

#[test]
fn the_host_is_told_of_a_loss() {
    let device = Opened::new(5, &[("lose_after_commands", 2)]);
    let mut value = 1.0f32;
    let data = device.allocate(4).unwrap();
    for _ in 0..2 {
        assert_eq!(device.copy(ptr::from_mut(&mut value).cast(), data, 4, true), Code::OK);
    }
    assert_eq!(device.synchronize(), Code::OK);
    device.copy(ptr::from_mut(&mut value).cast(), data, 4, false);
    assert_eq!(device.synchronize(), Code::UNAVAILABLE);
    assert_eq!(mini_host::losses(), ["the knob lose_after_commands is 2"]);
    assert_eq!(device.allocate(4), Err(Code::UNAVAILABLE));
}
