//! A ring of bytes in shared memory, from one process to another.
//!
//! `head` counts the bytes that were written, `tail` those that were read, both since the beginning. The writer alone writes
//! `head`, and the reader `tail`; each keeps its own count, and reads only that of the other, which it checks.
//!
//! # States
//! The reader is *asleep* from the time it found no bytes until it finds some, and the writer from the time it found no room.
//! Who goes to sleep says so before the last look, and who moves a counter looks for that afterwards: one of both sees the
//! other.

use std::{
    io,
    pin::Pin,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};
use tenon_isolate::shared::Mapping;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::UnixStream,
};

/// Bytes that a ring holds: they stay in the caches of the processor.
const ROOM: usize = 2 << 20;
const HEAD_BYTES: usize = 4096;
/// The bytes of a ring with its head.
pub(super) const RING_BYTES: usize = HEAD_BYTES + ROOM;
/// Bytes that are written before the reader sees them.
const PART: usize = 64 << 10;

/// What precedes the bytes. All zero at first.
#[repr(C)]
struct Head {
    head: Line<AtomicU64>,
    tail: Line<AtomicU64>,
    reader_asleep: Line<AtomicU32>,
    writer_asleep: Line<AtomicU32>,
}

/// A value on a line of the cache of its own.
#[repr(C, align(64))]
struct Line<T>(T);

/// A ring in a mapping.
struct Ring {
    mapping: Arc<Mapping>,
    at: usize,
}

impl Ring {
    fn new(mapping: &Arc<Mapping>, at: usize) -> Ring {
        assert!(at.is_multiple_of(HEAD_BYTES) && at + RING_BYTES <= mapping.bytes());
        Ring { mapping: Arc::clone(mapping), at }
    }

    fn head(&self) -> &Head {
        // SAFETY: `new` has checked that the ring is within the mapping, whose base is aligned to pages; all parts of the head
        // are atomic, so that the other process may change them.
        unsafe { self.mapping.base().byte_add(self.at).cast::<Head>().as_ref() }
    }

    /// The bytes at a count, and how many follow without a turn.
    fn bytes(&self, count: u64) -> (*mut u8, usize) {
        let offset = (count % ROOM as u64) as usize;
        // SAFETY: within the ring, which `new` has checked to be within the mapping.
        let first = unsafe { self.mapping.base().byte_add(self.at + HEAD_BYTES + offset) };
        (first.cast().as_ptr(), ROOM - offset)
    }

    /// The bytes between the counters.
    fn between(tail: u64, head: u64) -> io::Result<usize> {
        let bytes = head.wrapping_sub(tail);
        usize::try_from(bytes).ok().filter(|bytes| *bytes <= ROOM).ok_or_else(|| {
            let why =
                format!("the other side broke the ring: its counters are {bytes} bytes apart");
            io::Error::new(io::ErrorKind::InvalidData, why)
        })
    }
}

/// Wakes the other side if it sleeps.
fn wake(asleep: &AtomicU32, bell: &UnixStream) {
    if asleep.load(Ordering::SeqCst) != 0 && asleep.swap(0, Ordering::SeqCst) != 0 {
        // If the socket is full, it has bytes that wake the other side.
        let _ = bell.try_write(&[1]);
    }
}

/// Waits for a byte of the other side, of which there is one for each time it was asleep; whether it has ended.
fn poll_bell(bell: &UnixStream, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
    loop {
        ready!(bell.poll_read_ready(context))?;
        match bell.try_read(&mut [0; 64]) {
            Ok(0) => return Poll::Ready(Ok(true)),
            Ok(_) => return Poll::Ready(Ok(false)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                return Poll::Ready(Ok(true));
            }
            Err(error) => return Poll::Ready(Err(error)),
        }
    }
}

/// The reading side of a ring.
pub(super) struct RingReader {
    ring: Ring,
    tail: u64,
    bytes: Arc<UnixStream>,
    room: Arc<UnixStream>,
}

impl RingReader {
    pub fn new(
        mapping: &Arc<Mapping>,
        at: usize,
        bytes: &Arc<UnixStream>,
        room: &Arc<UnixStream>,
    ) -> RingReader {
        let (bytes, room) = (Arc::clone(bytes), Arc::clone(room));
        RingReader { ring: Ring::new(mapping, at), tail: 0, bytes, room }
    }

