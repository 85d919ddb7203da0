//! The models of `goldens/training/generate.py`, sessions over them, and comparison.

use serde_json::Value;
use tenon_graph::{GraphBuilder, Output};
use tenon_runtime::{
    RunOptions, Runtime, Session, SessionOptions,
    framework::{DType, Shape, Tensor},
};
use tenon_tests::session::runtime;
use tenon_training::{Initial, TrainError, Variable, Variables};

const X: [f64; 12] = [0.5, -1.0, 0.25, 1.5, 0.75, -0.5, -0.25, 0.5, 1.0, 2.0, -0.5, 0.125];
const Y: [f64; 8] = [0.5, -0.25, -0.75, 0.5, 0.25, 1.0, -0.5, 0.125];
pub const W: [f64; 6] = [0.25, -0.5, 0.75, 0.125, -0.375, 1.0];
const B: [f64; 2] = [0.125, -0.0625];
const E: [f64; 10] = [0.5, -0.25, 1.0, 0.75, -0.5, 0.25, 0.125, -1.0, 0.375, 0.625];
const V: [f64; 4] = [0.5, -0.75, 0.25, 1.0];
const IDS: [[i32; 4]; 4] = [[1, 3, 1, 0], [2, 2, 2, 2], [4, 0, 1, 3], [3, 3, 0, 0]];
pub const STEPS: usize = 10;

/// The indices that a step of the sparse model feeds as `ids`.
pub fn ids(step: usize) -> Tensor {
    Tensor::from_slice(&[4], &IDS[step % IDS.len()]).unwrap()
}

/// The cases of a kind.
pub fn cases(kind: &str) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/goldens/training/training.json");
    let found: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    found[kind].as_array().unwrap().clone()
}

pub fn dtype(case: &Value) -> DType {
    if case["dtype"] == "double" { DType::DOUBLE } else { DType::FLOAT }
}

pub fn tensor(dtype: DType, dims: &[i64], values: &[f64]) -> Tensor {
    match dtype {
        DType::DOUBLE => Tensor::from_slice(dims, values).unwrap(),
        _ => {
            let values: Vec<f32> = values.iter().map(|value| *value as f32).collect();
            Tensor::from_slice(dims, &values).unwrap()
        }
    }
}

pub fn constant(
    b: &mut GraphBuilder<'_>,
    name: &str,
    dtype: DType,
    dims: &[i64],
    values: &[f64],
) -> Result<Output, TrainError> {
    let name = b.unused_name(name);
    Ok(b.constant(&name, tensor(dtype, dims, values))?)
}

/// The variables of a model, on devices that `place` chooses.
pub fn variables(
    b: &mut GraphBuilder<'_>,
    all: &mut Variables,
    model: &str,
    dtype: DType,
) -> Result<Vec<Variable>, TrainError> {
    let of_model: [(&str, &[i64], &[f64]); 2] = match model {
        "dense" => [("w", &[3, 2], &W), ("b", &[2], &B)],
        _ => [("e", &[5, 2], &E), ("v", &[2, 2], &V)],
    };
    let add = |(name, dims, values): (&str, &[i64], &[f64])| {
        all.add(b, name, dtype, dims, &Initial::Value(tensor(dtype, dims, values)))
    };
    of_model.map(add).into_iter().collect()
}

/// The loss of the dense model for some of the four rows.
pub fn dense_loss(
    b: &mut GraphBuilder<'_>,
    dtype: DType,
    (w, bias): (Output, Output),
    rows: std::ops::Range<usize>,
) -> Result<Output, TrainError> {
    let count = rows.len() as i64;
    let x = constant(b, "x", dtype, &[count, 3], &X[rows.start * 3..rows.end * 3])?;
    let product = b.op("MatMul").input(x).input(w).build()?;
    let sum = b.op("AddV2").input(product).input(bias).build()?;
    let out = b.op("Tanh").input(sum).build()?;
    distance(b, dtype, out.into(), rows)
}

/// The loss of the sparse model for some of the four rows, of which `ids` are the indices.
pub fn sparse_loss(
    b: &mut GraphBuilder<'_>,
    dtype: DType,
    (e, v): (&Variable, &Variable),
    ids: Output,
    rows: std::ops::Range<usize>,
) -> Result<Output, TrainError> {
    let gather = b.op("ResourceGather").input(e.handle).input(ids).attr("dtype", dtype).build()?;
    let out = b.op("MatMul").input(gather).input(v.value).build()?;
    distance(b, dtype, out.into(), rows)
}

fn distance(
    b: &mut GraphBuilder<'_>,
    dtype: DType,
    out: Output,
    rows: std::ops::Range<usize>,
) -> Result<Output, TrainError> {
    let count = rows.len() as i64;
    let y = constant(b, "y", dtype, &[count, 2], &Y[rows.start * 2..rows.end * 2])?;
    let difference = b.op("Sub").input(out).input(y).build()?;
    let square = b.op("Square").input(difference).build()?;
    let axes = b.unused_name("axes");
    let axes = b.constant(&axes, Tensor::from_slice(&[2], &[0i32, 1]).unwrap())?;
    let name = b.unused_name("loss");
    Ok(b.op("Mean").name(&name).input(square).input(axes).build()?.into())
}

