//! Immutable copies of libraries.

use crate::digest::digest_copy;
use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create},
    io::Errno,
};
use std::{
    fs::File,
    io::{self, Seek, SeekFrom},
    os::fd::{AsFd, OwnedFd},
    thread::sleep,
    time::Duration,
};

/// Number of pauses between attempts to seal; each is twice the previous one, 1.27 s in total.
const PAUSES: u32 = 7;
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// An immutable copy of a library, and the digest of the library. `prepare` may change the copy
/// before it is sealed.
///
/// # Errors
/// The file cannot be read, memory is missing for the copy, or something keeps using the copy.
pub fn sealed(
    mut file: &File,
    prepare: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<(OwnedFd, String)> {
    let copy = memfd_create("tenon-plugin", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut copy = File::from(copy);
    file.seek(SeekFrom::Start(0))?;
    let digest = digest_copy(file, &mut copy)?;
    prepare(&copy)?;
    seal(&copy)?;
    Ok((copy.into(), digest))
}

/// Forbids every further change.
///
/// Linux returns `EBUSY` as long as a page is held by anything that might write to it, and moving
/// or reclaiming pages also holds them for a moment (`memfd_wait_for_pins` in its mm/memfd.c).
fn seal(copy: impl AsFd) -> io::Result<()> {
    let all = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    for pause in 0..PAUSES {
        match fcntl_add_seals(&copy, all) {
            Err(Errno::BUSY) => sleep(FIRST_PAUSE * (1 << pause)),
            done => return Ok(done?),
        }
    }
    Ok(fcntl_add_seals(&copy, all)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    use std::{
        ffi::c_void,
        io::{ErrorKind, Write},
    };

    const BYTES: usize = 4096;

    /// A writable mapping, which prevents the file from being sealed.
    struct Held(*mut c_void);

    // SAFETY: only an address, which one thread at a time uses.
    unsafe impl Send for Held {}

    impl Drop for Held {
        fn drop(&mut self) {
            // SAFETY: the mapping is this value's, and nothing refers to it.
            unsafe { munmap(self.0, BYTES).unwrap() }
        }
    }

    fn held() -> (File, Held) {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("tenon-test", flags).unwrap());
        file.set_len(BYTES as u64).unwrap();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, which replaces no other.
        let at = unsafe { mmap(std::ptr::null_mut(), BYTES, access, MapFlags::SHARED, &file, 0) };
        (file, Held(at.unwrap()))
    }

    #[test]
    fn a_sealed_copy_has_the_bytes_and_takes_no_others() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"a library").unwrap();
        let (copy, digest) = sealed(&file, |_| Ok(())).unwrap();
        assert_eq!(digest, crate::digest::digest_of(&file).unwrap());
        let mut copy = File::from(copy);
        assert_eq!(io::read_to_string(&copy).unwrap(), "");
        copy.seek(SeekFrom::Start(0)).unwrap();
        assert_eq!(io::read_to_string(&copy).unwrap(), "a library");
        assert_eq!(copy.write(b"!").unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_eq!(copy.set_len(1).unwrap_err().kind(), ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_page_that_is_held_for_a_moment_is_waited_for() {
        let (memory, mapping) = held();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sleep(FIRST_PAUSE * 5);
                drop(mapping);
            });
            seal(&memory).unwrap();
        });
    }

    #[test]
    fn a_page_that_stays_held_is_an_error() {
        let (memory, mapping) = held();
        assert_eq!(seal(&memory).unwrap_err().kind(), ErrorKind::ResourceBusy);
        drop(mapping);
    }
}
