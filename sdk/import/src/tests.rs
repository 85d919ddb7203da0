//! Folders that are wrong, and callers that are: each has its error. What models compute is tested in `tests/tensorflow`.

use crate::{ImportError, LoadOptions, LoadedModel, SERVE, SavedModel};
use std::{fs, path::Path, sync::LazyLock};
use tempfile::TempDir;
use tenon_framework::{Code, DType, Tensor};
use tenon_proto::{
    AssetFileDef, AttrValue, AttrValueKind, CollectionDef, CollectionDefKind, FunctionDef,
    FunctionDefLibrary, GraphDef, MetaGraphDef, MetaInfoDef, NameAttrList, NodeDef, NodeList,
    OpDef, SavedModel as SavedModelProto, SaverDef, SignatureDef, TensorInfo, TensorInfoEncoding,
    encode,
};
use tenon_runtime::{Runtime, RuntimeOptions};

fn runtime() -> Runtime {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        Runtime::new(RuntimeOptions::with_plugins([""; 0])).expect("a runtime without plugins").0
    });
    RUNTIME.clone()
}

fn node(name: &str, op: &str, inputs: &[&str]) -> NodeDef {
    let input = inputs.iter().map(|&input| input.to_owned()).collect();
    NodeDef { name: name.into(), op: op.into(), input, ..NodeDef::default() }
}

fn with_attr(mut node: NodeDef, name: &str, kind: AttrValueKind) -> NodeDef {
    node.attr.insert(name.into(), AttrValue { value: Some(kind) });
    node
}

fn placeholder(name: &str) -> NodeDef {
    let float = AttrValueKind::Type(tenon_proto::DataType::Float as i32);
    with_attr(node(name, "Placeholder", &[]), "dtype", float)
}

fn info(tensor: &str) -> TensorInfo {
    TensorInfo {
        encoding: Some(TensorInfoEncoding::Name(tensor.into())),
        dtype: 1,
        tensor_shape: None,
    }
}

fn signature(inputs: &[&str], outputs: &[&str]) -> SignatureDef {
    let infos = |names: &[&str]| names.iter().map(|&name| (name.into(), info(name))).collect();
    SignatureDef { inputs: infos(inputs), outputs: infos(outputs), ..SignatureDef::default() }
}

/// A graph that serves: `x` is its input and its result.
fn meta_graph(nodes: Vec<NodeDef>) -> MetaGraphDef {
    MetaGraphDef {
        meta_info_def: Some(MetaInfoDef { tags: vec![SERVE.into()], ..MetaInfoDef::default() }),
        graph_def: Some(GraphDef { node: nodes, ..GraphDef::default() }),
        signature_def: [("serving_default".to_owned(), signature(&["x"], &["x"]))].into(),
        ..MetaGraphDef::default()
    }
}

fn write(folder: &Path, graphs: Vec<MetaGraphDef>) {
    let proto = SavedModelProto { saved_model_schema_version: 1, meta_graphs: graphs };
    fs::write(folder.join("saved_model.pb"), encode(&proto).expect("a small message"))
        .expect("written");
}

fn folder(graph: MetaGraphDef) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), vec![graph]);
    folder
}

fn load(folder: &Path) -> Result<LoadedModel, ImportError> {
    SavedModel::open(folder)?.load(&runtime(), &[SERVE], &LoadOptions::default())
}

/// The code and the message of an error.
fn refused<T: std::fmt::Debug>(result: Result<T, ImportError>) -> (Code, String) {
    let error = result.expect_err("it is refused");
    (error.code(), error.to_string())
}

#[track_caller]
fn expect<T: std::fmt::Debug>(result: Result<T, ImportError>, code: Code, text: &str) {
    let (found, message) = refused(result);
    assert_eq!(found, code, "{message}");
    assert!(message.contains(text), "expected '{text}' in: {message}");
}

#[test]
fn a_folder_without_a_model_is_named() {
    let folder = tempfile::tempdir().unwrap();
    expect(SavedModel::open(folder.path()), Code::NOT_FOUND, "found none");
    expect(SavedModel::open(folder.path().join("no")), Code::NOT_FOUND, "found none");
    fs::write(folder.path().join("saved_model.pbtxt"), "").unwrap();
    expect(SavedModel::open(folder.path()), Code::UNIMPLEMENTED, "a model as text");
    fs::write(folder.path().join("saved_model.cpb"), "").unwrap();
    expect(SavedModel::open(folder.path()), Code::UNIMPLEMENTED, "split into chunks");
    fs::create_dir(folder.path().join("saved_model.pb")).unwrap();
    expect(SavedModel::open(folder.path()), Code::UNAVAILABLE, "expected a regular file");
}

