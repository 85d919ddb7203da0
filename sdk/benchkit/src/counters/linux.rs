//! Perf events of Linux: `perf_event_open(2)`.

use super::CounterError;
use crate::{cold::Eviction, record::Counts, sampler::Subject};
use std::{
    fs::{self, File},
    io::{self, Read},
    os::fd::FromRawFd,
    time::{Duration, Instant},
};

/// Calls are counted for about so long.
const LONG: Duration = Duration::from_millis(5);
/// Calls at most where caches are emptied before each.
const COLD_CALLS: u64 = 8;

/// The head of `struct perf_event_attr`, version 5 (112 bytes): a kernel of any later version takes it.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    rest: [u64; 8],
}

/// Bits of the flags: nothing of the kernel and the hypervisor is counted.
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
/// With the value come the times for which the event was wanted and was counted.
const TIMES: u64 = 1 | 2;

const HARDWARE: u32 = 0;
const CACHE: u32 = 3;
/// Kind and number of each event: cycles, instructions, read misses of the last cache, read misses of the TLB.
const EVENTS: [(u32, u64); 4] =
    [(HARDWARE, 0), (HARDWARE, 1), (CACHE, 2 | 1 << 16), (CACHE, 3 | 1 << 16)];

/// An event of a thread.
struct Event(File);

impl Event {
    fn open((kind, config): (u32, u64), thread: i32) -> io::Result<Event> {
        let attributes = Attributes {
            kind,
            size: size_of::<Attributes>() as u32,
            config,
            read_format: TIMES,
            flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            ..Attributes::default()
        };
        let thread = libc::c_long::from(thread);
        let (any_cpu, no_group, close_on_exec): (libc::c_long, libc::c_long, libc::c_long) =
            (-1, -1, 8);
        // SAFETY: the call reads the attributes, as many bytes as they say, and nothing else of this process.
        let found = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                thread,
                any_cpu,
                no_group,
                close_on_exec,
            )
        };
        let descriptor = i32::try_from(found).map_err(|_| io::ErrorKind::InvalidData)?;
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the system has just given it, and nobody else has it.
        Ok(Event(unsafe { File::from_raw_fd(descriptor) }))
    }

    /// What was counted so far; scaled where events had to share a counter.
    fn value(&mut self) -> io::Result<f64> {
        let mut bytes = [0; 24];
        self.0.read_exact(&mut bytes)?;
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[8 * at..8 * at + 8]);
            u64::from_ne_bytes(word) as f64
        };
        let (value, wanted, counted) = (word(0), word(1), word(2));
        Ok(if counted > 0.0 { value * wanted / counted } else { 0.0 })
    }
}

/// The threads of this process.
fn threads() -> Vec<i32> {
    let all = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// One event in every thread; `None` where the machine has it not.
fn everywhere(event: (u32, u64)) -> Result<Option<Vec<Event>>, CounterError> {
    let mut all = Vec::new();
    for thread in threads() {
        match Event::open(event, thread) {
            Ok(event) => all.push(event),
            Err(error) => match error.raw_os_error() {
                Some(libc::EACCES | libc::EPERM) => return Err(forbidden()),
                Some(libc::ENOSYS) => return Err(CounterError::System),
                // A thread that ended meanwhile.
                Some(libc::ESRCH) => {}
                Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL) => {
                    return Ok(None);
                }
                _ => return Err(CounterError::Call(format!("perf_event_open: {error}"))),
            },
        }
    }
    Ok(Some(all))
}

fn forbidden() -> CounterError {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let level = level.map_or_else(|_| "not told".to_owned(), |text| text.trim().to_owned());
    CounterError::Forbidden { level }
}

/// See [`super::count`].
pub fn count(subject: &mut dyn Subject, cold: bool) -> Result<Counts, CounterError> {
    let mut events = Vec::new();
    for event in EVENTS {
        events.push(everywhere(event)?);
    }
    if events.iter().all(|event| event.is_none()) {
        return Err(CounterError::Absent);
    }
    let failed = |message: String| CounterError::Call(message);
    let sum = |events: &mut Vec<Option<Vec<Event>>>| -> Vec<Option<f64>> {
        let of = |event: &mut Event| event.value().unwrap_or(0.0);
        let each = |event: &mut Option<Vec<Event>>| {
            event.as_mut().map(|threads| threads.iter_mut().map(of).sum::<f64>())
        };
        events.iter_mut().map(each).collect()
    };
    let mut totals = vec![0.0; EVENTS.len()];
    let mut eviction = cold.then(|| Eviction::new(1));
    let (mut calls, mut batch) = (0, 1);
    let began = Instant::now();
    loop {
        if let Some(eviction) = &mut eviction {
            eviction.run();
        }
        let before = sum(&mut events);
        subject.run(batch).map_err(failed)?;
        let after = sum(&mut events);
        for ((total, before), after) in totals.iter_mut().zip(&before).zip(&after) {
            *total += after.unwrap_or(0.0) - before.unwrap_or(0.0);
        }
        calls += batch;
        let enough = if cold { calls >= COLD_CALLS } else { began.elapsed() >= LONG };
        if enough || calls >= 1 << 30 {
            break;
        }
        // The look itself costs some microseconds: it is to be small beside the calls.
        batch = if cold { 1 } else { calls };
    }
    let each = |at: usize| events[at].as_ref().map(|_| totals[at].max(0.0) / calls as f64);
    let (cycles, instructions) = (each(0), each(1));
    Ok(Counts { calls, cycles, instructions, cache_misses: each(2), tlb_misses: each(3) })
}
