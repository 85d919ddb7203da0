//! What benchkit says of kernels that are right, wrong, and everything between.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};
use tenon_author::{
    ComputeContext, CreateContext, Kernel, ShapeContext, ShapeResult, Supported, Supports,
    reg::Numerics, register_kernel, register_op,
};
use tenon_benchkit::{
    calls::Wish,
    compare::Against,
    measure::{Settings, longest},
    record::{CostSource, ProblemKind, Report, Timing},
    run::{Options, merge, run, wanted},
    variants::{Filter, Host},
    wanted::{Shapes, Target},
};
use tenon_framework::{DType, KernelError, abi::Determinism};
use tenon_tests::session::{library, runtime};

fn unchanged(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.input(0))
}

register_op!("BenchDouble", inputs = &["x: float"], outputs = &["y: float"], shape = unchanged);
register_op!("BenchAlone", inputs = &["x: float"], outputs = &["y: float"], shape = unchanged);

register_op!(
    "BenchShipped",
    inputs = &["x: float"],
    outputs = &["y: float"],
    attrs = &["cap: float = 30"],
    shape = unchanged,
    bench = &["rows; n in {16, 64}; x: [n, 3]"],
    flops = "2 * x",
    bytes = "bytes(x) + 3 * bytes(y)",
);

fn each(c: &ComputeContext<'_>, body: impl Fn(usize, f32) -> f32) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    for (at, (y, x)) in y.data.iter_mut().zip(x.data).enumerate() {
        *y = body(at, *x);
    }
    Ok(())
}

fn double(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    each(c, |_, x| x + x)
}

fn reference(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    each(c, |_, x| 2.0 * x)
}

fn wrong_at_the_end(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let last = c.input::<f32>(0)?.data.len() - 1;
    each(c, |at, x| if at == last { x } else { x + x })
}

fn failing(_: &ComputeContext<'_>) -> Result<(), KernelError> {
    Err(KernelError::internal("out of order"))
}

static CALLS: AtomicU32 = AtomicU32::new(0);

/// Right four times: when it is checked and when it is made ready; wrong under load.
fn tiring(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let tired = CALLS.fetch_add(1, Ordering::Relaxed) > 4;
    each(c, |_, x| if tired { 0.0 } else { x + x })
}

/// Right, and slower than anyone waits for.
fn slow(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    SLOW_CALLS.fetch_add(1, Ordering::Relaxed);
    std::thread::sleep(LONGEST + Duration::from_millis(100));
    double(c)
}

/// A limit to first calls that a right kernel keeps on a loaded machine too.
const LONGEST: Duration = Duration::from_secs(2);

static SLOW_CALLS: AtomicU32 = AtomicU32::new(0);

/// A product that leaves out the last term of each sum in the last row.
fn short_of_a_term(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (a, b) = (c.input::<f32>(0)?, c.input::<f32>(1)?);
    let [m, k, n] = [a.dims[0], a.dims[1], b.dims[1]].map(|dim| dim as usize);
    let y = c.output::<f32>(0, &[m as i64, n as i64])?;
    y.data.fill(0.0);
    for (row, y) in y.data.chunks_exact_mut(n).enumerate() {
        let terms = if row + 1 == m { k - 1 } else { k };
        for term in 0..terms {
            let a = a.data[row * k + term];
            let b = &b.data[term * n..(term + 1) * n];
            y.iter_mut().zip(b).for_each(|(y, b)| *y += a * b);
        }
    }
    Ok(())
}

struct Refusing;

impl Kernel for Refusing {
    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Refusing)
    }

    fn compute(&self, _: &ComputeContext<'_>) -> Result<(), KernelError> {
        Ok(())
    }
}

impl Supports for Refusing {
    fn supports(_: &CreateContext<'_>) -> Supported {
        Supported::No("not today".into())
    }
}

const SAME: Numerics = Numerics::EXACT.determinism(Determinism::RUN_TO_RUN);

