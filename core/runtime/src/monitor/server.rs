//! The server of metrics: one thread, one connection at a time, on loopback alone.
//!
//! Limits: a request's head is at most 8 KiB and comes within a second; it is answered, which takes another second at
//! most, and the connection closed. A request that names another host than this machine is refused: a page from
//! elsewhere could have a browser ask under a name that it lets point here.

use super::{Metrics, prometheus};
use std::{
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Bytes of a request's head.
const HEAD: usize = 8 << 10;
/// How long a client may take to ask, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// A server; dropping it ends it.
pub(crate) struct Server {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The address that a setting means: a port, or a loopback address with one.
pub(crate) fn address(setting: &str) -> Result<SocketAddr, String> {
    let expected = || format!("'{setting}': expected a port, or a loopback address with a port");
    let parsed = match setting.parse::<u16>() {
        Ok(port) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
        Err(_) => setting.parse::<SocketAddr>().map_err(|_| expected())?,
    };
    if parsed.ip().is_loopback() { Ok(parsed) } else { Err(expected()) }
}

impl Server {
    /// Listens at an address; `metrics` gives the figures, or none once there is nothing to tell of.
    pub fn start(
        address: SocketAddr,
        metrics: impl Fn() -> Option<Metrics> + Send + 'static,
    ) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let serve = move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Acquire) {
                    return;
                }
                // What a client does wrong is its own affair.
                let _ = stream.and_then(|stream| answer(stream, &metrics));
            }
        };
        let thread = thread::Builder::new().name("tenon-monitor".to_owned()).spawn(serve)?;
        Ok(Server { address, over, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        // A visitor has it look.
        let _ = TcpStream::connect_timeout(&self.address, PATIENCE);
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

fn answer(mut stream: TcpStream, metrics: &impl Fn() -> Option<Metrics>) -> io::Result<()> {
    let (status, kind, body) = match path(&mut stream) {
        Ok(path) => page(&path, metrics),
        Err(status) => (status, "text/plain", format!("{status}\n")),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    write(&mut stream, &[head, body].concat())
}

/// Writes an answer, within the time that a client has for all of it.
fn write(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether a request's hosts, if it names any, are this machine.
fn is_here(request: &httparse::Request<'_, '_>) -> bool {
    let hosts = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
    hosts.map(|header| std::str::from_utf8(header.value).unwrap_or("?").trim()).all(|host| {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost")
            || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

type Page = (&'static str, &'static str, String);

fn page(path: &str, metrics: &impl Fn() -> Option<Metrics>) -> Page {
    let Some(metrics) = metrics() else {
        return ("503 Service Unavailable", "text/plain", "the runtime is gone\n".to_owned());
    };
    match path {
        "/metrics" => ("200 OK", "text/plain; version=0.0.4", prometheus::text(&metrics)),
        "/metrics.json" => {
            ("200 OK", "application/json", serde_json::to_string(&metrics).unwrap_or_default())
        }
        _ => ("404 Not Found", "text/plain", "expected /metrics or /metrics.json\n".to_owned()),
    }
}

/// The path that a request asks for; the status of one that is none.
fn path(stream: &mut TcpStream) -> Result<String, &'static str> {
    let until = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&head) {
            Ok(httparse::Status::Complete(_)) if request.method != Some("GET") => {
                return Err("405 Method Not Allowed");
            }
            Ok(httparse::Status::Complete(_)) if !is_here(&request) => {
                return Err("421 Misdirected Request");
            }
            Ok(httparse::Status::Complete(_)) => {
                let path = request.path.unwrap_or_default();
                return Ok(path.split('?').next().unwrap_or_default().to_owned());
            }
            Ok(httparse::Status::Partial) => {}
            Err(_) => return Err("400 Bad Request"),
        }
        if head.len() >= HEAD {
            return Err("431 Request Header Fields Too Large");
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err("408 Request Timeout");
        }
        let mut block = [0; 1024];
        match stream.read(&mut block) {
            Ok(0) => return Err("400 Bad Request"),
            Ok(count) => head.extend_from_slice(&block[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err("408 Request Timeout"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(server: &Server, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        // A server that has heard enough may close before it has read all.
        let _ = stream.write_all(request);
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    }

    fn server() -> Server {
        Server::start(address("0").unwrap(), || None).unwrap()
    }

    #[test]
    fn wrong_requests_get_their_status_and_the_server_goes_on() {
        let server = server();
        let status = |request: &[u8]| ask(&server, request).lines().next().unwrap_or("").to_owned();
        assert_eq!(status(b"POST /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
        assert_eq!(status(b"\x00\x01\x02\x03\r\n\r\n"), "HTTP/1.1 400 Bad Request");
        let long = [b"GET /metrics HTTP/1.1\r\nx: ".as_slice(), &[b'a'; HEAD]].concat();
        assert!(status(&long[..HEAD]).starts_with("HTTP/1.1 431"), "{}", status(&long[..HEAD]));
        assert_eq!(status(b"GET /metr"), "HTTP/1.1 408 Request Timeout");
        let gone = "HTTP/1.1 503 Service Unavailable";
        for here in ["127.0.0.1:9100", "localhost", "[::1]:80", "LOCALHOST:1"] {
            let request = format!("GET /metrics HTTP/1.1\r\nHost: {here}\r\n\r\n");
            assert_eq!(status(request.as_bytes()), gone, "{here}");
        }
        for elsewhere in ["example.com", "127.0.0.1.example.com:9100", "10.0.0.1", ""] {
            let request = format!("GET /metrics HTTP/1.1\r\nhost: {elsewhere}\r\n\r\n");
            let refused = "HTTP/1.1 421 Misdirected Request";
            assert_eq!(status(request.as_bytes()), refused, "{elsewhere}");
        }
    }

    #[test]
    fn only_loopback_is_listened_at() {
        assert_eq!(address("9100").unwrap().to_string(), "127.0.0.1:9100");
        assert_eq!(address("[::1]:9100").unwrap().to_string(), "[::1]:9100");
        for wrong in ["0.0.0.0:9100", "192.168.1.1:80", "70000", "here", "-1"] {
            let error = address(wrong).unwrap_err();
            assert!(error.contains(wrong) && error.contains("loopback"), "{error}");
        }
    }

    #[test]
    fn who_reads_nothing_holds_the_server_up_for_no_longer_than_it_may() {
        let listener = TcpListener::bind(address("0").unwrap()).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let begin = Instant::now();
        // More than the system's buffers take.
        let error = write(&mut stream, &"x".repeat(64 << 20)).unwrap_err();
        let kinds = [io::ErrorKind::TimedOut, io::ErrorKind::WouldBlock];
        assert!(kinds.contains(&error.kind()), "{error}");
        assert!(begin.elapsed() >= PATIENCE);
    }

    #[test]
    fn a_server_ends_while_a_client_is_connected() {
        let server = server();
        let stream = TcpStream::connect(server.address()).unwrap();
        let address = server.address();
        drop(server);
        drop(stream);
        assert!(TcpStream::connect_timeout(&address, PATIENCE).is_err());
    }
}
