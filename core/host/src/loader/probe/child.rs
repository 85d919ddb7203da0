//! The probe: this program, started with a variable set, opens one library before its `main` and ends.
//!
//! Every program that has the host linked in can be one, whatever its `main` does: an entry of its `.init_array`
//! looks for the variable. The library is standard input, so that its descriptor needs no other way; standard output
//! leads to the host and is taken out of the library's reach, standard error to the host as it is.
//!
//! What it says: [`BEGUN`] once it runs, then [`OPENED`] or [`REFUSED`].

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    fs::File,
    io::Write,
    os::fd::{AsRawFd, FromRawFd},
    sync::atomic::{AtomicBool, Ordering},
};

/// Set in the environment of a process that is to be a probe.
pub const VARIABLE: &CStr = c"TENON_PROBES_A_LIBRARY";
/// It runs, and opens the library next.
pub const BEGUN: u8 = b'B';
/// The library is open.
pub const OPENED: u8 = b'O';
/// The linker refuses the library: the host hears why when it opens it.
pub const REFUSED: u8 = b'R';

unsafe extern "C-unwind" {
    /// The linker's, which constructors that throw leave by what they throw.
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
}

/// The name of the library on standard input.
const LIBRARY: &CStr = c"/proc/self/fd/0";

static IS_THERE: AtomicBool = AtomicBool::new(false);

/// Whether this program can be started as a probe: it has the entry itself, not a library that it opened.
pub fn is_there() -> bool {
    IS_THERE.load(Ordering::Acquire)
}

#[used]
// SAFETY: the section holds addresses of functions that the C library calls before `main`, with arguments that this
// one does not look at.
#[unsafe(link_section = ".init_array")]
static ENTRY: extern "C-unwind" fn() = before_main;

/// Runs before `main`, on the only thread there is. What the library throws passes through and is caught by nobody,
/// so that C++ says what it was as it ends the process.
extern "C-unwind" fn before_main() {
    if !is_in_program() {
        return;
    }
    IS_THERE.store(true, Ordering::Release);
    // SAFETY: the name ends with a zero; no other thread changes the environment.
    let asked = unsafe { !libc::getenv(VARIABLE.as_ptr()).is_null() };
    // SAFETY: it has no preconditions.
    let privileged = unsafe { libc::getauxval(libc::AT_SECURE) != 0 };
    if asked && !privileged {
        let status = c_int::from(run().is_none());
        // Nothing of the library's end is waited for.
        // SAFETY: it ends the process.
        unsafe { libc::_exit(status) }
    }
}

/// Whether this code is of the program itself: a library that has the host linked in may be opened by any program.
fn is_in_program() -> bool {
    let mut found = false;
    // SAFETY: the callback's promise; the place outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look_at_first), (&raw mut found).cast()) };
    found
}

/// Called for the program, which comes first; ends the round.
///
/// # Safety
/// `info` describes something that is mapped, `found` is a `bool`.
unsafe extern "C" fn look_at_first(
    info: *mut libc::dl_phdr_info,
    _bytes: usize,
    found: *mut c_void,
) -> c_int {
    let own = before_main as extern "C-unwind" fn() as usize as u64;
    // SAFETY: the linker's record and its table of so many headers, which are there during the call.
    let (base, headers) = unsafe {
        let info = &*info;
        (info.dlpi_addr, std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)))
    };
    let has_own = headers.iter().filter(|header| header.p_type == libc::PT_LOAD).any(|header| {
        let begin = base.wrapping_add(header.p_vaddr);
        own.wrapping_sub(begin) < header.p_memsz
    });
    // SAFETY: `dl_iterate_phdr` passes on what `is_in_program` gives it: a `bool` that outlives the call.
    unsafe { found.cast::<bool>().write(has_own) };
    1
}

/// Opens the library and says so; `None` when nobody hears it.
fn run() -> Option<()> {
    let mut host = settle()?;
    host.write_all(&[BEGUN]).ok()?;
    // SAFETY: that the library's code runs is what this process is for.
    let library = unsafe { dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    let word = if library.is_null() { REFUSED } else { OPENED };
    host.write_all(&[word]).ok()
}

/// Puts standard output out of the library's reach, lets go of what was inherited, and leaves no other traces of the
/// end that may come; gives the way to the host.
fn settle() -> Option<File> {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: descriptors of this process, which nobody else uses yet; a name that ends with a zero; a limit.
    unsafe {
        libc::unsetenv(VARIABLE.as_ptr());
        // The host's end is this one's too.
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