register_kernel!("BenchDouble" on "CPU": fn double, numerics = SAME);
register_kernel!("BenchDouble" on "CPU": fn reference, label = "reference", on_request = true, numerics = SAME);
register_kernel!("BenchDouble" on "CPU": fn wrong_at_the_end, label = "wrong", on_request = true, numerics = SAME);
register_kernel!("BenchDouble" on "CPU": fn failing, label = "failing", on_request = true);
register_kernel!("BenchDouble" on "CPU": fn tiring, label = "tiring", on_request = true, numerics = SAME);
register_kernel!("BenchDouble" on "CPU": fn slow, label = "slow", on_request = true, numerics = SAME);
register_kernel!("MatMul" on "CPU": fn short_of_a_term, types = ("T", &[DType::FLOAT]), label = "short", on_request = true);
register_kernel!("BenchDouble" on "CPU": Refusing, label = "refusing", on_request = true);
register_kernel!("BenchAlone" on "CPU": fn double, numerics = SAME);
register_kernel!("BenchShipped" on "CPU": fn double, numerics = SAME);

fn options(target: &str, labels: &[&str]) -> Options {
    let shapes = vec![Shapes::parse("x=100").unwrap()];
    Options {
        targets: vec![Target::parse(target).unwrap()],
        wish: Wish { shapes, ..Wish::default() },
        filter: Filter {
            labels: labels.iter().map(|&label| label.into()).collect(),
            ..Filter::default()
        },
        settings: Settings {
            budget: Duration::from_millis(5),
            // First calls are not what most tests are about, and a loaded machine may hold any of them up.
            longest: Duration::from_secs(300),
            judged: true,
            tolerance: None,
            dispatch: true,
            cold: false,
            counters: false,
            threads: 2,
            process: 0,
            seed: 1,
            trace: None,
        },
        against: Against::Chosen,
        threshold: None,
        data: None,
        pinned: false,
        calls: false,
        command: Vec::new(),
    }
}

fn measured(options: &Options) -> Report {
    let hosts = [Host::new(runtime(&["tenon_cpu"], &[]), None).unwrap()];
    let wanted = wanted(&hosts[0], options).unwrap();
    let mut seen = Vec::new();
    let report =
        run(&hosts, &wanted, options, None, &mut |at| seen.push((at.done, at.total))).unwrap();
    assert!(seen.iter().all(|&(done, total)| done < total && total == wanted.calls.len()));
    report
}

fn label(variant: &str) -> &str {
    variant.split(' ').next().unwrap()
}

#[test]
fn only_what_is_right_is_timed() {
    let labels = ["", "reference", "wrong", "failing", "refusing"];
    let report = measured(&options("BenchDouble", &labels));
    let timed: Vec<&str> =
        report.records.iter().map(|record| record.variant.label.as_str()).collect();
    assert_eq!(timed, ["", "reference"]);
    let problems: BTreeMap<&str, (ProblemKind, &str)> = report
        .problems
        .iter()
        .map(|problem| (label(&problem.variant), (problem.kind, problem.message.as_str())))
        .collect();
    assert_eq!(problems["wrong"].0, ProblemKind::Wrong);
    let message = problems["wrong"].1;
    assert!(message.contains("1 of 100 elements are wrong; at [99]"), "{message}");
    assert_eq!(problems["failing"].0, ProblemKind::Failed);
    assert!(problems["failing"].1.contains("out of order"));
    assert_eq!(problems["refusing"], (ProblemKind::Refused, "supports says no: not today"));
    assert_eq!(problems.len(), 3);
}

