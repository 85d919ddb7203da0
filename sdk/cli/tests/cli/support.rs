//! Running the command, apart from the user's own plugins and settings.

use serde_json::Value;
use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};
use tempfile::TempDir;
use tenon_runtime::{
    framework::{PartialShape, Tensor},
    graph::{GraphBuilder, GraphError},
    host::Plugins,
    proto::encode,
};
use tenon_testkit::npy;

/// A place to work in, and the command run there.
pub struct Place {
    pub folder: TempDir,
}

impl Place {
    pub fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Path as an argument.
    pub fn arg(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Runs the command, with `XDG_DATA_HOME` in this place and no settings.
    pub fn tenon(&self, args: &[&str]) -> Output {
        self.command(Path::new(env!("CARGO_BIN_EXE_tenon"))).args(args).output().unwrap()
    }

    pub fn command(&self, executable: &Path) -> Command {
        let mut command = Command::new(executable);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TENON_")) {
            command.env_remove(name);
        }
        command.env("XDG_DATA_HOME", self.path("data")).current_dir(self.folder.path());
        command
    }

    /// A copy of the command, far from the plugins that were built with it.
    pub fn alone(&self) -> PathBuf {
        let alone = self.path("tenon");
        fs::copy(env!("CARGO_BIN_EXE_tenon"), &alone).unwrap();
        alone
    }

    /// What the command prints; it must succeed.
    pub fn text(&self, args: &[&str]) -> String {
        let output = self.tenon(args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// As [`Place::text`], read as JSON.
    pub fn json(&self, args: &[&str]) -> Value {
        let text = self.text(&[args, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error}: {text}"))
    }

    /// What the command says on standard error; it must fail with code 1 and print no result.
    pub fn error(&self, args: &[&str]) -> String {
        let output = self.tenon(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
        stderr(&output)
    }

    pub fn array(&self, name: &str, tensor: &Tensor) -> String {
        npy::write(self.path(name), tensor).unwrap();
        self.arg(name)
    }

    /// Writes a graph: `y = Relu(x)` over a float `x` of unknown shape.
    pub fn relu(&self, name: &str) -> String {
        use tenon_runtime::framework::DType;
        self.graph(name, |b| {
            let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
            b.op("Relu").name("layer/y").input(x).build().map(drop)
        })
    }

    /// Writes the graph of [`Place::relu`] with a variable left over, which `layer/y` does not need, and an attribute of a newer writer.
    pub fn leftover(&self, name: &str) -> String {
        use tenon_runtime::proto::{AttrValue, AttrValueKind, NodeDef, decode_graph_def};
        let file = self.relu(name);
        let mut graph = decode_graph_def(&fs::read(&file).unwrap()).unwrap();
        let newer = AttrValue { value: Some(AttrValueKind::I(3)) };
        graph.node[1].attr.insert("colour".to_owned(), newer);
        let node = |name: &str, op: &str, input: &[&str]| NodeDef {
            name: name.to_owned(),
            op: op.to_owned(),
            input: input.iter().map(|name| (*name).to_owned()).collect(),
            ..NodeDef::default()
        };
        let mut read = node("step/read", "Relu", &["step"]);
        read.attr.insert("T".to_owned(), graph.node[1].attr["T"].clone());
        graph.node.extend([node("step", "NobodysVariable", &[]), read]);
        fs::write(&file, encode(&graph).unwrap()).unwrap();
        file
    }

    /// Writes a graph with a product of `x` [?, 2] and constant weights, and an archive of samples for it.
    pub fn net(&self, graph: &str, samples: &str) {
        use tenon_runtime::framework::DType;
        self.graph(graph, |b| {
            let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[-1, 2]).unwrap())?;
            let weights = Tensor::from_slice(&[2, 1], &[0.5f32, -2.0]).unwrap();
            let weights = b.constant("weights", weights)?;
            b.op("MatMul").name("first/conv").input(x).input(weights).build().map(drop)
        });
        let x = Tensor::from_slice(&[3, 2], &[1f32, 2.0, -3.0, 0.25, 0.0, 7.0]).unwrap();
        self.archive(samples, &[("x", x)]);
    }

    /// Writes an archive of arrays.
    pub fn archive(&self, name: &str, arrays: &[(&str, Tensor)]) -> String {
        use std::io::Write;
        let mut zip = zip::ZipWriter::new(fs::File::create(self.path(name)).unwrap());
        for (array, tensor) in arrays {
            let options = zip::write::SimpleFileOptions::default();
            zip.start_file(format!("{array}.npy"), options).unwrap();
            zip.write_all(&npy::encode(tensor, array).unwrap()).unwrap();
        }
        zip.finish().unwrap();
        self.arg(name)
    }

    /// Writes a graph that `make` builds.
    pub fn graph(
        &self,
        name: &str,
        make: impl FnOnce(&mut GraphBuilder<'_>) -> Result<(), GraphError>,
    ) -> String {
        let plugins = Plugins::new().unwrap();
        let registry = plugins.registry();
        let mut builder = GraphBuilder::new(&registry);
        make(&mut builder).unwrap();
        let graph = builder.finish().to_graph_def().unwrap();
        fs::write(self.path(name), encode(&graph).unwrap()).unwrap();
        self.arg(name)
    }
}

/// Runs a command. A copy that was just made may still be open for writing in a child that another test is
/// about to start: then it is tried again.
pub fn output(command: &mut Command) -> Output {
    for _ in 0..100 {
        match command.output() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(20));
            }
            result => return result.unwrap(),
        }
    }
    panic!("{command:?} stays busy");
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The file of a plugin that was built with the command.
pub fn plugin(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_tenon")).parent().unwrap();
    let suffix = std::env::consts::DLL_SUFFIX;
    folder.join("deps").join(format!("libtenon_{name}{suffix}"))
}

/// The goldens of the repository.
pub fn goldens() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens/graphs")
}
