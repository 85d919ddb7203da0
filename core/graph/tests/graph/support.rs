//! A registry with the standard ops and a few that hold references and resources, and small graphs.

use std::sync::OnceLock;
use tenon_author::testing::registered_ops;
use tenon_framework::{
    DType, PartialShape, Tensor,
    attr::AttrMap,
    device::DeviceName,
    op::{OpDef, OpFacts},
    registry::{PluginId, PluginInfo, Registry, Transaction, commit_all},
    testing::install_host,
};
use tenon_graph::{
    ArgSide, DeviceEntry, DeviceView, Graph, GraphBuilder, GraphError, NodeId, NodeQuery, Output,
    PartOp, PartitionOptions, Partitioned, Subgraph, infer_shapes, partition, prune,
};
use tenon_proto::{AttrValue, AttrValueKind, GraphDef, NodeDef};

fn test_ops() -> Vec<OpDef> {
    let op = |name: &str, inputs: &[&str], outputs: &[&str], attrs: &[&str]| {
        OpDef::from_spec(name, inputs, outputs, attrs).unwrap()
    };
    let mut variable = op("TestVariable", &[], &["ref: Ref(dtype)"], &["dtype: type"]);
    variable.stateful = true;
    let mut handle = op("TestVarHandle", &[], &["resource: resource"], &["dtype: type"]);
    handle.stateful = true;
    let mut check = op("OwnCheck", &["x: float"], &["y: float"], &[]);
    check.set_facts(OpFacts { checks: true, ..OpFacts::NONE }).unwrap();
    vec![
        variable,
        handle,
        check,
        op("TestAssign", &["ref: Ref(T)", "value: T"], &["output_ref: Ref(T)"], &["T: type"]),
        op("ReadVariableOp", &["resource: resource"], &["value: dtype"], &["dtype: type"]),
        op("Split3", &["x: float"], &["a: float", "b: float", "c: float"], &[]),
        op("Fork", &["x: T"], &["y: N * T"], &["N: int >= 1", "T: type"]),
        op("_Internal", &[], &["x: float"], &[]),
        op("Less", &["x: T", "y: T"], &["z: bool"], &["T: {float, int32}"]),
    ]
}

pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        install_host();
        tenon_ops::link();
        let mut plugin = Transaction::new(PluginInfo::linked(PluginId(0), "tests", "0", 0));
        let mut ops = registered_ops();
        for op in test_ops() {
            ops.entry(op.name.clone()).or_insert(op);
        }
        ops.into_values().for_each(|op| plugin.add_op(op));
        commit_all(&Registry::new(), vec![plugin]).unwrap().0
    })
}

pub fn builder() -> GraphBuilder<'static> {
    GraphBuilder::new(registry())
}

pub fn floats(dims: &[i64]) -> Tensor {
    let count = dims.iter().product::<i64>() as usize;
    Tensor::from_slice(dims, &vec![0.5f32; count]).unwrap()
}

pub fn x(b: &mut GraphBuilder<'_>) -> Output {
    b.placeholder("x", DType::FLOAT, PartialShape::new(&[-1, 3]).unwrap()).unwrap()
}

pub fn node(name: &str, op: &str, input: &[&str]) -> NodeDef {
    NodeDef {
        name: name.to_owned(),
        op: op.to_owned(),
        input: input.iter().map(|text| (*text).to_owned()).collect(),
        ..NodeDef::default()
    }
}

pub fn with(mut node: NodeDef, attr: &str, value: AttrValueKind) -> NodeDef {
    node.attr.insert(attr.to_owned(), AttrValue { value: Some(value) });
    node
}

pub fn typed(node: NodeDef, attr: &str, dtype: DType) -> NodeDef {
    with(node, attr, AttrValueKind::Type(dtype.0 as i32))
}

pub fn placeholder(name: &str) -> NodeDef {
    typed(node(name, "Placeholder", &[]), "dtype", DType::FLOAT)
}

pub fn graph_def(nodes: &[NodeDef]) -> GraphDef {
    GraphDef { node: nodes.to_vec(), ..GraphDef::default() }
}

pub fn import(nodes: &[NodeDef]) -> Result<Graph, GraphError> {
    Graph::import(&graph_def(nodes), registry())
}

