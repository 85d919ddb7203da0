//! Servers of TensorFlow's C API.

use crate::{
    buffer,
    fail::Failure,
    process,
    raw::Array,
    serving::{Bound, Serving},
    status::{TF_Status, c_text},
};
use std::{
    ffi::{CString, c_char},
    ptr,
    time::Duration,
};
use tenon_cluster::{ClusterSpec, ServerOptions};
use tenon_framework::Code;
use tenon_proto::ServerDef;
use tenon_runtime::RuntimeOptions;

/// A server of one task. Its runtime is its own: the names of its devices are the task's.
pub struct TF_Server {
    target: CString,
    serving: Serving,
}

/// Opens the devices of a task and takes its port.
fn bind(def: ServerDef) -> Result<TF_Server, Failure> {
    if def.protocol != "grpc" {
        return Err(Failure::new(
            Code::NOT_FOUND,
            format!("the server: expected protocol 'grpc', found '{}'", def.protocol),
        ));
    }
    let cluster = ClusterSpec::from_def(&def.cluster.unwrap_or_default())?;
    let task = u32::try_from(def.task_index).map_err(|_| {
        let found = def.task_index;
        Failure::invalid(format!("the server: expected the number of a task, found {found}"))
    })?;
    let mut listen = cluster.socket_address(&def.job_name, task)?;
    if let Ok(port @ 1..) = u16::try_from(def.port) {
        listen.set_port(port);
    }
    let options = ServerOptions { listen, cluster, ..ServerOptions::default() };
    let listener = tenon_cluster::Server::bind(&options)?;
    let address = listener.local_addr().map_err(|error| {
        Failure::new(Code::INTERNAL, format!("the server: its port is not known: {error}"))
    })?;
    let config = def.default_session_config.unwrap_or_default();
    let threads = usize::try_from(config.intra_op_parallelism_threads).ok();
    let runtime = process::start(RuntimeOptions {
        threads: threads.filter(|threads| *threads > 0),
        task: process::task_name(&def.job_name, task)?,
        ..RuntimeOptions::default()
    })?;
    let target = c_text(&format!("grpc://{address}"));
    Ok(TF_Server { target, serving: Serving::bound(Bound { runtime, listener, options }) })
}

fn server(server: Option<&TF_Server>) -> Result<&TF_Server, Failure> {
    server.ok_or_else(|| Failure::null("the server"))
}

api! {
    /// Makes a server of a `ServerDef`: one task of a cluster, with the devices of all plugins. It takes the task's port; whoever
    /// connects waits for the start.
    fn TF_NewServer(
        message: Array<'_, u8>,
        length: usize,
        status: Option<&mut TF_Status>,
    ) -> Option<Box<TF_Server>> [status] {
        bind(buffer::message(message.message(length))?).map(|server| Some(Box::new(server)))
    }

    /// Starts to serve. A server that was stopped does not start again.
    fn TF_ServerStart(found: Option<&TF_Server>, status: Option<&mut TF_Status>) [status] {
        if server(found)?.serving.start()? {
            return Ok(());
        }
        Err(Failure::new(Code::FAILED_PRECONDITION, "the server was stopped: make a new one"))
    }

    /// Stops serving: steps in flight are cancelled, and sessions are closed.
    fn TF_ServerStop(found: Option<&TF_Server>, status: Option<&mut TF_Status>) [status] {
        server(found)?.serving.stop(Duration::ZERO);
        Ok(())
    }

    /// Waits until another thread has stopped the server. One that was not started does not start any more.
    fn TF_ServerJoin(found: Option<&TF_Server>, status: Option<&mut TF_Status>) [status] {
        let serving = &server(found)?.serving;
        serving.give_up();
        serving.join(None);
        Ok(())
    }

    /// The target of its clients, such as `grpc://127.0.0.1:2222`, which stays until the server is deleted; null for no server.
    fn TF_ServerTarget(server: Option<&TF_Server>) -> *const c_char {
        server.map_or(ptr::null(), |server| server.target.as_ptr())
    }

    /// Stops a server and deletes it.
    fn TF_DeleteServer(server: Option<Box<TF_Server>>) {
        if let Some(server) = server {
            server.serving.stop(Duration::ZERO);
        }
    }
}
