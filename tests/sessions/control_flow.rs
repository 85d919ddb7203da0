//! Conditionals and loops as version 1 graphs have them: who runs, what is dead, how errors and memory behave.
//! TensorFlow's own graphs with control flow are among those of `graph_goldens`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_graph::{GraphBuilder, GraphError, Output};
use tenon_runtime::{
    CallableOptions, CancelToken, RunOptions, Runtime, RuntimeError, Session, SessionOptions,
    framework::{Code, DType, PartialShape, Tensor},
    host::memory::HostMemory,
    trace::ChromeTrace,
};
use tenon_tests::{
    loops::{Loop, binary, switch, unary},
    session::{self, Turn, turn},
};

type Built = Result<(), GraphError>;

/// The turn of one test, since memory is of the whole process, and a runtime, which goes before the turn does.
fn over(libraries: &[&str]) -> (Turn, Runtime) {
    (turn(), session::runtime(libraries, &[]))
}

fn int(value: i32) -> Tensor {
    Tensor::scalar(value).expect("a scalar")
}

fn boolean(value: bool) -> Tensor {
    Tensor::from_bytes(DType::BOOL, &[], &[u8::from(value)]).expect("a scalar")
}

fn ints(tensors: &[Tensor]) -> Vec<i32> {
    tensors.iter().flat_map(|tensor| tensor.as_slice::<i32>().expect("int32").to_vec()).collect()
}

/// A scalar placeholder of int32.
fn argument(b: &mut GraphBuilder<'_>, name: &str) -> Result<Output, GraphError> {
    b.placeholder(name, DType::INT32, PartialShape::UNKNOWN)
}

/// `total = start + n * step` by a loop, `step` a constant of the loop.
fn multiply(b: &mut GraphBuilder<'_>, parallel: i64) -> Built {
    let (n, start, step) = (argument(b, "n")?, argument(b, "start")?, argument(b, "step")?);
    let steps = [step];
    let l = Loop { name: "loop", parallel, counter: n, values: &[start], constants: &steps };
    let results = l.build(b, |b, values, constants| {
        Ok(vec![binary(b, "Add", "body", values[0], constants[0])?])
    })?;
    unary(b, "Identity", "total", results[1])?;
    Ok(())
}

fn multiplied(
    session: &Session,
    n: i32,
    start: i32,
    step: i32,
) -> Result<Vec<Tensor>, RuntimeError> {
    let feeds = [("n", int(n)), ("start", int(start)), ("step", int(step))];
    session::run(session, &feeds, &["total", "loop/counter_out"])
}

#[test]
fn a_conditional_runs_one_side_only() {
    let (_turn, runtime) = over(&["tenon_cpu"]);
    let options = SessionOptions { count_calls: true, ..SessionOptions::default() };
    let session = session::session_with(&runtime, options, |b| {
        let p = b.placeholder("p", DType::BOOL, PartialShape::UNKNOWN)?;
        let x = argument(b, "x")?;
        let (no, yes) = switch(b, "switch", x, p)?;
        let negative = unary(b, "Neg", "negative", no)?;
        let square = unary(b, "Square", "square", yes)?;
        let merge = b.op("Merge").name("merge").input(negative).input(square).build()?;
        let number = Output::new(merge, 1);
        unary(b, "Identity", "number", number)?;
        binary(b, "Add", "y", merge.into(), x)?;
        Ok(())
    });
    let callable = session.callable(CallableOptions::new(&["p", "x"], &["y", "number"])).unwrap();
    let mut fetched = Vec::new();
    for (times, (p, expected)) in
        [(false, [0, 0]), (true, [30, 1]), (true, [30, 1])].into_iter().enumerate()
    {
        callable.run(&[boolean(p), int(5)], &mut fetched).expect("the step goes well");
        assert_eq!(ints(&fetched), expected);
        let calls = callable.calls().expect("the session is open");
        let of = |name: &str| calls.iter().find(|(node, _)| node == name).map(|(_, calls)| *calls);
        assert_eq!((of("negative"), of("square")), (Some(1), Some(times as u64)));
    }
    let feeds = |p| [("p", boolean(p)), ("x", int(5))];
    let fetched = session::run(&session, &feeds(true), &["square", "switch:1"]);
    assert_eq!(ints(&fetched.unwrap()), [25, 5]);
    for dead in ["square", "switch:1"] {
        let error = session::run(&session, &feeds(false), &[dead]).expect_err("it is dead");
        assert_eq!(error.code(), Code::INVALID_ARGUMENT);
        assert!(error.to_string().contains("branch that was not taken"), "{error}");
    }
    let pair = Tensor::from_bytes(DType::BOOL, &[2], &[0, 1]).unwrap();
    let error = session::run(&session, &[("p", pair), ("x", int(5))], &["y"]).unwrap_err();
    assert_eq!(error.code(), Code::INVALID_ARGUMENT);
    assert!(error.to_string().contains("'switch' (Switch)"), "{error}");
}

