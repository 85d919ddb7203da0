//! The report of a process that crashes.
//!
//! [`install`] has the process write one line to a descriptor before it dies of a signal: which signal,
//! which address, and where that is with respect to the buffers of guarded memory. [`FaultRecord::parse`]
//! reads it in the process that waits. The handler allocates nothing, takes no lock and calls nothing but
//! `write`, `sigaction` and `sigaltstack`'s relatives, so that it works wherever the crash was.

use super::clause::Clause;
use std::fmt;
use tenon_runtime::host::memory::guarded::{BlockState, Place};

/// What the line begins with.
const MARK: &str = "tenon-fault";
/// Numbers in a line.
const WORDS: usize = 9;
/// Bytes of a line: the mark, and each number as a space and 16 digits, and the end of the line. Short enough
/// for a pipe to take it whole.
const LINE: usize = MARK.len() + WORDS * 17 + 1;
/// How near to the stack pointer an address is that an overflowing stack touches.
const NEAR_STACK: u64 = 1 << 16;

/// What was being done at the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultAccess {
    /// The machine does not say.
    Unknown,
    /// It was read, or code there was to run.
    Read,
    /// It was written.
    Write,
}

/// A crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultRecord {
    /// Number of the signal.
    pub signal: i32,
    /// The signal's own code: why it was sent.
    pub reason: i32,
    /// The address; 0 also where the machine does not say.
    pub address: u64,
    /// What was being done there.
    pub access: FaultAccess,
    /// The stack pointer; 0 where the machine does not say.
    pub stack: u64,
    /// The guarded buffer in or beside which the address is.
    pub place: Option<Place>,
}

impl FaultRecord {
    fn words(&self) -> [u64; WORDS] {
        let access = match self.access {
            FaultAccess::Unknown => 0,
            FaultAccess::Read => 1,
            FaultAccess::Write => 2,
        };
        let [a, b, c, d] = self.place.map_or([0; 4], Place::to_words);
        let signal = u64::from(self.signal as u32);
        [signal, u64::from(self.reason as u32), self.address, access, self.stack, a, b, c, d]
    }

    /// The line, made without an allocation.
    fn line(&self) -> [u8; LINE] {
        let mut line = [b'\n'; LINE];
        line[..MARK.len()].copy_from_slice(MARK.as_bytes());
        for (word, place) in self.words().iter().zip(line[MARK.len()..].chunks_exact_mut(17)) {
            place[0] = b' ';
            for (at, digit) in place[1..].iter_mut().enumerate() {
                let nibble = (word >> (60 - 4 * at)) & 15;
                *digit = b"0123456789abcdef"[nibble as usize];
            }
        }
        line
    }

    /// Reads a line; `None` for any other.
    pub fn parse(line: &str) -> Option<FaultRecord> {
        let mut words = [0u64; WORDS];
        let mut parts = line.trim_end().strip_prefix(MARK)?.split_ascii_whitespace();
        for word in &mut words {
            *word = u64::from_str_radix(parts.next()?, 16).ok()?;
        }
        let [signal, reason, address, access, stack, a, b, c, d] = words;
        let access = match access {
            1 => FaultAccess::Read,
            2 => FaultAccess::Write,
            _ => FaultAccess::Unknown,
        };
        let place = Place::from_words([a, b, c, d]);
        let (signal, reason) = (signal as u32 as i32, reason as u32 as i32);
        Some(FaultRecord { signal, reason, address, access, stack, place })
    }

    /// Whether a freed buffer was accessed: by the code that kept its address, which may be another than
    /// the kernel that runs.
    pub fn is_late(&self) -> bool {
        self.place.is_some_and(|place| place.state == BlockState::Freed)
    }

    /// The clause that the crash breaks, where the address says so: whatever was being looked at.
    pub fn clause(&self) -> Option<Clause> {
        let place = self.place?;
        let is_input_written = place.is_inside() && self.access != FaultAccess::Read;
        match place.state {
            BlockState::ReadOnly if is_input_written => Some(Clause::Inputs),
            _ => Some(Clause::Bounds),
        }
    }

