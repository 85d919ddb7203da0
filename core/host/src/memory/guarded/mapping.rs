//! Address space of a guarded buffer: accessible pages between inaccessible ones.

use std::{ffi::c_void, ptr::NonNull};

/// Whether the bytes of a mapping are accessible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    ReadWrite,
}

/// Address space of a block: `[begin, begin + len)`, of which `[first, first + usable)` is usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mapping {
    pub begin: usize,
    pub len: usize,
    pub first: usize,
    pub usable: usize,
}

impl Mapping {
    /// Maps `bytes` usable bytes at a multiple of `align`, with at least one inaccessible page at
    /// both ends. `None` when the system has no more mappings or memory, or when the sizes
    /// overflow.
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

    /// Changes the access to the usable bytes; false when the system has no more mappings.
    pub fn set(&self, access: Access) -> bool {
        protect(self.first, self.usable, access)
    }

    /// Makes the usable bytes inaccessible and releases their memory; the addresses stay reserved.
    pub fn retire(&self) -> bool {
        retire(self.first, self.usable)
    }

    /// Releases the addresses.
    pub fn free(&self) {
        release(self.begin, self.len);
    }

    /// The address after the last usable byte.
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
    // SAFETY: new addresses of the system's choice, which are not accessible yet.
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
    // SAFETY: whole pages of a mapping of this module; code that loses access must not use them.
    unsafe { libc::mprotect(first, len, rights) == 0 }
}

#[cfg(unix)]
fn retire(first: usize, len: usize) -> bool {
    let first = std::ptr::with_exposed_provenance_mut(first);
    let flags = UNUSED | libc::MAP_FIXED;
    // SAFETY: whole pages of a mapping of this module, of a block that nothing uses any more.
    unsafe { libc::mmap(first, len, libc::PROT_NONE, flags, -1, 0) != libc::MAP_FAILED }
}

#[cfg(unix)]
fn release(begin: usize, len: usize) {
    // SAFETY: a whole mapping of this module, of a block that nothing uses any more. It fails only
    // if there are too many mappings; then the addresses stay reserved.
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