#[test]
fn conditionals_nest_and_deadness_runs_through_all_that_depends() {
    let (_turn, runtime) = over(&["tenon_cpu"]);
    let session = session::session(&runtime, |b| {
        let outer = b.placeholder("outer", DType::BOOL, PartialShape::UNKNOWN)?;
        let inner = b.placeholder("inner", DType::BOOL, PartialShape::UNKNOWN)?;
        let x = argument(b, "x")?;
        let (no, yes) = switch(b, "x_outer", x, outer)?;
        let (_, chosen) = switch(b, "inner_outer", inner, outer)?;
        let (yes_no, yes_yes) = switch(b, "x_inner", yes, chosen)?;
        let a = unary(b, "Neg", "a", yes_no)?;
        let c = unary(b, "Square", "c", yes_yes)?;
        let merged = b.op("Merge").name("inner_merge").input(a).input(c).build()?;
        // Several live and dead values into one node: dead unless the outer side is taken.
        let sum = b.op("AddN").name("sum").inputs([merged.into(), yes, yes]).build()?;
        b.op("Merge").name("y").input(no).input(sum).build()?;
        let constant = b.op("Const").name("after").attr("dtype", DType::INT32);
        constant.attr("value", int(7)).control(merged).build()?;
        Ok(())
    });
    let run = |outer, inner, fetch| {
        let feeds = [("outer", boolean(outer)), ("inner", boolean(inner)), ("x", int(3))];
        session::run(&session, &feeds, &[fetch])
    };
    assert_eq!(ints(&run(false, false, "y").unwrap()), [3]);
    assert_eq!(ints(&run(false, true, "y").unwrap()), [3]);
    assert_eq!(ints(&run(true, false, "y").unwrap()), [3]);
    assert_eq!(ints(&run(true, true, "y").unwrap()), [15]);
    assert_eq!(ints(&run(true, true, "after").unwrap()), [7]);
    assert_eq!(run(false, true, "sum").unwrap_err().code(), Code::INVALID_ARGUMENT);
    assert_eq!(run(false, true, "after").unwrap_err().code(), Code::INVALID_ARGUMENT);
}

#[test]
fn a_trigger_runs_after_dead_nodes_too() {
    let (_turn, runtime) = over(&["tenon_cpu"]);
    let session = session::session(&runtime, |b| {
        let p = b.placeholder("p", DType::BOOL, PartialShape::UNKNOWN)?;
        let x = argument(b, "x")?;
        let (_, yes) = switch(b, "switch", x, p)?;
        let dead = b.op("Neg").name("side").input(yes).build()?;
        let trigger = b.op("ControlTrigger").name("trigger").control(dead).build()?;
        b.op("Identity").name("y").input(x).control(trigger).build()?;
        Ok(())
    });
    for p in [false, true] {
        let fetched = session::run(&session, &[("p", boolean(p)), ("x", int(4))], &["y"]);
        assert_eq!(ints(&fetched.unwrap()), [4]);
    }
}

#[test]
fn a_loop_counts_whatever_may_run_at_once() {
    let (_turn, runtime) = over(&["tenon_cpu"]);
    for parallel in [1, 2, 10] {
        let session = session::session(&runtime, |b| multiply(b, parallel));
        for n in [0, 1, 2, 3, 17, 100, 0] {
            let fetched = multiplied(&session, n, 5, 3).expect("the step goes well");
            assert_eq!(ints(&fetched), [5 + 3 * n, 0], "{n} iterations, {parallel} at once");
        }
    }
}

