//! Sessions to test: runtimes over the plugins that cargo built beside the test, small graphs, and accounts
//! of what a process holds, which must balance after every fault.

use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    sync::{Mutex, MutexGuard, Once, PoisonError},
    time::{Duration, Instant},
};
use tenon_graph::{Graph, GraphBuilder, GraphError};
use tenon_runtime::{
    Metadata, RunOptions, Runtime, RuntimeError, RuntimeOptions, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor},
    host::{Settings, memory::HostMemory},
};

/// The libraries of all plugins of this tree that are for users.
pub const PLUGINS: [&str; 11] = [
    "tenon_checkpoint",
    "tenon_cpu",
    "tenon_cuda",
    "tenon_data",
    "tenon_fft",
    "tenon_image",
    "tenon_int8",
    "tenon_linalg",
    "tenon_text",
    "tenon_train",
    "tenon_accel",
];

/// The library of this name (`tenon_cpu`, `zoo_rust`) beside the running test, as cargo built it.
///
/// # Panics
/// It is not there.
pub fn library(name: &str) -> PathBuf {
    let exe = std::env::current_exe().expect("a test knows its executable");
    let folder = exe.parent().expect("an executable lies in a folder");
    let file = folder.join(format!("lib{name}.so"));
    assert!(file.is_file(), "{} is not there: `cargo test` builds it", file.display());
    file
}

/// A runtime of two threads over these libraries, with knobs set.
///
/// # Panics
/// A library is refused, or a knob is wrong.
pub fn runtime(libraries: &[&str], knobs: &[(&str, &str)]) -> Runtime {
    runtime_of(2, libraries, knobs)
}

/// As [`runtime`], of this many threads.
///
/// # Panics
/// As [`runtime`].
pub fn runtime_of(threads: usize, libraries: &[&str], knobs: &[(&str, &str)]) -> Runtime {
    runtime_over(threads, libraries.iter().map(|name| library(name)), knobs)
}

/// As [`runtime_of`], over these files.
///
/// # Panics
/// As [`runtime`].
pub fn runtime_over(
    threads: usize,
    files: impl IntoIterator<Item = PathBuf>,
    knobs: &[(&str, &str)],
) -> Runtime {
    let set = knobs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let options = RuntimeOptions {
        threads: Some(threads),
        settings: Settings { set, ..Settings::default() },
        ..RuntimeOptions::with_plugins(files)
    };
    let (runtime, report) = Runtime::new(options).expect("the runtime starts");
    report.into_result().expect("every library is a plugin");
    runtime
}

/// A graph that `make` builds with the ops of a runtime.
///
/// # Panics
/// The graph is wrong.
pub fn graph(
    runtime: &Runtime,
    make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>,
) -> Graph {
    let registry = runtime.registry();
    let mut builder = GraphBuilder::new(&registry);
    make(&mut builder).expect("the test's graph is right");
    builder.finish()
}

/// A session over a graph that `make` builds.
///
/// # Panics
/// The graph is wrong.
pub fn session_with(
    runtime: &Runtime,
    options: SessionOptions,
    make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>,
) -> Session {
    let session = Session::new(runtime, options).expect("the options are right");
    let def = graph(runtime, make).to_graph_def().expect("a built graph can be written");
    session.extend(&def).expect("a built graph can be read");
    session
}

/// As [`session_with`], with options by default.
pub fn session(
    runtime: &Runtime,
    make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>,
) -> Session {
    session_with(runtime, SessionOptions::default(), make)
}

/// As [`session`], and the graph runs as it is written: for tests of the nodes themselves.
pub fn session_as_written(
    runtime: &Runtime,
    make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>,
) -> Session {
    session_with(runtime, SessionOptions::as_written(), make)
}

/// A vector of floats.
pub fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len() as i64], values).expect("a vector is a shape")
}

/// The elements of a tensor of floats in host memory.
///
/// # Panics
/// It is another.
pub fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.as_slice::<f32>().expect("a tensor of floats in host memory").to_vec()
}

/// Runs a step without options.
///
/// # Errors
/// As [`Session::run`].
pub fn run(
    session: &Session,
    feeds: &[(&str, Tensor)],
    fetches: &[&str],
) -> Result<Vec<Tensor>, RuntimeError> {
    run_with(session, feeds, fetches, &RunOptions::default()).map(|(fetched, _)| fetched)
}

/// Runs a step.
///
/// # Errors
/// As [`Session::run`].
pub fn run_with(
    session: &Session,
    feeds: &[(&str, Tensor)],
    fetches: &[&str],
    options: &RunOptions,
) -> Result<(Vec<Tensor>, Metadata), RuntimeError> {
    session.run(feeds, fetches, &[], options)
}

/// Adds what [`good_step`] runs: `good_y = good_x + good_x`.
///
/// # Errors
/// `Add` is not registered.
pub fn good_nodes(b: &mut GraphBuilder<'_>) -> Result<(), GraphError> {
    let x = b.placeholder("good_x", DType::FLOAT, PartialShape::UNKNOWN)?;
    b.op("Add").name("good_y").input(x).input(x).build()?;
    Ok(())
}

