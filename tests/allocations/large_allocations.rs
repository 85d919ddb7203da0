//! Every op is computed while its large requests for memory are refused, one after the other: it computes all the
//! same, or says `RESOURCE_EXHAUSTED`, and the process goes on.
//!
//! `malloc` and its kin are defined here, in the executable, so that they serve every library of the process. The calls
//! are made in a process of their own, which says which comes next: one that ends the process is known by its op and
//! the number of the request. Inputs are those that `tenon check` generates, the smallest that make such requests.

use crate::interpose::{LARGE, Refused, refusing};
use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_runtime::{
    Runtime,
    host::{call::StepEnv, devices::PluginDevice, memory::HostMemory, resources::Resources},
};
use tenon_testkit::{
    check::{Budget, CheckCase, Generator, Goldens, Subject, subjects},
    node::{Node, Refusal, device_of},
};
use tenon_tests::{build::repository, session::runtime};

/// Requests of one call that are refused, spread over all where there are more.
const MOST_REQUESTS: usize = 2;
/// Cases are tried that have so many elements in their inputs, so many of them at most.
const SOME: i64 = 2048;
const MOST_CASES: usize = 3;
/// After a case whose first call takes longer, no larger one is tried.
const SLOW: Duration = Duration::from_millis(60);

/// Set by the process that watches: where to begin.
const START: &str = "TENON_TEST_REFUSE_START";
/// For longer runs by hand: every kernel with every type and each of its requests; and the only op.
const FULL: &str = "TENON_TEST_REFUSE_FULL";
const ONLY: &str = "TENON_TEST_REFUSE_OP";

/// Ops whose kernels leave the work to a library that takes memory itself and ends the process without it. They ask
/// beforehand whether there is as much (`growth::foresee`), so that they refuse where no large request is granted.
const BY_LIBRARIES: &[(&str, &str)] = &[
    ("Cholesky", "faer"),
    ("DecodeJpeg", "zune-jpeg"),
    ("DecodePng", "png"),
    ("EncodeJpeg", "image"),
    ("EncodePng", "png"),
    ("FFT", "rustfft"),
    ("FFT2D", "rustfft"),
    ("IFFT", "rustfft"),
    ("IFFT2D", "rustfft"),
    ("IRFFT", "realfft"),
    ("IRFFT2D", "realfft"),
    ("LogMatrixDeterminant", "faer"),
    ("MatrixDeterminant", "faer"),
    ("MatrixInverse", "faer"),
    ("MatrixSolve", "faer"),
    ("MatrixTriangularSolve", "faer"),
    ("Qr", "faer"),
    ("RFFT", "realfft"),
    ("RFFT2D", "realfft"),
    ("SelfAdjointEigV2", "faer"),
    ("Svd", "faer"),
];

/// Kernels that are known to end the process, or to answer wrongly, each with what is in the way. A row that no call
/// needs fails the test.
const KNOWN: &[(&str, &str)] = &[];

/// Ops that write to wherever a text says, or to the standard streams.
const NOT_CALLED: [&str; 4] = ["WriteFile", "Print", "PrintV2", "Assert"];

/// What the process that makes the calls writes, a line each.
const NEXT: &str = "next ";
const FAULT: &str = "fault ";
const REFUSALS: &str = "refusals ";
const DONE: &str = "done ";

fn is_full() -> bool {
    std::env::var_os(FULL).is_some()
}

/// A call that is made again and again.
struct Call {
    subject: Subject,
    node: Node,
    inputs: Vec<tenon_runtime::framework::Tensor>,
}

struct Calls {
    runtime: Runtime,
    device: Arc<PluginDevice>,
    generator: Generator,
}

impl Calls {
    fn new() -> Calls {
        let plugins =
            ["tenon_cpu", "tenon_fft", "tenon_image", "tenon_int8", "tenon_linalg", "tenon_text"];
        let runtime = runtime(&plugins, &[]);
        let device = device_of(&runtime, "CPU").expect("the CPU is there");
        let goldens = Goldens::open(&repository().join("tests/goldens")).expect("golden data");
        let budget = Budget { cases_per_subject: 8, ..Budget::default() };
        let generator = Generator::new(budget, Some(Rc::new(goldens)));
        Calls { runtime, device, generator }
    }

