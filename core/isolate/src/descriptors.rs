//! Passes file descriptors between processes.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
};

/// The most descriptors with one message.
pub const COUNT: usize = 4;

/// Sends descriptors, at most [`COUNT`], with a byte of data, which they need.
///
/// # Errors
/// More descriptors; those of the system.
pub fn send(socket: impl AsFd, descriptors: &[OwnedFd]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(COUNT))];
    let mut messages = SendAncillaryBuffer::new(&mut space);
    let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
    if !messages.push(SendAncillaryMessage::ScmRights(&borrowed)) {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    sendmsg(socket, &[IoSlice::new(&[0])], &mut messages, SendFlags::empty())?;
    Ok(())
}

/// Receives descriptors that [`send`] sent, of which there have to be this many.
///
/// # Errors
/// Another number of them; those of the system.
pub fn receive<const N: usize>(socket: impl AsFd) -> io::Result<[OwnedFd; N]> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(COUNT))];
    let mut messages = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut messages, flags)?;
    let mut all = Vec::new();
    for message in messages.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            all.extend(descriptors);
        }
    }
    all.try_into().map_err(|all: Vec<OwnedFd>| {
        io::Error::other(format!("expected {N} descriptors, found {}", all.len()))
    })
}
