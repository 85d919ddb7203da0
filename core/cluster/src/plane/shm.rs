//! Lanes through shared memory, between tasks of one user on one host.
//!
//! # Handshake
//! Both tasks name the host's boot in the call `Greet`. If they agree, the answer has the name of a door, which is a socket in
//! a folder that only the server's user may enter, and a ticket. The client connects and sends the ticket; the server checks it
//! and the user of the client, makes memory for two rings, and sends its descriptor with that of a second socket. A client that
//! cannot reach the socket (another container, another user) takes TCP. The name is sixteen digits, and each side finds the
//! folder itself: no path comes from another process.
//!
//! Neither side can change the size of the memory, so that access to it cannot fail. Each side may write to all of it at any
//! time: what one side reads there is checked, and copied before anything else is done with it.
//!
//! # Waking
//! A side that finds its ring empty, or full, says so in the memory, looks once more, and waits for a byte on a socket: on the
//! first for bytes, on the second for room. The sockets also show that the other process has ended.

mod ring;

use super::lane::Lane;
use crate::way::Way;
use ring::{RING_BYTES, RingReader, RingWriter};
use std::{
    fs::DirBuilder,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            fs::DirBuilderExt,
            net::{UnixListener as StdListener, UnixStream as StdStream},
        },
    },
    path::PathBuf,
    sync::Arc,
};
use tenon_isolate::{
    descriptors,
    shared::{Mapping, SharedFile},
};
use tokio::{
    io::{AsyncReadExt, Interest},
    net::{UnixListener, UnixStream},
    runtime::Handle,
};

/// Bytes of the memory of a lane: two rings.
const BYTES: usize = 2 * RING_BYTES;

/// The socket in the folder of a door.
const SOCKET: &str = "data";

/// What tells one boot of one host from all others; empty where the system does not say.
pub(super) fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// Where clients of this host get shared memory. The socket and its folder go when this is dropped.
pub(super) struct Door {
    folder: PathBuf,
    path: PathBuf,
    name: String,
}

/// The folder of a door.
fn folder(name: &str) -> io::Result<PathBuf> {
    if name.len() != 16 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let why = "the name of a door of shared memory has 16 hexadecimal digits";
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let place = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let place = place.filter(|it| it.is_dir()).unwrap_or_else(std::env::temp_dir);
    Ok(place.join(format!("tenon-{name}")))
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_dir(&self.folder);
    }
}

impl Door {
    /// Opens a door in a new folder that only this user may enter.
    pub fn open(threads: &Handle, name: &str) -> io::Result<(Door, UnixListener)> {
        let folder = folder(name)?;
        DirBuilder::new().mode(0o700).create(&folder)?;
        let path = folder.join(SOCKET);
        let door = Door { folder, path, name: name.to_owned() };
        let listener = StdListener::bind(&door.path)?;
        listener.set_nonblocking(true)?;
        let _threads = threads.enter();
        Ok((door, UnixListener::from_std(listener)?))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Whether the process at the other end of a socket is of this user.
pub(super) fn is_same_user(stream: &UnixStream) -> io::Result<bool> {
    Ok(stream.peer_cred()?.uid() == rustix::process::geteuid().as_raw())
}

/// The lane of a client that was admitted.
pub(super) async fn give(stream: UnixStream) -> io::Result<Lane> {
    let memory = SharedFile::new("tenon-data", BYTES)?;
    let (own, other) = StdStream::pair()?;
    own.set_nonblocking(true)?;
    other.set_nonblocking(true)?;
    let sent = [memory.as_fd().try_clone_to_owned()?, OwnedFd::from(other)];
    let send = || descriptors::send(stream.as_fd(), &sent);
    stream.async_io(Interest::WRITABLE, send).await?;
    lane(&memory, stream, UnixStream::from_std(own)?, true)
}

/// The lane of a server that has taken the ticket.
pub(super) async fn take(stream: UnixStream) -> io::Result<Lane> {
    let receive = || descriptors::receive::<2>(stream.as_fd());
    let [memory, other] = stream.async_io(Interest::READABLE, receive).await?;
    let memory = SharedFile::received(memory, BYTES)?;
    let other = StdStream::from(other);
    other.set_nonblocking(true)?;
    lane(&memory, stream, UnixStream::from_std(other)?, false)
}

/// The lane of one side: the server sends through the first ring, the client through the second.
fn lane(
    memory: &SharedFile,
    bytes: UnixStream,
    room: UnixStream,
    is_server: bool,
) -> io::Result<Lane> {
    let mapping: Arc<Mapping> = Arc::new(memory.map()?);
    let (bytes, room) = (Arc::new(bytes), Arc::new(room));
    let (out, back) = if is_server { (0, RING_BYTES) } else { (RING_BYTES, 0) };
    let write = RingWriter::new(&mapping, out, &bytes, &room);
    let read = RingReader::new(&mapping, back, &bytes, &room);
    Ok(Lane { way: Way::Shm, checked: false, read: Box::new(read), write: Box::new(write) })
}

/// Connects to the door of a server on this host.
pub(super) async fn dial(name: &str) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(folder(name)?.join(SOCKET)).await?;
    if !is_same_user(&stream)? {
        return Err(io::Error::other("the socket is another user's"));
    }
    Ok(stream)
}

/// Reads exactly this many bytes.
pub(super) async fn read_exact<const N: usize>(
    stream: &mut (impl tokio::io::AsyncRead + Unpin),
) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}