pub fn refused(nodes: &[NodeDef]) -> String {
    import(nodes).unwrap_err().to_string()
}

/// The nodes that the fetches need.
pub fn sub(graph: &Graph, fetches: &[Output]) -> Subgraph {
    prune(graph, &[], fetches, &[]).unwrap()
}

/// `while (i < 10) i = i + 1` in a frame of this name; returns the output of its `Exit`.
pub fn count_to_ten(b: &mut GraphBuilder<'_>, frame: &str) -> Output {
    let zero = b.constant(&format!("{frame}/zero"), Tensor::scalar(0i32).unwrap()).unwrap();
    let ten = b.constant(&format!("{frame}/ten"), Tensor::scalar(10i32).unwrap()).unwrap();
    let name = |part: &str| format!("{frame}/{part}");
    let mut enter = |part: &str, input: Output, constant: bool| {
        let node = b.op("Enter").name(&name(part)).input(input);
        node.attr("frame_name", frame).attr("is_constant", constant).build().unwrap()
    };
    let (start, limit) = (enter("start", zero, false), enter("limit", ten, true));
    let one = enter("one", ten, true);
    let merge = b.op("Merge").name(&name("merge")).input(start).input(start).build().unwrap();
    let less = b.op("Less").name(&name("less")).input(merge).input(limit).build().unwrap();
    let cond = b.op("LoopCond").name(&name("cond")).input(less).build().unwrap();
    let switch = b.op("Switch").name(&name("switch")).input(merge).input(cond).build().unwrap();
    let body = Output::new(switch, 1);
    let add = b.op("AddV2").name(&name("add")).input(body).input(one).build().unwrap();
    let next = b.op("NextIteration").name(&name("next")).input(add).build().unwrap();
    b.back_edge(merge, 1, next).unwrap();
    b.op("Exit").name(&name("exit")).input(Output::new(switch, 0)).build().unwrap().into()
}

type Rule = fn(&str, &AttrMap, &str) -> bool;

/// Devices for tests; a rule states which device type runs which node.
pub struct Devices {
    pub entries: Vec<DeviceEntry>,
    pub runs: Rule,
}

impl Devices {
    /// `CPU:0`, `ACCEL:0` and `ACCEL:1`, of which ACCEL is preferred and runs all but `Cast`.
    pub fn new() -> Devices {
        let entry = |device_type: &str, id, priority| DeviceEntry {
            name: DeviceName::local(device_type, id),
            device_type: device_type.to_owned(),
            priority,
            incarnation: 7,
            is_local: true,
            host_memory: device_type == "CPU",
        };
        Devices {
            entries: vec![entry("CPU", 0, 50), entry("ACCEL", 1, 100), entry("ACCEL", 0, 100)],
            runs: |op, _, device_type| device_type == "CPU" || op != "Cast",
        }
    }
}

impl DeviceView for Devices {
    fn devices(&self) -> &[DeviceEntry] {
        &self.entries
    }

    fn has_kernel(&self, node: NodeQuery<'_>, device_type: &str) -> Result<(), String> {
        if (self.runs)(node.op, node.attrs, device_type) {
            Ok(())
        } else {
            Err(format!("no kernel of {} for {device_type}", node.op))
        }
    }
}

/// Name of a device of [`Devices::new`].
pub fn device(location: usize) -> DeviceName {
    Devices::new().entries[location].name.clone()
}

/// Cuts for the devices of [`Devices::new`], the client on the CPU.
pub fn cut(
    graph: &Graph,
    sub: &Subgraph,
    location: &dyn Fn(NodeId) -> usize,
    host_memory: &dyn Fn(NodeId, ArgSide) -> bool,
) -> Result<Partitioned, GraphError> {
    let shapes = infer_shapes(graph, sub, &[]).unwrap();
    let devices = Devices::new();
    let options = PartitionOptions {
        devices: &devices.entries,
        location,
        client: 0,
        host_memory,
        op: &|id| PartOp::new(graph, sub, &shapes, id, None),
        shapes: &shapes,
        control_loops: &[],
    };
    partition(graph, sub, &options)
}
