//! Processes that are killed: what they leave, and who goes on.

use super::model::{fresh, local, plugins, remote, scaffold, scaffold_with, w, w_after};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use tenon_cluster::{Server, ServerOptions};
use tenon_runtime::{
    AnySession, Worker,
    framework::{Code, Tensor},
};
use tenon_tests::{process, session::turn};
use tenon_training::{
    CheckpointSaver, Every, Hook, LoopOptions, ManagerOptions, MonitoredSession, RunContext,
    SaverOptions, StopAtStep, TrainError, latest_checkpoint, read_step,
};

/// Set in a child: the folder that it saves to.
const SAVES: &str = "TENON_TESTS_TRAINING_SAVES";
/// Set in a child: the file with the address that it serves, which it makes if there is none.
const SERVES: &str = "TENON_TESTS_TRAINING_SERVES";
const LONG: Duration = Duration::from_secs(120);

fn options(folder: &Path) -> LoopOptions {
    let manager =
        ManagerOptions { checkpoint_folder: Some(folder.to_owned()), ..ManagerOptions::default() };
    LoopOptions {
        manager,
        pause: Duration::from_millis(50),
        recovery: LONG,
        ..LoopOptions::default()
    }
}

fn start(test: &str, variable: &str, path: &Path) -> Child {
    process::start(&format!("training::killed::{test}"), &[(variable, path.to_owned())])
}

/// Kills a child as `kill -9` does.
fn kill(mut child: Child) {
    child.kill().expect("it runs");
    child.wait().expect("it was killed");
}

fn wait_until(is_met: impl Fn() -> bool, what: &str) {
    let end = Instant::now() + LONG;
    while !is_met() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The child that saves after every step until it is killed.
#[test]
fn saves_until_it_is_killed() {
    train_and_save(|hook| hook);
}

/// As [`saves_until_it_is_killed`], while steps go on.
#[test]
fn saves_in_the_background_until_it_is_killed() {
    train_and_save(CheckpointSaver::in_background);
}

fn train_and_save(how: fn(CheckpointSaver) -> CheckpointSaver) {
    let Some(folder) = env::var_os(SAVES).map(PathBuf::from) else { return };
    let runtime = plugins();
    let options_of_saver =
        SaverOptions { max_to_keep: 2, background: true, ..SaverOptions::default() };
    let scaffold = scaffold_with(&runtime, options_of_saver, |_, _| Ok(()));
    let hook = how(CheckpointSaver::new(&folder, Every::Steps(1)).name("m"));
    let training =
        MonitoredSession::open(local(&runtime), scaffold, vec![Box::new(hook)], options(&folder));
    training.unwrap().train(&["train"]).unwrap();
}

#[test]
fn a_save_that_is_cut_off_leaves_the_last_checkpoint() {
    is_cut_off("saves_until_it_is_killed");
}

#[test]
fn a_save_in_the_background_that_is_cut_off_leaves_the_last_checkpoint() {
    is_cut_off("saves_in_the_background_until_it_is_killed");
}

fn is_cut_off(saving: &str) {
    let _turn = turn();
    let (folder, runtime) = (tempfile::tempdir().unwrap(), plugins());
    let scaffold = scaffold(&runtime);
    let saver = scaffold.saver.clone().expect("it has one");
    let mut last = None;
    for round in 0..6u64 {
        let child = start(saving, SAVES, folder.path());
        let latest = || latest_checkpoint(folder.path()).expect("the state file is whole");
        let before = last.clone();
        wait_until(|| latest().is_some() && latest() != before, "no checkpoint is written");
        // Each round is cut off at another place of a save, which takes some milliseconds.
        thread::sleep(Duration::from_micros(17_300 * round + 1_700));
        kill(child);
        let found = latest().expect("a checkpoint was complete");
        let session = fresh(&*local(&runtime), &scaffold);
        saver.restore(&*session, &found).expect("it is whole");
        let step = read_step(&*session, "global_step/Read/ReadVariableOp").unwrap();
        assert!(found.ends_with(format!("m-{step}")), "{}: {step}", found.display());
        assert_eq!(w(&*session), w_after(step), "round {round}");
        last = Some(found);
    }
}

/// The child that serves until it is killed.
#[test]
fn serves_until_it_is_killed() {
    let Some(file) = env::var_os(SERVES).map(PathBuf::from) else { return };
    let runtime = plugins();
    let listen = fs::read_to_string(&file).ok().map(|text| text.parse().expect("an address"));
    let mut options = ServerOptions::default();
    options.listen = listen.unwrap_or(options.listen);
    let server = Server::start(Worker::new(&runtime), &options).expect("the port is free");
    let written = file.with_extension("new");
    fs::write(&written, server.address().to_string()).unwrap();
    fs::rename(&written, &file).unwrap();
    thread::sleep(LONG);
}

/// Kills the server after a step, and starts another one at its address.
struct Killer {
    file: PathBuf,
    server: Option<Child>,
    at: Vec<i64>,
}

impl Hook for Killer {
    fn after_run(&mut self, run: &mut RunContext<'_>, _: &[Tensor]) -> Result<(), TrainError> {
        let step = read_step(run.session(), "global_step/Read/ReadVariableOp")?;
        if self.at.first() == Some(&step) {
            self.at.remove(0);
            kill(self.server.take().expect("a server runs"));
            self.server = Some(start("serves_until_it_is_killed", SERVES, &self.file));
        }
        Ok(())
    }

    fn end(&mut self, _: &dyn AnySession) -> Result<(), TrainError> {
        assert!(self.at.is_empty());
        Ok(())
    }
}

impl Drop for Killer {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            kill(server);
        }
    }
}

