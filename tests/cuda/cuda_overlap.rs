//! Elementwise kernels whose launches may overlap (knob `cuda.overlap_launches`): which launches say so, eager and
//! recorded, and that results stay.

use std::path::PathBuf;
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::framework::{DType, PartialShape};
use tenon_tests::{
    cuda::{cuda_runtime, take_log, variables},
    process::alone,
    session::{floats, run, session, turn, values},
};

const CUDA: &str = "/device:CUDA:0";
const LENGTH: i64 = 5000;

/// `y = softmax(relu(x + x))`: two launches that can wait for the one before, and one that cannot.
fn graph(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let shape = PartialShape::new(&[1, LENGTH]).expect("a shape");
    let x = b.placeholder("x", DType::FLOAT, shape)?;
    let sum = b.op("AddV2").name("sum").input(x).input(x).device(CUDA).build()?;
    let relu = b.op("Relu").name("relu").input(sum).device(CUDA).build()?;
    b.op("Softmax").name("y").input(relu).device(CUDA).build().map(|_| ())
}

fn steps(overlap: &str, record_after: &str) -> (Vec<Vec<f32>>, String) {
    let knobs = [
        ("cuda.overlap_launches", overlap),
        ("runtime.record_after", record_after),
        ("graph.elementwise_fusion", "false"),
    ];
    let runtime = cuda_runtime(&knobs);
    let session = session(&runtime, graph);
    take_log();
    let step = |number: i64| {
        let value = |at: i64| ((at * 37 + number * 11) % 101) as f32 / 16.0 - 3.0;
        let x = floats(&(0..LENGTH).map(value).collect::<Vec<f32>>());
        let x = x.reshaped(&[1, LENGTH]).expect("as many elements");
        values(&run(&session, &[("x", x)], &["y"]).expect("the step runs")[0])
    };
    ((0..4).map(step).collect(), take_log())
}

#[test]
fn launches_that_can_wait_by_themselves_may_overlap_and_no_others() {
    let _turn = turn();
    let (plain, log) = steps("false", "-1");
    assert_eq!(log.matches("overlap=1").count(), 0, "{log}");
    let (overlapping, log) = steps("true", "-1");
    assert_eq!(overlapping, plain);
    let launches = |entry: &str, overlap: u32| {
        let is = |line: &&str| {
            line.contains(&format!("kernel={entry} "))
                && line.ends_with(&format!("overlap={overlap}"))
        };
        log.lines().filter(is).count()
    };
    assert_eq!([launches("binary_same", 1), launches("unary", 1)], [4, 4], "{log}");
    assert_eq!(log.matches("overlap=1").count(), 8, "{log}");
    assert_eq!(log.matches("overlap=0").count(), 4, "softmax does not wait: {log}");
    let (recorded, log) = steps("true", "1");
    assert_eq!(recorded, plain);
    assert_eq!(log.matches("graph_launch").count(), 3, "{log}");
}

#[test]
fn an_older_gpu_does_not_overlap_launches() {
    let setting = [("FAKE_CUDA_CC", PathBuf::from("8.6"))];
    let test = "cuda_overlap::an_older_gpu_does_not_overlap_launches";
    if !alone(test, &variables().into_iter().chain(setting).collect::<Vec<_>>()) {
        return;
    }
    let (results, log) = steps("true", "-1");
    assert_eq!(results.len(), 4);
    assert_eq!(
        (log.matches("overlap=0").count(), log.matches("overlap=1").count()),
        (12, 0),
        "{log}"
    );
}
