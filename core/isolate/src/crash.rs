//! What a worker records as it crashes, in a page that is shared with the host.
//!
//! The signal handler runs on the thread that crashed: it stores the signal, the address, the
//! channel that the thread serves and the memory of the process, and then lets the signal proceed.
//! It allocates nothing and takes no lock.

use super::{channel::CHANNELS_BYTES, shared::Mapping};
use std::{
    fmt,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

/// Bytes of the page, after the channels.
pub(super) const CRASH_BYTES: usize = 4096;

/// Contents of the page. All zero: no crash.
#[repr(C)]
pub(super) struct CrashPage {
    /// Set last.
    pub signal: AtomicU32,
    /// Number of the channel, from 1; 0 for a thread that serves no channel.
    pub channel: AtomicU32,
    pub address: AtomicU64,
    /// Bytes of data memory of the process.
    pub data_bytes: AtomicU64,
}

impl CrashPage {
    /// The page in a mapping of the channels.
    pub fn of(mapping: &Mapping) -> Option<&CrashPage> {
        let at = mapping.at(CHANNELS_BYTES as u64, CRASH_BYTES as u64)?;
        // SAFETY: within the mapping, aligned to a page, atomic throughout; it borrows the mapping.
        Some(unsafe { at.cast::<CrashPage>().as_ref() })
    }
}

/// A recorded crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CrashRecord {
    /// Number of the signal.
    pub signal: u32,
    /// The address; 0 also where the machine does not report it.
    pub address: u64,
    /// The channel that the thread served.
    pub channel: Option<usize>,
    /// Bytes of data memory of the process; 0 when unknown.
    pub data_bytes: u64,
}

impl CrashRecord {
    /// The crash that a worker recorded, if any.
    pub fn read(mapping: &Mapping) -> Option<CrashRecord> {
        let page = CrashPage::of(mapping)?;
        let signal = page.signal.load(Ordering::Acquire);
        let channel = page.channel.load(Ordering::Relaxed) as usize;
        (signal != 0).then(|| CrashRecord {
            signal,
            address: page.address.load(Ordering::Relaxed),
            channel: channel.checked_sub(1).filter(|&at| at < super::channel::CHANNELS),
            data_bytes: page.data_bytes.load(Ordering::Relaxed),
        })
    }

    fn words(&self) -> &'static str {
        match self.signal as i32 {
            libc::SIGILL => "SIGILL, an instruction that the processor does not have",
            libc::SIGABRT => "SIGABRT, an abort",
            libc::SIGBUS => "SIGBUS, a memory access that the system cannot serve",
            libc::SIGFPE => "SIGFPE, a division by zero or an overflow of one",
            libc::SIGSEGV => "SIGSEGV, a memory access that is not allowed",
            libc::SIGSYS => "SIGSYS, a call of the system that it does not have",
            libc::SIGTRAP => "SIGTRAP, a trap",
            _ => "a signal",
        }
    }
}

impl fmt::Display for CrashRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "signal {} ({})", self.signal, self.words())?;
        if matches!(self.signal as i32, libc::SIGSEGV | libc::SIGBUS) {
            write!(f, " at address {:#x}", self.address)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::SharedFile;

    #[test]
    fn a_crash_is_read_where_it_was_written_and_nowhere_else() {
        let file = SharedFile::new("tenon-test", CHANNELS_BYTES + CRASH_BYTES).unwrap();
        let (worker, host) = (file.map().unwrap(), file.map().unwrap());
        assert_eq!(CrashRecord::read(&host), None);
        let page = CrashPage::of(&worker).unwrap();
        page.channel.store(3, Ordering::Relaxed);
        page.address.store(8, Ordering::Relaxed);
        page.signal.store(11, Ordering::Release);
        let record = CrashRecord::read(&host).unwrap();
        assert_eq!((record.channel, record.address), (Some(2), 8));
        let text = "signal 11 (SIGSEGV, a memory access that is not allowed) at address 0x8";
        assert_eq!(record.to_string(), text);
        page.channel.store(u32::MAX, Ordering::Relaxed);
        assert_eq!(CrashRecord::read(&host).unwrap().channel, None);
    }
}
