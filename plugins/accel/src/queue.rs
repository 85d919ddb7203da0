//! The queue of a device: lanes of commands, and the thread that runs them.
//!
//! Each stream is a lane. A lane is *ready* unless its first command waits for a pending recording,
//! or a test holds that command back. The thread takes the first command of one ready lane at a
//! time, the oldest one or, with a seed, a random one, and runs it without holding the lock. So
//! each command is waiting, running, or gone; a lane is idle when it is empty and none of its
//! commands is running.
//!
//! # Invariants
//! - Every recording completes and every notification runs exactly once, even if the device is lost
//!   or closed meanwhile.
//! - Only the thread takes commands out, except for those of a lane that is closed.
//! - Once the device is lost no command begins. A running command ends, and a wait for its lane
//!   waits for that: after a stream is synchronised, even if the device is lost, the resources of
//!   its commands may be freed.

use crate::{
    faults::{Fate, Faults, Health},
    recording::Recording,
    settings::{PaceSource, Settings},
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};
use tenon_sdk::{
    Code, KernelError,
    author::{guard, spawn},
    device::author::Notification,
};

/// How often a stalled queue checks whether it still is stalled.
const STALL_POLL: Duration = Duration::from_millis(1);

type Body = Box<dyn FnOnce() -> Result<(), KernelError> + Send>;

/// The work of a kernel or a copy.
pub struct Work {
    name: &'static str,
    is_copy: bool,
    body: Body,
}

impl Work {
    /// The work of a kernel.
    pub fn kernel(
        name: &'static str,
        body: impl FnOnce() -> Result<(), KernelError> + Send + 'static,
    ) -> Work {
        Work { name, is_copy: false, body: Box::new(body) }
    }

    /// The work of a copy.
    pub fn copy(body: impl FnOnce() -> Result<(), KernelError> + Send + 'static) -> Work {
        Work { name: "copy", is_copy: true, body: Box::new(body) }
    }
}

/// An entry of a lane.
pub enum Command {
    /// Computes or copies; skipped after an error.
    Work(Work),
    /// Frees something; runs even after an error.
    Cleanup(Box<dyn FnOnce() + Send>),
    /// Completes a recording.
    Record(Arc<Recording>),
    /// Holds the lane until a recording is complete.
    Wait(Arc<Recording>),
    /// Notifies the host.
    Notify(Notification),
}

impl Command {
    /// Does what a command must do even if it does not compute.
    fn settle(self, code: Code) {
        match self {
            Command::Work(_) | Command::Wait(_) => {}
            Command::Cleanup(body) => clean(body),
            Command::Record(recording) => recording.happen(code),
            Command::Notify(done) => done.run(code),
        }
    }
}

/// Runs a cleanup; a panic of it ends neither the thread nor the lane.
fn clean(body: Box<dyn FnOnce() + Send>) {
    let _ = guard(body);
}

#[derive(Default)]
struct Lane {
    /// Commands with their tickets, which order them over all lanes.
    commands: VecDeque<(u64, Command)>,
    is_running: bool,
    /// The first error, with the ticket of its command.
    error: Option<(u64, KernelError)>,
}

impl Lane {
    fn is_idle(&self) -> bool {
        self.commands.is_empty() && !self.is_running
    }

    /// Ticket of the first command if it can run; commands with the name `hold` cannot.
    fn ready(&self, hold: &str) -> Option<u64> {
        match self.commands.front()? {
            (_, Command::Wait(recording)) if recording.outcome().is_none() => None,
            (_, Command::Work(work)) if work.name == hold => None,
            (ticket, _) => Some(*ticket),
        }
    }

    fn code(&self) -> Code {
        self.error.as_ref().map_or(Code::OK, |(_, error)| error.code)
    }

    fn result(&self) -> Result<(), KernelError> {
        self.error.as_ref().map_or(Ok(()), |(_, error)| Err(error.clone()))
    }
}

struct State {
    lanes: BTreeMap<u64, Lane>,
    next_lane: u64,
    next_ticket: u64,
    /// State of the random order; 0 runs commands in the order of enqueueing.
    random: u64,
    is_closed: bool,
}

impl State {
    /// The lane whose command runs next.
    fn pick(&mut self, hold: &str) -> Option<u64> {
        let ready = self.lanes.iter().filter_map(|(id, lane)| Some((lane.ready(hold)?, *id)));
        if self.random == 0 {
            return ready.min().map(|(_, id)| id);
        }
        let ready: Vec<u64> = ready.map(|(_, id)| id).collect();
        // Marsaglia, "Xorshift RNGs", 2003: the triple (13, 7, 17).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let at = self.random.checked_rem(ready.len() as u64)?;
        ready.get(at as usize).copied()
    }

