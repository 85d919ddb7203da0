//! `tenon serve`: a runtime behind TensorFlow's gRPC services.

mod figures;
mod place;
mod secure;

use crate::{
    args::Global,
    error::CliError,
    output::{complain, print, print_json},
    start::start_whole_with,
};
use clap::Args;
pub use place::json_of;
use place::{Place, PlaceArgs};
pub use secure::AccessArgs;
use secure::{ClientArgs, trust_list};
use serde_json::json;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};
use std::{
    io::{self, Read},
    net::SocketAddr,
    num::NonZeroUsize,
    process, thread,
    time::Duration,
};
use tenon_cluster::{DataPlane, Limits, Server, ServerOptions};
use tenon_runtime::{RuntimeOptions, Worker, framework::device::DeviceName};

/// The knob of the number of CPU devices.
const CPU_DEVICES: &str = "cpu.devices";

pub const ABOUT: &str = "\
Serve sessions to clients of TensorFlow's protocol

An unchanged client of TensorFlow opens a session with tf.compat.v1.Session(ADDRESS), where ADDRESS is the first line that
this prints once it is ready. Sessions share variables by container and name. SIGTERM and SIGINT end it: no new
connections, and the steps in flight may end within --grace; then they are cancelled.

It listens on the loopback address unless told. Elsewhere it requires TLS, and certificates of its clients (--tls-ca) or
tokens (--token-file), unless --insecure says otherwise. The files of certificates and tokens are read again when they
change, and on SIGHUP. Graphs may not read or write files, unless --allow-files names a folder. If there is a list of
trusted plugins where `tenon trust` keeps it, only plugins on it are loaded.";

pub const EXAMPLE: &str = "\
Example:
  tenon serve --listen 127.0.0.1:0 --plugin libmy_ops.so";

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to listen; port 0 takes a free one. Without this, the address of the task in the cluster, or 127.0.0.1:2222
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// The tasks of the cluster that this server belongs to: JSON such as {"worker": ["host:2222"]}, or a file of it
    #[arg(long, value_name = "FILE|JSON", requires = "job")]
    pub cluster: Option<String>,
    /// The job of this server, which its devices have in their names
    #[arg(long, value_name = "JOB", default_value = "localhost")]
    pub job: String,
    /// The number of this server among the tasks of its job
    #[arg(long, value_name = "N", default_value = "0")]
    pub task: u32,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Seconds that a session waits for tasks of the cluster that are absent when it is opened
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    pub absent: u64,
    /// Which way tensors take between this task and others of Tenon: auto is shared memory on one host, else TCP, else gRPC. The
    /// others fail a step whose tensors cannot take that way; with tasks of TensorFlow it is always gRPC, which tcp and shm refuse
    #[arg(long, value_name = "auto|grpc|tcp|shm", default_value = "auto", value_parser = data_plane)]
    pub data_plane: DataPlane,
    /// CPU devices: all compute with the same threads
    #[arg(long, value_name = "N")]
    pub cpus: Option<NonZeroUsize>,
    /// Threads that compute; one per core without this option
    #[arg(long, value_name = "N", value_parser = crate::args::threads)]
    pub threads: Option<NonZeroUsize>,
    /// Seconds that steps in flight have to end when the server is told to stop
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    pub grace: u64,
    /// Sessions that are open at the same time, at most
    #[arg(long, value_name = "N", default_value = "1000")]
    pub sessions: NonZeroUsize,
    /// Seconds after which a session is closed when none of its clients is connected
    #[arg(long, value_name = "SECONDS", default_value = "3600")]
    pub session_timeout: u64,
    /// Serve the figures of this process and the probes /healthz and /readyz at this address, over HTTP
    #[arg(long, value_name = "ADDRESS")]
    pub monitor: Option<SocketAddr>,
    /// End as on SIGTERM when standard input ends, such as when the process that wrote to it is gone
    #[arg(long)]
    pub while_stdin: bool,
    #[command(flatten)]
    pub access: AccessArgs,
    #[command(flatten)]
    pub clients: ClientArgs,
}

/// Reads the name of a way.
fn data_plane(text: &str) -> Result<DataPlane, String> {
    let found = DataPlane::NAMES.iter().find(|(name, _)| *name == text);
    found.map(|(_, plane)| *plane).ok_or_else(|| {
        let names: Vec<&str> = DataPlane::NAMES.iter().map(|(name, _)| *name).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// Serves until a signal ends it.
///
/// # Errors
/// The address is taken; a named plugin is refused.
pub fn serve(global: &Global, args: &ServeArgs) -> Result<(), CliError> {
    // Before the first thread starts: a signal that comes while the server starts ends it as well.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(CliError::Signals)?;
    let (Place { cluster, job, task, listen }, tls) = (Place::of(args)?, args.access.of_server()?);
    let mut options = runtime_options(args, &job, task);
    trust_list(&mut options, &global.settings()?);
    let (runtime, _) = start_whole_with(global, options)?;
    args.clients.confine_files(&runtime)?;
    let limits = Limits {
        sessions: args.sessions.into(),
        away: Duration::from_secs(args.session_timeout),
        ..Limits::default()
    };
    let absent = Duration::from_secs(args.absent);
    let options = ServerOptions {
        listen,
        limits,
        cluster: cluster.unwrap_or_default(),
        absent,
        tls,
        token_file: args.access.token_file.clone(),
        insecure: args.access.insecure,
        clients: args.clients.limits(),
        audit: args.clients.audit(),
        data_plane: args.data_plane,
    };
    let server = Server::start(Worker::new(&runtime), &options)?;
    if let Some(monitor) = args.monitor {
        let extras = figures::extras(&job, task, server.watch());
        runtime.attach(tenon_monitor::serve_at(&runtime, monitor, extras)?);
    }
    if args.while_stdin {
        thread::spawn(end_with_input);
    }
    let scheme = if options.tls.is_some() { "grpcs" } else { "grpc" };
    let address = format!("{scheme}://{}", server.address());
    match global.json {
        true => print_json(&json!({ "address": address }))?,
        false => print(&format!("{address}\n"))?,
    }
    let ends = |signal: &i32| {
        let ends = *signal != SIGHUP;
        if !ends {
            server.reload();
        }
        ends
    };
    let signal = signals.forever().find(ends);
    let grace = Duration::from_secs(args.grace);
    let name = signal.and_then(signal_hook::low_level::signal_name).unwrap_or("a signal");
    complain(&format!("{name}: steps in flight have {grace:?} to end"));
    server.stop(grace);
    Ok(())
}

/// Waits for the end of standard input, and sends this process SIGTERM.
fn end_with_input() {
    let mut block = [0; 256];
    loop {
        match io::stdin().lock().read(&mut block) {
            Ok(0) => break,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
            _ => {}
        }
    }
    if signal_hook::low_level::raise(SIGTERM).is_err() {
        process::exit(1);
    }
}

fn runtime_options(args: &ServeArgs, job: &str, task: u32) -> RuntimeOptions {
    let task = DeviceName::of_task(job, task);
    let threads = args.threads.map(Into::into);
    let mut options = RuntimeOptions { threads, task, ..RuntimeOptions::default() };
    if let Some(cpus) = args.cpus {
        options.settings.options.push((CPU_DEVICES.to_owned(), cpus.to_string()));
    }
    options
}