/// A model with the name of its loss, `loss`, and the placeholder `ids`.
pub fn model(
    b: &mut GraphBuilder<'_>,
    all: &mut Variables,
    model: &str,
    dtype: DType,
) -> Result<Output, TrainError> {
    let made = variables(b, all, model, dtype)?;
    let ids = b.placeholder("ids", DType::INT32, Shape::new(&[4])?.into())?;
    match model {
        "dense" => dense_loss(b, dtype, (made[0].value, made[1].value), 0..4),
        _ => sparse_loss(b, dtype, (&made[0], &made[1]), ids, 0..4),
    }
}

/// A session over a graph, with its variables.
pub struct Trained {
    pub session: Session,
    pub variables: Variables,
    names: Vec<(String, String)>,
}

pub fn of_training() -> Runtime {
    runtime(&["tenon_cpu", "tenon_data", "tenon_train"], &[("cpu.devices", "2")])
}

impl Trained {
    /// Builds a graph, and gives the variables their first values.
    pub fn new(
        runtime: &Runtime,
        make: impl FnOnce(&mut GraphBuilder<'_>, &mut Variables) -> Result<(), TrainError>,
    ) -> Trained {
        Trained::with(runtime, SessionOptions::default(), make)
    }

    pub fn with(
        runtime: &Runtime,
        options: SessionOptions,
        make: impl FnOnce(&mut GraphBuilder<'_>, &mut Variables) -> Result<(), TrainError>,
    ) -> Trained {
        let registry = runtime.registry();
        let (mut b, mut variables) = (GraphBuilder::new(&registry), Variables::new());
        make(&mut b, &mut variables).unwrap();
        variables.initializer(&mut b, "init").unwrap();
        let name =
            |variable: &Variable| (variable.name.clone(), b.graph().output_name(variable.value));
        let names = variables.all().iter().map(name).collect();
        let session = Session::new(runtime, options).unwrap();
        session.extend(&b.finish().to_graph_def().unwrap()).unwrap();
        let trained = Trained { session, variables, names };
        trained.run(&[], &[], &["init"]);
        trained
    }

    pub fn run(
        &self,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Vec<Vec<f64>> {
        let ran = self.session.run(feeds, fetches, targets, &RunOptions::default());
        let (fetched, _) = ran.unwrap_or_else(|error| panic!("{targets:?}: {error}"));
        fetched.iter().map(numbers).collect()
    }

    /// The value of a variable.
    pub fn value(&self, name: &str) -> Vec<f64> {
        let found = self.names.iter().find(|(variable, _)| variable == name);
        let (_, read) = found.unwrap_or_else(|| panic!("no variable '{name}': {:?}", self.names));
        self.run(&[], &[read], &[]).remove(0)
    }

    /// All variables have the values of a case, and there are no others.
    #[track_caller]
    pub fn check(&self, what: &str, case: &Value, tolerance: f64) {
        let expected = case.as_object().unwrap();
        for (name, expected) in expected {
            near(&format!("{what}: {name}"), &self.value(name), &listed(expected), tolerance);
        }
    }

    /// There are variables of just these names.
    #[track_caller]
    pub fn check_names(&self, what: &str, case: &Value) {
        let mut found: Vec<&String> = self.names.iter().map(|(name, _)| name).collect();
        found.sort_unstable();
        let mut expected: Vec<&String> = case.as_object().unwrap().keys().collect();
        expected.sort_unstable();
        assert_eq!(found, expected, "{what}");
    }
}

pub fn listed(case: &Value) -> Vec<f64> {
    case.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

pub fn numbers(tensor: &Tensor) -> Vec<f64> {
    match tensor.dtype() {
        DType::DOUBLE => tensor.as_slice::<f64>().unwrap().to_vec(),
        DType::INT64 => tensor.as_slice::<i64>().unwrap().iter().map(|x| *x as f64).collect(),
        _ => tensor.as_slice::<f32>().unwrap().iter().map(|x| f64::from(*x)).collect(),
    }
}

/// How far two results may be apart, relative to their size.
pub fn tolerance(dtype: DType) -> f64 {
    if dtype == DType::DOUBLE { 1e-12 } else { 1e-5 }
}

/// Each number is near the expected one. What is much smaller than the others of its tensor may be as far off as a tenth of
/// the largest one.
#[track_caller]
pub fn near(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}: {found:?} {expected:?}");
    let largest = expected.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    for (found_one, one) in found.iter().zip(expected) {
        let limit = tolerance * one.abs().max(largest / 10.0);
        let off = (found_one - one).abs();
        assert!(off <= limit, "{what}: off by {off}: {found:?}, expected {expected:?}");
    }
}
