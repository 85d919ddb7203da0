//! Sinks, which receive error messages of calls that return only a code across the boundary.

use std::sync::{Mutex, PoisonError};
use tenon_abi::{Code, Sink, Str};
use tenon_framework::KernelError;

/// Receives one message. The last one counts; it may come from any thread during the call. For an
/// entry that returns bytes, such as a variant's `encode`, the message is these bytes.
#[derive(Debug, Default)]
pub struct MessageSink {
    message: Mutex<Option<Vec<u8>>>,
}

impl MessageSink {
    /// A sink without a message.
    pub const fn new() -> MessageSink {
        MessageSink { message: Mutex::new(None) }
    }

    /// The pointer for a call, valid as long as `self`.
    pub fn as_sink(&self) -> *mut Sink {
        (&raw const *self).cast_mut().cast()
    }

    /// Stores a copy of a message.
    pub fn put(&self, message: &[u8]) {
        *self.message.lock().unwrap_or_else(PoisonError::into_inner) = Some(message.to_owned());
    }

    /// Takes the message; `None` without one. Bytes that are not UTF-8 are replaced.
    pub fn take(&self) -> Option<String> {
        let bytes = self.take_bytes()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Takes the message as bytes.
    pub fn take_bytes(&self) -> Option<Vec<u8>> {
        self.message.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The result of a call that returned `code`, with its message.
    ///
    /// # Errors
    /// `code` is not `OK`; if there is no message, the error says so.
    pub fn check(&self, code: Code) -> Result<(), KernelError> {
        if code.is_ok() {
            return Ok(());
        }
        let message = self.take().unwrap_or_else(|| format!("{code}, without a message"));
        Err(KernelError::new(code, message))
    }
}

/// `Host::report`: copies the message. A null sink drops it.
///
/// # Safety
/// - `sink` is null or came from [`MessageSink::as_sink`] and is alive.
/// - `message` is readable.
pub unsafe extern "C" fn report_entry(sink: *mut Sink, message: Str) {
    // SAFETY: the caller guarantees that `sink` is null or came from `as_sink` and is alive, and
    // that `message` is readable.
    let (sink, bytes) = unsafe { (sink.cast::<MessageSink>().as_ref(), message.bytes()) };
    if let Some(sink) = sink {
        sink.put(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reported_message_comes_with_its_code() {
        let sink = MessageSink::new();
        // SAFETY: the sink is alive, the text is readable.
        unsafe { report_entry(sink.as_sink(), Str::new("expected rank 2, found 3")) };
        let error = sink.check(Code::INVALID_ARGUMENT).unwrap_err();
        assert_eq!(error, KernelError::invalid_argument("expected rank 2, found 3"));
        assert_eq!(sink.take(), None, "a message is taken once");
    }

    #[test]
    fn a_code_without_a_message_and_bytes_that_are_no_text_are_shown() {
        let sink = MessageSink::new();
        let error = sink.check(Code::INTERNAL).unwrap_err();
        assert_eq!(error.message, "INTERNAL, without a message");
        assert_eq!(sink.check(Code::OK), Ok(()));
        // SAFETY: the sink is alive, the bytes are readable.
        unsafe { report_entry(sink.as_sink(), Str::from_bytes(b"a\xffb")) };
        assert_eq!(sink.take_bytes().as_deref(), Some(&b"a\xffb"[..]), "bytes stay as they are");
        // SAFETY: the sink is alive, the bytes are readable.
        unsafe { report_entry(sink.as_sink(), Str::from_bytes(b"a\xffb")) };
        assert_eq!(sink.take().as_deref(), Some("a\u{fffd}b"));
        // SAFETY: null is allowed.
        unsafe { report_entry(std::ptr::null_mut(), Str::new("nobody")) };
    }
}
