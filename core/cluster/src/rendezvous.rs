//! The rendezvous of a step whose parts run in several processes.
//!
//! A value is sent to the rendezvous of its sender's task, or pushed at once to that of its receiver if it is small and the
//! [`Transport`] takes it. A receiver of the same task takes it there; a receiver of another task takes what was pushed, or
//! asks for it.
//!
//! # Ownership
//! A receiver that waits for another task is in `remote` until its value, an error, or the abortion of the step takes it out:
//! whoever takes it out calls it, so that it is called once. A pushed value is in `pushed` until its receiver or the end of the
//! step takes it out.

pub(crate) use crate::keys::task_of;

use crate::{
    keys,
    plane::Hold,
    records::Records,
    refusal::Refusal,
    transport::{End, Transport, Wanted, Withdraw},
    wire::Answer,
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, OnceLock, Weak},
};
use tenon_framework::{
    Code, Tensor,
    sync::{Mutex, rank},
};
use tenon_runtime::{
    StepError,
    rendezvous::{EdgeName, Key, LocalRendezvous, Parcel, Receiver, Rendezvous},
};

/// When a request began that is recorded, in microseconds, and for what.
type Since = (i64, Key);

/// A receiver that waits for a value of another task.
struct Waiting {
    receiver: Receiver,
    key: String,
    /// When the request was sent, if it is recorded.
    since: Option<Since>,
    /// `None` until the request is on its way.
    withdraw: Option<Withdraw>,
}

#[derive(Default)]
struct Remote {
    waiting: BTreeMap<u64, Waiting>,
    by_key: HashMap<String, u64>,
    next: u64,
    /// Values that came before they were asked for.
    pushed: HashMap<String, (Answer, Hold)>,
    aborted: Option<StepError>,
    /// The first error that another task gave instead of a value.
    failed: Option<StepError>,
}

impl Remote {
    fn take(&mut self, number: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&number)?;
        self.by_key.remove(&waiting.key);
        Some(waiting)
    }
}

/// The rendezvous of one step at one task.
pub(crate) struct StepRendezvous {
    step: i64,
    local: LocalRendezvous,
    remote: Mutex<Remote>,
    transport: OnceLock<Arc<dyn Transport>>,
    records: Arc<Records>,
    own: Weak<StepRendezvous>,
}

impl StepRendezvous {
    pub fn new(step: i64, records: &Arc<Records>) -> Arc<StepRendezvous> {
        Arc::new_cyclic(|own| StepRendezvous {
            step,
            local: LocalRendezvous::default(),
            remote: Mutex::ranked(rank::RENDEZVOUS, Remote::default()),
            transport: OnceLock::new(),
            records: Arc::clone(records),
            own: own.clone(),
        })
    }

    /// Sets the way to other tasks, when the step begins here.
    pub fn connect(&self, transport: Arc<dyn Transport>) {
        // A step has one session, whose tasks do not change.
        let _ = self.transport.set(transport);
    }

    /// Takes a value that a device of this task sends.
    pub fn recv_here(&self, key: &Key, receiver: Receiver) {
        self.local.recv(key, receiver);
    }

    /// Whether an error is what another task gave instead of a value, so that its cause is there.
    pub fn is_of_other_task(&self, code: Code, message: &str) -> bool {
        let remote = self.remote.lock();
        remote
            .failed
            .as_ref()
            .is_some_and(|failed| failed.code == code && message.contains(&*failed.message))
    }