#[test]
fn loops_nest() {
    let (_turn, runtime) = over(&["tenon_cpu"]);
    let session = session::session(&runtime, |b| {
        let (rows, columns) = (argument(b, "rows")?, argument(b, "columns")?);
        let (total, step) = (argument(b, "total")?, argument(b, "step")?);
        let constants = [columns, step];
        let outer = Loop {
            name: "outer",
            parallel: 3,
            counter: rows,
            values: &[total],
            constants: &constants,
        };
        outer.build(b, |b, values, constants| {
            let inner_constants = [constants[1]];
            let inner = Loop {
                name: "inner",
                parallel: 2,
                counter: constants[0],
                values: &[values[0]],
                constants: &inner_constants,
            };
            let results = inner.build(b, |b, values, constants| {
                Ok(vec![binary(b, "Add", "inner_body", values[0], constants[0])?])
            })?;
            Ok(vec![results[1]])
        })?;
        Ok(())
    });
    for (rows, columns) in [(0, 3), (3, 0), (1, 1), (4, 5), (20, 7)] {
        let feeds =
            [("rows", int(rows)), ("columns", int(columns)), ("total", int(1)), ("step", int(2))];
        let fetched = session::run(&session, &feeds, &["outer/value_0_out"]);
        assert_eq!(ints(&fetched.unwrap()), [1 + 2 * rows * columns], "{rows} x {columns}");
    }
}

#[test]
fn a_loop_on_a_branch_that_is_not_taken_is_dead() {
    let (_turn, runtime) = over(&["tenon_cpu"]);
    let session = session::session(&runtime, |b| {
        let p = b.placeholder("p", DType::BOOL, PartialShape::UNKNOWN)?;
        let (n, x) = (argument(b, "n")?, argument(b, "x")?);
        let (_, n_yes) = switch(b, "n_switch", n, p)?;
        let (no, yes) = switch(b, "x_switch", x, p)?;
        let constants = [yes];
        let l = Loop {
            name: "loop",
            parallel: 4,
            counter: n_yes,
            values: &[yes],
            constants: &constants,
        };
        let results = l.build(b, |b, values, constants| {
            Ok(vec![binary(b, "Add", "body", values[0], constants[0])?])
        })?;
        b.op("Merge").name("y").input(no).input(results[1]).build()?;
        Ok(())
    });
    let run = |p, fetch| {
        session::run(&session, &[("p", boolean(p)), ("n", int(3)), ("x", int(5))], &[fetch])
    };
    assert_eq!(ints(&run(true, "y").unwrap()), [20]);
    assert_eq!(ints(&run(false, "y").unwrap()), [5]);
    assert_eq!(run(false, "loop/value_0_out").unwrap_err().code(), Code::INVALID_ARGUMENT);
}

#[test]
fn a_loop_has_conditionals_and_large_values() {
    let (_turn, runtime) = over(&["tenon_cpu"]);
    let session = session::session(&runtime, |b| {
        let n = argument(b, "n")?;
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        let p = b.placeholder("p", DType::BOOL, PartialShape::UNKNOWN)?;
        let constants = [p];
        let l = Loop { name: "loop", parallel: 5, counter: n, values: &[x], constants: &constants };
        l.build(b, |b, values, constants| {
            let (no, yes) = switch(b, "inside", values[0], constants[0])?;
            let no = unary(b, "Neg", "negative", no)?;
            let yes = binary(b, "Add", "twice", yes, yes)?;
            let merged = b.op("Merge").name("merged").input(no).input(yes).build()?;
            Ok(vec![merged.into()])
        })?;
        Ok(())
    });
    let many: Vec<f32> = (0..10_000).map(|at| at as f32).collect();
    for (p, factor) in [(false, -1.0), (true, 32.0)] {
        let feeds = [("n", int(5)), ("x", session::floats(&many)), ("p", boolean(p))];
        let fetched = session::run(&session, &feeds, &["loop/value_0_out"]).unwrap();
        let expected: Vec<f32> = many.iter().map(|value| value * factor).collect();
        assert_eq!(session::values(&fetched[0]), expected);
    }
}

#[test]
fn steps_run_at_the_same_time() {
    let (_turn, runtime) = over(&["tenon_cpu"]);
    let session = session::session(&runtime, |b| multiply(b, 4));
    std::thread::scope(|scope| {
        for start in 0..4 {
            let session = &session;
            scope.spawn(move || {
                for n in 0..50 {
                    let fetched = multiplied(session, n, start, 2).expect("the step goes well");
                    assert_eq!(ints(&fetched), [start + 2 * n, 0]);
                }
            });
        }
    });
}

