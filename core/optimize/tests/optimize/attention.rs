//! Attention in the forms that graphs have, and the fused op that replaces it.

use crate::{
    bench::{Case, text},
    remapping::{B, number, op, remapped, scalar, weights},
};
use tenon_framework::{DType, PartialShape, Tensor, attr::AttrValue};
use tenon_graph::Output;
use tenon_optimize::{Optimized, built_in};

fn input(b: &mut B, name: &str, dims: &[i64]) -> Output {
    b.placeholder(name, DType::FLOAT, PartialShape::new(dims).unwrap()).unwrap()
}

fn product(b: &mut B, name: &str, [x, y]: [Output; 2], transposed: bool) -> Output {
    let product = b.op("BatchMatMulV2").name(name).input(x).input(y);
    product.attr("adj_y", transposed).build().unwrap().into()
}

fn einsum(b: &mut B, name: &str, inputs: [Output; 2], equation: &str) -> Output {
    let einsum = b.op("Einsum").name(name).inputs(inputs).attr("equation", equation);
    einsum.build().unwrap().into()
}

fn layout(done: &Optimized) -> String {
    let node = done.graph.node(done.graph.find("y").unwrap());
    node.attrs.get("layout").and_then(AttrValue::as_text).unwrap().to_owned()
}

#[test]
fn attention_is_found_whole() {
    let case = Case::new(|b| {
        let [q, k, v] = ["q", "k", "v"].map(|name| input(b, name, &[2, 5, 8]));
        let mask = weights(b, "mask", &[2, 1, 5]);
        let scale = scalar(b, "scale", 0.125);
        let scores = product(b, "scores", [q, k], true);
        let scaled = op(b, "scaled", "Mul", &[scores, scale]);
        let masked = op(b, "masked", "AddV2", &[scaled, mask]);
        let weights = op(b, "weights", "Softmax", &[masked]);
        vec![product(b, "y", [weights, v], false)]
    });
    let done = remapped(&case);
    assert_eq!(text(&done), "mask = Const()\ny = _FusedAttention(q, k, v, mask)");
    assert_eq!(number(&done, "y", "scale"), 0.125);
    assert_eq!(layout(&done), "HEADS_FIRST");
}

#[test]
fn batches_need_not_be_known_to_be_equal() {
    let case = Case::new(|b| {
        let [q, k, v] = ["q", "k", "v"].map(|name| input(b, name, &[-1, 4, 12, 8]));
        let mask = input(b, "mask", &[-1, 1, 1, 12]);
        let scores = product(b, "scores", [q, k], true);
        let masked = op(b, "masked", "AddV2", &[mask, scores]);
        let weights = op(b, "weights", "Softmax", &[masked]);
        vec![product(b, "y", [weights, v], false)]
    });
    let done = remapped(&case);
    assert_eq!(text(&done), "y = _FusedAttention(q, k, v, mask)");
    assert_eq!(number(&done, "y", "scale"), 1.0);
}

#[test]
fn a_scale_that_the_attribute_cannot_hold_stays_a_product() {
    let found = |scale: f64| {
        let case = Case::new(|b| {
            let shape = PartialShape::new(&[2, 5, 8]).unwrap();
            let [q, k, v] = ["q", "k", "v"]
                .map(|name| b.placeholder(name, DType::DOUBLE, shape.clone()).unwrap());
            let scale = b.constant("scale", Tensor::scalar(scale).unwrap()).unwrap();
            let scores = product(b, "scores", [q, k], true);
            let scaled = op(b, "scaled", "Mul", &[scores, scale]);
            let weights = op(b, "weights", "Softmax", &[scaled]);
            vec![product(b, "y", [weights, v], false)]
        });
        text(&remapped(&case))
    };
    assert_eq!(found(0.125), "y = _FusedAttention(q, k, v)");
    assert!(found(0.1).contains("weights = Softmax(scaled)"), "{}", found(0.1));
}

/// Queries, keys and values with heads inside, as labels multiply them.
fn by_labels(equations: [&str; 2], keys_first: bool, kept: bool) -> Optimized {
    let case = Case::new(|b| {
        let [q, k, v] = ["q", "k", "v"].map(|name| input(b, name, &[-1, 12, 4, 8]));
        let first = if keys_first { [k, q] } else { [q, k] };
        let mut scores = einsum(b, "scores", first, equations[0]);
        if kept {
            let (c, low) = (scalar(b, "c", 0.5), scalar(b, "low", -1e9));
            let shape = PartialShape::new(&[-1, 1, 12, 12]).unwrap();
            let keep = b.placeholder("keep", DType::BOOL, shape).unwrap();
            scores = op(b, "scaled", "Mul", &[scores, c]);
            scores = op(b, "kept", "SelectV2", &[keep, scores, low]);
        }
        let weights = op(b, "weights", "Softmax", &[scores]);
        vec![einsum(b, "y", [weights, v], equations[1])]
    });
    remapped(&case)
}

