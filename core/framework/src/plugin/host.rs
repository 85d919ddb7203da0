//! The host's table that this library was given.
//!
//! Each library has its own copy of this crate, hence its own pointer: a plugin's is set when the host
//! opens it, the host's own when a runtime starts.

use crate::KernelError;
use std::{path::PathBuf, sync::OnceLock};
use tenon_abi::{Code, Host, LogLevel, Plugin, Sink, Str};

static HOST: OnceLock<&'static Host> = OnceLock::new();
static PLUGIN: OnceLock<PluginHandle> = OnceLock::new();

/// The host's record of the plugin that this library is.
#[derive(Clone, Copy)]
pub struct PluginHandle(*const Plugin);

// SAFETY: an opaque pointer that lives as long as the process; the host's services that take it may be
// called from any thread.
unsafe impl Send for PluginHandle {}
// SAFETY: as above.
unsafe impl Sync for PluginHandle {}

/// Keeps the host's table and the plugin's record; later calls change nothing.
///
/// # Safety
/// Both pointers are non-null or, for `plugin`, null, and live as long as the process; every entry of the
/// table is filled.
pub unsafe fn install_host(host: *const Host, plugin: *const Plugin) {
    // SAFETY: `host` is not null, has every entry and lives as long as the process, as the caller guarantees.
    let _ = HOST.set(unsafe { &*host });
    let _ = PLUGIN.set(PluginHandle(plugin));
}

/// The host's table.
///
/// # Panics
/// When no host has opened this library; contexts exist only where one has.
pub fn host() -> &'static Host {
    HOST.get().expect("a host opens this library before it calls it")
}

fn plugin() -> *const Plugin {
    PLUGIN.get().map_or(std::ptr::null(), |handle| handle.0)
}

/// Writes a line to the host's log. Without a host, does nothing.
pub fn log(level: LogLevel, message: &str) {
    if let Some(entry) = HOST.get().and_then(|host| host.log) {
        // SAFETY: an entry of the host's table with its own record.
        unsafe { entry(plugin(), level, Str::new(message)) }
    }
}

/// The plugin's own file, beside which it may have data; `None` for a plugin that is linked into the host.
///
/// ```
/// use tenon_framework::{KernelError, plugin::plugin_path};
///
/// /// A table that is shipped beside the library.
/// fn table() -> Result<Vec<u8>, KernelError> {
///     let path = plugin_path().map(|file| file.with_file_name("table.bin"));
///     let path = path.ok_or_else(|| KernelError::internal("linked in: there is no file"))?;
///     std::fs::read(&path).map_err(|e| KernelError::internal(format!("{}: {e}", path.display())))
/// }
/// ```
pub fn plugin_path() -> Option<PathBuf> {
    let entry = HOST.get()?.path.expect("the host fills every entry");
    // SAFETY: an entry of the host's table with its own record; the path lives as long as the process.
    let bytes = unsafe { entry(plugin()).bytes() };
    (!bytes.is_empty()).then(|| path_of(bytes))
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).into()
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// Gives the message of an error to a sink, and its code back.
///
/// # Safety
/// `sink` is the one that the running call was lent.
pub unsafe fn report(sink: *mut Sink, error: &KernelError) -> Code {
    // SAFETY: `sink` is the one that the running call was lent, as the caller guarantees.
    unsafe { give_bytes(sink, error.message.as_bytes()) };
    error.code
}

/// Gives bytes to a sink. Without a host, does nothing.
///
/// # Safety
/// As [`report`].
pub unsafe fn give_bytes(sink: *mut Sink, bytes: &[u8]) {
    if let Some(entry) = HOST.get().and_then(|host| host.report) {
        // SAFETY: the entry is the host's, and the caller gives the sink that the running call was lent.
        unsafe { entry(sink, Str::from_bytes(bytes)) }
    }
}
