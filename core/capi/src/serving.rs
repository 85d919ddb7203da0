//! Servers in this process, as both APIs have them.
//!
//! # States
//! *Bound*: the port is taken, and clients that connect wait. *Serving* from the start on. *Busy* while a start or a stop runs, of which
//! there is one at a time. *Stopped* from the end of the stop on, or of a start that failed.

use crate::fail::Failure;
use std::{
    mem,
    net::TcpListener,
    time::{Duration, Instant},
};
use tenon_cluster::{Server, ServerOptions};
use tenon_framework::sync::{Condvar, Mutex};
use tenon_runtime::{Runtime, Worker};

/// What a server needs for its start.
pub(crate) struct Bound {
    pub runtime: Runtime,
    pub listener: TcpListener,
    pub options: ServerOptions,
}

enum State {
    Bound(Box<Bound>),
    Serving(Box<Server>),
    Busy,
    Stopped,
}

/// A server in one of its states.
pub(crate) struct Serving {
    state: Mutex<State>,
    changed: Condvar,
}

impl Serving {
    /// A server that is to be started.
    pub fn bound(bound: Bound) -> Serving {
        Serving::of(State::Bound(Box::new(bound)))
    }

    /// A server that serves.
    pub fn started(server: Server) -> Serving {
        Serving::of(State::Serving(Box::new(server)))
    }

    fn of(state: State) -> Serving {
        Serving { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Starts a server that is bound; returns whether it serves. One that serves already goes on.
    ///
    /// # Errors
    /// As [`Server::start_on`]: the server is stopped then.
    pub fn start(&self) -> Result<bool, Failure> {
        let bound = match self.take() {
            State::Bound(bound) => bound,
            other => {
                let serves = matches!(other, State::Serving(_));
                self.set(other);
                return Ok(serves);
            }
        };
        let Bound { runtime, listener, options } = *bound;
        match Server::start_on(listener, Worker::new(&runtime), &options) {
            Ok(server) => self.set(State::Serving(Box::new(server))),
            Err(error) => {
                self.set(State::Stopped);
                return Err(error.into());
            }
        }
        Ok(true)
    }

    /// Stops a server; steps in flight have this long to end. Returns whether it was not stopped before.
    pub fn stop(&self, grace: Duration) -> bool {
        let before = self.take();
        let was = !matches!(before, State::Stopped);
        if let State::Serving(server) = before {
            server.stop(grace);
        }
        self.set(State::Stopped);
        was
    }

    /// Makes a server that was not started one that is stopped.
    pub fn give_up(&self) {
        match self.take() {
            State::Bound(_) => self.set(State::Stopped),
            other => self.set(other),
        }
    }

    /// Waits until the server is stopped, for this long at most; returns whether it is.
    pub fn join(&self, limit: Option<Duration>) -> bool {
        let begin = Instant::now();
        let mut state = self.state.lock();
        while !matches!(*state, State::Stopped) {
            let Some(limit) = limit else {
                state = self.changed.wait(state);
                continue;
            };
            match limit.checked_sub(begin.elapsed()).filter(|left| !left.is_zero()) {
                Some(left) => state = self.changed.wait_timeout(state, left),
                None => return false,
            }
        }
        true
    }

    /// Waits while the server is busy, and takes its state, which is busy then until [`Serving::set`].
    fn take(&self) -> State {
        let mut state = self.state.lock();
        while matches!(*state, State::Busy) {
            state = self.changed.wait(state);
        }
        mem::replace(&mut *state, State::Busy)
    }

    fn set(&self, state: State) {
        *self.state.lock() = state;
        self.changed.notify_all();
    }
}
