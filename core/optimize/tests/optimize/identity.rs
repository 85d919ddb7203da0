use crate::{
    bench::check,
    support::{floats, x},
};
use tenon_framework::{DType, Tensor};
use tenon_graph::Output;

#[test]
fn chains_that_pass_a_value_on_are_passed_by() {
    check("identity", "y = Relu(x)", |b| {
        let mut value = x(b);
        for op in ["Identity", "Snapshot", "StopGradient", "Identity"] {
            value = b.op(op).input(value).build().unwrap().into();
        }
        vec![b.op("Relu").name("y").input(value).build().unwrap().into()]
    });
}

#[test]
fn one_that_is_fetched_stays_for_its_name() {
    check("identity", "y = Identity(x)\nz = Relu(x)", |b| {
        let x = x(b);
        let y = b.op("Identity").name("y").input(x).build().unwrap();
        vec![y.into(), b.op("Relu").name("z").input(y).build().unwrap().into()]
    });
}

#[test]
fn each_value_of_several_is_passed_by() {
    check("identity", "c = Const()\ny = AddV2(x, c)", |b| {
        let x = x(b);
        let c = b.constant("c", floats(&[3])).unwrap();
        let both = b.op("IdentityN").input(x).input(c).build().unwrap();
        let y = b.op("AddV2").name("y").input(both).input(Output::new(both, 1));
        vec![y.build().unwrap().into()]
    });
}

#[test]
fn one_that_waits_for_an_effect_stays() {
    check("identity", "i = Identity(x) ^v\nv = TestVariable()\ny = Relu(i)", |b| {
        let x = x(b);
        let v = b.op("TestVariable").name("v").attr("dtype", DType::FLOAT).build().unwrap();
        let i = b.op("Identity").name("i").input(x).control(v).build().unwrap();
        vec![b.op("Relu").name("y").input(i).build().unwrap().into()]
    });
}

#[test]
fn the_value_of_a_reference_is_taken_where_it_is_taken() {
    check("identity", "read = Identity(v)\nv = TestVariable()\ny = Relu(read)", |b| {
        let v = b.op("TestVariable").name("v").attr("dtype", DType::FLOAT).build().unwrap();
        let read = b.op("Identity").name("read").input(v).build().unwrap();
        vec![b.op("Relu").name("y").input(read).build().unwrap().into()]
    });
}

#[test]
fn what_waits_for_a_branch_goes_on_waiting_for_it() {
    let expected = "c = Const() ^taken\np = Const()\ns = Switch(x, p)\ntaken = Identity(s:1)\ny = AddV2(s:1, c)";
    check("identity", expected, |b| {
        let x = x(b);
        let p = b.constant("p", Tensor::scalar(true).unwrap()).unwrap();
        let s = b.op("Switch").name("s").input(x).input(p).build().unwrap();
        let taken = b.op("Identity").name("taken").input(Output::new(s, 1)).build().unwrap();
        let c = b.op("Const").name("c").attr("dtype", DType::FLOAT).attr("value", floats(&[3]));
        let c = c.control(taken).build().unwrap();
        vec![b.op("AddV2").name("y").input(taken).input(c).build().unwrap().into()]
    });
}
