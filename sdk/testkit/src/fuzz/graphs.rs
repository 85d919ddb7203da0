//! Graphs that are nearly right, and what no answer to them may be.
//!
//! A [`GraphFuzzer`] makes of any bytes a graph: one that TensorFlow wrote, of which nodes, edges, attributes and frames
//! are changed, most of them so that the rest still fits. It imports, optimises, explains and runs the graph, and
//! reads it anew. A [`Fault`] is a panic, an internal error, a refusal that is too long or says nothing, or a graph that
//! is written otherwise than it was read.
//!
//! # Invariants
//! - The same bytes and the same graphs make the same mutant.
//! - Host memory has a limit, and steps a deadline.

mod mutate;
mod values;

use super::{Fault, MEMORY, bytes::Bytes};
use crate::{
    TestkitError,
    graphs::{GraphGolden, RunExpected, read_graphs},
};
use mutate::Mutator;
use std::{
    collections::HashMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::Duration,
};
use tenon_framework::{
    Code, DType, Tensor,
    text::{cut, some_of},
};
use tenon_runtime::{
    RunOptions, Runtime, RuntimeError, Session, SessionOptions,
    graph::Graph,
    host::memory::HostMemory,
    proto::{GraphDef, encode},
};

/// This many bytes make any mutant.
pub const MUTANT_BYTES: usize = 128;

/// Graphs of more encoded bytes are not seeds: their steps take long.
const MOST_SEED_BYTES: usize = 100_000;

/// How long a step may take: a changed loop may be endless.
const DEADLINE: Duration = Duration::from_millis(300);

/// Longest message of a refusal, in bytes.
const LONGEST_MESSAGE: usize = 16 << 10;

/// Codes of what is wrong with a graph or its feeds. An internal error is not among them, so panics of kernels are found.
const REFUSALS: [Code; 7] = [
    Code::INVALID_ARGUMENT,
    Code::OUT_OF_RANGE,
    Code::FAILED_PRECONDITION,
    Code::UNIMPLEMENTED,
    Code::RESOURCE_EXHAUSTED,
    Code::NOT_FOUND,
    Code::DEADLINE_EXCEEDED,
];

/// How far a mutant came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reached {
    /// It is not a graph.
    Import,
    /// No step can be made of it.
    Compile,
    /// The step fails.
    Step,
    /// The step gives what is fetched.
    Values,
}

/// A graph to change, and what it is run with.
pub(super) struct Seed {
    golden: GraphGolden,
    /// Types of the nodes' outputs.
    types: HashMap<String, Vec<DType>>,
}

/// A changed graph and a step over it.
pub struct Mutant {
    /// Name of the graph that was changed.
    pub seed: String,
    /// What was changed, in words.
    pub changes: Vec<String>,
    /// The graph.
    pub graph: GraphDef,
    feeds: Vec<(String, Tensor)>,
    fetches: Vec<String>,
    targets: Vec<String>,
    optimised: bool,
}

impl fmt::Debug for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let feed = |(name, value): &(String, Tensor)| format!("{}={}", cut(name), value.shape());
        let feeds: Vec<String> = self.feeds.iter().map(feed).collect();
        let names = |names: &[String]| some_of(names.iter().map(String::as_str), 8);
        write!(
            f,
            "{} ({}), feeds {}, fetches {}, targets {}: {}",
            self.seed,
            if self.optimised { "optimised" } else { "as written" },
            feeds.join(" "),
            names(&self.fetches),
            names(&self.targets),
            self.changes.join("; ")
        )
    }
}

/// Changes graphs and runs them.
pub struct GraphFuzzer {
    runtime: Runtime,
    seeds: Vec<Seed>,
    mutator: Mutator,
}

impl fmt::Debug for GraphFuzzer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GraphFuzzer({} graphs)", self.seeds.len())
    }
}

impl GraphFuzzer {
    /// A fuzzer without graphs yet. From here on the process has a limit on host memory.
    pub fn new(runtime: Runtime) -> GraphFuzzer {
        HostMemory::shared().set_limit(MEMORY);
        let mutator = Mutator::new(&runtime.registry());
        GraphFuzzer { runtime, seeds: Vec::new(), mutator }
    }

