//! The process of a task.

use crate::{args::Global, error::CliError};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    env,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::mpsc::Sender,
    thread,
};

/// What happens to tasks.
pub enum Event {
    /// The task of this number listens at an address.
    Ready(usize, String),
    /// The process of the task has closed its output.
    Ended(usize),
    /// The task is to be started again.
    Again(usize),
    /// This command got a signal.
    Signal(i32),
}

/// A task.
pub struct Task {
    pub name: String,
    options: Vec<String>,
    child: Option<Child>,
    pub is_ready: bool,
    pub restarts: u32,
}

/// The options of all commands, for `tenon serve`.
pub fn of_global(global: &Global) -> Vec<String> {
    let Global { plugins, isolate, set, .. } = global;
    let path =
        |option: &str, path: &std::path::PathBuf| [option.to_owned(), path.display().to_string()];
    let plugins = plugins.iter().flat_map(|file| path("--plugin", file));
    let isolate = isolate.iter().flat_map(|file| path("--isolate", file));
    let set = set.iter().flat_map(|text| ["--set".to_owned(), text.clone()]);
    plugins.chain(isolate).chain(set).collect()
}

impl Task {
    pub fn new(name: String, options: Vec<String>) -> Task {
        Task { name, options, child: None, is_ready: false, restarts: 0 }
    }

    /// Starts the process, and a thread that tells when it is ready and when it has ended.
    ///
    /// # Errors
    /// This executable cannot be found or started.
    pub fn start(&mut self, at: usize, events: &Sender<Event>) -> Result<(), CliError> {
        let failed = |source| CliError::File { file: "tenon".into(), done: "started", source };
        let executable = env::current_exe().map_err(failed)?;
        let mut child = Command::new(executable)
            .args(["serve", "--while-stdin"])
            .args(&self.options)
            // A Ctrl-C in the terminal is for this command, which tells its tasks.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let output = child.stdout.take();
        let events = events.clone();
        thread::spawn(move || {
            let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
            for line in lines.map_while(Result::ok).filter(|line| line.starts_with("grpc")) {
                let _ = events.send(Event::Ready(at, line));
            }
            let _ = events.send(Event::Ended(at));
        });
        self.child = Some(child);
        Ok(())
    }

    pub fn is_running(&self) -> bool {
        self.child.is_some()
    }

    /// The number of the process.
    pub fn process(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Takes note of the end of the process; how it ended.
    pub fn reap(&mut self) -> String {
        let Some(mut child) = self.child.take() else { return "it did not run".to_owned() };
        match child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => format!("its end is unknown: {error}"),
        }
    }

    /// Sends SIGTERM: steps in flight may end.
    pub fn tell_to_stop(&mut self) {
        let process = self.process().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(process) = process {
            // A process that has just ended cannot be told.
            let _ = kill_process(process, Signal::TERM);
        }
    }

    /// Ends the process.
    pub fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            self.reap();
        }
    }
}
