//! The worker: the program that runs in the process of an isolated plugin.
//!
//! The main thread follows orders from the socket until that is closed: then the process ends at
//! once, whatever else it does. Each channel has a thread, on which its calls run. Kernels may use
//! the threads of the pool.

mod call;
mod capture;
mod fault;
mod host;
mod log;
mod serve;
mod services;
mod states;
mod values;

use super::{
    arena_view::Arenas,
    channel::{CHANNELS, CHANNELS_BYTES},
    crash::{CRASH_BYTES, CrashPage},
    descriptors,
    shared::Mapping,
    wire::{Order, Setting, Start, Word, read_message, write_message},
};
use capture::Captured;
use rustix::process::{
    Resource, Rlimit, Signal, getpgrp, getpid, kill_current_process_group, setrlimit,
};
use serve::Server;
use states::States;
use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufReader},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{ffi::OsStringExt, net::UnixStream},
    },
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use tenon_framework::{knob::KnobStore, sync::Mutex};
use tenon_host::{
    PluginContext,
    loader::{self, Library, Policy, image},
    pool::ThreadPool,
};

/// Runs the worker; the process ends with it.
pub(super) fn run() -> ! {
    let status = match work() {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("a worker of tenon: {error}");
            1
        }
    };
    // The plugin's exit handlers do not run: its threads may never end.
    // SAFETY: it ends the process.
    unsafe { libc::_exit(status) }
}

/// What all channels share.
struct Shared {
    captured: Captured,
    library: &'static Library,
    arenas: Arenas,
    pool: Arc<ThreadPool>,
    states: States,
    /// How long a channel's thread polls for the next message before it sleeps.
    look: Duration,
    /// The plugin's own knobs, which parse settings.
    knobs: KnobStore,
}

impl Shared {
    /// The plugin's context with these settings.
    fn context(&self, settings: &[Setting]) -> Arc<PluginContext> {
        // The host has checked the settings.
        let knobs = self.knobs.snapshot([], &[], settings).unwrap_or_default();
        PluginContext::new(self.library.record.name(), Arc::new(knobs))
    }
}

fn work() -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let descriptors = descriptors::receive(&socket)?;
    let mut orders = BufReader::new(socket.try_clone()?);
    let Order::Start(start) = read_message::<Order>(&mut orders)? else {
        return Err(io::Error::other("the host's first order must be to start, found another one"));
    };
    settle()?;
    let words = Arc::new(Mutex::new(socket));
    log::install(&words);
    let (shared, channels) = match open(start, descriptors)? {
        Ok(opened) => opened,
        Err(word) => return write_message(&mut *words.lock(), &word),
    };
    let shared = Arc::new(shared);
    let servers: Vec<Server> =
        (0..CHANNELS).map(|at| Server::start(&shared, &channels, at)).collect();
    write_message(&mut *words.lock(), &Word::Ready(shared.captured.definitions.clone()))?;
    loop {
        match read_message::<Order>(&mut orders) {
            Ok(Order::Destroy { kernel }) => shared.states.remove(kernel),
            Ok(Order::Cancel { channel, call }) => {
                if let Some(server) = servers.get(channel as usize) {
                    server.cancel(call);
                }
            }
            Ok(Order::Start(_)) => return Err(io::Error::other("a second order to start")),
            // The host is gone, or does not need this process any more.
            Err(_) => {
                end_group();
                return Ok(());
            }
        }
    }
}

/// Ends this process and all processes that the plugin started, since a host that is gone does not.
fn end_group() {
    // A plugin may have left the group for another one.
    if getpgrp() == getpid() {
        let _ = kill_current_process_group(Signal::KILL);
    }
}

/// Removes what a plugin should not find: the socket on standard input, the variable in the
/// environment.
fn settle() -> io::Result<()> {
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    // SAFETY: no other thread runs yet.
    unsafe { std::env::remove_var(super::WORKER_VARIABLE) };
    Ok(())
}

type Opened = (Shared, Arc<Mapping>);

/// Opens the library; the error is for the host.
fn open(
    start: Start,
    [library, host, own, channels]: [OwnedFd; descriptors::COUNT],
) -> io::Result<Result<Opened, Word>> {
    let channels = Arc::new(Mapping::new(channels.as_fd(), CHANNELS_BYTES + CRASH_BYTES, true)?);
    let arenas = Arenas::new(&host, &own, start.arenas)?;
    if let Some(page) = CrashPage::of(&channels) {
        // The page lives as long as the process: it is never unmapped.
        std::mem::forget(Arc::clone(&channels));
        fault::install(page);
    }
    tenon_host::entries::install();
    tenon_host::entries::give_plugins(&host::WORKER_HOST);
    let pool = Arc::new(ThreadPool::new(start.threads.max(1) as usize));
    limit_memory(start.memory_limit)?;
    let refused = |error: &tenon_host::LoadError| Word::Refused {
        step: error.step().name().to_owned(),
        code: error.code().0,
        message: error.to_string(),
    };
    let file = File::from(library);
    let path = PathBuf::from(OsString::from_vec(start.path));
    let policy = Policy { allow_panic_abort: start.allow_panic_abort, ..Policy::default() };
    let opened = image::read(&file, &path)
        .and_then(|image| loader::open_sealed(file, &path, start.digest, image, &policy))
        .and_then(|library| Ok((library, capture::capture(library)?)));
    let (library, captured) = match opened {
        Ok(opened) => opened,
        Err(error) => return Ok(Err(refused(&error))),
    };
    let (knobs, look) = (captured.knobs(), Duration::from_micros(start.look_us));
    let states = States::default();
    Ok(Ok((Shared { captured, library, arenas, pool, states, knobs, look }, channels)))
}

/// Makes the system refuse memory beyond the limit.
fn limit_memory(bytes: u64) -> io::Result<()> {
    if bytes > 0 {
        setrlimit(Resource::Data, Rlimit { current: Some(bytes), maximum: Some(bytes) })?;
    }
    Ok(())
}
