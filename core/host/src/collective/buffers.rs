//! Tensors on their way between members, by step.
//!
//! A key has one of three states: empty, a tensor that waits for its receiver, or a receiver that waits for its tensor.
//! After an abortion all receivers get the error.
//!
//! A member of an operation over several tasks is noted when it joins, or when another one requests a tensor of it before:
//! both have to [agree](Agreed).

use super::{Agreed, Join, Member, group::InstanceKey};
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Weak},
};
use tenon_framework::{
    Code, KernelError, Tensor,
    sync::{Mutex, rank},
};

/// The name of a tensor: the operation, its sender and receiver by place, and a number that they agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BufferKey {
    /// The operation.
    pub instance: InstanceKey,
    /// The place of the sender.
    pub from: u32,
    /// The place of the receiver.
    pub to: u32,
    /// The number.
    pub number: u64,
}

/// Takes a tensor, or the reason why it does not come, once, from any thread.
pub type Arrived = Box<dyn FnOnce(Result<Tensor, KernelError>) + Send>;

enum Waiting {
    Tensor(Tensor),
    Receiver(Arrived),
}

/// A member of an operation, as this task knows it.
struct Known {
    agreed: Agreed,
    /// `None` until it has joined.
    member: Option<Weak<Member>>,
}

#[derive(Default)]
struct Table {
    waiting: HashMap<BufferKey, Waiting>,
    /// The members of operations over several tasks, by place.
    members: HashMap<(InstanceKey, u32), Known>,
    aborted: Option<KernelError>,
}

/// The tensors of one step.
pub(super) struct StepBuffers {
    table: Mutex<Table>,
}

impl Default for StepBuffers {
    fn default() -> StepBuffers {
        StepBuffers { table: Mutex::ranked(rank::RENDEZVOUS, Table::default()) }
    }
}

impl StepBuffers {
    /// Sends a tensor.
    ///
    /// # Errors
    /// The error of an aborted step; `INTERNAL` when the key was used before.
    pub fn send(&self, key: BufferKey, tensor: Tensor) -> Result<(), KernelError> {
        let mut table = self.table.lock();
        if let Some(error) = &table.aborted {
            return Err(error.clone());
        }
        let receiver = match table.waiting.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(Waiting::Tensor(tensor));
                return Ok(());
            }
            Entry::Occupied(entry) => match entry.remove() {
                Waiting::Receiver(receiver) => receiver,
                first @ Waiting::Tensor(_) => {
                    table.waiting.insert(key, first);
                    return Err(twice(&key, "sent"));
                }
            },
        };
        drop(table);
        receiver(Ok(tensor));
        Ok(())
    }

    /// Notes that a member of this task has joined an operation over several tasks.
    ///
    /// # Errors
    /// The error of an aborted step; another member does not agree, or has this place already.
    pub fn join(
        &self,
        place: u32,
        agreed: Agreed,
        join: &Join,
        member: Weak<Member>,
    ) -> Result<(), KernelError> {
        let mut table = self.table.lock();
        if let Some(error) = &table.aborted {
            return Err(error.clone());
        }
        match table.members.entry((join.key, place)) {
            Entry::Vacant(entry) => {
                entry.insert(Known { agreed, member: Some(member) });
            }
            Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                if known.member.is_some() {
                    return Err(joined_twice(join));
                }
                if let Some(error) = agreed.difference(known.agreed, &join.key, Some(join)) {
                    return Err(error);
                }
                known.member = Some(member);
            }
        }
        Ok(())
    }

    /// The members of operations over several tasks that are there.
    pub fn members(&self) -> Vec<Arc<Member>> {
        let table = self.table.lock();
        table.members.values().filter_map(|known| known.member.as_ref()?.upgrade()).collect()
    }

    /// Requests a tensor for a member of another task, or one that agrees with members there. If its sender does not agree,
    /// both fail.
    pub fn recv_agreed(&self, key: BufferKey, agreed: Agreed, done: Arrived) {
        let mut table = self.table.lock();
        let first = || Known { agreed, member: None };
        let known = table.members.entry((key.instance, key.from)).or_insert_with(first);
        if known.agreed == agreed {
            drop(table);
            return self.recv(key, done);
        }
        let (other, sender) = (known.agreed, known.member.as_ref().and_then(Weak::upgrade));
        drop(table);
        let here = sender.as_ref().map(|sender| sender.joined());
        let error = agreed.difference(other, &key.instance, here);
        let error = error.unwrap_or_else(|| KernelError::internal("members differ in nothing"));
        if let Some(sender) = sender {
            sender.fail(error.clone());
        }
        self.abort(&error);
        done(Err(error));
    }

    /// Requests a tensor.
    pub fn recv(&self, key: BufferKey, done: Arrived) {
        let mut table = self.table.lock();
        if let Some(error) = table.aborted.clone() {
            drop(table);
            return done(Err(error));
        }
        match table.waiting.remove(&key) {
            None => {
                table.waiting.insert(key, Waiting::Receiver(done));
            }
            Some(Waiting::Tensor(tensor)) => {
                drop(table);
                done(Ok(tensor));
            }
            Some(first @ Waiting::Receiver(_)) => {
                table.waiting.insert(key, first);
                drop(table);
                done(Err(twice(&key, "requested")));
            }
        }
    }

    /// Fails what waits, and what comes later. The first error is kept.
    pub fn abort(&self, error: &KernelError) {
        let mut table = self.table.lock();
        let first = table.aborted.get_or_insert_with(|| error.clone()).clone();
        let waiting = std::mem::take(&mut table.waiting);
        drop(table);
        fail(waiting, &first);
    }

    /// Takes a tensor that was sent before, without waiting for it, also after the end of the step.
    pub fn take(&self, key: &BufferKey) -> Option<Tensor> {
        let mut table = self.table.lock();
        match table.waiting.remove(key)? {
            Waiting::Tensor(tensor) => Some(tensor),
            receiver @ Waiting::Receiver(_) => {
                table.waiting.insert(*key, receiver);
                None
            }
        }
    }

    /// Ends the step, as [`abort`](StepBuffers::abort) does, but what was sent stays; whether that is anything.
    pub fn end(&self, step: u64) -> bool {
        let mut table = self.table.lock();
        let first = table.aborted.get_or_insert_with(|| ended(step)).clone();
        let all = std::mem::take(&mut table.waiting);
        let (sent, receivers): (HashMap<_, _>, HashMap<_, _>) =
            all.into_iter().partition(|(_, it)| matches!(it, Waiting::Tensor(_)));
        let has_sent = !sent.is_empty();
        table.waiting = sent;
        table.members.clear();
        drop(table);
        fail(receivers, &first);
        has_sent
    }
}

