//! Asking a process for its figures.

use crate::error::CliError;
use std::{
    io::{Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    path::PathBuf,
    time::Duration,
};
use tenon_runtime::monitor::Metrics;

/// How long a process may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes of an answer.
const MOST: u64 = 64 << 20;

/// The address that an argument means: a port of this machine, or a loopback address with one.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let expected = || "expected a port, or a loopback address with a port".to_owned();
    let address = match text.parse::<u16>() {
        Ok(port) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
        Err(_) => text.parse().map_err(|_| expected())?,
    };
    if address.ip().is_loopback() { Ok(address) } else { Err(expected()) }
}

/// What a process says under a path.
///
/// # Errors
/// Nobody listens there, or somebody else does.
pub fn get(address: SocketAddr, path: &str) -> Result<String, CliError> {
    let failed = |source: std::io::Error| CliError::File {
        file: PathBuf::from(format!("http://{address}{path}")),
        done: "read",
        source,
    };
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.take(MOST).read_to_string(&mut text)?;
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        match head.split(' ').nth(1) {
            Some("200") => Ok(body.to_owned()),
            _ => {
                let line = head.lines().next().unwrap_or_default();
                Err(std::io::Error::other(format!("expected figures of a runtime, found '{line}'")))
            }
        }
    };
    ask().map_err(failed)
}

/// The figures of a process.
///
/// # Errors
/// As [`get`]; what is said there is something else.
pub fn metrics(address: SocketAddr) -> Result<Metrics, CliError> {
    let text = get(address, "/metrics.json")?;
    serde_json::from_str(&text).map_err(|error| CliError::File {
        file: PathBuf::from(format!("http://{address}/metrics.json")),
        done: "read",
        source: std::io::Error::other(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_this_machine() {
        assert_eq!(address("9100").unwrap().to_string(), "127.0.0.1:9100");
        for wrong in ["10.0.0.1:80", "x", "99999", ""] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
