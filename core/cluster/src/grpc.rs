//! The methods of TensorFlow's services: from a path to the answer of the master or the worker.
//!
//! Methods block, so each runs on a thread of its own, but for steps that are known: one that does nothing is done at once, and
//! one whose parts all run elsewhere is a future. A call that ends before its method (the client is gone, or its deadline passed)
//! cancels the step that the method runs.

use crate::{
    admitted::Admitted,
    call::{Call, Need},
    client::Client,
    clock,
    codec::ProtobufCodec,
    gate::{Counted, Gate, Who},
    master::Master,
    methods::{self, Method, RECV_TENSOR, WORKER},
    plane::{GREET, GreetRequest, Hub},
    refusal::Refusal,
    turns::{Turn, Turns},
    wire,
    worker::WorkerService,
};
use prost::Message;
use std::{
    convert::Infallible,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};
use tenon_proto::{GetStatusRequest, MAX_MESSAGE_BYTES};
use tenon_runtime::CancelToken;
use tonic::{
    Request, Response, Status,
    body::Body,
    server::{Grpc, UnaryService},
};
use tower_service::Service;

/// The beginning of the path of every method.
const MASTER: &str = "/tensorflow.MasterService/";

type Answer<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Most bytes of a request for a tensor.
const RECV_REQUEST: usize = 1 << 20;

/// The methods of the worker that the audit log has; the others are parts of steps.
const RECORDED: [&str; 4] =
    ["CreateWorkerSession", "DeleteWorkerSession", "RegisterGraph", "CleanupAll"];

/// The services of one server.
#[derive(Clone)]
pub(crate) struct Services {
    pub master: Arc<Master>,
    pub worker: Arc<WorkerService>,
    pub gate: Arc<Gate>,
    pub hub: Arc<Hub>,
    pub turns: Arc<Turns>,
}

impl Service<http::Request<Body>> for Services {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer<Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let services = self.clone();
        // The transport has the same limit and would answer CANCELLED; it asks this future first.
        let limit =
            request.headers().get("grpc-timeout").and_then(|value| duration(value.to_str().ok()?));
        let who = match services.gate.admit(&request) {
            Ok(who) => who,
            Err(status) => return Box::pin(async move { Ok(status.into_http()) }),
        };
        let answer = answer(services, who, request);
        let Some(limit) = limit else { return Box::pin(async move { Ok(answer.await) }) };
        let answer = clock::within(limit, answer);
        Box::pin(async move {
            Ok(answer.await.unwrap_or_else(|| {
                Status::deadline_exceeded(
                    "the deadline of the call passed before its answer was there",
                )
                .into_http()
            }))
        })
    }
}

