//! Tensors on their way between members, by step.
//!
//! A key has one of three states: empty, a tensor that waits for its receiver, or a receiver that waits for its tensor.
//! After an abortion all receivers get the error.

use super::group::InstanceKey;
use std::collections::{HashMap, hash_map::Entry};
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

#[derive(Default)]
struct Table {
    waiting: HashMap<BufferKey, Waiting>,
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
