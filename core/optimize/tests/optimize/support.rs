//! A registry with the standard ops, one that holds a reference, and ops of the tests' own.

use std::sync::OnceLock;
use tenon_author::{
    ShapeContext, shape_entry,
    testing::{registered_fusions, registered_ops},
};
use tenon_framework::{
    DType, PartialShape, Tensor,
    device::DeviceName,
    op::{OpDef, OpFacts, Passed, Refusal, Symmetry, ValueRule},
    registry::{PluginId, PluginInfo, Registry, Transaction, commit_all},
    testing::install_host,
};
use tenon_graph::{DeviceEntry, DeviceView, GraphBuilder, NodeQuery, Output};

fn test_ops() -> Vec<OpDef> {
    let op = |name: &str, inputs: &[&str], outputs: &[&str], attrs: &[&str]| {
        OpDef::from_spec(name, inputs, outputs, attrs).unwrap()
    };
    let mut variable = op("TestVariable", &[], &["ref: Ref(dtype)"], &["dtype: type"]);
    variable.stateful = true;
    vec![
        variable,
        op("TestAssign", &["ref: Ref(T)", "value: T"], &["output_ref: Ref(T)"], &["T: type"]),
        op("Split3", &["x: float"], &["a: float", "b: float", "c: float"], &[]),
    ]
}

/// Ops that declare facts and that no code knows by name.
fn own_ops() -> Vec<OpDef> {
    let op = |name: &str, inputs: &[&str], attrs: &[&str], facts: OpFacts| {
        let output = if name == "OwnShape" { "y: int32" } else { "y: float" };
        let mut op = OpDef::from_spec(name, inputs, &[output], attrs).unwrap();
        op.set_facts(facts).unwrap();
        op.shape = shape_entry(|c: &ShapeContext<'_>| {
            let like = if c.input_count() == 2 && c.rank(c.input(1)) != Some(0) { 1 } else { 0 };
            c.set_output(0, c.input(like))
        });
        op
    };
    let passed = Some(Passed { input: 1, output: 0, reshaped: false });
    let refusal = Refusal::Nothing;
    let pair = ["limit: float", "x: float"];
    let shape = OpFacts { value: ValueRule::Shape, refusal, ..OpFacts::NONE };
    let mut own_shape = op("OwnShape", &["x: float"], &[], shape);
    own_shape.shape = shape_entry(|c: &ShapeContext<'_>| {
        let rank = c.rank(c.input(0)).map(|rank| rank as i64);
        c.set_output(0, c.make_shape(&[c.make_dim(rank)]))
    });
    let symmetric = OpFacts { symmetry: Symmetry::Bits, refusal, ..OpFacts::NONE };
    let images = OpFacts { images: true, refusal: Refusal::Shapes, ..OpFacts::NONE };
    let format = ["data_format: {'NHWC', 'NCHW'} = 'NHWC'"];
    vec![
        op("OwnSecond", &pair, &[], OpFacts { passed, refusal, ..OpFacts::NONE }),
        op("OwnUnsure", &pair, &[], OpFacts { passed, ..OpFacts::NONE }),
        own_shape,
        op("OwnCheck", &["x: float"], &[], OpFacts { checks: true, ..OpFacts::NONE }),
        op("OwnSum", &pair, &[], symmetric),
        op("OwnImage", &["x: float"], &format, images),
        op("OwnScale", &["x: float", "by: float"], &[], OpFacts { elementwise: true, ..symmetric }),
    ]
}

pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        install_host();
        tenon_ops::link();
        let mut plugin = Transaction::new(PluginInfo::linked(PluginId(0), "tests", "0", 0));
        let mut ops = registered_ops();
        for op in test_ops().into_iter().chain(own_ops()) {
            ops.entry(op.name.clone()).or_insert(op);
        }
        ops.into_values().for_each(|op| plugin.add_op(op));
        registered_fusions().into_iter().for_each(|fusion| plugin.add_fusion(fusion));
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

/// One CPU that has a kernel for every node.
pub struct Cpu {
    devices: [DeviceEntry; 1],
    /// The format in which it computes images; `None` for any format.
    format: Option<&'static str>,
}

impl Cpu {
    pub fn new(format: Option<&'static str>) -> Cpu {
        let entry = DeviceEntry {
            name: DeviceName::local("CPU", 0),
            device_type: "CPU".to_owned(),
            priority: 50,
            incarnation: 7,
            is_local: true,
            host_memory: true,
        };
        Cpu { devices: [entry], format }
    }
}

impl DeviceView for Cpu {
    fn devices(&self) -> &[DeviceEntry] {
        &self.devices
    }

    fn has_kernel(&self, _node: NodeQuery<'_>, _device_type: &str) -> Result<(), String> {
        Ok(())
    }

    fn image_format(&self, _device: usize) -> Option<&str> {
        self.format
    }
}
