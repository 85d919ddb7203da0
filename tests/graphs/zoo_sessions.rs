//! The zoo in sessions, in both languages: what only a plan brings (planned outputs, buffers that are taken over,
//! constants, packed forms, outputs that nobody reads, references, devices in a graph).

use tenon_graph::{GraphBuilder, GraphError, NodeId, Output};
use tenon_runtime::{
    CallableOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    framework::{Code, DType, PartialShape, Tensor},
};
use tenon_tests::{
    bench::{elements, floats, scalar, texts},
    plugin,
    session::{run, session, session_with},
    zoo::Language,
};

/// A runtime over the CPU, the zoo in one language with its device type, and the second plugin.
pub fn runtime(language: Language) -> Runtime {
    let files = [plugin("tenon_cpu"), language.zoo(), language.device_zoo(), plugin("zoo_second")];
    let options = RuntimeOptions { threads: Some(2), ..RuntimeOptions::with_plugins(files) };
    let (runtime, report) = Runtime::new(options).unwrap();
    report.into_result().unwrap();
    runtime
}

/// A session over a graph of the zoo's ops.
fn with(
    language: Language,
    make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>,
) -> (Runtime, Session) {
    let runtime = runtime(language);
    let session = session(&runtime, make);
    (runtime, session)
}

/// As [`with`], by a session that runs the graph as it is: equal nodes are not one.
fn with_as_written(
    language: Language,
    make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>,
) -> (Runtime, Session) {
    let runtime = runtime(language);
    let session = session_with(&runtime, SessionOptions::as_written(), make);
    (runtime, session)
}

/// Runs a step, which goes well, any number of times with the same result.
fn fetch(session: &Session, feeds: &[(&str, Tensor)], fetches: &[&str]) -> Vec<Tensor> {
    let first = run(session, feeds, fetches).unwrap();
    let bytes = |tensor: &Tensor| tensor.as_bytes().map(<[u8]>::to_vec).ok();
    for _ in 0..3 {
        let again = run(session, feeds, fetches).unwrap();
        assert!(again.iter().map(bytes).eq(first.iter().map(bytes)), "the same in every step");
    }
    first
}

fn vector(b: &mut GraphBuilder<'_>, name: &str, length: i64) -> Result<Output, GraphError> {
    b.placeholder(name, DType::FLOAT, PartialShape::new(&[length]).unwrap())
}

#[test]
fn outputs_are_planned_where_shapes_are_known() {
    for language in Language::ALL {
        for (length, known) in [(2, true), (-1, false)] {
            let (_runtime, session) = with(language, |b| {
                let x = vector(b, "x", length)?;
                let x = b.op("Neg").input(x).build()?;
                let planned = b.op(&language.op("Planned")).name("p").input(x).build()?;
                b.op("Neg").name("y").input(planned).build().map(|_| ())
            });
            let fetched = fetch(&session, &[("x", floats(&[1.0, 2.0]))], &["y", "p:1"]);
            assert_eq!(elements::<f32>(&fetched[0]), [1.0, 2.0], "{language:?}");
            let planned = elements::<bool>(&fetched[1])[0];
            assert!(known || !planned, "{language:?}: planned without a shape");
        }
    }
}

#[test]
fn a_buffer_without_other_readers_is_taken_over() {
    for language in Language::ALL {
        let (_runtime, session) = with_as_written(language, |b| {
            let x = vector(b, "x", -1)?;
            let alone = b.op("Neg").input(x).build()?;
            b.op(&language.op("Forward")).name("alone").input(alone).build()?;
            let shared = b.op("Neg").input(x).build()?;
            b.op(&language.op("Forward")).name("shared").input(shared).build()?;
            b.op("Neg").name("other").input(shared).build().map(|_| ())
        });
        // Large enough that the value owns its buffer.
        let x = floats(&[1.0; 10_000]);
        let fetches = ["alone", "alone:1", "shared", "other"];
        let fetched = fetch(&session, &[("x", x.clone())], &fetches);
        assert_eq!(elements::<f32>(&fetched[0])[..2], [0.0, 0.0], "{language:?}");
        assert_eq!(elements::<bool>(&fetched[1]), [true], "{language:?}: nobody else reads it");
        assert_eq!(elements::<f32>(&fetched[2])[..2], [0.0, 0.0], "{language:?}");
        assert_eq!(elements::<f32>(&fetched[3])[..2], [1.0, 1.0], "{language:?}: the other reader");
        assert_eq!(elements::<f32>(&x)[..2], [1.0, 1.0], "a feed is as before");
    }
}

