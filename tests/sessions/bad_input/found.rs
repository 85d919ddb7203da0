//! What calls that are wrong in every way (op_fuzz.rs) have found, by the kernel of each.

use tenon_runtime::framework::{Code, PartialShape, Tensor, attr::AttrValue};
use tenon_testkit::host::{Node, TestHost, floats, library};
use tenon_tests::session::{Turn, turn};

/// A host, whose memory other tests do not count meanwhile.
fn host() -> (Turn, TestHost) {
    (turn(), TestHost::with([library("tenon-cpu")]))
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
    let (_turn, host) = host();
    let k = ints(&[], &[1]);
    gives(&host.node("TopKV2"), &[hollow(&[0, 1 << 31]), k], &[0, 1]);
    gives(&host.node("TopK").attr("k", 2i64), &[hollow(&[3, 0, 1 << 31])], &[3, 0, 2]);
}

#[test]
fn rows_without_elements_are_shuffled_by_leaving_them() {
    let (_turn, host) = host();
    gives(&host.node("RandomShuffle"), &[hollow(&[u32::MAX.into(), 0])], &[u32::MAX.into(), 0]);
    gives(&host.node("RandomShuffle"), &[hollow(&[1 << 40, 0])], &[1 << 40, 0]);
    let texts = Tensor::from_strings::<&str>(&[4, 0], &[]).unwrap();
    gives(&host.node("RandomShuffle"), &[texts], &[4, 0]);
}

#[test]
fn a_window_may_be_larger_than_any_input() {
    let (_turn, host) = host();
    let x = floats(&[1.0, 4.0, 2.0, 3.0]).reshaped(&[1, 2, 2, 1]).unwrap();
    let node = host.node("MaxPool").attr("ksize", vec![1, 3, i64::MAX, 1]).attr("padding", "SAME");
    gives(&node.attr("strides", vec![1i64, 2, 2, 1]), &[x], &[1, 1, 1, 1]);
}

#[test]
fn a_window_that_fits_nowhere_is_refused_with_the_name_of_its_dimension() {
    let (_turn, host) = host();
    let ones = |dims: &[i64]| {
        let count = dims.iter().product::<i64>() as usize;
        Tensor::from_slice(dims, &vec![1f32; count]).unwrap()
    };
    let refused = |dim: &str| {
        format!(
            "the window is larger than the input over the {dim}: 3 with a padding of 0 is less than the dilated \
             window's 5; make the window smaller, or set padding to SAME"
        )
    };
    let strided = |op: &'static str, rank: usize| {
        host.node(op).attr("padding", "VALID").attr("strides", vec![1i64; rank])
    };
    for op in ["Conv2D", "DepthwiseConv2dNative"] {
        let inputs = [ones(&[1, 3, 3, 1]), ones(&[1, 5, 1, 1])];
        refuses(&strided(op, 4), &inputs, &refused("columns"));
    }
    let inputs = [ones(&[1, 3, 3, 3, 1]), ones(&[5, 1, 1, 1, 1])];
    refuses(&strided("Conv3D", 5), &inputs, &refused("planes"));
    let dilation = strided("Dilation2D", 4).attr("rates", vec![1i64, 2, 1, 1]);
    refuses(&dilation, &[ones(&[1, 3, 3, 1]), ones(&[3, 1, 1])], &refused("rows"));
    for op in ["MaxPool", "AvgPool", "MaxPoolWithArgmax"] {
        let pool = strided(op, 4).attr("ksize", vec![1i64, 5, 1, 1]);
        refuses(&pool, &[ones(&[1, 3, 3, 1])], &refused("rows"));
    }
}

#[test]
fn a_scalar_is_no_shape_of_random_numbers() {
    let (_turn, host) = host();
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
    let (_turn, host) = host();
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
    let (_turn, host) = host();
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
    let (_turn, host) = host();
    let none = || ints(&[0], &[]);
    let x = || hollow(&[0, i64::from(i32::MAX), 1 << 32]);
    gives(&host.node("Gather"), &[x(), none()], &[0, i64::from(i32::MAX), 1 << 32]);
}

