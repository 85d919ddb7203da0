//! The host's side of an isolated plugin's process.
//!
//! States: *starting* (it opens its library) → *up* (calls run) → *dead*, which is final: the
//! plugin starts another process. It ends by itself (a crash), by a call that is over its deadline
//! ([`Process::stop`]), or by the host, which kills it when it is no longer needed. If the host
//! dies in any way, the worker finds its socket closed and ends. The worker leads a process group,
//! which ends with it: processes that the plugin started end too.
//!
//! Three threads accompany it: they wait for its end, read its log, and read its standard error.
//! None of them owns the process itself, so dropping it ends them.

use super::{
    channel::{CHANNELS, CHANNELS_BYTES, Channel, Side},
    crash::{CRASH_BYTES, CrashRecord},
    listener::{LastWords, Rate, cut, listen},
    shared::{Mapping, SharedFile},
    surroundings,
    wire::{Order, Word, read_message, write_message},
};
use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
        pidfd_send_signal, waitid,
    },
};
use std::{
    io::{
        self, BufReader,
        ErrorKind::{BrokenPipe, ConnectionReset},
    },
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            net::UnixStream,
            process::{CommandExt, ExitStatusExt},
        },
    },
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tenon_abi::LogLevel;
use tenon_framework::sync::{Condvar, Mutex, Rank};

/// Below the plugin's state; no lock is taken while it is held.
const CALLS: Rank = Rank(74);
/// How long to wait for the last lines of standard error.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How often the thread that waits for a worker's first message checks whether it is still needed.
const LOOK: Duration = Duration::from_millis(50);
/// How long a worker may leave messages unread.
const LISTENING: Duration = Duration::from_secs(5);

/// Parameters of starting a worker.
pub(super) struct Launch<'a> {
    pub command: Command,
    /// Environment variables that it receives in addition to the usual ones.
    pub environment: &'a [String],
    pub plugin: &'a str,
    pub generation: u64,
    pub order: Order,
    /// Descriptors that accompany the first order; those of the channels follow them.
    pub descriptors: Vec<OwnedFd>,
}

/// Why a process is dead.
#[derive(Debug, Clone)]
pub(super) struct Death {
    /// How the system says it ended.
    pub status: Option<ExitStatus>,
    /// The record that it wrote as it crashed.
    pub crash: Option<CrashRecord>,
    /// The last lines on standard error.
    pub last_words: Vec<String>,
    /// The call for which it was stopped, and the deadline that this call exceeded.
    pub stopped: Option<(usize, Duration)>,
    /// The calls that it was running.
    pub calls: Vec<(usize, Arc<str>)>,
}

/// Why a process did not become ready.
pub(super) enum NotReady<'p> {
    /// It ended.
    Ended(&'p Death),
    /// It was ended because it sent nothing in time.
    Late,
}

/// What the threads share with the process.
struct Shared {
    channels: Arc<Mapping>,
    calls: Mutex<Calls>,
    freed: Condvar,
    stopped: OnceLock<(usize, Duration)>,
    death: OnceLock<Death>,
    last_words: Mutex<LastWords>,
}

#[derive(Default)]
struct Calls {
    names: [Option<Arc<str>>; CHANNELS],
    buffers: [(Vec<u8>, Vec<u8>); CHANNELS],
}

/// A worker.
pub(super) struct Process {
    generation: u64,
    pid: Pid,
    handle: OwnedFd,
    socket: Mutex<UnixStream>,
    shared: Arc<Shared>,
    waiter: Option<JoinHandle<()>>,
    /// Its first message.
    words: Mutex<Receiver<Word>>,
}

