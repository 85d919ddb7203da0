//! Streams, each a thread that runs commands in order, and events, which are points in them.

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
};
use tenon_sdk::{Code, KernelError, author::spawn, device::author::Notification};

/// What a stream runs.
pub(crate) type Command = Box<dyn FnOnce() -> Result<(), KernelError> + Send>;

/// What a stream runs even when it has failed: it is told the first error.
type Always = Box<dyn FnOnce(Option<&KernelError>) + Send>;

enum Work {
    /// Skipped once the stream has failed.
    Command(Command),
    /// Never skipped.
    Always(Always),
}

/// A stream: commands run in order on a thread of its own.
pub struct Stream {
    work: Option<Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(work: &Receiver<Work>) {
    let mut failure: Option<KernelError> = None;
    for item in work {
        match item {
            Work::Command(command) if failure.is_none() => failure = command().err(),
            Work::Command(_) => {}
            Work::Always(body) => body(failure.as_ref()),
        }
    }
}

impl Stream {
    /// Starts the thread.
    pub(crate) fn new() -> Result<Stream, KernelError> {
        let (work, received) = channel();
        let thread = spawn("zoo-stream", move || run(&received)).map_err(|error| {
            KernelError::new(Code::RESOURCE_EXHAUSTED, format!("no thread for a stream: {error}"))
        })?;
        Ok(Stream { work: Some(work), thread: Some(thread) })
    }

    fn send(&self, work: Work) -> Result<(), KernelError> {
        let sent = self.work.as_ref().is_some_and(|queue| queue.send(work).is_ok());
        if sent { Ok(()) } else { Err(KernelError::internal("the stream's thread is gone")) }
    }

    /// Enqueues a command.
    pub(crate) fn enqueue(&self, command: Command) -> Result<(), KernelError> {
        self.send(Work::Command(command))
    }

    /// Enqueues what runs even when the stream has failed, and is told how.
    pub(crate) fn always(
        &self,
        body: impl FnOnce(Option<&KernelError>) + Send + 'static,
    ) -> Result<(), KernelError> {
        self.send(Work::Always(Box::new(body)))
    }

    /// Waits until all that was enqueued so far is done.
    pub(crate) fn synchronize(&self) -> Result<(), KernelError> {
        let (done, wait) = channel();
        self.always(move |failure| {
            let _ = done.send(failure.cloned());
        })?;
        match wait.recv() {
            Ok(None) => Ok(()),
            Ok(Some(failure)) => Err(failure),
            Err(_) => Err(KernelError::internal("the stream's thread ended early")),
        }
    }

    /// Has a notification run once all that was enqueued so far is done.
    pub(crate) fn notify(&self, done: Notification) {
        // When the thread is gone the notification is dropped, and says so to the host.
        let _ = self.always(move |failure| done.run(failure.map_or(Code::OK, |error| error.code)));
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        drop(self.work.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Default)]
struct Recordings {
    made: u64,
    happened: u64,
    failure: Option<KernelError>,
}

#[derive(Default)]
struct Shared {
    recordings: Mutex<Recordings>,
    changed: Condvar,
}

/// An event: a point in a stream that others wait for.
#[derive(Default)]
pub struct Event {
    shared: Arc<Shared>,
}

impl Event {
    /// Records it on a stream.
    pub(crate) fn record(&self, stream: &Stream) -> Result<(), KernelError> {
        let number = {
            let mut recordings = lock(&self.shared.recordings);
            recordings.made += 1;
            recordings.made
        };
        let shared = self.shared.clone();
        stream.always(move |failure| {
            let mut recordings = lock(&shared.recordings);
            recordings.happened = recordings.happened.max(number);
            recordings.failure = failure.cloned();
            shared.changed.notify_all();
        })
    }

    /// Makes a stream wait for its last recording so far.
    pub(crate) fn wait(&self, stream: &Stream) -> Result<(), KernelError> {
        let (number, shared) = (lock(&self.shared.recordings).made, self.shared.clone());
        stream.enqueue(Box::new(move || {
            let mut recordings = lock(&shared.recordings);
            while recordings.happened < number {
                recordings =
                    shared.changed.wait(recordings).unwrap_or_else(PoisonError::into_inner);
            }
            recordings.failure.clone().map_or(Ok(()), Err)
        }))
    }

    /// Whether its last recording has happened.
    pub(crate) fn query(&self) -> Result<bool, KernelError> {
        let recordings = lock(&self.shared.recordings);
        if recordings.happened < recordings.made {
            return Ok(false);
        }
        recordings.failure.clone().map_or(Ok(true), Err)
    }
}
