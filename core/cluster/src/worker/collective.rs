//! Collective operations that this task leads, and tensors of them that other tasks ask for.
//!
//! No thread waits: a request that is given up withdraws what it asked for.

use super::{Answered, WorkerService, transfer::Known};
use crate::{
    call::Call,
    refusal::{Mark, Refusal},
};
use prost::{Message, bytes::Bytes};
use std::time::{SystemTime, UNIX_EPOCH};
use tenon_framework::abi::CollectiveKind;
use tenon_framework::{Code, DType, KernelError, Tensor, text::cut};
use tenon_host::collective::{
    Agreed, BufferKey, GroupDevice, GroupRequest, InstanceKey, InstanceRequest,
};
use tenon_proto::{
    CompleteGroupRequest, CompleteGroupResponse, CompleteInstanceRequest, CompleteInstanceResponse,
    DeviceAttributes, GetStepSequenceRequest, GetStepSequenceResponse, RecvBufRequest,
    RecvBufResponse, StepSequence,
};
use tokio::sync::oneshot;

/// The type of the content of an answer to RecvBuf.
const CONTENT: &str = "type.googleapis.com/tensorflow.RecvBufRespExtra";

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

/// `tensorflow.RecvBufRespExtra`.
#[derive(Clone, PartialEq, Message)]
struct Content {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    tensor_content: Vec<Bytes>,
}

/// What a member gets that waits for one which gave the operation up.
pub(super) fn given_up() -> KernelError {
    KernelError::new(Code::CANCELLED, "a member of the collective gave it up")
}

/// The frame and the iteration of a node, as the name of an operation carries them.
pub(super) fn iteration_text((frame, iteration): (u64, u64)) -> String {
    format!("{frame}:{iteration}")
}

fn iteration_of(text: &str) -> Option<(u64, u64)> {
    let (frame, iteration) = text.split_once(':')?;
    Some((frame.parse().ok()?, iteration.parse().ok()?))
}

/// The text of a key, with what its receiver agrees to.
pub(super) fn key_text(key: &BufferKey, agreed: Agreed) -> String {
    let BufferKey { instance: InstanceKey { group, instance, iteration, .. }, from, to, number } =
        key;
    let iteration = iteration_text(*iteration);
    let Agreed { group: members, values } = agreed;
    format!("collective;{group};{instance};{iteration};{from};{to};{number};{members:x}:{values:x}")
}

/// The numbers of what a receiver agrees to.
fn agreed_of(text: &str) -> Option<Agreed> {
    let (members, values) = text.split_once(':')?;
    let [group, values] = [members, values].map(|it| u64::from_str_radix(it, 16).ok());
    Some(Agreed { group: group?, values: values? })
}

/// The key of a text, and what its receiver agrees to.
fn key_of(step: u64, text: &str) -> Option<(BufferKey, Agreed)> {
    let mut parts = text.strip_prefix("collective;")?.split(';');
    let mut next = || parts.next();
    let (group, instance) = (next()?.parse().ok()?, next()?.parse().ok()?);
    let iteration = iteration_of(next()?)?;
    let (from, to, number) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
    let agreed = agreed_of(next()?)?;
    let instance = InstanceKey { step, group, instance, iteration };
    parts.next().is_none().then_some((BufferKey { instance, from, to, number }, agreed))
}

/// The bytes of an answer.
///
/// # Errors
/// It has none.
pub(crate) fn content(answer: &RecvBufResponse) -> Result<Vec<u8>, KernelError> {
    let wrong = |why: String| KernelError::internal(format!("the answer to RecvBuf: {why}"));
    let options = answer.transport_options.as_deref().unwrap_or_default();
    let any = Any::decode(options).map_err(|error| wrong(error.to_string()))?;
    let content = Content::decode(any.value).map_err(|error| wrong(error.to_string()))?;
    Ok(content.tensor_content.concat())
}

/// What is sent for a tensor.
fn answer_of(tensor: &Tensor) -> Answered<RecvBufResponse> {
    let bytes = tensor.as_bytes().map_err(|error| {
        Refusal::new(Code::INTERNAL, format!("a tensor of a collective: {error}"))
    })?;
    let content = Content { tensor_content: vec![Bytes::copy_from_slice(bytes)] };
    let any = Any { type_url: CONTENT.to_owned(), value: content.encode_to_vec().into() };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(RecvBufResponse {
        num_bytes: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
        transport_options: Some(any.encode_to_vec()),
        send_start_micros: i64::try_from(now.as_micros()).unwrap_or(i64::MAX),
        ..RecvBufResponse::default()
    })
}

