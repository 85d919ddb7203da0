//! Calls from wishes, over an op that needs no plugin.

use super::*;
use crate::wanted::{Shapes, sweep, value};
use tenon_framework::attr::AttrValue;
use tenon_testkit::check::Fill;

fn op(inputs: &[&str], attrs: &[&str]) -> Arc<OpDef> {
    Arc::new(OpDef::from_spec("Some", inputs, &["z: T"], attrs).unwrap())
}

fn binary() -> Arc<OpDef> {
    op(&["x: T", "y: T"], &["T: {half, float, int32}", "flag: bool = false"])
}

fn wish(shapes: &[&str]) -> Wish {
    let shapes = shapes.iter().map(|text| Shapes::parse(text).unwrap()).collect();
    Wish { shapes, ..Wish::default() }
}

fn dims(call: &Call) -> Vec<Vec<i64>> {
    call.case.inputs.iter().map(|input| input.dims.clone()).collect()
}

fn wrong(op: &Arc<OpDef>, wish: &Wish) -> String {
    of_op(op, &[], wish).unwrap_err().to_string()
}

/// Without kernels every type that the op allows counts as taken.
fn calls(op: &Arc<OpDef>, wish: &Wish) -> Vec<Call> {
    types::choose(op, &[], wish).map(|types| along_sweep(op, &types, wish)).unwrap().unwrap()
}

#[test]
fn each_set_of_shapes_is_a_call() {
    let calls = calls(&binary(), &wish(&["x=2x3,y=3", "7"]));
    assert_eq!(
        calls.iter().map(dims).collect::<Vec<_>>(),
        [vec![vec![2, 3], vec![3]], vec![vec![7], vec![7]]]
    );
    assert!(calls.iter().all(|call| call.at.is_none()));
    assert_eq!(calls[0].recorded().unwrap().shapes(), "x=2x3 y=3");
}

#[test]
fn a_sweep_gives_a_call_per_value() {
    let wish = Wish { sweep: Some(sweep("n=2..8").unwrap()), ..wish(&["x=[n,2*n],y=[1]"]) };
    let calls = calls(&binary(), &wish);
    let found: Vec<_> =
        calls.iter().map(|call| (call.at.unwrap(), dims(call)[0].clone())).collect();
    assert_eq!(found, [(2, vec![2, 4]), (4, vec![4, 8]), (8, vec![8, 16])]);
    let unused = Wish { sweep: Some(sweep("k=2..8").unwrap()), ..wish.clone() };
    assert!(wrong(&binary(), &unused).contains("no shape uses the symbol 'k'"));
    let without = Wish { shapes: Vec::new(), ..wish };
    assert!(wrong(&binary(), &without).contains("--shape x=[n,n]"));
}

#[test]
fn attributes_and_types_are_the_user_s() {
    let wish = Wish {
        attrs: vec![("flag".into(), "true".into())],
        dtype: Some(DType::HALF),
        ..wish(&["x=2,y=2"])
    };
    let call = calls(&binary(), &wish).remove(0);
    assert_eq!(call.dtype(), DType::HALF);
    assert!(matches!(call.case.attrs["flag"], AttrValue::Bool(true)));
    assert_eq!(call.size().unwrap(), "x=2 y=2 T=half flag=true");
    let bad = Wish { attrs: vec![("flags".into(), "true".into())], ..wish.clone() };
    assert!(wrong(&binary(), &bad).contains("no attribute 'flags': its attributes are T, flag"));
    let bad = Wish { dtype: Some(DType::DOUBLE), ..wish };
    assert!(
        wrong(&binary(), &bad)
            .contains("no kernel takes double for T: they take half, float, int32")
    );
}

#[test]
fn arguments_of_several_inputs_take_one_shape_or_one_each() {
    let many = op(&["values: N * T", "axis: int32"], &["N: int", "T: type"]);
    let with = |shapes: &str| Wish { values: vec![value("axis=-1").unwrap()], ..wish(&[shapes]) };
    let call = calls(&many, &with("values=2x3+2x5")).remove(0);
    assert_eq!(dims(&call), [vec![2, 3], vec![2, 5], vec![]]);
    assert!(call.case.inputs[2].constant && matches!(call.case.inputs[2].fill, Fill::Explicit(_)));
    let three = Wish { attrs: vec![("N".into(), "3".into())], ..with("values=4") };
    assert_eq!(dims(&calls(&many, &three)[0]).len(), 4);
    let three = Wish { attrs: vec![("N".into(), "3".into())], ..with("values=4+5") };
    assert!(wrong(&many, &three).contains("is 3 inputs, found 2 shapes"));
}

#[test]
fn what_lacks_or_is_not_there_is_named() {
    assert!(wrong(&binary(), &wish(&["x=2"])).contains("input 'y' has no shape: add y=SHAPE"));
    assert!(wrong(&binary(), &wish(&["x=2,z=2"])).contains("no input 'z': its inputs are x, y"));
    let constant = Wish { constants: vec!["w".into()], ..wish(&["2"]) };
    assert!(wrong(&binary(), &constant).contains("no input 'w'"));
    let value = Wish { values: vec![value("y=[70000]").unwrap()], ..wish(&["x=2"]) };
    let small = op(&["x: T", "y: int16"], &["T: type"]);
    assert!(wrong(&small, &value).contains("input 'y' of int16 cannot hold [70000]"));
}

#[test]
fn constants_are_marked() {
    let call =
        calls(&binary(), &Wish { constants: vec!["y".into()], ..wish(&["x=2,y=2"]) }).remove(0);
    assert_eq!(
        call.case.inputs.iter().map(|input| input.constant).collect::<Vec<_>>(),
        [false, true]
    );
    assert_eq!(call.size().unwrap(), "x=2 y=2! T=float");
}

#[test]
fn an_op_s_own_calls_are_measured_and_the_user_s_words_come_before_them() {
    let inputs = ["x: T", "axis: int32"];
    let attrs = ["T: {half, float, int32}", "flag: bool = false"];
    let mut op = OpDef::from_spec("Some", &inputs, &["z: T"], &attrs).unwrap();
    let text = "rows; flag in {true, false}; n in {8, 64}; x: [n, 2*n]; axis: [1] values(1)";
    op.set_bench(&[text], "", "").unwrap();
    let op = Arc::new(op);
    let shipped = of_op(&op, &[], &Wish::default()).unwrap();
    let sizes: Vec<String> = shipped.iter().map(|call| call.size().unwrap()).collect();
    assert_eq!(
        sizes,
        [
            "x=8x16 axis=1! T=float flag=true",
            "x=64x128 axis=1! T=float flag=true",
            "x=8x16 axis=1! T=float",
            "x=64x128 axis=1! T=float"
        ]
    );
    let own = Wish {
        attrs: vec![("flag".into(), "true".into())],
        values: vec![value("axis=[0,1]").unwrap()],
        dtype: Some(DType::HALF),
        ..Wish::default()
    };
    let calls = of_op(&op, &[], &own).unwrap();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].size().unwrap(), "x=8x16 axis=2! T=half flag=true");
    let given = of_op(&op, &[], &Wish { ..wish(&["x=5,axis=1"]) }).unwrap();
    assert_eq!(dims(&given[0]), [vec![5], vec![1]], "with shapes the op's own do not count");
    let bad = Wish { constants: vec!["w".into()], ..Wish::default() };
    assert!(wrong(&op, &bad).contains("no input 'w'"));
}
