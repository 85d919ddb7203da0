//! The kernels, called one by one on the host, and on a device that does not address its memory.

use crate::testing::{Bench, attr};
use tenon_framework::{DType, PartialShape, Tensor, attr::AttrValue};

fn ints(dims: &[i64], values: &[i32]) -> Tensor {
    Tensor::from_slice(dims, values).unwrap()
}

fn floats(dims: &[i64]) -> Tensor {
    let count = dims.iter().product::<i64>();
    let values: Vec<f32> = (0..count).map(|at| at as f32).collect();
    Tensor::from_slice(dims, &values).unwrap()
}

const T: (&str, AttrValue) = ("T", AttrValue::Type(DType::FLOAT));

#[test]
fn identities_give_the_very_buffer() {
    let bench = Bench::host();
    let x = floats(&[2, 3]);
    let x_only = [x.clone()];
    for op in ["Identity", "GuaranteeConst", "StopGradient", "PreventGradient", "Snapshot"] {
        let outputs = bench.call(op, &[T], &x_only).unwrap();
        assert_eq!(outputs[0].buffer().data(), x.buffer().data(), "{op}");
        assert_eq!(outputs[0].shape(), x.shape(), "{op}");
    }
    let types = attr("T", vec![DType::FLOAT, DType::STRING]);
    let names = Tensor::from_strings(&[2], &["a", "b"]).unwrap();
    let outputs = bench.call("IdentityN", &[types], &[x.clone(), names]).unwrap();
    assert_eq!(outputs[0].buffer().data(), x.buffer().data());
    assert_eq!(outputs[1].as_strings().unwrap(), [b"a", b"b"]);
}

#[test]
fn a_shape_is_ensured() {
    let bench = Bench::host();
    let wanted = attr("shape", PartialShape::new(&[-1, 3]).unwrap());
    let ensured = bench.call("EnsureShape", &[T, wanted.clone()], &[floats(&[2, 3])]).unwrap();
    assert_eq!(ensured[0].shape().dims(), &[2, 3]);
    let error = bench.call("EnsureShape", &[T, wanted], &[floats(&[2, 4])]).unwrap_err();
    assert_eq!(error.message, "the shape must be compatible with [?,3], found [2, 4]");
}

#[test]
fn reshapes_copy_nothing() {
    let bench = Bench::host();
    let x = floats(&[2, 3, 1]);
    let x_only = [x.clone()];
    let shape_of = |op: &str, attrs: &[(&str, AttrValue)], inputs: &[Tensor]| {
        let outputs = bench.call(op, attrs, inputs).unwrap();
        assert_eq!(outputs[0].buffer().data(), x.buffer().data(), "{op}");
        outputs[0].shape().dims().to_vec()
    };
    assert_eq!(shape_of("Reshape", &[T], &[x.clone(), ints(&[2], &[-1, 2])]), [3, 2]);
    let long = attr("Tshape", DType::INT64);
    let wanted = Tensor::from_slice(&[1], &[6i64]).unwrap();
    assert_eq!(shape_of("Reshape", &[T, long], &[x.clone(), wanted]), [6]);
    assert_eq!(shape_of("Squeeze", &[T], &x_only), [2, 3]);
    let axes = attr("squeeze_dims", vec![2i64]);
    assert_eq!(shape_of("Squeeze", &[T, axes], &x_only), [2, 3]);
    assert_eq!(shape_of("ExpandDims", &[T], &[x.clone(), ints(&[], &[-1])]), [2, 3, 1, 1]);
}

#[test]
fn bad_shapes_are_refused() {
    let bench = Bench::host();
    let message = |op: &str, attrs: &[(&str, AttrValue)], other: Option<Tensor>| {
        let inputs: Vec<Tensor> = std::iter::once(floats(&[2, 3])).chain(other).collect();
        bench.call(op, attrs, &inputs).unwrap_err().message
    };
    assert_eq!(
        message("Reshape", &[T], Some(ints(&[1], &[5]))),
        "shape must have as many elements as tensor, which is 6, got [5]"
    );
    assert_eq!(
        message("Reshape", &[T], Some(ints(&[1, 1], &[6]))),
        "shape must be a scalar or a vector, found rank 2"
    );
    assert!(message("Reshape", &[T], Some(ints(&[17], &[1; 17]))).contains("16"));
    assert_eq!(
        message("ExpandDims", &[T], Some(ints(&[2], &[0, 1]))),
        "dim must hold 1 value, found 2"
    );
    assert_eq!(
        message("Squeeze", &[T, attr("squeeze_dims", vec![0i64])], None),
        "dimension 0 of input must be 1 to be squeezed, got 2"
    );
}