impl Process {
    /// Starts a worker. [`Process::first_word`] waits for its first message.
    pub fn start(launch: Launch<'_>) -> io::Result<Process> {
        let Launch { mut command, environment, plugin, generation, order, mut descriptors } =
            launch;
        let channels = SharedFile::new("tenon-channels", CHANNELS_BYTES + CRASH_BYTES)?;
        let mapping = Arc::new(channels.map()?);
        let (host, worker) = UnixStream::pair()?;
        host.set_write_timeout(Some(LISTENING))?;
        surroundings::confine(&mut command, environment);
        command.env(super::WORKER_VARIABLE, "1").process_group(0);
        command.stdin(OwnedFd::from(worker)).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let pid = Pid::from_child(&child);
        let handle = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        })?;
        let shared = Arc::new(Shared {
            channels: mapping,
            calls: Mutex::ranked(CALLS, Calls::default()),
            freed: Condvar::new(),
            stopped: OnceLock::new(),
            death: OnceLock::new(),
            last_words: Mutex::default(),
        });
        let (said, words) = sync_channel(1);
        let stderr = child.stderr.take();
        let quiet = spawn_listener(plugin, stderr, Arc::clone(&shared));
        spawn_reader(plugin, host.try_clone()?, handle.try_clone()?, said);
        let waiter = spawn_waiter(child, quiet, Arc::clone(&shared));
        let process = Process {
            generation,
            pid,
            handle,
            socket: Mutex::new(host),
            shared,
            waiter: Some(waiter),
            words: Mutex::new(words),
        };
        descriptors.push(channels.as_fd().try_clone_to_owned()?);
        let mut socket = process.socket.lock();
        let told = super::descriptors::send(&*socket, &descriptors)
            .and_then(|()| write_message(&mut *socket, &order));
        drop(socket);
        // A process that has ended already reads nothing: the wait for its first message reports
        // how it ended.
        match told {
            Err(error) if !matches!(error.kind(), BrokenPipe | ConnectionReset) => {
                return Err(error);
            }
            _ => {}
        }
        Ok(process)
    }

    /// Waits for its report on its library. The error says why it ended, or that it was ended
    /// because it sent nothing in time or is no longer needed.
    pub fn first_word(
        &self,
        patience: Duration,
        is_needed: impl Fn() -> bool,
    ) -> Result<Word, NotReady<'_>> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            // Not under the lock: what follows takes another one.
            let word = self.words.lock().recv_timeout(left.min(LOOK));
            match word {
                Ok(word) => return Ok(word),
                Err(RecvTimeoutError::Timeout) if !left.is_zero() && is_needed() => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.kill();
                    self.wait();
                    return Err(NotReady::Late);
                }
                // It closed its socket, or ended: the thread that reads the socket ends it.
                Err(RecvTimeoutError::Disconnected) => return Err(NotReady::Ended(self.wait())),
            }
        }
    }

    /// Its number among the plugin's processes.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Why it is dead; `None` while it is not.
    pub fn death(&self) -> Option<&Death> {
        self.shared.death.get()
    }

    /// Waits for its end, which must have been brought about.
    pub fn wait(&self) -> &Death {
        let mut calls = self.shared.calls.lock();
        loop {
            if let Some(death) = self.shared.death.get() {
                return death;
            }
            calls = self.shared.freed.wait_timeout(calls, Duration::from_millis(50));
        }
    }

    /// Kills it.
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }

    /// Kills it because of a call that is over its deadline, and waits for its end.
    pub fn stop(&self, channel: usize, deadline: Duration) -> &Death {
        let _ = self.shared.stopped.set((channel, deadline));
        self.kill();
        self.wait()
    }

    /// A free channel for a call of this name; as an error, why the process died.
    pub fn take_channel(&self, name: &Arc<str>, until: Instant) -> Result<usize, &Death> {
        let mut calls = self.shared.calls.lock();
        loop {
            if let Some(death) = self.shared.death.get() {
                return Err(death);
            }
            if let Some(at) = calls.names.iter().position(Option::is_none) {
                calls.names[at] = Some(Arc::clone(name));
                return Ok(at);
            }
            // The calls in the channels end by then in any case.
            let left = until.saturating_duration_since(Instant::now());
            let patience = left.max(Duration::from_millis(1));
            calls = self.shared.freed.wait_timeout(calls, patience);
        }
    }

    /// The host's side of a channel that was taken.
    pub fn channel(&self, at: usize) -> Channel {
        Channel::new(&self.shared.channels, at, Side::Host)
    }

    /// The buffers of a channel that was taken.
    pub fn take_buffers(&self, at: usize) -> (Vec<u8>, Vec<u8>) {
        std::mem::take(&mut self.shared.calls.lock().buffers[at])
    }

    /// Returns a channel.
    pub fn give_channel(&self, at: usize, buffers: (Vec<u8>, Vec<u8>)) {
        let mut calls = self.shared.calls.lock();
        calls.names[at] = None;
        calls.buffers[at] = buffers;
        drop(calls);
        self.shared.freed.notify_one();
    }

    /// The name of the call in a channel.
    pub fn name_of(&self, at: usize) -> Arc<str> {
        self.shared.calls.lock().names[at].clone().unwrap_or_else(|| Arc::from("a kernel"))
    }

    /// Sends it an order; does nothing when it is dead. A process that does not read its orders is
    /// ended.
    pub fn tell(&self, order: &Order) {
        if write_message(&mut *self.socket.lock(), order).is_err() {
            self.kill();
        }
    }

    /// Cancels the call in a channel.
    pub fn cancel(&self, channel: usize, call: u64) {
        self.tell(&Order::Cancel { channel: channel as u32, call });
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        let _ = self.socket.lock().shutdown(std::net::Shutdown::Both);
        if let Some(waiter) = self.waiter.take() {
            let _ = waiter.join();
        }
    }
}

/// Logs a worker's lines, at a limited rate.
struct Logger {
    plugin: String,
    rate: Rate,
}

