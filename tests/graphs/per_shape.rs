//! Kernels whose `supports` depends on shapes that only the step knows: the choice is made for each shape, at its
//! first sight.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Barrier, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tenon_author::{ComputeContext, ShapeContext, ShapeResult, register_kernel, register_op};
use tenon_framework::KernelError;
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    Runtime, RuntimeOptions, Session, SessionOptions,
    framework::{Code, DType, PartialShape, Tensor},
};
use tenon_tests::{
    bench::{elements, floats, texts},
    plugin,
    session::{run, session, session_with},
    zoo::Language,
};

const CPU: &str = "/job:localhost/replica:0/task:0/device:CPU:0";
/// Shapes that a node keeps a kernel for.
const KEPT: usize = 16;

fn runtime(language: Language) -> Runtime {
    let files = [plugin("tenon_cpu"), language.zoo(), plugin("zoo_second")];
    let options = RuntimeOptions { threads: Some(2), ..RuntimeOptions::with_plugins(files) };
    let (runtime, report) = Runtime::new(options).expect("the runtime starts");
    report.into_result().expect("every library is a plugin");
    runtime
}

fn of_length(length: usize) -> Tensor {
    floats(&vec![0.5; length])
}

/// `node` over `x` of unknown length: the kernel for at most two elements, or the one for any number up to `most`.
fn open_node(b: &mut GraphBuilder<'_>, language: Language, most: i64) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[-1]).expect("a shape"))?;
    let node = b.op(&language.op("Supports")).name("node").input(x);
    node.attr("limit", 2i64).attr("most", most).build().map(|_| ())
}

/// Whether the kernel for small shapes ran on `length` elements, and the number of its object.
fn ran(session: &Session, length: usize) -> (bool, i64) {
    let fetched = run(session, &[("x", of_length(length))], &["node:0", "node:1"]);
    let fetched = fetched.unwrap_or_else(|error| panic!("{length} elements: {error}"));
    (elements::<bool>(&fetched[0])[0], elements::<i64>(&fetched[1])[0])
}

#[test]
fn small_shapes_go_to_one_kernel_and_large_ones_to_another() {
    for language in Language::ALL {
        let session = session(&runtime(language), |b| open_node(b, language, -1));
        let mut objects = BTreeMap::new();
        for length in [1, 3, 2, 5, 0, 1, 2, 3, 3, 5, 1, 0] {
            let (small, object) = ran(&session, length);
            assert_eq!(small, length <= 2, "{language:?}: {length} elements");
            let first = *objects.entry(length).or_insert(object);
            assert_eq!(first, object, "{language:?}: the kernel for {length} is made once");
        }
        let distinct: BTreeSet<i64> = objects.values().copied().collect();
        assert_eq!(distinct.len(), objects.len(), "{language:?}: one kernel for each shape");
    }
}

/// The same dimensions in another arrangement are another shape.
#[test]
fn shapes_are_told_apart_by_rank_and_dimensions() {
    for language in Language::ALL {
        let session = session(&runtime(language), |b| {
            let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
            let node = b.op(&language.op("Supports")).name("node").input(x);
            node.attr("limit", 2i64).build().map(|_| ())
        });
        let mut seen = BTreeMap::new();
        for _ in 0..2 {
            for dims in [&[][..], &[1], &[1, 1], &[2, 1], &[1, 2], &[2], &[0], &[0, 7], &[7, 0]] {
                let count = dims.iter().product::<i64>() as usize;
                let x = of_length(count).reshaped(dims).expect("as many elements");
                let fetched = run(&session, &[("x", x)], &["node", "node:1"]).expect("a step");
                assert_eq!(elements::<bool>(&fetched[0]), [true], "{dims:?}");
                let object = elements::<i64>(&fetched[1])[0];
                assert_eq!(*seen.entry(dims).or_insert(object), object, "{language:?}: {dims:?}");
            }
        }
        assert_eq!(seen.values().collect::<BTreeSet<_>>().len(), seen.len(), "{language:?}");
    }
}

#[test]
fn concurrent_steps_make_the_kernel_of_a_shape_once() {
    for language in Language::ALL {
        let session = session(&runtime(language), |b| open_node(b, language, -1));
        let (together, objects) = (Barrier::new(4), Mutex::new(BTreeMap::new()));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (session, together, objects) = (&session, &together, &objects);
                scope.spawn(move || {
                    for round in 0..80 {
                        together.wait();
                        // All come with one new shape, then each with another.
                        let length = if round < 10 { round } else { (round + 3 * thread) % 10 };
                        let (small, object) = ran(session, length);
                        assert_eq!(small, length <= 2);
                        let mut objects = objects.lock().expect("no panic");
                        objects.entry(length).or_insert_with(BTreeSet::new).insert(object);
                    }
                });
            }
        });
        for (length, objects) in objects.into_inner().expect("no panic") {
            assert_eq!(objects.len(), 1, "{language:?}: {length} elements: {objects:?}");
        }
    }
}

