//! One direction of a connection, and the ends of connections.
//!
//! Bytes are in `flying` from their write until they arrive, are held while the way is cut, and stay in `arrived` until they
//! are read. A writer waits while a window of them is not read.

use super::network::{Network, Way};
use prost::bytes::{Buf, Bytes};
use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that may be on their way.
const WINDOW: usize = 64 << 10;

/// One direction of a connection.
pub(super) struct Pipe {
    /// The sender and the receiver.
    pub way: Way,
    network: Arc<Network>,
    own: Weak<Pipe>,
    /// The other direction.
    back: OnceLock<Weak<Pipe>>,
    flow: Mutex<Flow>,
}

#[derive(Default)]
struct Flow {
    /// Bytes that were written and not read.
    unread: usize,
    arrived: VecDeque<Bytes>,
    held: Vec<Event>,
    /// When the latest of what flies arrives.
    last: Duration,
    /// Whether nothing comes after what has arrived.
    is_ended: bool,
    is_reset: Ends,
    /// Whether nothing arrives any more, and nobody says so.
    is_dark: bool,
    /// Whether the receiver's machine is up again: it does not know the connection, and says so when something arrives.
    is_unknown: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// What each end knows.
#[derive(Default, Clone, Copy)]
struct Ends {
    reader: bool,
    writer: bool,
}

/// What arrives.
enum Event {
    Data(Bytes),
    End,
    Reset,
}

fn reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset")
}

impl Pipe {
    fn new(network: &Arc<Network>, way: Way) -> Arc<Pipe> {
        Arc::new_cyclic(|own| Pipe {
            way,
            network: Arc::clone(network),
            own: own.clone(),
            back: OnceLock::new(),
            flow: Mutex::default(),
        })
    }

    fn flow(&self) -> MutexGuard<'_, Flow> {
        self.flow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends something to the reader, after what was sent before.
    fn send(&self, mut flow: MutexGuard<'_, Flow>, event: Event) {
        let bytes = if let Event::Data(data) = &event { data.len() } else { 0 };
        let time = &self.network.time;
        let when = (time.elapsed() + self.network.delay(&self.way, bytes)).max(flow.last);
        flow.last = when;
        drop(flow);
        let own = self.own.clone();
        time.schedule(when, move || {
            if let Some(pipe) = own.upgrade() {
                pipe.arrive(event);
            }
        });
    }

    fn arrive(&self, event: Event) {
        let is_cut = self.network.is_cut(&self.way);
        let mut flow = self.flow();
        if flow.is_unknown && !is_cut {
            drop(flow);
            let back = self.back.get().and_then(Weak::upgrade);
            back.iter().for_each(|back| back.reset());
            return self.reset();
        }
        if is_cut || !flow.held.is_empty() {
            flow.held.push(event);
            return;
        }
        flow.take(event);
        flow.wake();
    }

    /// What was held arrives.
    pub fn release(&self) {
        let mut flow = self.flow();
        let held = std::mem::take(&mut flow.held);
        held.into_iter().for_each(|event| flow.take(event));
        flow.wake();
    }

    /// Both directions of a connection.
    pub fn pair(network: &Arc<Network>, ways: [Way; 2]) -> [Arc<Pipe>; 2] {
        let [there, back] = ways.map(|way| Pipe::new(network, way));
        let _ = there.back.set(Arc::downgrade(&back));
        let _ = back.back.set(Arc::downgrade(&there));
        [there, back]
    }

    /// The receiver's machine is up again.
    pub fn forget(&self) {
        let mut flow = self.flow();
        flow.is_unknown = flow.is_dark;
    }

    /// Both ends learn at once that the connection is gone.
    pub fn reset(&self) {
        let mut flow = self.flow();
        flow.is_reset = Ends { reader: true, writer: true };
        flow.wake();
    }

    /// The task at one end is gone. The other end learns it, unless the end is silent.
    pub fn lose(&self, task: &str, is_silent: bool) {
        let mut flow = self.flow();
        let is_writer = self.way.0 == task;
        if is_writer {
            flow.is_reset.writer = true;
        } else {
            flow.is_reset.reader = true;
        }
        flow.wake();
        if is_silent {
            flow.is_dark = true;
        } else if is_writer {
            self.send(flow, Event::Reset);
        } else {
            flow.is_reset.writer = true;
            flow.wake();
        }
    }
}

impl Flow {
    fn take(&mut self, event: Event) {
        match event {
            _ if self.is_dark => {}
            Event::Data(data) => self.arrived.push_back(data),
            Event::End => self.is_ended = true,
            Event::Reset => self.is_reset.reader = true,
        }
    }

    fn wake(&mut self) {
        // A waker may run what it wakes only later: the runtime's do.
        self.reader.take().into_iter().chain(self.writer.take()).for_each(Waker::wake);
    }
}

/// An end of a connection.
pub(super) struct End {
    out: Arc<Pipe>,
    into: Arc<Pipe>,
}

impl End {
    /// The end that reads from `into` and writes to `out`.
    pub fn new(into: &Arc<Pipe>, out: &Arc<Pipe>) -> End {
        End { out: Arc::clone(out), into: Arc::clone(into) }
    }
}

impl AsyncRead for End {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut flow = self.into.flow();
        if flow.is_reset.reader {
            return Poll::Ready(Err(reset()));
        }
        let Some(first) = flow.arrived.front_mut() else {
            if flow.is_ended {
                return Poll::Ready(Ok(()));
            }
            flow.reader = Some(context.waker().clone());
            return Poll::Pending;
        };
        let count = first.len().min(buffer.remaining());
        buffer.put_slice(&first[..count]);
        first.advance(count);
        if first.is_empty() {
            flow.arrived.pop_front();
        }
        flow.unread -= count;
        if let Some(writer) = flow.writer.take() {
            writer.wake();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for End {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut flow = self.out.flow();
        if flow.is_reset.writer || flow.is_reset.reader && !flow.is_dark {
            return Poll::Ready(Err(reset()));
        }
        let count = bytes.len().min(WINDOW - flow.unread);
        if count == 0 && !bytes.is_empty() {
            flow.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        flow.unread += count;
        self.out.send(flow, Event::Data(Bytes::copy_from_slice(&bytes[..count])));
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.out.send(self.out.flow(), Event::End);
        Poll::Ready(Ok(()))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.out.send(self.out.flow(), Event::End);
        // What the other end still writes is refused.
        let mut flow = self.into.flow();
        flow.is_reset.reader = true;
        flow.wake();
    }
}