    /// The kernels that are called: of each op one with each kind of type, or all.
    fn subjects(&self) -> Vec<Subject> {
        let registry = self.runtime.registry();
        let plugins: Vec<_> = registry.plugins().map(|plugin| plugin.id).collect();
        let all = plugins.into_iter().flat_map(|id| subjects(&registry, id));
        let only = std::env::var(ONLY).ok();
        let mut chosen: BTreeMap<String, Subject> = BTreeMap::new();
        for subject in all {
            let name = &subject.op.name;
            let wanted = only.as_ref().is_none_or(|only| only == name);
            if !subject.kernel.serves("CPU") || NOT_CALLED.contains(&&**name) || !wanted {
                continue;
            }
            let mut types = subject.types.values().filter_map(|value| value.as_type());
            let is_text = types.any(|t| t == tenon_runtime::framework::DType::STRING);
            let key = match is_full() {
                true => subject.to_string(),
                false => format!("{name} {} {is_text}", subject.kernel.label),
            };
            chosen.entry(key).or_insert(subject);
        }
        chosen.into_values().collect()
    }

    fn env(&self) -> StepEnv {
        StepEnv::new(Arc::clone(self.runtime.pool()), Arc::new(Resources::new()))
    }

    fn run(&self, call: &Call) -> Result<(), Refusal> {
        // Blocks that are held for reuse would be no requests.
        HostMemory::shared().trim();
        let outputs = call.node.call(
            &call.subject.kernel,
            Some(&self.device),
            &self.runtime.plugins().knobs(),
            &call.inputs,
            &self.env(),
        );
        outputs.map(drop)
    }

    /// The smallest case of some size for which the kernel makes large requests, and how many; the largest that was
    /// tried where there is none.
    fn choose(&self, subject: &Subject) -> Option<(Call, usize)> {
        let mut cases = self.generator.generate(subject).cases;
        let size = |case: &CheckCase| -> i64 {
            case.inputs.iter().map(|input| input.dims.iter().product::<i64>()).sum()
        };
        cases.sort_by_key(size);
        // Smaller ones make no large request, mostly. Where all are smaller, the largest counts.
        let from = cases.partition_point(|case| size(case) < SOME);
        let tried = &cases[from.min(cases.len().saturating_sub(1))..];
        let mut chosen = None;
        for case in tried.iter().take(MOST_CASES) {
            let Some(call) = prepared(subject, case) else { continue };
            let begin = Instant::now();
            let (result, requests) = refusing(Refused::None, || self.run(&call));
            if result.is_err() {
                continue;
            }
            let slow = begin.elapsed() >= SLOW && !is_full();
            chosen = Some((call, requests));
            if requests > 0 || slow {
                break;
            }
        }
        chosen
    }
}

fn prepared(subject: &Subject, case: &CheckCase) -> Option<Call> {
    let inputs = case.tensors().ok()?;
    let constant = |at: usize| case.inputs[at].constant;
    let node = Node::new(&subject.op, "refused", case.attrs.clone(), &inputs, constant).ok()?;
    Some(Call { subject: subject.clone(), node, inputs })
}

/// What is wrong with how a call ended whose memory was refused.
fn judge(result: Result<(), Refusal>) -> Result<bool, String> {
    let Err(refusal) = result else { return Ok(false) };
    let Refusal { code, message, .. } = &refusal;
    if *code != tenon_runtime::framework::Code::RESOURCE_EXHAUSTED {
        return Err(format!("{code}: {message}"));
    }
    let says = ["asked for", " are in use"];
    match says.iter().find(|word| !message.contains(**word)) {
        Some(missing) if refusal.stage == tenon_testkit::Stage::Compute => {
            Err(format!("does not say '{missing}': {message}"))
        }
        _ => Ok(true),
    }
}