#[test]
fn a_variant_whose_first_call_takes_too_long_is_called_once_and_not_timed() {
    let mut options = options("BenchDouble", &["", "slow"]);
    options.settings.longest = LONGEST;
    let report = measured(&options);
    let timed: Vec<&str> =
        report.records.iter().map(|record| record.variant.label.as_str()).collect();
    assert_eq!(timed, [""]);
    let problem = &report.problems[0];
    assert_eq!((report.problems.len(), problem.kind), (1, ProblemKind::TooSlow));
    let message = &problem.message;
    assert!(message.starts_with("the first call took "), "{message}");
    assert!(message.contains("more than 2.00 s: tenon bench with --time 1 or more"), "{message}");
    assert_eq!(SLOW_CALLS.load(Ordering::Relaxed), 1);
    let usual = [5, 1000].map(|budget| longest(Duration::from_millis(budget)).as_secs());
    assert_eq!(
        usual,
        [3, 10],
        "three seconds, and ten times the time for a variant where that is more"
    );
}

#[test]
fn the_kernel_that_others_are_judged_by_is_not_called_where_a_part_of_it_takes_long() {
    let mut options = options("MatMul", &["", "reference"]);
    options.filter.devices = vec!["CPU".into()];
    options.wish.shapes = vec![Shapes::parse("a=300x700,b=700x800").unwrap()];
    options.wish.dtype = Some(DType::FLOAT);
    options.settings.dispatch = false;
    let report = measured(&options);
    let timed: Vec<&str> =
        report.records.iter().map(|record| record.variant.label.as_str()).collect();
    assert_eq!(timed, [""]);
    let [problem] = &report.problems[..] else { panic!("{:?}", report.problems) };
    assert_eq!((problem.kind, label(&problem.variant)), (ProblemKind::TooSlow, "reference"));
    assert!(problem.message.contains("judged by its result in"), "{}", problem.message);
    assert!(problem.message.contains("--label reference"), "{}", problem.message);
}

#[test]
fn a_large_product_is_judged_by_rows_and_a_wrong_row_among_them_is_found() {
    let mut options = options("MatMul", &["", "short"]);
    options.filter.devices = vec!["CPU".into()];
    options.wish.shapes = vec![Shapes::parse("a=300x700,b=700x800").unwrap()];
    options.wish.dtype = Some(DType::FLOAT);
    options.settings.dispatch = false;
    let report = measured(&options);
    let record = &report.records[0];
    assert_eq!((report.records.len(), record.variant.label.as_str()), (1, ""));
    let sampled = record.sampled.as_ref().unwrap();
    assert_eq!(sampled.to_string(), "24 of 300 rows");
    let problem = &report.problems[0];
    assert_eq!((label(&problem.variant), problem.kind), ("short", ProblemKind::Wrong));
    // The last of the 24 rows that were judged, which is the last row of all.
    let message = &problem.message;
    assert!(message.contains("at [23, ") && message.contains("rows 0, 13, 26, "), "{message}");
    assert!(message.contains(", 299 of 300"), "{message}");
    // Smaller ones are judged whole.
    options.wish.shapes = vec![Shapes::parse("a=30x70,b=70x80").unwrap()];
    let small = measured(&options);
    assert_eq!((small.records.len(), &small.records[0].sampled), (1, &None));
}

#[test]
fn a_kernel_that_goes_wrong_while_it_is_timed_is_found() {
    let report = measured(&options("BenchDouble", &["tiring"]));
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    assert_eq!(report.problems[0].kind, ProblemKind::Changed);
}

#[test]
fn what_nothing_judges_is_timed_and_said_to_be_unverified() {
    let report = measured(&options("BenchAlone", &[]));
    assert_eq!(report.records.len(), 1);
    assert_eq!(report.records[0].checked, None);
    assert_eq!(report.problems[0].kind, ProblemKind::Unverified);
}

#[test]
fn a_record_says_what_was_called_and_how() {
    let report = measured(&options("BenchDouble:", &[]));
    let record = &report.records[0];
    assert_eq!((record.timing, record.threads, record.unit.as_str()), (Timing::Kernel, 2, "GB/s"));
    assert_eq!((record.work.flops, record.work.read, record.work.written), (None, 400.0, 400.0));
    assert!(record.checked.as_ref().unwrap().contains("'reference'"));
    let dispatch = record.dispatch.as_ref().unwrap();
    assert_eq!(dispatch.through, "callable");
    assert_eq!(dispatch.whole.ns.len(), record.kernel.ns.len());
    assert!((record.rate - 800.0 / record.median_ns).abs() < 1e-9);
    assert!(report.run.machine.cores > 0 && record.cpu == report.run.machine.cpu);
}

