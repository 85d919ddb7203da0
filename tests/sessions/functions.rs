//! Functions: calls that stay nodes, within each other and beside work that completes later; what ends them; what
//! they say of errors. What conditionals, loops and calls of functions compute is compared with TensorFlow in
//! tests/client.

use std::time::{Duration, Instant};
use tenon_graph::{Graph, GraphBuilder, GraphError};
use tenon_proto::{
    ArgDef, AttrValue, AttrValueKind, FunctionDef, FunctionDefLibrary, GraphDef, NameAttrList,
    NodeDef, OpDef, convert::dtype_to_proto,
};
use tenon_runtime::{
    CancelToken, RunOptions, Runtime, RuntimeError, Session, SessionOptions,
    framework::{Code, DType, PartialShape, Tensor},
};
use tenon_tests::session::{self, graph, turn};

type Built = Result<(), GraphError>;

fn int(value: i32) -> Tensor {
    Tensor::scalar(value).expect("a scalar")
}

fn function_attr(name: &str) -> AttrValue {
    let call = NameAttrList { name: name.to_owned(), ..NameAttrList::default() };
    AttrValue { value: Some(AttrValueKind::Func(call)) }
}

/// A function whose body is a graph: its arguments are placeholders of these names, its results nodes.
fn function(name: &str, args: &[&str], results: &[&str], body: &Graph) -> FunctionDef {
    let def = body.to_graph_def().expect("a built graph can be written");
    let named = |node: &str, result: bool| {
        let id = body.find(node).expect("a node of the body");
        let dtype = dtype_to_proto(body.node(id).outputs()[0]);
        let name = if result { format!("result_of_{node}") } else { node.to_owned() };
        ArgDef { name, r#type: dtype, ..ArgDef::default() }
    };
    let signature = OpDef {
        name: name.to_owned(),
        input_arg: args.iter().map(|arg| named(arg, false)).collect(),
        output_arg: results.iter().map(|result| named(result, true)).collect(),
        ..OpDef::default()
    };
    let is_body = |node: &NodeDef| !args.contains(&node.name.as_str());
    let ret = results.iter().map(|node| (format!("result_of_{node}"), (*node).to_owned()));
    FunctionDef {
        signature: Some(signature),
        node_def: def.node.into_iter().filter(is_body).collect(),
        ret: ret.collect(),
        ..FunctionDef::default()
    }
}

/// A function that is never inlined.
fn kept(mut function: FunctionDef) -> FunctionDef {
    let yes = AttrValue { value: Some(AttrValueKind::B(true)) };
    function.attr.insert("_noinline".to_owned(), yes);
    function
}

/// A call of `f` with the values of these nodes, one result of the same type each.
fn call(name: &str, f: &str, inputs: &[&str], dtype: DType) -> NodeDef {
    let types = || {
        let list = tenon_proto::ListValue {
            r#type: vec![dtype_to_proto(dtype); inputs.len()],
            ..tenon_proto::ListValue::default()
        };
        AttrValue { value: Some(AttrValueKind::List(Box::new(list))) }
    };
    let attr = [
        ("f".to_owned(), function_attr(f)),
        ("Tin".to_owned(), types()),
        ("Tout".to_owned(), types()),
    ];
    NodeDef {
        name: name.to_owned(),
        op: "PartitionedCall".to_owned(),
        input: inputs.iter().map(|input| (*input).to_owned()).collect(),
        attr: attr.into(),
        ..NodeDef::default()
    }
}

fn with(def: &mut GraphDef, functions: Vec<FunctionDef>) {
    let library = def.library.get_or_insert_default();
    library.function.extend(functions);
}

fn over(runtime: &Runtime, def: &GraphDef) -> Session {
    let session = Session::new(runtime, SessionOptions::default()).expect("options by default");
    session.extend(def).expect("the graph is right");
    session
}

fn placeholder(runtime: &Runtime, dtype: DType) -> GraphDef {
    let make = |b: &mut GraphBuilder<'_>| b.placeholder("x", dtype, PartialShape::UNKNOWN).map(|_| ());
    graph(runtime, make).to_graph_def().expect("it can be written")
}

/// `count(x) = x <= 0 ? 0 : 1 + count(x - step)`: `x` calls within each other for a step of 1, and calls without
/// end for a step of 0.
fn counting(runtime: &Runtime, step: i32) -> GraphDef {
    let constant = |b: &mut GraphBuilder<'_>, name: &str, value: i32| b.constant(name, int(value));
    let argument = |b: &mut GraphBuilder<'_>| b.placeholder("x", DType::INT32, PartialShape::UNKNOWN);
    let more = graph(runtime, |b| {
        let (x, step) = (argument(b)?, constant(b, "step", step)?);
        let left = b.op("Sub").name("left").input(x).input(step).build()?;
        let one = constant(b, "one", 1)?;
        // Stands for the call, which no registry has.
        b.op("AddV2").name("y").input(left).input(one).build().map(|_| ())
    });
    let mut more = function("more", &["x"], &["y"], &more);
    more.node_def.iter_mut().filter(|node| node.name == "y").for_each(|node| node.input[0] = "call".to_owned());
    more.node_def.push(call("call", "count", &["left"], DType::INT32));
    let none = graph(runtime, |b| {
        argument(b)?;
        constant(b, "zero", 0).map(|_| ())
    });
    let none = function("none", &["x"], &["zero"], &none);
    let count = graph(runtime, |b| {
        let (x, zero) = (argument(b)?, constant(b, "zero", 0)?);
        b.op("Greater").name("goes_on").input(x).input(zero).build()?;
        b.op("Identity").name("y").input(x).build().map(|_| ())
    });
    let mut count = function("count", &["x"], &["y"], &count);
    for node in count.node_def.iter_mut().filter(|node| node.name == "y") {
        let bool_type = AttrValue { value: Some(AttrValueKind::Type(dtype_to_proto(DType::BOOL))) };
        let conditional = call("y", "", &["x"], DType::INT32);
        node.op = "StatelessIf".to_owned();
        node.input.insert(0, "goes_on".to_owned());
        node.attr = conditional.attr;
        node.attr.remove("f");
        node.attr.insert("then_branch".to_owned(), function_attr("more"));
        node.attr.insert("else_branch".to_owned(), function_attr("none"));
        node.attr.insert("Tcond".to_owned(), bool_type);
    }
    let mut def = placeholder(runtime, DType::INT32);
    with(&mut def, vec![count, more, none]);
    def.node.push(call("y", "count", &["x"], DType::INT32));
    def
}

fn counted(session: &Session, depth: i32) -> Result<i32, RuntimeError> {
    let fetched = session::run(session, &[("x", int(depth))], &["y"])?;
    Ok(fetched[0].as_slice::<i32>().expect("an int32")[0])
}

#[test]
fn a_function_calls_itself_as_often_as_it_must() {
    let _turn = turn();
    for threads in [1, 2] {
        let runtime = session::runtime_of(threads, &["tenon_cpu"], &[]);
        let session = over(&runtime, &counting(&runtime, 1));
        for depth in [0, 1, 2, 3, 40, 1000, 1000, 7] {
            assert_eq!(counted(&session, depth).unwrap(), depth, "{threads} threads");
        }
    }
}

#[test]
fn a_recursion_without_end_is_refused() {
    let _turn = turn();
    let runtime = session::runtime(&["tenon_cpu"], &[]);
    let session = over(&runtime, &counting(&runtime, 0));
    for _ in 0..2 {
        let error = counted(&session, 1).unwrap_err();
        assert_eq!(error.code(), Code::RESOURCE_EXHAUSTED, "{error}");
        assert!(error.to_string().contains("function 'count'"), "{error}");
    }
}

/// A step that calls a function which calls `op`, with a float vector, and is not inlined.
fn around(runtime: &Runtime, make: impl FnOnce(&mut GraphBuilder<'_>) -> Built) -> GraphDef {
    let body = graph(runtime, |b| {
        b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        make(b)
    });
    let mut def = placeholder(runtime, DType::FLOAT);
    with(&mut def, vec![kept(function("f", &["x"], &["y"], &body))]);
    def.node.push(call("first", "f", &["x"], DType::FLOAT));
    def.node.push(call("second", "f", &["first"], DType::FLOAT));
    def
}

#[test]
fn a_call_waits_for_what_completes_later() {
    let _turn = turn();
    for threads in [1, 2] {
        let runtime = session::runtime_of(threads, &["tenon_cpu", "zoo_rust"], &[]);
        let make = |b: &mut GraphBuilder<'_>| {
            let x = b.graph().tensor("x")?;
            let late = b.op("ZooAsync").name("late").input(x).build()?;
            let later = b.op("ZooAsync").name("later").input(late).build()?;
            b.op("Neg").name("y").input(later).build().map(|_| ())
        };
        let session = over(&runtime, &around(&runtime, make));
        for _ in 0..30 {
            let feeds = [("x", session::floats(&[1.0, 3.0]))];
            let fetched = session::run(&session, &feeds, &["second", "first"]).unwrap();
            assert_eq!(session::values(&fetched[0]), [16.0, 48.0]);
            assert_eq!(session::values(&fetched[1]), [-4.0, -12.0]);
        }
    }
}

#[test]
fn an_error_in_a_call_names_its_node() {
    let _turn = turn();
    let runtime = session::runtime(&["tenon_cpu", "zoo_rust"], &[]);
    for mode in ["error", "drop"] {
        let make = |b: &mut GraphBuilder<'_>| {
            let x = b.graph().tensor("x")?;
            b.op("ZooAsync").name("y").input(x).attr("mode", mode).build().map(|_| ())
        };
        let session = over(&runtime, &around(&runtime, make));
        for _ in 0..3 {
            let feeds = [("x", session::floats(&[1.0]))];
            let error = session::run(&session, &feeds, &["second"]).unwrap_err();
            assert!(error.to_string().contains("'f/y' (ZooAsync)"), "{error}");
        }
    }
}

