//! Serves a runtime's metrics over HTTP, for Prometheus and for `tenon top`.
//!
//! [`serve`] starts a server on a loopback address. It answers `/metrics` in Prometheus's text
//! format and `/metrics.json`, both with the current values of [`Runtime::metrics`], and the probes
//! `/healthz` (the process can work) and `/readyz` (it takes requests). [`serve_at`] does so at any
//! address, with what a program adds.
//! [`serve_as_set`] does the same if the knob `runtime.monitor` is set. The server runs until its
//! [`Server`] is dropped; [`Runtime::attach`] keeps it for the lifetime of the runtime.
//!
//! This crate does not count anything. The runtime counts steps and calls whether or not a server
//! runs, and a program can read the metrics itself with [`tenon_runtime::metrics`].
//!
//! # Invariants
//! - The server listens on loopback unless [`serve_at`] names another address, and refuses a request
//!   there that names another host.
//! - A server does not keep its runtime alive: it answers 503 once the runtime is dropped.
//! - No client delays another: a connection may take two seconds, and with 64 open connections a
//!   new one replaces the oldest.
//! - This crate creates threads and sockets only in these calls.
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
mod pages;
mod prometheus;
mod server;

pub use error::MonitorError;
pub use pages::{Extras, Figure, Sample};
pub use server::Server;

use std::net::SocketAddr;
use tenon_framework::register_knob;
use tenon_runtime::Runtime;

// Under its own name the crate's knob would be `monitor.monitor`. It is registered here and not in the
// runtime, so that a program without this crate refuses it as an unknown knob.
register_knob!(
    "monitor" of "tenon-runtime": STRING = "",
    "Port on the loopback address at which the runtime serves its metrics over HTTP, 0 for any free one; empty is off.",
);

/// Serves the metrics of a runtime until the server is dropped. `at` is a port, 0 for any free one,
/// or a loopback address with a port.
///
/// # Errors
/// The address is not a loopback address, or the server cannot listen there.
pub fn serve(runtime: &Runtime, at: &str) -> Result<Server, MonitorError> {
    serve_at(runtime, server::address(at)?, Extras::default())
}

/// As [`serve`], at any address of this machine, with what a program adds: whether it is ready, and its figures. Who reaches
/// the address reads the figures, which have the names of ops, plugins and devices, and no values of tensors.
///
/// # Errors
/// The server cannot listen there.
pub fn serve_at(
    runtime: &Runtime,
    address: SocketAddr,
    extras: Extras,
) -> Result<Server, MonitorError> {
    let runtime = runtime.downgrade();
    let metrics = move || Some(runtime.upgrade()?.metrics());
    let server = Server::start(address, move |path| pages::page(path, &metrics, &extras))
        .map_err(|error| MonitorError::Listen { address, detail: error.to_string() })?;
    tracing::info!("figures of this process: http://{}/metrics", server.address());
    Ok(server)
}

/// Serves the metrics of a runtime if its knob `runtime.monitor` is set; returns `None` if it is
/// empty.
///
/// # Errors
/// As [`serve`].
pub fn serve_as_set(runtime: &Runtime) -> Result<Option<Server>, MonitorError> {
    match runtime.plugins().knobs().text("runtime", "monitor") {
        None | Some("") => Ok(None),
        Some(at) => serve(runtime, at).map(Some),
    }
}