#[test]
fn an_output_that_nobody_reads_is_left_out() {
    for language in Language::ALL {
        let (_runtime, session) = with(language, |b| {
            let x = vector(b, "x", -1)?;
            b.op(&language.op("Unused")).name("u").input(x).build().map(|_| ())
        });
        let feeds = [("x", floats(&[1.0, 2.0]))];
        let both = fetch(&session, &feeds, &["u:0", "u:1"]);
        assert_eq!(elements::<f32>(&both[0]), [3.0], "{language:?}");
        assert_eq!(elements::<bool>(&both[1]), [false]);
        let one = fetch(&session, &feeds, &["u:1"]);
        assert_eq!(elements::<bool>(&one[0]), [true], "{language:?}");
    }
}

#[test]
fn constants_reach_create_and_are_packed() {
    for language in Language::ALL {
        let (_runtime, session) = with(language, |b| {
            let x = vector(b, "x", 2)?;
            let c = b.constant("c", scalar(0.5f32))?;
            let w = b.constant("w", floats(&[10.0, 20.0]))?;
            b.op(&language.op("ConstantView")).name("view").input(x).input(c).build()?;
            b.op(&language.op("Prepack")).name("packed").input(x).input(w).build().map(|_| ())
        });
        let feeds = [("x", floats(&[1.0, 2.0]))];
        let fetched = fetch(&session, &feeds, &["view", "packed", "packed:1"]);
        assert_eq!(elements::<f32>(&fetched[0]), [1.5, 2.5], "{language:?}");
        assert_eq!(elements::<f32>(&fetched[1]), [20.0, 20.0], "{language:?}");
        let form = elements::<i64>(&fetched[2])[0];
        assert_ne!(form, 0, "{language:?}: the constant is packed");
        let another = fetch(&session, &feeds, &["packed:1"]);
        assert_eq!(
            elements::<i64>(&another[0]),
            [form],
            "{language:?}: another plan shares the form"
        );
    }
}

#[test]
fn a_computed_value_is_no_constant() {
    for language in Language::ALL {
        let (_runtime, session) = with(language, |b| {
            let x = vector(b, "x", 1)?;
            let name = language.op("ConstantView");
            b.op(&name).name("view").input(x).input(x).build().map(|_| ())
        });
        let error = run(&session, &[("x", floats(&[1.0]))], &["view"]).unwrap_err();
        assert_eq!(error.code(), Code::INVALID_ARGUMENT, "{language:?}: {error}");
        let text = error.to_string();
        assert!(text.contains("view") && text.contains("expected a constant"), "{text}");
    }
}

fn chain(
    b: &mut GraphBuilder<'_>,
    op: &str,
    name: &str,
    inputs: &[Output],
    after: NodeId,
) -> Result<NodeId, GraphError> {
    b.op(op).name(name).inputs(inputs.iter().copied()).control(after).build()
}

#[test]
fn two_plugins_update_a_variable_in_one_step() {
    for language in Language::ALL {
        let (_runtime, session) = with(language, |b| {
            let value = b.constant("value", floats(&[1.0, 2.0]))?;
            let two = b.constant("two", scalar(2f32))?;
            let handle = b.op(&language.op("Variable")).name("v");
            let handle = handle.attr("shape", PartialShape::UNKNOWN).build()?;
            let v = Output::from(handle);
            let set = chain(b, &language.op("VariableAssign"), "set", &[v, value], handle)?;
            let scaled = chain(b, "ZooSecondScale", "scaled", &[v, two], set)?;
            let added = chain(b, &language.op("VariableAdd"), "added", &[v, two], scaled)?;
            chain(b, &language.op("VariableRead"), "read", &[v], added).map(|_| ())
        });
        let fetched = fetch(&session, &[], &["read"]);
        assert_eq!(elements::<f32>(&fetched[0]), [4.0, 6.0], "{language:?}");
    }
}