#[test]
fn reports_of_processes_are_put_together() {
    let of = |process: u32| {
        let mut options = options("BenchDouble:", &[]);
        options.settings.process = process;
        measured(&options)
    };
    let (one, two) = (of(0), of(1));
    let counts = [&one, &two].map(|report| report.records[0].kernel.ns.len());
    let both = merge(vec![one, two]).unwrap();
    assert_eq!((both.records.len(), both.run.processes), (1, 2));
    let kernel = &both.records[0].kernel;
    assert_eq!(kernel.ns.len(), counts[0] + counts[1]);
    let second = kernel.processes.iter().filter(|&&process| process == 1).count();
    assert_eq!(second, counts[1]);
    assert!(kernel.summary.interval[0] <= kernel.summary.median);
    assert_eq!(merge(Vec::new()), None);
}

#[test]
fn every_kernel_of_a_plugin_s_file_is_a_target() {
    let file = library("zoo_second");
    let target = file.display().to_string();
    let hosts = [Host::new(runtime(&["tenon_cpu", "zoo_second"], &[]), None).unwrap()];
    let mut options = options(&target, &[]);
    options.wish.shapes.clear();
    let wanted = wanted(&hosts[0], &options);
    let registry = hosts[0].runtime.registry();
    let plugin = registry.plugins().find(|info| info.path.as_ref() == Some(&file)).unwrap();
    let ops: Vec<&str> = registry
        .kernels()
        .filter(|kernel| kernel.plugin == plugin.id)
        .map(|kernel| kernel.op.as_str())
        .collect();
    let wanted = wanted.unwrap();
    for op in ops {
        let called = wanted.calls.iter().any(|(call, _)| call.op.name == op);
        let told = wanted.notes.iter().any(|note| note.contains(op));
        assert!(called || told, "{op}: {:?}", wanted.notes);
    }
    assert!(!wanted.calls.is_empty());
}

#[test]
fn the_calls_and_the_work_that_an_op_ships_are_measured() {
    let mut options = options("BenchShipped", &[]);
    options.wish.shapes.clear();
    let report = measured(&options);
    let sizes: Vec<&str> = report.records.iter().map(|record| record.size.as_str()).collect();
    assert_eq!(sizes, ["x=16x3", "x=64x3"]);
    let work = report.records[1].work;
    assert_eq!((work.flops, work.source), (Some(384.0), CostSource::Declared));
    assert_eq!((work.read, work.written), (3.0 * 768.0, 768.0));
}

#[test]
fn an_op_that_ships_no_calls_is_measured_by_large_ones_with_its_attributes_at_their_defaults() {
    let host = Host::new(runtime(&["tenon_cpu"], &[]), None).unwrap();
    for op in ["BenchDouble", "Relu", "LeakyRelu"] {
        let mut options = options(op, &[""]);
        options.wish.shapes.clear();
        let calls = wanted(&host, &options).unwrap().calls;
        assert_eq!(calls.len(), 3, "{op}");
        let elements: Vec<i64> =
            (calls.iter()).map(|(call, _)| call.case.inputs[0].dims.iter().product()).collect();
        assert!((2_000..20_000).contains(&elements[0]), "{op}: {elements:?}");
        assert!(elements[2] >= 2_000_000, "{op}: {elements:?}");
        let sizes: Vec<String> = calls.iter().map(|(call, _)| call.size().unwrap()).collect();
        assert!(sizes.iter().all(|size| !size.contains("alpha=")), "{op}: {sizes:?}");
    }
}
