//! A small model: variables that grow by one with each step.

use std::{path::Path, sync::Arc};
use tenon_cluster::{Server, ServerOptions};
use tenon_graph::GraphBuilder;
use tenon_runtime::{
    AnySession, Runtime, SessionError, SessionOptions, Worker,
    framework::{DType, Tensor},
    proto::GraphDef,
};
use tenon_tests::session::{runtime, values};
use tenon_training::{
    Initial, LocalTarget, SaverOptions, Scaffold, Target, TrainError, VariableOptions, Variables,
};

pub const PLUGINS: [&str; 4] = ["tenon_checkpoint", "tenon_cpu", "tenon_data", "tenon_text"];

/// What fetches the variable `w`.
pub const W: &str = "w/Read/ReadVariableOp";

pub fn plugins() -> Runtime {
    runtime(&PLUGINS, &[])
}

/// The variables `global_step` and `w`, whose elements are 1 and 2 at step 0. `train` adds one to all of them.
pub fn nodes(b: &mut GraphBuilder<'_>) -> Result<Variables, TrainError> {
    let mut variables = Variables::new();
    let count = VariableOptions { is_trainable: false, ..VariableOptions::default() };
    let step = variables.add_with(b, "global_step", DType::INT64, &[], &Initial::Zeros, count)?;
    let first = Initial::Value(Tensor::from_slice(&[2], &[1f32, 2.0])?);
    let w = variables.add(b, "w", DType::FLOAT, &[2], &first)?;
    let ones = b.constant("ones", Tensor::from_slice(&[2], &[1f32, 1.0])?)?;
    let one = b.constant("one", Tensor::scalar(1i64)?)?;
    let add = b.op("AssignAddVariableOp").name("add").input(w.handle).input(ones).build()?;
    let count = b.op("AssignAddVariableOp").name("count").input(step.handle).input(one);
    let count = count.control(add).build()?;
    b.op("NoOp").name("train").control(count).build()?;
    Ok(variables)
}

/// The graph of [`nodes`] and what `more` adds to it, ready to be trained.
pub fn scaffold_with(
    runtime: &Runtime,
    options: SaverOptions,
    more: impl FnOnce(&mut GraphBuilder<'_>, &mut Variables) -> Result<(), TrainError>,
) -> Scaffold {
    let registry = runtime.registry();
    let mut b = GraphBuilder::new(&registry);
    let mut variables = nodes(&mut b).expect("the model is right");
    more(&mut b, &mut variables).expect("what is added is right");
    Scaffold::build(&mut b, &variables, options).expect("the scaffold is right")
}

pub fn scaffold(runtime: &Runtime) -> Scaffold {
    scaffold_with(runtime, SaverOptions::default(), |_, _| Ok(()))
}

pub fn local(runtime: &Runtime) -> Arc<dyn Target> {
    Arc::new(LocalTarget::new(runtime, SessionOptions::default()))
}

/// Sessions on a server at this address.
pub fn remote(address: String) -> Arc<dyn Target> {
    Arc::new(move |graph: &GraphDef| -> Result<Arc<dyn AnySession>, SessionError> {
        Ok(Arc::new(tenon_cluster::Session::connect(&address, graph.clone())?))
    })
}

/// Calls a test with sessions of each kind, each with its own variables.
pub fn everywhere(test: impl Fn(&Runtime, Arc<dyn Target>)) {
    let here = plugins();
    test(&here, local(&here));
    let served = plugins();
    let server = Server::start(Worker::new(&served), &ServerOptions::default());
    let server = server.expect("a port is free");
    test(&served, remote(format!("grpc://{}", server.address())));
}

/// A session in which all variables have their initial values.
pub fn fresh(target: &dyn Target, scaffold: &Scaffold) -> Arc<dyn AnySession> {
    let session = target.open(&scaffold.graph).expect("it opens");
    session.run_step(&[], &[], &["init"], None).expect("they are initialised");
    session
}

pub fn train(session: &dyn AnySession, steps: usize) {
    for _ in 0..steps {
        session.run_step(&[], &[], &["train"], None).expect("a step");
    }
}

/// The elements of `w`.
pub fn w(session: &dyn AnySession) -> Vec<f32> {
    values(&session.run_step(&[], &[W], &[], None).expect("it has a value")[0])
}

/// The elements of `w` after this many steps.
pub fn w_after(steps: i64) -> Vec<f32> {
    vec![1.0 + steps as f32, 2.0 + steps as f32]
}

/// The names of the files of a folder, in order.
pub fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("it is a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