#[test]
fn references_pass_through_a_graph() {
    for language in Language::ALL {
        let (_runtime, session) = with(language, |b| {
            let value = b.constant("value", floats(&[3.0, 4.0]))?;
            let r = b.op(&language.op("RefVariable")).name("r").build()?;
            let set = b.op(&language.op("RefAssign")).name("set").input(r).input(value).build()?;
            b.op(&language.op("RefRead")).name("read").input(set).build().map(|_| ())
        });
        let fetched = fetch(&session, &[], &["read"]);
        assert_eq!(elements::<f32>(&fetched[0]), [3.0, 4.0], "{language:?}");
    }
}

#[test]
fn a_plain_input_takes_the_value_behind_a_reference() {
    for language in Language::ALL {
        let (_runtime, session) = with(language, |b| {
            let value = b.constant("value", floats(&[3.0, 4.0]))?;
            let r = b.op(&language.op("RefVariable")).name("r").build()?;
            let set = b.op(&language.op("RefAssign")).name("set").input(r).input(value).build()?;
            b.op("Neg").name("negated").input(set).build().map(|_| ())
        });
        let fetched = fetch(&session, &[], &["negated"]);
        assert_eq!(elements::<f32>(&fetched[0]), [-3.0, -4.0], "{language:?}");
    }
}

#[test]
fn strings_and_variants_pass_through_a_graph() {
    for language in Language::ALL {
        let (_runtime, session) = with(language, |b| {
            let text = b.constant("text", Tensor::from_strings(&[2], &["abc", "de"]).unwrap())?;
            let once = b.op(&language.op("Strings")).input(text).build()?;
            b.op(&language.op("Strings")).name("twice").input(once).build()?;
            b.op(&language.op("Strings")).name("reversed").input(text).build()?;
            let value = b.constant("value", scalar(1.5f32))?;
            let v = b.op(&language.op("VariantMake")).input(value).build()?;
            let sum = b.op(&language.op("VariantAdd")).input(v).input(v).build()?;
            b.op(&language.op("VariantRead")).name("sum").input(sum).build().map(|_| ())
        });
        let fetched = fetch(&session, &[], &["twice", "reversed", "sum"]);
        assert_eq!(texts(&fetched[0]), ["abc", "de"], "{language:?}");
        assert_eq!(texts(&fetched[1]), ["cba", "ed"], "{language:?}");
        assert_eq!(elements::<f32>(&fetched[2]), [3.0], "{language:?}");
    }
}

#[test]
fn a_graph_on_the_zoos_devices() {
    for language in Language::ALL {
        let (_runtime, session) = with(language, |b| {
            let on = |ordinal| format!("/device:{}:{ordinal}", language.device_type());
            let x = vector(b, "x", -1)?;
            let n = b.constant("n", scalar(3i32))?;
            let scaled = b.op(&language.op("DeviceScale")).input(x).input(n).device(&on(0));
            let scaled = scaled.build()?;
            let later = b.op(&language.op("DeviceAsync")).input(scaled).device(&on(0)).build()?;
            let across = b.op(&language.op("DeviceScratch")).input(later).device(&on(1)).build()?;
            b.op("Neg").name("y").input(across).device("/device:CPU:0").build()?;
            let facts = b.op(&language.op("DeviceFacts")).name("facts").input(scaled).input(n);
            facts.device(&on(0)).build().map(|_| ())
        });
        let fetched = fetch(&session, &[("x", floats(&[1.0, 2.0]))], &["y", "facts"]);
        assert_eq!(elements::<f32>(&fetched[0]), [-12.0, -6.0], "{language:?}");
        assert_eq!(elements::<i64>(&fetched[1]), [1, 0, 0, 1, 1], "{language:?}");
    }
}

