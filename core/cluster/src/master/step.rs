//! One whole step of a client.

use super::{
    cluster::{ClusterSession, Wish},
    session::MasterSession,
    values,
};
use crate::{clock, options::milliseconds, refusal::Refusal, stats::StepStatsSink};
use std::sync::Arc;
use tenon_framework::Tensor;
use tenon_host::call::TraceSink;
use tenon_proto::{
    NamedTensorProto, RunMetadata, RunOptions, RunStepRequest, RunStepResponse, StepStats,
    TensorProto,
};
use tenon_runtime::{CallableOptions, CancelToken, NodeReport};

/// Runs the step that a request describes.
pub(super) fn run(
    session: &MasterSession,
    request: RunStepRequest,
    cancel: CancelToken,
) -> Result<RunStepResponse, Refusal> {
    let feeds = fed(session, request.feed, &request.fetch)?;
    if let Some(cluster) = &session.cluster {
        let (fetch, target) = (request.fetch, request.target);
        return over_tasks(session, cluster, feeds, (fetch, target), request.options, cancel);
    }
    let (signature, tensors) = signature(feeds, request.fetch, request.target);
    let asked = request.options.unwrap_or_default();
    let stats = StepStatsSink::wanted(&asked);
    let options = options(session, &asked, cancel, stats.as_ref());
    let (fetched, report) = session.session.run_any_shape(&signature, &tensors, &options)?;
    if session.options.log_placement && report.compile_ns > 0 {
        report
            .nodes
            .iter()
            .for_each(|node| tracing::info!("{}: ({}): {}", node.name, node.op, node.device));
    }
    let metadata = metadata(session, &asked, &signature, stats, &report.nodes)?;
    let tensor = values::write(session, signature.fetches, &fetched)?;
    Ok(RunStepResponse { tensor, metadata, ..RunStepResponse::default() })
}

/// The feeds of a step, none of which is there twice; nor is one of its fetches.
fn fed(
    session: &MasterSession,
    feeds: Vec<NamedTensorProto>,
    fetches: &[String],
) -> Result<Vec<(String, Tensor)>, Refusal> {
    values::check_once(feeds.iter().map(|feed| feed.name.as_str()), "fed")?;
    values::check_once(fetches.iter().map(String::as_str), "fetched")?;
    values::read(session, feeds)
}

/// The signature of a step, and the values of its feeds in order.
fn signature(
    feeds: Vec<(String, Tensor)>,
    fetches: Vec<String>,
    targets: Vec<String>,
) -> (CallableOptions, Vec<Tensor>) {
    let (feeds, tensors) = feeds.into_iter().unzip();
    (CallableOptions { feeds, fetches, targets, ..CallableOptions::default() }, tensors)
}

/// Runs a step over several tasks that needs no thread, nor gives metadata.
pub(super) async fn run_soon(
    session: &MasterSession,
    cluster: &ClusterSession,
    request: RunStepRequest,
    cancel: CancelToken,
) -> Result<RunStepResponse, Refusal> {
    let feeds = fed(session, request.feed, &request.fetch)?;
    let (signature, tensors) = signature(feeds, request.fetch, request.target);
    let options = options(session, &request.options.unwrap_or_default(), cancel, None);
    let wish = Wish { feeds: &tensors, options: &options, began: clock::now(), timeline: false };
    let outcome = cluster.run_soon(&session.session, &signature, wish).await?;
    let tensor = named(signature, outcome.fetched);
    Ok(RunStepResponse { tensor, ..RunStepResponse::default() })
}

/// The fetched values, under the names that were asked for.
fn named(signature: CallableOptions, fetched: Vec<TensorProto>) -> Vec<NamedTensorProto> {
    let named = signature.fetches.into_iter().zip(fetched);
    named.map(|(name, tensor)| NamedTensorProto { name, tensor: Some(tensor) }).collect()
}

/// Runs a step over several tasks.
fn over_tasks(
    session: &MasterSession,
    cluster: &ClusterSession,
    feeds: Vec<(String, Tensor)>,
    (fetches, targets): (Vec<String>, Vec<String>),
    asked: Option<RunOptions>,
    cancel: CancelToken,
) -> Result<RunStepResponse, Refusal> {
    let asked = asked.unwrap_or_default();
    let (signature, tensors) = signature(feeds, fetches, targets);
    let stats = StepStatsSink::wanted(&asked);
    let options = options(session, &asked, cancel, None);
    let began = clock::now();
    let wish = Wish { feeds: &tensors, options: &options, began, timeline: stats.is_some() };
    let outcome = cluster.run(&session.session, &signature, wish)?;
    let metadata = metadata_of_tasks(session, &asked, &signature, outcome.stats)?;
    let tensor = named(signature, outcome.fetched);
    Ok(RunStepResponse { tensor, metadata, ..RunStepResponse::default() })
}

/// The metadata of a step over several tasks.
pub(super) fn metadata_of_tasks(
    session: &MasterSession,
    asked: &RunOptions,
    signature: &CallableOptions,
    stats: StepStats,
) -> Result<Option<RunMetadata>, Refusal> {
    let wants_graphs = asked.output_partition_graphs && session.options.gives_graphs;
    let wants_stats = StepStatsSink::wanted(asked).is_some();
    if !wants_stats && !wants_graphs {
        return Ok(None);
    }
    let mut partition_graphs = Vec::new();
    if wants_graphs {
        let cut = session.session.tasks(signature, &tenon_runtime::RunOptions::default())?;
        partition_graphs.extend(cut.parts.into_iter().map(|part| part.graph));
    }
    let step_stats = wants_stats.then_some(stats);
    Ok(Some(RunMetadata { step_stats, partition_graphs, ..RunMetadata::default() }))
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
