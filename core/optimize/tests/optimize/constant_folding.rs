use crate::{
    bench::{Case, check, constant, text},
    support::{floats, x},
};
use tenon_framework::{DType, PartialShape};
use tenon_graph::Output;
use tenon_optimize::built_in;

fn folding(case: &Case, limit: usize) -> tenon_optimize::Optimized {
    let all = built_in();
    let pass = all.iter().find(|pass| pass.name() == "constant_folding").unwrap();
    case.limited(&[&**pass], limit)
}

#[test]
fn what_depends_on_constants_only_is_computed_once() {
    let case = Case::new(|b| {
        let x = x(b);
        let c = b.constant("c", floats(&[3])).unwrap();
        let sum = b.op("AddV2").name("sum").input(c).input(c).build().unwrap();
        let negated = b.op("Neg").name("negated").input(sum).build().unwrap();
        vec![b.op("Mul").name("y").input(x).input(negated).build().unwrap().into()]
    });
    let done = folding(&case, 1 << 20);
    assert_eq!(text(&done), "negated = Const()\ny = Mul(x, negated)");
    assert_eq!(constant(&done, "negated").as_slice::<f32>().unwrap(), [-1.0; 3]);
    let pass = &done.report.passes[0];
    assert_eq!((pass.removed, done.report.before, done.report.after), (2, 4, 2));
    assert!(done.report.of("negated").any(|(_, change)| change.what.contains("12 bytes")));
}

#[test]
fn a_fetched_node_keeps_its_name_and_becomes_a_constant() {
    check("constant_folding", "sum = Const()", |b| {
        let c = b.constant("c", floats(&[3])).unwrap();
        vec![b.op("AddV2").name("sum").input(c).input(c).build().unwrap().into()]
    });
}

#[test]
fn the_shape_of_a_value_is_known_before_the_value() {
    // The rank is known, the shape is not.
    check("constant_folding", "rank = Const()\nshape = Shape(x)", |b| {
        let x = x(b);
        let shape = b.op("Shape").name("shape").input(x).build().unwrap();
        let rank = b.op("Rank").name("rank").input(x).build().unwrap();
        vec![shape.into(), rank.into()]
    });
    let case = Case::new(|b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[2, 3]).unwrap()).unwrap();
        let relu = b.op("Relu").name("relu").input(x).build().unwrap();
        vec![b.op("Shape").name("shape").input(relu).build().unwrap().into()]
    });
    let done = folding(&case, 1 << 20);
    assert_eq!(text(&done), "shape = Const()");
    assert_eq!(constant(&done, "shape").as_slice::<i32>().unwrap(), [2, 3]);
}

#[test]
fn shapes_of_what_has_an_effect_wait_for_it() {
    check(
        "constant_folding",
        "v = TestVariable()\nassign = TestAssign(v, x)\nread = Identity(assign)\nrank = Const() ^shaped\nshaped = EnsureShape(read)",
        |b| {
            let x = x(b);
            let v = b.op("TestVariable").name("v").attr("dtype", DType::FLOAT).build().unwrap();
            let assign = b.op("TestAssign").name("assign").input(v).input(x).build().unwrap();
            let read = b.op("Identity").name("read").input(assign).build().unwrap();
            let shaped = b.op("EnsureShape").name("shaped").input(read);
            let shape = PartialShape::new(&[-1, 3]).unwrap();
            let shaped = shaped.attr("shape", shape).build().unwrap();
            vec![b.op("Rank").name("rank").input(shaped).build().unwrap().into()]
        },
    );
}

#[test]
fn a_limit_holds_for_what_grows() {
    let case = Case::new(|b| {
        let large = b.constant("large", floats(&[1000])).unwrap();
        let small = b.constant("small", floats(&[])).unwrap();
        vec![b.op("AddV2").name("sum").input(large).input(small).build().unwrap().into()]
    });
    assert!(text(&folding(&case, 10)).contains("sum = Const()"), "it is no larger than it was");
    let case = Case::new(|b| {
        let a = b.constant("a", floats(&[1, 100])).unwrap();
        let c = b.constant("c", floats(&[100, 1])).unwrap();
        vec![b.op("AddV2").name("sum").input(a).input(c).build().unwrap().into()]
    });
    assert!(text(&folding(&case, 10_000)).contains("sum = AddV2(a, c)"));
}

#[test]
fn several_outputs_become_several_constants() {
    check(
        "constant_folding",
        "parts/folded_0 = Const()\nparts/folded_2 = Const()\ny = AddV2(parts/folded_0, parts/folded_2)",
        |b| {
            let c = b.constant("c", floats(&[3])).unwrap();
            let parts = b.op("Split3").name("parts").input(c).build().unwrap();
            let (first, last) = (Output::new(parts, 0), Output::new(parts, 2));
            let y = b.op("AddV2").name("y").input(first).input(last).attr("_kernel", "mine");
            vec![y.build().unwrap().into()]
        },
    );
}

