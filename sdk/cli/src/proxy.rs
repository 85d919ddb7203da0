//! `tenon proxy`: a local endpoint for clients that speak neither TLS nor tokens.

use crate::{
    args::Global,
    error::CliError,
    output::{complain, print, print_json},
    serve::AccessArgs,
};
use clap::Args;
use serde_json::json;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};
use std::net::SocketAddr;
use tenon_cluster::{Proxy, ProxyOptions};

pub const ABOUT: &str = "\
Give clients that speak neither TLS nor tokens a local endpoint of a server that requires them

TensorFlow's own client has neither. It opens a session on the address that this prints, and its requests go on to the
server over TLS, with the first token for clients of the file. Bytes pass as they come. Whoever reaches the endpoint has
the rights of the token: it is on the loopback address. SIGTERM and SIGINT end it. Changed certificates and tokens are
used from the next connection on.";

pub const EXAMPLE: &str = "\
Example:
  tenon proxy --listen 127.0.0.1:0 --to localhost:2222";

#[derive(Debug, Args)]
pub struct ProxyArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The server, by the name that its certificate has
    #[arg(long, value_name = "HOST:PORT")]
    to: String,
    #[command(flatten)]
    access: AccessArgs,
    /// Connections of clients at the same time, at most
    #[arg(long, value_name = "N", default_value = "256")]
    connections: usize,
}

/// Passes requests on until a signal ends it.
///
/// # Errors
/// The address is taken, or not of this machine; a file of certificates or tokens is wrong.
pub fn proxy(global: &Global, args: &ProxyArgs) -> Result<(), CliError> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(CliError::Signals)?;
    let options = ProxyOptions {
        listen: args.listen,
        connections: args.connections,
        ..ProxyOptions::to(&args.to, args.access.of_client())
    };
    let proxy = Proxy::start(&options)?;
    let address = format!("grpc://{}", proxy.address());
    match global.json {
        true => print_json(&json!({ "address": address }))?,
        false => print(&format!("{address}\n"))?,
    }
    if args.access.tls_ca.is_none() {
        complain(&format!("warning: requests go to {} without TLS: give --tls-ca", args.to));
    }
    // Files are looked at with each connection: SIGHUP need not do anything.
    signals.forever().find(|signal| *signal != SIGHUP);
    Ok(())
}
