//! The handler of signals that end a worker: it records the crash and lets the signal proceed.

use crate::crash::CrashPage;
use std::{
    cell::Cell,
    ffi::c_void,
    mem, ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

static PAGE: AtomicPtr<CrashPage> = AtomicPtr::new(ptr::null_mut());

const SIGNALS: [i32; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGABRT,
    libc::SIGTRAP,
    libc::SIGSYS,
];

thread_local! {
    /// Number of the channel whose calls this thread runs, from 1.
    static CHANNEL: Cell<u32> = const { Cell::new(0) };
}

/// Sets the channel whose calls this thread runs.
pub(super) fn set_channel(at: usize) {
    CHANNEL.set(at as u32 + 1);
}

/// Makes crashes of this process write to a page, which lives as long as the process.
pub(super) fn install(page: &CrashPage) {
    PAGE.store(ptr::from_ref(page).cast_mut(), Ordering::Release);
    for signal in SIGNALS {
        set(signal, crashed as *const () as usize);
    }
}

fn set(signal: i32, action: usize) {
    // SAFETY: a zeroed `sigaction` is one without flags and with an empty mask.
    let mut new: libc::sigaction = unsafe { mem::zeroed() };
    new.sa_sigaction = action;
    new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: a filled action; the handler does only what handlers may. If it is refused, a crash
    // reports less.
    let _ = unsafe { libc::sigaction(signal, &new, ptr::null_mut()) };
}

/// Records the crash, and restores the default action of the signal.
///
/// # Safety
/// - The system calls it as the handler of `signal`, with a filled `info`.
unsafe extern "C" fn crashed(signal: i32, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: null, or a page that lives as long as the process.
    if let Some(page) = unsafe { PAGE.load(Ordering::Acquire).as_ref() }
        && page.signal.load(Ordering::Relaxed) == 0
    {
        page.channel.store(CHANNEL.try_with(Cell::get).unwrap_or(0), Ordering::Relaxed);
        // SAFETY: the system fills it.
        let address = unsafe { (*info).si_addr() }.addr() as u64;
        let is_access = matches!(signal, libc::SIGSEGV | libc::SIGBUS);
        page.address.store(if is_access { address } else { 0 }, Ordering::Relaxed);
        page.data_bytes.store(data_bytes(), Ordering::Relaxed);
        page.signal.store(signal as u32, Ordering::Release);
    }
    // The faulting instruction runs again when this returns, and the process dies as it would have;
    // the thread that aborts raises an abort again.
    set(signal, libc::SIG_DFL);
    if signal == libc::SIGABRT || signal == libc::SIGTRAP || signal == libc::SIGSYS {
        // SAFETY: the signal is blocked until the handler returns, and then ends the process.
        let _ = unsafe { libc::raise(signal) };
    }
}

/// Bytes of data memory of this process: the sixth number of `statm`, in pages. 0 where it cannot
/// be read.
fn data_bytes() -> u64 {
    let mut text = [0u8; 128];
    // SAFETY: calls that a handler may make, with a name and a buffer that are valid during them.
    let read = unsafe {
        let file = libc::open(c"/proc/self/statm".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return 0;
        }
        let read = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        read
    };
    let text = &text[..usize::try_from(read).unwrap_or(0)];
    let number = |digits: &[u8]| {
        let digit = |&byte: &u8| u64::from(byte.wrapping_sub(b'0'));
        digits.iter().fold(0u64, |sum, byte| sum.wrapping_mul(10).wrapping_add(digit(byte)))
    };
    let pages = text.split(|&byte| byte == b' ').nth(5).map_or(0, number);
    // SAFETY: it reads a value of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.saturating_mul(u64::try_from(page).unwrap_or(4096))
}
