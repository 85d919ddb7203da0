//! A call of a method, over a connection or from this process.

use crate::client::Client;
use tenon_runtime::CancelToken;

/// The argument of a method.
pub(crate) struct Call<Q> {
    pub request: Q,
    /// The connection; `None` for a caller in this process.
    pub client: Option<Client>,
    /// Cancelled when no client waits for the answer any more.
    pub cancel: CancelToken,
}
