//! `tenon serve`: a runtime behind TensorFlow's gRPC services.

use crate::{
    args::Global,
    error::CliError,
    output::{complain, print, print_json},
    start::start_whole_with,
};
use clap::Args;
use serde_json::json;
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};
use std::{fs, net::SocketAddr, num::NonZeroUsize, path::PathBuf, time::Duration};
use tenon_cluster::{ClusterSpec, Limits, Server, ServerOptions};
use tenon_runtime::{RuntimeOptions, Worker, framework::device::DeviceName};

/// The knob of the number of CPU devices.
const CPU_DEVICES: &str = "cpu.devices";

pub const ABOUT: &str = "\
Serve sessions to clients of TensorFlow's protocol

An unchanged client of TensorFlow opens a session with tf.compat.v1.Session(ADDRESS), where ADDRESS is the first line that
this prints once it is ready. Sessions share variables by container and name. SIGTERM and SIGINT end it: no new
connections, and the steps in flight may end within --grace; then they are cancelled.";

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
    /// Seconds that a session waits for tasks of the cluster that are absent when it is opened
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    pub absent: u64,
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
}

/// Serves until a signal ends it.
///
/// # Errors
/// The address is taken; a named plugin is refused.
pub fn serve(global: &Global, args: &ServeArgs) -> Result<(), CliError> {
    // Before the first thread starts: a signal that comes while the server starts ends it as well.
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(CliError::Signals)?;
    let listen = listen(args)?;
    let (runtime, _) = start_whole_with(global, runtime_options(args))?;
    let limits =
        Limits { sessions: args.sessions.into(), away: Duration::from_secs(args.session_timeout) };
    let absent = Duration::from_secs(args.absent);
    let cluster = cluster(args)?.unwrap_or_default();
    let options = ServerOptions { listen, limits, cluster, absent };
    let server = Server::start(Worker::new(&runtime), &options)?;
    let address = format!("grpc://{}", server.address());
    match global.json {
        true => print_json(&json!({ "address": address }))?,
        false => print(&format!("{address}\n"))?,
    }
    let signal = signals.forever().next();
    let grace = Duration::from_secs(args.grace);
    let name = signal.and_then(signal_hook::low_level::signal_name).unwrap_or("a signal");
    complain(&format!("{name}: steps in flight have {grace:?} to end"));
    server.stop(grace);
    Ok(())
}

fn runtime_options(args: &ServeArgs) -> RuntimeOptions {
    let task = DeviceName::of_task(&args.job, args.task);
    let threads = args.threads.map(Into::into);
    let mut options = RuntimeOptions { threads, task, ..RuntimeOptions::default() };
    if let Some(cpus) = args.cpus {
        options.settings.options.push((CPU_DEVICES.to_owned(), cpus.to_string()));
    }
    options
}

/// Where the server listens.
fn listen(args: &ServeArgs) -> Result<SocketAddr, CliError> {
    let own = match cluster(args)? {
        Some(cluster) => Some(cluster.socket_address(&args.job, args.task)?),
        None => None,
    };
    Ok(args.listen.or(own).unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 2222))))
}

/// The cluster of the server, if it is named.
fn cluster(args: &ServeArgs) -> Result<Option<ClusterSpec>, CliError> {
    args.cluster.as_deref().map(read_cluster).transpose()
}

/// A cluster, from JSON or a file.
fn read_cluster(text: &str) -> Result<ClusterSpec, CliError> {
    if text.trim_start().starts_with('{') {
        return Ok(ClusterSpec::parse(text)?);
    }
    let file = PathBuf::from(text);
    let read = fs::read_to_string(&file);
    let text = read.map_err(|source| CliError::File { file, done: "read", source })?;
    Ok(ClusterSpec::parse(&text)?)
}
