//! A server in this process.

use crate::{
    blocking::{blocking, check_fork, end},
    callable::duration,
    fail::Fail,
    runtime::runtime,
};
use pyo3::prelude::*;
use std::{
    net::SocketAddr,
    sync::{Mutex, PoisonError},
};
use tenon_cluster::{Limits, Server, ServerOptions};
use tenon_runtime::Worker;

/// A server of TensorFlow's protocol. `tenon.serve` is the function for programs.
#[pyclass(frozen, name = "Server", module = "tenon._native")]
pub(crate) struct PyServer {
    server: Mutex<Option<Server>>,
    address: String,
}

#[pymethods]
impl PyServer {
    #[new]
    #[pyo3(signature = (listen, *, sessions=1000))]
    fn new(py: Python<'_>, listen: &str, sessions: usize) -> Result<PyServer, Fail> {
        let runtime = runtime(py)?;
        let listen: SocketAddr = listen.parse().map_err(|_| {
            Fail::invalid(format!(
                "listen: expected ADDRESS:PORT, such as 127.0.0.1:0, found '{listen}'"
            ))
        })?;
        let limits = Limits { sessions, ..Limits::default() };
        let options = ServerOptions { listen, limits, ..ServerOptions::default() };
        let server = blocking(py, || Ok(Server::start(Worker::new(runtime), &options)?))?;
        let address = format!("grpc://{}", server.address());
        Ok(PyServer { server: Mutex::new(Some(server)), address })
    }

    /// The target of clients, such as `grpc://127.0.0.1:2222`.
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    /// Stops; steps in flight have this many seconds to end. Later calls do nothing.
    fn stop(&self, py: Python<'_>, grace: f64) -> Result<(), Fail> {
        check_fork()?;
        let grace = duration(grace)?;
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
        blocking(py, || {
            if let Some(server) = server {
                server.stop(grace);
            }
            Ok(())
        })
    }

    /// Whether the server accepts sessions.
    #[getter]
    fn running(&self) -> bool {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl Drop for PyServer {
    fn drop(&mut self) {
        end(self.server.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}
