//! Runs a check: starts workers, gives them the units, and makes the report.
//!
//! The driver opens nothing of the plugin. It reads the manifest, which runs no code, and has workers do the
//! rest: a worker that crashes or hangs is a finding, and the next one goes on behind it.
//!
//! # Invariants
//! - When [`check`] returns, no worker is left.
//! - Every unit of the plugin is in the report, also when it could not be looked at: then as a failure.

mod again;
mod blame;
mod child;
mod follow;
mod lane;
mod ledger;
mod run;
mod stopwatch;
mod turns;

pub use again::{Again, again};
pub use child::{Worker, words as ended};
pub use turns::Turns;

use super::{
    Clause, Finding,
    exceptions::CheckExceptions,
    protocol::{Message, Setup, Unit, UnitKind},
    report::{PluginFacts, Report},
};
use crate::error::TestkitError;
use child::Child;
use follow::{Outcome, follow};
use lane::Lane;
use ledger::Close;
use run::Run;
use std::{
    env,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tenon_runtime::host::loader;

/// How long all failures of a check are made smaller.
const SHRINK_ALL: Duration = Duration::from_secs(120);

/// How a check is run.
#[derive(Debug, Clone)]
pub struct Options {
    /// How workers are started.
    pub worker: Worker,
    /// The order that they get.
    pub setup: Setup,
    /// How many work at a time.
    pub jobs: usize,
    /// How long a step of a worker may take.
    pub limit: Duration,
    /// What is known to be unsupported or broken.
    pub exceptions: CheckExceptions,
    /// The file that says so, for the report.
    pub exceptions_file: Option<PathBuf>,
    /// What becomes of failures; without it, they are not made smaller.
    pub reproducers: Option<Reproducers>,
    /// Folder for inputs, expectations and results of failing cases, as arrays.
    pub arrays: Option<PathBuf>,
    /// When time is up. No unit is begun then but the first, nor one that would, if it took as long as the one
    /// before, be less than half done by then. Those that are left have no clauses in the report.
    pub until: Option<Instant>,
    /// The order of examination, and when it ends.
    pub turns: Turns,
    /// Whether what no case of was run is a failure.
    pub strict: bool,
}

/// How failures are made smaller, and where they are written.
#[derive(Debug, Clone)]
pub struct Reproducers {
    /// The folder for them.
    pub folder: PathBuf,
    /// The plugin's file as they name it, where what is checked is a copy of it that does not last.
    pub plugin: Option<PathBuf>,
    /// How long all failures together are made smaller.
    pub time: Duration,
}

impl Reproducers {
    /// In a folder, with the usual time.
    pub fn in_folder(folder: PathBuf) -> Reproducers {
        Reproducers { folder, plugin: None, time: SHRINK_ALL }
    }
}

impl Options {
    /// Whether time is up.
    fn is_late(&self) -> bool {
        self.is_late_for(Duration::ZERO)
    }

    /// Whether there is no time for something that takes this long.
    fn is_late_for(&self, time: Duration) -> bool {
        self.until.is_some_and(|until| Instant::now() + time / 2 >= until)
    }
}

/// How far a check is.
#[derive(Debug, Clone, Copy)]
pub struct Status<'a> {
    /// Units that are done.
    pub done: usize,
    /// All units.
    pub total: usize,
    /// One that is being looked at, or was just now.
    pub unit: &'a str,
}