#[test]
fn slices_without_elements_are_one() {
    let (_turn, host) = host();
    let axis = || ints(&[1], &[0]);
    gives(&host.node("UniqueV2"), &[hollow(&[4, 0]), axis()], &[1, 0]);
    let error = host.node("UniqueV2").call(&[hollow(&[1 << 50, 0]), axis()]).unwrap_err();
    assert_eq!(error.code, Code::RESOURCE_EXHAUSTED, "{}", error.message);
}

#[test]
fn a_sum_has_the_shape_that_its_attribute_says() {
    let (_turn, host) = host();
    let shape = || AttrValue::Shape(PartialShape::new(&[-1, 2]).unwrap());
    let node = || host.node("AccumulateNV2").attr("N", 2i64).attr("shape", shape());
    let row = || floats(&[1.0, 2.0]).reshaped(&[1, 2]).unwrap();
    gives(&node(), &[row(), row()], &[1, 2]);
    let expected = "inputs must have the shape [?,2] of attribute shape, found [0, 7]";
    refuses(&node(), &[hollow(&[0, 7]), hollow(&[0, 7])], expected);
}

#[test]
fn nothing_is_joined_where_nothing_is_left() {
    let _turn = turn();
    let host = TestHost::with([library("tenon-text")]);
    let none = |dims: &[i64]| Tensor::from_strings::<&str>(dims, &[]).unwrap();
    gives(&host.node("ReduceJoin"), &[none(&[0, 1 << 31]), ints(&[1], &[1])], &[0]);
    gives(&host.node("ReduceJoin"), &[none(&[3, 1 << 31, 0]), ints(&[2], &[1, 2])], &[3]);
    let joined = host.node("ReduceJoin").call(&[none(&[1 << 50, 0]), ints(&[1], &[1])]);
    assert_eq!(joined.unwrap_err().code, Code::RESOURCE_EXHAUSTED);
}

/// Each of many parts is read from the one input: what is asked of an input must not grow with the outputs.
#[test]
fn a_node_has_as_many_outputs_and_inputs_as_it_may() {
    let (_turn, host) = host();
    let count = 1i64 << 16;
    let x = || Tensor::from_slice(&[count], &(0..count as i32).collect::<Vec<_>>()).unwrap();
    let axis = || ints(&[], &[0]);
    let sizes = || Tensor::from_slice(&[count], &vec![1i64; count as usize]).unwrap();
    let cut = [
        host.node("Split").attr("num_split", count).call(&[axis(), x()]).unwrap(),
        host.node("SplitV").attr("num_split", count).call(&[x(), sizes(), axis()]).unwrap(),
        host.node("Unpack").attr("num", count).call(&[x()]).unwrap(),
    ];
    for (parts, dims) in cut.iter().zip([&[1i64][..], &[1], &[]]) {
        assert_eq!(parts.len() as i64, count);
        let last = parts.last().unwrap();
        assert_eq!(last.shape().dims(), dims);
        assert_eq!(last.as_slice::<i32>().unwrap(), [(count - 1) as i32]);
    }
    let joined = host.node("Pack").attr("N", count).call(&cut[2]).unwrap();
    assert_eq!(joined[0].as_slice::<i32>().unwrap(), x().as_slice::<i32>().unwrap());
    let mut inputs = cut[0][1..].to_vec();
    inputs.push(axis());
    let joined = host.node("ConcatV2").attr("N", count - 1).call(&inputs).unwrap();
    assert_eq!(joined[0].as_slice::<i32>().unwrap(), &x().as_slice::<i32>().unwrap()[1..]);
    let sum = host.node("AddN").attr("N", count).call(&cut[2]).unwrap();
    assert_eq!(sum[0].as_slice::<i32>().unwrap(), [(0..count as i32).fold(0, i32::wrapping_add)]);
}
