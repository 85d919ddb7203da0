//! A network in memory: connections of bytes between tasks, with the faults of real ones.
//!
//! Bytes arrive in order, after a delay. Between two tasks that are cut off from each other they are held, as TCP sends them
//! again until the way is open. A task that is killed resets its connections; one that lost its power closes none, so that
//! the other ends stay half-open.

use super::{
    pipe::{End, Pipe},
    random::Random,
};
use crate::{
    client::{Caller, Connection},
    clock::virtual_time::VirtualTime,
    dial::{
        Stream,
        simulated::{Connecting, Duplex, Reach},
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::sync::mpsc;

/// The least and the most that bytes take from one task to another, in microseconds, unless the way is slow.
const DELAY: (u64, u64) = (100, 2_000);
/// How long an attempt to connect waits for a task that does not answer.
const CONNECT: Duration = Duration::from_secs(5);
/// Connections that wait to be accepted.
const WAITING: usize = 64;

/// Two tasks, the first of which sends.
pub(super) type Way = (String, String);
pub(super) type Accepted = mpsc::Receiver<io::Result<Connection>>;

/// A network.
pub(super) struct Network {
    pub time: Arc<VirtualTime>,
    state: Mutex<State>,
}

struct State {
    random: Random,
    /// The tasks that are up, by address, each with the number of its start.
    up: BTreeMap<String, (u64, mpsc::Sender<io::Result<Connection>>)>,
    /// Those that lost their power.
    dark: BTreeSet<String>,
    cut: BTreeSet<Way>,
    /// Microseconds that a kilobyte takes.
    slow: BTreeMap<Way, u64>,
    pipes: Vec<Weak<Pipe>>,
    starts: u64,
}

impl Network {
    pub fn new(time: &Arc<VirtualTime>, random: Random) -> Arc<Network> {
        let state = State {
            random,
            up: BTreeMap::new(),
            dark: BTreeSet::new(),
            cut: BTreeSet::new(),
            slow: BTreeMap::new(),
            pipes: Vec::new(),
            starts: 0,
        };
        Arc::new(Network { time: Arc::clone(time), state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task starts: its place, and the connections that others make to it.
    pub fn join(self: &Arc<Self>, address: &str) -> (Place, Accepted) {
        let (sender, accepted) = mpsc::channel(WAITING);
        let mut state = self.state();
        state.starts += 1;
        let start = state.starts;
        state.dark.remove(address);
        state.up.insert(address.to_owned(), (start, sender));
        let pipes = state.pipes();
        drop(state);
        pipes.iter().filter(|pipe| pipe.way.1 == address).for_each(|pipe| pipe.forget());
        (Place { network: Arc::clone(self), address: address.to_owned(), start }, accepted)
    }

    /// A task ends, with or without a reset of its connections.
    pub fn leave(self: &Arc<Self>, address: &str, is_silent: bool) {
        let mut state = self.state();
        state.up.remove(address);
        if is_silent {
            state.dark.insert(address.to_owned());
        }
        let pipes = state.pipes();
        drop(state);
        for pipe in pipes.iter().filter(|pipe| pipe.way.0 == address || pipe.way.1 == address) {
            pipe.lose(address, is_silent);
        }
    }

    /// Resets the connections between two tasks.
    pub fn reset(self: &Arc<Self>, one: &str, other: &str) {
        let pipes = self.state().pipes();
        let is_between = |pipe: &&Arc<Pipe>| {
            let (from, to) = (pipe.way.0.as_str(), pipe.way.1.as_str());
            (from, to) == (one, other) || (from, to) == (other, one)
        };
        pipes.iter().filter(is_between).for_each(|pipe| pipe.reset());
    }

    /// Cuts tasks off from each other, in one direction.
    pub fn cut(&self, ways: &[Way]) {
        self.state().cut.extend(ways.iter().cloned());
    }

    /// Opens ways that were cut; what was held arrives.
    pub fn heal(&self, ways: &[Way]) {
        let mut state = self.state();
        state.cut.retain(|way| !ways.contains(way));
        let pipes = state.pipes();
        drop(state);
        pipes.iter().filter(|pipe| !self.is_cut(&pipe.way)).for_each(|pipe| pipe.release());
    }

    /// Makes a way slow: so many microseconds for each kilobyte; 0 for its usual speed.
    pub fn slow(&self, way: &Way, micros: u64) {
        self.state().slow.insert(way.clone(), micros);
    }

    pub fn is_cut(&self, way: &Way) -> bool {
        self.state().cut.contains(way)
    }

    /// How long so many bytes take.
    pub fn delay(&self, way: &Way, bytes: usize) -> Duration {
        let mut state = self.state();
        let slow = state.slow.get(way).copied().unwrap_or(0);
        let base = state.random.between(DELAY.0, DELAY.1);
        Duration::from_micros(base + slow * (bytes as u64).div_ceil(1024))
    }

    fn is_up(&self, place: &Place) -> bool {
        self.state().up.get(&place.address).is_some_and(|(start, _)| *start == place.start)
    }
}

impl State {
    fn pipes(&mut self) -> Vec<Arc<Pipe>> {
        self.pipes.retain(|pipe| pipe.strong_count() > 0);
        self.pipes.iter().filter_map(Weak::upgrade).collect()
    }
}

/// The place of a task in a network, from which it connects to others.
#[derive(Clone)]
pub(super) struct Place {
    network: Arc<Network>,
    address: String,
    /// The number of its start: one that has ended reaches nobody.
    start: u64,
}

fn error(kind: io::ErrorKind, why: &str) -> io::Error {
    io::Error::new(kind, why)
}

impl Place {
    async fn to(self, to: String) -> io::Result<End> {
        let network = &self.network;
        let there = (self.address.clone(), to.clone());
        let back = (to.clone(), self.address.clone());
        if !network.is_up(&self) {
            return Err(error(io::ErrorKind::NotConnected, "this task has ended"));
        }
        let is_deaf = || {
            network.is_cut(&there) || network.is_cut(&back) || network.state().dark.contains(&to)
        };
        let wait = if is_deaf() { CONNECT } else { network.delay(&there, 0) * 2 };
        Arc::clone(&network.time).sleep(wait).await;
        if is_deaf() {
            return Err(error(io::ErrorKind::TimedOut, "connection timed out"));
        }
        let listener = network.state().up.get(&to).map(|(_, listener)| listener.clone());
        let Some(listener) = listener else {
            return Err(error(io::ErrorKind::ConnectionRefused, "connection refused"));
        };
        let pipes = Pipe::pair(network, [there, back]);
        let theirs = End::new(&pipes[0], &pipes[1]);
        let connection = Connection::new(Stream::Simulated(Box::pin(theirs)), Caller::default());
        network.state().pipes.extend(pipes.iter().map(Arc::downgrade));
        if listener.try_send(Ok(connection)).is_err() {
            return Err(error(io::ErrorKind::ConnectionRefused, "too many connections wait"));
        }
        Ok(End::new(&pipes[1], &pipes[0]))
    }
}

impl Reach for Place {
    fn connect(&self, address: String) -> Connecting<Duplex> {
        let connecting = self.clone().to(address);
        Box::pin(async move {
            let end: Duplex = Box::pin(connecting.await?);
            Ok(end)
        })
    }
}
