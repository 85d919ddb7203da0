//! A lane: a way of bytes in both directions between two tasks, in order and without loss until it ends.
//!
//! This is the seam for further transports. TCP and TLS are streams already; shared memory (`shm.rs`) is two rings. A lane
//! over RDMA writes into a ring that the other side has registered, which the tests of this module do with a network card
//! that is faked; core/docs/rdma.md has the design.

use crate::{dial::Stream, way::Way};
use tokio::io::{AsyncRead, AsyncWrite};

/// A lane.
pub(crate) struct Lane {
    pub way: Way,
    /// Whether the bytes may change on their way, so that bodies need checksums. Those in memory are as safe as the tensors.
    pub checked: bool,
    pub read: Box<dyn AsyncRead + Send + Unpin>,
    pub write: Box<dyn AsyncWrite + Send + Unpin>,
}

impl Lane {
    /// A lane over TCP or TLS. The two directions of TCP need no lock between them.
    pub fn of(stream: Stream) -> Lane {
        match stream {
            Stream::Plain(stream) => {
                let (read, write) = stream.into_split();
                Lane { way: Way::Tcp, checked: true, read: Box::new(read), write: Box::new(write) }
            }
            stream @ Stream::Tls(_) => Lane::of_stream(Way::Tcp, stream),
        }
    }

    /// A lane of a stream.
    pub fn of_stream(way: Way, stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Lane {
        let (read, write) = tokio::io::split(stream);
        Lane { way, checked: way != Way::Shm, read: Box::new(read), write: Box::new(write) }
    }
}

#[cfg(test)]
pub(super) mod fake_rdma;