#[test]
fn an_error_in_an_iteration_ends_the_step() {
    let (_turn, runtime) = over(&["tenon_cpu"]);
    let session = session::session(&runtime, |b| {
        let n = argument(b, "n")?;
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        let y = b.placeholder("y", DType::FLOAT, PartialShape::UNKNOWN)?;
        let constants = [y];
        let l = Loop { name: "loop", parallel: 5, counter: n, values: &[x], constants: &constants };
        l.build(b, |b, values, constants| {
            Ok(vec![binary(b, "Add", "body", values[0], constants[0])?])
        })?;
        Ok(())
    });
    let run = |y: &[f32]| {
        let feeds = [("n", int(4)), ("x", session::floats(&[1.0, 2.0])), ("y", session::floats(y))];
        session::run(&session, &feeds, &["loop/value_0_out"])
    };
    for _ in 0..3 {
        let error = run(&[1.0, 2.0, 3.0]).expect_err("the shapes do not fit");
        assert_eq!(error.code(), Code::INVALID_ARGUMENT);
        assert!(error.to_string().contains("'body' (Add)"), "{error}");
        assert_eq!(session::values(&run(&[1.0, 2.0]).unwrap()[0]), [5.0, 10.0]);
    }
}

#[test]
fn kernels_that_complete_later_run_in_loops() {
    let (_turn, runtime) = over(&["tenon_cpu", "zoo_rust"]);
    let make = |b: &mut GraphBuilder<'_>, mode: &str| {
        let n = argument(b, "n")?;
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        let l = Loop { name: "loop", parallel: 5, counter: n, values: &[x, x], constants: &[] };
        l.build(b, |b, values, _| {
            let first = b.op("ZooAsync").name("first").input(values[0]).build()?;
            let second = b.op("ZooAsync").name("second").input(values[1]).attr("mode", mode);
            let second: Output = second.build()?.into();
            Ok(vec![first.into(), unary(b, "Neg", "negative", second)?])
        })?;
        Ok(())
    };
    let run = |session: &Session, n| {
        let feeds = [("n", int(n)), ("x", session::floats(&[1.0, 3.0]))];
        session::run(session, &feeds, &["loop/value_0_out", "loop/value_1_out"])
    };
    let session = session::session(&runtime, |b| make(b, "value"));
    for _ in 0..20 {
        let fetched = run(&session, 5).expect("the step goes well");
        assert_eq!(session::values(&fetched[0]), [32.0, 96.0]);
        assert_eq!(session::values(&fetched[1]), [-32.0, -96.0]);
    }
    let session = session::session(&runtime, |b| make(b, "error"));
    for _ in 0..5 {
        let error = run(&session, 5).expect_err("the kernel fails");
        assert!(error.to_string().contains("'second' (ZooAsync)"), "{error}");
        assert_eq!(session::values(&run(&session, 0).unwrap()[0]), [1.0, 3.0]);
    }
}

#[test]
fn an_endless_loop_is_cancelled_or_ends_with_its_deadline() {
    let (_turn, runtime) = over(&["tenon_cpu"]);
    let session = session::session(&runtime, |b| multiply(b, 10));
    let run = |options: &RunOptions| {
        // From -1 the counter takes 2^32 iterations to 0.
        let feeds = [("n", int(-1)), ("start", int(0)), ("step", int(1))];
        let begin = Instant::now();
        let error = session::run_with(&session, &feeds, &["total"], options).expect_err("endless");
        assert!(begin.elapsed() < Duration::from_secs(20));
        error.code()
    };
    let deadline = Some(Duration::from_millis(50));
    assert_eq!(run(&RunOptions { deadline, ..RunOptions::default() }), Code::DEADLINE_EXCEEDED);
    let token = CancelToken::new();
    let options = RunOptions { cancel: Some(token.clone()), ..RunOptions::default() };
    let cancelled = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            token.cancel();
        });
        run(&options)
    });
    assert_eq!(cancelled, Code::CANCELLED);
    assert_eq!(ints(&multiplied(&session, 3, 1, 1).unwrap()), [4, 0]);
}

