//! What was fed and fetched so far of a step that is fed and fetched in parts.

use super::Session;
use crate::{
    error::{RuntimeError, StepError},
    feeds::{FeedSpec, FeedSpecs},
    options::CallableOptions,
    step_graph::{Named, TaskStep},
};
use std::sync::Arc;
use tenon_framework::{
    Code, Tensor,
    sync::{Mutex, rank},
};
use tenon_graph::{Graph, Output, prune};

/// A tensor that is fetched.
struct Fetched {
    name: String,
    output: Output,
    /// Positions of the feeds that it needs.
    needs: Vec<usize>,
}

struct Done {
    fed: Vec<bool>,
    fetched: Vec<bool>,
}

/// What was fed and fetched so far of a step in parts: each feed comes once, each fetch is given once, and a fetch is given
/// when the feeds that it needs have come.
pub struct PartialProgress {
    graph: Arc<Graph>,
    feeds: Vec<(Output, FeedSpec)>,
    fetches: Vec<Fetched>,
    done: Mutex<Done>,
}

/// A part, by positions in the signature of the step.
pub struct Taken {
    /// The feeds, with their values.
    pub feeds: Vec<(usize, Tensor)>,
    /// The fetches.
    pub fetches: Vec<usize>,
    /// Whether nothing is left after it.
    pub completes: bool,
}

pub(super) fn invalid(message: String) -> RuntimeError {
    StepError::step(Code::INVALID_ARGUMENT, message).into()
}

fn not_named(what: &str, name: &str) -> RuntimeError {
    invalid(format!("{what} '{name}' was not named when the partial run was set up: name it there"))
}

impl Session {
    /// The progress of a step over several tasks that is fed and fetched in parts.
    ///
    /// # Errors
    /// A name that the graph does not have; a tensor that is both fed and fetched, or is fetched twice.
    pub fn progress(
        &self,
        signature: &CallableOptions,
        step: &TaskStep,
    ) -> Result<PartialProgress, RuntimeError> {
        let graph = Arc::clone(&self.inner.current.lock().graph);
        let named = Named::find(&graph, signature)?;
        PartialProgress::check(&graph, &named)?;
        PartialProgress::new(&graph, &named, step.specs.0.clone(), &signature.fetches)
    }
}

impl PartialProgress {
    /// Checks that no tensor is both fed and fetched, or fetched twice.
    pub(super) fn check(graph: &Graph, named: &Named) -> Result<(), RuntimeError> {
        for (at, fetch) in named.fetches.iter().enumerate() {
            let name = graph.output_name(*fetch);
            if named.feeds.contains(fetch) {
                return Err(invalid(format!(
                    "tensor '{name}' is both fed and fetched: its value is what is fed"
                )));
            }
            if named.fetches[..at].contains(fetch) {
                return Err(invalid(format!(
                    "tensor '{name}' is fetched twice: a partial run gives each fetch once"
                )));
            }
        }
        Ok(())
    }

    /// The progress of a step with these feeds and fetches, nothing of which is done.
    pub(super) fn new(
        graph: &Arc<Graph>,
        named: &Named,
        specs: Vec<FeedSpec>,
        names: &[String],
    ) -> Result<PartialProgress, RuntimeError> {
        let feeds: Vec<_> = named.feeds.iter().copied().zip(specs).collect();
        let mut fetches = Vec::with_capacity(named.fetches.len());
        for (&output, name) in named.fetches.iter().zip(names) {
            let needs = needs(graph, &named.feeds, output)?;
            fetches.push(Fetched { name: name.clone(), output, needs });
        }
        let done = Done { fed: vec![false; feeds.len()], fetched: vec![false; fetches.len()] };
        let done = Mutex::ranked(rank::SESSION, done);
        Ok(PartialProgress { graph: Arc::clone(graph), feeds, fetches, done })
    }

    /// The name of a fetch.
    pub(super) fn fetch(&self, at: usize) -> &str {
        &self.fetches[at].name
    }

    /// Whether everything was fed and fetched.
    pub(super) fn is_complete(&self) -> bool {
        let done = self.done.lock();
        done.fed.iter().chain(&done.fetched).all(|&done| done)
    }

    /// Checks a part, and notes it.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: a tensor that was not named at the start, or comes twice; a feed of another type or shape; a fetch
    /// that needs a feed which has not come. Nothing is noted then.
    pub fn take(&self, feeds: &[(&str, Tensor)], fetches: &[&str]) -> Result<Taken, RuntimeError> {
        let mut done = self.done.lock();
        let (mut fed, mut taken) = (done.fed.clone(), done.fetched.clone());
        let mut given = Vec::with_capacity(feeds.len());
        for (name, tensor) in feeds {
            let output = self.graph.tensor(name).ok();
            let at = self.feeds.iter().position(|(feed, _)| Some(*feed) == output);
            let at = at.ok_or_else(|| not_named("feed", name))?;
            if std::mem::replace(&mut fed[at], true) {
                return Err(invalid(format!(
                    "tensor '{name}' was fed before: a partial run takes each feed once"
                )));
            }
            FeedSpecs(vec![self.feeds[at].1.clone()]).check(std::slice::from_ref(tensor))?;
            given.push((at, tensor.clone()));
        }
        let mut wanted = Vec::with_capacity(fetches.len());
        for name in fetches {
            let output = self.graph.tensor(name).ok();
            let at = self.fetches.iter().position(|fetch| Some(fetch.output) == output);
            let at = at.ok_or_else(|| not_named("fetch", name))?;
            if std::mem::replace(&mut taken[at], true) {
                return Err(invalid(format!(
                    "tensor '{name}' was fetched before: a partial run gives each fetch once"
                )));
            }
            if let Some(&missing) = self.fetches[at].needs.iter().find(|&&need| !fed[need]) {
                let missing = &self.feeds[missing].1.name;
                return Err(invalid(format!(
                    "fetch '{name}' needs feed '{missing}', which has not come: feed it in this call or before"
                )));
            }
            wanted.push(at);
        }
        *done = Done { fed, fetched: taken };
        let completes = done.fed.iter().chain(&done.fetched).all(|&done| done);
        Ok(Taken { feeds: given, fetches: wanted, completes })
    }
}

/// Positions of the feeds that a fetch needs.
fn needs(graph: &Graph, feeds: &[Output], fetch: Output) -> Result<Vec<usize>, RuntimeError> {
    let sub = prune(graph, feeds, &[fetch], &[])?;
    let mut needs = Vec::new();
    for &id in &sub.order {
        needs.extend(graph.node(id).inputs.iter().filter_map(|&input| sub.feed_of(input)));
        // A placeholder that is fed orders what waits for it.
        let control = graph.node(id).control_inputs.iter();
        needs.extend(control.filter_map(|&source| sub.feed_of(Output::new(source, 0))));
    }
    needs.sort_unstable();
    needs.dedup();
    Ok(needs)
}
