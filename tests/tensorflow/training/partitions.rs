//! Variables in parts, with the slots of their optimiser.

use super::model::{STEPS, Trained, W, cases, dense_loss, of_training, tensor, tolerance};
use serde_json::{Value, json};
use tenon_framework::{Code, DType, Shape};
use tenon_graph::GraphBuilder;
use tenon_training::{
    Initial, Partitioner, VariableDevices, Variables,
    optimizer::{MinimizeOptions, Momentum, Optimizer},
};

fn partitioner(name: &str) -> Partitioner {
    match name {
        "fixed" => Partitioner::FixedSize { parts: 2, axis: 0 },
        "fixed_columns" => Partitioner::FixedSize { parts: 5, axis: 1 },
        "min_max" => Partitioner::MinMax { max_parts: 4, axis: 0, min_bytes: 8 },
        "min_max_few" => Partitioner::MinMax { max_parts: 8, axis: 0, min_bytes: 16 },
        other => panic!("a partitioner that is not known: {other}"),
    }
}

#[test]
fn parts_are_trained_and_saved_as_tensorflows() {
    let (runtime, cases) = (of_training(), cases("partitions"));
    assert_eq!(cases.len(), 4);
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let trained = Trained::new(&runtime, |b, all| {
            let initial = Initial::Value(tensor(DType::FLOAT, &[3, 2], &W));
            let cut = partitioner(name);
            let w = all.add_partitioned(b, "w", DType::FLOAT, &[3, 2], &initial, cut, None)?;
            let bias = Initial::Value(tensor(DType::FLOAT, &[2], &[0.125, -0.0625]));
            let bias = all.add(b, "b", DType::FLOAT, &[2], &bias)?;
            let loss = dense_loss(b, DType::FLOAT, (w.value, bias.value), 0..4)?;
            let options = MinimizeOptions::default();
            let train = Momentum::new(0.1).minimize(b, all, loss, &options)?;
            b.op("NoOp").name("train").control(train).build()?;
            Ok(())
        });
        for _ in 0..STEPS {
            trained.run(&[], &[], &["train"]);
        }
        trained.check_names(name, &case["variables"]);
        trained.check(name, &case["variables"], tolerance(DType::FLOAT));
        let mut slices = serde_json::Map::new();
        for variable in trained.variables.all() {
            if let Some(slice) = &variable.slice {
                let value: Value =
                    json!([slice.full_name, slice.full_shape, slice.var_offset, slice.var_shape]);
                slices.insert(variable.name.clone(), value);
            }
        }
        assert_eq!(Value::Object(slices), case["slices"], "{name}");
    }
}

#[test]
fn devices_are_chosen_in_turn_or_by_load() {
    let of = |dims: &[i64]| Shape::new(dims).unwrap();
    let mut greedy = VariableDevices::greedy(&["a", "b", "c"]).unwrap();
    let mut choose = |dims: &[i64]| greedy.choose(DType::FLOAT, &of(dims)).unwrap();
    let chosen =
        [choose(&[10]), choose(&[4]), choose(&[]), choose(&[2]), choose(&[2]), choose(&[])];
    assert_eq!(chosen, ["a", "b", "c", "c", "c", "b"]);
    let error = VariableDevices::round_robin(&[]).unwrap_err();
    let text = "devices for variables: expected at least one, found none";
    assert_eq!((error.code(), error.to_string().as_str()), (Code::INVALID_ARGUMENT, text));
    let registry = of_training().registry();
    let (mut b, mut all) = (GraphBuilder::new(&registry), Variables::new());
    let mut devices = VariableDevices::parameter_servers(2, "/job:ps").unwrap();
    let cut = Partitioner::FixedSize { parts: 3, axis: 0 };
    let zeros = Initial::Zeros;
    let w = all.add_partitioned(&mut b, "w", DType::FLOAT, &[8], &zeros, cut, Some(&mut devices));
    let parts = w.unwrap().parts;
    let placed: Vec<_> =
        parts.iter().map(|part| (part.device.as_str(), part.shape.dims())).collect();
    assert_eq!(
        placed,
        [("/job:ps/task:0", &[3][..]), ("/job:ps/task:1", &[3]), ("/job:ps/task:0", &[2])]
    );
}

#[test]
fn what_cannot_be_cut_is_named() {
    let refused = |cut: Partitioner, dims: &[i64], expected: &str| {
        let error = cut.parts(DType::FLOAT, &Shape::new(dims).unwrap()).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), (Code::INVALID_ARGUMENT, expected));
    };
    let rows = Partitioner::FixedSize { parts: 2, axis: 0 };
    refused(rows, &[], "a partitioner: expected a variable with a dimension 0, found shape []");
    refused(
        Partitioner::FixedSize { parts: 0, axis: 0 },
        &[2],
        "a partitioner: expected at least one part, and at least one byte in each, found FixedSize { parts: 0, axis: 0 }",
    );
    let large = Partitioner::min_max(2);
    refused(
        large,
        &[1 << 31, 1 << 31],
        "a variable of float and shape [2147483648, 2147483648]: expected less than 2^64 bytes, found more",
    );
}