#[test]
fn a_call_that_waits_ends_with_its_step() {
    let _turn = turn();
    let runtime = session::runtime(&["tenon_cpu", "zoo_rust"], &[]);
    let make = |b: &mut GraphBuilder<'_>| {
        let x = b.graph().tensor("x")?;
        let waits = b.op("ZooBlocking").name("waits").build()?;
        b.op("Mul").name("y").input(x).input(waits).build().map(|_| ())
    };
    let session = over(&runtime, &around(&runtime, make));
    let run = |options: &RunOptions| {
        let feeds = [("x", session::floats(&[1.0]))];
        session.run(&feeds, &["second"], &[], options).map(|_| ()).unwrap_err().code()
    };
    let began = Instant::now();
    let late = RunOptions { deadline: Some(Duration::from_millis(50)), ..RunOptions::default() };
    assert_eq!(run(&late), Code::DEADLINE_EXCEEDED);
    let token = CancelToken::default();
    let options = RunOptions { cancel: Some(token.clone()), ..RunOptions::default() };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            token.cancel();
        });
        assert_eq!(run(&options), Code::CANCELLED);
    });
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn calls_that_do_not_fit_are_refused() {
    let _turn = turn();
    let runtime = session::runtime(&["tenon_cpu"], &[]);
    let make = |b: &mut GraphBuilder<'_>| {
        let x = b.graph().tensor("x")?;
        b.op("Neg").name("y").input(x).build().map(|_| ())
    };
    let def = around(&runtime, make);
    let said = |change: &dyn Fn(&mut GraphDef)| {
        let mut def = def.clone();
        change(&mut def);
        let session = over(&runtime, &def);
        let error = session::run(&session, &[("x", session::floats(&[1.0]))], &["second"]);
        error.unwrap_err().to_string()
    };
    let functions = |def: &mut GraphDef| def.library.as_mut().expect("it has a library");
    let error = said(&|def| functions(def).function.clear());
    assert!(error.contains("calls function 'f', which the graph's library does not have"), "{error}");
    let first = |library: &mut FunctionDefLibrary| library.function[0].clone();
    let error = said(&|def| {
        let library = functions(def);
        let mut function = first(library);
        let argument = function.signature.as_mut().expect("a signature").input_arg[0].clone();
        let more = ArgDef { name: "more".to_owned(), ..argument };
        function.signature.as_mut().expect("a signature").input_arg.push(more);
        function.attr.clear();
        library.function[0] = function;
    });
    assert!(error.contains("function 'f' has arguments [float, float], expected [float]"), "{error}");
    let error = said(&|def| functions(def).function[0].ret.clear());
    assert!(error.contains("nothing gives its result 'result_of_y'"), "{error}");
    let error = said(&|def| functions(def).function[0].node_def[0].input[0] = "z:0".to_owned());
    assert!(error.contains("found 'z:0'"), "{error}");
    let error = said(&|def| functions(def).function[0].node_def[0].op = "Nothing".to_owned());
    assert!(error.contains("in function 'f'") && error.contains("Nothing"), "{error}");
}
