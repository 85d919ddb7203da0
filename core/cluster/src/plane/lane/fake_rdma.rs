//! A lane over a network card that is faked: registered regions, one-sided writes, and completions, in one process.
//!
//! A card checks each write against the region of its key, as a real one does. The design that this tests is core/docs/rdma.md:
//! a ring for bytes in the receiver's memory, and a word for the reader's count in the sender's.

use super::Lane;
use crate::way::Way;
use std::{
    collections::HashMap,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll, Waker},
};
use tenon_framework::sync::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const RING: usize = 64 << 10;

/// What a card says of a write that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Completion {
    /// So many bytes in the ring.
    Bytes(usize),
    /// The other side's count.
    Count,
    /// The connection is in its state of error.
    Error,
}

#[derive(Default)]
struct Queue {
    there: Vec<Completion>,
    wakers: Vec<Waker>,
}

/// The card of one side.
#[derive(Default)]
struct Card {
    regions: Mutex<HashMap<u32, Vec<u8>>>,
    queue: Mutex<Queue>,
    next: AtomicU32,
}

impl Card {
    fn register(&self, bytes: usize) -> u32 {
        let key = self.next.fetch_add(1, Ordering::Relaxed) + 0x100;
        self.regions.lock().insert(key, vec![0; bytes]);
        key
    }

    /// A write from the other side, which needs no part of this side's processor.
    fn write(&self, key: u32, at: usize, bytes: &[u8], completion: Completion) -> io::Result<()> {
        let mut regions = self.regions.lock();
        let region = regions.get_mut(&key).and_then(|it| it.get_mut(at..at + bytes.len()));
        let denied = || io::Error::new(io::ErrorKind::PermissionDenied, "remote access error");
        region.ok_or_else(denied)?.copy_from_slice(bytes);
        drop(regions);
        self.complete(completion);
        Ok(())
    }

    fn complete(&self, completion: Completion) {
        let mut queue = self.queue.lock();
        queue.there.push(completion);
        let wakers = std::mem::take(&mut queue.wakers);
        drop(queue);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// What both halves of one side know.
struct Side {
    own: Arc<Card>,
    other: Arc<Card>,
    /// Own and other side's keys: of the ring, and of the count.
    ring: u32,
    count: u32,
    remote_ring: u32,
    remote_count: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Bytes that came and were not read.
    there: usize,
    read: u64,
    written: u64,
    ended: bool,
}

impl Side {
    /// Takes the completions that are there.
    fn poll(&self, context: &Context<'_>) {
        let mut queue = self.own.queue.lock();
        let there = std::mem::take(&mut queue.there);
        queue.wakers.push(context.waker().clone());
        drop(queue);
        let mut state = self.state.lock();
        for completion in there {
            match completion {
                Completion::Bytes(bytes) => state.there += bytes,
                Completion::Count => {}
                Completion::Error => state.ended = true,
            }
        }
    }

    /// What the other side has read.
    fn acknowledged(&self) -> u64 {
        let regions = self.own.regions.lock();
        u64::from_le_bytes(std::array::from_fn(|i| regions[&self.count][i]))
    }
}

struct Half(Arc<Side>);

impl AsyncRead for Half {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let side = &self.0;
        side.poll(context);
        let (there, read, ended) = {
            let state = side.state.lock();
            (state.there, state.read, state.ended)
        };
        let at = (read % RING as u64) as usize;
        let part = there.min(into.remaining()).min(RING - at);
        if part == 0 {
            return if ended { Poll::Ready(Ok(())) } else { Poll::Pending };
        }
        into.put_slice(&side.own.regions.lock()[&side.ring][at..at + part]);
        let read = read + part as u64;
        let mut state = side.state.lock();
        state.there -= part;
        state.read = read;
        drop(state);
        // An ended connection takes no count.
        let _ = side.other.write(side.remote_count, 0, &read.to_le_bytes(), Completion::Count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Half {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let side = &self.0;
        side.poll(context);
        let (written, ended) = {
            let state = side.state.lock();
            (state.written, state.ended)
        };
        if ended {
            return Poll::Ready(Err(io::Error::other("the completion of a write has an error")));
        }
        let room = RING - (written - side.acknowledged()) as usize;
        let at = (written % RING as u64) as usize;
        let part = room.min(bytes.len()).min(RING - at);
        if part == 0 && !bytes.is_empty() {
            return Poll::Pending;
        }
        side.other.write(side.remote_ring, at, &bytes[..part], Completion::Bytes(part))?;
        side.state.lock().written += part as u64;
        Poll::Ready(Ok(part))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.other.complete(Completion::Error);
        self.0.own.complete(Completion::Error);
        Poll::Ready(Ok(()))
    }
}

/// Breaks a connection.
pub(in crate::plane) struct Cable([Arc<Card>; 2]);

impl Cable {
    pub fn cut(&self) {
        self.0.iter().for_each(|card| card.complete(Completion::Error));
    }
}

/// Both ends of a connection.
pub(in crate::plane) fn lanes() -> (Lane, Lane, Cable) {
    let (one, two) = (Arc::<Card>::default(), Arc::<Card>::default());
    let keys = |card: &Card| (card.register(RING), card.register(8));
    let (first, second) = (keys(&one), keys(&two));
    let side = |own: &Arc<Card>, other: &Arc<Card>, keys: (u32, u32), remote: (u32, u32)| {
        let side = Arc::new(Side {
            own: Arc::clone(own),
            other: Arc::clone(other),
            ring: keys.0,
            count: keys.1,
            remote_ring: remote.0,
            remote_count: remote.1,
            state: Mutex::new(State::default()),
        });
        let read = Box::new(Half(Arc::clone(&side)));
        Lane { way: Way::Tcp, checked: true, read, write: Box::new(Half(side)) }
    };
    let lanes = (side(&one, &two, first, second), side(&two, &one, second, first));
    (lanes.0, lanes.1, Cable([one, two]))
}

#[test]
fn a_card_refuses_a_write_outside_a_region() {
    let card = Card::default();
    let key = card.register(8);
    assert!(card.write(key, 0, &[1; 8], Completion::Bytes(8)).is_ok());
    for (key, at) in [(key, 1), (key + 1, 0)] {
        let error = card.write(key, at, &[1; 8], Completion::Bytes(8)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
    assert_eq!(card.queue.lock().there, [Completion::Bytes(8)]);
}
