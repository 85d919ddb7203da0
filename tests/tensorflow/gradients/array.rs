//! Gradients of ops that move elements.

use super::numeric::{Input, any, check, check_with, int, int_tensor, ints};
use tenon_runtime::framework::{PartialShape, attr::AttrValue};
use tenon_tests::session::runtime;

#[test]
fn identities() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    check(&runtime, "IdentityN", &[any(&[2, 3]), any(&[2])]);
    check(&runtime, "Identity", &[any(&[2, 3])]);
    let shape = || AttrValue::Shape(PartialShape::new(&[-1, 3]).unwrap());
    check_with(&runtime, "EnsureShape", &[any(&[2, 3])], |node| node.attr("shape", shape()));
    check_with(&runtime, "PlaceholderWithDefault", &[any(&[2, 3])], |node| {
        node.attr("shape", shape())
    });
    check_with(&runtime, "CheckNumerics", &[any(&[2, 3])], |node| node.attr("message", "here"));
}

#[test]
fn shapes_and_permutations() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    check(&runtime, "Reshape", &[any(&[2, 3]), ints(&[3, -1])]);
    check(&runtime, "ExpandDims", &[any(&[2, 3]), int(-1)]);
    check_with(&runtime, "Squeeze", &[any(&[2, 1, 3])], |node| node.attr("squeeze_dims", vec![1]));
    check(&runtime, "Transpose", &[any(&[2, 3, 2]), ints(&[2, 0, 1])]);
    check(&runtime, "ConjugateTranspose", &[any(&[2, 3]), ints(&[1, 0])]);
    check(&runtime, "ReverseV2", &[any(&[2, 3]), ints(&[1])]);
    check(&runtime, "Roll", &[any(&[2, 3]), ints(&[1, 2]), ints(&[0, 1])]);
    check_with(&runtime, "ReverseSequence", &[any(&[3, 2]), ints(&[1, 3])], |node| {
        node.attr("seq_dim", 0).attr("batch_dim", 1)
    });
    let reversed = Input::Constant(
        tenon_runtime::framework::Tensor::from_slice(&[2], &[true, false]).unwrap(),
    );
    check(&runtime, "Reverse", &[any(&[2, 3]), reversed]);
}

#[test]
fn blocks() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    check_with(&runtime, "SpaceToDepth", &[any(&[1, 2, 4, 2])], |node| node.attr("block_size", 2));
    check_with(&runtime, "DepthToSpace", &[any(&[1, 1, 2, 8])], |node| node.attr("block_size", 2));
    let none = || int_tensor(&[2, 2], &[0, 0, 0, 0]);
    let some = || int_tensor(&[2, 2], &[0, 1, 1, 0]);
    check_with(&runtime, "SpaceToBatch", &[any(&[1, 3, 3, 2]), some()], |n| {
        n.attr("block_size", 2)
    });
    check_with(&runtime, "BatchToSpace", &[any(&[4, 2, 2, 1]), some()], |n| {
        n.attr("block_size", 2)
    });
    check(&runtime, "SpaceToBatchND", &[any(&[1, 2, 4, 2]), ints(&[2, 2]), none()]);
    check(&runtime, "BatchToSpaceND", &[any(&[4, 1, 2, 2]), ints(&[2, 2]), none()]);
    check_with(&runtime, "ExtractImagePatches", &[any(&[2, 3, 3, 2])], |node| {
        let node = node.attr("ksizes", vec![1, 2, 2, 1]).attr("strides", vec![1, 1, 1, 1]);
        node.attr("rates", vec![1, 1, 1, 1]).attr("padding", "SAME")
    });
}

