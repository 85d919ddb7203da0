//! Asking a process for its figures.

use crate::error::CliError;
use std::{
    io::{Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs},
    path::PathBuf,
    time::{Duration, Instant},
};
use tenon_runtime::metrics::Metrics;

/// How long a process may take for the whole of its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes of an answer.
const MOST: usize = 64 << 20;

/// The address that an argument means: a port of this machine, or a loopback address with one.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let expected = || "expected a port, or a loopback address with a port".to_owned();
    let address = match text.parse::<u16>() {
        Ok(port) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
        Err(_) => text.parse().map_err(|_| expected())?,
    };
    if address.ip().is_loopback() { Ok(address) } else { Err(expected()) }
}

/// The address of a task's figures, `host:port`, on this machine or another.
pub fn client_address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().map_err(|error| format!("{text}: {error}"))?;
    found.min_by_key(SocketAddr::is_ipv6).ok_or_else(|| format!("{text}: it has no address"))
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
        let until = Instant::now() + PATIENCE;
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let text = read_until(&mut stream, until)?;
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

/// The whole answer. A server that sends a little at a time gets the same time for it as any other.
fn read_until(stream: &mut TcpStream, until: Instant) -> std::io::Result<String> {
    let (mut bytes, mut block) = (Vec::new(), [0; 16 << 10]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let message = format!("expected a whole answer within {} s", PATIENCE.as_secs());
            return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, message));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut block) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&block[..count]),
            Err(error) if is_passing(error.kind()) => {}
            Err(error) => return Err(error),
        }
        if bytes.len() > MOST {
            let message = format!("expected figures of a runtime, found more than {MOST} bytes");
            return Err(std::io::Error::other(message));
        }
    }
    String::from_utf8(bytes).map_err(std::io::Error::other)
}

/// Whether reading has only to be tried again: the time left is looked at there.
fn is_passing(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(kind, Interrupted | TimedOut | WouldBlock)
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
    fn a_server_that_drips_has_one_deadline_for_its_answer() {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let drip = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let mut stream = TcpStream::connect(address).unwrap();
        let until = Instant::now() + Duration::from_millis(300);
        let error = read_until(&mut stream, until).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        drop(stream);
        drip.join().unwrap();
    }

    #[test]
    fn an_address_is_of_this_machine() {
        assert_eq!(address("9100").unwrap().to_string(), "127.0.0.1:9100");
        for wrong in ["10.0.0.1:80", "x", "99999", ""] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
