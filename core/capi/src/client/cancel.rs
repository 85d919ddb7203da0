//! Tokens that cancel steps.

use crate::client::{handle::Handle, status::Status};
use std::ffi::c_int;
use tenon_runtime::CancelToken;

/// Cancels the steps that it was given to.
pub struct Cancel(pub CancelToken);

kept! { Cancel => "a token" }

api! {
    /// Makes a token, to be given to steps by tn_run_options. The caller deletes it.
    fn tn_cancel_new(status: Option<&mut Status>) -> Handle<Cancel> [status] {
        Ok(Handle::new(Cancel(CancelToken::new())))
    }

    /// Cancels all current and future steps with this token: they end with TN_CANCELLED.
    fn tn_cancel_trigger(cancel: Handle<Cancel>, status: Option<&mut Status>) -> bool [status] {
        cancel.get()?.0.cancel();
        Ok(true)
    }

    /// Whether the token was triggered; false for no token.
    fn tn_cancel_is_triggered(cancel: Handle<Cancel>) -> bool {
        cancel.get().is_ok_and(|cancel| cancel.0.is_cancelled())
    }

    /// Deletes a token. Steps that have it go on, and can no longer be cancelled by it.
    fn tn_cancel_delete(cancel: Handle<Cancel>) -> c_int { cancel.delete() }
}
