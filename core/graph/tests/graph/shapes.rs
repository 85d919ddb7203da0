//! Shapes over a whole graph.

use crate::support::*;
use tenon_framework::{DType, PartialShape, Tensor};
use tenon_graph::{infer_shapes, prune};

fn text(shape: &PartialShape) -> String {
    shape.to_string()
}

#[test]
fn shapes_and_constants_flow() {
    let mut b = builder();
    let x = x(&mut b);
    let w = b.constant("w", floats(&[3, 5])).unwrap();
    let mm = b.op("MatMul").name("mm").input(x).input(w).build().unwrap();
    let shape = b.op("Shape").name("shape").input(mm).build().unwrap();
    let back = b.op("Reshape").name("back").input(mm).input(shape).build().unwrap();
    let graph = b.finish();
    let shapes = infer_shapes(&graph, &sub(&graph, &[back.into()]), &[]).unwrap();
    assert_eq!(text(&shapes.shape(mm.into())), "[?,5]");
    assert_eq!(text(&shapes.shape(shape.into())), "[2]");
    assert_eq!(
        text(&shapes.shape(back.into())),
        "[?,5]",
        "the shape computed in the graph is known"
    );
    assert!(shapes.constant(w).is_some() && shapes.constant(mm.into()).is_none());
}

#[test]
fn a_feed_has_the_shape_given_or_declared_and_no_constant() {
    let mut b = builder();
    let x = x(&mut b);
    let c = b.constant("c", floats(&[1, 3])).unwrap();
    let y = b.op("AddV2").name("y").input(x).input(c).build().unwrap();
    let graph = b.finish();
    let sub = prune(&graph, &[x, c], &[y.into()], &[]).unwrap();
    let shapes = infer_shapes(&graph, &sub, &[]).unwrap();
    assert_eq!(text(&shapes.seen(&sub, x)), "[?,3]");
    assert_eq!(text(&shapes.seen(&sub, c)), "<unknown>");
    assert!(shapes.constant(c).is_none());
    let given = [PartialShape::new(&[7, 3]).unwrap(), PartialShape::new(&[7, 1]).unwrap()];
    let shapes = infer_shapes(&graph, &sub, &given).unwrap();
    assert_eq!(text(&shapes.shape(y.into())), "[7,3]");
}

#[test]
fn an_error_names_node_and_op() {
    let mut b = builder();
    let x = x(&mut b);
    let w = b.constant("w", floats(&[4, 5])).unwrap();
    let mm = b.op("MatMul").name("mm").input(x).input(w).build().unwrap();
    let graph = b.finish();
    let error = infer_shapes(&graph, &sub(&graph, &[mm.into()]), &[]).unwrap_err();
    assert!(error.to_string().starts_with("node 'mm' (op 'MatMul'): "), "{error}");
    assert_eq!(error.code(), tenon_framework::Code::INVALID_ARGUMENT);
}

#[test]
fn what_a_loop_changes_is_not_taken_for_constant() {
    let mut b = builder();
    let exit = count_to_ten(&mut b, "loop");
    let one = b.constant("one", Tensor::scalar(1i32).unwrap()).unwrap();
    let y = b.op("AddV2").name("y").input(exit).input(one).build().unwrap();
    let graph = b.finish();
    let shapes = infer_shapes(&graph, &sub(&graph, &[y.into()]), &[]).unwrap();
    let merge = graph.tensor("loop/merge:0").unwrap();
    assert_eq!(text(&shapes.shape(merge)), "<unknown>");
    assert_eq!(text(&shapes.shape(graph.tensor("loop/merge:1").unwrap())), "[]");
    assert!(shapes.constant(exit).is_none());
    assert_eq!(graph.dtype(exit), DType::INT32);
}
