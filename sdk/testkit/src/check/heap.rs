//! The C library's heap: what a plugin allocates by itself, in whatever language it is written.

use std::env;

/// What is set in the environment of a process whose heap is to be checked at every block that is given back: glibc's
/// own checks, which end the process. It does nothing without such checks, or if another library is preloaded already.
pub(super) fn checks() -> Vec<(&'static str, &'static str)> {
    const PRELOADED: &str = "LD_PRELOAD";
    let is_there = cfg!(all(target_os = "linux", target_env = "gnu"));
    if !is_there || env::var_os(PRELOADED).is_some() {
        return Vec::new();
    }
    let checks = [("GLIBC_TUNABLES", "glibc.malloc.check=3"), ("MALLOC_CHECK_", "3")];
    [(PRELOADED, "libc_malloc_debug.so.0")].into_iter().chain(checks).collect()
}

/// Bytes of the heap that are in use; `None` where the C library does not say.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn bytes_in_use() -> Option<u64> {
    // SAFETY: it reads figures of the allocator.
    let figures = unsafe { libc::mallinfo2() };
    Some(figures.uordblks as u64 + figures.hblkhd as u64)
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn bytes_in_use() -> Option<u64> {
    None
}

/// Has fresh bytes of the heap hold the complement of `byte` from now on; 0 ends it. Blocks that a thread
/// takes from its own cache are not reached, unless the process was started with
/// `GLIBC_TUNABLES=glibc.malloc.tcache_count=0`.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn perturb(byte: u8) {
    // SAFETY: it sets a figure of the allocator, which any value may be.
    unsafe { libc::mallopt(libc::M_PERTURB, i32::from(byte)) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn perturb(_byte: u8) {}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_counted() {
        // Larger than what other tests of this process give back meanwhile.
        let before = bytes_in_use().unwrap();
        let held = vec![1u8; 256 << 20];
        let with = bytes_in_use().unwrap();
        assert!(with >= before + (192 << 20), "{before} -> {with}");
        drop(held);
        assert!(bytes_in_use().unwrap() < with);
    }
}
