//! The probe: this program, started with an environment variable, opens one library before its
//! `main` and ends.
//!
//! Every program with the host linked in can be a probe, whatever its `main` does: an entry of its
//! `.init_array` looks for the variable. The library is standard input, so that its descriptor
//! needs no other channel; standard output leads to the host and is moved out of the library's
//! reach, and standard error leads to the host directly.
//!
//! It reports [`BEGUN`] once it runs, then [`OPENED`] or [`REFUSED`].

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    fs::File,
    io::Write,
    os::fd::{AsRawFd, FromRawFd},
    sync::atomic::{AtomicBool, Ordering},
};

/// Environment variable of a process that is started as a probe.
pub const VARIABLE: &CStr = c"TENON_PROBES_A_LIBRARY";
/// The probe runs, and opens the library next.
pub const BEGUN: u8 = b'B';
/// The library is open.
pub const OPENED: u8 = b'O';
/// The linker refuses the library; the host receives the reason when it opens the library itself.
pub const REFUSED: u8 = b'R';

unsafe extern "C-unwind" {
    /// The linker's function, which exceptions of constructors may leave.
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
}

/// The name of the library on standard input.
const LIBRARY: &CStr = c"/proc/self/fd/0";

static IS_THERE: AtomicBool = AtomicBool::new(false);

/// Whether this program can be started as a probe: it contains the entry itself, instead of a
/// library that it opened.
pub fn is_there() -> bool {
    IS_THERE.load(Ordering::Acquire)
}

#[used]
// SAFETY: the section holds addresses of functions that the C library calls before `main`, with
// arguments that this function ignores.
#[unsafe(link_section = ".init_array")]
static ENTRY: extern "C-unwind" fn() = before_main;

/// Runs before `main`, on the only thread. An exception of the library passes through uncaught, so
/// that C++ reports it as it ends the process.
extern "C-unwind" fn before_main() {
    if !is_in_program() {
        return;
    }
    IS_THERE.store(true, Ordering::Release);
    // SAFETY: the name ends with a zero; no other thread changes the environment.
    let asked = unsafe { !libc::getenv(VARIABLE.as_ptr()).is_null() };
    // SAFETY: the function has no preconditions.
    let privileged = unsafe { libc::getauxval(libc::AT_SECURE) != 0 };
    if asked && !privileged {
        let status = c_int::from(run().is_none());
        // The library's exit handlers do not run.
        // SAFETY: it ends the process.
        unsafe { libc::_exit(status) }
    }
}

/// Whether this code is part of the program itself: any program may open a library with the host
/// linked in.
fn is_in_program() -> bool {
    let mut found = false;
    // SAFETY: the callback receives `found`, a `bool` that outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look_at_first), (&raw mut found).cast()) };
    found
}

/// Called for the program, which is the first object; ends the iteration.
///
/// # Safety
/// - `info` describes a mapped object.
/// - `found` points to a `bool` that is valid for writes.
unsafe extern "C" fn look_at_first(
    info: *mut libc::dl_phdr_info,
    _bytes: usize,
    found: *mut c_void,
) -> c_int {
    let own = before_main as extern "C-unwind" fn() as usize as u64;
    // SAFETY: the linker's record and its table of headers, which are valid during the call.
    let (base, headers) = unsafe {
        let info = &*info;
        (info.dlpi_addr, std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)))
    };
    let has_own = headers.iter().filter(|header| header.p_type == libc::PT_LOAD).any(|header| {
        let begin = base.wrapping_add(header.p_vaddr);
        own.wrapping_sub(begin) < header.p_memsz
    });
    // SAFETY: `dl_iterate_phdr` passes the `bool` of `is_in_program`, which outlives the call.
    unsafe { found.cast::<bool>().write(has_own) };
    1
}

/// Opens the library and reports that; `None` if nothing reads the report.
fn run() -> Option<()> {
    let mut host = settle()?;
    host.write_all(&[BEGUN]).ok()?;
    // SAFETY: running the library's code is the purpose of this process.
    let library = unsafe { dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    let word = if library.is_null() { REFUSED } else { OPENED };
    host.write_all(&[word]).ok()
}

/// Moves standard output out of the library's reach, closes what was inherited, and prevents other
/// traces of a crash; returns the channel to the host.
fn settle() -> Option<File> {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: descriptors of this process, which nothing else uses yet; a name that ends with a
    // zero; a valid limit.
    unsafe {
        libc::unsetenv(VARIABLE.as_ptr());
        // This process ends when the host does.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32);
        let host = libc::fcntl(1, libc::F_DUPFD_CLOEXEC, 3);
        if host < 0 {
            return None;
        }
        let host = File::from_raw_fd(host);
        (libc::dup2(2, 1) >= 0 && host.as_raw_fd() > 2).then_some(host)
    }
}