    /// Bytes that can be read.
    fn there(&self) -> io::Result<usize> {
        Ring::between(self.tail, self.ring.head().head.0.load(Ordering::SeqCst))
    }

    /// Copies bytes out.
    fn copy(&mut self, there: usize, into: &mut ReadBuf<'_>) {
        let mut left = there.min(into.remaining());
        while left > 0 {
            let (from, straight) = self.ring.bytes(self.tail);
            let part = left.min(straight).min(PART);
            // SAFETY: `part` bytes from `from` on are within the ring, and `into` has room for them. If the other side writes
            // them meanwhile, the copy has arbitrary bytes, which are a peer's like all others. They are written before they
            // are counted as initialised.
            unsafe {
                let to = into.unfilled_mut().as_mut_ptr().cast::<u8>();
                ptr::copy_nonoverlapping(from.cast_const(), to, part);
                into.assume_init(part);
            }
            into.advance(part);
            self.tail += part as u64;
            left -= part;
            self.ring.head().tail.0.store(self.tail, Ordering::SeqCst);
            wake(&self.ring.head().writer_asleep.0, &self.room);
        }
    }
}

impl AsyncRead for RingReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            let mut there = self.there()?;
            if there == 0 {
                self.ring.head().reader_asleep.0.store(1, Ordering::SeqCst);
                there = self.there()?;
            }
            if there > 0 {
                self.ring.head().reader_asleep.0.store(0, Ordering::SeqCst);
                self.copy(there, into);
                return Poll::Ready(Ok(()));
            }
            // What came before the end is read first.
            if ready!(poll_bell(&self.bytes, context))? && self.there()? == 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

/// The writing side of a ring.
pub(super) struct RingWriter {
    ring: Ring,
    head: u64,
    bytes: Arc<UnixStream>,
    room: Arc<UnixStream>,
}

impl RingWriter {
    pub fn new(
        mapping: &Arc<Mapping>,
        at: usize,
        bytes: &Arc<UnixStream>,
        room: &Arc<UnixStream>,
    ) -> RingWriter {
        let (bytes, room) = (Arc::clone(bytes), Arc::clone(room));
        RingWriter { ring: Ring::new(mapping, at), head: 0, bytes, room }
    }

    /// Bytes that can be written.
    fn room(&self) -> io::Result<usize> {
        let tail = self.ring.head().tail.0.load(Ordering::SeqCst);
        Ok(ROOM - Ring::between(tail, self.head)?)
    }

    /// Copies bytes in.
    fn copy(&mut self, room: usize, from: &[u8]) -> usize {
        let all = room.min(from.len());
        let mut done = 0;
        while done < all {
            let (to, straight) = self.ring.bytes(self.head);
            let part = (all - done).min(straight).min(PART);
            // SAFETY: `part` bytes from `to` on are within the ring and are room that the reader has given back; `from` has
            // as many, in memory of this process alone.
            unsafe { ptr::copy_nonoverlapping(from[done..].as_ptr(), to, part) };
            self.head += part as u64;
            done += part;
            self.ring.head().head.0.store(self.head, Ordering::SeqCst);
            wake(&self.ring.head().reader_asleep.0, &self.bytes);
        }
        all
    }
}

impl AsyncWrite for RingWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut room = self.room()?;
            if room == 0 {
                self.ring.head().writer_asleep.0.store(1, Ordering::SeqCst);
                room = self.room()?;
            }
            if room > 0 {
                self.ring.head().writer_asleep.0.store(0, Ordering::SeqCst);
                let mut done = 0;
                for slice in slices {
                    done += self.copy(room - done, slice);
                }
                return Poll::Ready(Ok(done));
            }
            if ready!(poll_bell(&self.room, context))? {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// The other side sees the end as that of the sockets.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let _ = rustix::net::shutdown(&*self.bytes, rustix::net::Shutdown::Both);
        let _ = rustix::net::shutdown(&*self.room, rustix::net::Shutdown::Both);
        Poll::Ready(Ok(()))
    }
}