#[test]
fn what_is_fed_is_not_constant() {
    let mut case = Case::new(|b| {
        let c = b.constant("c", floats(&[3])).unwrap();
        vec![b.op("AddV2").name("sum").input(c).input(c).build().unwrap().into()]
    });
    case.feeds = vec![case.graph.tensor("c").unwrap()];
    assert_eq!(text(&folding(&case, 1 << 20)), "sum = AddV2(c, c)");
}

#[test]
fn a_node_that_asks_for_its_kernel_computes() {
    check("constant_folding", "c = Const()\nsum = AddV2(c, c)", |b| {
        let c = b.constant("c", floats(&[3])).unwrap();
        let sum = b.op("AddV2").name("sum").input(c).input(c).attr("_kernel", "reference");
        vec![sum.build().unwrap().into()]
    });
}

/// `copies` constants, each of which is joined to itself `times` times.
fn doubled(b: &mut tenon_graph::GraphBuilder<'static>, copies: usize, times: usize) -> Output {
    let mut last: Vec<Output> = Vec::new();
    for copy in 0..copies {
        let mut value = b.constant(&format!("c{copy}"), floats(&[1000])).unwrap();
        for at in 0..times {
            let sum = b.op("AddV2").name(&format!("n{copy}_{at}")).input(value).input(value);
            value = sum.build().unwrap().into();
        }
        last.push(value);
    }
    b.op("AddN").name("y").inputs(last).attr("_kernel", "mine").build().unwrap().into()
}

#[test]
fn a_constant_larger_than_all_that_it_is_made_of_keeps_to_the_limit() {
    let case = Case::new(|b| {
        let a = b.constant("a", floats(&[1000])).unwrap();
        let parts = b.op("Split3").name("parts").input(a).build().unwrap();
        let outputs = (0..3).map(|at| Output::new(parts, at));
        let sum = b.op("AddN").name("y").inputs(outputs).attr("_kernel", "mine");
        vec![sum.build().unwrap().into()]
    });
    // Three copies of 4,000 bytes are made of 4,000.
    assert!(text(&folding(&case, 5000)).contains("parts = Split3(a)"));
    assert!(!text(&folding(&case, 12_000)).contains("Split3"));
}

#[test]
fn all_constants_of_a_compile_keep_to_one_limit() {
    use tenon_optimize::Limits;
    let case = Case::new(|b| vec![doubled(b, 4, 5)]);
    let all = built_in();
    let pass = all.iter().find(|pass| pass.name() == "constant_folding").unwrap();
    // The graph has four constants of 4,000 bytes: twice that may be added to the limit.
    let limits = Limits { folding_bytes: 8000, ..Limits::default() };
    let done = case.within(&[&**pass], limits);
    let folded = done.report.passes[0].changes.iter().filter(|c| c.what.contains("4000 bytes"));
    assert_eq!(folded.count(), 10, "{:?}", done.report.passes[0].changes);
    let [limit] = &done.report.limits[..] else { panic!("{:?}", done.report.limits) };
    assert!(
        limit.contains("its constants reached the limit (graph.folding_bytes=8000)"),
        "{limit}"
    );
    let done = case.within(&[&**pass], Limits::default());
    assert_eq!((done.report.limits.len(), done.report.after), (0, 5));
}

#[test]
fn zeros_of_integers_keep_to_the_limit_of_all_constants() {
    use tenon_optimize::Limits;
    let case = Case::new(|b| {
        let shape = PartialShape::new(&[1000]).unwrap();
        let x = b.placeholder("x", DType::INT32, shape).unwrap();
        let zero = b.constant("zero", tenon_framework::Tensor::scalar(0i32).unwrap()).unwrap();
        let mut product =
            |name: &str| b.op("Mul").name(name).input(x).input(zero).build().unwrap().into();
        vec![product("p"), product("q"), product("r")]
    });
    let all = built_in();
    let pass = all.iter().find(|pass| pass.name() == "arithmetic").unwrap();
    let limits = Limits { folding_bytes: 8000, ..Limits::default() };
    let done = case.within(&[&**pass], limits);
    assert_eq!(text(&done).matches("Const()").count(), 3, "{}", text(&done));
    assert_eq!(done.report.limits.len(), 1, "{:?}", done.report.limits);
}

#[test]
fn folding_ends_when_its_time_is_over() {
    use tenon_optimize::Limits;
    let case = Case::new(|b| vec![doubled(b, 1, 5)]);
    let all = built_in();
    let pass = all.iter().find(|pass| pass.name() == "constant_folding").unwrap();
    let limits = Limits { folding_time: std::time::Duration::from_nanos(1), ..Limits::default() };
    let done = case.within(&[&**pass], limits);
    let [limit] = &done.report.limits[..] else { panic!("{:?}", done.report.limits) };
    assert!(limit.contains("its time ran out (graph.folding_ms=0)"), "{limit}");
    assert!(done.report.after >= 5, "one node was folded at most: {}", done.report.after);
}
