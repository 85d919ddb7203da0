//! `tenon cluster up`: a cluster on this machine, for as long as the command runs.
//!
//! Each task is a `tenon serve` in a process of its own. The command reads the first line of each, starts and ends the
//! processes, and passes no tensors. Should it be killed, the tasks see the end of their standard input, and stop.

mod tasks;

use crate::{
    args::Global,
    error::CliError,
    output::{complain, print},
};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, TcpListener},
    num::NonZeroU32,
    sync::mpsc::{self, Receiver, Sender},
    thread,
    time::{Duration, Instant},
};
use tasks::{Event, Task};

pub const ABOUT: &str = "\
Start a cluster on this machine

Each task is a `tenon serve` in a process of its own, on a free port of the loopback address. When all are ready, the
command prints the cluster as JSON, for `--cluster`, with the addresses of their figures, for `tenon top --cluster`. On
SIGINT (Ctrl-C) and SIGTERM it stops all tasks. A task that ends is not started again without --restart.";

pub const EXAMPLE: &str = "\
Example:
  tenon cluster up 2 --ps 1 -- --cpus 2";

/// The shortest and the longest pause before a task is started again.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long tasks may take to stop beyond their own time for steps in flight.
const PATIENCE: Duration = Duration::from_secs(15);

#[derive(Debug, Args)]
pub struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Start the tasks, and stop them when this command is told to stop
    #[command(after_long_help = EXAMPLE)]
    Up(UpArgs),
}

