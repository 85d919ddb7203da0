//! A client's calls to its master.

use super::world::World;
use crate::{
    clock,
    codec::ProtobufCodec,
    dial::{Dialer, Link},
    refusal::Refusal,
};
use http::uri::PathAndQuery;
use prost::Message;
use std::{sync::Arc, time::Duration};
use tenon_framework::{Code, Tensor};
use tenon_proto::{
    CloseSessionRequest, CloseSessionResponse, CreateSessionRequest, CreateSessionResponse,
    NamedTensorProto, RunOptions, RunStepRequest, RunStepResponse,
    convert::{tensor_from_proto, tensor_to_proto},
};
use tonic::{Request, client::Grpc};

/// How long the master may take to open a session.
const OPEN: Duration = Duration::from_secs(90);

/// A client with one session.
pub(super) struct Client {
    link: Link,
    session: String,
}

/// How a call ended: without an answer in its time, or with one.
pub(super) type Ended<R> = Option<Result<R, Refusal>>;

async fn call<Q, R>(link: &Link, path: &'static str, request: Q, limit: Duration) -> Ended<R>
where
    Q: Message + 'static,
    R: Message + Default + 'static,
{
    let answer = async {
        let mut grpc = Grpc::new(link.clone());
        let ready = grpc.ready().await;
        ready.map_err(|error| Refusal::unreachable("the master", &error.to_string()))?;
        let (path, codec) = (PathAndQuery::from_static(path), ProtobufCodec::<Q, R>::default());
        let answer = grpc.unary(Request::new(request), path, codec).await;
        answer
            .map(tonic::Response::into_inner)
            .map_err(|status| Refusal::of_status(&status, "the master"))
    };
    clock::within(limit, answer).await
}

impl Client {
    /// Opens a session.
    pub async fn open(world: &World) -> Ended<Client> {
        let (place, address) = world.client();
        let dialer = Dialer { simulated: Some(Arc::new(place)), ..Dialer::plain() };
        let endpoint = dialer.endpoint(&address).ok()?;
        let link = dialer.lazy(&endpoint);
        let request = CreateSessionRequest {
            graph_def: Some(world.graph()),
            ..CreateSessionRequest::default()
        };
        let answer: Ended<CreateSessionResponse> =
            call(&link, "/tensorflow.MasterService/CreateSession", request, OPEN).await;
        Some(answer?.map(|opened| Client { link, session: opened.session_handle }))
    }

    /// Runs a step; the fetched values are floats.
    pub async fn run(
        &self,
        x: Option<&[f32]>,
        (fetches, targets): (&[&str], &[&str]),
        deadline: Option<Duration>,
        limit: Duration,
    ) -> Ended<Vec<Vec<f32>>> {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let millis = deadline.map_or(0, |it| i64::try_from(it.as_millis()).unwrap_or(i64::MAX));
        let options = RunOptions { timeout_in_ms: millis, ..RunOptions::default() };
        let feed = x.map(|x| NamedTensorProto {
            name: "x:0".to_owned(),
            tensor: Tensor::from_slice(&[x.len() as i64], x)
                .ok()
                .and_then(|it| tensor_to_proto(&it).ok()),
        });
        let request = RunStepRequest {
            session_handle: self.session.clone(),
            feed: feed.into_iter().collect(),
            fetch: names(fetches),
            target: names(targets),
            options: Some(options),
            store_errors_in_response_body: true,
            ..RunStepRequest::default()
        };
        let path = "/tensorflow.MasterService/RunStep";
        let answer: Ended<RunStepResponse> = call(&self.link, path, request, limit).await;
        Some(answer?.and_then(fetched))
    }

    /// Closes the session.
    pub async fn close(self, limit: Duration) -> Ended<()> {
        let request = CloseSessionRequest { session_handle: self.session };
        let path = "/tensorflow.MasterService/CloseSession";
        let answer: Ended<CloseSessionResponse> = call(&self.link, path, request, limit).await;
        Some(answer?.map(drop))
    }
}

fn fetched(answer: RunStepResponse) -> Result<Vec<Vec<f32>>, Refusal> {
    if answer.status_code != 0 {
        return Err(Refusal::new(Code(answer.status_code), answer.status_error_message));
    }
    let value = |named: NamedTensorProto| {
        let tensor = tensor_from_proto(&named.tensor.unwrap_or_default())?;
        let values = tensor.as_slice::<f32>();
        values.map(<[f32]>::to_vec).map_err(|error| Refusal::invalid(error.to_string()))
    };
    answer.tensor.into_iter().map(value).collect()
}