    /// Asks another task for a value.
    fn ask(&self, task: &str, key: &Key, receiver: Receiver) {
        let text = keys::text(key);
        let mut remote = self.remote.lock();
        if let Some(error) = remote.aborted.clone() {
            drop(remote);
            return receiver(Err(error));
        }
        if let Some((answer, hold)) = remote.pushed.remove(&text) {
            drop(remote);
            if let Err(error) = self.check_sender(task, &hold) {
                return receiver(Err(error));
            }
            let since = self.records.begin().map(|begin| (begin, key.clone()));
            return self.taken(task, answer, &hold, receiver, since);
        }
        let Some(transport) = self.transport.get() else {
            drop(remote);
            let why = "the step has no way to other tasks";
            return receiver(Err(StepError::step(Code::INTERNAL, why)));
        };
        remote.next += 1;
        let number = remote.next;
        remote.by_key.insert(text.clone(), number);
        let since = self.records.begin().map(|begin| (begin, key.clone()));
        let waiting = Waiting { receiver, key: text.clone(), since, withdraw: None };
        remote.waiting.insert(number, waiting);
        drop(remote);
        let wanted = Wanted { task: task.to_owned(), step: self.step, key: text };
        let own = self.own.clone();
        let done = Box::new(move |answer| {
            if let Some(own) = own.upgrade() {
                own.arrived(number, answer);
            }
        });
        let withdraw = transport.recv_tensor(wanted, done);
        let mut remote = self.remote.lock();
        if let Some(waiting) = remote.waiting.get_mut(&number) {
            waiting.withdraw = Some(withdraw);
            return;
        }
        // The value is there, perhaps by a push, or the step was aborted meanwhile.
        let end = if remote.aborted.is_some() { End::GivenUp } else { End::Settled };
        drop(remote);
        withdraw(end);
    }

    /// Gives a pushed value to its receiver.
    fn taken(
        &self,
        task: &str,
        answer: Answer,
        hold: &Hold,
        receiver: Receiver,
        since: Option<Since>,
    ) {
        if let Some(transport) = self.transport.get() {
            let bytes = answer.tensor.as_ref().map_or(0, Tensor::byte_len);
            transport.came(task, hold.way(), bytes);
        }
        self.record(since, &answer);
        receiver(Ok(Parcel { tensor: answer.tensor, is_dead: answer.is_dead }));
    }

    /// Checks that a value was pushed by the task that its key says, as far as the session is known; else the step ends, since
    /// the value may have been meant for it.
    fn check_sender(&self, task: &str, hold: &Hold) -> Result<(), StepError> {
        if self.transport.get().is_none_or(|transport| transport.is_from(task, hold.sender())) {
            return Ok(());
        }
        let error = format!("a tensor of {task} was pushed by another task");
        let error = StepError::step(Code::ABORTED, error);
        self.abort(error.clone());
        Err(error)
    }

    /// Takes a value that another task has pushed.
    pub fn pushed(&self, key: String, answer: Answer, hold: Hold) {
        let task = task_of(key.split(';').next().unwrap_or_default()).to_owned();
        if self.check_sender(&task, &hold).is_err() {
            return;
        }
        let mut remote = self.remote.lock();
        if remote.aborted.is_some() {
            return;
        }
        let number = remote.by_key.get(&key).copied();
        let Some(waiting) = number.and_then(|number| remote.take(number)) else {
            let former = remote.pushed.insert(key, (answer, hold));
            drop(remote);
            drop(former);
            return;
        };
        drop(remote);
        if let Some(withdraw) = waiting.withdraw {
            withdraw(End::Settled);
        }
        self.taken(&task, answer, &hold, waiting.receiver, waiting.since);
    }

    /// Drops the receiver of another task that waits for a value here, and has it by another way.
    pub fn forget(&self, key: &Key) {
        self.local.forget(key);
    }

    /// Sends a value to another task: to its request, or without one, or keeps it for a later request.
    fn send_away(&self, task: &str, key: &Key, parcel: Parcel) -> Result<(), StepError> {
        let Some(parcel) = self.local.send_to_waiting(key, parcel)? else { return Ok(()) };
        if let Some(transport) = self.transport.get()
            && transport.push(task, self.step, key, &parcel)
        {
            return Ok(());
        }
        self.local.send(key, parcel)
    }

    fn record(&self, since: Option<Since>, answer: &Answer) {
        if let Some((begin, key)) = since {
            let bytes = answer.tensor.as_ref().map_or(0, Tensor::byte_len);
            self.records.note(self.step, key.edge.name(), begin, bytes);
        }
    }

    fn arrived(&self, number: u64, answer: Result<Answer, Refusal>) {
        let mut remote = self.remote.lock();
        let Some(waiting) = remote.take(number) else { return };
        let result = answer.map_err(|refusal| StepError::step(refusal.code, refusal.message));
        if let Err(error) = &result {
            remote.failed.get_or_insert_with(|| error.clone());
        }
        drop(remote);
        if let Ok(answer) = &result {
            self.record(waiting.since, answer);
        }
        (waiting.receiver)(result.map(|it| Parcel { tensor: it.tensor, is_dead: it.is_dead }));
    }
}

