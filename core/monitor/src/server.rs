//! The metrics server: one thread serves several connections at a time, on loopback only.
//!
//! States of a connection: *asking* (its request head is read) → *answered* (its answer is written)
//! → closed. A head has at most 8 KiB. A connection has [`TIMEOUT`] in total; if that passes while
//! it is still asking, it gets an error, and it is closed in any case. With [`MAX_CONNECTIONS`]
//! open connections, a new one replaces the oldest, so that silent clients do not block others. A
//! request that names a host other than this machine is refused: otherwise a web page could make a
//! browser send requests under a name that it resolves to this machine.

use crate::{error::MonitorError, pages::Page};
use mio::{
    Events, Interest, Poll, Token, Waker,
    net::{TcpListener, TcpStream},
};
use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// The maximum size of a request head in bytes.
const MAX_HEAD: usize = 8 << 10;
/// The time that a client has to send its request and to receive the answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum number of connections at one time.
const MAX_CONNECTIONS: usize = 64;

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
/// The first token of a connection.
const FIRST: usize = 2;

/// A server of a runtime's metrics. Its thread ends when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// Parses a setting: a port, or a loopback address with a port.
pub(crate) fn address(setting: &str) -> Result<SocketAddr, MonitorError> {
    let expected = || MonitorError::Address { found: setting.to_owned() };
    let parsed = match setting.parse::<u16>() {
        Ok(port) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
        Err(_) => setting.parse::<SocketAddr>().map_err(|_| expected())?,
    };
    if parsed.ip().is_loopback() { Ok(parsed) } else { Err(expected()) }
}

impl Server {
    /// Listens at an address; `page` is what it answers under a path. At a loopback address it takes only requests that name
    /// this machine.
    pub(crate) fn start(
        address: SocketAddr,
        page: impl Fn(&str) -> Page + Send + 'static,
    ) -> io::Result<Server> {
        let mut listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let any_host = !address.ip().is_loopback();
        let mut clients = Clients { poll, listener, open: VecDeque::new(), next: FIRST, any_host };
        let serve = move || {
            let mut events = Events::with_capacity(2 * MAX_CONNECTIONS);
            while !ended.load(Ordering::Acquire) {
                if let Err(error) = clients.attend(&mut events, &page) {
                    tracing::warn!("the metrics server at {address} has stopped: {error}");
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("tenon-monitor".to_owned()).spawn(serve)?;
        Ok(Server { address, over, waker, thread: Some(thread) })
    }

    /// The loopback address and the port of the server; a setting of port 0 has been replaced by a
    /// free port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        // If the thread cannot be woken, it checks the flag when its next connection starts or
        // ends.
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

/// The connections, in the order in which they were accepted.
struct Clients {
    poll: Poll,
    listener: TcpListener,
    open: VecDeque<Client>,
    next: usize,
    /// Whether requests may name any host.
    any_host: bool,
}

impl Clients {
    /// Waits for events and handles them. An error of a client only closes its own connection.
    fn attend(&mut self, events: &mut Events, page: &impl Fn(&str) -> Page) -> io::Result<()> {
        let now = Instant::now();
        let wait = self.open.front().map(|oldest| oldest.until.saturating_duration_since(now));
        match self.poll.poll(events, wait) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            polled => polled?,
        }
        for event in events.iter() {
            match event.token() {
                LISTENER => self.accept(),
                WAKER => {}
                token => self.serve(token, page),
            }
        }
        let now = Instant::now();
        while self.open.front().is_some_and(|oldest| oldest.until <= now) {
            self.open.pop_front().into_iter().for_each(Client::time_out);
        }
        Ok(())
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if self.open.len() == MAX_CONNECTIONS {
                        self.open.pop_front();
                    }
                    self.add(stream);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // There is no further client, or the process has no free descriptors: a later
                // client causes a new event.
                Err(_) => return,
            }
        }
    }

    fn add(&mut self, mut stream: TcpStream) {
        let token = Token(self.next);
        self.next = self.next.checked_add(1).unwrap_or(FIRST);
        let wanted = Interest::READABLE | Interest::WRITABLE;
        if self.poll.registry().register(&mut stream, token, wanted).is_ok() {
            self.open.push_back(Client {
                token,
                stream,
                until: Instant::now() + TIMEOUT,
                head: Vec::new(),
                answer: None,
            });
        }
    }

    fn serve(&mut self, token: Token, page: &impl Fn(&str) -> Page) {
        let Some(at) = self.open.iter().position(|client| client.token == token) else { return };
        let any_host = self.any_host;
        if self.open[at].attend(page, any_host).is_none_or(|progress| progress == Progress::Over) {
            self.open.remove(at);
        }
    }
}

/// The progress of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The connection continues when the client sends or receives something.
    Waiting,
    /// The connection is complete.
    Over,
}

/// A connection.
struct Client {
    token: Token,
    stream: TcpStream,
    until: Instant,
    head: Vec<u8>,
    /// The answer and the number of bytes written; `None` while the client asks.
    answer: Option<(Vec<u8>, usize)>,
}

impl Client {
    /// Reads and writes as much as possible without waiting; returns `None` if the connection
    /// failed.
    fn attend(&mut self, page: &impl Fn(&str) -> Page, any_host: bool) -> Option<Progress> {
        if self.answer.is_none() {
            let asked = self.ask(any_host)?;
            match asked {
                Asked::Nothing => return Some(Progress::Waiting),
                Asked::Path(path) => self.answer = Some((text(page(&path)), 0)),
                Asked::Wrong(status) => self.answer = Some((refusal(status), 0)),
            }
        }
        self.write()
    }

