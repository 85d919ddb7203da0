//! What calls that are wrong in every way (op_fuzz.rs) have found, by the kernel of each.

use tenon_runtime::framework::{Code, PartialShape, Tensor, attr::AttrValue};
use tenon_testkit::host::{Node, TestHost, floats, library};

fn host() -> TestHost {
    TestHost::with([library("tenon-cpu")])
}

fn ints(dims: &[i64], values: &[i32]) -> Tensor {
    Tensor::from_slice(dims, values).unwrap()
}

/// Without elements, though huge in one dimension.
fn hollow(dims: &[i64]) -> Tensor {
    Tensor::from_slice::<f32>(dims, &[]).unwrap()
}

#[track_caller]
fn gives(node: &Node<'_>, inputs: &[Tensor], dims: &[i64]) {
    let outputs = node.call(inputs).unwrap();
    assert_eq!(outputs[0].shape().dims(), dims);
}

#[track_caller]
fn refuses(node: &Node<'_>, inputs: &[Tensor], expected: &str) {
    let error = node.call(inputs).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (Code::INVALID_ARGUMENT, expected));
}

#[test]
fn no_scratch_is_made_for_a_row_that_is_not_there() {
    let host = host();
    let k = ints(&[], &[1]);
    gives(&host.node("TopKV2"), &[hollow(&[0, 1 << 31]), k], &[0, 1]);
    gives(&host.node("TopK").attr("k", 2i64), &[hollow(&[3, 0, 1 << 31])], &[3, 0, 2]);
}

#[test]
fn rows_without_elements_are_shuffled_by_leaving_them() {
    let host = host();
    gives(&host.node("RandomShuffle"), &[hollow(&[u32::MAX.into(), 0])], &[u32::MAX.into(), 0]);
    gives(&host.node("RandomShuffle"), &[hollow(&[1 << 40, 0])], &[1 << 40, 0]);
    let texts = Tensor::from_strings::<&str>(&[4, 0], &[]).unwrap();
    gives(&host.node("RandomShuffle"), &[texts], &[4, 0]);
}

#[test]
fn a_window_may_be_larger_than_any_input() {
    let host = host();
    let x = floats(&[1.0, 4.0, 2.0, 3.0]).reshaped(&[1, 2, 2, 1]).unwrap();
    let node = host.node("MaxPool").attr("ksize", vec![1, 3, i64::MAX, 1]).attr("padding", "SAME");
    gives(&node.attr("strides", vec![1i64, 2, 2, 1]), &[x], &[1, 1, 1, 1]);
}

#[test]
fn a_scalar_is_no_shape_of_random_numbers() {
    let host = host();
    let expected = "shape must be a vector, found shape []";
    let shape = || ints(&[], &[3]);
    let normal =
        || host.node("TruncatedNormal").attr("dtype", tenon_runtime::framework::DType::FLOAT);
    refuses(&normal(), &[shape()], expected);
    let seed = ints(&[2], &[1, 2]);
    refuses(&host.node("StatelessRandomUniform"), &[shape(), seed], expected);
    refuses(&host.node("RandomGamma"), &[shape(), floats(&[1.0])], expected);
}

#[test]
fn masks_of_slices_are_values_of_32_bits() {
    let host = host();
    let inputs =
        || [floats(&[1.0, 2.0, 3.0]), ints(&[1], &[1]), ints(&[1], &[2]), ints(&[1], &[1])];
    let slice = |mask: i64| host.node("StridedSlice").attr("begin_mask", mask);
    gives(&slice(-1), &inputs(), &[2]);
    refuses(
        &slice(1 << 40),
        &inputs(),
        "attribute begin_mask: expected a mask of 32 bits, found 1099511627776",
    );
}

#[test]
fn rows_are_joined_to_a_shape_that_is_known() {
    let host = host();
    let shape = AttrValue::Shape(PartialShape::new(&[-1, 2]).unwrap());
    let row = || floats(&[1.0, 2.0]).reshaped(&[1, 2]).unwrap();
    refuses(
        &host.node("ParallelConcat").attr("shape", shape),
        &[row(), row()],
        "attribute shape: every dimension must be known, found [?,2]",
    );
}

#[test]
fn slices_without_elements_are_gathered_whatever_their_size() {
    let host = host();
    let none = || ints(&[0], &[]);
    let x = || hollow(&[0, i64::from(i32::MAX), 1 << 32]);
    gives(&host.node("Gather"), &[x(), none()], &[0, i64::from(i32::MAX), 1 << 32]);
}

#[test]
fn slices_without_elements_are_one() {
    let host = host();
    let axis = || ints(&[1], &[0]);
    gives(&host.node("UniqueV2"), &[hollow(&[4, 0]), axis()], &[1, 0]);
    let error = host.node("UniqueV2").call(&[hollow(&[1 << 50, 0]), axis()]).unwrap_err();
    assert_eq!(error.code, Code::RESOURCE_EXHAUSTED, "{}", error.message);
}
