//! Buffers: blocks of bytes with what frees them.

use crate::{
    fail::{Failure, Fallback},
    raw::Array,
};
use prost::Message;
use std::{ffi::c_void, ptr, slice};
use tenon_framework::Code;
use tenon_proto::{MAX_MESSAGE_BYTES, decode};

/// A block of bytes. Its layout is public, and users may fill it in themselves.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TF_Buffer {
    /// The bytes; null for none.
    pub data: *const c_void,
    /// Their number.
    pub length: usize,
    /// Frees them when the buffer is deleted; may be absent.
    pub data_deallocator: Option<unsafe extern "C" fn(*mut c_void, usize)>,
}

impl Fallback for TF_Buffer {
    fn fallback() -> TF_Buffer {
        TF_Buffer { data: ptr::null(), length: 0, data_deallocator: None }
    }
}

unsafe extern "C" fn free(data: *mut c_void, _: usize) {
    // SAFETY: `malloc` gave the bytes of every buffer that has this deallocator, and it is called once.
    unsafe { libc::free(data) };
}

impl TF_Buffer {
    /// A buffer with a copy of these bytes.
    ///
    /// # Errors
    /// Memory ran out.
    pub fn of(bytes: &[u8]) -> Result<TF_Buffer, Failure> {
        // SAFETY: any size may be requested; one byte at least, so that an empty message is not null.
        let data = unsafe { libc::malloc(bytes.len().max(1)) };
        if data.is_null() {
            let message = format!("no memory for a buffer of {} bytes", bytes.len());
            return Err(Failure::new(Code::RESOURCE_EXHAUSTED, message));
        }
        // SAFETY: fresh memory of as many bytes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), data.cast(), bytes.len()) };
        Ok(TF_Buffer { data, length: bytes.len(), data_deallocator: Some(free) })
    }

    /// A buffer with an encoded message.
    ///
    /// # Errors
    /// The message is too large, or memory ran out.
    pub fn of_message(message: &impl Message) -> Result<TF_Buffer, Failure> {
        let bytes = message.encoded_len();
        if bytes > MAX_MESSAGE_BYTES {
            return Err(Failure::invalid(format!(
                "a message of {bytes} bytes: expected {MAX_MESSAGE_BYTES} at most"
            )));
        }
        TF_Buffer::of(&message.encode_to_vec())
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        if self.data.is_null() {
            return &[];
        }
        // SAFETY: whoever made the buffer gave as many bytes, which stay until it is deleted.
        unsafe { slice::from_raw_parts(self.data.cast(), self.length) }
    }

    /// The message in the buffer.
    ///
    /// # Errors
    /// The bytes are not such a message (`INVALID_ARGUMENT`).
    pub fn message<M: prost::Name + Default>(&self) -> Result<M, Failure> {
        message(self.bytes())
    }
}

/// Reads a message.
///
/// # Errors
/// The bytes are not such a message (`INVALID_ARGUMENT`).
pub fn message<M: prost::Name + Default>(bytes: &[u8]) -> Result<M, Failure> {
    decode(bytes).map_err(|error| Failure::invalid(error.to_string()))
}

/// Puts a message into a buffer that the caller gave for it.
///
/// # Errors
/// No buffer, or one that has bytes already.
pub fn give(buffer: Option<&mut TF_Buffer>, message: &impl Message) -> Result<(), Failure> {
    let buffer = empty(buffer)?;
    *buffer = TF_Buffer::of_message(message)?;
    Ok(())
}

/// A buffer for a result.
///
/// # Errors
/// No buffer, or one that has bytes already.
pub fn empty(buffer: Option<&mut TF_Buffer>) -> Result<&mut TF_Buffer, Failure> {
    let buffer = buffer.ok_or_else(|| Failure::null("the buffer for the result"))?;
    if buffer.data.is_null() {
        return Ok(buffer);
    }
    Err(Failure::invalid(format!(
        "the buffer for the result: expected an empty one, found one of {} bytes",
        buffer.length
    )))
}

api! {
    /// Makes an empty buffer.
    fn TF_NewBuffer() -> Option<Box<TF_Buffer>> { Some(Box::new(TF_Buffer::fallback())) }

    /// Makes a buffer with a copy of these bytes; null if memory ran out.
    fn TF_NewBufferFromString(bytes: Array<'_, u8>, length: usize) -> Option<Box<TF_Buffer>> {
        TF_Buffer::of(bytes.of_size(length)).ok().map(Box::new)
    }

    /// Deletes a buffer, and frees its bytes by its deallocator.
    fn TF_DeleteBuffer(buffer: Option<Box<TF_Buffer>>) {
        let Some(buffer) = buffer else { return };
        if let (Some(deallocate), false) = (buffer.data_deallocator, buffer.data.is_null()) {
            // SAFETY: the deallocator is that of these bytes, and the buffer is gone after this call.
            unsafe { deallocate(buffer.data.cast_mut(), buffer.length) };
        }
    }

    /// The fields of a buffer, which keeps its bytes.
    fn TF_GetBuffer(buffer: Option<&TF_Buffer>) -> TF_Buffer {
        buffer.copied().unwrap_or_else(TF_Buffer::fallback)
    }
}