#[test]
fn a_damaged_message_is_an_error_at_every_length() {
    let folder = folder(meta_graph(vec![placeholder("x"), node("y", "Relu", &["x"])]));
    let file = folder.path().join("saved_model.pb");
    let whole = fs::read(&file).unwrap();
    for length in 0..whole.len() {
        fs::write(&file, &whole[..length]).unwrap();
        let (code, message) = refused(load(folder.path()));
        assert!([Code::INVALID_ARGUMENT, Code::NOT_FOUND].contains(&code), "{length}: {message}");
    }
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x41;
        fs::write(&file, &bytes).unwrap();
        // What is still a model may load.
        let _ = load(folder.path());
    }
}

#[test]
fn a_newer_layout_and_a_model_without_graphs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), Vec::new());
    expect(SavedModel::open(folder.path()), Code::INVALID_ARGUMENT, "a graph at least");
    let proto =
        SavedModelProto { saved_model_schema_version: 2, meta_graphs: vec![meta_graph(vec![])] };
    fs::write(folder.path().join("saved_model.pb"), encode(&proto).unwrap()).unwrap();
    expect(SavedModel::open(folder.path()), Code::INVALID_ARGUMENT, "version 1 of the layout");
    let empty = MetaGraphDef { graph_def: None, ..meta_graph(vec![]) };
    write(folder.path(), vec![empty]);
    expect(load(folder.path()), Code::INVALID_ARGUMENT, "expected nodes");
}

#[test]
fn tags_are_a_set() {
    let mut graph = meta_graph(vec![placeholder("x")]);
    graph.meta_info_def.as_mut().unwrap().tags = vec!["serve".into(), "gpu".into()];
    let folder = folder(graph);
    let model = SavedModel::open(folder.path()).unwrap();
    assert_eq!(model.tag_sets(), [["gpu", "serve"]]);
    assert!(model.meta_graph(&["serve", "gpu", "serve"]).is_ok());
    expect(model.meta_graph(&["serve"]), Code::NOT_FOUND, "tags {serve}; there are {gpu, serve}");
}

#[test]
fn an_asset_cannot_lead_out_of_the_folder() {
    for name in ["../secret", "/etc/passwd", "a/../../b", "", ".", "a/./../c/.."] {
        let asset = AssetFileDef { tensor_info: Some(info("x")), filename: name.into() };
        let graph =
            MetaGraphDef { asset_file_def: vec![asset], ..meta_graph(vec![placeholder("x")]) };
        let folder = folder(graph);
        expect(
            load(folder.path()),
            Code::INVALID_ARGUMENT,
            "the name of a file in the folder assets",
        );
    }
    let asset = AssetFileDef { tensor_info: Some(info("x")), filename: "words.txt".into() };
    let graph = MetaGraphDef {
        asset_file_def: vec![asset.clone(), AssetFileDef { tensor_info: None, ..asset }],
        ..meta_graph(vec![placeholder("x")])
    };
    let model = folder(graph.clone());
    expect(load(model.path()), Code::INVALID_ARGUMENT, "expected the name of a tensor");
    let one = graph.asset_file_def[0].clone();
    let other = AssetFileDef { filename: "others.txt".into(), ..one.clone() };
    let both = MetaGraphDef { asset_file_def: vec![one.clone(), other], ..graph.clone() };
    let model = folder(both);
    expect(load(model.path()), Code::INVALID_ARGUMENT, "are both for the tensor 'x': expected one");
    let model = folder(MetaGraphDef { asset_file_def: vec![one.clone(), one], ..graph });
    expect(load(model.path()), Code::NOT_FOUND, "assets/words.txt: the model needs this asset");
}

#[test]
fn values_that_are_not_there_are_missed() {
    let saver = SaverDef {
        filename_tensor_name: "file:0".into(),
        restore_op_name: "restore".into(),
        ..SaverDef::default()
    };
    let graph = MetaGraphDef {
        saver_def: Some(saver),
        ..meta_graph(vec![placeholder("x"), node("restore", "NoOp", &[])])
    };
    // Without variables, there need be no values.
    assert!(load(folder(graph.clone()).path()).is_ok());
    let mut with_variable = graph;
    with_variable.graph_def.as_mut().unwrap().node.push(node("v", "VarHandleOp", &[]));
    let model = folder(with_variable);
    expect(load(model.path()), Code::NOT_FOUND, "the graph has 1 variables");
    fs::create_dir(model.path().join("variables")).unwrap();
    fs::write(model.path().join("variables/variables.index"), "no table").unwrap();
    let listed = SavedModel::open(model.path()).unwrap().variables();
    assert!(refused(listed).1.starts_with("the model's variables: file '"));
}

