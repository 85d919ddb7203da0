//! `tenon dev`: a plugin that is worked on, in a running session.
//!
//! ```text
//! changed ── built ── checked ── timed ── rehearsed ── put in the old one's place ── waiting
//!               │         │        │          │                  │
//!               └─────────┴────────┴──────────┴──────────────────┴── the old one goes on running
//! ```
//!
//! Each build is copied before it is looked at, so that the next one may write over it.
//!
//! # Invariants
//! - Nothing of a new build runs in this process before every kernel of it came back from a call in a process apart, what
//!   failed before was looked at in full, and the session's own steps were run in a process apart.
//! - A process that dies is a failure.
//! - What is called right was looked at in full.

mod apart;
mod args;
mod build;
mod diff;
mod error;
mod judge;
mod known;
mod measure;
mod rehearse;
mod report;
mod session;
mod watch;

use crate::{
    args::Global,
    check::{REPRODUCERS, exceptions, worker as check_worker},
    error::CliError,
    list::shown_path,
    output::complain,
};
pub use args::{ABOUT, DevArgs, EXAMPLE};
use build::{Built, Recipe};
use diff::{Difference, Registrations, Verdicts, registrations, turned};
pub use error::DevError;
use judge::{Judge, Judged, Wish};
use known::Known;
pub use measure::worker as measure_worker;
use measure::{Died, Measured, Task, measure};
pub use rehearse::worker as rehearse_worker;
use rehearse::{Rehearsed, rehearse};
use report::{Event, Why, tell};
use session::Live;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tenon_runtime::host::{loader, manifest::Manifest};
use watch::{Tree, Watch};

/// Builds, and then builds again whenever the source changes, until it is asked to stop.
///
/// # Errors
/// No build command is known; a file or a process that is needed is missing. What is wrong with the plugin is
/// reported, and with `--once` in the exit code.
pub fn dev(global: &Global, args: &DevArgs) -> Result<ExitCode, CliError> {
    let stop = interrupts().map_err(DevError::Signals)?;
    let mut dev = Dev::new(global, args, Arc::clone(&stop))?;
    let roots = [dev.recipe.folder.clone()].into_iter();
    let more = args.watched.iter().filter_map(|folder| fs::canonicalize(folder).ok());
    let mut watch = Watch::new(roots.chain(more).collect(), args.poll);
    let mut tree = watch.look(None, &Tree::default());
    let mut changed = Vec::new();
    loop {
        let outcome = dev.round(&changed)?;
        if outcome == Outcome::Stopped {
            break;
        }
        if args.once {
            let right = outcome == Outcome::Right;
            return Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        dev.tell(&Event::Waiting)?;
        // Against the look before the build: what changed meanwhile is built now.
        let Some(next) = watch.wait(dev.artifact.as_deref(), &tree, &stop) else { break };
        (tree, changed) = next;
    }
    let (steps, _) = dev.live.steps();
    dev.tell(&Event::Stopped { steps })?;
    Ok(ExitCode::SUCCESS)
}

/// Set when somebody wants this program to end.
fn interrupts() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// The result of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The build is in use.
    Right,
    /// The old one goes on running.
    Kept,
    /// It was asked to stop.
    Stopped,
}

/// A build, apart from where the next one will be written.
struct Copy {
    path: PathBuf,
    digest: String,
    manifest: Manifest,
}

/// What goes from round to round.
struct Dev {
    global: Global,
    args: DevArgs,
    json: bool,
    set: Vec<(String, String)>,
    recipe: Recipe,
    stop: Arc<AtomicBool>,
    live: Live,
    scratch: TempDir,
    rounds: usize,
    /// Where builds are found.
    artifact: Option<PathBuf>,
    digest: String,
    registered: Registrations,
    /// The outcome of each clause when it was looked at last.
    verdicts: Verdicts,
    /// Ops that the last check, and the last bench, did not reach.
    unchecked: Vec<String>,
    /// Kernels that were looked at in full while others were not.
    looked: BTreeSet<String>,
    unmeasured: Vec<String>,
    /// What failed when it was looked at last, in this run or one before.
    known: Known,
}

impl Dev {
    fn new(global: &Global, args: &DevArgs, stop: Arc<AtomicBool>) -> Result<Dev, CliError> {
        let recipe = Recipe::of(args)?;
        Ok(Dev {
            global: global.clone(),
            args: args.clone(),
            json: global.json,
            set: global.settings()?,
            known: Known::of(&recipe.folder),
            recipe,
            stop,
            live: Live::new(global, args)?,
            scratch: tempfile::tempdir().map_err(DevError::Scratch)?,
            rounds: 0,
            artifact: None,
            digest: String::new(),
            registered: Registrations::new(),
            verdicts: Verdicts::new(),
            unchecked: Vec::new(),
            looked: BTreeSet::new(),
            unmeasured: Vec::new(),
        })
    }

