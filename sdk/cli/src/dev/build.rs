//! The author's own build: a command in the folder of the source, and the file that it makes.
//!
//! # Invariants
//! - The command has ended when [`Recipe::build`] returns: it runs in its own process group, which is ended
//!   when this program is asked to stop.
//! - What it writes is passed through to standard error, and its end is kept.

use super::{args::DevArgs, error::DevError};
use crate::output::complain;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::{
    collections::VecDeque,
    env::consts::DLL_SUFFIX,
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Sender, channel},
    },
    thread,
    time::{Duration, SystemTime},
};
use tenon_runtime::host::loader;

/// Lines of a build's output that are kept.
const KEPT: usize = 60;
const POLL: Duration = Duration::from_millis(10);
/// What a build's own children may still write after its end.
const AFTERWARDS: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Tool {
    Cargo { release: bool },
    Make,
    Shell(String),
}

/// How a plugin is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// Where its source lies.
    pub folder: PathBuf,
    tool: Tool,
    artifact: Option<PathBuf>,
}

/// How a build ended.
#[derive(Debug)]
pub enum Built {
    /// It made this file.
    Made(PathBuf),
    /// It failed: the end of what it wrote, or what is wrong with what it made.
    Failed(String),
    /// This program is to stop.
    Stopped,
}

impl Recipe {
    /// What the command line says, else what lies in the folder.
    ///
    /// # Errors
    /// No folder; nothing says how to build it.
    pub fn of(args: &DevArgs) -> Result<Recipe, DevError> {
        let folder = fs::canonicalize(&args.path).ok().filter(|folder| folder.is_dir());
        let folder = folder.ok_or_else(|| DevError::NoFolder { folder: args.path.clone() })?;
        let tool = match &args.build {
            Some(command) => Tool::Shell(command.clone()),
            None if folder.join("Cargo.toml").is_file() => Tool::Cargo { release: !args.debug },
            None if ["Makefile", "makefile", "GNUmakefile"]
                .iter()
                .any(|f| folder.join(f).is_file()) =>
            {
                Tool::Make
            }
            None => return Err(DevError::NoRecipe { folder }),
        };
        let artifact = args.artifact.as_ref().map(|file| folder.join(file));
        Ok(Recipe { folder, tool, artifact })
    }

    /// The command, for a reader.
    pub fn command(&self) -> String {
        match &self.tool {
            Tool::Cargo { release: true } => "cargo build --release".to_owned(),
            Tool::Cargo { release: false } => "cargo build".to_owned(),
            Tool::Make => "make".to_owned(),
            Tool::Shell(command) => command.clone(),
        }
    }

    fn to_command(&self) -> Command {
        let mut command = match &self.tool {
            Tool::Cargo { release } => {
                let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
                let mut command = Command::new(cargo);
                command.args(["build", "--message-format=json-render-diagnostics"]);
                command.args(release.then_some("--release"));
                command
            }
            Tool::Make => Command::new("make"),
            Tool::Shell(text) => {
                let mut command = Command::new("sh");
                command.args(["-c", text]);
                command
            }
        };
        command.current_dir(&self.folder).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        command
    }

    /// Builds.
    pub fn build(&self, stop: &AtomicBool) -> Built {
        let is_cargo = matches!(self.tool, Tool::Cargo { .. });
        let heard = Arc::new(Heard::default());
        let mut child = match self.to_command().spawn() {
            Ok(child) => child,
            Err(error) => return Built::Failed(format!("{}: {error}", self.command())),
        };
        let (done, over) = channel();
        listen(child.stdout.take(), &heard, is_cargo, done.clone());
        listen(child.stderr.take(), &heard, false, done);
        let Some(status) = wait(&mut child, stop) else { return Built::Stopped };
        for _ in 0..2 {
            // A child that it left behind may hold the other end for ever.
            let _ = over.recv_timeout(AFTERWARDS);
        }
        match status {
            Ok(status) if status.success() => self.made(&heard),
            Ok(status) => {
                Built::Failed(heard.tail(&format!("{} ended with {status}", self.command())))
            }
            Err(error) => Built::Failed(heard.tail(&error.to_string())),
        }
    }

    fn made(&self, heard: &Heard) -> Built {
        let made = match (&self.artifact, &self.tool) {
            (Some(file), _) => Some(file.clone()),
            (None, Tool::Cargo { .. }) => self.of_package(heard),
            (None, _) => newest_plugin(&self.folder),
        };
        match made {
            Some(file) if file.is_file() => Built::Made(file),
            Some(file) => Built::Failed(format!(
                "{} made no {}: expected the file that --artifact names",
                self.command(),
                file.display()
            )),
            None => Built::Failed(format!(
                "{} made no plugin: expected a library with a manifest (crate-type = [\"cdylib\"] for cargo) in \
                 {}; --artifact FILE names another",
                self.command(),
                self.folder.display()
            )),
        }
    }

    /// The dynamic library of this folder's package; of a workspace's the only one.
    fn of_package(&self, heard: &Heard) -> Option<PathBuf> {
        let libraries = locked(&heard.libraries);
        let manifest = self.folder.join("Cargo.toml");
        let own = libraries.iter().find(|(of, _)| *of == manifest);
        own.or(libraries.first().filter(|_| libraries.len() == 1)).map(|(_, file)| file.clone())
    }
}