impl Logger {
    fn new(plugin: &str) -> Logger {
        Logger { plugin: plugin.to_owned(), rate: Rate::default() }
    }

    fn log(&mut self, line: impl FnOnce(&str)) {
        let (admitted, left_out) = self.rate.admit(Instant::now());
        self.tell(left_out);
        if admitted {
            line(&self.plugin);
        }
    }

    fn tell(&self, left_out: Option<u64>) {
        if let Some(count) = left_out {
            tracing::warn!(
                plugin = self.plugin,
                "{count} more lines came too fast and are left out"
            );
        }
    }
}

impl Drop for Logger {
    fn drop(&mut self) {
        let left_out = self.rate.flush();
        self.tell(left_out);
    }
}

/// Reads the worker's messages until its socket is closed, then ends it: a worker without a socket
/// is useless.
fn spawn_reader(plugin: &str, socket: UnixStream, handle: OwnedFd, said: SyncSender<Word>) {
    let mut logger = Logger::new(plugin);
    thread::spawn(move || {
        let mut socket = BufReader::new(socket);
        while let Ok(word) = read_message::<Word>(&mut socket) {
            match word {
                Word::Log { level, message } => logger
                    .log(|plugin| tenon_host::entries::log(plugin, LogLevel(level), cut(&message))),
                first => {
                    let _ = said.try_send(first);
                }
            }
        }
        let _ = pidfd_send_signal(&handle, Signal::KILL);
    });
}

/// Logs lines of standard error, and keeps the last ones. The receiver is notified at the end.
fn spawn_listener(plugin: &str, stderr: Option<ChildStderr>, shared: Arc<Shared>) -> Receiver<()> {
    let (done, quiet) = sync_channel(1);
    let mut logger = Logger::new(plugin);
    thread::spawn(move || {
        let Some(stderr) = stderr else { return };
        listen(stderr, |line| {
            logger.log(|plugin| tracing::warn!(plugin, "standard error: {line}"));
            shared.last_words.lock().add(line);
        });
        let _ = done.try_send(());
    });
    quiet
}

/// Waits until the worker has ended, and ends the processes that it started. Its process id is
/// still its own, because its status has not been collected yet.
fn end_group(worker: Pid) {
    let ended = || waitid(WaitId::Pid(worker), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    while let Err(Errno::INTR) = ended() {}
    // A group without processes does not exist: then there was nothing else to end.
    let _ = kill_process_group(worker, Signal::KILL);
}

/// Waits for the end of the process, and notifies all waiting threads.
fn spawn_waiter(mut child: Child, quiet: Receiver<()>, shared: Arc<Shared>) -> JoinHandle<()> {
    thread::spawn(move || {
        end_group(Pid::from_child(&child));
        let status = child.wait().ok();
        let _ = quiet.recv_timeout(LAST_WORDS);
        let mut calls = shared.calls.lock();
        let names = calls.names.iter().enumerate();
        let names = names.filter_map(|(at, name)| Some((at, name.clone()?))).collect();
        let death = Death {
            status,
            crash: CrashRecord::read(&shared.channels),
            last_words: shared.last_words.lock().take(),
            stopped: shared.stopped.get().copied(),
            calls: names,
        };
        calls.buffers = Default::default();
        let _ = shared.death.set(death);
        drop(calls);
        shared.freed.notify_all();
        for at in 0..CHANNELS {
            Channel::new(&shared.channels, at, Side::Host).wake();
        }
    })
}

impl Death {
    /// A description of how it ended.
    pub fn describe(&self) -> String {
        let mut text = match (&self.crash, self.status) {
            (Some(crash), _) => crash.to_string(),
            (None, Some(status)) => match (status.signal(), status.code()) {
                (Some(signal), _) => format!("signal {signal}"),
                (None, Some(code)) => format!("exit with status {code}"),
                (None, None) => "an end that the system does not explain".to_owned(),
            },
            (None, None) => "an end that the system does not explain".to_owned(),
        };
        if !self.last_words.is_empty() {
            text = format!("{text}; it last wrote: {}", self.last_words.join(" / "));
        }
        text
    }

    /// Whether it probably ran out of memory.
    pub fn is_out_of_memory(&self, limit: u64) -> bool {
        let said = self.last_words.iter().any(|line| line.starts_with("memory allocation of"));
        let used = self.crash.is_some_and(|crash| limit > 0 && crash.data_bytes >= limit / 8 * 7);
        said || used
    }

    /// The call that caused the death: the one that was stopped or that crashed, or the only one
    /// there was.
    pub fn culprit(&self) -> Option<usize> {
        let stopped = self.stopped.map(|(at, _)| at);
        let crashed = self.crash.and_then(|crash| crash.channel);
        let only = || match self.calls.as_slice() {
            [(at, _)] => Some(*at),
            _ => None,
        };
        stopped.or(crashed).or_else(only)
    }
}
