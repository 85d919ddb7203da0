//! Statuses: a code and a message.

use crate::{
    fail::{Failure, Report},
    raw::Text,
};
use std::{
    collections::BTreeMap,
    ffi::{CString, c_char, c_int, c_void},
    io,
};
use tenon_framework::Code;

/// The outcome of a call.
#[derive(Default)]
pub struct TF_Status {
    code: c_int,
    message: CString,
    /// What else is known of a failure, by keys.
    payloads: BTreeMap<CString, CString>,
}

/// Is called with the key and the value of a payload, and with a value of the caller's.
pub type Visitor = unsafe extern "C" fn(*const c_char, *const c_char, *mut c_void);

/// The bytes as a C text: a zero byte, which would end it, becomes a space.
pub fn c_text(text: &str) -> CString {
    CString::new(text).unwrap_or_else(|_| {
        let spaced = text.replace('\0', " ");
        CString::new(spaced).unwrap_or_default()
    })
}

impl Report for TF_Status {
    fn clear(&mut self) {
        if self.code != 0 {
            *self = TF_Status::default();
        }
    }

    fn report(&mut self, failure: &Failure) {
        self.set(failure.code, &failure.message);
    }
}

impl TF_Status {
    /// Notes a failure.
    pub fn set(&mut self, code: Code, message: &str) {
        self.code = code.0;
        self.message = c_text(message);
        self.payloads.clear();
    }
}

/// Error numbers of the system by their canonical codes, as TensorFlow has them.
#[rustfmt::skip]
const SYSTEM: [(Code, &[c_int]); 12] = [
    (Code::INVALID_ARGUMENT, &[
        libc::EINVAL, libc::ENAMETOOLONG, libc::E2BIG, libc::EDESTADDRREQ, libc::EDOM, libc::EFAULT, libc::EILSEQ,
        libc::ENOPROTOOPT, libc::ENOSTR, libc::ENOTSOCK, libc::ENOTTY, libc::EPROTOTYPE, libc::ESPIPE,
    ]),
    (Code::DEADLINE_EXCEEDED, &[libc::ETIMEDOUT, libc::ETIME]),
    (Code::NOT_FOUND, &[libc::ENODEV, libc::ENOENT, libc::ENXIO, libc::ESRCH]),
    (Code::ALREADY_EXISTS, &[libc::EEXIST, libc::EADDRNOTAVAIL, libc::EALREADY]),
    (Code::PERMISSION_DENIED, &[libc::EPERM, libc::EACCES, libc::EROFS]),
    (Code::FAILED_PRECONDITION, &[
        libc::ENOTEMPTY, libc::EISDIR, libc::ENOTDIR, libc::EADDRINUSE, libc::EBADF, libc::EBUSY, libc::ECHILD,
        libc::EISCONN, libc::ENOTBLK, libc::ENOTCONN, libc::EPIPE, libc::ESHUTDOWN, libc::ETXTBSY,
    ]),
    (Code::RESOURCE_EXHAUSTED, &[
        libc::ENOSPC, libc::EDQUOT, libc::EMFILE, libc::EMLINK, libc::ENFILE, libc::ENOBUFS, libc::ENODATA,
        libc::ENOMEM, libc::ENOSR, libc::EUSERS,
    ]),
    (Code::OUT_OF_RANGE, &[libc::EFBIG, libc::EOVERFLOW, libc::ERANGE]),
    (Code::UNIMPLEMENTED, &[
        libc::ENOSYS, libc::ENOTSUP, libc::EAFNOSUPPORT, libc::EPFNOSUPPORT, libc::EPROTONOSUPPORT,
        libc::ESOCKTNOSUPPORT, libc::EXDEV,
    ]),
    (Code::UNAVAILABLE, &[
        libc::EAGAIN, libc::ECONNREFUSED, libc::ECONNABORTED, libc::ECONNRESET, libc::EINTR, libc::EHOSTDOWN,
        libc::EHOSTUNREACH, libc::ENETDOWN, libc::ENETRESET, libc::ENETUNREACH, libc::ENOLCK, libc::ENOLINK,
        libc::ENONET,
    ]),
    (Code::ABORTED, &[libc::EDEADLK, libc::ESTALE]),
    (Code::CANCELLED, &[libc::ECANCELED]),
];

/// The canonical code of an error number of the system.
fn code_of_system(number: c_int) -> Code {
    let found = SYSTEM.iter().find(|(_, numbers)| numbers.contains(&number));
    found.map_or(Code::UNKNOWN, |(code, _)| *code)
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

    /// Sets the code and the message of an error number of the system; 0 is success.
    fn TF_SetStatusFromIOError(status: Option<&mut TF_Status>, number: c_int, context: Text<'_>) {
        let Some(status) = status else { return };
        if number == 0 {
            return status.clear();
        }
        let context = context.get().map(|text| text.to_string_lossy().into_owned());
        let error = io::Error::from_raw_os_error(number).to_string();
        // The number, which Rust adds, is not in TensorFlow's text.
        let text = error.split(" (os error ").next().unwrap_or_default();
        let message = format!("{}; {text}", context.unwrap_or_default());
        status.set(code_of_system(number), &message);
    }

    /// Adds a payload to a failure, in the place of one with the same key. A status of code `TF_OK` has none.
    fn TF_SetPayload(status: Option<&mut TF_Status>, key: Text<'_>, value: Text<'_>) {
        let (Some(status), Some(key), Some(value)) = (status, key.get(), value.get()) else { return };
        if status.code != 0 {
            status.payloads.insert(key.to_owned(), value.to_owned());
        }
    }

    /// Calls a function with each payload, in the order of the keys.
    fn TF_ForEachPayload(status: Option<&TF_Status>, visitor: Option<Visitor>, capture: *mut c_void) {
        let (Some(status), Some(visitor)) = (status, visitor) else { return };
        for (key, value) in &status.payloads {
            // SAFETY: the caller in C gave the function for such texts and for this value.
            unsafe { visitor(key.as_ptr(), value.as_ptr(), capture) };
        }
    }

    /// The code; `TF_OK` for null.
    fn TF_GetCode(status: Option<&TF_Status>) -> c_int { status.map_or(0, |status| status.code) }

    /// The message, until the status changes; empty for null.
    fn TF_Message(status: Option<&TF_Status>) -> *const c_char {
        status.map_or(c"".as_ptr(), |status| status.message.as_ptr())
    }
}