/// Withdraws a request that its client gives up.
struct Withdraw<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for Withdraw<F> {
    fn drop(&mut self) {
        if let Some(withdraw) = self.0.take() {
            withdraw();
        }
    }
}

/// The end of a request that the table of groups answers.
fn ended<T>(answer: Result<Result<T, KernelError>, oneshot::error::RecvError>) -> Answered<T> {
    let gone = |_| Refusal::new(Code::CANCELLED, "the collective ended without an answer");
    let derived = |error: KernelError| {
        let follows = matches!(error.code, Code::CANCELLED | Code::ABORTED);
        Refusal::from(error).marked(if follows { Mark::Derived } else { Mark::None })
    };
    answer.map_err(gone)?.map_err(derived)
}

impl WorkerService {
    /// The numbers of the next steps of graphs whose masters agree on them.
    pub fn get_step_sequence(
        &self,
        call: Call<GetStepSequenceRequest>,
    ) -> Answered<GetStepSequenceResponse> {
        let next =
            |graph_key| StepSequence { graph_key, next_step_id: self.sequences.next(graph_key) };
        let step_sequence = call.request.graph_key.into_iter().map(next).collect();
        Ok(GetStepSequenceResponse { step_sequence })
    }

    /// The members of a group, once all have joined.
    pub async fn complete_group(
        &self,
        request: CompleteGroupRequest,
    ) -> Answered<CompleteGroupResponse> {
        let device = request.device_attributes.unwrap_or_default();
        let key = request.group_key;
        let joins = GroupRequest {
            key,
            size: request.group_size,
            kind: CollectiveKind(request.collective_type.cast_unsigned()),
            device: GroupDevice {
                name: device.name,
                device_type: device.device_type,
                incarnation: device.incarnation,
            },
        };
        let (sender, answer) = oneshot::channel();
        let groups = &self.collectives.groups;
        let number = groups.join(joins, Box::new(move |group| drop(sender.send(group))));
        let mut withdraw = Withdraw(Some(|| groups.leave(key, number)));
        let group = answer.await;
        withdraw.0 = None;
        let group = ended(group)?;
        let tasks: std::collections::BTreeSet<&str> =
            group.devices.iter().map(|it| crate::rendezvous::task_of(&it.name)).collect();
        let described = |it: &GroupDevice| DeviceAttributes {
            name: it.name.clone(),
            device_type: it.device_type.clone(),
            incarnation: it.incarnation,
            ..DeviceAttributes::default()
        };
        Ok(CompleteGroupResponse {
            group_key: key,
            group_size: request.group_size,
            device_type: request.device_type,
            num_tasks: i32::try_from(tasks.len()).unwrap_or(i32::MAX),
            communicator_key: Vec::new(),
            device_attributes: group.devices.iter().map(described).collect(),
        })
    }

    /// The source of a broadcast, once all members of an operation have joined.
    pub async fn complete_instance(
        &self,
        request: CompleteInstanceRequest,
    ) -> Answered<CompleteInstanceResponse> {
        let joins = self.instance(request)?;
        let key = joins.key;
        let (sender, answer) = oneshot::channel();
        let groups = &self.collectives.groups;
        let number = groups.join_instance(joins, Box::new(move |it| drop(sender.send(it))));
        let withdraw = || groups.leave_instance(&key, number, &given_up());
        let mut withdraw = Withdraw(Some(withdraw));
        let source = answer.await;
        withdraw.0 = None;
        let source_rank = i32::try_from(ended(source)?).unwrap_or(0);
        Ok(CompleteInstanceResponse { instance_key: key.instance, source_rank })
    }