#[test]
fn a_cycle_is_an_error_of_the_import() {
    let graph =
        meta_graph(vec![placeholder("x"), node("a", "NoOp", &["^b"]), node("b", "NoOp", &["^a"])]);
    expect(load(folder(graph).path()), Code::INVALID_ARGUMENT, "importing the model's graph: ");
}

#[test]
fn the_initial_op_is_one_node() {
    let nodes = |names: &[&str]| {
        let value = names.iter().map(|&name| name.to_owned()).collect();
        CollectionDef { kind: Some(CollectionDefKind::NodeList(NodeList { value })) }
    };
    let mut graph = meta_graph(vec![placeholder("x")]);
    graph.collection_def.insert("legacy_init_op".into(), nodes(&["a", "b"]));
    expect(load(folder(graph.clone()).path()), Code::INVALID_ARGUMENT, "one node, found 2");
    graph.collection_def.insert("saved_model_main_op".into(), nodes(&["gone"]));
    let (_, message) = refused(load(folder(graph.clone()).path()));
    assert!(message.starts_with("running the model's initial op: "), "{message}");
    graph.signature_def.insert("__saved_model_init_op".into(), signature(&[], &["other"]));
    expect(load(folder(graph).path()), Code::INVALID_ARGUMENT, "a result of the same name");
}

/// Ops of functions count where a signature calls them, also through attributes, and functions may call themselves.
#[test]
fn all_ops_that_are_missing_are_named_at_once() {
    let call = |name: &str| {
        AttrValueKind::Func(NameAttrList { name: name.into(), ..NameAttrList::default() })
    };
    let function = |name: &str, nodes: Vec<NodeDef>| FunctionDef {
        signature: Some(OpDef { name: name.into(), ..OpDef::default() }),
        node_def: nodes,
        ..FunctionDef::default()
    };
    let library = FunctionDefLibrary {
        function: vec![
            function("f", vec![node("n", "NobodysSecond", &[]), node("again", "f", &[])]),
            function("g", vec![node("n", "NobodysThird", &[])]),
        ],
        ..FunctionDefLibrary::default()
    };
    let mut graph = meta_graph(vec![
        placeholder("x"),
        node("first", "NobodysFirst", &["x"]),
        with_attr(node("y", "PartitionedCall", &["first"]), "f", call("f")),
        with_attr(node("unused", "PartitionedCall", &["x"]), "f", call("g")),
    ]);
    graph.graph_def.as_mut().unwrap().library = Some(library);
    let folder = folder(graph);
    let model = SavedModel::open(folder.path()).unwrap();
    let registry = runtime().registry();
    let found = model.meta_graph(&[SERVE]).unwrap();
    assert_eq!(found.missing_ops(&registry), ["NobodysFirst", "NobodysSecond", "NobodysThird"]);
    assert!(found.ops().iter().any(|used| used.name == "PartitionedCall" && used.nodes == 2));
    let needs = crate::ops::Needs::new(found.graph().unwrap());
    assert_eq!(needs.missing(&["y:0"], &registry), ["NobodysFirst", "NobodysSecond"]);
    assert_eq!(needs.missing(&["x", "nothing"], &registry), [""; 0]);
}

#[test]
fn arguments_are_given_by_name() {
    let mut graph = meta_graph(vec![placeholder("x"), placeholder("y")]);
    let mut default = tenon_proto::TensorProto { dtype: 1, ..Default::default() };
    default.float_val = vec![2.5];
    let mut both = signature(&["x", "y"], &["x"]);
    both.defaults.insert("y".into(), default);
    graph.signature_def.insert("both".into(), both);
    let folder = folder(graph);
    let model = SavedModel::open(folder.path()).unwrap();
    let signatures = model.meta_graph(&[SERVE]).unwrap().signatures().unwrap();
    let info = &signatures[0];
    assert_eq!((info.key.as_str(), info.inputs[0].dtype), ("both", Some(DType::FLOAT)));
    let value = Tensor::from_slice(&[], &[1f32]).unwrap();
    let values = info.complete(&[("x", value.clone())]).unwrap();
    assert_eq!(values[1].as_slice::<f32>().unwrap(), [2.5]);
    let twice = info.complete(&[("x", value.clone()), ("x", value.clone())]);
    expect(twice, Code::INVALID_ARGUMENT, "input 'x' was given twice");
    expect(info.complete(&[("z", value)]), Code::INVALID_ARGUMENT, "no input 'z'; its inputs are");
    expect(info.complete(&[]), Code::INVALID_ARGUMENT, "found none for");
    expect(info.output("z"), Code::INVALID_ARGUMENT, "no result 'z'");
    let model = model.load(&runtime(), &[SERVE], &LoadOptions::default()).unwrap();
    expect(model.signature("none").map(drop), Code::NOT_FOUND, "there are 'both'");
}
