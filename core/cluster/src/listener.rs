//! The connections of a server: accepted, and after their handshake given to its services.

use crate::{
    client::{Caller, Connection},
    dial::Stream,
    error::ClusterError,
    gate::{Gate, Who},
    plane::{Hub, is_hello},
    tls::{Acceptor, ServerTls, is_data},
};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tenon_framework::Code;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    time::{sleep, timeout},
};

/// Handshakes at the same time; further connections wait in the system's queue.
const HANDSHAKES: usize = 256;
/// How long the listener waits when the system has no descriptor for a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a connection may be silent before it is taken for one of gRPC.
const SILENT: Duration = Duration::from_secs(2);

/// Refuses an address at which other machines would reach the server without showing who they are, or send tokens that
/// others can read.
pub(crate) fn check_exposure(
    listen: SocketAddr,
    tls: Option<&ServerTls>,
    has_tokens: bool,
    insecure: bool,
) -> Result<(), ClusterError> {
    if listen.ip().is_loopback() {
        return Ok(());
    }
    let lack = match (tls, has_tokens) {
        (Some(_), true) => return Ok(()),
        (Some(tls), false) if tls.ca.is_some() => return Ok(()),
        (Some(_), false) => {
            ", and whoever reaches it runs graphs: require certificates by --tls-ca, or tokens by --token-file"
        }
        (None, true) => {
            ", and tokens would be sent there as plain text: give --tls-cert and --tls-key"
        }
        (None, false) => {
            ", and whoever reaches it runs graphs: give --tls-cert, --tls-key and --tls-ca, or listen on 127.0.0.1"
        }
    };
    if insecure {
        tracing::warn!("insecure: {listen} can be reached from other machines{lack}");
        return Ok(());
    }
    Err(ClusterError::Exposed { listen, lack })
}

/// Where connections go.
#[derive(Clone)]
pub(crate) struct Doors {
    pub acceptor: Option<Arc<Acceptor>>,
    pub gate: Arc<Gate>,
    /// Those of gRPC.
    pub calls: mpsc::Sender<io::Result<Connection>>,
    /// Those of the data plane.
    pub data: Arc<Hub>,
}

/// Accepts connections until the server stops.
pub(crate) async fn accept(
    listener: TcpListener,
    doors: Doors,
    mut stopped: watch::Receiver<bool>,
) {
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("a connection cannot be accepted: {error}");
                sleep(PAUSE).await;
                continue;
            }
        };
        // A client waits for a step's answer, which is small: it is sent at once.
        let _ = stream.set_nodelay(true);
        let doors = doors.clone();
        let Some(acceptor) = doors.acceptor.clone() else {
            tokio::spawn(plain(stream, address, doors));
            continue;
        };
        let Ok(turn) = Arc::clone(&handshakes).acquire_owned().await else { return };
        tokio::spawn(async move {
            shake(&acceptor, stream, address, turn, &doors).await;
        });
    }
}

/// Gives a connection without TLS to gRPC or to the data plane, by its first byte.
async fn plain(stream: TcpStream, address: SocketAddr, doors: Doors) {
    let mut first = [0];
    let looked = timeout(SILENT, stream.peek(&mut first)).await;
    if matches!(looked, Ok(Ok(1))) && is_hello(first[0]) {
        return doors.data.welcome(Stream::Plain(stream), address).await;
    }
    let caller = Caller { address: Some(address), certified: None };
    // The server has stopped if nobody takes it.
    let _ = doors.calls.send(Ok(Connection::new(Stream::Plain(stream), caller))).await;
}

/// Makes the handshake of a connection.
async fn shake(
    acceptor: &Acceptor,
    stream: TcpStream,
    address: SocketAddr,
    turn: OwnedSemaphorePermit,
    doors: &Doors,
) {
    let accepted = acceptor.accept(stream).await;
    drop(turn);
    match accepted {
        Ok((stream, _)) if is_data(&stream) => {
            doors.data.welcome(Stream::Tls(Box::new(stream)), address).await;
        }
        Ok((stream, certified)) => {
            let caller = Caller { address: Some(address), certified };
            let stream = Stream::Tls(Box::new(stream));
            // The server has stopped if nobody takes it.
            let _ = doors.calls.send(Ok(Connection::new(stream, caller))).await;
        }
        Err(why) => {
            tracing::warn!("connection from {address} refused: {why}");
            let who = Who { name: address.ip().to_string(), from: address.to_string() };
            doors.gate.record(&who, "handshake", Code::UNAUTHENTICATED, &why, &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::Identity;

    #[test]
    fn an_open_address_needs_encryption_and_callers_that_show_who_they_are() {
        let tls = |ca: Option<&str>| ServerTls {
            identity: Identity { cert: "c".into(), key: "k".into() },
            ca: ca.map(Into::into),
        };
        let open: SocketAddr = "0.0.0.0:1".parse().unwrap();
        let check = |listen, tls: Option<ServerTls>, has_tokens, insecure| {
            let checked = check_exposure(listen, tls.as_ref(), has_tokens, insecure);
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(check(SocketAddr::from(([127, 0, 0, 1], 1)), None, false, false), Ok(()));
        assert_eq!(check(open, Some(tls(Some("ca"))), false, false), Ok(()));
        assert_eq!(check(open, Some(tls(None)), true, false), Ok(()));
        for (tls, token, said) in [
            (None, false, "runs graphs"),
            (None, true, "plain text"),
            (Some(tls(None)), false, "--token-file"),
        ] {
            let error = check(open, tls.clone(), token, false).unwrap_err();
            assert!(error.contains(said) && error.contains("--insecure"), "{error}");
            assert_eq!(check(open, tls, token, true), Ok(()));
        }
    }
}
