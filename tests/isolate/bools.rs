//! Bools of a plugin in C, which are any bytes, and what ops in Rust make of them.

use super::support::{alone, runtime, runtime_by};
use tenon_runtime::{
    Runtime,
    framework::{DType, PartialShape, Tensor},
};
use tenon_tests::{
    bench::worker,
    session::{run, session_as_written},
    zoo::Language,
};

fn runtimes() -> [Runtime; 2] {
    let worker = worker().display().to_string();
    let knobs = [("host.isolate_worker", worker.as_str())];
    let here = runtime(&["tenon_cpu", "tenon_text"], &[], &[]);
    here.load([Language::C.zoo()]).into_result().unwrap();
    [here, runtime_by(&["tenon_cpu", "tenon_text"], &[Language::C.zoo()], &knobs)]
}

#[test]
fn true_of_any_byte_is_true_for_every_op() {
    let _alone = alone();
    for (runtime, op) in runtimes().iter().zip(["ZooCMask", "ZooCMaskLater"]) {
        let session = session_as_written(runtime, |b| {
            let x = b.placeholder("x", DType::UINT8, PartialShape::UNKNOWN)?;
            let zero = b.constant("zero", Tensor::from_slice(&[1], &[0i32]).unwrap())?;
            let bools = b.op(op).name("bools").input(x).build()?;
            b.op("AsString").name("texts").input(bools).build()?;
            b.op("Where").name("where").input(bools).build()?;
            b.op("All").name("all").input(bools).input(zero).build()?;
            b.op("Cast").name("cast").input(bools).attr("DstT", DType::INT32).build()?;
            b.op("LogicalNot").name("not").input(bools).build()?;
            Ok(())
        });
        let x = Tensor::from_slice(&[4], &[40u8, 0, 255, 1]).unwrap();
        let fetches = ["texts", "where", "all", "cast", "not", "bools"];
        let fetched = run(&session, &[("x", x)], &fetches).unwrap();
        assert_eq!(fetched[0].as_strings().unwrap(), [&b"true"[..], b"false", b"true", b"true"]);
        assert_eq!(fetched[1].as_slice::<i64>().unwrap(), [0, 2, 3]);
        assert_eq!(fetched[2].as_bytes().unwrap(), [0]);
        assert_eq!(fetched[3].as_slice::<i32>().unwrap(), [1, 0, 1, 1]);
        assert_eq!(fetched[4].as_bytes().unwrap(), [0, 1, 0, 0]);
        assert_eq!(fetched[5].as_bytes().unwrap(), [1, 0, 1, 1]);
        let ones = Tensor::from_slice(&[3], &[2u8, 4, 8]).unwrap();
        let fetched = run(&session, &[("x", ones)], &["all"]).unwrap();
        assert_eq!(fetched[0].as_bytes().unwrap(), [1], "all of them are true");
    }
}
