//! Simulated clusters under faults (`tenon_cluster::simulated`): the steps of a client end in time, with right values or
//! errors that name the task, and nothing is left.

use tenon_cluster::simulated::{Figures, Simulation};
use tenon_graph::{GraphBuilder, GraphError, NodeId};
use tenon_proto::GraphDef;
use tenon_runtime::{
    Runtime, RuntimeOptions, Worker,
    framework::{DType, PartialShape, device::DeviceName},
};
use tenon_tests::session::{graph, library, runtime_of, turn};

/// The number of seeds, unless the environment has another one.
const SEEDS: u64 = 40;
const COUNT: &str = "TENON_TEST_FAULTS";
/// The first seed.
const FIRST: &str = "TENON_TEST_FAULTS_FIRST";

/// Seeds that found a fault, which was mended.
const FOUND: [u64; 0] = [];

const PS: &str = "/job:ps/task:0/device:CPU:0";
const FIRST_WORKER: &str = "/job:worker/task:0/device:CPU:0";
const SECOND_WORKER: &str = "/job:worker/task:1/device:CPU:0";

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The graph that a simulation wants.
fn nodes(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let on = |b: &mut GraphBuilder<'_>, device: &str, op: &str, name: &str, inputs: &[NodeId]| {
        let node = b.op(op).name(name).device(device);
        inputs.iter().fold(node, |node, &input| node.input(input)).build()
    };
    let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?.node;
    let handle = b.op("VarHandleOp").name("v").device(PS).attr("dtype", DType::FLOAT);
    let handle = handle.attr("shape", PartialShape::UNKNOWN).build()?;
    on(b, PS, "AssignVariableOp", "set", &[handle, x])?;
    on(b, PS, "AssignAddVariableOp", "add", &[handle, x])?;
    let value = b.op("ReadVariableOp").name("value").device(PS).attr("dtype", DType::FLOAT);
    value.input(handle).build()?;
    let square = on(b, PS, "Mul", "square", &[x, x])?;
    let negative = on(b, FIRST_WORKER, "Neg", "negative", &[square])?;
    let sum = on(b, SECOND_WORKER, "AddV2", "sum", &[negative, x])?;
    on(b, PS, "Mul", "y", &[sum, sum])?;
    let queue = b.op("FIFOQueueV2").name("queue").device(PS);
    let queue = queue.attr("component_types", vec![DType::FLOAT]).build()?;
    let taken = b.op("QueueDequeueV2").name("taken").device(PS).input(queue);
    let taken = taken.attr("component_types", vec![DType::FLOAT]).build()?;
    on(b, SECOND_WORKER, "Identity", "waits", &[taken])?;
    Ok(())
}

fn definition() -> GraphDef {
    let any = runtime_of(1, &["tenon_cpu", "tenon_data"], &[]);
    graph(&any, nodes).to_graph_def().expect("it can be written")
}

/// A worker of one task; a pool without threads computes where it is called.
fn worker(job: &str, task: u32) -> Worker {
    let options = RuntimeOptions {
        threads: Some(1),
        task: DeviceName::of_task(job, task),
        ..RuntimeOptions::with_plugins(["tenon_cpu", "tenon_data"].map(library))
    };
    let (runtime, report) = Runtime::new(options).expect("the runtime starts");
    report.into_result().expect("every library is a plugin");
    Worker::new(&runtime)
}

#[test]
fn a_cluster_under_faults_keeps_its_promises() {
    let _turn = turn();
    let simulation = Simulation::new(worker, definition());
    let first = number(FIRST).unwrap_or(0);
    let seeds = first..first + number(COUNT).unwrap_or(SEEDS);
    let (mut all, mut failed) = (Figures::default(), Vec::new());
    for seed in FOUND.into_iter().chain(seeds.clone()) {
        match simulation.play(seed) {
            Ok(figures) => {
                all.done += figures.done;
                all.failed += figures.failed;
                all.faults += figures.faults;
                all.time += figures.time;
            }
            Err(why) => {
                eprintln!("{FIRST}={seed} {COUNT}=1: {why}");
                failed.push(seed);
            }
        }
    }
    eprintln!("{seeds:?}: {all:?}");
    assert!(failed.is_empty(), "seeds {failed:?}");
    // Otherwise the simulations do not reach what they are to test.
    assert!(all.done > 0 && all.failed > 0 && all.faults > 0, "{all:?}");
}