    fn signal_name(&self) -> &'static str {
        match self.signal {
            4 => "SIGILL: an instruction that the processor does not have",
            7 => "SIGBUS: a memory access that the system cannot serve",
            8 => "SIGFPE: a division by zero, or an overflow of one",
            11 => "SIGSEGV: a memory access that is not allowed",
            _ => "a signal",
        }
    }
}

impl fmt::Display for FaultRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "died of signal {} ({})", self.signal, self.signal_name())?;
        if self.signal != 7 && self.signal != 11 {
            return Ok(());
        }
        f.write_str(match self.access {
            FaultAccess::Unknown => ", which touched ",
            FaultAccess::Read => ", which read ",
            FaultAccess::Write => ", which wrote ",
        })?;
        match self.place {
            Some(place) => write!(f, "{place}"),
            // Linux: SI_KERNEL, where the processor gives no address.
            None if self.reason == 0x80 => f.write_str(
                "an address that the processor does not follow, such as a handle of a device",
            ),
            None if self.address < 4096 => write!(f, "address {}: a null pointer", self.address),
            None if self.stack != 0 && self.address.abs_diff(self.stack) < NEAR_STACK => {
                f.write_str("beyond the stack: a recursion without end, or a large local variable")
            }
            None => write!(f, "address 0x{:x}, in no buffer of the host", self.address),
        }
    }
}

/// Has this process write one line to `descriptor` before it dies of SIGSEGV, SIGBUS, SIGFPE or SIGILL. The
/// descriptor stays open for as long as the process lives. False where the system does not support it.
#[cfg(unix)]
pub fn install(descriptor: i32) -> bool {
    handler::install(descriptor)
}

/// Elsewhere crashes tell nothing of themselves.
#[cfg(not(unix))]
pub fn install(_descriptor: i32) -> bool {
    false
}

#[cfg(unix)]
mod handler {
    use super::{FaultAccess, FaultRecord};
    use std::{
        ffi::c_void,
        mem,
        sync::atomic::{AtomicBool, AtomicI32, Ordering},
    };
    use tenon_runtime::host::memory::guarded::find;

