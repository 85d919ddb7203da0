use crate::{
    bench::check,
    support::{floats, x},
};
use tenon_framework::DType;

#[test]
fn an_edge_beside_data_and_one_from_a_constant_say_nothing() {
    check("control_edges", "a = Relu(x)\ny = Neg(a)", |b| {
        let x = x(b);
        let c = b.constant("c", floats(&[3])).unwrap();
        let a = b.op("Relu").name("a").input(x).control(c.node).build().unwrap();
        vec![b.op("Neg").name("y").input(a).control(a).build().unwrap().into()]
    });
}

#[test]
fn an_edge_from_elsewhere_stays() {
    check("control_edges", "a = Relu(x)\nv = TestVariable()\ny = Neg(x) ^v ^a", |b| {
        let x = x(b);
        let v = b.op("TestVariable").name("v").attr("dtype", DType::FLOAT).build().unwrap();
        let a = b.op("Relu").name("a").input(x).build().unwrap();
        vec![b.op("Neg").name("y").input(x).control(v).control(a).build().unwrap().into()]
    });
}
