//! Frames on their way out.
//!
//! Small frames go first, all that wait in one piece: what a step sends to one peer at about the same time is fused. Large
//! contents follow by chunks, one of each in turn, so that none waits for the end of another.
//!
//! Whoever sends writes as much as the lane takes at once, and the link's task writes the rest: a small tensor needs no other
//! thread. Sends that follow one another closely leave the writing to the task, which then has several of them.

use super::{
    frame::{CHUNK, Header, Kind},
    lane::Lane,
    value::Outgoing,
};
use prost::bytes::{Buf, Bytes, BytesMut};
use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};
use tenon_framework::sync::{Mutex, Rank, rank};
use tokio::{io::AsyncWrite, sync::Notify, time::Instant};

/// Bytes that a sender writes itself.
const INLINE: usize = 64 << 10;
/// Bytes that the link's task writes before it lets others run.
const TURN: usize = 2 << 20;
/// Sends at a shorter distance are written together.
const BURST: Duration = Duration::from_micros(15);
/// Bytes of small frames above which a value waits as a stream, which keeps no copy of it.
const FULL: usize = 1 << 20;
/// Bytes of small frames that the other side may leave unread.
const MOST: usize = 32 << 20;

/// Large values that wait, at most.
const STREAMS: usize = 1 << 16;

/// Taken under a link's own locks.
const RANK: Rank = Rank(rank::LINK.0 + 1);

fn unread() -> io::Error {
    io::Error::other("the other side does not read what is sent to it")
}

/// Wakes the link's task.
struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

/// A large content on its way.
struct Stream {
    id: u64,
    /// The head, until it is sent.
    head: Option<Vec<u8>>,
    content: Bytes,
    at: u64,
}

struct Out {
    lane: Box<dyn AsyncWrite + Send + Unpin>,
    small: BytesMut,
    streams: VecDeque<Stream>,
    /// The pieces that are written next.
    ready: VecDeque<Bytes>,
    wrote: Option<Instant>,
    /// Whether the lane took no more bytes at the last write.
    is_full: bool,
    /// Whether it has taken bytes after it was full.
    moved: bool,
    ended: bool,
}

/// The sending side of a link.
pub(super) struct Writer {
    out: Mutex<Out>,
    /// Whether a lane that was full has taken bytes: the other side has read some.
    moved: AtomicBool,
    bell: Arc<Bell>,
    waker: Waker,
    checked: bool,
}

impl Writer {
    /// The writing half of a lane, and its reading half.
    pub fn new(lane: Lane) -> (Writer, Box<dyn tokio::io::AsyncRead + Send + Unpin>) {
        let out = Out {
            lane: lane.write,
            small: BytesMut::new(),
            streams: VecDeque::new(),
            ready: VecDeque::new(),
            wrote: None,
            is_full: false,
            moved: false,
            ended: false,
        };
        let bell = Arc::new(Bell(Notify::new()));
        let waker = Waker::from(Arc::clone(&bell));
        let out = Mutex::ranked(RANK, out);
        let moved = AtomicBool::new(false);
        (Writer { out, moved, bell, waker, checked: lane.checked }, lane.read)
    }

    /// Sends a small frame.
    pub fn frame(&self, kind: Kind, flags: u8, id: u64, at: u64, body: &[&[u8]]) -> io::Result<()> {
        let mut header = Header::of(kind, id, at, body, self.checked);
        header.flags |= flags;
        let mut out = self.out.lock();
        out.add(&header, body);
        self.write_now(&mut out)
    }

    /// Sends the answer to a request.
    pub fn value(&self, id: u64, value: Outgoing, small: usize) -> io::Result<()> {
        let Outgoing { head, content } = value;
        let mut out = self.out.lock();
        if content.len() <= small && out.small.len() < FULL {
            let body: [&[u8]; 2] = [&head, &content];
            let header = Header::of(Kind::Head, id, 0, &body, self.checked);
            out.add(&header, &body);
        } else if out.streams.len() >= STREAMS {
            return Err(unread());
        } else {
            out.streams.push_back(Stream { id, head: Some(head), content, at: 0 });
        }
        self.write_now(&mut out)
    }

    /// Sends no more of a content; whether there was more of it.
    pub fn withdraw(&self, id: u64) -> bool {
        let mut out = self.out.lock();
        let place = out.streams.iter().position(|stream| stream.id == id);
        let gone = place.and_then(|place| out.streams.remove(place));
        drop(out);
        gone.is_some()
    }