#[test]
fn attention_by_labels_is_found_whatever_the_labels() {
    let done = by_labels(["BTNH,BSNH->BNTS", "BNTS,BSNH->BTNH"], false, false);
    assert_eq!(text(&done), "y = _FusedAttention(q, k, v)");
    assert_eq!(layout(&done), "HEADS_INSIDE");
    let done = by_labels(["aecd,abcd->acbe", "acbe,aecd->abcd"], true, false);
    assert_eq!(text(&done), "y = _FusedAttention(q, k, v)");
    let done = by_labels(["bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd"], false, true);
    assert_eq!(text(&done), "y = _FusedAttention(q, k, v, keep)");
    assert_eq!(number(&done, "y", "dropped"), -1e9);
    assert_eq!(number(&done, "y", "scale"), 0.5);
    // Another product: over the queries.
    let done = by_labels(["bqhd,bkhd->bhqk", "bhqk,bqhd->bkhd"], false, false);
    assert!(text(&done).contains("weights = Softmax(scores)"), "{}", text(&done));
}

/// As Keras writes a softmax with a mask: what is dropped is low before it, and 0 after it.
#[test]
fn weights_that_are_dropped_again_are_found() {
    let found = |again: &str, rest: f32| {
        let case = Case::new(|b| {
            let [q, k, v] = ["q", "k", "v"].map(|name| input(b, name, &[-1, 4, 12, 8]));
            let [keep, other] = ["keep", "other"].map(|name| {
                let shape = PartialShape::new(&[-1, 1, 12, 12]).unwrap();
                b.placeholder(name, DType::BOOL, shape).unwrap()
            });
            let (low, rest) = (scalar(b, "low", -3e9), scalar(b, "rest", rest));
            let again = if again == "keep" { keep } else { other };
            let scores = product(b, "scores", [q, k], true);
            let kept = op(b, "kept", "SelectV2", &[keep, scores, low]);
            let weights = op(b, "weights", "Softmax", &[kept]);
            let weights = op(b, "again", "SelectV2", &[again, weights, rest]);
            vec![product(b, "y", [weights, v], false)]
        });
        remapped(&case)
    };
    let done = found("keep", 0.0);
    assert_eq!(text(&done), "y = _FusedAttention(q, k, v, keep)");
    assert_eq!(number(&done, "y", "dropped"), -3e9);
    let node = done.graph.node(done.graph.find("y").unwrap());
    let zero = node.attrs.get("zero_dropped");
    assert!(matches!(zero, Some(AttrValue::Bool(true))), "{zero:?}");
    // Of another mask, or made something else.
    for done in [found("other", 0.0), found("keep", 0.5)] {
        assert!(text(&done).contains("weights = Softmax(kept)"), "{}", text(&done));
    }
}

/// As layers with dropout freeze: keys times queries, the product transposed.
#[test]
fn attention_through_transpositions_is_found() {
    let case = Case::new(|b| {
        let [q, k, v] = ["q", "k", "v"].map(|name| input(b, name, &[-1, 12, 4, 8]));
        let turned = |b: &mut B, name: &str, x: Output, perm: [i32; 4]| {
            let perm = Tensor::from_slice(&[4], &perm).unwrap();
            let perm = b.constant(&format!("{name}/perm"), perm).unwrap();
            op(b, name, "Transpose", &[x, perm])
        };
        let keys = turned(b, "keys", k, [0, 2, 1, 3]);
        let queries = turned(b, "queries", q, [0, 2, 3, 1]);
        let values = turned(b, "values", v, [0, 2, 1, 3]);
        let scores = product(b, "scores", [keys, queries], false);
        let scores = turned(b, "turned", scores, [0, 1, 3, 2]);
        let low = scalar(b, "low", -1e9);
        let shape = PartialShape::new(&[-1, 1, 12, 12]).unwrap();
        let keep = b.placeholder("keep", DType::BOOL, shape).unwrap();
        let scores = op(b, "kept", "SelectV2", &[keep, scores, low]);
        let weights = op(b, "weights", "Softmax", &[scores]);
        vec![product(b, "y", [weights, values], false)]
    });
    let all = built_in();
    let passes: Vec<_> = all.iter().map(|pass| &**pass).collect();
    let done = case.optimized(&passes);
    assert_eq!(done.report.failures().count(), 0, "{:?}", done.report);
    let text = text(&done);
    assert!(text.contains("y = _FusedAttention("), "{text}");
    assert!(!text.contains("MatMul"), "{text}");
    assert_eq!(text.matches("= Transpose(").count(), 3, "{text}");
}
