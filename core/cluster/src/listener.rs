//! The connections of a server: accepted, and after their handshake given to its services.

use crate::{
    client::{Caller, Connection},
    dial::Stream,
    error::ClusterError,
    gate::{Gate, Who},
    tls::{Acceptor, ServerTls},
};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tenon_framework::Code;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc, watch},
    time::sleep,
};

/// Handshakes at the same time; further connections wait in the system's queue.
const HANDSHAKES: usize = 256;
/// How long the listener waits when the system has no descriptor for a connection.
const PAUSE: Duration = Duration::from_millis(50);

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

/// Accepts connections until the server stops.
pub(crate) async fn accept(
    listener: TcpListener,
    acceptor: Option<Arc<Acceptor>>,
    gate: Arc<Gate>,
    connections: mpsc::Sender<io::Result<Connection>>,
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
        let Some(acceptor) = acceptor.clone() else {
            let caller = Caller { address: Some(address), certified: None };
            if connections.send(Ok(Connection::new(Stream::Plain(stream), caller))).await.is_err() {
                return;
            }
            continue;
        };
        let Ok(turn) = Arc::clone(&handshakes).acquire_owned().await else { return };
        let (gate, connections) = (Arc::clone(&gate), connections.clone());
        tokio::spawn(async move {
            shake(&acceptor, stream, address, &gate, &connections).await;
            drop(turn);
        });
    }
}

/// Makes the handshake of a connection.
async fn shake(
    acceptor: &Acceptor,
    stream: TcpStream,
    address: SocketAddr,
    gate: &Gate,
    connections: &mpsc::Sender<io::Result<Connection>>,
) {
    match acceptor.accept(stream).await {
        Ok((stream, certified)) => {
            let caller = Caller { address: Some(address), certified };
            let stream = Stream::Tls(Box::new(stream));
            // The server has stopped if nobody takes it.
            let _ = connections.send(Ok(Connection::new(stream, caller))).await;
        }
        Err(why) => {
            tracing::warn!("connection from {address} refused: {why}");
            let who = Who { name: address.ip().to_string(), from: address.to_string() };
            gate.record(&who, "handshake", Code::UNAUTHENTICATED, &why, &[]);
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
