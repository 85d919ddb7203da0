//! The command that computes, and nodes whose kernels it calls.

use crate::wire::{self, Ready, Reply, Request};
use std::{
    env,
    ffi::OsString,
    io::BufReader,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Mutex, PoisonError},
};
use tenon_framework::{
    KernelError, Tensor,
    attr::{AttrMap, AttrValue},
};
use tenon_proto::{NodeDef, convert::attr_to_proto};

/// The variable that names the command.
const COMMAND: &str = "TENON";

/// A process of the `tenon` command with plugins loaded. It ends with this value.
pub struct Host {
    process: Mutex<Process>,
    device: String,
}

struct Process {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Host {
    /// A host with these plugins.
    ///
    /// # Panics
    /// When the command cannot be started, or a plugin is refused.
    pub fn with(files: impl IntoIterator<Item = PathBuf>) -> Host {
        Host::with_settings(files, &[])
    }

    /// A host with these plugins and these knobs, `scope.name` to value.
    ///
    /// # Panics
    /// As [`Host::with`], or when a knob is wrong.
    pub fn with_settings(files: impl IntoIterator<Item = PathBuf>, knobs: &[(&str, &str)]) -> Host {
        let program = env::var_os(COMMAND).unwrap_or_else(|| OsString::from("tenon"));
        let mut command = Command::new(&program);
        command.arg("call-server").stdin(Stdio::piped()).stdout(Stdio::piped());
        for file in files {
            command.arg("--plugin").arg(file);
        }
        for (name, value) in knobs {
            command.arg("--set").arg(format!("{name}={value}"));
        }
        let mut child = command.spawn().unwrap_or_else(|error| {
            let program = program.display();
            panic!("{program}: {error}; put `tenon` on the path, or name it in {COMMAND}")
        });
        let (to, from) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut process = Process { child, to, from: BufReader::new(from) };
        let ready: Ready = process.read();
        assert_eq!(
            ready.version,
            wire::VERSION,
            "the `tenon` command is of another version than this crate"
        );
        Host { process: Mutex::new(process), device: String::new() }
    }

    /// As it was, with kernels on this device, such as `ACCEL:0`.
    pub fn on(mut self, device: &str) -> Host {
        self.device = device.to_owned();
        self
    }

    /// A node of this op.
    pub fn node(&self, op: &str) -> Node<'_> {
        Node { host: self, op: op.to_owned(), name: "node".to_owned(), attrs: AttrMap::new() }
    }
}

impl Process {
    fn read<M: prost::Message + Default>(&mut self) -> M {
        match wire::read(&mut self.from) {
            Ok(Some(message)) => message,
            end => {
                // What it said is on standard error.
                let _ = self.child.kill();
                let status = self.child.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
                let error = end.err().map(|error| format!(": {error}")).unwrap_or_default();
                panic!("the `tenon` command ended in the middle of a call ({status}){error}")
            }
        }
    }

    fn call(&mut self, request: &Request) -> Reply {
        // A process that has ended is told by what is read.
        let _ = wire::write(&mut self.to, request);
        self.read()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It holds nothing that is to be kept, and may be in a call that does not end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A node, of which a kernel is made.
#[derive(Clone)]
pub struct Node<'h> {
    host: &'h Host,
    op: String,
    name: String,
    attrs: AttrMap,
}

impl<'h> Node<'h> {
    /// Names it, for messages.
    pub fn named(mut self, name: &str) -> Node<'h> {
        self.name = name.to_owned();
        self
    }

    /// Sets an attribute. Those that are types follow from the inputs.
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> Node<'h> {
        self.attrs.insert(name.to_owned(), value.into());
        self
    }

    /// Asks for a kernel of this label.
    pub fn label(self, label: &str) -> Node<'h> {
        self.attr("_kernel", label)
    }

    /// Makes the kernel and calls it once.
    ///
    /// # Errors
    /// What the kernel says; no kernel takes the node (`NOT_FOUND`).
    ///
    /// # Panics
    /// When there is no such op, attribute or device, or the call ends the process.
    pub fn call(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, KernelError> {
        let attr = |(name, value): (&String, &AttrValue)| {
            let value = attr_to_proto(value).unwrap_or_else(|e| panic!("{name}: {e}"));
            (name.clone(), value)
        };
        let node = NodeDef {
            name: self.name.clone(),
            op: self.op.clone(),
            device: self.host.device.clone(),
            attr: self.attrs.iter().map(attr).collect(),
            ..NodeDef::default()
        };
        let request = Request { node: Some(node), inputs: wire::tensors_to_proto(inputs)? };
        let mut process = self.host.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.call(&request).result()
    }
}

/// The library of a package whose tests are running: cargo puts it beside them.
///
/// # Panics
/// When the running program is not where cargo puts tests.
pub fn library(package: &str) -> PathBuf {
    let program = env::current_exe().expect("a program knows its own path");
    let folder = program.parent().expect("a program is in a folder");
    // Examples and documentation tests are elsewhere below the profile's folder.
    let deps = match folder.file_name().is_some_and(|name| name == "deps") {
        true => folder.to_owned(),
        false => folder.join("deps"),
    };
    library_in(&deps, package)
}

/// The library of a package in a folder.
pub fn library_in(folder: &Path, package: &str) -> PathBuf {
    use env::consts::{DLL_PREFIX, DLL_SUFFIX};
    folder.join(format!("{DLL_PREFIX}{}{DLL_SUFFIX}", package.replace('-', "_")))
}
