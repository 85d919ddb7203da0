//! What kernels in C++ learn when they are made, and what they keep.

use tenon_abi::DType;
use tenon_framework::{Code, PartialShape};
use tenon_host::instance::{PackCache, call_once};
use tenon_tests::{
    bench::{Bench, elements, floats, scalar, texts},
    zoo::cpp_zoo,
};

fn zoo() -> Bench {
    Bench::with([cpp_zoo()])
}

#[test]
fn attributes_of_every_kind() {
    let bench = zoo();
    let shape = PartialShape::new(&[2, -1]).unwrap();
    let node = bench.node("ZooCppAttributes").attr("i", -7i64).attr("f", 0.5f32).attr("b", true);
    let node = node.attr("s", "text").attr("t", DType::INT64).attr("shape", shape);
    let node = node.attr("ints", vec![1i64, 2, 3]).shape(&[4, -1]);
    let y = node.call(&[floats(&[1.0])]).unwrap();
    let expected = "-7 0.500000 true text int64 [2,?] [3] ZooCppAttributes float[4,?]";
    assert_eq!(texts(&y[0]), [expected]);
}

#[test]
fn supports_and_prepack_are_found_in_the_class() {
    let bench = zoo();
    let matrix = bench.node("ZooCppPacks").shape(&[2, 2]).shape(&[]);
    assert_eq!(matrix.create().unwrap_err().code, Code::NOT_FOUND);
    let node = bench.node("ZooCppPacks").shape(&[3]).shape(&[]);
    let inputs = [floats(&[1.0, 2.0, 3.0]), scalar(10f32)];
    let plain = call_once(&node.create().unwrap(), &inputs, &bench.env).unwrap();
    assert_eq!(elements::<f32>(&plain[0]), [10.0, 20.0, 30.0]);
    let mut packed = node.create().unwrap();
    let cache = PackCache::default();
    assert!(packed.prepack(1, &inputs[1], &cache, "w").unwrap());
    assert!(!packed.prepack(0, &inputs[0], &cache, "x").unwrap(), "declined");
    assert_eq!(packed.packed_bytes(), 8);
    let squared = call_once(&packed, &inputs, &bench.env).unwrap();
    assert_eq!(elements::<f32>(&squared[0]), [100.0, 200.0, 300.0]);
}

#[test]
fn a_constant_is_there_when_the_kernel_is_made() {
    let bench = zoo();
    let x = floats(&[4.5]);
    let of = |node: tenon_tests::bench::Node<'_>| {
        elements::<f32>(&node.call(std::slice::from_ref(&x)).unwrap()[0])
    };
    assert_eq!(of(bench.node("ZooCppConstant").shape(&[1]).constant(0, &x)), [4.5]);
    assert_eq!(of(bench.node("ZooCppConstant").shape(&[1])), [-1.0]);
}

#[test]
fn a_resource_is_found_by_its_name_and_by_its_handle() {
    let bench = zoo();
    let count = || bench.node("ZooCppCount").call(&[]).unwrap();
    assert_eq!(elements::<i64>(&count()[0]), [1]);
    let second = count();
    assert_eq!(elements::<i64>(&second[0]), [2], "another kernel, the same counter");
    let read = bench.node("ZooCppRead").call(&[second[1].clone()]).unwrap();
    assert_eq!(elements::<i64>(&read[0]), [2]);
    let forget = || bench.node("ZooCppForget").call(&[]);
    assert_eq!(elements::<bool>(&forget().unwrap()[0]), [true]);
    assert_eq!(forget().unwrap_err().code, Code::NOT_FOUND);
    assert_eq!(elements::<i64>(&count()[0]), [1], "a new one");
}

#[test]
fn a_tensor_is_kept_from_call_to_call() {
    let bench = zoo();
    let kernel = bench.node("ZooCppLast").create().unwrap();
    let last =
        |x: &[f32]| elements::<f32>(&call_once(&kernel, &[floats(x)], &bench.env).unwrap()[0]);
    assert!(last(&[1.0, 2.0]).is_empty());
    assert_eq!(last(&[3.0]), [1.0, 2.0]);
    assert_eq!(last(&[]), [3.0]);
}