#[derive(Debug, Args)]
struct UpArgs {
    /// How many tasks job worker has
    #[arg(value_name = "N")]
    workers: NonZeroU32,
    /// How many tasks job ps has
    #[arg(long, value_name = "M", default_value = "0")]
    ps: u32,
    /// Start a task again when it ends, after a pause that grows from a second to half a minute
    #[arg(long)]
    restart: bool,
    /// Options of `tenon serve` for all tasks
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

/// Starts a cluster.
///
/// # Errors
/// A task does not start; all tasks have ended.
pub fn cluster(global: &Global, args: &ClusterArgs) -> Result<(), CliError> {
    let ClusterCommand::Up(args) = &args.command;
    // Before the first task starts: a signal that comes meanwhile ends all of them.
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(CliError::Signals)?;
    let (events, happened) = mpsc::channel();
    let told = events.clone();
    thread::spawn(move || {
        for signal in signals.forever() {
            let _ = told.send(Event::Signal(signal));
        }
    });
    let mut up = Up::new(global, args, events)?;
    let ended = up.start_all().and_then(|()| up.attend(&happened));
    up.stop_all(&happened);
    ended
}

struct Up {
    tasks: Vec<Task>,
    events: Sender<Event>,
    restart: bool,
    spec: Value,
    is_shown: bool,
}

/// Free ports of the loopback address. They are held while all are looked for, so that none comes twice.
fn free_ports(count: usize) -> Result<Vec<u16>, CliError> {
    let failed =
        |source| CliError::File { file: "127.0.0.1:0".into(), done: "listened at", source };
    let held = (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let held: Vec<TcpListener> = held.collect::<Result<_, _>>().map_err(failed)?;
    held.iter().map(|held| Ok(held.local_addr().map_err(failed)?.port())).collect()
}

impl Up {
    fn new(global: &Global, args: &UpArgs, events: Sender<Event>) -> Result<Up, CliError> {
        let places: Vec<(&str, u32)> = (0..args.ps)
            .map(|task| ("ps", task))
            .chain((0..args.workers.get()).map(|task| ("worker", task)))
            .collect();
        let ports = free_ports(2 * places.len())?;
        let (serving, telling) = ports.split_at(places.len());
        let (mut cluster, mut monitor) = (BTreeMap::new(), BTreeMap::new());
        for ((job, _), (port, figures)) in places.iter().zip(serving.iter().zip(telling)) {
            let address = |port: &u16| format!("127.0.0.1:{port}");
            cluster.entry(*job).or_insert_with(Vec::new).push(address(port));
            monitor.entry(*job).or_insert_with(Vec::new).push(address(figures));
        }
        let spec = json!({ "cluster": cluster, "monitor": monitor });
        let tasks = places.iter().zip(telling).map(|((job, task), port)| {
            let place = ["--cluster".to_owned(), json!(cluster).to_string(), "--job".to_owned()];
            let own = [(*job).to_owned(), "--task".to_owned(), task.to_string()];
            let told = ["--monitor".to_owned(), format!("127.0.0.1:{port}")];
            let options = place.into_iter().chain(own).chain(told);
            let options = options.chain(tasks::of_global(global)).chain(args.options.clone());
            Task::new(format!("{job}/{task}"), options.collect())
        });
        let tasks = tasks.collect();
        Ok(Up { tasks, events, restart: args.restart, spec, is_shown: false })
    }

    fn start_all(&mut self) -> Result<(), CliError> {
        let events = self.events.clone();
        (0..self.tasks.len()).try_for_each(|at| self.tasks[at].start(at, &events))
    }

    /// Handles what happens until a signal comes.
    fn attend(&mut self, happened: &Receiver<Event>) -> Result<(), CliError> {
        // The threads of the tasks send; the sender of `self` keeps the channel open.
        while let Ok(event) = happened.recv() {
            match event {
                Event::Signal(signal) => {
                    let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
                    complain(&format!("{name}: all tasks are told to stop"));
                    return Ok(());
                }
                Event::Ready(at, address) => self.ready(at, &address)?,
                Event::Ended(at) => self.ended(at)?,
                Event::Again(at) => {
                    let events = self.events.clone();
                    self.tasks[at].start(at, &events)?;
                }
            }
        }
        Ok(())
    }

    fn ready(&mut self, at: usize, address: &str) -> Result<(), CliError> {
        let task = &mut self.tasks[at];
        task.is_ready = true;
        complain(&format!("{}: {address}, process {}", task.name, task.process().unwrap_or(0)));
        if !self.is_shown && self.tasks.iter().all(|task| task.is_ready) {
            self.is_shown = true;
            print(&format!("{}\n", self.spec))?;
        }
        Ok(())
    }

    fn ended(&mut self, at: usize) -> Result<(), CliError> {
        let task = &mut self.tasks[at];
        let was_ready = std::mem::take(&mut task.is_ready);
        let how = task.reap();
        if !was_ready && !self.is_shown {
            return Err(CliError::Child { said: format!("{} did not start: {how}", task.name) });
        }
        if self.restart {
            let pause = (PAUSE * 2u32.saturating_pow(task.restarts)).min(LONGEST_PAUSE);
            task.restarts = task.restarts.saturating_add(1).min(8);
            complain(&format!("{} has ended: {how}; it is started again in {pause:?}", task.name));
            let events = self.events.clone();
            thread::spawn(move || {
                thread::sleep(pause);
                let _ = events.send(Event::Again(at));
            });
            return Ok(());
        }
        complain(&format!("{} has ended: {how}", task.name));
        match self.tasks.iter().any(Task::is_running) {
            true => Ok(()),
            false => Err(CliError::Child { said: "all tasks have ended".to_owned() }),
        }
    }

    /// Tells all tasks to stop, waits until they have ended, and ends those that do not.
    fn stop_all(&mut self, happened: &Receiver<Event>) {
        self.tasks.iter_mut().for_each(Task::tell_to_stop);
        let end = Instant::now() + PATIENCE;
        while self.tasks.iter().any(Task::is_running) {
            let left = end.saturating_duration_since(Instant::now());
            match happened.recv_timeout(left) {
                Ok(Event::Ended(at)) => {
                    let how = self.tasks[at].reap();
                    complain(&format!("{}: stopped, {how}", self.tasks[at].name));
                }
                // A second signal does not wait.
                Ok(Event::Signal(_)) | Err(_) => break,
                Ok(_) => {}
            }
        }
        self.tasks.iter_mut().for_each(Task::kill);
    }
}
