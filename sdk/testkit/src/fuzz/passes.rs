//! Graphs that passes may change, and what no pass may change in what they give.
//!
//! A [`Case`] is a graph that bytes make, with feeds and fetches. It has what passes look for: patterns of
//! registered fusions with constants of shapes that broadcast and values that are nearly the right ones, operands
//! that change nothing, shapes that are known in part, branches with dead values, nodes that fail, control edges.
//! [`Case::judge`] runs it as it is written and after passes. A [`Fault`] is a fetch whose shape, type or value is
//! another, or an error where there was none, or none where there was one; so a fetch that is dead must stay dead.

mod branches;
mod judge;
mod make;
mod patterns;
mod pool;

pub use judge::Fault;

use super::bytes::Bytes;
use std::fmt;
use tenon_framework::{Tensor, registry::Registry};
use tenon_runtime::{Runtime, proto::GraphDef};

/// This many bytes make any graph.
pub const CASE_BYTES: usize = 512;

/// A graph with feeds and fetches.
pub struct Case {
    def: GraphDef,
    feeds: Vec<(String, Tensor)>,
    fetches: Vec<String>,
    /// The pass that runs, or none for all.
    pass: Option<&'static str>,
    text: String,
}

/// How a case ended, as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With values.
    Computed,
    /// With an error.
    Failed,
}

impl Case {
    /// The graph that bytes make of a runtime's ops and fusions; none where they make none.
    pub fn new(registry: &Registry, data: &[u8]) -> Option<Case> {
        let mut pool = pool::Pool::new(registry, Bytes::new(data));
        let pass = pool.choose_pass();
        make::fill(&mut pool);
        pool.finish(pass)
    }

    /// Runs the graph as it is written and after the passes.
    ///
    /// # Errors
    /// What the passes changed that they may not.
    pub fn judge(&self, runtime: &Runtime) -> Result<Ending, Fault> {
        judge::judge(self, runtime)
    }
}

/// A line for each node, then feeds and fetches.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        for (name, value) in &self.feeds {
            writeln!(f, "feed {name}: {}", pool::shown(value))?;
        }
        writeln!(f, "fetch {}; passes: {}", self.fetches.join(", "), self.pass.unwrap_or("all"))
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