    /// Adds the graphs of a folder of golden data that are small and whose ops are there.
    ///
    /// # Errors
    /// Golden data that cannot be read.
    pub fn learn(&mut self, folder: &Path) -> Result<(), TestkitError> {
        for mut golden in read_graphs(folder)? {
            let size = encode(&golden.graph).map_or(usize::MAX, |bytes| bytes.len());
            golden.runs.retain(|run| matches!(run.expected, RunExpected::Fetches(_)));
            let Ok(graph) = Graph::import(&golden.graph, &self.runtime.registry()) else {
                continue;
            };
            if size > MOST_SEED_BYTES || golden.runs.is_empty() || !graph.blocked().is_empty() {
                continue;
            }
            let types = |(_, node): (_, &tenon_runtime::graph::Node)| {
                (node.name.clone(), node.outputs().to_vec())
            };
            let types = graph.nodes().map(types).collect();
            self.seeds.push(Seed { golden, types });
        }
        Ok(())
    }

    /// The mutant that bytes make.
    ///
    /// # Panics
    /// There are no graphs to change.
    pub fn mutant(&self, data: &[u8]) -> Mutant {
        let mut bytes = Bytes::new(data);
        let seed = &self.seeds[bytes.below(self.seeds.len())];
        self.mutator.mutant(seed, &mut bytes)
    }

    /// Takes a mutant as a session takes any graph.
    ///
    /// # Errors
    /// How it must not be answered.
    pub fn judge(&self, mutant: &Mutant) -> Result<Reached, Fault> {
        let judged = catch_unwind(AssertUnwindSafe(|| self.answer(mutant)));
        judged.unwrap_or_else(|_| Err(Fault::new("the host panics".to_owned())))
    }

    fn answer(&self, mutant: &Mutant) -> Result<Reached, Fault> {
        let options = match mutant.optimised {
            true => SessionOptions::default(),
            false => SessionOptions::as_written(),
        };
        // Devices of a mutant that are not there shall not end it early.
        let options = SessionOptions { soft_placement: Some(true), ..options };
        let session = Session::new(&self.runtime, options)
            .map_err(|error| Fault::new(format!("a session cannot be made: {error}")))?;
        if let Err(error) = session.extend(&mutant.graph) {
            return checked(&error, "import").map(|()| Reached::Import);
        }
        same_when_written(&session, &mutant.graph)?;
        if let Err(error) = session.refresh() {
            return Err(Fault::new(format!("what was read once is refused: {error}")));
        }
        if let Err(error) = session.explain_passes(None) {
            checked(&error, "explaining the passes")?;
        }
        let feeds: Vec<(&str, Tensor)> =
            mutant.feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let fetches: Vec<&str> = mutant.fetches.iter().map(String::as_str).collect();
        let targets: Vec<&str> = mutant.targets.iter().map(String::as_str).collect();
        let options = RunOptions { deadline: Some(DEADLINE), ..RunOptions::default() };
        match session.run(&feeds, &fetches, &targets, &options) {
            Ok(_) => Ok(Reached::Values),
            Err(error @ RuntimeError::Step(_)) => checked(&error, "step").map(|()| Reached::Step),
            Err(error) => checked(&error, "compiling").map(|()| Reached::Compile),
        }
    }
}

/// A refusal is of the caller's mistake, and says something, but not without end.
fn checked(error: &RuntimeError, what: &str) -> Result<(), Fault> {
    let (code, message) = (error.code(), error.to_string());
    if !REFUSALS.contains(&code) {
        return Err(Fault::new(format!("{what} fails with {}: {message}", code.name())));
    }
    if message.trim().is_empty() || message.len() > LONGEST_MESSAGE {
        return Err(Fault::new(format!("{what} fails with a message of {} bytes", message.len())));
    }
    Ok(())
}

fn same_when_written(session: &Session, read: &GraphDef) -> Result<(), Fault> {
    let written = session
        .graph()
        .to_graph_def()
        .map_err(|error| Fault::new(format!("what was read cannot be written: {error}")))?;
    if encode(&written) == encode(read) {
        return Ok(());
    }
    Err(Fault::new("what was read is written otherwise".to_owned()))
}