/// Which requests of so many are refused.
fn numbers(requests: usize) -> Vec<usize> {
    let most = if is_full() { requests } else { requests.min(MOST_REQUESTS) };
    (0..most).map(|at| 1 + at * requests / most).collect()
}

#[test]
#[ignore = "started by no_op_ends_the_process_without_memory, which watches it"]
fn make_the_calls() {
    let Ok(start) = std::env::var(START) else { return };
    let start: usize = start.parse().unwrap();
    let calls = Calls::new();
    let mut out = std::io::stdout().lock();
    writeln!(out).unwrap();
    let (mut refusals, mut at, mut ops) = (0, 0, 0);
    for subject in calls.subjects() {
        let Some((call, requests)) = calls.choose(&subject) else { continue };
        ops += usize::from(requests > 0);
        let by_library = BY_LIBRARIES.iter().any(|(op, _)| *op == subject.op.name);
        let ways = match by_library || requests == 0 {
            true => Vec::new(),
            false => numbers(requests).into_iter().map(Refused::One).collect(),
        };
        for which in ways.into_iter().chain([Refused::All]) {
            at += 1;
            if at <= start {
                continue;
            }
            writeln!(out, "{NEXT}{at} {subject}: {which:?} of {requests}").unwrap();
            let (result, _) = refusing(which, || calls.run(&call));
            match judge(result) {
                Ok(refused) => refusals += usize::from(refused),
                Err(fault) => writeln!(out, "{FAULT}{}", fault.replace('\n', " ")).unwrap(),
            }
        }
    }
    writeln!(out, "{REFUSALS}{refusals}").unwrap();
    writeln!(out, "{DONE}{ops}").unwrap();
}

#[test]
fn no_op_ends_the_process_without_memory() {
    let mut watch = Watch::default();
    let mut start = 0;
    while let Some(next) = watch.follow(start) {
        start = next;
    }
    let Watch { faults, calls, ops, refusals } = watch;
    println!(
        "{calls} calls, {ops} kernels with requests of {LARGE} bytes or more, {refusals} refused"
    );
    let op_of = |fault: &str| fault.split([' ', '[']).nth(1).unwrap_or_default().to_owned();
    let is_known = |fault: &String| KNOWN.iter().any(|(op, _)| op_of(fault) == *op);
    let idle = KNOWN.iter().filter(|(op, _)| !faults.iter().any(|fault| op_of(fault) == *op));
    let mut wrong: Vec<String> =
        idle.map(|(op, why)| format!("{op} is right now: {why}")).collect();
    wrong.extend(faults.iter().filter(|fault| !is_known(fault)).cloned());
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
    assert!(std::env::var_os(ONLY).is_some() || (ops > 200 && refusals > 200), "little was tried");
}

/// What is known of the calls.
#[derive(Default)]
struct Watch {
    faults: Vec<String>,
    calls: usize,
    ops: usize,
    refusals: usize,
}

impl Watch {
    /// Starts a process at this call and follows it; where to go on if it did not come to its end.
    fn follow(&mut self, start: usize) -> Option<usize> {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "large_allocations::make_the_calls",
                "--exact",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(START, start.to_string())
            .env("RUST_BACKTRACE", "0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (mut current, mut at, mut done) = ("before the first call".to_owned(), start, false);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for line in lines.map_while(Result::ok) {
            if let Some(next) = line.strip_prefix(NEXT) {
                at = next.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(at);
                current = next.to_owned();
                self.calls += 1;
            } else if let Some(text) = line.strip_prefix(FAULT) {
                self.faults.push(format!("{current}: {text}"));
            } else if let Some(count) = line.strip_prefix(REFUSALS) {
                self.refusals += count.parse::<usize>().unwrap_or_default();
            } else if let Some(ops) = line.strip_prefix(DONE) {
                self.ops = ops.parse().unwrap_or_default();
                done = true;
            }
        }
        let status = child.wait().unwrap();
        if done {
            return None;
        }
        self.faults.push(format!("{current}: ends the process ({status})"));
        assert!(at > start && self.faults.len() < 200, "{}", self.faults.join("\n"));
        Some(at)
    }
}
