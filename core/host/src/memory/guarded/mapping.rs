//! Address space of a guarded buffer: pages that may be used between pages that may not.

use std::{ffi::c_void, ptr::NonNull};

/// Whether the bytes of a mapping may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    ReadWrite,
}

/// Address space of a block: `[begin, begin + len)`, of which `[first, first + usable)` is for use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mapping {
    pub begin: usize,
    pub len: usize,
    pub first: usize,
    pub usable: usize,
}

impl Mapping {
    /// Bytes that may be used, at a multiple of `align`, with at least one inaccessible page at both ends.
    /// `None` when the system has no more mappings or no more memory, or when the sizes overflow.
    pub fn new(bytes: usize, align: usize) -> Option<Mapping> {
        let page = page_size();
        let unit = align.max(page);
        let usable = bytes.max(1).checked_next_multiple_of(unit)?;
        let len = usable.checked_add(page + unit)?;
        let begin = reserve(len)?;
        let first = (begin + page).next_multiple_of(unit);
        let mapping = Mapping { begin, len, first, usable };
        if mapping.set(Access::ReadWrite) {
            return Some(mapping);
        }
        mapping.free();
        None
    }

    /// Changes what may be done with the usable bytes; false when the system has no more mappings.
    pub fn set(&self, access: Access) -> bool {
        protect(self.first, self.usable, access)
    }

    /// Makes the usable bytes inaccessible and gives their memory back; the addresses stay taken.
    pub fn retire(&self) -> bool {
        retire(self.first, self.usable)
    }

    /// Gives the addresses back.
    pub fn free(&self) {
        release(self.begin, self.len);
    }

    /// One after the last usable byte.
    pub fn end(&self) -> usize {
        self.first + self.usable
    }
}

/// A pointer to an address of a mapping.
pub(super) fn pointer(address: usize) -> Option<NonNull<c_void>> {
    NonNull::new(std::ptr::with_exposed_provenance_mut(address))
}

#[cfg(unix)]
fn page_size() -> usize {
    // SAFETY: it reads a constant of the system.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).ok().filter(|size| size.is_power_of_two()).unwrap_or(4096)
}

#[cfg(unix)]
const UNUSED: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

#[cfg(unix)]
fn reserve(len: usize) -> Option<usize> {
    // SAFETY: fresh addresses of the system's choice, which may not be used yet.
    let begin = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_NONE, UNUSED, -1, 0) };
    (begin != libc::MAP_FAILED).then(|| begin.expose_provenance())
}

#[cfg(unix)]
fn protect(first: usize, len: usize, access: Access) -> bool {
    let rights = match access {
        Access::Read => libc::PROT_READ,
        Access::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
    };
    let first = std::ptr::with_exposed_provenance_mut(first);
    // SAFETY: whole pages of a mapping of this module; who loses a right has no business there.
    unsafe { libc::mprotect(first, len, rights) == 0 }
}

#[cfg(unix)]
fn retire(first: usize, len: usize) -> bool {
    let first = std::ptr::with_exposed_provenance_mut(first);
    let flags = UNUSED | libc::MAP_FIXED;
    // SAFETY: whole pages of a mapping of this module, of a block that nobody uses any more.
    unsafe { libc::mmap(first, len, libc::PROT_NONE, flags, -1, 0) != libc::MAP_FAILED }
}

#[cfg(unix)]
fn release(begin: usize, len: usize) {
    // SAFETY: a whole mapping of this module, of a block that nobody uses any more. It fails only where
    // there are too many mappings; then the addresses stay taken.
    let _ = unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(begin), len) };
}

#[cfg(not(unix))]
fn page_size() -> usize {
    4096
}

#[cfg(not(unix))]
fn reserve(_len: usize) -> Option<usize> {
    None
}

#[cfg(not(unix))]
fn protect(_first: usize, _len: usize, _access: Access) -> bool {
    false
}

#[cfg(not(unix))]
fn retire(_first: usize, _len: usize) -> bool {
    false
}

#[cfg(not(unix))]
fn release(_begin: usize, _len: usize) {}