    /// Writes what the lane takes at once, unless more is likely to follow.
    fn write_now(&self, out: &mut Out) -> io::Result<()> {
        if out.small.len() > MOST {
            return Err(unread());
        }
        let now = Instant::now();
        let follows = out.wrote.is_some_and(|last| now.saturating_duration_since(last) < BURST);
        out.wrote = Some(now);
        if follows {
            self.bell.0.notify_one();
            return Ok(());
        }
        self.write(out, INLINE)
    }

    /// Writes for the link's task, once there is something.
    pub async fn turn(&self) -> io::Result<()> {
        self.bell.0.notified().await;
        self.write(&mut self.out.lock(), TURN)
    }

    /// Whether the other side has read bytes since the last call, as far as the lane shows it.
    pub fn has_moved(&self) -> bool {
        self.moved.swap(false, Ordering::Relaxed)
    }

    fn write(&self, out: &mut Out, most: usize) -> io::Result<()> {
        if out.ended {
            return Ok(());
        }
        let mut context = Context::from_waker(&self.waker);
        let more = out.write(&mut context, most, self.checked)?;
        if std::mem::take(&mut out.moved) {
            self.moved.store(true, Ordering::Relaxed);
        }
        if more {
            // There is more, and the lane may take it.
            self.bell.0.notify_one();
        }
        Ok(())
    }

    /// Ends the lane.
    pub fn end(&self) {
        let mut out = self.out.lock();
        let mut context = Context::from_waker(Waker::noop());
        if !out.ended {
            let _ = out.write(&mut context, INLINE, self.checked);
        }
        out.ended = true;
        let _ = Pin::new(&mut *out.lane).poll_shutdown(&mut context);
        let streams = std::mem::take(&mut out.streams);
        let ready = std::mem::take(&mut out.ready);
        drop(out);
        drop((streams, ready));
        self.bell.0.notify_one();
    }
}

impl Out {
    fn add(&mut self, header: &Header, body: &[&[u8]]) {
        if self.ended {
            return;
        }
        self.small.extend_from_slice(&header.bytes());
        body.iter().for_each(|part| self.small.extend_from_slice(part));
    }

    /// Takes the next pieces: all small frames, and one chunk.
    fn refill(&mut self, checked: bool) {
        if !self.small.is_empty() {
            self.ready.push_back(self.small.split().freeze());
        }
        let Some(mut stream) = self.streams.pop_front() else { return };
        if let Some(head) = stream.head.take() {
            let header = Header::of(Kind::Head, stream.id, 0, &[&head], checked);
            self.ready.push_back(Bytes::copy_from_slice(&header.bytes()));
            self.ready.push_back(head.into());
        }
        let chunk = stream.content.split_to(stream.content.len().min(CHUNK));
        if !chunk.is_empty() {
            let header = Header::of(Kind::Chunk, stream.id, stream.at, &[&chunk], checked);
            stream.at += chunk.len() as u64;
            self.ready.push_back(Bytes::copy_from_slice(&header.bytes()));
            self.ready.push_back(chunk);
        }
        if !stream.content.is_empty() {
            self.streams.push_back(stream);
        }
    }

    /// Writes up to about `most` bytes, until the lane takes no more; whether it may take more at once.
    fn write(&mut self, context: &mut Context<'_>, most: usize, checked: bool) -> io::Result<bool> {
        let mut written = 0;
        loop {
            if self.ready.is_empty() {
                self.refill(checked);
            }
            if self.ready.is_empty() {
                // If the lane is not flushed, it wakes the link's task, which flushes it.
                let flushed = Pin::new(&mut *self.lane).poll_flush(context);
                return match flushed {
                    Poll::Ready(Err(error)) => Err(error),
                    _ => Ok(false),
                };
            }
            if written >= most {
                return Ok(true);
            }
            let mut slices = [IoSlice::new(&[]); 6];
            let count = self.ready.len().min(slices.len());
            let pieces = slices.iter_mut().zip(&self.ready);
            pieces.for_each(|(slice, piece)| *slice = IoSlice::new(piece));
            let lane = Pin::new(&mut *self.lane);
            match lane.poll_write_vectored(context, &slices[..count]) {
                Poll::Pending => {
                    self.is_full = true;
                    return Ok(false);
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(bytes)) => {
                    self.moved |= std::mem::take(&mut self.is_full);
                    written += bytes;
                    self.wrote_bytes(bytes);
                }
            }
        }
    }

    fn wrote_bytes(&mut self, mut bytes: usize) {
        while let Some(first) = self.ready.front_mut() {
            let part = bytes.min(first.len());
            first.advance(part);
            bytes -= part;
            if !first.is_empty() {
                return;
            }
            self.ready.pop_front();
        }
    }
}
