//! The arenas in a worker's process.

use super::{
    shared::Mapping,
    wire::{ArenaName, Place},
};
use std::{
    ffi::c_void,
    io,
    os::fd::{AsFd, OwnedFd},
    ptr::NonNull,
};
use tenon_framework::KernelError;

/// The host's arena, for reading, and the worker's own.
pub(super) struct Arenas {
    host: Mapping,
    own: Mapping,
}

impl Arenas {
    /// Maps both arenas, of these sizes.
    pub fn new(
        host: &OwnedFd,
        own: &OwnedFd,
        [host_bytes, own_bytes]: [u64; 2],
    ) -> io::Result<Arenas> {
        Ok(Arenas {
            host: Mapping::new(host.as_fd(), host_bytes as usize, false)?,
            own: Mapping::new(own.as_fd(), own_bytes as usize, true)?,
        })
    }

    /// The address of a range of bytes in an arena.
    pub fn at(&self, place: Place, bytes: u64) -> Result<NonNull<c_void>, KernelError> {
        let mapping = match place.arena {
            ArenaName::Host => &self.host,
            ArenaName::Worker => &self.own,
        };
        mapping.at(place.offset, bytes).ok_or_else(|| {
            KernelError::internal(format!("{bytes} bytes at {place:?} lie beyond their arena"))
        })
    }
}
