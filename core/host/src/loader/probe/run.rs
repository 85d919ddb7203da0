//! The host's side of a probe: starts it, watches it until it ends or its time is over, and
//! interprets the result.

use super::{
    Probing, Verdict,
    child::{BEGUN, OPENED, REFUSED, VARIABLE, is_there},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};
use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Read},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

/// Bytes of a probe's last output that are kept.
const LAST: usize = 600;
/// Bytes read at once, and bytes read at last from a probe that has ended.
const BLOCK: usize = 4096;
const REST: usize = 16 * BLOCK;
/// The running program.
const OWN: &str = "/proc/self/exe";
/// Signals that another process sends: the library is not the cause.
const SENT: [libc::c_int; 4] = [libc::SIGKILL, libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// The result of a probe.
#[derive(Debug)]
pub struct Tried {
    /// `None` where it does not show whether the library opens.
    pub verdict: Option<Verdict>,
    /// Whether the same library always has this result.
    pub lasting: bool,
}

/// The last bytes that a probe wrote to a pipe.
struct Heard<R> {
    pipe: Option<R>,
    bytes: VecDeque<u8>,
}

/// How a probe ended.
struct End {
    /// `None` if its time was over.
    status: Option<ExitStatus>,
    said: Vec<u8>,
    words: Vec<u8>,
}

/// Opens a library in a probe.
///
/// # Errors
/// There is no program for the probe, or it cannot be started.
pub fn open(library: &File, probing: &Probing) -> io::Result<Tried> {
    let program = program(probing)?;
    let name = VARIABLE.to_str().map_err(io::Error::other)?;
    let mut command = Command::new(program);
    command.env(name, "1").process_group(0).stdin(library.try_clone()?);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let watched = watch(&mut child, probing.patience);
    // Its process id is not reused until its status is collected; processes that it started end
    // too.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let status = child.wait()?;
    let (is_over, said, words) = watched?;
    let end = End { status: is_over.then_some(status), said, words };
    understand(&end, probing.patience)
}

/// The running program if it can be a probe, else the program that runs isolated plugins.
fn program(probing: &Probing) -> io::Result<PathBuf> {
    if is_there() && Path::new(OWN).exists() {
        return Ok(OWN.into());
    }
    probing.worker.clone().ok_or_else(|| {
        let message = "the running program has the host in a library: name a program that can try libraries (tenon, \
                       say) by host.isolate_worker";
        io::Error::new(io::ErrorKind::Unsupported, message)
    })
}

/// Watches a probe until it ends or its time is over: returns whether it ended, its report, and its
/// output.
fn watch(child: &mut Child, patience: Duration) -> io::Result<(bool, Vec<u8>, Vec<u8>)> {
    let until = Instant::now() + patience;
    let handle = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let mut said = Heard::new(child.stdout.take())?;
    let mut words = Heard::new(child.stderr.take())?;
    let is_over = loop {
        match wait(&handle, &said, &words, until)? {
            Event::Over => break true,
            Event::Late => break false,
            Event::Heard => {
                said.read()?;
                words.read()?;
            }
        }
    };
    said.read_rest();
    words.read_rest();
    Ok((is_over, said.bytes.into(), words.bytes.into()))
}

enum Event {
    Over,
    Late,
    Heard,
}

/// Waits for the next event.
fn wait<A: AsFd, B: AsFd>(
    handle: &OwnedFd,
    said: &Heard<A>,
    words: &Heard<B>,
    until: Instant,
) -> io::Result<Event> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Ok(Event::Late);
    }
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
    let mut all = vec![PollFd::new(handle, PollFlags::IN)];
    all.extend(said.pipe.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
    all.extend(words.pipe.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
    match poll(&mut all, Some(&left)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    match all[0].revents().is_empty() {
        true => Ok(Event::Heard),
        false => Ok(Event::Over),
    }
}

impl<R: Read + AsFd> Heard<R> {
    fn new(pipe: Option<R>) -> io::Result<Heard<R>> {
        if let Some(pipe) = &pipe {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        Ok(Heard { pipe, bytes: VecDeque::new() })
    }

    /// Reads the available bytes, at most a block; returns their number.
    fn read(&mut self) -> io::Result<usize> {
        let Some(pipe) = &mut self.pipe else { return Ok(0) };
        let mut block = [0; BLOCK];
        let count = match pipe.read(&mut block) {
            Ok(count) => count,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => return Ok(0),
                _ => return Err(error),
            },
        };
        if count == 0 {
            self.pipe = None;
        }
        self.bytes.extend(&block[..count]);
        let surplus = self.bytes.len().saturating_sub(LAST);
        self.bytes.drain(..surplus);
        Ok(count)
    }

    /// Reads the remaining output of an ended process.
    fn read_rest(&mut self) {
        for _ in 0..REST / BLOCK {
            if self.read().unwrap_or(0) == 0 {
                return;
            }
        }
    }
}

/// Interprets how a probe ended.
fn understand(end: &End, patience: Duration) -> io::Result<Tried> {
    let late = || format!("was not back within {patience:?} (host.probe_timeout_ms)");
    let (begun, said) = match end.said.split_first() {
        Some((&BEGUN, said)) => (true, said),
        _ => (false, &[][..]),
    };
    let (how, lasting) = match (said.first(), end.status) {
        (Some(&OPENED), Some(_)) => {
            return Ok(Tried { verdict: Some(Verdict::Opens), lasting: true });
        }
        (Some(&REFUSED), Some(_)) => return Ok(Tried { verdict: None, lasting: false }),
        (_, Some(status)) if begun => how(status),
        (_, Some(status)) => {
            let message = format!("a process that was to try it did not begin: {status}");
            return Err(io::Error::other(message));
        }
        // Before it began, the machine is the cause.
        (_, None) => (late(), begun),
    };
    let words = last_words(&end.words);
    let how = if words.is_empty() { how } else { format!("{how}; it last wrote: {words}") };
    Ok(Tried { verdict: Some(Verdict::Refused(how)), lasting })
}

/// How a process ended, and whether the process itself was the cause.
fn how(status: ExitStatus) -> (String, bool) {
    let name = |signal: i32| match signal {
        libc::SIGILL => " (SIGILL)",
        libc::SIGTRAP => " (SIGTRAP)",
        libc::SIGABRT => " (SIGABRT)",
        libc::SIGBUS => " (SIGBUS)",
        libc::SIGFPE => " (SIGFPE)",
        libc::SIGKILL => " (SIGKILL)",
        libc::SIGSEGV => " (SIGSEGV)",
        libc::SIGTERM => " (SIGTERM)",
        _ => "",
    };
    match (status.signal(), status.code()) {
        (Some(signal), _) => {
            (format!("was ended by signal {signal}{}", name(signal)), !SENT.contains(&signal))
        }
        (None, code) => (format!("exited with status {}", code.unwrap_or_default()), true),
    }
}

/// The last lines of standard error, joined.
fn last_words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.len().saturating_sub(4);
    lines[last..].join(" / ").replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(status: Option<i32>, said: &[u8], words: &str) -> io::Result<Tried> {
        let status = status.map(ExitStatus::from_raw);
        let end = End { status, said: said.to_owned(), words: words.as_bytes().to_owned() };
        understand(&end, Duration::from_secs(3))
    }

    fn refused(status: Option<i32>, said: &[u8], words: &str) -> (String, bool) {
        let tried = end(status, said, words).unwrap();
        let Some(Verdict::Refused(how)) = tried.verdict else { panic!("{tried:?}") };
        (how, tried.lasting)
    }

    #[test]
    fn what_a_probe_says_and_how_it_ends_make_the_verdict() {
        assert_eq!(end(Some(0), b"BO", "").unwrap().verdict, Some(Verdict::Opens));
        assert_eq!(end(Some(0), b"BR", "").unwrap().verdict, None);
        let (how, lasting) =
            refused(Some(6), b"B", "terminate called\n  what():  \x1b[1mbad luck\n\n");
        let words = "it last wrote: terminate called / what():   [1mbad luck";
        assert_eq!(how, format!("was ended by signal 6 (SIGABRT); {words}"));
        assert!(lasting);
        assert_eq!(refused(Some(0), b"B", ""), ("exited with status 0".to_owned(), true));
        assert_eq!(refused(Some(3 << 8), b"B", ""), ("exited with status 3".to_owned(), true));
        let (how, lasting) = refused(None, b"B", "");
        assert_eq!((&*how, lasting), ("was not back within 3s (host.probe_timeout_ms)", true));
        assert!(!refused(None, b"", "").1, "the library was not opened yet");
    }

    #[test]
    fn a_signal_that_somebody_sends_is_no_lasting_verdict() {
        for signal in SENT {
            assert!(!refused(Some(signal), b"B", "").1, "{signal}");
        }
        assert!(refused(Some(libc::SIGSEGV), b"B", "").1);
    }

    #[test]
    fn a_program_that_is_no_probe_says_nothing_of_the_library() {
        for said in [&b""[..], b"usage: ..."] {
            assert!(end(Some(1 << 8), said, "").unwrap_err().to_string().contains("did not begin"));
        }
    }

    #[test]
    fn of_a_flood_the_last_bytes_are_kept() {
        let (reader, writer) = io::pipe().unwrap();
        let mut heard = Heard::new(Some(reader)).unwrap();
        std::io::Write::write_all(&mut &writer, &[b'x'; 10_000]).unwrap();
        std::io::Write::write_all(&mut &writer, b"the end").unwrap();
        heard.read_rest();
        assert_eq!(heard.bytes.len(), LAST);
        assert!(Vec::from(heard.bytes).ends_with(b"xthe end"));
        // The pipe has not been closed by both sides.
        assert!(heard.pipe.is_some());
        drop(writer);
    }
}