#[test]
fn a_training_goes_on_when_its_server_is_started_anew() {
    let _turn = turn();
    let (folder, runtime) = (tempfile::tempdir().unwrap(), plugins());
    let (file, run) = (folder.path().join("address"), folder.path().join("run"));
    let server = Some(start("serves_until_it_is_killed", SERVES, &file));
    let killer = Killer { file: file.clone(), server, at: vec![5, 8] };
    wait_until(|| file.exists(), "the server does not start");
    let target = remote(format!("grpc://{}", fs::read_to_string(&file).unwrap()));
    let hooks: Vec<Box<dyn Hook>> = vec![
        Box::new(CheckpointSaver::new(&run, Every::Steps(2)).name("m")),
        Box::new(StopAtStep::last(12)),
        Box::new(killer),
    ];
    let training =
        MonitoredSession::open(Arc::clone(&target), scaffold(&runtime), hooks, options(&run))
            .unwrap();
    training.train(&["train"]).unwrap();
    let scaffold = scaffold(&runtime);
    let session = fresh(&*local(&runtime), &scaffold);
    let latest = latest_checkpoint(&run).unwrap().unwrap();
    assert_eq!(latest, run.join("m-12"));
    scaffold.saver.unwrap().restore(&*session, latest).unwrap();
    assert_eq!(w(&*session), w_after(12));
}

/// Sends a signal to a process.
fn signal(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.expect("kill is a command").success());
}

/// Stops a process without ending it. Its threads stop one after the other, once each of them has a processor.
fn suspend(child: &Child) {
    signal(child, "-STOP");
    let threads = format!("/proc/{}/task", child.id());
    let is_stopped = |thread: &fs::DirEntry| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
    };
    let are_stopped =
        || fs::read_dir(&threads).expect("it runs").flatten().all(|it| is_stopped(&it));
    wait_until(are_stopped, "the server does not stop");
}

#[test]
fn a_server_that_does_not_answer_is_found_out() {
    let _turn = turn();
    let (folder, runtime) = (tempfile::tempdir().unwrap(), plugins());
    let file = folder.path().join("address");
    let server = start("serves_until_it_is_killed", SERVES, &file);
    wait_until(|| file.exists(), "the server does not start");
    let target = remote(format!("grpc://{}", fs::read_to_string(&file).unwrap()));
    let deadline = Duration::from_secs(2);
    let options = LoopOptions { step_deadline: Some(deadline), ..options(folder.path()) };
    let hooks: Vec<Box<dyn Hook>> = vec![Box::new(StopAtStep::last(12))];
    let mut training = MonitoredSession::open(target, scaffold(&runtime), hooks, options).unwrap();
    training.run(&[], &[], &["train"]).unwrap();
    suspend(&server);
    let begin = Instant::now();
    let error = training.run(&[], &[], &["train"]).unwrap_err();
    assert_eq!(error.code(), Code::DEADLINE_EXCEEDED, "{error}");
    assert!(begin.elapsed() < LONG / 2);
    let closed = training.close().unwrap_err();
    assert_eq!(closed.code(), Code::DEADLINE_EXCEEDED, "{closed}");
    signal(&server, "-CONT");
    kill(server);
}
