//! Results of variable size: bytes, and lists of texts.

use crate::{client::handle::Handle, fail::Failure, status::c_text};
use prost::Message;
use std::{
    ffi::{CString, c_char, c_int, c_void},
    ptr,
};
use tenon_proto::MAX_MESSAGE_BYTES;

/// Bytes.
pub struct Buffer(Vec<u8>);

/// Texts.
pub struct List(Vec<CString>);

kept! { Buffer => "a buffer", List => "a list" }

impl Buffer {
    /// A handle for a message.
    ///
    /// # Errors
    /// The message is too large.
    pub fn of_message(message: &impl Message) -> Result<Handle<Buffer>, Failure> {
        let bytes = message.encoded_len();
        if bytes > MAX_MESSAGE_BYTES {
            return Err(Failure::invalid(format!(
                "a message of {bytes} bytes: expected {MAX_MESSAGE_BYTES} at most"
            )));
        }
        Ok(Handle::new(Buffer(message.encode_to_vec())))
    }

    /// A handle for bytes.
    pub fn of(bytes: Vec<u8>) -> Handle<Buffer> {
        Handle::new(Buffer(bytes))
    }
}

impl List {
    /// A handle for texts.
    pub fn of<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Handle<List> {
        Handle::new(List(texts.into_iter().map(|text| c_text(text.as_ref())).collect()))
    }
}

api! {
    /// The bytes, which stay until the buffer is deleted; null for no buffer.
    fn tn_buffer_data(buffer: Handle<Buffer>) -> *const c_void {
        buffer.get().map_or(ptr::null(), |buffer| buffer.0.as_ptr().cast())
    }

    /// The number of bytes; 0 for no buffer.
    fn tn_buffer_size(buffer: Handle<Buffer>) -> usize {
        buffer.get().map_or(0, |buffer| buffer.0.len())
    }

    /// Deletes a buffer.
    fn tn_buffer_delete(buffer: Handle<Buffer>) -> c_int { buffer.delete() }

    /// The number of texts; 0 for no list.
    fn tn_list_count(list: Handle<List>) -> usize { list.get().map_or(0, |list| list.0.len()) }

    /// Text number index, which stays until the list is deleted; null where the list has no such text.
    fn tn_list_at(list: Handle<List>, index: usize) -> *const c_char {
        let found = list.get().ok();
        let text = found.as_ref().and_then(|list| list.0.get(index));
        text.map_or(ptr::null(), |text| text.as_ptr())
    }

    /// Deletes a list.
    fn tn_list_delete(list: Handle<List>) -> c_int { list.delete() }
}