/// Gives an error to the receivers.
fn fail(waiting: HashMap<BufferKey, Waiting>, error: &KernelError) {
    for waiting in waiting.into_values() {
        if let Waiting::Receiver(done) = waiting {
            done(Err(error.clone()));
        }
    }
}

pub(super) fn ended(step: u64) -> KernelError {
    let message = format!("step {step} ended before a tensor of its collectives came");
    KernelError::new(Code::ABORTED, message)
}

fn twice(key: &BufferKey, what: &str) -> KernelError {
    let BufferKey { instance, from, to, number } = key;
    KernelError::internal(format!(
        "collective instance {}: tensor {number} from member {from} to member {to} was {what} twice",
        instance.instance
    ))
}

fn joined_twice(join: &Join) -> KernelError {
    KernelError::invalid_argument(format!(
        "device {} joins collective instance {} twice in a step: give each node an instance_key of its own",
        join.device.name, join.key.instance
    ))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn key(number: u64) -> BufferKey {
        let instance = InstanceKey { step: 7, group: 1, instance: 2, iteration: (0, 0) };
        BufferKey { instance, from: 0, to: 1, number }
    }

    #[test]
    fn what_was_sent_outlives_the_step_and_what_waits_does_not() {
        let buffers = StepBuffers::default();
        let (sender, got) = mpsc::channel();
        buffers.recv(key(1), Box::new(move |it| drop(sender.send(it))));
        buffers.send(key(0), Tensor::scalar(3f32).unwrap()).unwrap();
        assert!(buffers.take(&key(1)).is_none(), "a receiver is not a tensor");
        assert!(buffers.end(7));
        assert_eq!(got.recv().unwrap().unwrap_err().code, Code::ABORTED);
        assert_eq!(buffers.take(&key(0)).unwrap().as_slice::<f32>().unwrap(), [3.0]);
        assert!(buffers.take(&key(0)).is_none());
        assert!(!buffers.end(7) && !StepBuffers::default().end(7));
        // What comes later does not wait.
        let (sender, late) = mpsc::channel();
        buffers.recv(key(2), Box::new(move |it| drop(sender.send(it))));
        assert_eq!(late.recv().unwrap().unwrap_err().code, Code::ABORTED);
        let sent = buffers.send(key(3), Tensor::scalar(3f32).unwrap());
        assert_eq!(sent.unwrap_err().code, Code::ABORTED);
    }
}
