use crate::{
    bench::check,
    support::{floats, x},
};
use tenon_framework::{DType, Tensor};

#[test]
fn of_equal_nodes_one_computes() {
    check("common_subexpressions", "a = Relu(x)\ny = AddV2(a, a)", |b| {
        let x = x(b);
        let a = b.op("Relu").name("a").input(x).build().unwrap();
        let c = b.op("Relu").name("c").input(x).build().unwrap();
        vec![b.op("AddV2").name("y").input(a).input(c).build().unwrap().into()]
    });
}

#[test]
fn chains_meet_from_their_sources_on() {
    check("common_subexpressions", "n1 = Relu(x)\nn3 = Neg(n1)\ny = AddV2(n3, n3)", |b| {
        let x = x(b);
        let chain = |b: &mut tenon_graph::GraphBuilder<'static>, names: [&str; 2]| {
            let relu = b.op("Relu").name(names[0]).input(x).build().unwrap();
            b.op("Neg").name(names[1]).input(relu).build().unwrap()
        };
        let (a, c) = (chain(b, ["n1", "n3"]), chain(b, ["n2", "n4"]));
        vec![b.op("AddV2").name("y").input(a).input(c).build().unwrap().into()]
    });
}

#[test]
fn equal_constants_are_one_and_zeros_of_two_signs_are_two() {
    check("common_subexpressions", "a = Const()\nc = Const()\ny = AddN(a, a, c)", |b| {
        let constant = |b: &mut tenon_graph::GraphBuilder<'static>, name: &str, value: f32| {
            b.constant(name, Tensor::from_slice(&[1], &[value]).unwrap()).unwrap()
        };
        let parts = [constant(b, "a", 0.0), constant(b, "b", 0.0), constant(b, "c", -0.0)];
        vec![b.op("AddN").name("y").inputs(parts).build().unwrap().into()]
    });
}

#[test]
fn operands_of_a_sum_change_places_and_those_of_a_difference_do_not() {
    let expected =
        "c = Const()\nd = Sub(x, c)\ne = Sub(c, x)\ns = AddV2(x, c)\ny = AddN(s, s, d, e)";
    check("common_subexpressions", expected, |b| {
        let x = x(b);
        let c = b.constant("c", floats(&[3])).unwrap();
        let mut op = |op: &str, name: &str, inputs| {
            b.op(op).name(name).inputs(inputs).build().unwrap().into()
        };
        let (s, t) = (op("AddV2", "s", [x, c]), op("AddV2", "t", [c, x]));
        let (d, e) = (op("Sub", "d", [x, c]), op("Sub", "e", [c, x]));
        vec![b.op("AddN").name("y").inputs([s, t, d, e]).build().unwrap().into()]
    });
}

#[test]
fn two_that_are_fetched_both_stay_and_a_third_goes() {
    check("common_subexpressions", "b = Relu(x)\nc = Relu(x)\ny = Neg(b)", |b| {
        let x = x(b);
        let mut relu = |name: &str| b.op("Relu").name(name).input(x).build().unwrap();
        let (a, second, third) = (relu("a"), relu("b"), relu("c"));
        let y = b.op("Neg").name("y").input(a).build().unwrap();
        vec![second.into(), third.into(), y.into()]
    });
}

#[test]
fn nodes_with_state_or_other_order_are_not_merged() {
    let expected = "a = Relu(x)\nb = Relu(x) ^v\nv = TestVariable()\nw = TestVariable()\ny = AddN(a, b, r, s)\nr = Identity(v)\ns = Identity(w)";
    check("common_subexpressions", expected, |b| {
        let x = x(b);
        let mut variable = |name: &str| {
            b.op("TestVariable").name(name).attr("dtype", DType::FLOAT).build().unwrap()
        };
        let (v, w) = (variable("v"), variable("w"));
        let r = b.op("Identity").name("r").input(v).build().unwrap();
        let s = b.op("Identity").name("s").input(w).build().unwrap();
        let a = b.op("Relu").name("a").input(x).build().unwrap();
        let c = b.op("Relu").name("b").input(x).control(v).build().unwrap();
        let inputs = [a, c, r, s].map(tenon_graph::Output::from);
        vec![b.op("AddN").name("y").inputs(inputs).build().unwrap().into()]
    });
}
