use crate::bench::{Case, text};
use tenon_framework::{
    DType, PartialShape, Tensor,
    attr::{AttrList, AttrValue},
};
use tenon_graph::{GraphBuilder, Output};
use tenon_optimize::built_in;

fn after(case: &Case, format: &'static str) -> tenon_optimize::Optimized {
    let all = built_in();
    let names = ["layout", "arithmetic", "common_subexpressions"];
    let passes: Vec<_> = all.iter().map(|p| &**p).filter(|p| names.contains(&p.name())).collect();
    let done = case.with_format(&passes, Some(format));
    assert_eq!(done.report.failures().count(), 0, "{:?}", done.report);
    done
}

fn conv(b: &mut GraphBuilder<'static>, name: &str, x: Output, format: &str) -> Output {
    let w = b.constant(&format!("{name}/w"), crate::support::floats(&[3, 3, 4, 4])).unwrap();
    let strides: Vec<i64> = if format == "NCHW" { vec![1, 1, 1, 2] } else { vec![1, 1, 2, 1] };
    let node = b.op("Conv2D").name(name).input(x).input(w).attr("padding", "SAME");
    node.attr("data_format", format).attr("strides", strides).build().unwrap().into()
}

fn image(b: &mut GraphBuilder<'static>) -> Output {
    b.placeholder("x", DType::FLOAT, PartialShape::new(&[-1, 4, 8, 8]).unwrap()).unwrap()
}

fn ops(done: &tenon_optimize::Optimized, op: &str) -> usize {
    done.sub.order.iter().filter(|id| done.graph.node(**id).op.name == op).count()
}

#[test]
fn a_chain_is_transposed_at_its_ends_only() {
    let case = Case::new(|b| {
        let x = image(b);
        let first = conv(b, "first", x, "NCHW");
        let relu = b.op("Relu").name("relu").input(first).build().unwrap();
        let two = b.constant("two", Tensor::scalar(2f32).unwrap()).unwrap();
        let scaled = b.op("Mul").name("scaled").input(relu).input(two).build().unwrap();
        vec![conv(b, "y", scaled.into(), "NCHW")]
    });
    let done = after(&case, "NHWC");
    assert_eq!((ops(&done, "Conv2D"), ops(&done, "Transpose")), (2, 2), "{}", text(&done));
    let y = done.graph.node(done.graph.find("y").unwrap());
    assert_eq!(y.op.name, "Transpose", "what is fetched keeps its name and its format");
    let inner = done.graph.node(done.graph.find("y/in_format").unwrap());
    match inner.attrs.get("strides") {
        Some(AttrValue::List(AttrList::Int(strides))) => assert_eq!(strides, &[1, 1, 2, 1]),
        other => panic!("{other:?}"),
    }
    let shape = done.shapes.shape(Output::from(done.graph.find("y").unwrap()));
    assert_eq!(shape.to_string(), "[?,4,8,2]");
}

#[test]
fn what_has_the_device_s_format_stays() {
    let case = Case::new(|b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[-1, 8, 8, 4]).unwrap());
        vec![conv(b, "y", x.unwrap(), "NHWC")]
    });
    let done = after(&case, "NHWC");
    assert_eq!(text(&done), "y = Conv2D(x, y/w)\ny/w = Const()");
    assert_eq!(ops(&after(&case, "NCHW"), "Transpose"), 2);
}

#[test]
fn images_that_meet_are_added_in_one_format() {
    let case = Case::new(|b| {
        let x = image(b);
        let (left, right) = (conv(b, "left", x, "NCHW"), conv(b, "right", x, "NCHW"));
        let sum = b.op("AddV2").name("sum").input(left).input(right).build().unwrap();
        let y = b.op("MaxPool").name("y").input(sum).attr("padding", "VALID");
        let y = y.attr("data_format", "NCHW").attr("ksize", vec![1i64, 1, 2, 2]);
        vec![y.attr("strides", vec![1i64, 1, 2, 2]).build().unwrap().into()]
    });
    let done = after(&case, "NHWC");
    // The image, once for both, and the result.
    assert_eq!(ops(&done, "Transpose"), 2, "{}", text(&done));
}

#[test]
fn a_vector_that_is_added_keeps_the_image_where_it_is() {
    let case = Case::new(|b| {
        let x = image(b);
        let first = conv(b, "first", x, "NCHW");
        let c = b.constant("c", crate::support::floats(&[4])).unwrap();
        vec![b.op("AddV2").name("y").input(first).input(c).build().unwrap().into()]
    });
    let done = after(&case, "NHWC");
    assert!(text(&done).contains("y = AddV2(first, c)"), "{}", text(&done));
}
