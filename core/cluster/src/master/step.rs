//! One whole step of a client.

use super::{options::milliseconds, session::MasterSession, stats::StepStatsSink, values};
use crate::refusal::Refusal;
use std::sync::Arc;
use tenon_host::call::TraceSink;
use tenon_proto::{RunMetadata, RunOptions, RunStepRequest, RunStepResponse};
use tenon_runtime::{CallableOptions, CancelToken, NodeReport};

/// Runs the step that a request describes.
pub(super) fn run(
    session: &MasterSession,
    request: RunStepRequest,
    cancel: CancelToken,
) -> Result<RunStepResponse, Refusal> {
    values::check_once(request.feed.iter().map(|feed| feed.name.as_str()), "fed")?;
    values::check_once(request.fetch.iter().map(String::as_str), "fetched")?;
    let feeds = values::read(session, request.feed)?;
    let named: Vec<_> =
        feeds.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    let fetches: Vec<&str> = request.fetch.iter().map(String::as_str).collect();
    let targets: Vec<&str> = request.target.iter().map(String::as_str).collect();
    let asked = request.options.unwrap_or_default();
    let stats = StepStatsSink::wanted(&asked);
    let options = options(session, &asked, cancel, stats.as_ref());
    let (fetched, report) = session.session.run(&named, &fetches, &targets, &options)?;
    if session.options.log_placement && report.compile_ns > 0 {
        report
            .nodes
            .iter()
            .for_each(|node| tracing::info!("{}: ({}): {}", node.name, node.op, node.device));
    }
    let signature = CallableOptions {
        feeds: feeds.into_iter().map(|(name, _)| name).collect(),
        fetches: request.fetch.clone(),
        targets: request.target,
    };
    let metadata = metadata(session, &asked, &signature, stats, &report.nodes)?;
    let tensor = values::write(session, request.fetch, &fetched)?;
    Ok(RunStepResponse { tensor, metadata, ..RunStepResponse::default() })
}

/// The options of a step that its client requests.
pub(super) fn options(
    session: &MasterSession,
    asked: &RunOptions,
    cancel: CancelToken,
    stats: Option<&Arc<StepStatsSink>>,
) -> tenon_runtime::RunOptions {
    tenon_runtime::RunOptions {
        deadline: milliseconds(asked.timeout_in_ms).or(session.options.timeout),
        cancel: Some(cancel),
        trace: stats.map(|stats| Arc::clone(stats) as Arc<dyn TraceSink>),
    }
}

/// The metadata of a step that its client requested.
pub(super) fn metadata(
    session: &MasterSession,
    asked: &RunOptions,
    signature: &CallableOptions,
    stats: Option<Arc<StepStatsSink>>,
    nodes: &[NodeReport],
) -> Result<Option<RunMetadata>, Refusal> {
    let wants_graphs = asked.output_partition_graphs && session.options.gives_graphs;
    if stats.is_none() && !wants_graphs {
        return Ok(None);
    }
    let partition_graphs =
        if wants_graphs { session.session.partitions(signature)? } else { Vec::new() };
    let step_stats = stats.map(|stats| stats.finish(nodes));
    Ok(Some(RunMetadata { step_stats, partition_graphs, ..RunMetadata::default() }))
}