#[test]
fn a_lost_device_fails_its_steps_as_unavailable() {
    for language in Language::ALL {
        let (_runtime, session) = with(language, |b| {
            let device = format!("/device:{}:0", language.device_type());
            let x = vector(b, "x", -1)?;
            let n = b.constant("n", scalar(3i32))?;
            let lose = b.op(&language.op("DeviceLose")).name("lose").input(x).device(&device);
            match language {
                Language::Rust => lose.attr("reason", "zoo device lost").build()?,
                Language::C => lose.build()?,
            };
            let scale = b.op(&language.op("DeviceScale")).name("scale").input(x).input(n);
            scale.device(&device).build().map(|_| ())
        });
        let feeds = [("x", floats(&[1.0]))];
        for node in ["lose", "scale", "scale"] {
            let error = run(&session, &feeds, &[node]).unwrap_err();
            assert_eq!(error.code(), Code::UNAVAILABLE, "{language:?}: {node}: {error}");
            assert!(error.to_string().contains("zoo device lost"), "{error}");
        }
    }
}

/// How many nodes of an op run in a step that gives `y` from `x`.
fn run_by(session: &Session, op: &str) -> usize {
    let cut = session.partitions(&CallableOptions::new(&["x"], &["y"])).unwrap();
    cut.iter().flat_map(|partition| &partition.node).filter(|node| node.op == op).count()
}

#[test]
fn what_an_op_passes_on_by_its_own_word_is_passed_by() {
    for language in Language::ALL {
        let pass = language.op("FactsPass");
        let (_runtime, session) = with(language, |b| {
            let x = vector(b, "x", -1)?;
            let passed = b.op(&pass).input(x).build()?;
            b.op("Neg").name("y").input(passed).build().map(|_| ())
        });
        let fetched = fetch(&session, &[("x", floats(&[1.0, 2.0]))], &["y"]);
        assert_eq!(elements::<f32>(&fetched[0]), [-1.0, -2.0], "{language:?}");
        assert_eq!(run_by(&session, &pass), 0, "{language:?}");
    }
}

#[test]
fn two_sums_in_either_order_are_one_where_the_op_says_so() {
    for language in Language::ALL {
        for (op, runs) in [("FactsSum", 1), ("ShapeMerge", 2)] {
            let op = language.op(op);
            let (_runtime, session) = with(language, |b| {
                let x = vector(b, "x", 2)?;
                let neg = b.op("Neg").input(x).build()?;
                let one = b.op(&op).input(x).input(neg).build()?;
                let other = b.op(&op).input(neg).input(x).build()?;
                b.op("Mul").name("y").input(one).input(other).build().map(|_| ())
            });
            let fetched = fetch(&session, &[("x", floats(&[1.0, 2.0]))], &["y"]);
            assert_eq!(elements::<f32>(&fetched[0]), [0.0, 0.0], "{language:?}");
            assert_eq!(run_by(&session, &op), runs, "{language:?}: {op}");
        }
    }
}

#[test]
fn a_value_follows_by_the_rule_that_the_op_states() {
    for language in Language::ALL {
        let op = language.op("FactsShape");
        for (length, runs) in [(2, 0), (-1, 1)] {
            let (_runtime, session) = with(language, |b| {
                let x = vector(b, "x", length)?;
                b.op(&op)
                    .name("dims")
                    .input(x)
                    .build()
                    .and_then(|dims| b.op("Identity").name("y").input(dims).build().map(|_| ()))
            });
            let fetched = fetch(&session, &[("x", floats(&[1.0, 2.0]))], &["y"]);
            assert_eq!(elements::<i64>(&fetched[0]), [2], "{language:?}");
            assert_eq!(run_by(&session, &op), runs, "{language:?}: x has {length} elements");
        }
    }
}

#[test]
fn what_checks_runs_though_its_value_is_known() {
    for language in Language::ALL {
        let (check, pass) = (language.op("FactsCheck"), language.op("FactsPass"));
        let (_runtime, session) = with(language, |b| {
            let x = vector(b, "x", 2)?;
            let value = b.constant("value", floats(&[-1.0, 2.0]))?;
            let checked = b.op(&check).name("checked").input(value).build()?;
            let passed = b.op(&pass).input(checked).build()?;
            b.op("Mul").name("y").input(x).input(passed).build().map(|_| ())
        });
        assert_eq!(run_by(&session, &check), 1, "{language:?}");
        assert_eq!(run_by(&session, &pass), 0, "{language:?}");
        let error = run(&session, &[("x", floats(&[1.0, 2.0]))], &["y"]).unwrap_err().to_string();
        assert!(error.contains("checked") && error.contains("below zero at 0"), "{error}");
    }
}