/// What was heard of a build.
#[derive(Default)]
struct Heard {
    tail: Mutex<VecDeque<String>>,
    /// Dynamic libraries with the manifest of their package.
    libraries: Mutex<Vec<(PathBuf, PathBuf)>>,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Heard {
    fn line(&self, line: String) {
        complain(&line);
        let mut tail = locked(&self.tail);
        tail.push_back(line);
        if tail.len() > KEPT {
            tail.pop_front();
        }
    }

    /// What it wrote last, or else this.
    fn tail(&self, otherwise: &str) -> String {
        let tail = locked(&self.tail);
        if tail.is_empty() { otherwise.to_owned() } else { Vec::from(tail.clone()).join("\n") }
    }

    /// A line of cargo's messages. Whether it was one.
    fn message(&self, line: &str) -> bool {
        let Ok(message) = serde_json::from_str::<Value>(line) else { return false };
        if message["reason"] == "compiler-artifact" {
            let files =
                message["filenames"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let manifest = message["manifest_path"].as_str().unwrap_or_default();
            let libraries = files.filter(|file| file.ends_with(DLL_SUFFIX));
            let dynamic = message["target"]["crate_types"].as_array();
            if dynamic.is_some_and(|types| types.iter().any(|t| t == "cdylib" || t == "dylib")) {
                let found = libraries.map(|file| (manifest.into(), file.into()));
                locked(&self.libraries).extend(found);
            }
        }
        message["reason"].is_string()
    }
}

/// Hears a pipe to its end, on a thread of its own.
fn listen(
    pipe: Option<impl Read + Send + 'static>,
    heard: &Arc<Heard>,
    messages: bool,
    done: Sender<()>,
) {
    let (Some(pipe), heard) = (pipe, Arc::clone(heard)) else { return };
    let body = move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
            if !(messages && heard.message(&line)) {
                heard.line(line);
            }
        }
        // Nobody waits for it any more.
        let _ = done.send(());
    };
    // Without a thread nothing is heard, and the build's own end is told all the same.
    let _ = thread::Builder::new().name("dev-build".to_owned()).spawn(body);
}

/// Waits for a build; `None` when it was ended because this program is to stop.
fn wait(child: &mut Child, stop: &AtomicBool) -> Option<std::io::Result<std::process::ExitStatus>> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(Ok(status)),
            Ok(None) if stop.load(Ordering::Relaxed) => {
                end_group(child);
                return None;
            }
            Ok(None) => thread::sleep(POLL),
            Err(error) => return Some(Err(error)),
        }
    }
}

/// Ends a process that leads a group, with all of the group.
pub fn end_group(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // One that is over already is not there.
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let _ = child.wait();
}

/// The newest library of a folder that is a plugin.
fn newest_plugin(folder: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(folder).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    let libraries = files.filter(|path| path.to_string_lossy().ends_with(DLL_SUFFIX));
    let plugins = libraries.filter(|path| loader::examine(path).is_ok());
    let modified = |path: &PathBuf| fs::metadata(path).and_then(|meta| meta.modified());
    plugins.max_by_key(|path| modified(path).unwrap_or(SystemTime::UNIX_EPOCH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        dev: DevArgs,
    }

    fn args(folder: &Path, more: &[&str]) -> DevArgs {
        let folder = folder.to_str().unwrap();
        Line::parse_from([&["dev", folder], more].concat()).dev
    }

    #[test]
    fn the_folder_says_how_it_is_built() {
        let folder = tempfile::tempdir().unwrap();
        let command = |more: &[&str]| Recipe::of(&args(folder.path(), more)).map(|r| r.command());
        assert!(matches!(command(&[]), Err(DevError::NoRecipe { .. })));
        fs::write(folder.path().join("Makefile"), "").unwrap();
        assert_eq!(command(&[]).unwrap(), "make");
        fs::write(folder.path().join("Cargo.toml"), "").unwrap();
        assert_eq!(command(&[]).unwrap(), "cargo build --release");
        assert_eq!(command(&["--debug"]).unwrap(), "cargo build");
        assert_eq!(command(&["--build", "ninja", "--artifact", "x.so"]).unwrap(), "ninja");
        let none = Recipe::of(&args(&folder.path().join("none"), &[]));
        assert!(matches!(none, Err(DevError::NoFolder { .. })));
    }

    fn built(command: &str, stop: bool) -> Built {
        let folder = tempfile::tempdir().unwrap();
        let args = args(folder.path(), &["--build", command, "--artifact", "made.so"]);
        Recipe::of(&args).unwrap().build(&AtomicBool::new(stop))
    }

    #[test]
    fn a_build_makes_its_file_or_says_why_not() {
        assert!(
            matches!(built("echo x > made.so", false), Built::Made(file) if file.ends_with("made.so"))
        );
        let Built::Failed(told) = built("echo wrong >&2; exit 3", false) else { panic!() };
        assert_eq!(told, "wrong");
        let Built::Failed(told) = built("exit 3", false) else { panic!() };
        assert!(told.starts_with("exit 3 ended with"), "{told}");
        let Built::Failed(told) = built("true", false) else { panic!() };
        assert!(told.contains("made no") && told.contains("made.so"), "{told}");
    }

    #[test]
    fn a_build_is_ended_with_its_children() {
        assert!(matches!(built("sleep 1000 & sleep 1000; wait", true), Built::Stopped));
    }

    #[test]
    fn cargo_names_the_library_of_the_package() {
        let heard = Heard::default();
        let line = |of: &str, kind: &str, file: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"{of}/Cargo.toml","target":{{"crate_types":["{kind}"]}},"filenames":["{file}{DLL_SUFFIX}"]}}"#
            )
        };
        assert!(heard.message(&line("/dependency", "cdylib", "/t/libother")));
        assert!(heard.message(&line("/own", "proc-macro", "/t/libmacro")));
        assert!(heard.message(&line("/own", "cdylib", "/t/libown")));
        assert!(!heard.message("   Compiling own"));
        let recipe = Recipe { folder: "/own".into(), tool: Tool::Make, artifact: None };
        let own = format!("/t/libown{DLL_SUFFIX}");
        assert_eq!(recipe.of_package(&heard), Some(own.into()));
    }
}
