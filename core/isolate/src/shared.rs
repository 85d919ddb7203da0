//! Memory shared by two processes, without a name in any file system: it is freed when the last of
//! them unmaps it.

use rustix::{
    fs::{
        MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
        open,
    },
    mm::{MapFlags, ProtFlags, mmap, munmap},
};
use std::{
    ffi::c_void,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    ptr::NonNull,
};

/// Memory of a fixed size, whose pages exist only once they are touched.
pub struct SharedFile {
    file: OwnedFd,
    bytes: usize,
}

impl SharedFile {
    /// Creates memory of zeros. `name` shows in the system's list of mappings.
    ///
    /// # Errors
    /// Those of the system, as for the other functions of this module.
    pub fn new(name: &str, bytes: usize) -> io::Result<SharedFile> {
        let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, bytes as u64)?;
        // A process that truncated it would make the others die of SIGBUS.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        Ok(SharedFile { file, bytes })
    }

    /// Memory that another process has created with [`SharedFile::new`].
    ///
    /// # Errors
    /// The descriptor is not of such memory, or not of this size, or some process could change its size.
    pub fn received(file: OwnedFd, bytes: usize) -> io::Result<SharedFile> {
        let needed = SealFlags::SHRINK | SealFlags::GROW;
        if !fcntl_get_seals(&file)?.contains(needed) {
            return Err(io::Error::other("shared memory came without seals on its size"));
        }
        let found = fstat(&file)?.st_size;
        if u64::try_from(found) != Ok(bytes as u64) {
            let why = format!("shared memory has {found} bytes, expected {bytes}");
            return Err(io::Error::other(why));
        }
        Ok(SharedFile { file, bytes })
    }

    /// A descriptor through which the memory can only be read.
    ///
    /// # Errors
    /// Those of the system.
    pub fn read_only(&self) -> io::Result<OwnedFd> {
        let name = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
        Ok(open(name, flags, rustix::fs::Mode::empty())?)
    }

    /// Maps all of the memory.
    ///
    /// # Errors
    /// Those of the system.
    pub fn map(&self) -> io::Result<Mapping> {
        Mapping::new(self.file.as_fd(), self.bytes, true)
    }
}

impl AsFd for SharedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Shared memory mapped into this process.
pub struct Mapping {
    base: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: only an address range; its readers and writers synchronise access to the contents.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` bytes of a file; for reading only unless `write`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(file: BorrowedFd<'_>, bytes: usize, write: bool) -> io::Result<Mapping> {
        let access = if write { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: a new mapping, which replaces no other.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, access, flags, file, 0)? };
        let base = NonNull::new(base).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Mapping { base, bytes })
    }

    /// Its first byte.
    pub fn base(&self) -> NonNull<c_void> {
        self.base
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of `bytes` bytes from `offset` on; `None` unless they are in the mapping.
    pub fn at(&self, offset: u64, bytes: u64) -> Option<NonNull<c_void>> {
        let end = offset.checked_add(bytes)?;
        if end > self.bytes as u64 {
            return None;
        }
        // SAFETY: within the mapping.
        Some(unsafe { self.base.byte_add(offset as usize) })
    }

    /// Offset of an address in the mapping; `None` for an address outside.
    pub fn offset_of(&self, address: *const c_void) -> Option<u64> {
        let offset = address.addr().checked_sub(self.base.addr().get())?;
        (offset < self.bytes).then_some(offset as u64)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped with this size; its owners ensure that no pointer into it is left.
        let _ = unsafe { munmap(self.base.as_ptr(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_show_the_same_bytes_and_a_read_only_one_stays_so() {
        let file = SharedFile::new("tenon-test", 8192).unwrap();
        let sent = || file.as_fd().try_clone_to_owned().unwrap();
        assert!(SharedFile::received(sent(), 8192).is_ok());
        assert!(SharedFile::received(sent(), 4096).is_err(), "of another size");
        let unsealed = memfd_create("tenon-test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&unsealed, 8192).unwrap();
        assert!(SharedFile::received(unsealed, 8192).is_err(), "its size may change");
        let (writer, reader) = (file.map().unwrap(), file.read_only().unwrap());
        let read = Mapping::new(reader.as_fd(), 8192, false).unwrap();
        // SAFETY: both are mapped, and nothing else uses them.
        unsafe {
            writer.at(4096, 1).unwrap().cast::<u8>().write(7);
            assert_eq!(read.at(4096, 1).unwrap().cast::<u8>().read(), 7);
        }
        assert!(Mapping::new(reader.as_fd(), 8192, true).is_err(), "opened for reading only");
        assert!(writer.at(8192, 1).is_none() && writer.at(u64::MAX, 1).is_none());
        assert_eq!(writer.offset_of(writer.at(17, 1).unwrap().as_ptr()), Some(17));
        assert_eq!(writer.offset_of(read.base().as_ptr()), None);
    }
}