#[test]
fn ten_thousand_iterations_hold_no_more_than_ten() {
    let (_turn, runtime) = over(&["tenon_cpu"]);
    let session = session::session(&runtime, |b| {
        let n = argument(b, "n")?;
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        let l = Loop { name: "loop", parallel: 4, counter: n, values: &[x], constants: &[] };
        l.build(b, |b, values, _| Ok(vec![unary(b, "Neg", "body", values[0])?]))?;
        Ok(())
    });
    let x = session::floats(&vec![1.0; 20_000]);
    let run = |n: i32| {
        let feeds = [("n", int(n)), ("x", x.clone())];
        let fetched = session::run(&session, &feeds, &["loop/value_0_out"]).unwrap();
        assert_eq!(session::values(&fetched[0])[0], if n % 2 == 0 { 1.0 } else { -1.0 });
        drop(fetched);
        HostMemory::shared().stats()
    };
    let (few, many) = (run(100), run(10_000));
    assert_eq!(few.live_bytes, many.live_bytes);
    assert_eq!(few.live_count, many.live_count);
    assert!(many.peak_bytes <= few.peak_bytes + 320_000, "{few:?}, then {many:?}");
}

/// A vector that doubles in every iteration: which kernel runs is chosen for each of its lengths, again and again,
/// also where iterations run at once.
#[test]
fn a_loop_chooses_kernels_for_shapes_that_change() {
    let (_turn, runtime) = over(&["tenon_cpu", "zoo_rust"]);
    for parallel in [1, 4] {
        let session = session::session(&runtime, |b| {
            let (n, zero) = (argument(b, "n")?, b.constant("zero", int(0))?);
            let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[-1]).expect("a shape"))?;
            let (values, constants) = ([x, zero], [zero]);
            let l =
                Loop { name: "loop", parallel, counter: n, values: &values, constants: &constants };
            let results = l.build(b, |b, values, constants| {
                let [x, count] = *values else { panic!("two values") };
                let twice = b.op("ConcatV2").name("twice").inputs([x, x]).input(constants[0]);
                let twice = twice.build()?.into();
                let node = b.op("ZooSupports").name("node").input(x).attr("limit", 4i64).build()?;
                let small = b.op("Cast").input(node).attr("DstT", DType::INT32).build()?;
                Ok(vec![twice, binary(b, "Add", "count", count, small.into())?])
            })?;
            unary(b, "Identity", "total", results[2])?;
            Ok(())
        });
        let feeds = |n| [("n", int(n)), ("x", session::floats(&[1.0]))];
        // Of the lengths 1, 2, 4, 8, ... three are not more than 4.
        for (n, expected) in [(2, 2), (6, 3), (1, 1), (6, 3), (6, 3)] {
            let fetched = session::run(&session, &feeds(n), &["total"]).expect("a step");
            assert_eq!(ints(&fetched), [expected], "{n} iterations");
        }
    }
}

/// A traced step counts arrivals; one without a trace runs the programs of its frames.
#[test]
fn values_change_places_between_iterations_with_and_without_a_program() {
    let (_turn, runtime) = over(&["tenon_cpu"]);
    let session = session::session(&runtime, |b| {
        let (n, a, c) = (argument(b, "n")?, argument(b, "a")?, argument(b, "c")?);
        let l = Loop { name: "loop", parallel: 3, counter: n, values: &[a, c, c], constants: &[] };
        let results = l.build(b, |b, values, _| {
            // The new first value is the buffer of the former second one, and the third that of the first.
            let sum = binary(b, "Add", "sum", values[0], values[1])?;
            let same = unary(b, "Identity", "same", values[1])?;
            Ok(vec![same, sum, values[0]])
        })?;
        let small = binary(b, "Less", "small", results[2], a)?;
        let (no, yes) = switch(b, "side", results[1], small)?;
        let no = unary(b, "Neg", "negative", no)?;
        b.op("Merge").name("y").input(no).input(yes).build()?;
        Ok(())
    });
    let numbers = [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144];
    let trace =
        || RunOptions { trace: Some(Arc::new(ChromeTrace::new())), ..RunOptions::default() };
    for n in [0, 1, 2, 3, 4, 9, 10, 4, 0] {
        let feeds = [("n", int(n as i32)), ("a", int(1)), ("c", int(1))];
        let fetches = ["loop/value_0_out", "loop/value_1_out", "loop/value_2_out", "y"];
        let third = if n == 0 { 1 } else { numbers[n - 1] };
        let expected = [numbers[n], numbers[n + 1], third, -numbers[n]];
        for options in [RunOptions::default(), trace()] {
            let (fetched, _) = session::run_with(&session, &feeds, &fetches, &options).unwrap();
            assert_eq!(ints(&fetched), expected, "{n} iterations");
        }
    }
}
