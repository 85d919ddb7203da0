//! A channel: passes one message at a time between the host and a worker, in shared memory.
//!
//! States of a channel: *the host's turn* ↔ *the worker's turn*. The side that has the turn owns
//! the message and may write it; passing the turn sends it. A call begins with a request of the
//! host; the worker asks for services in between, any number of times, and ends with a reply.
//! Between calls it is the host's turn.
//!
//! A waiting side polls for a while, then sleeps in the kernel: a message between two polling
//! threads takes less than a microsecond, while waking a sleeping thread takes tens of them on a
//! virtual machine.
//!
//! # Invariants
//! - Only the side that has the turn writes `turn`. A message is copied before it is read: a faulty
//!   peer may write at any time.
//! - A side announces that it sleeps before its last look at `turn`; the other side checks for that
//!   after passing the turn.

use super::shared::Mapping;
use rustix::{
    io::Errno,
    thread::{Timespec, futex},
};
use std::{
    hint, ptr,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Number of channels of a worker: the calls that it runs at the same time.
pub(super) const CHANNELS: usize = 8;
/// Bytes of a message that fit in the channel itself; longer ones are in an arena.
pub(super) const MESSAGE_BYTES: usize = 128 << 10;
/// Bytes of all channels.
pub(super) const CHANNELS_BYTES: usize = CHANNELS * STRIDE;

const STRIDE: usize = HEAD_BYTES + MESSAGE_BYTES;
const HEAD_BYTES: usize = 4096;
/// The place of a message that is in the channel itself.
const HERE: u64 = u64::MAX;
/// Number of polls between two looks at the clock.
const LOOKS: u32 = 64;

/// The side that has the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The host's.
    Host,
    /// The worker's.
    Worker,
}

impl Side {
    fn number(self) -> u32 {
        match self {
            Side::Host => 0,
            Side::Worker => 1,
        }
    }

    fn other(self) -> Side {
        match self {
            Side::Host => Side::Worker,
            Side::Worker => Side::Host,
        }
    }
}

/// What precedes the message. All zero at first: it is the host's turn.
#[repr(C, align(64))]
struct Head {
    turn: AtomicU32,
    asleep: [AtomicU32; 2],
    length: AtomicU64,
    /// Offset of the message in the sender's arena, or [`HERE`].
    place: AtomicU64,
}

/// The length and the place of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// In the channel, with this length.
    Here(usize),
    /// In the sender's arena.
    Arena {
        /// Offset in the arena.
        offset: u64,
        /// Its length.
        bytes: u64,
    },
}

/// One side of a channel.
pub(super) struct Channel {
    mapping: Arc<Mapping>,
    at: usize,
    side: Side,
}

impl Channel {
    /// This side of channel `at`, in a mapping of at least [`CHANNELS_BYTES`].
    pub fn new(mapping: &Arc<Mapping>, at: usize, side: Side) -> Channel {
        assert!(at < CHANNELS && mapping.bytes() >= CHANNELS_BYTES);
        Channel { mapping: Arc::clone(mapping), at, side }
    }

    fn head(&self) -> &Head {
        // SAFETY: within the mapping, aligned to its pages; the head is atomic throughout.
        unsafe { self.mapping.base().byte_add(self.at * STRIDE).cast::<Head>().as_ref() }
    }

    fn message(&self) -> *mut u8 {
        // SAFETY: within the mapping.
        unsafe { self.mapping.base().byte_add(self.at * STRIDE + HEAD_BYTES).cast().as_ptr() }
    }

    /// Whether a message is short enough for the channel itself.
    pub fn fits(message: &[u8]) -> bool {
        message.len() <= MESSAGE_BYTES
    }

    /// Sends a message that [fits](Channel::fits), and passes the turn.
    pub fn send(&self, message: &[u8]) {
        assert!(Channel::fits(message), "a longer message goes through an arena");
        // SAFETY: it is this side's turn, and the channel has room for the message.
        unsafe { ptr::copy_nonoverlapping(message.as_ptr(), self.message(), message.len()) };
        self.pass(message.len() as u64, HERE);
    }

    /// Sends a message in this side's arena, and passes the turn.
    pub fn send_from_arena(&self, offset: u64, bytes: u64) {
        self.pass(bytes, offset);
    }

    fn pass(&self, length: u64, place: u64) {
        let head = self.head();
        head.length.store(length, Ordering::Relaxed);
        head.place.store(place, Ordering::Relaxed);
        head.turn.store(self.side.other().number(), Ordering::SeqCst);
        if head.asleep[self.side.other().number() as usize].load(Ordering::SeqCst) != 0 {
            self.wake();
        }
    }

