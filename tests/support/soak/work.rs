//! What the threads do.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread::{self, Scope, ScopedJoinHandle},
    time::Duration,
};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    CancelToken, RunOptions, Runtime, RuntimeError, RuntimeOptions, Session,
    framework::{Code, DType, PartialShape, Tensor},
    host::Settings,
};
use tenon_tests::{
    session::{floats, run_with, session, session_as_written, values},
    zoo::plugin,
};

/// Steps between two that end the isolated plugin's process.
const FAULT_EVERY: u64 = 60;
/// Time between two replacements.
const REPLACE_EVERY: Duration = Duration::from_millis(150);
/// Layers of the graph that deadlines and cancellation meet.
const LAYERS: usize = 60;

/// What happened so far.
#[derive(Default)]
pub struct Counts {
    steps: AtomicU64,
    deadlines: AtomicU64,
    cancels: AtomicU64,
    sessions: AtomicU64,
    replacements: AtomicU64,
    faults: AtomicU64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (&self.steps, "steps"),
            (&self.deadlines, "deadlines"),
            (&self.cancels, "cancels"),
            (&self.sessions, "sessions"),
            (&self.replacements, "replacements"),
            (&self.faults, "faults"),
        ];
        for (at, (count, what)) in all.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{} {what}", count.load(Ordering::Relaxed))?;
        }
        Ok(())
    }
}

fn count(of: &AtomicU64) {
    of.fetch_add(1, Ordering::Relaxed);
}

/// What all threads share.
pub struct Site {
    runtime: Runtime,
    builds: [PathBuf; 2],
    deep: Session,
    apart: Session,
    pub counts: Counts,
}

/// Builds of the isolated plugin that differ in their digests alone.
fn builds(folder: &Path) -> [PathBuf; 2] {
    [1u8, 2].map(|number| {
        let mut bytes = fs::read(plugin("zoo_fatal")).expect("cargo has built the plugin");
        bytes.push(number);
        let file = folder.join(format!("libzoo_fatal_{number}.so"));
        fs::write(&file, bytes).expect("the folder can be written");
        file
    })
}

fn deep(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let mut y = b.placeholder("x", DType::FLOAT, PartialShape::new(&[16, 16]).expect("a shape"))?;
    let half = b.constant("half", Tensor::from_slice(&[], &[0.5f32]).expect("a scalar"))?;
    for layer in 0..LAYERS {
        let squared = b.op("MatMul").name(&format!("product{layer}")).input(y).input(y).build()?;
        y = b.op("Mul").name(&format!("half{layer}")).input(squared).input(half).build()?.into();
    }
    b.op("Identity").name("y").input(y).build()?;
    Ok(())
}

fn apart(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
    let twice = b.op("FatalTwice").name("twice").input(x).attr("how", "fault").build()?;
    b.op("Neg").name("y").input(twice).build()?;
    Ok(())
}

/// Twice the identity, which the deep graph maps to itself: its half squared is it again.
fn fixed_point() -> Tensor {
    let values: Vec<f32> = (0..256).map(|at| if at % 17 == 0 { 2.0 } else { 0.0 }).collect();
    Tensor::from_slice(&[16, 16], &values).expect("a matrix")
}

impl Site {
    /// A runtime with a plugin in its own process, of which builds are in this folder.
    pub fn new(folder: &Path) -> Site {
        let builds = builds(folder);
        let knobs = [("host.isolate_faults", "0"), ("host.isolate_deadline_ms", "5000")];
        let set = knobs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let options = RuntimeOptions {
            threads: Some(2),
            settings: Settings { set, ..Settings::of_process() },
            isolate: vec![builds[0].clone()],
            ..RuntimeOptions::with_plugins([plugin("tenon_cpu")])
        };
        let (runtime, report) = Runtime::new(options).expect("the runtime starts");
        report.into_result().expect("every library is a plugin");
        let (deep, apart) = (session(&runtime, deep), session_as_written(&runtime, apart));
        Site { runtime, builds, deep, apart, counts: Counts::default() }
    }
}

type Job = fn(&Site, u64);