    /// The operation that a member of another task joins.
    fn instance(&self, request: CompleteInstanceRequest) -> Answered<InstanceRequest> {
        let iteration = iteration_of(&request.name).ok_or_else(|| {
            Refusal::invalid(format!(
                "collective '{}': expected FRAME:ITERATION as its name, as tasks of Tenon send it; a group cannot have \
                 tasks of other kinds",
                cut(&request.name)
            ))
        })?;
        let group = self.collectives.groups.complete(request.group_key).ok_or_else(|| {
            let key = request.group_key;
            let message = format!(
                "group {key} is not complete at its leader: a member or the leader was started anew; run the step again"
            );
            Refusal::new(Code::ABORTED, message).marked(Mark::Restarted)
        })?;
        let place = group.place_of(&request.device).ok_or_else(|| {
            let (device, key) = (cut(&request.device), request.group_key);
            Refusal::invalid(format!("device '{device}' is not a member of group {key}"))
        })?;
        let dims = request.shape.unwrap_or_default().dim;
        Ok(InstanceRequest {
            key: InstanceKey {
                step: request.step_id.cast_unsigned(),
                group: request.group_key,
                instance: request.instance_key,
                iteration,
            },
            size: group.devices.len(),
            kind: CollectiveKind(request.r#type.cast_unsigned()),
            dtype: DType(request.data_type.cast_unsigned()),
            dims: dims.into_iter().map(|dim| dim.size).collect(),
            is_source: request.is_source,
            device: (request.device, place),
        })
    }

    /// A tensor of a collective, when a member of this task has sent it: the step may not have begun here.
    pub async fn recv_buf(&self, request: RecvBufRequest) -> Answered<RecvBufResponse> {
        let (sender, tensor) = oneshot::channel();
        let number = self.await_buffer(&request, move |it| drop(sender.send(it)))?;
        let mut withdraw = Withdraw(Some(|| self.give_up_buffers(number)));
        let tensor = tensor.await;
        withdraw.0 = None;
        let gone = |_| Refusal::new(Code::CANCELLED, "the collective ended without an answer");
        answer_of(&tensor.map_err(gone)??)
    }

    /// Ends what members of a step exchange here: one of them gave it up.
    pub(super) fn give_up_buffers(&self, step: u64) {
        self.collectives.abort_step(step, &given_up());
    }

    /// Calls `done` with a tensor of a collective, when a member of this task has sent it; the step.
    pub(super) fn await_buffer(
        &self,
        request: &RecvBufRequest,
        done: impl FnOnce(Answered<Tensor>) + Send + 'static,
    ) -> Answered<u64> {
        self.requests.note(request.request_id)?;
        let number = request.step_id;
        let text = &request.buf_rendezvous_key;
        let (key, agreed) = key_of(number.cast_unsigned(), text).ok_or_else(|| {
            Refusal::invalid(format!(
                "key '{}': expected collective;GROUP;INSTANCE;FRAME:ITERATION;FROM;TO;NUMBER;MEMBERS:VALUES, as tasks of \
                 Tenon send it; give all tasks one version",
                cut(text)
            ))
        })?;
        self.check_member(&request.src_device, request.src_incarnation)?;
        if self.steps.find(number).is_none() {
            // A step that is over is not begun anew; but its master may have been another one, and this the last tensor.
            let tensor = self.collectives.take_left(&key).ok_or_else(|| {
                let message = format!("step {number} is over: it was cleaned up");
                Refusal::new(Code::ABORTED, message).marked(Mark::Derived)
            })?;
            done(Ok(tensor));
            return Ok(number.cast_unsigned());
        }
        let derived = |error: KernelError| Refusal::from(error).marked(Mark::Derived);
        self.collectives.take(&key, agreed, Box::new(move |it| done(it.map_err(derived))));
        if self.steps.find(number).is_none() {
            // It was cleaned up meanwhile: nobody else ends what waits.
            self.collectives.end_step(number.cast_unsigned());
        }
        Ok(number.cast_unsigned())
    }

    /// Checks that a member is a device of this worker, and of this incarnation.
    fn check_member(&self, device: &str, incarnation: u64) -> Answered<()> {
        self.check_device(device, incarnation, "RecvBuf").map_err(|known| match known {
            Known::Restarted(refusal) => refusal,
            Known::No(_) => {
                let task = &self.task;
                Refusal::invalid(format!("device '{}' is not one of {task}", cut(device)))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_written() {
        let instance = InstanceKey { step: 7, group: -1, instance: 3, iteration: (u64::MAX, 2) };
        let key = BufferKey { instance, from: 0, to: 1, number: 9 };
        let agreed = Agreed { group: u64::MAX, values: 10 };
        let text = key_text(&key, agreed);
        assert_eq!(text, "collective;-1;3;18446744073709551615:2;0;1;9;ffffffffffffffff:a");
        assert_eq!(key_of(7, &text), Some((key, agreed)));
        for wrong in [
            "",
            "collective;1",
            "collective;1;2;3;4;5;6;7:8",
            "collective;1;2;3:4;5;6;7",
            "collective;1;2;3:4;5;6;7;8",
            "collective;1;2;3:4;5;6;7;8:9;10",
        ] {
            assert_eq!(key_of(7, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_tensor_travels_as_bytes() {
        let tensor = Tensor::from_slice(&[3], &[1.5f32, 2.5, -1.0]).unwrap();
        let answer = answer_of(&tensor).unwrap();
        assert_eq!(answer.num_bytes, 12);
        assert_eq!(content(&answer).unwrap(), tensor.as_bytes().unwrap());
        assert!(content(&RecvBufResponse::default()).unwrap().is_empty());
    }
}