    fn can_run(&self) -> bool {
        self.lanes.values().any(|lane| lane.ready("").is_some())
    }
}

struct Shared {
    health: Arc<Health>,
    faults: Faults,
    pace: PaceSource,
    state: Mutex<State>,
    /// Signalled when there may be something to run.
    work: Condvar,
    /// Signalled when a lane may be idle.
    idle: Condvar,
}

/// The queue of one device; any thread may use it.
pub struct Queue {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Queue {
    /// Starts the thread.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when the operating system creates no thread.
    pub fn start(
        name: &str,
        settings: &Settings,
        health: Arc<Health>,
    ) -> Result<Queue, KernelError> {
        let state = State {
            lanes: BTreeMap::new(),
            next_lane: 0,
            next_ticket: 0,
            random: settings.reorder_seed,
            is_closed: false,
        };
        let shared = Arc::new(Shared {
            health,
            faults: settings.faults.clone(),
            pace: Arc::clone(&settings.pace),
            state: Mutex::new(state),
            work: Condvar::new(),
            idle: Condvar::new(),
        });
        let runner = Arc::clone(&shared);
        let thread = spawn(name, move || runner.run()).map_err(|error| {
            KernelError::new(Code::RESOURCE_EXHAUSTED, format!("no thread for the queue: {error}"))
        })?;
        Ok(Queue { shared, thread: Mutex::new(Some(thread)) })
    }

    /// The health of the device.
    pub fn health(&self) -> &Health {
        &self.shared.health
    }

    /// Marks the device as lost: everything enqueued is abandoned with `UNAVAILABLE`.
    pub fn lose(&self, reason: &str) {
        self.shared.health.lose(reason);
        // Taking the lock orders this after the thread's decision to sleep.
        drop(self.shared.lock());
        self.shared.work.notify_all();
        self.shared.idle.notify_all();
    }

    /// Opens a lane.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the device is lost.
    pub fn open_lane(&self) -> Result<u64, KernelError> {
        let mut state = self.shared.lock();
        self.shared.check(&state)?;
        let id = state.next_lane;
        state.next_lane += 1;
        state.lanes.insert(id, Lane::default());
        Ok(id)
    }

    /// Closes a lane; commands still on it are abandoned with `CANCELLED`.
    pub fn close_lane(&self, id: u64) {
        let lane = self.shared.lock().lanes.remove(&id);
        for (_, command) in lane.map(|lane| lane.commands).into_iter().flatten() {
            command.settle(Code::CANCELLED);
        }
        self.shared.idle.notify_all();
    }

    /// Appends a command to a lane. A refused command is abandoned.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the device is lost, `FAILED_PRECONDITION` when it or the lane is closed.
    pub fn enqueue(&self, id: u64, command: Command) -> Result<(), KernelError> {
        let mut state = self.shared.lock();
        let ticket = state.next_ticket;
        let lane = match self.shared.check(&state) {
            Ok(()) => state.lanes.get_mut(&id).ok_or_else(closed),
            Err(error) => Err(error),
        };
        match lane {
            Ok(lane) => {
                lane.commands.push_back((ticket, command));
                state.next_ticket += 1;
                drop(state);
                self.shared.work.notify_one();
                Ok(())
            }
            Err(error) => {
                drop(state);
                command.settle(error.code);
                Err(error)
            }
        }
    }

    /// Waits until a lane is idle; if the device is lost, until none of its commands is running.
    ///
    /// # Errors
    /// The lane's first error.
    pub fn synchronize_lane(&self, id: u64) -> Result<(), KernelError> {
        self.wait_until(
            |state| state.lanes.get(&id).is_some_and(|lane| lane.is_running),
            |state| state.lanes.get(&id).is_none_or(Lane::is_idle),
            |state| state.lanes.get(&id).map_or_else(|| Err(closed()), Lane::result),
        )
    }

    /// Waits until all lanes are idle; if the device is lost, until no command is running.
    ///
    /// # Errors
    /// The first error of any lane.
    pub fn synchronize(&self) -> Result<(), KernelError> {
        self.wait_until(
            |state| state.lanes.values().any(|lane| lane.is_running),
            |state| state.lanes.values().all(Lane::is_idle),
            |state| {
                let first = state.lanes.values().filter_map(|lane| lane.error.as_ref());
                first
                    .min_by_key(|(ticket, _)| *ticket)
                    .map_or(Ok(()), |(_, error)| Err(error.clone()))
            },
        )
    }