/// Starts the threads.
pub fn start<'scope, 'site>(
    scope: &'scope Scope<'scope, 'site>,
    site: &'site Site,
    over: &'site AtomicBool,
) -> Vec<ScopedJoinHandle<'scope, ()>> {
    let jobs: [Job; 8] =
        [steps, steps, with_deadline, cancelled, fresh_session, isolated, isolated, replaced];
    let start = |(at, job): (usize, Job)| {
        scope.spawn(move || {
            let mut number = at as u64;
            while !over.load(Ordering::Relaxed) {
                job(site, number);
                number += jobs.len() as u64;
            }
        })
    };
    jobs.into_iter().enumerate().map(start).collect()
}

fn deep_step(site: &Site, options: &RunOptions) -> Result<(), RuntimeError> {
    let x = fixed_point();
    let (fetched, _) = run_with(&site.deep, &[("x", x.clone())], &["y"], options)?;
    assert_eq!(values(&fetched[0]), values(&x), "a step of the deep graph");
    count(&site.counts.steps);
    Ok(())
}

fn steps(site: &Site, _number: u64) {
    deep_step(site, &RunOptions::default()).expect("a step without a deadline");
}

fn code_of(error: &RuntimeError) -> Option<Code> {
    match error {
        RuntimeError::Step(error) => Some(error.code),
        _ => None,
    }
}

fn with_deadline(site: &Site, number: u64) {
    let deadline = Some(Duration::from_micros(20 + number % 400));
    match deep_step(site, &RunOptions { deadline, ..RunOptions::default() }) {
        Ok(()) => {}
        Err(error) if code_of(&error) == Some(Code::DEADLINE_EXCEEDED) => {
            count(&site.counts.deadlines);
        }
        Err(error) => panic!("a step with a deadline: {error}"),
    }
}

fn cancelled(site: &Site, number: u64) {
    let token = CancelToken::default();
    let options = RunOptions { cancel: Some(token.clone()), ..RunOptions::default() };
    let result = thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(Duration::from_micros(number % 300));
            token.cancel();
        });
        deep_step(site, &options)
    });
    match result {
        Ok(()) => {}
        Err(error) if code_of(&error) == Some(Code::CANCELLED) => count(&site.counts.cancels),
        Err(error) => panic!("a step that is cancelled: {error}"),
    }
}

fn fresh_session(site: &Site, _number: u64) {
    let session = session(&site.runtime, deep);
    let x = fixed_point();
    let (fetched, _) = run_with(&session, &[("x", x.clone())], &["y"], &RunOptions::default())
        .expect("the first step of a session");
    assert_eq!(values(&fetched[0]), values(&x), "a step of a fresh session");
    count(&site.counts.sessions);
}

/// What a step may end with while its plugin fails or is replaced.
fn is_expected(error: &RuntimeError) -> bool {
    match error {
        RuntimeError::Step(error) => {
            let codes = [Code::ABORTED, Code::INTERNAL, Code::FAILED_PRECONDITION];
            codes.contains(&error.code)
        }
        RuntimeError::NoKernel { .. } | RuntimeError::Kernel { .. } | RuntimeError::Graph(_) => {
            true
        }
        _ => false,
    }
}

fn isolated(site: &Site, number: u64) {
    let is_fault = (number / 8).is_multiple_of(FAULT_EVERY);
    let x = number as f32 % 1000.0;
    let fed = if is_fault { floats(&[x; 3]) } else { floats(&[x, -x]) };
    match run_with(&site.apart, &[("x", fed)], &["y"], &RunOptions::default()) {
        Ok((fetched, _)) => {
            assert!(!is_fault, "the kernel faults");
            assert_eq!(values(&fetched[0]), [-2.0 * x, 2.0 * x], "a step apart");
            count(&site.counts.steps);
        }
        Err(error) if is_expected(&error) => count(&site.counts.faults),
        Err(error) => panic!("a step apart: {error}"),
    }
}

fn replaced(site: &Site, number: u64) {
    thread::sleep(REPLACE_EVERY);
    let build = &site.builds[(number / 8 % 2) as usize];
    match site.runtime.replace(build) {
        Ok(_) => count(&site.counts.replacements),
        Err(error) => panic!("a replacement: {error}"),
    }
    for session in [&site.deep, &site.apart] {
        session.refresh().unwrap_or_else(|error| panic!("a refresh: {error}"));
    }
}
