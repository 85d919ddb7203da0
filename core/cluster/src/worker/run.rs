//! The part of a step at a worker.

use super::{
    Answered, WorkerService,
    partial::{self, Partial},
    sessions::OpenSession,
};
use crate::{
    call::Call,
    keys,
    refusal::{Mark, Refusal},
    rendezvous::StepRendezvous,
    stats::StepStatsSink,
};
use std::sync::{Arc, mpsc};
use tenon_framework::{Code, text::cut};
use tenon_host::call::TraceSink;
use tenon_proto::{
    NamedTensorProto, RunGraphRequest, RunGraphResponse,
    convert::{tensor_from_proto, tensor_to_proto},
};
use tenon_runtime::{
    CancelToken, RunOptions, RuntimeError, StepError, StepOptions,
    rendezvous::{Edges, Parcel, Rendezvous},
};

/// Runs a part: gives it the values that the master sends, and then takes those that it asks for.
pub(super) fn run(
    service: &WorkerService,
    call: Call<RunGraphRequest>,
) -> Answered<RunGraphResponse> {
    let Call { request, client, cancel } = call;
    service.requests.note(request.request_id)?;
    let handle = &request.session_handle;
    let is_open = request.create_worker_session_called;
    let session = service.session(handle, is_open, client.as_ref())?;
    let answer = run_in(service, &session, request, cancel);
    answer.map_err(|refusal| session.told(service.task(), refusal))
}

fn run_in(
    service: &WorkerService,
    session: &Arc<OpenSession>,
    request: RunGraphRequest,
    cancel: CancelToken,
) -> Answered<RunGraphResponse> {
    let graph = session.graph(&request.graph_handle)?;
    let number = request.step_id;
    let running = service.steps.enter(number, session).ok_or_else(|| {
        Refusal::new(Code::ABORTED, format!("step {number} is over")).marked(Mark::Derived)
    })?;
    if request.is_partial {
        let step = Arc::clone(&running.0);
        let partial = step.partial(|| Partial::start(graph, running, number))?;
        return partial::call(service, &partial, &step.rendezvous, request, &cancel);
    }
    let rendezvous = &running.0.rendezvous;
    let edges = service.edges();
    give(edges, rendezvous, request.send)?;
    let stats = request.exec_opts.filter(|it| it.record_timeline).map(|_| StepStatsSink::new());
    let options = StepOptions {
        id: number.cast_unsigned(),
        rendezvous: Some(Arc::clone(rendezvous) as Arc<dyn Rendezvous>),
        run: RunOptions {
            deadline: None,
            cancel: Some(cancel),
            trace: stats.clone().map(|stats| stats as Arc<dyn TraceSink>),
        },
    };
    if let Err(error) = graph.run(&options, &[], &mut Vec::new()) {
        return Err(failed(rendezvous, error));
    }
    let recv = request.recv_key.into_iter().map(|key| take(edges, rendezvous, key));
    let recv = recv.collect::<Answered<_>>()?;
    let step_stats = stats.map(|stats| session.timed(stats.finish(graph.nodes())));
    Ok(RunGraphResponse { recv, step_stats, ..RunGraphResponse::default() })
}

/// Ends what waits for values of a part that failed, and says whether its cause is at another task.
pub(super) fn failed(rendezvous: &StepRendezvous, error: RuntimeError) -> Refusal {
    let message = error.to_string();
    let is_derived = matches!(error.code(), Code::CANCELLED | Code::ABORTED)
        || rendezvous.is_of_other_task(error.code(), &message);
    rendezvous.abort(StepError::step(error.code(), message));
    let mark = if is_derived { Mark::Derived } else { Mark::None };
    Refusal::from(error).marked(mark)
}

/// Gives the values that the master sends to the part.
pub(super) fn give(
    edges: &Edges,
    rendezvous: &StepRendezvous,
    send: Vec<NamedTensorProto>,
) -> Answered<()> {
    for NamedTensorProto { name, tensor } in send {
        let key = keys::parse(edges, &name)?;
        let tensor = tensor_from_proto(&tensor.unwrap_or_default())?;
        let parcel = Parcel { tensor: Some(tensor), is_dead: false };
        let sent = rendezvous.send(&key, parcel);
        sent.map_err(|error| Refusal::new(error.code, error.message.to_string()))?;
    }
    Ok(())
}

/// Takes a value that the part has sent to the master.
fn take(edges: &Edges, rendezvous: &StepRendezvous, name: String) -> Answered<NamedTensorProto> {
    let key = keys::parse(edges, &name)?;
    let (sender, receiver) = mpsc::channel();
    rendezvous.recv_here(&key, Box::new(move |parcel| drop(sender.send(parcel))));
    let parcel = receiver.try_recv().map_err(|_| {
        let shown = cut(&key.edge.name().tensor);
        Refusal::invalid(format!(
            "the graph does not send '{shown}': expected a _Send with its key"
        ))
    })?;
    value(edges, name, parcel)
}

/// What is answered for a key.
pub(super) fn value(
    edges: &Edges,
    name: String,
    parcel: Result<Parcel, StepError>,
) -> Answered<NamedTensorProto> {
    let parcel = parcel.map_err(|error| Refusal::new(error.code, error.message.to_string()))?;
    let tensor = parcel.tensor.filter(|_| !parcel.is_dead).ok_or_else(|| {
        let key = keys::parse(edges, &name).ok();
        let tensor = key.map_or_else(|| name.clone(), |key| key.edge.name().tensor.clone());
        let shown = cut(&tensor);
        Refusal::invalid(format!("'{shown}' has no value: it is of a branch that was not taken"))
    })?;
    Ok(NamedTensorProto { name, tensor: Some(tensor_to_proto(&tensor)?) })
}