/// The task of one end of an edge that leads from one task to another. What stays in a task, or comes from and goes to the
/// client, has both ends at the same one, whatever the session calls it.
fn other_task(key: &Key, end: impl Fn(&EdgeName) -> &String) -> Option<&str> {
    let edge = key.edge.name();
    let is_within = task_of(&edge.source) == task_of(&edge.destination);
    (!is_within).then(|| task_of(end(edge)))
}

impl Rendezvous for StepRendezvous {
    fn send(&self, key: &Key, parcel: Parcel) -> Result<(), StepError> {
        match other_task(key, |edge| &edge.destination) {
            None => self.local.send(key, parcel),
            Some(task) => self.send_away(task, key, parcel),
        }
    }

    fn recv(&self, key: &Key, receiver: Receiver) {
        match other_task(key, |edge| &edge.source) {
            None => self.local.recv(key, receiver),
            Some(task) => self.ask(task, key, receiver),
        }
    }

    fn abort(&self, error: StepError) {
        let mut remote = self.remote.lock();
        let first = remote.aborted.get_or_insert(error).clone();
        let waiting = std::mem::take(&mut remote.waiting);
        let pushed = std::mem::take(&mut remote.pushed);
        remote.by_key.clear();
        drop(remote);
        drop(pushed);
        self.local.abort(first.clone());
        for Waiting { receiver, withdraw, .. } in waiting.into_values() {
            if let Some(withdraw) = withdraw {
                withdraw(End::GivenUp);
            }
            receiver(Err(first.clone()));
        }
    }