#[test]
fn the_oldest_shape_makes_room() {
    for language in Language::ALL {
        let session = session(&runtime(language), |b| open_node(b, language, -1));
        let first: Vec<i64> = (0..KEPT).map(|length| ran(&session, length).1).collect();
        let again: Vec<i64> = (0..KEPT).map(|length| ran(&session, length).1).collect();
        assert_eq!(first, again, "{language:?}: as many are kept");
        ran(&session, KEPT);
        let others: Vec<i64> = (1..KEPT).map(|length| ran(&session, length).1).collect();
        assert_eq!(others, first[1..], "{language:?}: all others stay");
        assert_ne!(ran(&session, 0).1, first[0], "{language:?}: the oldest is made anew");
    }
}

#[test]
fn a_shape_that_no_kernel_takes_fails_its_step() {
    for language in Language::ALL {
        let session = session(&runtime(language), |b| open_node(b, language, 4));
        assert!(!ran(&session, 4).0);
        for _ in 0..2 {
            let error = run(&session, &[("x", of_length(5))], &["node"]).expect_err("too many");
            assert_eq!(error.code(), Code::NOT_FOUND, "{error}");
            let text = error.to_string();
            let op = language.op("Supports");
            let begin =
                format!("node 'node' ({op}): no kernel takes inputs of shapes [5] on CPU:\n");
            assert!(text.starts_with(&begin), "{text}");
            assert!(text.ends_with(&format!(" [on {CPU}]")), "{text}");
            let lines: Vec<&str> = text.lines().skip(1).collect();
            assert_eq!(lines.len(), 2, "{text}");
            let candidates = [("kernel 'small' of op", 2), ("kernel of op", 4)];
            for (line, (kernel, limit)) in lines.into_iter().zip(candidates) {
                assert!(line.starts_with(&format!("  {kernel} '{op}' on CPU (")), "{line}");
                let reason = format!("supports says no: 5 elements exceed the limit of {limit}");
                assert!(line.contains(&reason), "{line}");
            }
        }
        assert!(ran(&session, 1).0, "{language:?}: the session stays usable");
    }
}

#[test]
fn explain_and_metadata_say_that_the_choice_is_made_per_shape() {
    for language in Language::ALL {
        let session = session(&runtime(language), |b| {
            open_node(b, language, 4)?;
            let known = b.constant("known", floats(&[1.0]))?;
            let node = b.op(&language.op("Supports")).name("decided").input(known);
            node.attr("limit", 2i64).build().map(|_| ())
        });
        let explained = session.explain(Some("node")).expect("explained");
        let kernels = explained[0].kernels.as_ref().expect("an ordinary op");
        let labels: Vec<&str> = kernels.per_shape.iter().map(|kernel| &*kernel.label).collect();
        assert_eq!(labels, ["small", ""], "{language:?}: in the order in which they are asked");
        assert!(kernels.depends_on_shapes());
        assert!(kernels.candidates.iter().all(|candidate| candidate.removed.is_none()));
        let explained = session.explain(Some("decided")).expect("explained");
        assert!(explained[0].kernels.as_ref().expect("an ordinary op").per_shape.is_empty());
        let feeds = [("x", of_length(1))];
        let (_, metadata) =
            session.run(&feeds, &["node", "decided"], &[], &Default::default()).expect("a step");
        let mut nodes: Vec<_> =
            metadata.nodes.iter().map(|node| (&*node.name, node.per_shape)).collect();
        nodes.retain(|(name, _)| *name != "known");
        nodes.sort_unstable();
        assert_eq!(nodes, [("decided", false), ("node", true)], "{language:?}");
    }
}