    fn tell(&self, event: &Event<'_>) -> Result<(), CliError> {
        tell(self.json, event)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Builds, and takes the build into use where it is right.
    fn round(&mut self, changed: &[PathBuf]) -> Result<Outcome, CliError> {
        self.rounds += 1;
        let (round, command) = (self.rounds, self.recipe.command());
        self.tell(&Event::Building { round, command: &command, changed })?;
        let began = Instant::now();
        let file = match self.recipe.build(&self.stop) {
            Built::Stopped => return Ok(Outcome::Stopped),
            Built::Made(file) => file,
            Built::Failed(output) => {
                let after = began.elapsed();
                self.tell(&Event::BuildFailed { round, after, output: &output })?;
                return self.kept(Why::Build, &output, Instant::now());
            }
        };
        let built = Instant::now();
        let copy = match self.copy(&file) {
            Ok(copy) => copy,
            Err(error) => return self.kept(Why::Load, &error.to_string(), built),
        };
        self.artifact = Some(file);
        if self.live.current().is_some() && copy.digest == self.digest {
            self.kept(Why::Same, "the build is the one that runs", built)?;
            return Ok(Outcome::Right);
        }
        self.look(&copy, changed, built)
    }

    /// Checks, times and rehearses a build, and puts it in the old one's place.
    fn look(
        &mut self,
        copy: &Copy,
        changed: &[PathBuf],
        built: Instant,
    ) -> Result<Outcome, CliError> {
        let difference = Difference::between(&self.registered, &registrations(&copy.manifest));
        if let Some((why, reason)) = self.fault(copy, changed, &difference)? {
            return self.kept(why, &reason, built);
        }
        if self.stopped() {
            return Ok(Outcome::Stopped);
        }
        self.take(copy, &difference, built)
    }

    /// Why a build is not to run in this process; `None` also where it was asked to stop. No code of it has run so far.
    fn fault(
        &mut self,
        copy: &Copy,
        changed: &[PathBuf],
        difference: &Difference,
    ) -> Result<Option<(Why, String)>, CliError> {
        let round = self.rounds;
        let judged = match self.check(copy, changed, difference) {
            Ok(judged) => judged,
            Err(error) => return Ok(Some((Why::Check, error.to_string()))),
        };
        if self.stopped() {
            return Ok(None);
        }
        let turned = turned(&self.verdicts, &judged.verdicts);
        self.tell(&Event::Checked { round, judged: &judged, turned: &turned })?;
        self.unchecked.clone_from(&judged.left);
        self.known.set(judged.still_failing(self.known.names()));
        if let Some(first) = judged.broken.first() {
            let reason = format!("{}: {}: {}", first.kernel, first.clause, first.message);
            self.verdicts.extend(judged.verdicts);
            return Ok(Some((Why::Check, reason)));
        }
        let measured = self.measure(copy, difference)?;
        if self.stopped() {
            return Ok(None);
        }
        self.unmeasured.clone_from(&measured.left);
        self.tell(&Event::Measured { round, measured: &measured })?;
        if let Some(Died { kernel, message }) = measured.died {
            let in_hand =
                kernel.iter().flat_map(|kernel| judged.kernels(&kernel.op, &kernel.label));
            self.known.add(in_hand);
            return Ok(Some((Why::Bench, message)));
        }
        self.verdicts.extend(judged.verdicts);
        Ok(match self.rehearse(copy, difference)? {
            Rehearsed::Well | Rehearsed::Stopped => None,
            Rehearsed::Refused(error) => Some((Why::Load, error)),
            Rehearsed::Died(how) => Some((
                Why::Session,
                format!("{how}, as the session's steps were tried in a process apart"),
            )),
        })
    }

    /// Puts a build in the old one's place.
    fn take(
        &mut self,
        copy: &Copy,
        difference: &Difference,
        built: Instant,
    ) -> Result<Outcome, CliError> {
        let (round, now) = (self.rounds, registrations(&copy.manifest));
        let first = self.live.current().is_none();
        if let Err(error) = self.live.take(&copy.path, &copy.manifest, difference.is_empty()) {
            return self.kept(Why::Load, &error.to_string(), built);
        }
        self.registered = now;
        self.digest.clone_from(&copy.digest);
        let (plugin, nodes) = (&copy.manifest.plugin, self.live.nodes());
        let plugin = format!("{} {}", plugin.name, plugin.version);
        let (after, digest, steps) = (built.elapsed(), &*copy.digest, self.steps()?);
        let event =
            Event::Replaced { round, plugin, digest, first, difference, nodes, after, steps };
        self.tell(&event)?;
        self.forget_others(&copy.path);
        Ok(Outcome::Right)
    }

    /// Steps so far; a step that failed is reported.
    fn steps(&self) -> Result<session::Steps, CliError> {
        let (steps, error) = self.live.steps();
        if let Some(error) = &error {
            self.tell(&Event::StepFailed { error })?;
        }
        Ok(steps)
    }

    fn kept(&self, why: Why, reason: &str, built: Instant) -> Result<Outcome, CliError> {
        let (round, running) = (self.rounds, self.live.current().is_some());
        let (after, steps) = (built.elapsed(), self.steps()?);
        self.tell(&Event::Kept { round, why, reason, running, after, steps })?;
        Ok(Outcome::Kept)
    }

    /// Copies a build, under its own name, and reads its manifest.
    fn copy(&self, file: &Path) -> Result<Copy, CliError> {
        let folder = self.scratch.path().join(self.rounds.to_string());
        let path = folder.join(file.file_name().unwrap_or("plugin".as_ref()));
        let failed = |source| CliError::File { file: path.clone(), done: "written", source };
        fs::create_dir_all(&folder).map_err(failed)?;
        fs::copy(file, &path).map_err(failed)?;
        let (file, image) = loader::examine(&path)?;
        Ok(Copy { digest: file.digest()?, manifest: image.manifest, path: file.path })
    }

    /// Removes the copies of builds that are no longer in use: what is open stays open.
    fn forget_others(&self, kept: &Path) {
        let folders =
            fs::read_dir(self.scratch.path()).into_iter().flatten().filter_map(Result::ok);
        for folder in folders.filter(|folder| Some(&*folder.path()) != kept.parent()) {
            // What cannot be removed goes with the folder of all.
            let _ = fs::remove_dir_all(folder.path());
        }
    }

    /// The ops of a build in the order in which they are looked at: those that were asked for, those that are
    /// registered otherwise, those that were not reached last time, and the rest.
    fn ops(&self, manifest: &Manifest, difference: &Difference, left: &[String]) -> Vec<String> {
        let known: BTreeSet<&String> = manifest
            .ops
            .iter()
            .map(|op| &op.name)
            .chain(manifest.kernels.iter().map(|kernel| &kernel.op))
            .collect();
        for name in self.args.ops.iter().filter(|name| !known.contains(name)) {
            complain(&format!("warning: --op {name}: the plugin has no such op"));
        }
        let changed = difference.ops();
        let all = self.args.ops.iter().chain(&changed).chain(left).chain(known.iter().copied());
        let mut seen = BTreeSet::new();
        all.filter(|name| known.contains(name) && seen.insert(*name)).cloned().collect()
    }

    fn check(
        &mut self,
        copy: &Copy,
        changed: &[PathBuf],
        difference: &Difference,
    ) -> Result<Judged, CliError> {
        let mut name = copy.path.file_stem().unwrap_or_default().to_owned();
        name.push(".exceptions.toml");
        let beside = self.artifact.iter().map(|file| file.with_file_name(&name));
        let usual = beside.chain([self.recipe.folder.join(&name)]).collect();
        let judge = Judge {
            worker: check_worker()?,
            set: self.set.clone(),
            others: self.live.others(&copy.manifest),
            exceptions: exceptions(self.args.exceptions.as_ref(), usual)?,
            goldens: self.args.goldens.clone(),
            reproducers: shown_path(&self.recipe.folder.join(REPRODUCERS)).into(),
            artifact: self.artifact.clone(),
            limit: Duration::from_secs_f64(self.args.timeout),
            time: Duration::from_secs_f64(self.args.check_time),
        };
        // Devices are looked at as a whole.
        let ops = match copy.manifest.devices.is_empty() {
            true => self.ops(&copy.manifest, difference, &self.unchecked),
            false => Vec::new(),
        };
        let (failed, changed) = (self.known.names().clone(), changed.to_vec());
        let wish = Wish { ops, failed, changed };
        judge.check(&copy.path, &wish, &mut self.looked, &self.stop)
    }

    fn rehearse(&self, copy: &Copy, difference: &Difference) -> Result<Rehearsed, CliError> {
        let task = rehearse::Task {
            global: self.global.clone(),
            args: self.args.clone(),
            old: self.live.current().cloned(),
            new: copy.path.clone(),
            same: difference.is_empty(),
        };
        rehearse(&task, &self.stop)
    }

    fn measure(&self, copy: &Copy, difference: &Difference) -> Result<Measured, CliError> {
        let kernels = &copy.manifest.kernels;
        let labels = |op: String| {
            let own = kernels.iter().filter(|kernel| kernel.op == op && !kernel.on_request);
            let labels: BTreeSet<String> = own.map(|kernel| kernel.label.clone()).collect();
            (!labels.is_empty()).then(|| (op, labels.into_iter().collect()))
        };
        let ops = self.ops(&copy.manifest, difference, &self.unmeasured);
        let task = Task {
            new: copy.path.clone(),
            old: self.live.current().cloned(),
            others: self.live.others(&copy.manifest),
            set: self.set.clone(),
            ops: ops.into_iter().filter_map(labels).collect(),
            seconds: self.args.bench_time,
            limit: self.args.timeout,
        };
        if task.ops.is_empty() {
            return Ok(Measured::default());
        }
        measure(&task, &self.stop)
    }
}