/// Runs a step that must go well.
///
/// # Panics
/// It does not.
pub fn good_step(session: &Session) {
    let fetched = run(session, &[("good_x", floats(&[1.0, 2.5]))], &["good_y"]);
    assert_eq!(values(&fetched.expect("the session stays usable")[0]), [2.0, 5.0]);
}

/// Runs `bad` ten times in a session with the nodes of `make`, a good step before, between and after. What
/// the process holds stays the same from the first time to the last, and is as before at the end.
///
/// # Panics
/// It is not so.
pub fn survives(
    libraries: &[&str],
    knobs: &[(&str, &str)],
    make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>,
    bad: impl Fn(&Session),
) {
    let _turn = turn();
    let before = Account::now();
    {
        let runtime = runtime(libraries, knobs);
        let session = session(&runtime, |b| {
            good_nodes(b)?;
            make(b)
        });
        good_step(&session);
        bad(&session);
        good_step(&session);
        let between = Account { pools_live: true, ..Account::now() };
        for _ in 0..9 {
            bad(&session);
            good_step(&session);
        }
        between.check("after ten bad steps");
    }
    before.check("after the runtime is gone");
}

static TURN: Mutex<()> = Mutex::new(());
/// Threads of the test harness: they come and go as it likes.
static HARNESS: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The turn of one test: accounts are of the whole process.
pub struct Turn {
    _guard: MutexGuard<'static, ()>,
}

/// What tests load, loaded once before any account is taken.
const WARM_LIBRARIES: [&str; 8] = [
    "tenon_cpu",
    "tenon_image",
    "tenon_int8",
    "tenon_linalg",
    "tenon_text",
    "tenon_accel",
    "zoo_rust",
    "zoo_faulty",
];

/// Waits until no other test of this process runs.
pub fn turn() -> Turn {
    static WARM: Once = Once::new();
    locked(&HARNESS).insert(thread_number());
    let guard = locked(&TURN);
    // What a process takes once and keeps: mapped libraries with their descriptors, the clock.
    WARM.call_once(|| {
        let runtime = runtime(&WARM_LIBRARIES, &[]);
        good_step(&session(&runtime, good_nodes));
    });
    Turn { _guard: guard }
}

fn thread_number() -> u64 {
    let link = fs::read_link("/proc/thread-self").expect("the system tells of its threads");
    let name = link.file_name().map(|name| name.to_string_lossy().into_owned());
    name.and_then(|name| name.parse().ok()).expect("threads have numbers")
}

/// What the process holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    live_bytes: u64,
    live_buffers: u64,
    threads: BTreeSet<u64>,
    descriptors: BTreeSet<String>,
    /// A pool keeps idle threads for blocking kernels for a while, and ends them with itself.
    pools_live: bool,
}

impl Account {
    /// As it is now.
    pub fn now() -> Account {
        let stats = HostMemory::shared().stats();
        Account {
            live_bytes: stats.live_bytes,
            live_buffers: stats.live_count,
            threads: threads(),
            descriptors: descriptors(),
            pools_live: false,
        }
    }

    /// Compares with what the process holds now. A thread that has just ended may take a moment to go.
    ///
    /// # Panics
    /// There is more, even after a while.
    pub fn check(&self, when: &str) {
        let end = Instant::now() + Duration::from_secs(5);
        loop {
            let now = Account::now();
            let Some(excess) = self.excess(&now) else { return };
            assert!(Instant::now() < end, "{when}: {excess}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn excess(&self, now: &Account) -> Option<String> {
        if (now.live_bytes, now.live_buffers) != (self.live_bytes, self.live_buffers) {
            return Some(format!(
                "host memory: expected {} bytes in {} buffers, found {} in {}",
                self.live_bytes, self.live_buffers, now.live_bytes, now.live_buffers
            ));
        }
        let harness = locked(&HARNESS);
        let more =
            now.threads.difference(&self.threads).filter(|&thread| !harness.contains(thread));
        let more: Vec<String> = more
            .map(|&thread| thread_name(thread))
            .filter(|name| !(self.pools_live && name.ends_with("(tenon-blocking)")))
            .collect();
        if !more.is_empty() {
            return Some(format!("threads that were not there before: {}", more.join(", ")));
        }
        let more: Vec<_> = now.descriptors.difference(&self.descriptors).collect();
        (!more.is_empty()).then(|| format!("descriptors that were not open before: {more:?}"))
    }
}

fn entries(folder: &str) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).expect("the system tells what a process holds");
    let named = entries
        .flatten()
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
    named.collect()
}

fn threads() -> BTreeSet<u64> {
    entries("/proc/self/task").iter().filter_map(|(name, _)| name.parse().ok()).collect()
}

fn thread_name(thread: u64) -> String {
    let name = fs::read_to_string(format!("/proc/self/task/{thread}/comm")).unwrap_or_default();
    format!("{thread} ({})", name.trim())
}

/// Open descriptors; the one that lists them is gone when its link is read.
fn descriptors() -> BTreeSet<String> {
    let target = |(name, path): &(String, PathBuf)| {
        Some(format!("{name} -> {}", fs::read_link(path).ok()?.display()))
    };
    entries("/proc/self/fd").iter().filter_map(target).collect()
}
