//! Tensors that other tasks ask for.

use super::{Answered, WorkerService, answers::Begun, steps::Steps};
use crate::{
    keys,
    plane::Hold,
    refusal::{Mark, Refusal},
    rendezvous::StepRendezvous,
    transport::End,
    wire::Answer,
};
use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use tenon_framework::{Code, device::base::DeviceBase};
use tenon_host::devices::PluginDevice;
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

/// Why a device is not one of this worker.
pub(super) enum Known {
    /// It is one of the worker that was here before.
    Restarted(Refusal),
    /// It has none of this name: these are there.
    No(String),
}

/// A request that waits for its value.
pub(super) struct Awaited {
    rendezvous: Arc<StepRendezvous>,
    key: Key,
}

impl Awaited {
    /// Ends the request.
    pub fn end(self, end: End) {
        match end {
            End::Settled => self.rendezvous.forget(&self.key),
            End::GivenUp => drop(GivenUp(Some(self.rendezvous))),
        }
    }
}

impl Steps {
    /// Calls `done` with the value of a key, when it is sent: the step may not have begun here.
    pub(super) fn await_tensor(
        &self,
        number: i64,
        key: Key,
        done: impl FnOnce(Answered<Answer>) + Send + 'static,
    ) -> Answered<Awaited> {
        let step = self.find(number).ok_or_else(|| {
            let message = format!("step {number} is over: it was cleaned up");
            Refusal::new(Code::ABORTED, message).marked(Mark::Derived)
        })?;
        let rendezvous = Arc::clone(&step.rendezvous);
        let derived = |error: StepError| {
            Refusal::new(error.code, error.message.to_string()).marked(Mark::Derived)
        };
        let receiver = move |parcel: Result<Parcel, StepError>| {
            done(parcel.map(answer).map_err(derived));
        };
        rendezvous.recv_here(&key, Box::new(receiver));
        Ok(Awaited { rendezvous, key })
    }

    /// Takes a value that another task has pushed. A step that is over needs nothing: the sender has its credit back.
    pub(super) fn pushed(&self, number: i64, key: String, answer: Answer, hold: Hold) {
        if let Some(step) = self.find(number) {
            step.rendezvous.pushed(key, answer, hold);
        }
    }

    /// Ends steps of which pushed values may be lost.
    pub(super) fn lost(&self, numbers: &[i64], why: &Refusal) {
        for step in numbers.iter().filter_map(|&number| self.there(number)) {
            step.rendezvous.abort(StepError::step(why.code, why.message.clone()));
        }
    }
}

impl WorkerService {
    /// The value of a key, when it is sent: the step may not have begun here.
    pub async fn recv_tensor(&self, request: RecvTensorRequest) -> Answered<Answer> {
        let first = match self.steps.answers.begin(request.request_id, request.step_id) {
            Begun::First(first) => first,
            Begun::Again(answer) => return Ok(answer),
            Begun::Waits(answer) => return answer.await.unwrap_or_else(|_| Err(no_value())),
        };
        let (sender, value) = oneshot::channel();
        let awaited = self.await_tensor(&request, move |value| drop(sender.send(value)))?;
        if self.steps.answers.are_kept() {
            // A receiver whose connection breaks may ask again.
            let wait = async move { first.answer(value.await.unwrap_or_else(|_| Err(no_value()))) };
            return tokio::spawn(wait).await.map_err(|_| no_value())?;
        }
        let mut given_up = GivenUp(Some(awaited.rendezvous));
        let value = value.await;
        given_up.0 = None;
        first.answer(value.unwrap_or_else(|_| Err(no_value())))
    }

    /// Calls `done` with the value of a key, when it is sent.
    pub(super) fn await_tensor(
        &self,
        request: &RecvTensorRequest,
        done: impl FnOnce(Answered<Answer>) + Send + 'static,
    ) -> Answered<Awaited> {
        // One that came before, and was answered and confirmed.
        self.requests.note(request.request_id)?;
        let key = keys::parse(self.worker.runtime().edges(), &request.rendezvous_key)?;
        self.check_sender(&key)?;
        self.steps.await_tensor(request.step_id, key, done)
    }

    /// Checks that the sender is a device of this worker, and of this incarnation.
    fn check_sender(&self, key: &Key) -> Answered<()> {
        let name = key.edge.name();
        self.check_device(&name.source, name.incarnation, "RecvTensor").map_err(|there| match there
        {
            Known::Restarted(refusal) => refusal,
            Known::No(there) => Refusal::invalid(format!(
                "{name}: the sender is not a device of this worker, which are {there}"
            )),
        })
    }

    /// Checks that a device is one of this worker, and of this incarnation. The session may know it by another task: the step
    /// may not have begun here, so that its session is open.
    pub(super) fn check_device(
        &self,
        full_name: &str,
        incarnation: u64,
        method: &str,
    ) -> Result<(), Known> {
        let devices = self.worker.runtime().devices().devices();
        let is_it = |device: &PluginDevice| {
            let is_named = keys::in_task(device.full_name()) == keys::in_task(full_name);
            is_named && device.incarnation() == incarnation
        };
        if devices.iter().any(|device| is_it(device)) {
            return Ok(());
        }
        let Some(device) = devices.iter().find(|device| device.full_name() == full_name) else {
            let there: Vec<&str> = devices.iter().map(|device| device.full_name()).collect();
            return Err(Known::No(there.join(", ")));
        };
        let (found, task) = (device.incarnation(), &self.task);
        let message = format!(
            "{method} expects a different device incarnation: {incarnation} vs. {found}. Your worker job (\"{task}\") was \
             probably restarted"
        );
        Err(Known::Restarted(Refusal::new(Code::ABORTED, message).marked(Mark::Restarted)))
    }
}

fn no_value() -> Refusal {
    Refusal::new(Code::ABORTED, "the step ended without it")
}

/// What is sent for a value.
pub(crate) fn answer(parcel: Parcel) -> Answer {
    let Parcel { tensor, is_dead } = parcel;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let send_start_micros = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
    Answer { tensor, is_dead, send_start_micros, must_confirm: false }
}
