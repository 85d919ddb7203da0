//! The beginning of a lane: the side that connects says that it wants one, and shows its ticket.
//!
//! A hello has 32 bytes: [`HELLO`] and the ticket. The server answers with [`READY`], or closes the connection.

use super::{GUEST, Hub, in_time, tickets::TICKET};
use crate::{
    dial::{Dialer, Stream},
    plane::{greet::GreetResponse, lane::Lane, shm},
    way::Way,
};
use std::io;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::UnixStream,
};

/// How a hello begins: its first byte is not one of HTTP/2's.
const HELLO: [u8; 16] = *b"\xA7tenon-data/1\r\n\0";
const READY: [u8; 16] = *b"\xA7tenon-ready/1\r\n";

/// Whether a connection that begins with this byte is one of the data plane, and not of HTTP/2.
pub(crate) fn is_hello(first: u8) -> bool {
    first == HELLO[0]
}

/// Shows a ticket.
async fn hello(stream: &mut (impl AsyncWrite + Unpin), ticket: &[u8]) -> io::Result<()> {
    let mut bytes = HELLO.to_vec();
    bytes.extend_from_slice(ticket);
    stream.write_all(&bytes).await?;
    stream.flush().await
}

/// Reads the server's answer to a hello.
async fn admitted(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let answer = shm::read_exact::<16>(stream).await.map_err(|error| {
        io::Error::new(error.kind(), format!("the other task did not take the ticket: {error}"))
    })?;
    let wrong = || io::Error::other("the other task did not answer as a data plane does");
    (answer == READY).then_some(()).ok_or_else(wrong)
}

impl Hub {
    /// Connects by the best way that both sides have.
    pub(super) async fn dial(
        &self,
        address: &str,
        dialer: &Dialer,
        answer: &GreetResponse,
    ) -> Result<Lane, String> {
        let mut reason = None;
        if answer.shm.len() == TICKET && self.wish.allows(Way::Shm) {
            match in_time(dial_here(answer)).await {
                Ok(lane) => return Ok(lane),
                Err(error) => reason = Some(format!("no shared memory: {error}")),
            }
        }
        if answer.tcp.len() == TICKET && self.wish.allows(Way::Tcp) {
            let told = |error: io::Error| format!("no connection by TCP: {error}");
            return in_time(dial_there(address, dialer, answer)).await.map_err(told);
        }
        Err(reason.unwrap_or_else(|| "both tasks have no way in common".to_owned()))
    }

    /// The task whose ticket a connection shows.
    async fn ticket(&self, stream: &mut (impl AsyncRead + Unpin), way: Way) -> io::Result<String> {
        let hello = shm::read_exact::<32>(stream).await?;
        let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
        let (begin, ticket) = hello.split_at(HELLO.len());
        if begin != HELLO {
            return Err(wrong("it does not begin as a connection of the data plane"));
        }
        let ticket = ticket.try_into().map_err(|_| wrong("its ticket is cut off"))?;
        let unknown = || wrong("its ticket is not known: it was used, or came too late");
        self.tickets.take(ticket, way).ok_or_else(unknown)
    }

    /// Takes a connection by TCP.
    pub async fn welcome(&self, mut stream: Stream, from: std::net::SocketAddr) {
        let greeted = async {
            let task = self.ticket(&mut stream, Way::Tcp).await?;
            stream.write_all(&READY).await?;
            stream.flush().await?;
            Ok(task)
        };
        match in_time(greeted).await {
            Ok(task) => self.accepted(&task, Lane::of(stream)),
            Err(error) => tracing::warn!("data plane: connection from {from} refused: {error}"),
        }
    }

    /// Takes a connection to the door of shared memory.
    pub(super) async fn welcome_here(&self, mut stream: UnixStream) {
        let greeted = async {
            if !shm::is_same_user(&stream)? {
                return Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    "it is another user's",
                ));
            }
            let task = self.ticket(&mut stream, Way::Shm).await?;
            stream.write_all(&READY).await?;
            Ok((task, shm::give(stream).await?))
        };
        match in_time(greeted).await {
            Ok((task, lane)) => self.accepted(&task, lane),
            Err(error) => tracing::warn!("data plane: connection on this host refused: {error}"),
        }
    }

    /// Begins the link of a connection, which is the one with the task's address if there is none.
    fn accepted(&self, task: &str, lane: Lane) {
        let known = |task| (task, self.cluster.get(task).map(String::as_str));
        let guest = task.strip_suffix(GUEST).map(|task| (task, None));
        let (task, address) = guest.unwrap_or_else(|| known(task));
        // The lane ends if the server stops.
        let _ = self.begin(task, address, false, lane);
    }
}

async fn dial_here(answer: &GreetResponse) -> io::Result<Lane> {
    let mut stream = shm::dial(&answer.door).await?;
    hello(&mut stream, &answer.shm).await?;
    admitted(&mut stream).await?;
    shm::take(stream).await
}

async fn dial_there(address: &str, dialer: &Dialer, answer: &GreetResponse) -> io::Result<Lane> {
    let mut stream = dialer.stream(address).await?;
    hello(&mut stream, &answer.tcp).await?;
    admitted(&mut stream).await?;
    Ok(Lane::of(stream))
}
