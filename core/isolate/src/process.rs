//! The process of an isolated plugin, as the host has it.
//!
//! States: *starting* (its library is being opened) → *up* (calls run) → *dead*, for ever: the plugin starts another
//! one. Who ends it: itself (a crash), a call that is over its deadline ([`Process::stop`]), or the host, which kills
//! it when nobody needs it any more. Should the host die, whichever way, the worker finds its socket closed and ends.
//! The worker leads a process group, which ends with it: what the plugin started goes too.
//!
//! Three threads wait beside it: for its end, for its log, for what it writes to standard error. None of them holds
//! the process itself, so that dropping it ends them.

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

/// Under the plugin's state, and around nothing.
const CALLS: Rank = Rank(74);
/// How long the last words on standard error are waited for.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How often the thread that waits for a worker's first word looks whether that is still needed.
const LOOK: Duration = Duration::from_millis(50);
/// How long a worker may leave what it is told unread.
const LISTENING: Duration = Duration::from_secs(5);

/// What a worker is started with.
pub(super) struct Launch<'a> {
    pub command: Command,
    /// Environment variables that it is given beside the usual ones.
    pub environment: &'a [String],
    pub plugin: &'a str,
    pub generation: u64,
    pub order: Order,
    /// Descriptors that the first order comes with, after which the channels follow.
    pub descriptors: Vec<OwnedFd>,
}

/// Why a process is dead.
#[derive(Debug, Clone)]
pub(super) struct Death {
    /// How the system says it ended.
    pub status: Option<ExitStatus>,
    /// What it wrote down as it crashed.
    pub crash: Option<CrashRecord>,
    /// The last lines on standard error.
    pub last_words: Vec<String>,
    /// The call that it was stopped for, and the deadline that this was over.
    pub stopped: Option<(usize, Duration)>,
    /// The calls that were in it.
    pub calls: Vec<(usize, Arc<str>)>,
}

/// Why a process never said that it is ready.
pub(super) enum NotReady<'p> {
    /// It ended.
    Ended(&'p Death),
    /// It was ended, for it said nothing.
    Late,
}

/// What the threads that wait share with the process.
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
    /// What it said first.
    words: Mutex<Receiver<Word>>,
}

impl Process {
    /// Starts a worker. What it says first comes by [`Process::first_word`].
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
        let told = super::descriptors::send(&socket, &descriptors)
            .and_then(|()| write_message(&mut *socket, &order));
        drop(socket);
        // One that has ended already takes nothing: how it ended is what its first word is waited for.
        match told {
            Err(error) if !matches!(error.kind(), BrokenPipe | ConnectionReset) => {
                return Err(error);
            }
            _ => {}
        }
        Ok(process)
    }

    /// What it says of its library; why it ended, or was ended because it said nothing for so long, or because
    /// nobody needs it any more.
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
                // It has closed its socket, or ended: whoever read that ends it.
                Err(RecvTimeoutError::Disconnected) => return Err(NotReady::Ended(self.wait())),
            }
        }
    }

    /// Its number among those of the plugin.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Its number in the system.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Why it is dead; `None` while it is not.
    pub fn death(&self) -> Option<&Death> {
        self.shared.death.get()
    }

    /// Waits for its end, which somebody has brought about.
    pub fn wait(&self) -> &Death {
        let mut calls = self.shared.calls.lock();
        loop {
            if let Some(death) = self.shared.death.get() {
                return death;
            }
            calls = self.shared.freed.wait_timeout(calls, Duration::from_millis(50));
        }
    }

    /// Ends it.
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }

    /// Ends it for a call that is over its deadline, and waits for that.
    pub fn stop(&self, channel: usize, deadline: Duration) -> &Death {
        let _ = self.shared.stopped.set((channel, deadline));
        self.kill();
        self.wait()
    }

    /// A free channel, for a call of this name; what it died of when there will be none.
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
            // Those that are in it end by then, one way or the other.
            let left = until.saturating_duration_since(Instant::now());
            let patience = left.max(Duration::from_millis(1));
            calls = self.shared.freed.wait_timeout(calls, patience);
        }
    }

    /// The host's end of a channel that was taken.
    pub fn channel(&self, at: usize) -> Channel {
        Channel::new(&self.shared.channels, at, Side::Host)
    }

    /// The buffers of a channel that was taken.
    pub fn take_buffers(&self, at: usize) -> (Vec<u8>, Vec<u8>) {
        std::mem::take(&mut self.shared.calls.lock().buffers[at])
    }

    /// Gives a channel back.
    pub fn give_channel(&self, at: usize, buffers: (Vec<u8>, Vec<u8>)) {
        let mut calls = self.shared.calls.lock();
        calls.names[at] = None;
        calls.buffers[at] = buffers;
        drop(calls);
        self.shared.freed.notify_one();
    }

    /// The call in a channel.
    pub fn name_of(&self, at: usize) -> Arc<str> {
        self.shared.calls.lock().names[at].clone().unwrap_or_else(|| Arc::from("a kernel"))
    }

    /// Tells it something; nobody is told when it is dead. One that does not listen is ended.
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

/// Logs a worker's lines, as many as there may be.
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

/// Reads what the worker says until it says no more, then ends it: a worker without a socket is of no use.
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

/// Logs what comes on standard error, and keeps the last lines. The receiver is told when there is no more.
fn spawn_listener(plugin: &str, stderr: Option<ChildStderr>, shared: Arc<Shared>) -> Receiver<()> {
    let (done, quiet) = sync_channel(1);
    let mut logger = Logger::new(plugin);
    thread::spawn(move || {
        let Some(stderr) = stderr else { return };
        listen(stderr, |line| {
            logger.log(|plugin| tracing::warn!(plugin, "standard error: {line}"));
            shared.last_words.lock().hear(line);
        });
        let _ = done.try_send(());
    });
    quiet
}

/// Waits until the worker has ended, and ends what it started. Its number is still its own: nobody has asked for its
/// status yet.
fn end_group(worker: Pid) {
    let ended = || waitid(WaitId::Pid(worker), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    while let Err(Errno::INTR) = ended() {}
    // A group without a process is none: there was nothing else.
    let _ = kill_process_group(worker, Signal::KILL);
}

/// Waits for the end of the process, and tells everyone.
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
    /// How it ended, in words.
    pub fn describe(&self) -> String {
        let mut text = match (&self.crash, self.status) {
            (Some(crash), _) => crash.to_string(),
            (None, Some(status)) => match (status.signal(), status.code()) {
                (Some(signal), _) => format!("signal {signal}"),
                (None, Some(code)) => format!("exit with status {code}"),
                (None, None) => "an end that the system does not explain".to_owned(),
            },
            (None, None) => "an end that the system does not tell of".to_owned(),
        };
        if !self.last_words.is_empty() {
            text = format!("{text}; it last wrote: {}", self.last_words.join(" / "));
        }
        text
    }

    /// Whether it ran out of memory, as far as can be told.
    pub fn is_out_of_memory(&self, limit: u64) -> bool {
        let said = self.last_words.iter().any(|line| line.starts_with("memory allocation of"));
        let used = self.crash.is_some_and(|crash| limit > 0 && crash.data_bytes >= limit / 8 * 7);
        said || used
    }

    /// The call that is to blame: the one that was stopped or that crashed, or the only one there was.
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
