//! Support for Tenon's benchmarks: a runtime over the plugins that were built beside them, and the
//! graphs that they time.
//!
//! What it is: the functions that the programs in `benches/benches` and `benches/examples` share.
//! The folder has the records of runs too (`records`), the scripts that measure other projects
//! (`peers`), and instruction counts (`callgrind`).
//!
//! What it is not: the timing of kernels for users, which is `tenon-benchkit`, or a test; nothing
//! here decides whether a result is right.
//!
//! # Invariants
//! - A benchmark loads plugins as shared libraries, as a user's program does, unless it is about
//!   linked ones.
//! - A benchmark heeds the filter of `cargo bench -- FILTER` ([`filter`]).

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tenon_framework::{
    DType, PartialShape, Shape, Tensor,
    attr::AttrValue,
    attr_view::AttrTable,
    op::{OpDef, Signature},
    registry::{KernelDef, KernelQuery, SupportAnswer, candidates},
};
use tenon_runtime::{
    Callable, CallableOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    graph::{GraphBuilder, GraphError, Output},
    host::{
        call::StepEnv,
        instance::{KernelInstance, KernelSpec},
        resources::Resources,
    },
    proto::GraphDef,
};

/// What a benchmark fails with.
pub type Failure = Box<dyn std::error::Error>;

/// The filter among the words that `cargo bench -- FILTER` gives every benchmark, where there is one. What begins
/// with `--` is an option: cargo's `--bench`, and those of criterion.
pub fn filter<'w>(words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    words.filter(|word| !word.starts_with("--")).last()
}

/// Whether a benchmark that has no parts is one that the filter asks for.
pub fn is_wanted(name: &str, filter: Option<&str>) -> bool {
    filter.is_none_or(|filter| name.contains(filter))
}

/// The plugin of this name beside the running executable, as cargo built it.
///
/// # Errors
/// It is not there.
pub fn plugin(name: &str) -> Result<PathBuf, Failure> {
    file_beside(&format!("libtenon_{name}.so"))
}

/// A file beside the running executable, or in the folder above, where cargo puts libraries.
///
/// # Errors
/// It is not there.
pub fn file_beside(name: &str) -> Result<PathBuf, Failure> {
    let exe = std::env::current_exe()?;
    let folders: Vec<_> = exe.ancestors().skip(1).take(2).collect();
    let found = folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file());
    found.ok_or_else(|| {
        let beside = folders.first().map_or(Path::new(""), |folder| folder);
        format!("{} is not there: build the plugin first", beside.join(name).display()).into()
    })
}

/// A runtime of one thread over plugins/cpu, loaded as a library.
///
/// # Errors
/// The plugin is not there, or refused.
pub fn runtime() -> Result<Runtime, Failure> {
    runtime_of("cpu", 1)
}

/// A runtime of so many threads over the plugin of this name, loaded as a library.
///
/// # Errors
/// The plugin is not there, or refused.
pub fn runtime_of(name: &str, threads: usize) -> Result<Runtime, Failure> {
    let options =
        RuntimeOptions { threads: Some(threads), ..RuntimeOptions::with_plugins([plugin(name)?]) };
    let (runtime, report) = Runtime::new(options)?;
    report.into_result()?;
    Ok(runtime)
}

/// The kernel of `Add` on float for device type `CPU`.
///
/// # Errors
/// There is none.
pub fn add_instance(runtime: &Runtime) -> Result<KernelInstance, Failure> {
    kernel(runtime, "Add", [("T", AttrValue::Type(DType::FLOAT))])
}

/// The kernel of an op with these attributes, and defaults for the others, for device type `CPU`.
///
/// # Errors
/// There is none; the attributes are wrong, or it refuses them.
pub fn kernel<const N: usize>(
    runtime: &Runtime,
    name: &str,
    attrs: [(&str, AttrValue); N],
) -> Result<KernelInstance, Failure> {
    let registry = runtime.registry();
    let op = registry.op(name).ok_or_else(|| format!("the op {name} is not registered"))?;
    let attrs = attrs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let attrs = AttrTable::with_defaults(op, attrs)?;
    let query = KernelQuery {
        op: name,
        device_type: "CPU",
        attrs: attrs.attrs(),
        features: runtime.features(),
        label: None,
    };
    let explanation = candidates(&registry, &query, &mut |_| SupportAnswer::Yes);
    let def = explanation.result().map_err(|error| error.to_string())?;
    instance_of(runtime, op, def, &attrs)
}

