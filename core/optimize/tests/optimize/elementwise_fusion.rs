use crate::{
    bench::{Case, check, text},
    support::{floats, x},
};
use tenon_framework::{DType, PartialShape};
use tenon_optimize::built_in;

fn program(case: &Case, node: &str) -> String {
    let all = built_in();
    let pass = all.iter().find(|pass| pass.name() == "elementwise_fusion").unwrap();
    let done = case.optimized(&[&**pass]);
    let id = done.graph.find(node).unwrap();
    let found = done
        .graph
        .node(id)
        .attrs
        .get("program")
        .and_then(|value| value.as_text().map(str::to_owned));
    found.unwrap_or_else(|| panic!("{}", text(&done)))
}

#[test]
fn a_tree_becomes_one_program() {
    let case = Case::new(|b| {
        let x = x(b);
        let c = b.constant("c", floats(&[3])).unwrap();
        let sum = b.op("AddV2").name("sum").input(x).input(c).build().unwrap();
        let other = b.op("Tanh").name("other").input(x).build().unwrap();
        let product = b.op("Mul").name("product").input(sum).input(other).build().unwrap();
        vec![b.op("Relu").name("y").input(product).build().unwrap().into()]
    });
    assert_eq!(case.after("elementwise_fusion"), "c = Const()\ny = _FusedElementwise(x, c)");
    assert_eq!(program(&case, "y"), "AddV2 i0 i1; Tanh i0; Mul %0 %1; Relu %2");
}

#[test]
fn what_is_used_twice_inside_is_computed_once() {
    let case = Case::new(|b| {
        let x = x(b);
        let sum = b.op("Neg").name("sum").input(x).build().unwrap();
        vec![b.op("Mul").name("y").input(sum).input(sum).build().unwrap().into()]
    });
    assert_eq!(program(&case, "y"), "Neg i0; Mul %0 %0");
}

#[test]
fn what_is_used_outside_or_alone_stays() {
    let expected = "a = Neg(x)\nb = _FusedElementwise(a)\nz = Exp(a)";
    check("elementwise_fusion", expected, |b| {
        let x = x(b);
        let a = b.op("Neg").name("a").input(x).build().unwrap();
        let s = b.op("Square").name("s").input(a).build().unwrap();
        let y = b.op("Relu").name("b").input(s).build().unwrap();
        let z = b.op("Exp").name("z").input(a).build().unwrap();
        vec![y.into(), z.into()]
    });
}

#[test]
fn shapes_that_are_not_known_to_be_one_are_not_joined() {
    check("elementwise_fusion", "n = Neg(u)\ny = AddV2(x, n)", |b| {
        let x = x(b);
        let u = b.placeholder("u", DType::FLOAT, PartialShape::new(&[-1, 3]).unwrap()).unwrap();
        let n = b.op("Neg").name("n").input(u).build().unwrap();
        vec![b.op("AddV2").name("y").input(x).input(n).build().unwrap().into()]
    });
}
