//! Options of sessions.

use crate::{
    buffer,
    fail::Failure,
    raw::{Array, Text},
    status::TF_Status,
};
use tenon_proto::ConfigProto;

/// Options of a session.
#[derive(Default, Clone)]
pub struct TF_SessionOptions {
    /// Where the session is: empty for this process, or `grpc://host:port`.
    pub(crate) target: String,
    pub(crate) config: ConfigProto,
}

api! {
    /// Makes options for a session in this process.
    fn TF_NewSessionOptions() -> Option<Box<TF_SessionOptions>> { Some(Box::default()) }

    /// Says where the session is: empty for this process, `grpc://host:port` for a server.
    fn TF_SetTarget(options: Option<&mut TF_SessionOptions>, target: Text<'_>) {
        if let (Some(options), Some(target)) = (options, target.get()) {
            options.target = target.to_string_lossy().into_owned();
        }
    }

    /// Sets the options of a `ConfigProto`.
    fn TF_SetConfig(
        options: Option<&mut TF_SessionOptions>,
        message: Array<'_, u8>,
        length: usize,
        status: Option<&mut TF_Status>,
    ) [status] {
        let options = options.ok_or_else(|| Failure::null("the options"))?;
        options.config = buffer::message(message.message(length))?;
        Ok(())
    }

    /// Deletes options.
    fn TF_DeleteSessionOptions(options: Option<Box<TF_SessionOptions>>) { drop(options) }
}
