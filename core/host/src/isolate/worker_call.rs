//! A call of a worker, from a free channel to the last reply.
//!
//! States: *ready* (the channel is ours) → *asked* (the request is sent; services are given until the reply) → *over*.
//! Whatever happens to the worker meanwhile ends the call with an error that says so: a call never waits longer than
//! its deadline and what it takes to stop a process.

use super::{
    channel::{Channel, Message},
    limits::SLICE,
    plugin::Isolated,
    process::Process,
    values::place_of,
    wire::{Answer, Ask, Place, Reply, decode, encode_into},
};
use std::{
    mem, slice,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tenon_abi::{DType, Slot};
use tenon_framework::{
    KernelError,
    tensor::{Buffer, Memory},
};

/// One call.
pub(super) struct WorkerCall<'p> {
    plugin: &'p Isolated,
    process: Arc<Process>,
    channel: Channel,
    at: usize,
    /// Unique among the calls of the process: a cancellation that comes late hits no other.
    pub number: u64,
    until: Instant,
    cancelled: Option<&'p AtomicU32>,
    told: bool,
    reply: Vec<u8>,
    message: Vec<u8>,
    /// What the last message lies in, when it was too long for the channel.
    sent: Option<Buffer>,
    /// What a long reply lies in.
    room: Option<Buffer>,
    /// Whether the worker has a request without a reply.
    open: bool,
}

static NUMBERS: AtomicU64 = AtomicU64::new(1);

impl<'p> WorkerCall<'p> {
    /// A call through a free channel of `process`, for which it waits.
    pub fn new(
        plugin: &'p Isolated,
        process: Arc<Process>,
        name: &Arc<str>,
    ) -> Result<WorkerCall<'p>, KernelError> {
        let until = Instant::now() + plugin.limits().deadline;
        let at = process
            .take_channel(name, until)
            .map_err(|death| plugin.lost(&process, death, None, name))?;
        let channel = process.channel(at);
        let (reply, message) = process.take_buffers(at);
        Ok(WorkerCall {
            plugin,
            process,
            channel,
            at,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            until,
            cancelled: None,
            told: false,
            reply,
            message,
            sent: None,
            room: None,
            open: false,
        })
    }

    /// Which worker it is.
    pub fn generation(&self) -> u64 {
        self.process.generation()
    }

    /// The step's flag: the worker is told when it becomes set.
    pub fn heed(&mut self, cancelled: &'p AtomicU32) {
        self.cancelled = Some(cancelled);
    }

    /// Sends a request and gives its reply.
    pub fn request(&mut self, message: &[u8]) -> Result<Reply<'_>, KernelError> {
        self.send(message)?;
        loop {
            match self.next()? {
                Reply::Ask(Ask::Room { bytes }) => self.give_room(bytes)?,
                _ => return decode(&self.reply),
            }
        }
    }

    /// Sends a message.
    pub fn send(&mut self, message: &[u8]) -> Result<(), KernelError> {
        self.open = true;
        if Channel::fits(message) {
            self.channel.send(message);
            return Ok(());
        }
        let memory = self.plugin.memory_of_host();
        let buffer = Buffer::allocate(memory, DType::UINT8, message.len(), message.len())?;
        // SAFETY: fresh memory of as many bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(message.as_ptr(), buffer.data().cast(), message.len());
        }
        let place = self.place_of(&buffer)?;
        self.sent = Some(buffer);
        self.channel.send_from_arena(place.offset, message.len() as u64);
        Ok(())
    }

    /// Sends a message that is made in the call's own buffer.
    pub fn send_encoded(&mut self, message: &impl serde::Serialize) -> Result<(), KernelError> {
        let bytes = encode_into(message, mem::take(&mut self.message));
        let sent = self.send(&bytes);
        self.message = bytes;
        sent
    }

    /// Answers a service that was asked for.
    pub fn answer(&mut self, answer: &Answer<'_>) -> Result<(), KernelError> {
        self.send_encoded(answer)
    }

    /// Gives room for a reply that is too long for a channel.
    pub fn give_room(&mut self, bytes: u64) -> Result<(), KernelError> {
        let memory: Arc<dyn Memory> = self.plugin.memory().clone();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        match Buffer::allocate(&memory, DType::UINT8, bytes, bytes) {
            Ok(buffer) => {
                let place = self.place_of(&buffer)?;
                self.room = Some(buffer);
                self.answer(&Answer::At(place))
            }
            Err(error) => self.answer(&Answer::Refused(error.code.0, &error.message)),
        }
    }

    fn place_of(&self, buffer: &Buffer) -> Result<Place, KernelError> {
        let slot = Slot { data: buffer.data(), ..Slot::EMPTY };
        place_of(self.plugin, &slot)
            .ok_or_else(|| KernelError::internal("a shared block lies in no arena"))
    }

    /// Waits for what the worker says next.
    pub fn next(&mut self) -> Result<Reply<'_>, KernelError> {
        self.wait()?;
        match self.channel.receive(&mut self.reply) {
            Message::Here(_) => {}
            Message::Arena { offset, bytes } => self.take_long(offset, bytes)?,
        }
        let reply = decode(&self.reply)?;
        self.open = matches!(reply, Reply::Ask(_));
        Ok(reply)
    }

    /// Copies a long reply out of the room that was given for it.
    fn take_long(&mut self, offset: u64, bytes: u64) -> Result<(), KernelError> {
        let room = self.room.take();
        let fits = |room: &Buffer| {
            bytes <= room.capacity() as u64
                && self.plugin.memory().arena().offset_of(room.data()) == Some(offset)
        };
        let Some(room) = room.filter(fits) else {
            let message = format!("a reply of {bytes} bytes lies where no room was given for it");
            return Err(KernelError::internal(message));
        };
        self.reply.clear();
        // SAFETY: the room has at least as many bytes. What is in it is checked as it is read.
        let long = unsafe { slice::from_raw_parts(room.data().cast::<u8>(), bytes as usize) };
        self.reply.extend_from_slice(long);
        Ok(())
    }

    fn wait(&mut self) -> Result<(), KernelError> {
        let mut look = self.plugin.look();
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            if self.channel.wait(look, SLICE.min(left)) {
                self.sent = None;
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

    fn lost(&self, death: &super::process::Death) -> KernelError {
        self.plugin.lost(&self.process, death, Some(self.at), &self.process.name_of(self.at))
    }
}

impl Drop for WorkerCall<'_> {
    fn drop(&mut self) {
        if self.open {
            // The worker waits for an answer that it will not get, or broke the protocol. It is gone before the memory
            // of this call is anybody else's.
            self.process.kill();
            self.process.wait();
        }
        let buffers = (mem::take(&mut self.reply), mem::take(&mut self.message));
        self.process.give_channel(self.at, buffers);
    }
}
