//! Tensors of other tasks: over a link of the data plane, or over gRPC.

use super::{CONNECT, Peers, Use, call, within};
use crate::{
    dial::{Link, broken as causes},
    methods::{self, RECV_TENSOR},
    plane::{GreetRequest, Link as DataLink, Request as DataRequest},
    refusal::Refusal,
    transport::{Done, End},
    way::Way,
    wire::{self, Answer, AnswerReader},
    worker::collective,
};
use std::{
    future::{Future, poll_fn},
    sync::Arc,
};
use tenon_framework::{Code, DType, Tensor};
use tenon_host::collective::tensor_of_bytes;
use tenon_proto::{MarkRecvFinishedRequest, RecvBufRequest, RecvTensorRequest};
use tokio::sync::oneshot;
use tonic::Status;
use tower_service::Service;

impl Peers {
    /// The link with a task, which is made now if need be; `None` if its tensors go over gRPC.
    async fn reach(&self, task: &str) -> Result<Option<Arc<DataLink>>, Refusal> {
        let address = self.address_of(task)?;
        let guest = self.guest_of.is_some();
        let greet = async |request: GreetRequest| {
            let request = GreetRequest { guest, ..request };
            call::<methods::Greet>(self.channel(task, Use::Calls)?, request, task).await
        };
        self.hub.reach((task, address), &self.dialer, greet).await
    }

    /// Gets a tensor of a task with which there may be no link yet.
    pub(super) async fn fetch(
        &self,
        task: &str,
        request: &DataRequest,
        done: Done,
        over_grpc: impl Future<Output = Result<Answer, Refusal>>,
        ended: oneshot::Receiver<End>,
        counted: impl Fn(Way, &Answer),
    ) {
        let link = match self.reach(task).await {
            Ok(link) => link,
            Err(refusal) => return done(Err(refusal)),
        };
        let (sender, answer) = oneshot::channel();
        let withdraw = link
            .as_ref()
            .map(|link| link.ask(request, Box::new(move |answer| drop(sender.send(answer)))));
        let way = link.as_ref().map_or(Way::Grpc, |link| link.way());
        let gone = |_| Err(Refusal::new(Code::CANCELLED, "the request was withdrawn"));
        let answer = async {
            match link {
                Some(_) => answer.await.unwrap_or_else(gone),
                None => over_grpc.await,
            }
        };
        tokio::select! {
            answer = answer => {
                if let Ok(answer) = &answer {
                    counted(way, answer);
                }
                done(answer);
            }
            Ok(end) = ended => {
                if let Some(withdraw) = withdraw {
                    withdraw(end);
                }
            }
        }
    }

    pub(super) async fn tensor_by_grpc(
        &self,
        task: &str,
        request: &RecvTensorRequest,
    ) -> Result<Answer, Refusal> {
        let answer = recv_tensor(self.channel(task, Use::Tensors)?, task, request).await?;
        if answer.must_confirm
            && let Ok(calls) = self.channel(task, Use::Calls)
        {
            let finished = MarkRecvFinishedRequest { request_id: request.request_id };
            tokio::spawn(confirm(calls, finished, task.to_owned()));
        }
        Ok(answer)
    }

    pub(super) async fn buffer_by_grpc(
        &self,
        task: &str,
        request: RecvBufRequest,
        dtype: DType,
    ) -> Result<Answer, Refusal> {
        let channel = self.channel(task, Use::Calls)?;
        let answer = call::<methods::RecvBuf>(channel, request, task).await?;
        let bytes = collective::content(&answer)?;
        let tensor = Some(tensor_of_bytes(dtype, &bytes)?);
        Ok(Answer {
            tensor,
            is_dead: false,
            send_start_micros: answer.send_start_micros,
            must_confirm: false,
        })
    }
}

pub(super) fn bytes_of(answer: &Answer) -> usize {
    answer.tensor.as_ref().map_or(0, Tensor::byte_len)
}

/// The elements of an answer for a collective operation.
pub(super) fn elements(task: &str, dtype: DType, answer: Answer) -> Result<Tensor, Refusal> {
    let found = answer.tensor.as_ref().map(Tensor::dtype);
    answer.tensor.filter(|_| found == Some(dtype)).ok_or_else(|| {
        let found = found.map_or_else(|| "no value".to_owned(), |found| found.to_string());
        let message = format!("a collective expects {dtype} of {task}, found {found}");
        Refusal::new(Code::INTERNAL, message)
    })
}

/// Confirms that a tensor has come.
async fn confirm(calls: Link, finished: MarkRecvFinishedRequest, task: String) {
    // A task that does not hear it forgets the answer at the end of the step.
    let call = call::<methods::MarkRecvFinished>(calls, finished, &task);
    let _ = within(Some(CONNECT), &task, call).await;
}

/// Asks for a tensor, and reads it into its memory.
async fn recv_tensor(
    mut channel: Link,
    task: &str,
    request: &RecvTensorRequest,
) -> Result<Answer, Refusal> {
    let broken = |status: Status| Refusal::of_status(&status, task);
    let body = wire::request_body(request).map_err(broken)?;
    let request = http::Request::post(RECV_TENSOR)
        .version(http::Version::HTTP_2)
        .header(http::header::TE, "trailers")
        .header(http::header::CONTENT_TYPE, wire::CONTENT_TYPE)
        .body(body)
        .map_err(|error| broken(Status::internal(error.to_string())))?;
    let unreachable = |error| Refusal::unreachable(task, &causes(&error));
    poll_fn(|context| channel.poll_ready(context)).await.map_err(unreachable)?;
    let response = channel.call(request).await.map_err(unreachable)?;
    let (head, mut body) = response.into_parts();
    // An answer without a message has its status in the head.
    if let Some(status) = Status::from_header_map(&head.headers).filter(is_error) {
        return Err(broken(status));
    }
    let mut reader = AnswerReader::default();
    while let Some(frame) = wire::next_frame(&mut body).await {
        let frame = frame.map_err(|status| Refusal::unreachable(task, &causes(&status)))?;
        match frame.into_data() {
            Ok(data) => reader.take(&data).map_err(broken)?,
            Err(frame) => {
                let end = frame.trailers_ref().and_then(Status::from_header_map);
                if let Some(status) = end.filter(is_error) {
                    return Err(broken(status));
                }
            }
        }
    }
    reader.finish().map_err(broken)
}

fn is_error(status: &Status) -> bool {
    status.code() != tonic::Code::Ok
}