    fn wait_until(
        &self,
        is_running: impl Fn(&State) -> bool,
        is_idle: impl Fn(&State) -> bool,
        result: impl Fn(&State) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let mut state = self.shared.lock();
        loop {
            match self.shared.check(&state) {
                Err(error) if !is_running(&state) => return Err(error),
                Ok(()) if is_idle(&state) => return result(&state),
                _ => {}
            }
            state = self.shared.idle.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.work.notify_all();
        self.shared.idle.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A notification may have dropped the last reference to the queue: the thread cannot join
        // itself, and ends when the notification returns.
        if let Some(thread) = thread.filter(|it| it.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}

fn closed() -> KernelError {
    KernelError::new(Code::FAILED_PRECONDITION, "the stream or its device is closed")
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, state: &State) -> Result<(), KernelError> {
        self.health.check()?;
        if state.is_closed { Err(closed()) } else { Ok(()) }
    }

    /// The thread's loop.
    fn run(&self) {
        loop {
            let state = self.lock();
            if state.is_closed {
                return self.abandon_all(state, Code::CANCELLED);
            }
            if self.health.is_lost() {
                self.abandon_all(state, Code::UNAVAILABLE);
                self.sleep();
            } else if state.can_run() {
                drop(state);
                self.turn();
            } else {
                drop(self.work.wait(state).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    /// Sleeps until the device, which is lost, is closed.
    fn sleep(&self) {
        let state = self.lock();
        let nothing_to_do = |state: &mut State| {
            !state.is_closed && state.lanes.values().all(|lane| lane.commands.is_empty())
        };
        drop(self.work.wait_while(state, nothing_to_do).unwrap_or_else(PoisonError::into_inner));
    }

    /// Runs one command, unless the queue is stalled. The host is asked for the pace without the
    /// lock.
    fn turn(&self) {
        let pace = (self.pace)();
        let mut state = self.lock();
        let picked = if pace.stall { None } else { state.pick(&pace.hold) };
        let Some(id) = picked else {
            let wait = self.work.wait_timeout(state, STALL_POLL);
            drop(wait.unwrap_or_else(PoisonError::into_inner));
            return;
        };
        let Some(lane) = state.lanes.get_mut(&id) else { return };
        let Some((ticket, command)) = lane.commands.pop_front() else { return };
        lane.is_running = true;
        let before = lane.code();
        drop(state);
        let result = self.execute(command, before, pace.copy_delay);
        let mut state = self.lock();
        if let Some(lane) = state.lanes.get_mut(&id) {
            lane.is_running = false;
            if let Err(error) = result {
                lane.error.get_or_insert((ticket, error));
            }
        }
        drop(state);
        self.idle.notify_all();
    }

    /// Runs a command of a lane whose first error so far has the code `before`.
    fn execute(
        &self,
        command: Command,
        before: Code,
        copy_delay: Duration,
    ) -> Result<(), KernelError> {
        match command {
            Command::Work(work) if before.is_ok() => self.work(work, copy_delay),
            Command::Wait(recording) => match recording.outcome() {
                None | Some(Code::OK) => Ok(()),
                Some(code) => {
                    Err(KernelError::new(code, "a stream that this one waits for failed"))
                }
            },
            other => {
                other.settle(before);
                Ok(())
            }
        }
    }

    fn work(&self, work: Work, copy_delay: Duration) -> Result<(), KernelError> {
        let done = self.health.count_command();
        match self.faults.fate(done) {
            Fate::Run => {}
            Fate::Fail => {
                return Err(KernelError::internal(format!(
                    "{}: the knob fail_command_after is {done}",
                    work.name
                )));
            }
            Fate::Lose => {
                self.health.lose(&format!("the knob lose_after_commands is {done}"));
                return Err(self.health.error());
            }
        }
        if work.is_copy && !copy_delay.is_zero() {
            std::thread::sleep(copy_delay);
        }
        let result = guard(work.body)
            .unwrap_or_else(|panic| Err(KernelError::internal(format!("it panicked: {panic}"))));
        result.map_err(|error| KernelError::new(error.code, format!("{}: {error}", work.name)))
    }

    /// Empties all lanes; their commands are settled without the lock.
    fn abandon_all(&self, mut state: MutexGuard<'_, State>, code: Code) {
        let error = match code {
            Code::UNAVAILABLE => self.health.error(),
            _ => closed(),
        };
        let mut abandoned = Vec::new();
        for lane in state.lanes.values_mut() {
            abandoned.extend(lane.commands.drain(..));
            lane.error.get_or_insert_with(|| (u64::MAX, error.clone()));
        }
        drop(state);
        abandoned.sort_by_key(|(ticket, _)| *ticket);
        for (_, command) in abandoned {
            command.settle(code);
        }
        self.idle.notify_all();
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
