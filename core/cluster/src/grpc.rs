//! The methods of TensorFlow's services: from a path to the master's answer.
//!
//! Methods block, so each runs on a thread of its own. A call that ends before its method (the client is gone, or its
//! deadline passed) cancels the step that the method runs.

use crate::{client::Client, codec::ProtobufCodec, master::Master, refusal::Refusal};
use prost::Message;
use std::{
    convert::Infallible,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tenon_proto::MAX_MESSAGE_BYTES;
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

/// The argument of a method of the master.
pub(crate) struct Call<Q> {
    pub request: Q,
    /// The connection; `None` for a caller in this process.
    pub client: Option<Client>,
    /// Cancelled when no client waits for the answer any more.
    pub cancel: CancelToken,
}

/// The services of one server.
#[derive(Clone)]
pub(crate) struct Services {
    pub master: Arc<Master>,
}

impl Service<http::Request<Body>> for Services {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer<Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let master = Arc::clone(&self.master);
        // The transport has the same limit and would answer CANCELLED; it asks this future first.
        let limit =
            request.headers().get("grpc-timeout").and_then(|value| duration(value.to_str().ok()?));
        let answer = answer(master, request);
        let Some(limit) = limit else { return Box::pin(async move { Ok(answer.await) }) };
        let answer = tokio::time::timeout(limit, answer);
        Box::pin(async move {
            Ok(answer.await.unwrap_or_else(|_| {
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

async fn answer(master: Arc<Master>, request: http::Request<Body>) -> http::Response<Body> {
    let path = request.uri().path().to_owned();
    match path.strip_prefix(MASTER) {
        Some("CreateSession") => unary(master, request, Master::create_session).await,
        Some("ExtendSession") => unary(master, request, Master::extend_session).await,
        Some("PartialRunSetup") => unary(master, request, Master::partial_run_setup).await,
        Some("RunStep") => unary(master, request, Master::run_step).await,
        Some("CloseSession") => unary(master, request, Master::close_session).await,
        Some("ListDevices") => unary(master, request, Master::list_devices).await,
        Some("Reset") => unary(master, request, Master::reset).await,
        Some("MakeCallable") => unary(master, request, Master::make_callable).await,
        Some("RunCallable") => unary(master, request, Master::run_callable).await,
        Some("ReleaseCallable") => unary(master, request, Master::release_callable).await,
        _ => Status::unimplemented(format!(
            "there is no method {path}: this server has those of tensorflow.MasterService"
        ))
        .into_http(),
    }
}

/// Reads the request of a unary call, runs its method, and writes the answer.
async fn unary<Q, R>(
    master: Arc<Master>,
    request: http::Request<Body>,
    method: fn(&Master, Call<Q>) -> Result<R, Refusal>,
) -> http::Response<Body>
where
    Q: Message + Default + 'static,
    R: Message + 'static,
{
    let mut grpc = Grpc::new(ProtobufCodec::<R, Q>::default())
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    grpc.unary(Method { master, method, messages: PhantomData }, request).await
}

/// A method of the master, as one call of it.
struct Method<Q, R> {
    master: Arc<Master>,
    method: fn(&Master, Call<Q>) -> Result<R, Refusal>,
    messages: PhantomData<fn(Q) -> R>,
}

impl<Q: Send + 'static, R: Send + 'static> UnaryService<Q> for Method<Q, R> {
    type Response = R;
    type Future = Answer<Result<Response<R>, Status>>;

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let (master, method) = (Arc::clone(&self.master), self.method);
        let client = request.extensions().get::<Client>().cloned();
        let cancel = CancelToken::new();
        let abandoned = CancelOnDrop(Some(cancel.clone()));
        let call = Call { request: request.into_inner(), client, cancel };
        Box::pin(async move {
            let run = move || method(&master, call);
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
