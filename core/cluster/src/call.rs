//! A call of a method, over a connection or from this process, and what it needs.

use crate::client::Client;
use tenon_runtime::CancelToken;

/// What a call needs to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// A thread of its own: it may wait.
    Thread,
    /// Answers of other calls, which a future awaits.
    Answers,
    /// Nothing: it is done at once.
    Nothing,
}

/// The argument of a method.
pub(crate) struct Call<Q> {
    pub request: Q,
    /// The connection; `None` for a caller in this process.
    pub client: Option<Client>,
    /// Cancelled when no client waits for the answer any more.
    pub cancel: CancelToken,
}