    static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);
    static HANDLING: AtomicBool = AtomicBool::new(false);
    const SIGNALS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

    pub fn install(descriptor: i32) -> bool {
        DESCRIPTOR.store(descriptor, Ordering::Release);
        use_own_stack();
        SIGNALS.iter().all(|&signal| set(signal, crashed as *const () as usize))
    }

    fn set(signal: i32, action: usize) -> bool {
        // SAFETY: a zeroed `sigaction` is one without flags and with an empty mask.
        let mut new: libc::sigaction = unsafe { mem::zeroed() };
        new.sa_sigaction = action;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: a filled action; the handler does only what handlers may.
        unsafe { libc::sigaction(signal, &new, std::ptr::null_mut()) == 0 }
    }

    /// A thread whose stack overflows needs another one to tell of it. Threads of the standard library have
    /// one; this gives one to the calling thread if it has none.
    fn use_own_stack() {
        const SIZE: usize = 64 * 1024;
        // SAFETY: a zeroed `stack_t` may be filled.
        let mut old: libc::stack_t = unsafe { mem::zeroed() };
        // SAFETY: it only reads the present one.
        let asked = unsafe { libc::sigaltstack(std::ptr::null(), &mut old) };
        if asked != 0 || old.ss_flags & libc::SS_DISABLE == 0 {
            return;
        }
        let stack: &'static mut [u8] = Box::leak(vec![0u8; SIZE].into_boxed_slice());
        let new = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: SIZE };
        // SAFETY: memory of this size that lives as long as the process. Where it is refused, overflows of
        // this thread's stack tell nothing.
        let _ = unsafe { libc::sigaltstack(&new, std::ptr::null_mut()) };
    }

    unsafe extern "C" fn crashed(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
        if !HANDLING.swap(true, Ordering::AcqRel) {
            // SAFETY: the system fills both.
            let record = unsafe { record(signal, info, context) };
            let line = record.line();
            // SAFETY: a descriptor of the process and a line of this length. Nothing is left to do when it
            // fails.
            let _ = unsafe {
                libc::write(DESCRIPTOR.load(Ordering::Acquire), line.as_ptr().cast(), line.len())
            };
        }
        // The instruction runs again when this returns, and the process dies as it would have.
        set(signal, libc::SIG_DFL);
    }

    /// # Safety
    /// What the system gives a handler.
    unsafe fn record(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) -> FaultRecord {
        // SAFETY: `crashed` passes on the information and the context that the system fills for a signal's handler.
        let (address, reason) = unsafe { ((*info).si_addr().addr(), (*info).si_code) };
        // SAFETY: as above.
        let (access, stack) = unsafe { machine(context) };
        let place = find(address);
        FaultRecord { signal, reason, address: address as u64, access, stack, place }
    }

    /// What the processor was doing, and its stack pointer.
    ///
    /// # Safety
    /// The context that the system gives a handler.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    unsafe fn machine(context: *mut c_void) -> (FaultAccess, u64) {
        // SAFETY: the system gives a handler a `ucontext_t`, and the caller passes it on.
        let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        // Bit 1 of a page fault's error code: the access was a write.
        let written = registers[libc::REG_ERR as usize] & 2 != 0;
        let access = if written { FaultAccess::Write } else { FaultAccess::Read };
        (access, registers[libc::REG_RSP as usize] as u64)
    }

    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    unsafe fn machine(_context: *mut c_void) -> (FaultAccess, u64) {
        (FaultAccess::Unknown, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_runtime::host::memory::guarded::Role;

    fn fault(access: FaultAccess, place: Option<Place>) -> FaultRecord {
        FaultRecord { signal: 11, reason: 1, address: 0x7f00_1234, access, stack: 0, place }
    }

    #[test]
    fn a_record_passes_as_a_line() {
        let place =
            Place { offset: -4, bytes: 40, state: BlockState::ReadOnly, role: Role::Input(1) };
        for record in [
            fault(FaultAccess::Write, Some(place)),
            FaultRecord { reason: -6, ..fault(FaultAccess::Unknown, None) },
        ] {
            let line = record.line();
            let text = std::str::from_utf8(&line).unwrap();
            assert!(text.ends_with('\n') && text.lines().count() == 1);
            assert_eq!(FaultRecord::parse(text), Some(record));
        }
        assert_eq!(FaultRecord::parse("tenon-fault 0b"), None);
        assert_eq!(FaultRecord::parse("something else"), None);
    }

    #[test]
    fn words_and_clause_follow_from_the_place() {
        let place = |offset, state, role| Some(Place { offset, bytes: 40, state, role });
        let beyond = fault(FaultAccess::Read, place(64, BlockState::Writable, Role::Unnamed));
        assert_eq!(beyond.clause(), Some(Clause::Bounds));
        assert_eq!(
            beyond.to_string(),
            "died of signal 11 (SIGSEGV: a memory access that is not allowed), which read byte 64 of a \
             buffer of 40 bytes, 24 beyond its end"
        );
        let late = fault(FaultAccess::Write, place(0, BlockState::Freed, Role::Output(0)));
        assert!(late.is_late() && late.clause() == Some(Clause::Bounds) && !beyond.is_late());
        let input = fault(FaultAccess::Write, place(0, BlockState::ReadOnly, Role::Input(0)));
        assert_eq!(input.clause(), Some(Clause::Inputs));
        let null = FaultRecord { address: 8, ..fault(FaultAccess::Read, None) };
        assert_eq!(null.clause(), None);
        assert!(null.to_string().ends_with("which read address 8: a null pointer"), "{null}");
        let deep = FaultRecord { stack: 0x7f00_1300, ..fault(FaultAccess::Write, None) };
        assert!(deep.to_string().contains("beyond the stack"), "{deep}");
    }
}
