//! The host's side of a channel: sends messages, gives answers, and copies replies before they are
//! read.

use super::{
    arena::{Arena, ArenaMemory},
    channel::{Channel, MESSAGE_BYTES, Message},
    values::place_of,
    wire::{Answer, Place, Reply, decode, encode_into},
};
use std::{mem, slice, sync::Arc};
use tenon_abi::{DType, Slot};
use tenon_framework::{
    KernelError,
    tensor::{Buffer, Memory},
};

/// Buffers of a message and a reply, which are reused.
pub(super) type Buffers = (Vec<u8>, Vec<u8>);

/// The host's side of a conversation.
pub(super) struct Talk<'p> {
    channel: Channel,
    /// The memory that the worker can write.
    memory: &'p Arc<ArenaMemory>,
    /// The memory that the worker can read.
    memory_of_host: &'p Arc<dyn Memory>,
    reply: Vec<u8>,
    message: Vec<u8>,
    /// Memory of the last message, when it was too long for the channel.
    sent: Option<Buffer>,
    /// Memory for a long reply.
    room: Option<Buffer>,
    /// Whether the worker has a request without a reply.
    pub open: bool,
}

impl<'p> Talk<'p> {
    /// A conversation through a channel that belongs to the caller.
    pub fn new(
        channel: Channel,
        memory: &'p Arc<ArenaMemory>,
        memory_of_host: &'p Arc<dyn Memory>,
        (reply, message): Buffers,
    ) -> Talk<'p> {
        let (sent, room) = (None, None);
        Talk { channel, memory, memory_of_host, reply, message, sent, room, open: false }
    }

    /// The channel.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Sends a message.
    pub fn send(&mut self, message: &[u8]) -> Result<(), KernelError> {
        self.open = true;
        if Channel::fits(message) {
            self.channel.send(message);
            return Ok(());
        }
        let buffer =
            Buffer::allocate(self.memory_of_host, DType::UINT8, message.len(), message.len())?;
        // SAFETY: newly allocated memory of this size.
        unsafe {
            std::ptr::copy_nonoverlapping(message.as_ptr(), buffer.data().cast(), message.len());
        }
        let place = self.place_of(&buffer)?;
        self.sent = Some(buffer);
        self.channel.send_from_arena(place.offset, message.len() as u64);
        Ok(())
    }

    /// Encodes a message in the conversation's own buffer, and sends it.
    pub fn send_encoded(&mut self, message: &impl serde::Serialize) -> Result<(), KernelError> {
        let bytes = encode_into(message, mem::take(&mut self.message));
        let sent = self.send(&bytes);
        self.message = bytes;
        sent
    }

    /// Provides room for a reply that is too long for a channel.
    pub fn give_room(&mut self, bytes: u64) -> Result<(), KernelError> {
        let memory: Arc<dyn Memory> = self.memory.clone();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        match Buffer::allocate(&memory, DType::UINT8, bytes, bytes) {
            Ok(buffer) => {
                let place = self.place_of(&buffer)?;
                self.room = Some(buffer);
                self.send_encoded(&Answer::At(place))
            }
            Err(error) => self.send_encoded(&Answer::Refused(error.code.0, &error.message)),
        }
    }

    fn place_of(&self, buffer: &Buffer) -> Result<Place, KernelError> {
        let slot = Slot { data: buffer.data(), ..Slot::EMPTY };
        place_of(self.memory, &slot)
            .ok_or_else(|| KernelError::internal("a shared block lies in no arena"))
    }

    /// The reply that came with the turn.
    pub fn received(&mut self) -> Result<Reply<'_>, KernelError> {
        self.sent = None;
        match self.channel.receive(&mut self.reply) {
            Message::Here(_) => {}
            Message::Arena { offset, bytes } => self.take_long(offset, bytes)?,
        }
        let reply = decode(&self.reply)?;
        self.open = matches!(reply, Reply::Ask(_));
        Ok(reply)
    }

    /// The last reply once more.
    pub fn reply(&self) -> Result<Reply<'_>, KernelError> {
        decode(&self.reply)
    }

    /// Copies a long reply out of the memory that was provided for it, if the worker has written
    /// it: a reply that is only announced allocates nothing here.
    fn take_long(&mut self, offset: u64, bytes: u64) -> Result<(), KernelError> {
        let room = self.room.take();
        let arena: &Arena = self.memory.arena();
        let fits = |room: &Buffer| {
            bytes <= room.capacity() as u64 && arena.offset_of(room.data()) == Some(offset)
        };
        let Some(room) = room.filter(fits) else {
            let message = format!("a reply of {bytes} bytes lies where no room was given for it");
            return Err(KernelError::internal(message));
        };
        if !arena.is_written(offset, bytes) {
            let message = format!("a reply of {bytes} bytes was promised and not written");
            return Err(KernelError::internal(message));
        }
        self.reply.clear();
        self.reply.try_reserve_exact(bytes as usize).map_err(|_| {
            let message = format!("no memory for a reply of {bytes} bytes");
            KernelError::new(tenon_abi::Code::RESOURCE_EXHAUSTED, message)
        })?;
        // SAFETY: the room has at least as many bytes. They are checked as they are read.
        let long = unsafe { slice::from_raw_parts(room.data().cast::<u8>(), bytes as usize) };
        self.reply.extend_from_slice(long);
        Ok(())
    }

    /// The buffers, for the next conversation; those of a long message are dropped.
    pub fn take_buffers(&mut self) -> Buffers {
        let kept = |buffer: &mut Vec<u8>| match buffer.capacity() <= 2 * MESSAGE_BYTES {
            true => mem::take(buffer),
            false => Vec::new(),
        };
        (kept(&mut self.reply), kept(&mut self.message))
    }
}