/// A kernel of a runtime that is called without a graph: with these attributes, and nothing known of its inputs.
///
/// # Errors
/// The attributes are wrong, or the kernel refuses them.
pub fn instance_of(
    runtime: &Runtime,
    op: &Arc<OpDef>,
    def: &Arc<KernelDef>,
    attrs: &AttrTable,
) -> Result<KernelInstance, Failure> {
    let signature = Signature::resolve(op, attrs.attrs())?;
    let spec = KernelSpec {
        def,
        op,
        node: "node",
        attrs,
        signature: &signature,
        input_shapes: &[],
        constants: &[],
        device: None,
        knobs: &runtime.plugins().knobs(),
    };
    Ok(KernelInstance::create(&spec)?)
}

/// What a single call runs in.
pub fn environment(runtime: &Runtime) -> StepEnv {
    StepEnv::new(Arc::clone(runtime.pool()), Arc::new(Resources::new()))
}

/// A session over a graph that `make` builds, and what it fetches; calls are counted when asked.
///
/// # Errors
/// The graph is wrong.
pub fn session(
    runtime: &Runtime,
    count_calls: bool,
    make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>,
) -> Result<Session, Failure> {
    let options = SessionOptions { count_calls, ..SessionOptions::as_written() };
    let session = Session::new(runtime, options)?;
    let registry = runtime.registry();
    let mut builder = GraphBuilder::new(&registry);
    make(&mut builder)?;
    session.extend(&builder.finish().to_graph_def()?)?;
    Ok(session)
}

/// One element: the shape of the tensors whose cost is the executor's.
fn one() -> PartialShape {
    Shape::new(&[1]).map_or(PartialShape::UNKNOWN, PartialShape::from)
}

/// `x -> Add(x, c) -> Add(.., c) -> ...`, fetched as `last`.
///
/// # Errors
/// An op is not registered.
pub fn chain(b: &mut GraphBuilder<'_>, length: usize) -> Result<(), GraphError> {
    let mut value = b.placeholder("x", DType::FLOAT, one())?;
    let c = b.constant("c", scalar_tensor(1.0))?;
    for at in 0..length {
        let name = if at + 1 == length { "last".to_owned() } else { format!("add{at}") };
        value = b.op("Add").name(&name).input(value).input(c).build()?.into();
    }
    Ok(())
}

/// The ops of [`mixed`]: sixteen kernels, unary and binary.
pub const MIXED: [(&str, bool); 16] = [
    ("Add", true),
    ("Neg", false),
    ("Mul", true),
    ("Square", false),
    ("Sub", true),
    ("Tanh", false),
    ("Maximum", true),
    ("Sigmoid", false),
    ("Minimum", true),
    ("Relu", false),
    ("AddV2", true),
    ("Relu6", false),
    ("RealDiv", true),
    ("Sqrt", false),
    ("Exp", false),
    ("Rsqrt", false),
];

/// A chain over the ops of [`MIXED`], fetched as `last`.
///
/// # Errors
/// An op is not registered.
pub fn mixed(b: &mut GraphBuilder<'_>, length: usize) -> Result<(), GraphError> {
    let mut value = b.placeholder("x", DType::FLOAT, one())?;
    let c = b.constant("c", scalar_tensor(1.0))?;
    for at in 0..length {
        let (op, binary) = MIXED[at % MIXED.len()];
        let name = if at + 1 == length { "last".to_owned() } else { format!("node{at}") };
        let node = b.op(op).name(&name).input(value);
        let node = if binary { node.input(c) } else { node };
        value = node.build()?.into();
    }
    Ok(())
}

/// A graph of some `nodes` nodes as a model has them, from `x` to `y`: products, biases, activations,
/// transpositions, shapes computed in the graph, constants computed from constants, and what is there twice.
///
/// # Errors
/// An op is not registered.
pub fn layers(runtime: &Runtime, nodes: usize) -> Result<GraphDef, Failure> {
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let shape = PartialShape::from(Shape::new(&[4, 8])?);
    let mut value = b.placeholder("x", DType::FLOAT, shape)?;
    for layer in 0.. {
        if b.graph().len() + 18 > nodes {
            break;
        }
        value = one_layer(&mut b, value, layer)?;
    }
    b.op("Identity").name("y").input(value).build()?;
    Ok(b.finish().to_graph_def()?)
}