/// Checks a plugin.
///
/// # Errors
/// The file is not a plugin, no worker can be started, or there is nothing to check. Everything else that can be
/// wrong with a plugin is in the report.
pub fn check(
    options: &Options,
    watch: &(dyn Fn(Status<'_>) + Sync),
) -> Result<Report, TestkitError> {
    let begin = Instant::now();
    let plugin = facts(&options.setup.plugin)?;
    let mut setup = options.setup.clone();
    setup.plugin.clone_from(&plugin.file);
    setup.unsupported.clone_from(&options.exceptions.unsupported);
    let scratch = scratch(&options.worker, &mut setup)?;
    let (child, ready) = start_first(&options.worker, &setup)?;
    let (units, notes, failed) = match ready {
        Ok((units, notes)) => (units, notes, None),
        Err(error) => (vec![whole(&plugin)], Vec::new(), Some(error)),
    };
    if units.is_empty() {
        let detail = nothing(&setup);
        return Err(TestkitError::Nothing { plugin: plugin.file, detail });
    }
    let run = Run::new(options, (setup, plugin.digest.clone()), units, watch);
    match failed {
        Some(error) => run.refused(error),
        None => work(&run, child, options.jobs),
    }
    let is_whole = run.setup.ops.is_empty() && run.setup.devices.is_empty();
    let sampling = run.setup.sampling;
    drop(scratch);
    let (units, problems, more) =
        run.into_ledger().close(Close { is_whole, full: sampling.full, strict: options.strict });
    Ok(Report {
        plugin,
        sampling,
        units,
        problems,
        notes: notes.into_iter().chain(more).collect(),
        exceptions: options.exceptions_file.clone(),
        reproducers: options.reproducers.as_ref().map(|reproducers| reproducers.folder.clone()),
        time: begin.elapsed(),
    })
}

/// A folder in which workers work and have their files, which is gone when it is dropped. What they are told of
/// other files holds from there too.
fn scratch(worker: &Worker, setup: &mut Setup) -> Result<TempDir, TestkitError> {
    for path in setup.others.iter_mut().chain(&mut setup.goldens).chain([&mut setup.plugin]) {
        *path = absolute(path);
    }
    let folder = tempfile::tempdir().map_err(|error| TestkitError::Worker {
        program: worker.program.clone(),
        detail: format!("it is to have a folder in {}: {error}", env::temp_dir().display()),
    })?;
    setup.scratch = folder.path().to_owned();
    Ok(folder)
}

/// A path that holds in a worker's folder too.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Runs all units, in this many lanes. The first one has a worker already.
fn work(run: &Run<'_>, first: Option<Child>, jobs: usize) {
    let lanes = jobs.clamp(1, run.units.len());
    std::thread::scope(|scope| {
        let mut first = first;
        for _ in 0..lanes {
            let child = first.take();
            scope.spawn(move || Lane::new(run, child).work());
        }
    });
    Lane::new(run, None).whole_plugins();
}

/// What the plugin's file says of itself.
fn facts(file: &Path) -> Result<PluginFacts, TestkitError> {
    let (file, image) = loader::examine(file)?;
    let plugin = &image.manifest.plugin;
    Ok(PluginFacts {
        name: plugin.name.clone(),
        version: plugin.version.clone(),
        digest: file.digest()?,
        file: file.path,
    })
}

/// The plugin as a whole.
fn whole(plugin: &PluginFacts) -> Unit {
    Unit {
        kind: UnitKind::Plugin,
        name: format!("plugin {}", plugin.name),
        op: String::new(),
        device: String::new(),
        label: String::new(),
        source: String::new(),
    }
}

fn nothing(setup: &Setup) -> String {
    let asked = |what: &str, names: &[String]| match names {
        [] => String::new(),
        names => format!(" of {what} {}", names.join(", ")),
    };
    let ops = asked("op", &setup.ops);
    format!(
        "it registers no kernel and no device type{ops}{}",
        asked("device type", &setup.devices)
    )
}

/// Units and notes of a worker that is ready, or why the plugin is not loaded.
type Ready = Result<(Vec<Unit>, Vec<String>), LoadFailure>;

/// Why a plugin is not loaded.
#[derive(Debug)]
struct LoadFailure {
    message: String,
    said: String,
}

/// Starts the worker that says what there is to check.
fn start_first(worker: &Worker, setup: &Setup) -> Result<(Option<Child>, Ready), TestkitError> {
    let child = Child::start(worker, setup)?;
    let mut ready = None;
    let (child, outcome) = follow(child, Duration::ZERO, &mut |_, message| match message {
        Message::Ready { units, notes } => ready = Some(Ok((units, notes))),
        Message::Refused { error } => {
            ready = Some(Err(LoadFailure { message: error, said: String::new() }));
        }
        _ => {}
    });
    let failed = match (ready, outcome) {
        (Some(ready), Outcome::Done) => return Ok((child, ready)),
        (_, Outcome::Gone(gone)) => {
            let message = format!("{}, while it was loaded", gone.how);
            LoadFailure { message, said: gone.said }
        }
        (_, Outcome::Broken(error) | Outcome::Unfit(error)) => {
            return Err(TestkitError::Worker { program: worker.program.clone(), detail: error });
        }
        (None, Outcome::Done) => {
            let detail = "it did not say what there is to check".to_owned();
            return Err(TestkitError::Worker { program: worker.program.clone(), detail });
        }
    };
    Ok((None, Err(failed)))
}

/// Starts a further worker; what there is to check is known.
fn start(worker: &Worker, setup: &Setup) -> Result<(Child, Vec<Unit>), TestkitError> {
    let broken = |detail: String| TestkitError::Worker { program: worker.program.clone(), detail };
    match start_first(worker, setup)? {
        (Some(child), Ok((units, _))) => Ok((child, units)),
        (_, Err(failure)) => Err(broken(failure.message)),
        (None, Ok(_)) => Err(broken("it is gone".to_owned())),
    }
}

impl Run<'_> {
    /// Notes that the plugin is not loaded.
    fn refused(&self, failure: LoadFailure) {
        let finding = Finding::failed(Clause::Load, failure.message);
        let mut ledger = self.ledger.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        ledger.add(0, "", finding, &failure.said);
        ledger.notes.push("nothing of the plugin was checked, since it is not loaded".to_owned());
    }

    fn into_ledger(self) -> ledger::Ledger {
        self.ledger.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
