//! Sinks: where the message of an error lands that comes back across the boundary as a code.

use std::sync::{Mutex, PoisonError};
use tenon_abi::{Code, Sink, Str};
use tenon_framework::KernelError;

/// Takes one message. The last one given wins; it may come from any thread while the call runs. Of an entry
/// that gives bytes, such as a variant's `encode`, the message is these bytes.
#[derive(Debug, Default)]
pub struct MessageSink {
    message: Mutex<Option<Vec<u8>>>,
}

impl MessageSink {
    /// A sink without a message.
    pub const fn new() -> MessageSink {
        MessageSink { message: Mutex::new(None) }
    }

    /// What a call is lent; valid as long as `self`.
    pub fn as_sink(&self) -> *mut Sink {
        (&raw const *self).cast_mut().cast()
    }

    /// Keeps a copy of a message.
    pub fn put(&self, message: &[u8]) {
        *self.message.lock().unwrap_or_else(PoisonError::into_inner) = Some(message.to_owned());
    }

    /// Takes the message out; `None` when nothing was given. What is no text is shown as such.
    pub fn take(&self) -> Option<String> {
        let bytes = self.take_bytes()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Takes the message out as it was given.
    pub fn take_bytes(&self) -> Option<Vec<u8>> {
        self.message.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What a call returned, with the message that it gave.
    ///
    /// # Errors
    /// `code` is not `OK`; a code without a message says so.
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
/// `sink` is null or came from [`MessageSink::as_sink`] and is alive; `message` is readable.
pub unsafe extern "C" fn report_entry(sink: *mut Sink, message: Str) {
    // SAFETY: `sink` is null or came from `as_sink` and is alive, and `message` is readable, as the caller guarantees.
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
        // SAFETY: as above.
        unsafe { report_entry(sink.as_sink(), Str::from_bytes(b"a\xffb")) };
        assert_eq!(sink.take().as_deref(), Some("a\u{fffd}b"));
        // SAFETY: null is allowed.
        unsafe { report_entry(std::ptr::null_mut(), Str::new("nobody")) };
    }
}
