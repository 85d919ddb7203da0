//! `tenon serve`: a runtime behind TensorFlow's gRPC services.

use crate::{
    args::Global,
    error::CliError,
    output::{complain, print, print_json},
    start::start_whole,
};
use clap::Args;
use serde_json::json;
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};
use std::{net::SocketAddr, num::NonZeroUsize, time::Duration};
use tenon_cluster::{Limits, Server, ServerOptions};
use tenon_runtime::Worker;

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
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:2222")]
    pub listen: SocketAddr,
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
    let (runtime, _) = start_whole(global, args.threads.map(Into::into))?;
    let limits =
        Limits { sessions: args.sessions.into(), away: Duration::from_secs(args.session_timeout) };
    let options = ServerOptions { listen: args.listen, limits };
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
