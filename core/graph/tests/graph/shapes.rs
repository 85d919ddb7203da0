//! Shapes over a whole graph.

use crate::support::*;
use tenon_framework::{DType, PartialShape, Tensor};
use tenon_graph::{GraphBuilder, Output, infer_shapes, prune};

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
    assert_eq!(text(&shapes.shape(merge)), "[]");
    assert_eq!(text(&shapes.shape(graph.tensor("loop/merge:1").unwrap())), "[]");
    assert!(shapes.constant(exit).is_none());
    assert_eq!(graph.dtype(exit), DType::INT32);
}

/// A loop over a tensor of `shape`, whose body is `body`; the text of the shape in the loop.
fn shape_in_a_loop(
    shape: &[i64],
    body: impl FnOnce(&mut GraphBuilder<'_>, Output) -> Output,
) -> String {
    let mut b = builder();
    let x = b.placeholder("x", DType::FLOAT, PartialShape::new(shape).unwrap()).unwrap();
    let enter = b.op("Enter").input(x).attr("frame_name", "f").build().unwrap();
    let merge = b.op("Merge").input(enter).input(enter).build().unwrap();
    let on = b.constant("on", Tensor::from_bytes(DType::BOOL, &[], &[0]).unwrap()).unwrap();
    let on = b.op("Enter").input(on).attr("frame_name", "f").attr("is_constant", true);
    let on = on.build().unwrap();
    let on = b.op("LoopCond").input(on).build().unwrap();
    let switch = b.op("Switch").input(merge).input(on).build().unwrap();
    let value = body(&mut b, Output::new(switch, 1));
    let next = b.op("NextIteration").input(value).build().unwrap();
    b.back_edge(merge, 1, next).unwrap();
    let exit = b.op("Exit").input(switch).build().unwrap();
    let graph = b.finish();
    let sub = prune(&graph, &[x], &[exit.into()], &[]).unwrap();
    text(&infer_shapes(&graph, &sub, &[]).unwrap().shape(merge.into()))
}

#[test]
fn a_loop_has_the_shape_that_its_body_keeps() {
    let relu = |b: &mut GraphBuilder<'_>, x| b.op("Relu").input(x).build().unwrap().into();
    assert_eq!(shape_in_a_loop(&[2, 3], relu), "[2,3]");
    assert_eq!(shape_in_a_loop(&[2, -1], relu), "[2,?]");
    // The first pass assumes [1,3], of which the body makes [5,3].
    let grows = |b: &mut GraphBuilder<'_>, x| {
        let more = b.constant("more", floats(&[5, 3])).unwrap();
        b.op("AddV2").input(x).input(more).build().unwrap().into()
    };
    assert_eq!(shape_in_a_loop(&[1, 3], grows), "[?,3]");
    assert_eq!(shape_in_a_loop(&[5, 3], grows), "[5,3]");
    // One more dimension in each iteration.
    let nested = |b: &mut GraphBuilder<'_>, x: Output| {
        let list = b.op("Pack").inputs([x]).attr("N", 1).build();
        list.unwrap().into()
    };
    assert_eq!(shape_in_a_loop(&[2], nested), "<unknown>");
    // The body refuses the shape with which the loop is entered: it may never run.
    let refuses = |b: &mut GraphBuilder<'_>, x| {
        let w = b.constant("w", floats(&[4, 3])).unwrap();
        b.op("MatMul").input(x).input(w).build().unwrap().into()
    };
    assert_eq!(shape_in_a_loop(&[2, 3], refuses), "<unknown>");
}
