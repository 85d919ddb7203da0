//! Graphs written by TensorFlow, and runs of them (tests/goldens/README.md, "graphs/index.json").

use crate::{
    archive::Archive,
    attrs,
    compare::Rule,
    error::TestkitError,
    golden::{plain_rule, read_json},
};
use serde::Deserialize;
use serde_json::Value;
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use tenon_framework::{Code, DType, Tensor};
use tenon_runtime::proto::{self, GraphDef};

/// What a run gives.
#[derive(Debug, Clone)]
pub enum RunExpected {
    /// The fetched tensors, by name, in order.
    Fetches(Vec<(String, Tensor)>),
    /// A refusal with this code, of these fetches.
    Error {
        /// Names of the fetches.
        fetches: Vec<String>,
        /// The code.
        code: Code,
    },
}

/// One run of a graph.
#[derive(Debug, Clone)]
pub struct GraphRun {
    /// Its number in the index.
    pub number: usize,
    /// Tensors that are fed, by name.
    pub feeds: Vec<(String, Tensor)>,
    /// Nodes that run besides.
    pub targets: Vec<String>,
    /// What it gives.
    pub expected: RunExpected,
}

/// A graph and its runs.
#[derive(Debug, Clone)]
pub struct GraphGolden {
    /// Name of the graph.
    pub name: String,
    /// Its purpose.
    pub about: String,
    /// The graph.
    pub graph: GraphDef,
    /// Types of the nodes it uses.
    pub ops: Vec<String>,
    /// How near the fetches must be.
    pub rule: Rule,
    /// The runs.
    pub runs: Vec<GraphRun>,
}

#[derive(Deserialize)]
struct IndexFile {
    graphs: Vec<IndexGraph>,
}

#[derive(Deserialize)]
struct IndexGraph {
    name: String,
    about: String,
    /// The graph; without it, it is the array `graph`.
    file: Option<String>,
    arrays: String,
    /// What the names of its arrays begin with in the archive.
    #[serde(default)]
    prefix: String,
    ops: Vec<String>,
    tolerance: Value,
    runs: Vec<IndexRun>,
}

#[derive(Deserialize)]
struct IndexRun {
    feeds: Vec<IndexValue>,
    fetches: Vec<IndexValue>,
    #[serde(default)]
    targets: Vec<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct IndexValue {
    tensor: String,
    array: Option<String>,
    #[serde(default)]
    dtype: Value,
    #[serde(default)]
    shape: Value,
}

/// Reads all graphs of a folder with an `index.json`.
///
/// # Errors
/// A file that is missing, an index, graph or array that is not what the format says.
pub fn read_graphs(folder: &Path) -> Result<Vec<GraphGolden>, TestkitError> {
    let path = folder.join("index.json");
    let file: IndexFile = read_json(&path)?;
    file.graphs.iter().map(|graph| Reader { folder, path: &path, graph }.graph()).collect()
}

/// Reads all graphs of a folder whose indexes have many, each with an archive.
///
/// # Errors
/// As [`read_graphs`]; the folder cannot be read.
pub fn read_sequences(folder: &Path) -> Result<Vec<GraphGolden>, TestkitError> {
    let failed = |error: io::Error| TestkitError::File {
        path: folder.to_owned(),
        detail: error.to_string(),
    };
    let entries = fs::read_dir(folder).map_err(failed)?;
    let paths = entries.map(|entry| Ok(entry.map_err(failed)?.path()));
    let mut paths = paths.collect::<Result<Vec<PathBuf>, TestkitError>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let mut graphs = Vec::new();
    for path in &paths {
        let file: IndexFile = read_json(path)?;
        for graph in &file.graphs {
            graphs.push(Reader { folder, path, graph }.graph()?);
        }
    }
    Ok(graphs)
}

struct Reader<'a> {
    folder: &'a Path,
    path: &'a Path,
    graph: &'a IndexGraph,
}

impl Reader<'_> {
    fn graph(&self) -> Result<GraphGolden, TestkitError> {
        let graph = self.graph;
        let mut archive = Archive::open(&self.folder.join(&graph.arrays))?;
        let file = self.folder.join(graph.file.as_ref().unwrap_or(&graph.arrays));
        let failed = |detail: String| TestkitError::File { path: file.clone(), detail };
        let bytes = match &graph.file {
            Some(_) => fs::read(&file).map_err(|error| failed(error.to_string()))?,
            None => {
                let array = archive
                    .tensor_of_any_shape(&format!("{}graph", graph.prefix), Some(DType::UINT8))?;
                array.as_bytes().map_err(|error| failed(error.to_string()))?.to_vec()
            }
        };
        let def = proto::decode_graph_def(&bytes).map_err(|error| failed(error.to_string()))?;
        let rule = plain_rule(&graph.tolerance)
            .ok_or_else(|| self.wrong("tolerance", "a tolerance", &graph.tolerance))?;
        let runs = graph.runs.iter().enumerate();
        let runs = runs.map(|(number, run)| self.run(number, run, &mut archive));
        Ok(GraphGolden {
            name: graph.name.clone(),
            about: graph.about.clone(),
            graph: def,
            ops: graph.ops.clone(),
            rule,
            runs: runs.collect::<Result<_, _>>()?,
        })
    }

    fn run(
        &self,
        number: usize,
        run: &IndexRun,
        archive: &mut Archive,
    ) -> Result<GraphRun, TestkitError> {
        let mut values = |values: &[IndexValue]| -> Result<Vec<(String, Tensor)>, TestkitError> {
            values.iter().map(|value| self.value(value, archive)).collect()
        };
        let feeds = values(&run.feeds)?;
        let expected = match &run.error {
            None => RunExpected::Fetches(values(&run.fetches)?),
            Some(name) => {
                let code = Code::from_name(name).filter(|code| !code.is_ok());
                let code = code.ok_or_else(|| {
                    self.wrong("error", "a canonical code", &Value::String(name.clone()))
                })?;
                let fetches = run.fetches.iter().map(|fetch| fetch.tensor.clone()).collect();
                RunExpected::Error { fetches, code }
            }
        };
        Ok(GraphRun { number, feeds, targets: run.targets.clone(), expected })
    }

    fn value(
        &self,
        value: &IndexValue,
        archive: &mut Archive,
    ) -> Result<(String, Tensor), TestkitError> {
        let found = |problem: attrs::AttrProblem| {
            self.wrong(&value.tensor, &problem.expected, &Value::String(problem.found))
        };
        let dtype = attrs::dtype(&value.dtype).map_err(found)?;
        let dims = attrs::dims(&value.shape).map_err(found)?;
        let array = value.array.as_deref();
        let array = array.ok_or_else(|| self.wrong(&value.tensor, "an array", &Value::Null))?;
        let array = format!("{}{array}", self.graph.prefix);
        Ok((value.tensor.clone(), archive.tensor(&array, dtype, &dims)?))
    }

    fn wrong(&self, place: &str, expected: &str, found: &Value) -> TestkitError {
        TestkitError::Index {
            path: self.path.to_owned(),
            place: format!("graph '{}', {place}", self.graph.name),
            expected: expected.to_owned(),
            found: found.to_string(),
        }
    }
}