/// Eighteen nodes.
fn one_layer(b: &mut GraphBuilder<'_>, x: Output, layer: usize) -> Result<Output, Failure> {
    let name = |part: &str| format!("layer{layer}/{part}");
    let weights = filled(&[8, 8], |at| (at as f32 - 32.0) / (64.0 + layer as f32));
    let weights = b.constant(&name("weights"), weights)?;
    let scale = b.constant(&name("scale"), scalar_tensor(0.5))?;
    let scaled = b.op("Mul").name(&name("scaled")).input(weights).input(scale).build()?;
    let bias = b.constant(&name("bias"), filled(&[8], |at| at as f32))?;
    let product = b.op("MatMul").name(&name("product")).input(x).input(scaled).build()?;
    let sum = b.op("BiasAdd").name(&name("sum")).input(product).input(bias).build()?;
    let relu = b.op("Relu").name(&name("relu")).input(sum).build()?;
    let shape = b.op("Shape").name(&name("shape")).input(relu).build()?;
    let same = b.op("Reshape").name(&name("same")).input(relu).input(shape).build()?;
    let perm = b.constant(&name("perm"), Tensor::from_slice(&[2], &[1i32, 0])?)?;
    let turned = b.op("Transpose").name(&name("turned")).input(same).input(perm).build()?;
    let back = b.op("Transpose").name(&name("back")).input(turned).input(perm).build()?;
    let passed = b.op("Identity").name(&name("passed")).input(back).build()?;
    let one = b.constant(&name("one"), scalar_tensor(1.0))?;
    let times = b.op("Mul").name(&name("times")).input(passed).input(one).build()?;
    let twice = b.op("Tanh").name(&name("twice")).input(times).build()?;
    let again = b.op("Tanh").name(&name("again")).input(times).build()?;
    Ok(b.op("AddV2").name(&name("out")).input(twice).input(again).build()?.into())
}

/// `width` independent adds into one `AddN`, fetched as `last`.
///
/// # Errors
/// An op is not registered.
pub fn wide(b: &mut GraphBuilder<'_>, width: usize) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, one())?;
    let c = b.constant("c", scalar_tensor(1.0))?;
    let mut adds: Vec<Output> = Vec::with_capacity(width);
    for at in 0..width {
        adds.push(b.op("Add").name(&format!("add{at}")).input(x).input(c).build()?.into());
    }
    b.op("AddN").name("last").inputs(adds).build()?;
    Ok(())
}

/// `relu(x·w + b)` with x of 1x64 and w of 64x64, fetched as `last`.
///
/// # Errors
/// An op is not registered.
pub fn subgraph(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let shape = Shape::new(&[1, 64]).map_or(PartialShape::UNKNOWN, PartialShape::from);
    let x = b.placeholder("x", DType::FLOAT, shape)?;
    let w = b.constant("w", filled(&[64, 64], |at| ((at % 13) as f32 - 6.0) / 16.0))?;
    let bias = b.constant("b", filled(&[64], |at| at as f32 / 64.0))?;
    let product = b.op("MatMul").input(x).input(w).build()?;
    let sum = b.op("BiasAdd").input(product).input(bias).build()?;
    b.op("Relu").name("last").input(sum).build()?;
    Ok(())
}

fn scalar_tensor(value: f32) -> Tensor {
    filled(&[1], |_| value)
}

/// A tensor whose elements are `value` of their position.
///
/// # Panics
/// The dimensions are no shape.
pub fn filled(dims: &[i64], value: impl Fn(usize) -> f32) -> Tensor {
    let shape = Shape::new(dims).expect("the benchmarks' shapes are shapes");
    let values: Vec<f32> = (0..shape.elements()).map(value).collect();
    Tensor::from_slice(dims, &values).expect("as many values as the shape has")
}

/// The callable that feeds `x` and fetches `last`.
///
/// # Errors
/// The graph cannot be compiled.
pub fn callable(session: &Session) -> Result<Callable, Failure> {
    Ok(session.callable(CallableOptions::new(&["x"], &["last"]))?)
}

/// Runs a graph once with calls counted, and checks that every node of `op_names` ran exactly once.
///
/// # Errors
/// A node ran another number of times.
pub fn check_calls(
    runtime: &Runtime,
    expected: usize,
    feed: &Tensor,
    make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>,
) -> Result<Tensor, Failure> {
    let session = session(runtime, true, make)?;
    let callable = callable(&session)?;
    let mut fetched = Vec::new();
    callable.run(std::slice::from_ref(feed), &mut fetched)?;
    let calls = callable.calls()?;
    let ran: u64 = calls.iter().map(|(_, count)| count).sum();
    let odd = calls.iter().find(|(_, count)| *count != 1);
    if let Some((node, count)) = odd {
        return Err(format!("node {node} ran {count} times, expected once").into());
    }
    if ran != expected as u64 {
        return Err(format!("{ran} kernels ran, expected {expected}").into());
    }
    fetched.pop().ok_or_else(|| "nothing was fetched".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two words were taken for a loop and a number of calls, and `cargo bench --workspace -- MatMul` stopped there.
    #[test]
    fn a_filter_of_cargo_bench_was_taken_for_a_number() {
        let found = |words: &[&'static str]| filter(words.iter().copied());
        assert_eq!(found(&["MatMul", "--bench"]), Some("MatMul"));
        assert_eq!(found(&["--bench"]), None);
        assert!(is_wanted("isolate", found(&["isol", "--bench"])));
        assert!(!is_wanted("isolate", found(&["MatMul", "--bench"])));
        assert!(is_wanted("isolate", None));
    }
}
