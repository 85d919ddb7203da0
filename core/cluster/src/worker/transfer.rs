//! Tensors that other tasks ask for.

use super::{Answered, WorkerService};
use crate::{
    keys,
    refusal::{Mark, Refusal},
    rendezvous::StepRendezvous,
    wire::Answer,
};
use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use tenon_framework::{Code, device::base::DeviceBase};
use tenon_proto::RecvTensorRequest;
use tenon_runtime::{
    StepError,
    rendezvous::{Key, Parcel, Rendezvous},
};
use tokio::sync::oneshot;

/// Ends a step whose receiver gave up, as TensorFlow's workers do: it is cancelled, or its connection broke.
struct GivenUp(Option<Arc<StepRendezvous>>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        if let Some(rendezvous) = self.0.take() {
            let why = "the task that asked for a tensor of the step gave it up";
            rendezvous.abort(StepError::step(Code::CANCELLED, why));
        }
    }
}

impl WorkerService {
    /// The value of a key, when it is sent: the step may not have begun here.
    pub async fn recv_tensor(&self, request: RecvTensorRequest) -> Answered<Answer> {
        self.requests.note(request.request_id)?;
        let key = keys::parse(self.worker.runtime().edges(), &request.rendezvous_key)?;
        self.check_sender(&key)?;
        let step = self.steps.find(request.step_id).ok_or_else(|| {
            let message = format!("step {} is over: it was cleaned up", request.step_id);
            Refusal::new(Code::ABORTED, message).marked(Mark::Derived)
        })?;
        let (sender, value) = oneshot::channel();
        step.rendezvous.recv_here(&key, Box::new(move |parcel| drop(sender.send(parcel))));
        let mut given_up = GivenUp(Some(Arc::clone(&step.rendezvous)));
        let parcel = value.await;
        given_up.0 = None;
        let derived = |error: StepError| {
            Refusal::new(error.code, error.message.to_string()).marked(Mark::Derived)
        };
        let gone = |_| Refusal::new(Code::ABORTED, "the step ended without it");
        Ok(answer(parcel.map_err(gone)?.map_err(derived)?))
    }

    /// Checks that the sender is a device of this worker, and of this incarnation.
    fn check_sender(&self, key: &Key) -> Answered<()> {
        let name = key.edge.name();
        let devices = self.worker.runtime().devices().devices();
        let Some(device) = devices.iter().find(|device| device.full_name() == name.source) else {
            let there: Vec<&str> = devices.iter().map(|device| device.full_name()).collect();
            return Err(Refusal::invalid(format!(
                "{name}: the sender is not a device of this worker, which are {}",
                there.join(", ")
            )));
        };
        if device.incarnation() == name.incarnation {
            return Ok(());
        }
        let (expected, found) = (name.incarnation, device.incarnation());
        let message = format!(
            "RecvTensor expects a different device incarnation: {expected} vs. {found}. Your worker job (\"{}\") was probably \
             restarted",
            self.task
        );
        Err(Refusal::new(Code::ABORTED, message).marked(Mark::Restarted))
    }
}

/// What is sent for a value.
fn answer(parcel: Parcel) -> Answer {
    let Parcel { tensor, is_dead } = parcel;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let send_start_micros = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
    Answer { tensor, is_dead, send_start_micros }
}