#[test]
fn shapes_sizes_and_ranks_are_told() {
    let bench = Bench::host();
    let x = floats(&[2, 0, 5]);
    let x_only = [x.clone()];
    let one =
        |op: &str, attrs: &[(&str, AttrValue)]| bench.call(op, attrs, &x_only).unwrap().remove(0);
    assert_eq!(one("Shape", &[T]).as_slice::<i32>().unwrap(), &[2, 0, 5]);
    let long = attr("out_type", DType::INT64);
    assert_eq!(one("Shape", &[T, long.clone()]).as_slice::<i64>().unwrap(), &[2, 0, 5]);
    assert_eq!(one("Size", &[T]).as_slice::<i32>().unwrap(), &[0]);
    assert_eq!(one("Size", &[T, long]).as_slice::<i64>().unwrap(), &[0]);
    assert_eq!(one("Rank", &[T]).as_slice::<i32>().unwrap(), &[3]);
    let shapes = bench.call("ShapeN", &[T, attr("N", 2i64)], &[x, floats(&[4])]).unwrap();
    assert_eq!(shapes[0].as_slice::<i32>().unwrap(), &[2, 0, 5]);
    assert_eq!(shapes[1].as_slice::<i32>().unwrap(), &[4]);
}

#[test]
fn constants_are_shared_and_placeholders_must_be_fed() {
    let bench = Bench::host();
    let value = floats(&[3]);
    let attrs = [attr("value", value.clone()), attr("dtype", DType::FLOAT)];
    let outputs = bench.call("Const", &attrs, &[]).unwrap();
    assert_eq!(outputs[0].buffer().data(), value.buffer().data());
    let wrong = [attr("value", ints(&[1], &[1])), attr("dtype", DType::FLOAT)];
    let error = bench.call("Const", &wrong, &[]).unwrap_err();
    assert_eq!(
        error.message,
        "attribute value: expected a tensor of float as attribute dtype says, found int32"
    );
    let shape = attr("shape", PartialShape::new(&[-1, 3]).unwrap());
    let attrs = [attr("dtype", DType::FLOAT), shape];
    let error = bench.call("Placeholder", &attrs, &[]).unwrap_err();
    assert_eq!(
        error.message,
        "placeholder 'node' must be fed with a tensor of float and shape [?,3]"
    );
    let outputs = bench.call("PlaceholderWithDefault", &attrs, &[floats(&[2, 3])]).unwrap();
    assert_eq!(outputs[0].shape().dims(), &[2, 3]);
}

#[test]
fn control_kernels_do_nothing() {
    let bench = Bench::host();
    for op in ["NoOp", "ControlTrigger"] {
        assert!(bench.call(op, &[], &[]).unwrap().is_empty(), "{op}");
    }
}

#[test]
fn on_a_device_values_stay_there_and_shapes_are_on_the_host() {
    let bench = Bench::with_fake_device();
    let x = floats(&[2, 3]);
    let x_only = [x.clone()];
    let reshaped = bench.call("Reshape", &[T], &[x.clone(), ints(&[1], &[6])]).unwrap();
    assert_eq!(reshaped[0].as_slice::<f32>().unwrap(), x.as_slice::<f32>().unwrap());
    assert_eq!(reshaped[0].shape().dims(), &[6]);
    let shape = bench.call("Shape", &[T], &x_only).unwrap();
    assert_eq!(shape[0].as_slice::<i32>().unwrap(), &[2, 3]);
    let attrs = [attr("value", x.clone()), attr("dtype", DType::FLOAT)];
    let constant = bench.call("Const", &attrs, &[]).unwrap();
    assert_eq!(constant[0].as_slice::<f32>().unwrap(), x.as_slice::<f32>().unwrap());
    assert_ne!(constant[0].buffer().data(), x.buffer().data());
    let names = Tensor::from_strings(&[1], &["a"]).unwrap();
    let passed = bench.call("Identity", &[attr("T", DType::STRING)], &[names]).unwrap();
    assert_eq!(passed[0].as_strings().unwrap(), [b"a"]);
}