    /// A step has a rendezvous of its own, which goes with it.
    fn reset(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use tenon_framework::sync;
    use tenon_runtime::rendezvous::Edges;

    /// Keeps requests until the test answers them.
    #[derive(Default)]
    struct Held(sync::Mutex<Vec<(Wanted, crate::transport::Done)>>);

    impl Transport for Held {
        fn recv_tensor(&self, wanted: Wanted, done: crate::transport::Done) -> Withdraw {
            self.0.lock().push((wanted, done));
            Box::new(|_| ())
        }

        fn push(&self, _: &str, _: i64, _: &Key, _: &Parcel) -> bool {
            false
        }

        fn came(&self, _: &str, _: crate::way::Way, _: usize) {}

        fn complete_group(
            &self,
            leader: &str,
            _: tenon_proto::CompleteGroupRequest,
            done: crate::transport::Asked<tenon_proto::CompleteGroupResponse>,
        ) -> crate::transport::Abandon {
            done(Err(Refusal::unreachable(leader, "there is none")));
            Box::new(|| ())
        }

        fn complete_instance(
            &self,
            leader: &str,
            _: tenon_proto::CompleteInstanceRequest,
            done: crate::transport::Asked<tenon_proto::CompleteInstanceResponse>,
        ) -> crate::transport::Abandon {
            done(Err(Refusal::unreachable(leader, "there is none")));
            Box::new(|| ())
        }

        fn recv_buf(
            &self,
            task: &str,
            _: tenon_proto::RecvBufRequest,
            _: tenon_framework::DType,
            done: crate::transport::Asked<Tensor>,
        ) -> crate::transport::Abandon {
            done(Err(Refusal::unreachable(task, "there is none")));
            Box::new(|| ())
        }

        fn leader(&self) -> Option<String> {
            None
        }

        fn of_cluster(&self, _: &tenon_proto::ClusterDef) -> Arc<dyn Transport> {
            Arc::new(Held::default())
        }
    }

    fn key(edges: &Edges, task: u32) -> Key {
        key_to(edges, task, 1 - task)
    }

    fn key_to(edges: &Edges, from: u32, to: u32) -> Key {
        let device = |task: u32| format!("/job:w/replica:0/task:{task}/device:CPU:0");
        let (source, destination) = (device(from), device(to));
        Key::of(edges.intern(EdgeName {
            source,
            incarnation: 9,
            destination,
            tensor: "x:0".into(),
        }))
    }

    type Got = mpsc::Receiver<Result<Parcel, StepError>>;

    fn ask(rendezvous: &StepRendezvous, key: &Key) -> Got {
        let (sender, got) = mpsc::channel();
        rendezvous.recv(key, Box::new(move |parcel| drop(sender.send(parcel))));
        got
    }

    fn set_up() -> (Edges, Arc<StepRendezvous>, Arc<Held>) {
        let (rendezvous, held) = (StepRendezvous::new(5, &Arc::default()), Arc::<Held>::default());
        rendezvous.connect(Arc::clone(&held) as Arc<dyn Transport>);
        (Edges::default(), rendezvous, held)
    }

    #[test]
    fn values_of_another_task_are_asked_for_by_their_keys() {
        let (edges, rendezvous, held) = set_up();
        let got = ask(&rendezvous, &key(&edges, 1));
        let (wanted, done) = held.0.lock().remove(0);
        assert_eq!((wanted.task.as_str(), wanted.step), ("/job:w/replica:0/task:1", 5));
        assert!(wanted.key.starts_with("/job:w/replica:0/task:1/device:CPU:0;0000000000000009;"));
        let tensor = Some(Tensor::scalar(3f32).unwrap());
        done(Ok(Answer { tensor, is_dead: false, send_start_micros: 0, must_confirm: false }));
        let parcel = got.recv().unwrap().unwrap();
        assert_eq!(parcel.tensor.unwrap().as_slice::<f32>().unwrap(), [3.0]);
        // A value that stays in a task needs no other one.
        let within = key_to(&edges, 0, 0);
        let here = ask(&rendezvous, &within);
        let parcel = Parcel { tensor: None, is_dead: true };
        rendezvous.send(&within, parcel).unwrap();
        assert!(here.recv().unwrap().unwrap().is_dead && held.0.lock().is_empty());
    }

    #[test]
    fn an_aborted_step_gives_its_first_error_to_all_that_wait() {
        let (edges, rendezvous, held) = set_up();
        let first = ask(&rendezvous, &key(&edges, 1));
        rendezvous.abort(StepError::step(Code::ABORTED, "first"));
        rendezvous.abort(StepError::step(Code::INTERNAL, "second"));
        assert_eq!(&*first.recv().unwrap().unwrap_err().message, "first");
        let late = ask(&rendezvous, &key(&edges, 1));
        assert_eq!(&*late.recv().unwrap().unwrap_err().message, "first");
        // What comes after all is dropped.
        let (_, done) = held.0.lock().remove(0);
        done(Ok(Answer { tensor: None, is_dead: true, send_start_micros: 0, must_confirm: false }));
        assert!(first.recv().is_err());
    }

    #[test]
    fn a_pushed_value_is_taken_without_a_request_and_settles_one() {
        let (edges, rendezvous, held) = set_up();
        let value = |of: f32| {
            let tensor = Some(Tensor::scalar(of).unwrap());
            Answer { tensor, is_dead: false, send_start_micros: 0, must_confirm: false }
        };
        let taken = |got: &Got| {
            let tensor = got.recv().unwrap().unwrap().tensor.unwrap();
            tensor.as_slice::<f32>().unwrap()[0]
        };
        let key = key(&edges, 1);
        rendezvous.pushed(keys::text(&key), value(1.0), Hold::free());
        let got = ask(&rendezvous, &key);
        assert!(held.0.lock().is_empty(), "it was there");
        assert_eq!(taken(&got), 1.0);
        // The next one comes after it was asked for.
        let next = Key { iteration: 1, ..key };
        let got = ask(&rendezvous, &next);
        rendezvous.pushed(keys::text(&next), value(2.0), Hold::free());
        assert_eq!(taken(&got), 2.0);
        let (_, done) = held.0.lock().remove(0);
        done(Ok(value(3.0)));
        assert!(got.recv().is_err(), "its receiver is called once");
        rendezvous.abort(StepError::step(Code::ABORTED, "over"));
        rendezvous.pushed(keys::text(&next), value(4.0), Hold::free());
    }

    #[test]
    fn errors_of_other_tasks_are_known() {
        let (edges, rendezvous, held) = set_up();
        let got = ask(&rendezvous, &key(&edges, 1));
        let (_, done) = held.0.lock().remove(0);
        done(Err(Refusal::new(Code::UNAVAILABLE, "it is gone")));
        assert_eq!(got.recv().unwrap().unwrap_err().code, Code::UNAVAILABLE);
        assert!(rendezvous.is_of_other_task(Code::UNAVAILABLE, "step: it is gone"));
        assert!(!rendezvous.is_of_other_task(Code::UNAVAILABLE, "something else"));
    }
}
