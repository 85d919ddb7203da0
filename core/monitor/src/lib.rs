//! A runtime's figures over HTTP, for Prometheus and for `tenon top`.
//!
//! What it is: [`serve`] starts a server on a loopback address. It answers `/metrics` in Prometheus's text format and
//! `/metrics.json`, each with what [`Runtime::metrics`] gives at that moment. [`serve_as_set`] does so where the knob
//! `runtime.monitor` asks for it. The server runs until its [`Server`] is dropped; [`Runtime::attach`] keeps it for as
//! long as the runtime.
//!
//! What it is not: the counting. The runtime counts steps and calls whether or not a server runs, and
//! [`tenon_runtime::metrics`] has the figures for a program itself.
//!
//! # Invariants
//! - The server listens on loopback alone, and refuses a request that names another host.
//! - A server does not keep its runtime alive: it answers 503 once the runtime is gone.
//! - No client delays another: a connection has two seconds, and where 64 are open the oldest gives way.
//! - Without a call of this crate there is no thread and no socket.
//!
//! ```
//! use std::{
//!     io::{Read, Write},
//!     net::TcpStream,
//! };
//! use tenon_runtime::{Runtime, RuntimeOptions};
//!
//! let (runtime, _) = Runtime::new(RuntimeOptions::with_plugins(Vec::<String>::new()))?;
//! let server = tenon_monitor::serve(&runtime, "0")?;
//!
//! let mut stream = TcpStream::connect(server.address())?;
//! write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
//! let mut answer = String::new();
//! stream.read_to_string(&mut answer)?;
//! assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("tenon_steps_running 0\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod prometheus;
mod server;

pub use error::MonitorError;
pub use server::Server;

use tenon_framework::{
    abi::KnobKind,
    reg::{KnobReg, Site},
};
use tenon_runtime::Runtime;

/// The crate under whose name users know the knob.
const OWNER: &str = "tenon-runtime";

// `register_knob!` would call it `monitor.monitor`. It is registered here and not by the runtime, so that a program
// that does not read it refuses it as an unknown knob.
tenon_framework::__submit!(
    Knob,
    KnobReg::new(
        "monitor",
        KnobKind::STRING,
        "",
        "Port of the loopback address on which the runtime tells its figures over HTTP, 0 for any free one; empty is off.",
        Site { krate: OWNER, file: file!(), line: line!() }
    )
);

/// Serves the figures of a runtime until the server is dropped. `at` is a port, 0 for any free one, or a loopback
/// address with a port.
///
/// # Errors
/// An address that is not of this machine alone; one that cannot be listened at.
pub fn serve(runtime: &Runtime, at: &str) -> Result<Server, MonitorError> {
    let address = server::address(at)?;
    let runtime = runtime.downgrade();
    let figures = move || Some(runtime.upgrade()?.metrics());
    let server = Server::start(address, figures)
        .map_err(|error| MonitorError::Listen { address, detail: error.to_string() })?;
    tracing::info!("figures of this process: http://{}/metrics", server.address());
    Ok(server)
}

/// Serves the figures of a runtime where its knob `runtime.monitor` is set; `None` where it is empty.
///
/// # Errors
/// As [`serve`].
pub fn serve_as_set(runtime: &Runtime) -> Result<Option<Server>, MonitorError> {
    match runtime.plugins().knobs().text("runtime", "monitor") {
        None | Some("") => Ok(None),
        Some(at) => serve(runtime, at).map(Some),
    }
}
