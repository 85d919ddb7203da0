//! A call of a worker, from taking a free channel to the last reply.
//!
//! States: *ready* (it has the channel) → *asked* (the request is sent; services are provided until
//! the reply) → *over*. Whatever happens to the worker meanwhile ends the call with an error that
//! says so: a call never waits longer than its deadline plus the time to stop a process.

use super::{
    limits::SLICE,
    outputs::Line,
    plugin::Isolated,
    process::{Death, Process},
    talk::Talk,
    wire::{Answer, Ask, Reply},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tenon_framework::KernelError;

/// One call.
pub(super) struct WorkerCall<'p> {
    plugin: &'p Isolated,
    process: Arc<Process>,
    talk: Talk<'p>,
    at: usize,
    /// Unique among the calls of the process: a late cancellation affects no other call.
    pub number: u64,
    until: Instant,
    cancelled: Option<&'p AtomicU32>,
    told: bool,
}

static NUMBERS: AtomicU64 = AtomicU64::new(1);

impl<'p> WorkerCall<'p> {
    /// A call through a free channel of `process`; waits for the channel.
    pub fn new(
        plugin: &'p Isolated,
        process: Arc<Process>,
        name: &Arc<str>,
    ) -> Result<WorkerCall<'p>, KernelError> {
        let until = Instant::now() + plugin.limits().deadline;
        let at = process
            .take_channel(name, until)
            .map_err(|death| plugin.lost(&process, death, None, name))?;
        let buffers = process.take_buffers(at);
        let (memory, of_host) = (plugin.memory(), plugin.memory_of_host());
        Ok(WorkerCall {
            plugin,
            talk: Talk::new(process.channel(at), memory, of_host, buffers),
            process,
            at,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            until,
            cancelled: None,
            told: false,
        })
    }

    /// The worker's generation.
    pub fn generation(&self) -> u64 {
        self.process.generation()
    }

    /// Sets the step's cancellation flag: the worker is notified when it is set.
    pub fn watch_cancellation(&mut self, cancelled: &'p AtomicU32) {
        self.cancelled = Some(cancelled);
    }

    /// Sends a request and returns its reply.
    pub fn request(&mut self, message: &[u8]) -> Result<Reply<'_>, KernelError> {
        self.talk.send(message)?;
        loop {
            match self.next()? {
                Reply::Ask(Ask::Room { bytes }) => self.talk.give_room(bytes)?,
                _ => return self.talk.reply(),
            }
        }
    }

    /// Sends a request; its services and reply follow.
    pub fn begin(&mut self, message: &impl serde::Serialize) -> Result<(), KernelError> {
        self.talk.send_encoded(message)
    }

    /// Makes the worker's process end with this call, because it sent an invalid message.
    pub fn end_process(&mut self) {
        self.talk.open = true;
    }

    fn wait(&mut self) -> Result<(), KernelError> {
        let mut look = self.plugin.look();
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            if self.talk.channel().wait(look, SLICE.min(left)) {
                return Ok(());
            }
            look = Duration::ZERO;
            if let Some(death) = self.process.death() {
                return Err(self.lost(death));
            }
            if left.is_zero() {
                let death = self.process.stop(self.at, self.plugin.limits().deadline);
                return Err(self.lost(death));
            }
            self.tell_cancelled();
        }
    }

    fn tell_cancelled(&mut self) {
        let is_set = self.cancelled.is_some_and(|flag| flag.load(Ordering::Relaxed) != 0);
        if is_set && !self.told {
            self.told = true;
            self.process.cancel(self.at, self.number);
        }
    }

    fn lost(&self, death: &Death) -> KernelError {
        self.plugin.lost(&self.process, death, Some(self.at), &self.process.name_of(self.at))
    }
}

impl Line for WorkerCall<'_> {
    fn next(&mut self) -> Result<Reply<'_>, KernelError> {
        self.wait()?;
        self.talk.received()
    }

    fn answer(&mut self, answer: &Answer<'_>) -> Result<(), KernelError> {
        self.talk.send_encoded(answer)
    }

    fn give_room(&mut self, bytes: u64) -> Result<(), KernelError> {
        self.talk.give_room(bytes)
    }
}

impl Drop for WorkerCall<'_> {
    fn drop(&mut self) {
        if self.talk.open {
            // The worker waits for an answer that it will not get, or violated the protocol. It
            // must be gone before the memory of this call is reused.
            self.process.kill();
            self.process.wait();
        }
        self.process.give_channel(self.at, self.talk.take_buffers());
    }
}
