//! Servers in this process.

use crate::{
    client::{
        handle::Handle,
        runtime::Runtime,
        status::Status,
        versioned::{Options, Versioned},
    },
    fail::Failure,
    raw::Text,
    serving::Serving,
    status::c_text,
};
use std::{
    ffi::{CString, c_char, c_int},
    net::SocketAddr,
    ptr,
    time::Duration,
};
use tenon_cluster::{ClusterSpec, Limits, ServerOptions as Settings};
use tenon_framework::Code;
use tenon_runtime::Worker;

/// A server.
pub struct Server {
    target: CString,
    serving: Serving,
}

kept! { Server => "a server" }

/// Options of a server. Zeros are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ServerOptions {
    /// sizeof(tn_server_options).
    pub size: usize,
    /// ADDRESS:PORT to listen at; null for any free port of 127.0.0.1.
    pub listen: Text<'static>,
    /// The tasks of the cluster, as the JSON object of TF_CONFIG's "cluster"; null for a server on its own. The runtime's job and task
    /// say which one this is.
    pub cluster: Text<'static>,
    /// A file of tokens, one of which each request brings; null for none.
    pub token_file: Text<'static>,
    /// How many sessions may be open; 0 for 1000.
    pub sessions: usize,
}

// SAFETY: `repr(C)`, the size comes first, and zeros are null pointers and numbers.
unsafe impl Versioned for ServerOptions {
    const NAME: &'static str = "tn_server_options";
}

/// How many sessions may be open unless the options say otherwise.
const SESSIONS: usize = 1000;

fn settings(options: &ServerOptions) -> Result<Settings, Failure> {
    let mut made = Settings::default();
    let listen = options.listen.optional("listen")?;
    if !listen.is_empty() {
        made.listen = listen.parse::<SocketAddr>().map_err(|_| {
            Failure::invalid(format!(
                "listen: expected ADDRESS:PORT, such as 127.0.0.1:0, found '{listen}'"
            ))
        })?;
    }
    let cluster = options.cluster.optional("cluster")?;
    if !cluster.is_empty() {
        made.cluster = ClusterSpec::parse(cluster)?;
    }
    let token_file = options.token_file.optional("token_file")?;
    made.token_file = (!token_file.is_empty()).then(|| token_file.into());
    let sessions = if options.sessions == 0 { SESSIONS } else { options.sessions };
    made.limits = Limits { sessions, ..Limits::default() };
    Ok(made)
}

impl Server {
    fn start(runtime: &tenon_runtime::Runtime, options: &ServerOptions) -> Result<Server, Failure> {
        let server = tenon_cluster::Server::start(Worker::new(runtime), &settings(options)?)?;
        let target = c_text(&format!("grpc://{}", server.address()));
        Ok(Server { target, serving: Serving::started(server) })
    }
}

fn milliseconds(given: i64, what: &str) -> Result<Duration, Failure> {
    u64::try_from(given)
        .map(Duration::from_millis)
        .map_err(|_| Failure::invalid(format!("{what}: expected milliseconds, found {given}")))
}

api! {
    /// Starts a server of TensorFlow's protocol over the devices of a runtime. "options" may be null. It listens where other machines
    /// reach it only if that is secured. The caller deletes the server.
    fn tn_server_start(
        runtime: Handle<Runtime>,
        options: Options<'_, ServerOptions>,
        status: Option<&mut Status>,
    ) -> Handle<Server> [status] {
        Server::start(&runtime.get()?.0, &options.read()?).map(Handle::new)
    }

    /// The target of its clients, such as "grpc://127.0.0.1:2222", which stays until the server is deleted; null for no server.
    fn tn_server_target(server: Handle<Server>) -> *const c_char {
        server.get().map_or(ptr::null(), |server| server.target.as_ptr())
    }

    /// Stops a server: it refuses new connections, waits "grace_ms" milliseconds at most for the steps in flight, cancels the rest,
    /// and closes all sessions. TN_FAILED_PRECONDITION if it is stopped already.
    fn tn_server_stop(
        server: Handle<Server>,
        grace_ms: i64,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let grace = milliseconds(grace_ms, "grace_ms")?;
        if !server.get()?.serving.stop(grace) {
            return Err(Failure::new(Code::FAILED_PRECONDITION, "the server is stopped already"));
        }
        Ok(true)
    }

    /// Waits until another thread has stopped the server, for "timeout_ms" milliseconds at most, after which the code is
    /// TN_DEADLINE_EXCEEDED; -1 for any time.
    fn tn_server_join(
        server: Handle<Server>,
        timeout_ms: i64,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let limit = match timeout_ms {
            -1 => None,
            given => Some(milliseconds(given, "timeout_ms")?),
        };
        if !server.get()?.serving.join(limit) {
            let limit = limit.unwrap_or_default();
            return Err(Failure::new(
                Code::DEADLINE_EXCEEDED,
                format!("the server was not stopped within {limit:?}: stop it by tn_server_stop"),
            ));
        }
        Ok(true)
    }

    /// Stops a server without grace, if it is not stopped yet, and deletes it.
    fn tn_server_delete(server: Handle<Server>) -> c_int {
        if let Ok(server) = server.get() {
            // A server that is stopped already is what is wanted.
            let _ = server.serving.stop(Duration::ZERO);
        }
        server.delete()
    }
}
