//! Placement by measured costs.

use std::sync::Arc;
use tenon_graph::{DeviceEntry, GraphBuilder, Node, PlacementCosts};
use tenon_runtime::{
    CallableOptions, RunOptions, Runtime, Session, SessionOptions,
    costs::MeasuredCosts,
    framework::{DType, PartialShape, Tensor},
    graph::Graph,
};
use tenon_tests::session::{runtime, turn};

/// Costs in which the accelerator is as many times as fast as the CPU, and copies are free.
#[derive(Debug)]
struct Fast(f64);

impl PlacementCosts for Fast {
    fn compute(&self, _: &Node, device: &DeviceEntry) -> Option<f64> {
        Some(if device.device_type == "CPU" { 1000.0 } else { 1000.0 / self.0 })
    }

    fn transfer(&self, _: &Node, _: u32, _: &DeviceEntry, _: &DeviceEntry) -> f64 {
        0.0
    }
}

/// `y = tanh(x @ w) + 1`, with nothing said about devices but that the sum is on the CPU.
fn graph(runtime: &Runtime) -> Graph {
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[64, 64]).unwrap()).unwrap();
    let values: Vec<f32> = (0..64 * 64).map(|at| (at % 13) as f32 / 13.0 - 0.5).collect();
    let w = b.constant("w", Tensor::from_slice(&[64, 64], &values).unwrap()).unwrap();
    let one = b.constant("one", Tensor::scalar(1f32).unwrap()).unwrap();
    let product = b.op("MatMul").name("product").input(x).input(w).build().unwrap();
    let tanh = b.op("Tanh").name("tanh").input(product).build().unwrap();
    let sum = b.op("AddV2").name("y").input(tanh).input(one).device("/device:CPU:0");
    sum.build().unwrap();
    b.finish()
}

fn x() -> Tensor {
    let values: Vec<f32> = (0..64 * 64).map(|at| (at % 7) as f32 / 7.0 - 0.5).collect();
    Tensor::from_slice(&[64, 64], &values).unwrap()
}

/// The result, and the device type of each node.
fn placed(
    runtime: &Runtime,
    costs: Option<Arc<dyn PlacementCosts>>,
) -> (Tensor, Vec<(String, String)>) {
    let session =
        Session::new(runtime, SessionOptions { costs, ..SessionOptions::as_written() }).unwrap();
    session.extend_graph(&graph(runtime)).unwrap();
    let (fetched, metadata) =
        session.run(&[("x", x())], &["y"], &[], &RunOptions::default()).unwrap();
    let device = |device: &str| device.rsplit(':').nth(1).unwrap().to_owned();
    let nodes = metadata.nodes.iter().map(|node| (node.name.clone(), device(&node.device)));
    (fetched[0].clone(), nodes.collect())
}

fn on<'a>(nodes: &'a [(String, String)], name: &str) -> &'a str {
    let found = nodes.iter().find(|node| node.0 == name);
    &found.unwrap_or_else(|| panic!("{name} did not run: {nodes:?}")).1
}

#[test]
fn nodes_go_where_they_cost_less_and_requests_are_kept() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu", "tenon_accel"], &[]);
    let (expected, by_priority) = placed(&runtime, None);
    assert!(by_priority.iter().all(|(_, device)| device == "CPU"), "{by_priority:?}");
    let (fetched, by_cost) = placed(&runtime, Some(Arc::new(Fast(10.0))));
    assert_eq!(
        [on(&by_cost, "product"), on(&by_cost, "tanh"), on(&by_cost, "y")],
        ["ACCEL", "ACCEL", "CPU"]
    );
    let (a, b) = (expected.as_slice::<f32>().unwrap(), fetched.as_slice::<f32>().unwrap());
    assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-5));
    let (_, slow) = placed(&runtime, Some(Arc::new(Fast(0.5))));
    assert_eq!([on(&slow, "product"), on(&slow, "tanh")], ["CPU", "CPU"]);
}

/// The copies of the simulated accelerator take as long as the knob says: longer than all that computing there could save.
#[test]
fn what_is_measured_keeps_work_off_a_device_with_slow_copies() {
    let _turn = turn();
    let slow = ("accel.copy_delay_us", "20000");
    let runtime = runtime(&["tenon_cpu", "tenon_accel"], &[slow]);
    let step = CallableOptions::new(&["x"], &["y"]);
    let devices = ["/device:CPU:0", "/device:ACCEL:0"];
    let costs =
        MeasuredCosts::measure(&runtime, &graph(&runtime), &[], &step, &[x()], &devices).unwrap();
    let (_, nodes) = placed(&runtime, Some(costs.clone()));
    assert_eq!([on(&nodes, "product"), on(&nodes, "tanh")], ["CPU", "CPU"], "{costs:?}");
    let missing = ["/device:NPU:0"];
    let refused = MeasuredCosts::measure(&runtime, &graph(&runtime), &[], &step, &[x()], &missing);
    // Soft placement: the nodes run elsewhere, and there are no costs of a device that is not there.
    assert!(refused.is_ok());
}