/// A label that the session asks for holds for the shapes that its kernel takes; one that the node asks for holds
/// for all.
#[test]
fn a_label_holds_for_each_shape() {
    for language in Language::ALL {
        let runtime = runtime(language);
        let by_option =
            SessionOptions { kernel_label: Some("small".to_owned()), ..SessionOptions::default() };
        let mut by_knob = SessionOptions::default();
        by_knob.knobs.insert("runtime.kernel_label".to_owned(), "small".to_owned());
        for options in [by_option, by_knob] {
            let session = session_with(&runtime, options, |b| open_node(b, language, -1));
            assert_eq!((ran(&session, 2).0, ran(&session, 3).0), (true, false), "{language:?}");
        }
        let session = session_with(&runtime, SessionOptions::default(), |b| {
            let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
            let node = b.op(&language.op("Supports")).name("node").input(x).attr("limit", 2i64);
            node.attr("_kernel", "small").build().map(|_| ())
        });
        assert!(ran(&session, 2).0);
        let error = run(&session, &[("x", of_length(3))], &["node"]).expect_err("none else");
        assert!(error.to_string().contains("3 elements exceed the limit of 2"), "{error}");
        assert!(
            !error.to_string().contains("kernel of op"),
            "the unlabelled is not asked: {error}"
        );
    }
}

/// Where only a kernel is left that takes every shape, it is chosen with the plan: here the other says no to the
/// attribute.
#[test]
fn what_is_certain_is_chosen_before_the_step() {
    for language in Language::ALL {
        let session = session(&runtime(language), |b| {
            let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
            let node = b.op(&language.op("Supports")).name("node").input(x).attr("limit", -1i64);
            node.build().map(|_| ())
        });
        let (first, other) = (ran(&session, 1), ran(&session, 9));
        assert_eq!(first, other, "{language:?}: one kernel for all shapes");
        assert!(!first.0);
    }
}

/// `node` has a kernel in line for one element, a blocking one for two, an asynchronous one for three.
fn modes(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
    let node = b.op("ZooSecondModes").name("node").input(x).build()?;
    b.op("Identity").name("mode").input(node).build().map(|_| ())
}

fn mode(session: &Session, length: usize) -> (String, i64) {
    let fetched = run(session, &[("x", of_length(length))], &["mode", "node:1"]).expect("a step");
    (texts(&fetched[0]).join(" "), elements::<i64>(&fetched[1])[0])
}

#[test]
fn kernels_of_every_mode_stand_in_one_table() {
    let runtime = runtime(Language::Rust);
    let knobs = [("zoo_second.mark".to_owned(), "marked".to_owned())].into();
    let options = SessionOptions { knobs, count_calls: true, ..SessionOptions::default() };
    let session = session_with(&runtime, options, modes);
    let expected = ["inline marked", "blocking marked", "async marked"];
    for _ in 0..5 {
        for (at, expected) in expected.iter().enumerate() {
            assert_eq!(&mode(&session, at + 1).0, expected, "the session's knobs are seen");
        }
    }
    let error = run(&session, &[("x", of_length(4))], &["mode"]).expect_err("no kernel for four");
    assert!(error.to_string().contains("'three' of op 'ZooSecondModes'"), "{error}");
    assert_eq!(mode(&session, 3).0, expected[2]);
    // The kernel of a stateful op is made once for a session, whatever the shape and the plan.
    let object = mode(&session, 1).1;
    let x = of_length(1).reshaped(&[1, 1]).expect("one element");
    let other_plan = run(&session, &[("x", x)], &["node:1"]).expect("a step");
    assert_eq!(elements::<i64>(&other_plan[0]), [object]);
}

/// Beside a branch the executor runs frames: the same node, on the side that is taken and on the one that is not.
#[test]
fn a_choice_on_a_branch() {
    for language in Language::ALL {
        let session = session(&runtime(language), |b| {
            let p = b.placeholder("p", DType::BOOL, PartialShape::UNKNOWN)?;
            let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
            let switch = b.op("Switch").name("switch").input(x).input(p).build()?;
            let (no, yes) =
                (tenon_graph::Output::new(switch, 0), tenon_graph::Output::new(switch, 1));
            let node = b.op(&language.op("Supports")).name("node").input(yes);
            let node = node.attr("limit", 2i64).build()?;
            let object = tenon_graph::Output::new(node, 1);
            let no = b.op("Cast").input(no).attr("DstT", DType::INT64).build()?;
            b.op("Merge").name("merge").input(no).input(object).build().map(|_| ())
        });
        let object = |length: usize, p: bool| {
            let p = Tensor::from_bytes(DType::BOOL, &[], &[u8::from(p)]).expect("a scalar");
            let feeds = [("x", of_length(length)), ("p", p)];
            elements::<i64>(&run(&session, &feeds, &["merge"]).expect("a step")[0])
        };
        let (one, three) = (object(1, true), object(3, true));
        assert_ne!(one, three);
        assert_eq!(object(3, false), [0, 0, 0], "{language:?}: the kernel does not run");
        assert_eq!((object(1, true), object(3, true)), (one, three), "{language:?}");
    }
}

