//! Sessions.

use crate::{
    client::{
        graph::{Graph, graph_def},
        handle::Handle,
        status::Status,
        versioned::{Options, Versioned},
    },
    fail::Failure,
    import::{TF_ImportGraphDefOptions, import_def},
    raw::{Array, Text},
    session::TF_Session,
    session_options::TF_SessionOptions,
};
use std::ffi::c_int;
use tenon_framework::Code;
use tenon_proto::decode;

/// A session.
pub struct Session {
    /// The graph, and where its steps run.
    pub inner: TF_Session,
}

kept! { Session => "a session" }

/// Options of a session. Zeros are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SessionOptions {
    /// sizeof(tn_session_options).
    pub size: usize,
    /// Where the steps run: null or empty for this process, "grpc://HOST:PORT" for a server.
    pub target: Text<'static>,
    /// A ConfigProto message; null for none.
    pub config: Array<'static, u8>,
    /// Its size in bytes.
    pub config_bytes: usize,
    /// The time limit in milliseconds of steps that have none of their own; 0 for that of the message, or none.
    pub timeout_ms: i64,
}

// SAFETY: `repr(C)`, the size comes first, and zeros are null pointers and numbers.
unsafe impl Versioned for SessionOptions {
    const NAME: &'static str = "tn_session_options";
}

impl Session {
    /// Fails once the session is closed.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION`.
    pub fn check_open(&self) -> Result<(), Failure> {
        match self.inner.is_closed() {
            false => Ok(()),
            true => Err(Failure::new(
                Code::FAILED_PRECONDITION,
                "the session is closed: open another one",
            )),
        }
    }

    /// Sends what the graph has gained.
    ///
    /// # Errors
    /// The session is closed, or does not take a node.
    pub fn ready(&self) -> Result<(), Failure> {
        self.check_open()?;
        self.inner.follow()
    }

    fn open(graph: &Graph, options: &SessionOptions) -> Result<Session, Failure> {
        let mut given = TF_SessionOptions::default();
        options.target.optional("target")?.clone_into(&mut given.target);
        given.config = decode(options.config.required(options.config_bytes, "config")?)?;
        match options.timeout_ms {
            0 => {}
            limit if limit > 0 => given.config.operation_timeout_in_ms = limit,
            limit => {
                return Err(Failure::invalid(format!(
                    "timeout_ms: expected milliseconds, or 0 for no limit, found {limit}"
                )));
            }
        }
        Ok(Session { inner: TF_Session::over(&graph.shared, &given)? })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A server that is gone has no session to close.
        let _ = self.inner.close();
    }
}

api! {
    /// Opens a session over a graph, which may grow while the session lives: a step takes over what the graph has gained. "options"
    /// may be null. The caller deletes the session.
    fn tn_session_new(
        graph: Handle<Graph>,
        options: Options<'_, SessionOptions>,
        status: Option<&mut Status>,
    ) -> Handle<Session> [status] {
        Session::open(&*graph.get()?, &options.read()?).map(Handle::new)
    }

    /// Adds the nodes of a GraphDef message to the graph of a session, and sends them to where its steps run.
    fn tn_session_extend(
        session: Handle<Session>,
        message: Array<'_, u8>,
        bytes: usize,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let session = session.get()?;
        session.check_open()?;
        let def = graph_def(message, bytes)?;
        import_def(&session.inner.graph, def, &TF_ImportGraphDefOptions::default())?;
        session.ready()?;
        Ok(true)
    }

    /// Closes a session: its steps are cancelled, and it refuses new ones with TN_FAILED_PRECONDITION.
    fn tn_session_close(session: Handle<Session>, status: Option<&mut Status>) -> bool [status] {
        let session = session.get()?;
        session.check_open()?;
        session.inner.close()?;
        Ok(true)
    }

    /// Closes and deletes a session. A step that runs on another thread ends first with TN_CANCELLED, or with its values.
    fn tn_session_delete(session: Handle<Session>) -> c_int {
        if let Ok(session) = session.get() {
            // Steps on other threads keep the session until they end.
            let _ = session.inner.close();
        }
        session.delete()
    }
}
