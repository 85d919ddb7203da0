//! A network in one process: streams of bytes with latency, windows and faults, by the runtime's virtual time.

use super::Dice;
use crate::{plane::Lane, way::Way};
use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

/// What happens to a direction of a connection at one of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing.
    None,
    /// The connection breaks, which both sides see.
    Cut,
    /// All that follows is lost, and neither side hears of it: the connection is half open.
    Silence,
    /// All that follows comes later, as after a partition.
    Stall(Duration),
    /// A bit changes.
    Flip,
    /// A piece comes twice.
    Twice,
    /// A piece overtakes the one before it.
    Swap,
}

/// The properties of a direction.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub latency: Duration,
    pub per_byte: Duration,
    /// Bytes that may be on their way.
    pub window: usize,
    /// Bytes of a piece.
    pub piece: usize,
    /// Bytes at the beginning that go in pieces of seven, so that headers are cut.
    pub crumbs: usize,
    pub fault: Fault,
    /// The byte at which the fault happens.
    pub at: usize,
}

impl Line {
    /// One without faults.
    pub fn good(dice: &mut Dice) -> Line {
        Line {
            latency: Duration::from_micros(dice.below(5_000)),
            per_byte: Duration::from_nanos(dice.one_of(&[0, 0, 1, 10, 1000])),
            window: dice.one_of(&[2 << 10, 4 << 10, 64 << 10, 1 << 20]),
            piece: dice.one_of(&[700, 1400, 16 << 10, 1 << 20]),
            crumbs: dice.one_of(&[0, 0, 500]),
            fault: Fault::None,
            at: 0,
        }
    }

    /// One that has a fault as likely as not.
    pub fn any(dice: &mut Dice) -> Line {
        let stall = Fault::Stall(Duration::from_millis(dice.below(40_000)));
        let faults = [Fault::Cut, Fault::Silence, stall, Fault::Flip, Fault::Twice, Fault::Swap];
        let fault = if dice.below(2) == 0 { Fault::None } else { dice.one_of(&faults) };
        let most = dice.one_of(&[64, 2_000, 100_000, 600_000]);
        Line { fault, at: dice.below(most) as usize, ..Line::good(dice) }
    }
}

struct Piece {
    at: Instant,
    bytes: Vec<u8>,
    /// The bytes of it that were read.
    read: usize,
}

/// What one side writes and the other reads.
struct Pipe {
    line: Line,
    pieces: VecDeque<Piece>,
    /// Bytes on their way, and those that were lost without an error.
    in_flight: usize,
    written: usize,
    last: Instant,
    silent: bool,
    ended: bool,
    broken: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

type Shared = Arc<Mutex<Pipe>>;

fn lock(pipe: &Shared) -> MutexGuard<'_, Pipe> {
    pipe.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pipe {
    fn new(line: Line) -> Shared {
        Arc::new(Mutex::new(Pipe {
            line,
            pieces: VecDeque::new(),
            in_flight: 0,
            written: 0,
            last: Instant::now(),
            silent: false,
            ended: false,
            broken: false,
            reader: None,
            writer: None,
        }))
    }

    fn wake(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
        self.writer.take().into_iter().for_each(Waker::wake);
    }

    fn break_off(&mut self) {
        self.broken = true;
        self.wake();
    }

    /// Sends a piece; whether the connection breaks by it.
    fn send(&mut self, bytes: &[u8]) -> bool {
        let (from, to) = (self.written, self.written + bytes.len());
        self.written = to;
        self.in_flight += bytes.len();
        let now = Instant::now();
        let spent = self.line.per_byte * u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.last = self.last.max(now + self.line.latency) + spent;
        let mut piece = Piece { at: self.last, bytes: bytes.to_vec(), read: 0 };
        if (from..to).contains(&self.line.at) {
            match self.line.fault {
                Fault::None => {}
                Fault::Cut => return true,
                Fault::Silence => self.silent = true,
                Fault::Stall(time) => {
                    self.last += time;
                    piece.at = self.last;
                }
                Fault::Flip => piece.bytes[self.line.at - from] ^= 0x10,
                Fault::Twice => {
                    let again = piece.bytes.clone();
                    self.in_flight += again.len();
                    self.pieces.push_back(Piece { at: piece.at, bytes: again, read: 0 });
                }
                Fault::Swap => {
                    if let Some(before) = self.pieces.back_mut().filter(|it| it.read == 0) {
                        std::mem::swap(&mut before.bytes, &mut piece.bytes);
                    }
                }
            }
        }
        if !self.silent {
            self.pieces.push_back(piece);
            self.reader.take().into_iter().for_each(Waker::wake);
        }
        false
    }
}

/// A connection, which can be broken and silenced from outside.
pub(super) struct Connection([Shared; 2]);

impl Connection {
    pub fn cut(&self) {
        self.0.iter().for_each(|pipe| lock(pipe).break_off());
    }

    /// All that follows is lost, in both directions, and neither side hears of it.
    pub fn silence(&self) {
        self.0.iter().for_each(|pipe| lock(pipe).silent = true);
    }
}

struct Reading {
    pipe: Shared,
    until: Option<Pin<Box<Sleep>>>,
}

impl AsyncRead for Reading {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let shared = Arc::clone(&self.pipe);
        let mut pipe = lock(&shared);
        if pipe.broken {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        pipe.reader = Some(context.waker().clone());
        let now = Instant::now();
        let Some(piece) = pipe.pieces.front_mut() else {
            return if pipe.ended { Poll::Ready(Ok(())) } else { Poll::Pending };
        };
        if piece.at > now {
            let mut sleep = Box::pin(sleep_until(piece.at));
            let polled = sleep.as_mut().poll(context);
            self.until = Some(sleep);
            if polled.is_pending() {
                return Poll::Pending;
            }
        }
        let left = &piece.bytes[piece.read..];
        let count = left.len().min(into.remaining());
        into.put_slice(&left[..count]);
        piece.read += count;
        if piece.read == piece.bytes.len() {
            pipe.pieces.pop_front();
        }
        pipe.in_flight -= count;
        pipe.writer.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        lock(&self.pipe).break_off();
    }
}

struct Writing {
    pipe: Shared,
    back: Shared,
}

impl AsyncWrite for Writing {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut pipe = lock(&self.pipe);
        if pipe.broken || pipe.ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = pipe.line.window.saturating_sub(pipe.in_flight);
        let most = if pipe.written < pipe.line.crumbs { 7 } else { pipe.line.piece };
        let count = bytes.len().min(room).min(most);
        if count == 0 && !bytes.is_empty() {
            pipe.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        if pipe.send(&bytes[..count]) {
            pipe.break_off();
            drop(pipe);
            lock(&self.back).break_off();
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut pipe = lock(&self.pipe);
        pipe.ended |= !pipe.silent;
        pipe.reader.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }
}

/// Both ends of a connection.
pub(super) fn connect(there: Line, back: Line) -> (Lane, Lane, Connection) {
    let (there, back) = (Pipe::new(there), Pipe::new(back));
    let lane = |reads: &Shared, writes: &Shared| Lane {
        way: Way::Tcp,
        checked: true,
        read: Box::new(Reading { pipe: Arc::clone(reads), until: None }),
        write: Box::new(Writing { pipe: Arc::clone(writes), back: Arc::clone(reads) }),
    };
    let lanes = (lane(&back, &there), lane(&there, &back));
    (lanes.0, lanes.1, Connection([there, back]))
}