    fn ask(&mut self, any_host: bool) -> Option<Asked> {
        let mut block = [0; 1024];
        loop {
            match parse(&self.head, any_host) {
                Asked::Nothing if self.head.len() >= MAX_HEAD => {
                    return Some(Asked::Wrong("431 Request Header Fields Too Large"));
                }
                Asked::Nothing => {}
                asked => return Some(asked),
            }
            match self.stream.read(&mut block) {
                Ok(0) => return Some(Asked::Wrong("400 Bad Request")),
                Ok(count) => self.head.extend_from_slice(&block[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Some(Asked::Nothing);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    fn write(&mut self) -> Option<Progress> {
        let (text, written) = self.answer.as_mut()?;
        while *written < text.len() {
            match self.stream.write(&text[*written..]) {
                Ok(0) => return None,
                Ok(count) => *written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Some(Progress::Waiting);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        Some(Progress::Over)
    }

    /// Ends a connection that has timed out.
    fn time_out(mut self) {
        if self.answer.is_none() {
            self.answer = Some((refusal("408 Request Timeout"), 0));
            self.write();
        }
    }
}

/// The state of a client's request.
enum Asked {
    /// The request is incomplete.
    Nothing,
    /// The request is for this path.
    Path(String),
    /// The request is refused with this status.
    Wrong(&'static str),
}

fn parse(head: &[u8], any_host: bool) -> Asked {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) if request.method != Some("GET") => {
            Asked::Wrong("405 Method Not Allowed")
        }
        Ok(httparse::Status::Complete(_)) if !any_host && !is_here(&request) => {
            Asked::Wrong("421 Misdirected Request")
        }
        Ok(httparse::Status::Complete(_)) => {
            let path = request.path.unwrap_or_default();
            Asked::Path(path.split('?').next().unwrap_or_default().to_owned())
        }
        Ok(httparse::Status::Partial) => Asked::Nothing,
        Err(_) => Asked::Wrong("400 Bad Request"),
    }
}

fn refusal(status: &'static str) -> Vec<u8> {
    text((status, "text/plain", format!("{status}\n")))
}

fn text((status, kind, body): Page) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    [head, body].concat().into_bytes()
}

/// Whether all hosts that a request names are this machine.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    fn ask(server: &Server, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        // The server may close the connection before it has read everything.
        let _ = stream.write_all(request);
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    }

    fn server() -> Server {
        let gone = |_: &str| ("503 Service Unavailable", "text/plain", String::new());
        Server::start(address("0").unwrap(), gone).unwrap()
    }

    #[test]
    fn wrong_requests_get_their_status_and_the_server_goes_on() {
        let server = server();
        let status = |request: &[u8]| ask(&server, request).lines().next().unwrap_or("").to_owned();
        assert_eq!(status(b"POST /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
        assert_eq!(status(b"\x00\x01\x02\x03\r\n\r\n"), "HTTP/1.1 400 Bad Request");
        let long = [b"GET /metrics HTTP/1.1\r\nx: ".as_slice(), &[b'a'; MAX_HEAD]].concat();
        assert!(
            status(&long[..MAX_HEAD]).starts_with("HTTP/1.1 431"),
            "{}",
            status(&long[..MAX_HEAD])
        );
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
    fn an_open_address_is_asked_under_any_name() {
        let gone = |_: &str| ("200 OK", "text/plain", "ok\n".to_owned());
        let server = Server::start("0.0.0.0:0".parse().unwrap(), gone).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", server.address().port())).unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: 10.0.0.7:9100\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    }

    #[test]
    fn only_loopback_is_listened_at() {
        assert_eq!(address("9100").unwrap().to_string(), "127.0.0.1:9100");
        assert_eq!(address("[::1]:9100").unwrap().to_string(), "[::1]:9100");
        for wrong in ["0.0.0.0:9100", "192.168.1.1:80", "70000", "here", "-1"] {
            let error = address(wrong).unwrap_err().to_string();
            assert!(error.contains(wrong) && error.contains("loopback"), "{error}");
        }
    }

    #[test]
    fn clients_that_say_nothing_keep_nobody_out() {
        let server = server();
        let silent: Vec<TcpStream> = (0..3 * MAX_CONNECTIONS)
            .map(|_| TcpStream::connect(server.address()).unwrap())
            .collect();
        let begin = Instant::now();
        let answer = ask(&server, b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(begin.elapsed() < TIMEOUT, "it was answered while the others were open");
        drop(silent);
    }

    #[test]
    fn a_client_that_drips_has_one_deadline_for_its_connection() {
        let server = server();
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let begin = Instant::now();
        let mut dripped = 0;
        while stream.write_all(b"a").is_ok() && begin.elapsed() < 4 * TIMEOUT {
            dripped += 1;
            thread::sleep(TIMEOUT / 20);
        }
        assert!((10..60).contains(&dripped), "{dripped} of them");
    }

    #[test]
    fn a_client_that_reads_nothing_is_given_up() {
        let listener = TcpListener::bind(address("0").unwrap()).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut slow = Client {
            token: Token(FIRST),
            stream: mio::net::TcpStream::from_std(stream),
            until: Instant::now(),
            head: Vec::new(),
            // This is more than the buffers of the system hold.
            answer: Some((vec![b'x'; 64 << 20], 0)),
        };
        assert_eq!(slow.write(), Some(Progress::Waiting));
        drop(client);
        assert_eq!(slow.write(), None);
    }

    #[test]
    fn a_server_ends_while_a_client_is_connected() {
        let server = server();
        let stream = TcpStream::connect(server.address()).unwrap();
        let address = server.address();
        drop(server);
        drop(stream);
        assert!(TcpStream::connect_timeout(&address, TIMEOUT).is_err());
    }
}
