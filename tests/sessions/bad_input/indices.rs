//! Indices, lengths and values that only the step knows: the error names the node, the index, its place and the
//! bound.

use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::framework::{Code, DType, PartialShape, Tensor};
use tenon_tests::session::{floats, run, survives};

const CPU: &[&str] = &["tenon_cpu"];

fn ints(dims: &[i64], values: &[i32]) -> Tensor {
    Tensor::from_slice(dims, values).expect("as many values as the shape says")
}

fn nodes(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
    let at = b.placeholder("at", DType::INT32, PartialShape::UNKNOWN)?;
    let axis = b.constant("axis", ints(&[], &[0]))?;
    let shape = b.constant("shape", ints(&[1], &[3]))?;
    b.op("GatherV2").name("rows").input(x).input(at).input(axis).build()?;
    b.op("GatherNd").name("elements").input(x).input(at).build()?;
    b.op("ScatterNd").name("scattered").input(at).input(x).input(shape).build()?;
    b.op("InvertPermutation").name("inverse").input(at).build()?;
    b.op("ReverseSequence").name("turned").input(x).input(at).attr("seq_dim", 1i64).build()?;
    b.op("CheckNumerics").name("checked").input(x).attr("message", "of x").build()?;
    Ok(())
}

#[test]
fn what_lies_outside_is_named_with_its_place_and_bound() {
    let x = || floats(&[1.0, 2.0, 3.0]);
    let square = || floats(&[1.0; 4]).reshaped(&[2, 2]).expect("four elements");
    let nan = floats(&[f32::NAN, 1.0, 2.0]);
    let cases = [
        ("rows", x(), ints(&[2, 2], &[0, 1, 5, 2]), "indices[1,0] = 5 is not in [0, 3)"),
        ("rows", x(), ints(&[], &[-1]), "indices = -1 is not in [0, 3)"),
        ("elements", x(), ints(&[2, 1], &[0, 3]), "indices[1] = [3] does not index into shape [3]"),
        (
            "scattered",
            x(),
            ints(&[3, 1], &[0, -2, 1]),
            "indices[1] = [-2] does not index into shape [3]",
        ),
        ("inverse", x(), ints(&[3], &[0, 3, 1]), "x[1] = 3 is not in [0, 3)"),
        ("inverse", x(), ints(&[3], &[2, 0, 2]), "x holds 2 twice, at 0 and at 2"),
        ("turned", square(), ints(&[2], &[1, 3]), "seq_lengths[1] = 3 is not in [0, 2]"),
        ("checked", nan, ints(&[], &[0]), "of x : Tensor had NaN values"),
    ];
    survives(CPU, &[], nodes, |session| {
        for (node, x, at, expected) in &cases {
            let feeds = [("x", x.clone()), ("at", at.clone())];
            let error = run(session, &feeds, &[node]).expect_err("the step cannot run");
            let message = error.to_string();
            assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{message}");
            assert!(message.contains(expected), "expected '{expected}' in: {message}");
            assert!(message.contains(&format!("'{node}'")), "{message}");
        }
    });
}

fn image(values: &[f32], dims: &[i64]) -> Tensor {
    floats(values).reshaped(dims).expect("as many elements")
}

/// A gradient for images of 2 by 2 pixels, one window each.
fn gradient(b: &mut GraphBuilder<'_>, include_batch: bool) -> Result<(), GraphError> {
    let image = b.placeholder("image", DType::FLOAT, PartialShape::UNKNOWN)?;
    let dy = b.placeholder("dy", DType::FLOAT, PartialShape::UNKNOWN)?;
    let places = b.placeholder("places", DType::INT64, PartialShape::UNKNOWN)?;
    let node = b.op("MaxPoolGradWithArgmax").name("dx").input(image).input(dy).input(places);
    let node = node.attr("ksize", vec![1i64, 2, 2, 1]).attr("strides", vec![1i64, 2, 2, 1]);
    node.attr("padding", "VALID").attr("include_batch_in_index", include_batch).build().map(|_| ())
}

#[test]
fn places_outside_of_an_image_are_refused() {
    for (include_batch, bad, good) in [(false, 4, 3), (true, 8, 7), (false, -1, 0)] {
        let make = |b: &mut GraphBuilder<'_>| gradient(b, include_batch);
        survives(CPU, &[], make, |session| {
            let step = |second: i64| {
                let first = if include_batch { 0 } else { good };
                let places = Tensor::from_slice(&[2, 1, 1, 1], &[first, second]).expect("two");
                let dy = image(&[1.0, 2.0], &[2, 1, 1, 1]);
                run(
                    session,
                    &[("image", image(&[0.0; 8], &[2, 2, 2, 1])), ("dy", dy), ("places", places)],
                    &["dx"],
                )
            };
            let error = step(bad).expect_err("no image has it");
            let message = error.to_string();
            assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{message}");
            let found = format!("found {bad} at position 1");
            assert!(
                message.contains("argmax must lie in") && message.contains(&found),
                "{message}"
            );
            step(good).expect("a place in the image");
        });
    }
}