    /// Wakes the threads that sleep on either side.
    pub fn wake(&self) {
        let _ = futex::wake(&self.head().turn, futex::Flags::empty(), u32::MAX);
    }

    /// Waits for this side's turn: polls for `look`, then sleeps for at most `sleep`. Returns
    /// whether it has the turn.
    pub fn wait(&self, look: Duration, sleep: Duration) -> bool {
        let (head, mine) = (self.head(), self.side.number());
        let is_mine = || head.turn.load(Ordering::Acquire) == mine;
        let begin = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if is_mine() {
                    return true;
                }
                hint::spin_loop();
            }
            if begin.elapsed() >= look {
                break;
            }
        }
        let asleep = &head.asleep[mine as usize];
        asleep.store(1, Ordering::SeqCst);
        let until = Instant::now() + sleep;
        while head.turn.load(Ordering::SeqCst) != mine {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let timeout =
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            let theirs = self.side.other().number();
            match futex::wait(&head.turn, futex::Flags::empty(), theirs, Some(&timeout)) {
                Ok(()) | Err(Errno::INTR) => {}
                // The turn changed, or the time is over: the loop checks both.
                Err(_) => {}
            }
        }
        asleep.store(0, Ordering::SeqCst);
        is_mine()
    }

    /// The message that came with the turn. One in the channel is copied to `into`.
    pub fn receive(&self, into: &mut Vec<u8>) -> Message {
        let head = self.head();
        let (bytes, offset) =
            (head.length.load(Ordering::Relaxed), head.place.load(Ordering::Relaxed));
        if offset != HERE {
            return Message::Arena { offset, bytes };
        }
        // The other side's numbers are not trusted.
        let bytes = (bytes as usize).min(MESSAGE_BYTES);
        into.clear();
        into.reserve(bytes);
        // SAFETY: the message is within the channel, and `into` has room for it. If the other side
        // writes meanwhile, the copy has arbitrary bytes, which are checked as they are read.
        unsafe {
            ptr::copy_nonoverlapping(self.message().cast_const(), into.as_mut_ptr(), bytes);
            into.set_len(bytes);
        }
        Message::Here(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::shared::SharedFile, *};
    use std::thread;

    const LOOK: Duration = Duration::from_micros(20);
    const SLEEP: Duration = Duration::from_secs(10);

    fn ends() -> (Channel, Channel) {
        let file = SharedFile::new("tenon-test", CHANNELS_BYTES).unwrap();
        // One mapping for each side, at different addresses, as in two processes.
        let (host, worker) = (Arc::new(file.map().unwrap()), Arc::new(file.map().unwrap()));
        (Channel::new(&host, 3, Side::Host), Channel::new(&worker, 3, Side::Worker))
    }

    #[test]
    fn messages_pass_to_and_fro_whoever_sleeps() {
        let (host, worker) = ends();
        const ROUNDS: u32 = 2000;
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut message = Vec::new();
                for round in 0..ROUNDS {
                    // One side sleeps at once and the other polls, so that both ways of waiting are
                    // combined.
                    let look = if round % 3 == 0 { Duration::ZERO } else { LOOK };
                    assert!(worker.wait(look, SLEEP));
                    assert_eq!(worker.receive(&mut message), Message::Here(4));
                    worker.send(&message);
                }
            });
            let mut message = Vec::new();
            for round in 0..ROUNDS {
                host.send(&round.to_le_bytes());
                let look = if round % 5 == 0 { Duration::ZERO } else { LOOK };
                assert!(host.wait(look, SLEEP));
                host.receive(&mut message);
                assert_eq!(message, round.to_le_bytes());
            }
        });
    }

    #[test]
    fn who_waits_in_vain_is_told_and_a_place_passes_as_it_is() {
        let (host, worker) = ends();
        assert!(!worker.wait(Duration::ZERO, Duration::from_millis(1)));
        host.send_from_arena(64, 1 << 40);
        assert!(worker.wait(LOOK, SLEEP) && !host.wait(Duration::ZERO, Duration::ZERO));
        let message = worker.receive(&mut Vec::new());
        assert_eq!(message, Message::Arena { offset: 64, bytes: 1 << 40 });
    }

    #[test]
    fn a_length_that_is_wrong_reads_nothing_else() {
        let (host, worker) = ends();
        host.pass(u64::MAX, HERE);
        let mut message = Vec::new();
        assert_eq!(worker.receive(&mut message), Message::Here(MESSAGE_BYTES));
        assert_eq!(message.len(), MESSAGE_BYTES);
    }
}