#[test]
fn joining_and_splitting() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    check(&runtime, "ConcatV2", &[any(&[2, 3]), any(&[2, 1]), any(&[2, 2]), int(-1)]);
    check_with(&runtime, "Concat", &[int(0), any(&[2, 3]), any(&[1, 3])], |node| node.attr("N", 2));
    check_with(&runtime, "Split", &[int(1), any(&[2, 4])], |node| node.attr("num_split", 2));
    check_with(&runtime, "Split", &[int(1), any(&[2, 4])], |node| node.attr("num_split", 1));
    check_with(&runtime, "SplitV", &[any(&[2, 4]), ints(&[1, 3]), int(1)], |node| {
        node.attr("num_split", 2)
    });
    check_with(&runtime, "SplitV", &[any(&[2, 4]), ints(&[4]), int(1)], |node| {
        node.attr("num_split", 1)
    });
    check_with(&runtime, "Pack", &[any(&[2]), any(&[2]), any(&[2])], |node| node.attr("axis", 1));
    check_with(&runtime, "Unpack", &[any(&[2, 3])], |node| node.attr("num", 3).attr("axis", 1));
}

#[test]
fn repeating_and_padding() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    check(&runtime, "Fill", &[ints(&[2, 3]), any(&[])]);
    check(&runtime, "BroadcastTo", &[any(&[2, 1]), ints(&[3, 2, 2])]);
    check(&runtime, "Tile", &[any(&[2, 3]), ints(&[2, 3])]);
    let paddings = || int_tensor(&[2, 2], &[1, 0, 0, 1]);
    check(&runtime, "Pad", &[any(&[2, 3]), paddings()]);
    check(&runtime, "PadV2", &[any(&[2, 3]), paddings(), any(&[])]);
    check_with(&runtime, "MirrorPad", &[any(&[2, 3]), paddings()], |node| {
        node.attr("mode", "REFLECT")
    });
    check_with(&runtime, "MirrorPadGrad", &[any(&[3, 4]), paddings()], |node| {
        node.attr("mode", "SYMMETRIC")
    });
}

#[test]
fn slices() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    check(&runtime, "Slice", &[any(&[3, 4]), ints(&[1, 0]), ints(&[2, -1])]);
    let bounds = || [ints(&[0, 3]), ints(&[3, 0]), ints(&[2, -1])];
    let [begin, end, strides] = bounds();
    check(&runtime, "StridedSlice", &[any(&[3, 4]), begin, end, strides]);
    let [begin, end, strides] = bounds();
    check(&runtime, "StridedSliceGrad", &[ints(&[3, 4]), begin, end, strides, any(&[2, 3])]);
    let [begin, end, strides] = bounds();
    let update = [any(&[3, 4]), begin, end, strides, any(&[2, 3])];
    check(&runtime, "TensorStridedSliceUpdate", &update);
    // A value that is repeated to the shape of the slice.
    let [begin, end, strides] = bounds();
    let update = [any(&[3, 4]), begin, end, strides, any(&[3])];
    check(&runtime, "TensorStridedSliceUpdate", &update);
}

#[test]
fn gathers() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    check(&runtime, "Gather", &[any(&[3, 2]), ints(&[2, 0, 2])]);
    check(&runtime, "GatherV2", &[any(&[3, 2]), int_tensor(&[2, 2], &[2, 0, 2, 1]), int(0)]);
    check(&runtime, "GatherV2", &[any(&[2, 3, 2]), int_tensor(&[2, 2], &[2, 0, 2, 1]), int(1)]);
    check(&runtime, "GatherV2", &[any(&[2, 3, 2]), ints(&[1, 1, 0]), int(-1)]);
    let batched = [any(&[2, 2, 3]), int_tensor(&[2, 2], &[2, 0, 2, 1]), int(2)];
    check_with(&runtime, "GatherV2", &batched, |node| node.attr("batch_dims", 1));
    check(&runtime, "GatherNd", &[any(&[3, 2]), int_tensor(&[2, 1], &[2, 0])]);
    check(&runtime, "GatherNd", &[any(&[3, 2]), int_tensor(&[3, 2], &[2, 0, 1, 1, 2, 0])]);
}

#[test]
fn scatters() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let rows = || int_tensor(&[2, 1], &[2, 0]);
    check(&runtime, "ScatterNd", &[int_tensor(&[3, 1], &[2, 0, 2]), any(&[3, 2]), ints(&[3, 2])]);
    for op in ["TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub"] {
        check(&runtime, op, &[any(&[3, 2]), rows(), any(&[2, 2])]);
    }
    for op in ["TensorScatterMax", "TensorScatterMin"] {
        check(&runtime, op, &[any(&[3, 2]), rows(), any(&[2, 2])]);
    }
}
