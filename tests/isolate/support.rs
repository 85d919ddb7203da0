//! Runtimes with isolated plugins, and what is left of their processes.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    Runtime, RuntimeOptions, Session,
    framework::{DType, PartialShape, Tensor},
    host::Settings,
    isolate::{Isolated, IsolationStatus, isolated},
};
use tenon_tests::{
    bench::worker,
    session::{floats, library, run, session_as_written, values},
};

/// The turn of one test: what a process has started and holds is counted.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A runtime of two threads with these plugins, the latter in processes of their own.
pub fn runtime(here: &[&str], apart: &[&str], knobs: &[(&str, &str)]) -> Runtime {
    let apart: Vec<PathBuf> = apart.iter().map(|name| library(name)).collect();
    let worker = worker().display().to_string();
    runtime_by(here, &apart, &[knobs, &[("host.isolate_worker", worker.as_str())]].concat())
}

/// As [`runtime`], with these files, and the worker that the knobs name.
pub fn runtime_by(here: &[&str], apart: &[PathBuf], knobs: &[(&str, &str)]) -> Runtime {
    let all = knobs.iter().copied();
    let set = all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let options = RuntimeOptions {
        threads: Some(2),
        // The environment says what a sanitiser needs.
        settings: Settings { set, ..Settings::of_process() },
        isolate: apart.to_vec(),
        ..RuntimeOptions::with_plugins(here.iter().map(|name| library(name)))
    };
    let (runtime, report) = Runtime::new(options).expect("the runtime starts");
    report.into_result().expect("every library is a plugin");
    runtime
}

/// The way to fail of tests that are about races: a memory fault, or what the environment says, since a sanitiser has
/// handlers of its own for that.
pub fn fatal() -> String {
    std::env::var("ISOLATE_TESTS_FATAL").unwrap_or_else(|_| "fault".to_owned())
}

/// Another build of a library, as far as its digest says: a byte more behind the end.
pub fn other_build(name: &str, folder: &Path, number: u8) -> PathBuf {
    let mut bytes = fs::read(library(name)).expect("a library can be read");
    bytes.push(number);
    let file = folder.join(format!("lib{name}_{number}.so"));
    fs::write(&file, bytes).expect("the folder can be written");
    file
}

/// The isolated plugin of this name.
pub fn plugin(runtime: &Runtime, name: &str) -> Arc<Isolated> {
    let all = isolated(runtime.plugins());
    all.into_iter().find(|plugin| plugin.name() == name).expect("the plugin is isolated")
}

/// What it does now.
pub fn status(runtime: &Runtime, name: &str) -> IsolationStatus {
    plugin(runtime, name).status()
}

/// A session with one node 'y' of this op over the fed 'x'.
pub fn one_node(runtime: &Runtime, op: &str, how: Option<&str>) -> Session {
    session_as_written(runtime, |b: &mut GraphBuilder<'_>| -> Result<(), GraphError> {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        let node = b.op(op).name("y").input(x);
        match how {
            Some(how) => node.attr("how", how).build()?,
            None => node.build()?,
        };
        Ok(())
    })
}

/// Runs a step: 'y' of these.
pub fn step(session: &Session, x: Tensor) -> Result<Vec<f32>, tenon_runtime::RuntimeError> {
    run(session, &[("x", x)], &["y"]).map(|fetched| values(&fetched[0]))
}

/// A step that goes well, with values that no other has.
pub fn good(session: &Session, number: usize) {
    let x = number as f32;
    assert_eq!(step(session, floats(&[x, -x])).expect("a good step"), [2.0 * x, -2.0 * x]);
}

/// The processes that this one has started and that are not over.
pub fn children() -> BTreeSet<i32> {
    let tasks = fs::read_dir("/proc/self/task").expect("the system tells of threads");
    let mut all = BTreeSet::new();
    for task in tasks.flatten() {
        let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        all.extend(text.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    all
}

/// Waits until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not within half a minute");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process of this number runs.
pub fn runs(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state comes after the name, which is in parentheses: a zombie runs no more.
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}

/// The processes of a group that run.
pub fn group(leader: i32) -> Vec<i32> {
    let processes = fs::read_dir("/proc").expect("the system tells of processes");
    let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|pid| runs(*pid) && group_of(*pid) == Some(leader)).collect()
}

fn group_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name in parentheses: the state, the parent, the group.
    stat.rsplit(')').next()?.split_whitespace().nth(2)?.parse().ok()
}

/// Bytes of pages that the arena of an isolated plugin has, by the plugin's scope.
pub fn arena_bytes(scope: &str) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let descriptors = fs::read_dir("/proc/self/fd").expect("the system tells of descriptors");
    let name = format!("memfd:tenon-{scope} ");
    let is_it = |path: &Path| {
        fs::read_link(path).is_ok_and(|target| target.to_string_lossy().contains(&name))
    };
    let mut paths = descriptors.flatten().map(|entry| entry.path());
    let path = paths.find(|path| is_it(path)).expect("the plugin has an arena");
    fs::metadata(path).expect("it is open").blocks() * 512
}

/// Shared memory of Tenon's that this process has a descriptor of or a mapping.
pub fn shared_memory() -> usize {
    let is_ours = |target: PathBuf| target.to_string_lossy().contains("memfd:tenon");
    let descriptors = fs::read_dir("/proc/self/fd").expect("the system tells of descriptors");
    let open = descriptors.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    let maps = fs::read_to_string("/proc/self/maps").expect("the system tells of mappings");
    open.filter(|target| is_ours(target.clone())).count()
        + maps.lines().filter(|line| line.contains("memfd:tenon")).count()
}