/// Calls of the shape function of `Pairs`, and of its kernel that leaves the check to the host.
static INFERRED: AtomicUsize = AtomicUsize::new(0);
static COMPUTED: AtomicUsize = AtomicUsize::new(0);

fn same_shapes(c: &ShapeContext<'_>) -> ShapeResult {
    INFERRED.fetch_add(1, Ordering::Relaxed);
    c.set_output(0, c.merge(c.input(0), c.input(1))?)
}

register_op!(
    "Pairs",
    inputs = &["x: float", "y: float"],
    outputs = &["z: float"],
    shape = same_shapes,
    summary = "The sum of two tensors of one shape.",
);

/// Reads as much of `y` as there is of `x`.
fn pairs(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    COMPUTED.fetch_add(1, Ordering::Relaxed);
    let (x, y) = (c.input::<f32>(0)?, c.input::<f32>(1)?);
    let z = c.output::<f32>(0, x.dims)?;
    for (at, z) in z.data.iter_mut().enumerate() {
        *z = x.data[at] + y.data[at];
    }
    Ok(())
}

fn checking_pairs(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    match c.dims(0) == c.dims(1) {
        true => pairs(c),
        false => Err(KernelError::invalid_argument("the kernel's own words")),
    }
}

register_kernel!("Pairs" on "CPU": fn pairs);
register_kernel!("Pairs" on "CPU": fn checking_pairs, label = "checks", priority = -1,
    checks_shapes = true);

fn pairs_of(dims: &[i64], label: &str) -> Session {
    let runtime = runtime(Language::Rust);
    session(&runtime, |b| {
        let shape = PartialShape::new(dims).expect("a shape");
        let x = b.placeholder("x", DType::FLOAT, shape.clone())?;
        let y = b.placeholder("y", DType::FLOAT, shape)?;
        let node = b.op("Pairs").name("z").input(x).input(y).attr("_kernel", label);
        node.build().map(|_| ())
    })
}

/// Feeds `x` and `y` of these lengths; how often the shape function ran, and the kernel, in this step.
fn feed_pairs(session: &Session, lengths: [usize; 2]) -> (Result<usize, String>, [usize; 2]) {
    let before = [&INFERRED, &COMPUTED].map(|count| count.load(Ordering::Relaxed));
    let [x, y] = lengths.map(of_length);
    let fetched = run(session, &[("x", x), ("y", y)], &["z"]);
    let length = fetched.map(|z| elements::<f32>(&z[0]).len()).map_err(|error| error.to_string());
    let after = [&INFERRED, &COMPUTED].map(|count| count.load(Ordering::Relaxed));
    (length, [after[0] - before[0], after[1] - before[1]])
}

#[test]
fn the_host_runs_the_shape_function_once_for_shapes_that_a_step_finds() {
    let _turn = tenon_tests::session::turn();
    let session = pairs_of(&[-1], "");
    assert_eq!(feed_pairs(&session, [2, 2]).0, Ok(2), "the plan is made");
    for (lengths, inferred) in [([3, 3], 1), ([3, 3], 0), ([2, 2], 0), ([4, 4], 1), ([3, 3], 0)] {
        let (fetched, counts) = feed_pairs(&session, lengths);
        assert_eq!((fetched, counts), (Ok(lengths[0]), [inferred, 1]), "{lengths:?}");
    }
    for _ in 0..2 {
        let (fetched, [_, computed]) = feed_pairs(&session, [3, 2]);
        let error = fetched.expect_err("the shape function refuses it");
        for words in ["'z'", "Pairs", "expected 3, found 2", "x is [3], y is [2]"] {
            assert!(error.contains(words), "{words}: {error}");
        }
        assert_eq!(computed, 0, "the kernel is not called");
    }
    assert_eq!(feed_pairs(&session, [5, 5]).0, Ok(5), "the session goes on");
}

#[test]
fn shapes_are_not_looked_at_where_they_are_known_or_the_kernel_checks_them() {
    let _turn = tenon_tests::session::turn();
    let known = pairs_of(&[3], "");
    let checking = pairs_of(&[-1], "checks");
    for session in [&known, &checking] {
        assert_eq!(feed_pairs(session, [3, 3]).0, Ok(3), "the plan is made");
        assert_eq!(feed_pairs(session, [3, 3]), (Ok(3), [0, 1]));
    }
    let (fetched, [inferred, _]) = feed_pairs(&checking, [3, 2]);
    assert!(fetched.expect_err("the kernel refuses it").contains("the kernel's own words"));
    assert_eq!(inferred, 0);
}
