//! Statuses of the client API.

use crate::{
    fail::{Failure, Report},
    raw::Text,
    status::c_text,
};
use std::{
    collections::HashSet,
    ffi::{CString, c_char, c_int},
    sync::LazyLock,
};
use tenon_framework::{Code, sync::Mutex};

/// A canonical code, as C passes it.
pub type CodeNumber = c_int;

/// The outcome of a call.
#[derive(Default)]
pub struct Status {
    code: c_int,
    message: CString,
    node: CString,
    op: CString,
    device: CString,
}

/// The addresses of the statuses that were not deleted.
static LIVE: LazyLock<Mutex<HashSet<usize>>> = LazyLock::new(Mutex::default);

impl Report for Status {
    fn clear(&mut self) {
        if self.code != 0 {
            *self = Status::default();
        }
    }

    fn report(&mut self, failure: &Failure) {
        let place = failure.place.as_deref().cloned().unwrap_or_default();
        *self = Status {
            code: failure.code.0,
            message: c_text(&failure.message),
            node: c_text(&place.node),
            op: c_text(&place.op),
            device: c_text(&place.device),
        };
    }
}

/// The version of the library.
const VERSION: &std::ffi::CStr = {
    let text = concat!(env!("CARGO_PKG_VERSION"), "\0");
    match std::ffi::CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the text ends with its only zero"),
    }
};

api! {
    /// The version of the library, such as "0.1.0". It stays valid for ever.
    fn tn_version() -> *const c_char { VERSION.as_ptr() }

    /// Makes a status that says success.
    fn tn_status_new() -> *mut Status {
        let made = Box::into_raw(Box::<Status>::default());
        LIVE.lock().insert(made as usize);
        made
    }

    /// Deletes a status. Null is allowed. Returns TN_INVALID_ARGUMENT, and does nothing, if it was deleted already.
    /// Threads: no other call uses the status at that time.
    fn tn_status_delete(status: *mut Status) -> CodeNumber {
        if status.is_null() {
            return Code::OK.0;
        }
        if !LIVE.lock().remove(&(status as usize)) {
            tracing::error!("tn_status_delete: the status was deleted already, or is none");
            return Code::INVALID_ARGUMENT.0;
        }
        // SAFETY: `tn_status_new` made it of a box, and it was not taken back yet.
        drop(unsafe { Box::from_raw(status) });
        Code::OK.0
    }

    /// The code: TN_OK after success, and for null.
    /// Threads: a status is used by one call at a time.
    fn tn_status_code(status: Option<&Status>) -> CodeNumber {
        status.map_or(Code::OK.0, |status| status.code)
    }

    /// What was expected, what was found, and what to do; empty after success. The text stays until the status changes.
    /// Threads: a status is used by one call at a time.
    fn tn_status_message(status: Option<&Status>) -> *const c_char {
        status.map_or(c"".as_ptr(), |status| status.message.as_ptr())
    }

    /// The name of the node that failed; empty where no node did. The text stays until the status changes.
    /// Threads: a status is used by one call at a time.
    fn tn_status_node(status: Option<&Status>) -> *const c_char {
        status.map_or(c"".as_ptr(), |status| status.node.as_ptr())
    }

    /// The op of the node that failed; empty where it is not known. The text stays until the status changes.
    /// Threads: a status is used by one call at a time.
    fn tn_status_op(status: Option<&Status>) -> *const c_char {
        status.map_or(c"".as_ptr(), |status| status.op.as_ptr())
    }

    /// The full name of the device on which the node failed; empty where it is not known. The text stays until the status changes.
    /// Threads: a status is used by one call at a time.
    fn tn_status_device(status: Option<&Status>) -> *const c_char {
        status.map_or(c"".as_ptr(), |status| status.device.as_ptr())
    }

    /// Sets a code and a message, for callers that report errors of their own by a status. TN_OK clears the status.
    /// Threads: a status is used by one call at a time.
    fn tn_status_set(status: Option<&mut Status>, code: CodeNumber, message: Text<'_>) {
        let Some(status) = status else { return };
        if code == Code::OK.0 {
            return status.clear();
        }
        let message = message.get().map(|text| text.to_string_lossy().into_owned());
        status.report(&Failure::new(Code(code), message.unwrap_or_default()));
    }

    /// The canonical name of a code, such as "INVALID_ARGUMENT"; "UNKNOWN" for a number that is none. It stays valid for ever.
    fn tn_code_name(code: CodeNumber) -> *const c_char {
        static NAMES: LazyLock<Vec<CString>> =
            LazyLock::new(|| (0..=16).map(|number| c_text(Code(number).name())).collect());
        let found = usize::try_from(code).ok().and_then(|at| NAMES.get(at));
        found.map_or(c"UNKNOWN".as_ptr(), |name| name.as_ptr())
    }
}
