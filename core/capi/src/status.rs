//! Statuses: a code and a message.

use crate::raw::Text;
use std::ffi::{CString, c_char, c_int};
use tenon_framework::Code;

/// The outcome of a call.
#[derive(Default)]
pub struct TF_Status {
    code: c_int,
    message: CString,
}

/// The bytes as a C text: a zero byte, which would end it, becomes a space.
pub fn c_text(text: &str) -> CString {
    CString::new(text).unwrap_or_else(|_| {
        let spaced = text.replace('\0', " ");
        CString::new(spaced).unwrap_or_default()
    })
}

impl TF_Status {
    /// Notes success.
    pub fn clear(&mut self) {
        if self.code != 0 {
            *self = TF_Status::default();
        }
    }

    /// Notes a failure.
    pub fn set(&mut self, code: Code, message: &str) {
        self.code = code.0;
        self.message = c_text(message);
    }
}

api! {
    /// Makes a status of code `TF_OK`.
    fn TF_NewStatus() -> Option<Box<TF_Status>> { Some(Box::default()) }

    /// Deletes a status.
    fn TF_DeleteStatus(status: Option<Box<TF_Status>>) { drop(status) }

    /// Sets code and message; the message of `TF_OK` is empty.
    fn TF_SetStatus(status: Option<&mut TF_Status>, code: c_int, message: Text<'_>) {
        let Some(status) = status else { return };
        if code == 0 {
            return status.clear();
        }
        let message = message.get().map(|text| text.to_string_lossy().into_owned());
        status.set(Code(code), &message.unwrap_or_default());
    }

    /// The code; `TF_OK` for null.
    fn TF_GetCode(status: Option<&TF_Status>) -> c_int { status.map_or(0, |status| status.code) }

    /// The message, until the status changes; empty for null.
    fn TF_Message(status: Option<&TF_Status>) -> *const c_char {
        status.map_or(c"".as_ptr(), |status| status.message.as_ptr())
    }
}