/// The duration in a header `grpc-timeout`: at most 8 digits and a unit, as gRPC's protocol over HTTP/2
/// has it.
fn duration(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number = (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let value: u64 = is_number.then(|| digits.parse().ok())??;
    match unit {
        "H" => Some(Duration::from_secs(value * 3600)),
        "M" => Some(Duration::from_secs(value * 60)),
        "S" => Some(Duration::from_secs(value)),
        "m" => Some(Duration::from_millis(value)),
        "u" => Some(Duration::from_micros(value)),
        "n" => Some(Duration::from_nanos(value)),
        _ => None,
    }
}

async fn answer(
    services: Services,
    who: Arc<Who>,
    request: http::Request<Body>,
) -> http::Response<Body> {
    let path = request.uri().path().to_owned();
    let Services { master, worker, gate, hub, turns } = services;
    if path == GREET {
        let greeted = async |request: GreetRequest| Ok(hub.greeted(&request));
        return waiting(request, greeted).await;
    }
    let turn = match turns.take(&path) {
        Ok(turn) => turn,
        Err(refusal) => return Status::from(refusal).into_http(),
    };
    let Some(method) = path.strip_prefix(WORKER) else {
        let (head, body) = request.into_parts();
        let (body, taken) = Counted::new(body, &gate, &who);
        let request = http::Request::from_parts(head, Body::new(body));
        let client = Arc::new(Admitted { master, gate, who });
        let answer = answer_of_master(client, &path, request, turn).await;
        drop(taken);
        return answer;
    };
    let answer = answer_of_worker(worker, method, request, turn).await;
    if method == "RunGraph" {
        gate.served.parts.fetch_add(1, Ordering::Relaxed);
    }
    if RECORDED.contains(&method) {
        let status = Status::from_header_map(answer.headers());
        let (code, why) = status.as_ref().map_or((0, ""), |it| (it.code() as i32, it.message()));
        gate.record(&who, method, tenon_framework::Code(code), why, &[]);
    }
    answer
}

async fn answer_of_master(
    client: Arc<Admitted>,
    path: &str,
    request: http::Request<Body>,
    turn: Turn,
) -> http::Response<Body> {
    match path.strip_prefix(MASTER) {
        Some("CreateSession") => unary(client, request, turn, Admitted::create_session).await,
        Some("ExtendSession") => unary(client, request, turn, Admitted::extend_session).await,
        Some("PartialRunSetup") => unary(client, request, turn, Admitted::partial_run_setup).await,
        Some("RunStep") => {
            let method = Answering {
                need: Admitted::need,
                run: Admitted::run_step,
                run_soon: Some(|client, call| Box::pin(Admitted::run_step_soon(client, call))),
            };
            unary_by(client, request, turn, method).await
        }
        Some("CloseSession") => unary(client, request, turn, Admitted::close_session).await,
        Some("ListDevices") => unary(client, request, turn, Admitted::list_devices).await,
        Some("Reset") => unary(client, request, turn, Admitted::reset).await,
        Some("MakeCallable") => unary(client, request, turn, Admitted::make_callable).await,
        Some("RunCallable") => unary(client, request, turn, Admitted::run_callable).await,
        Some("ReleaseCallable") => unary(client, request, turn, Admitted::release_callable).await,
        _ => Status::unimplemented(format!(
            "there is no method {path}: this server has those of tensorflow.MasterService and tensorflow.WorkerService"
        ))
        .into_http(),
    }
}

async fn answer_of_worker(
    worker: Arc<WorkerService>,
    method: &str,
    request: http::Request<Body>,
    turn: Turn,
) -> http::Response<Body> {
    match method {
        // It says whether the task is there, so it is answered while all threads are busy, too.
        "GetStatus" => {
            waiting(request, |_: GetStatusRequest| async move { Ok(worker.status()) }).await
        }
        "CreateWorkerSession" => {
            of_worker::<methods::CreateWorkerSession>(worker, request, turn).await
        }
        "DeleteWorkerSession" => {
            of_worker::<methods::DeleteWorkerSession>(worker, request, turn).await
        }
        "RegisterGraph" => of_worker::<methods::RegisterGraph>(worker, request, turn).await,
        "DeregisterGraph" => of_worker::<methods::DeregisterGraph>(worker, request, turn).await,
        "RunGraph" => of_worker::<methods::RunGraph>(worker, request, turn).await,
        "CleanupGraph" => of_worker::<methods::CleanupGraph>(worker, request, turn).await,
        "CleanupAll" => of_worker::<methods::CleanupAll>(worker, request, turn).await,
        "MarkRecvFinished" => of_worker::<methods::MarkRecvFinished>(worker, request, turn).await,
        "Logging" => of_worker::<methods::Logging>(worker, request, turn).await,
        "GetStepSequence" => of_worker::<methods::GetStepSequence>(worker, request, turn).await,
        "CompleteGroup" => {
            waiting(request, |it| async move { worker.complete_group(it).await }).await
        }
        "CompleteInstance" => {
            waiting(request, |it| async move { worker.complete_instance(it).await }).await
        }
        "RecvBuf" => waiting(request, |it| async move { worker.recv_buf(it).await }).await,
        "RecvTensor" => {
            recv_tensor(worker, request).await.unwrap_or_else(|status| status.into_http())
        }
        _ => {
            let why = methods::missing(method).unwrap_or("the service has no such method");
            Status::unimplemented(format!("{WORKER}{method}: {why}")).into_http()
        }
    }
}

async fn of_worker<M: Method>(
    worker: Arc<WorkerService>,
    request: http::Request<Body>,
    turn: Turn,
) -> http::Response<Body> {
    unary(worker, request, turn, M::answer).await
}

/// Answers a request for a tensor, which may come before its step: no thread waits for it.
async fn recv_tensor(
    worker: Arc<WorkerService>,
    request: http::Request<Body>,
) -> Result<http::Response<Body>, Status> {
    debug_assert_eq!(request.uri().path(), RECV_TENSOR);
    let mut body = request.into_body();
    let request = wire::read_message(&mut body, RECV_REQUEST).await?;
    let answer = worker.recv_tensor(request).await?;
    Ok(wire::answered(wire::answer_frames(&answer)?))
}

/// Answers a request that waits for other tasks: no thread waits with it.
async fn waiting<Q, R, F>(
    request: http::Request<Body>,
    method: impl FnOnce(Q) -> F,
) -> http::Response<Body>
where
    Q: Message + Default,
    R: Message,
    F: Future<Output = Result<R, Refusal>>,
{
    let mut body = request.into_body();
    let answered = async {
        let request = wire::read_message(&mut body, RECV_REQUEST).await?;
        let answer = method(request).await?;
        Ok(wire::answered(wire::message_frames(&answer)?))
    };
    answered.await.unwrap_or_else(|status: Status| status.into_http())
}

/// Reads the request of a unary call, runs its method, and writes the answer.
async fn unary<S, Q, R>(
    service: Arc<S>,
    request: http::Request<Body>,
    turn: Turn,
    method: fn(&S, Call<Q>) -> Result<R, Refusal>,
) -> http::Response<Body>
where
    S: Send + Sync + 'static,
    Q: Message + Default + 'static,
    R: Message + 'static,
{
    let method = Answering { need: |_, _| Need::Thread, run: method, run_soon: None };
    unary_by(service, request, turn, method).await
}

/// A method for calls that need answers alone.
type Soon<S, Q, R> = fn(Arc<S>, Call<Q>) -> Answer<Result<R, Refusal>>;

/// How a method is run.
struct Answering<S, Q, R> {
    need: fn(&S, &Q) -> Need,
    run: fn(&S, Call<Q>) -> Result<R, Refusal>,
    run_soon: Option<Soon<S, Q, R>>,
}

/// As [`unary`], for a method some of whose calls need no thread.
async fn unary_by<S, Q, R>(
    service: Arc<S>,
    request: http::Request<Body>,
    turn: Turn,
    method: Answering<S, Q, R>,
) -> http::Response<Body>
where
    S: Send + Sync + 'static,
    Q: Message + Default + 'static,
    R: Message + 'static,
{
    let mut grpc = Grpc::new(ProtobufCodec::<R, Q>::default())
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    grpc.unary(One { service, method, turn, messages: PhantomData }, request).await
}

/// A method of a service, as one call of it.
struct One<S, Q, R> {
    service: Arc<S>,
    method: Answering<S, Q, R>,
    /// Given back when the method has returned, which may be after its client is gone.
    turn: Turn,
    messages: PhantomData<fn(Q) -> R>,
}

impl<S, Q, R> UnaryService<Q> for One<S, Q, R>
where
    S: Send + Sync + 'static,
    Q: Send + 'static,
    R: Send + 'static,
{
    type Response = R;
    type Future = Answer<Result<Response<R>, Status>>;

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let (service, method) = (Arc::clone(&self.service), self.method.run);
        let need = (self.method.need)(&service, request.get_ref());
        let turn = self.turn.take();
        let client = request.extensions().get::<Client>().cloned();
        let cancel = CancelToken::new();
        let abandoned = CancelOnDrop(Some(cancel.clone()));
        let call = Call { request: request.into_inner(), client, cancel };
        match (need, self.method.run_soon) {
            (Need::Nothing, _) => {
                let answer = method(&service, call);
                drop(turn);
                abandoned.keep();
                let answer = answer.map(Response::new).map_err(Status::from);
                return Box::pin(std::future::ready(answer));
            }
            (Need::Answers, Some(run_soon)) => {
                let answer = run_soon(service, call);
                return Box::pin(async move {
                    let answer = answer.await;
                    drop(turn);
                    abandoned.keep();
                    Ok(Response::new(answer?))
                });
            }
            _ => {}
        }
        Box::pin(async move {
            let run = move || {
                let answer = method(&service, call);
                drop(turn);
                answer
            };
            let answer = tokio::task::spawn_blocking(run).await;
            abandoned.keep();
            match answer {
                Ok(answer) => Ok(Response::new(answer?)),
                Err(error) => Err(Status::internal(format!("the method did not return: {error}"))),
            }
        })
    }
}

/// Cancels a call's step when it is dropped before the call's answer is there.
struct CancelOnDrop(Option<CancelToken>);

impl CancelOnDrop {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(token) = &self.0 {
            token.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::duration;
    use std::time::Duration;

    #[test]
    fn the_units_of_a_time_limit() {
        let units = [("2H", 7_200_000_000_000), ("3M", 180_000_000_000), ("4S", 4_000_000_000)];
        let small = [("50m", 50_000_000), ("60u", 60_000), ("99999999n", 99_999_999)];
        for (text, nanos) in units.into_iter().chain(small) {
            assert_eq!(duration(text), Some(Duration::from_nanos(nanos)), "{text}");
        }
        for text in ["", "5", "m", "-5m", "5x", "1.5S", "123456789m", "5\u{b5}"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
