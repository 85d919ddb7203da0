//! The runtime of the process.
//!
//! The first function that needs ops or devices makes it. Plugins are found as the command finds them ([`tenon_host::search`]):
//! by `TENON_PLUGIN_PATH`, beside the program, and among the user's plugins. Then they are looked for beside this library, in its
//! `deps`, and in `../lib/tenon/plugins` from there.

use crate::fail::Failure;
use std::{
    ffi::{CStr, OsStr, c_char, c_void},
    fs, iter,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    sync::OnceLock,
};
use tenon_framework::device::name::DeviceName;
use tenon_host::search::{SearchPath, Surroundings};
use tenon_runtime::{Runtime, RuntimeOptions};

/// The version of TensorFlow whose C API this is, with Tenon's version as build metadata.
const VERSION: &CStr = {
    let text = concat!("2.21.0+tenon.", env!("CARGO_PKG_VERSION"), "\0");
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the text ends with its only zero"),
    }
};

/// The file of this library; `None` if the system does not say.
fn own_file() -> Option<PathBuf> {
    // SAFETY: all fields of the struct are pointers, for which zero is a value.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    let address = VERSION.as_ptr().cast::<c_void>();
    // SAFETY: the address is in this library, and the struct is writable.
    let told = unsafe { libc::dladdr(address, &mut found) };
    if told == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: `dladdr` gave a text that stays as long as this library is loaded.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    fs::canonicalize(OsStr::from_bytes(name.to_bytes())).ok()
}

/// Loads the plugins beside this library, and opens the devices of all.
pub(crate) fn load_beside(runtime: &Runtime) {
    let beside = Surroundings { executable: own_file(), ..Surroundings::default() };
    // Refused files are logged; a missing kernel is an error of the step that needs it.
    let _ = runtime.plugins().load_search(&SearchPath::new([], &beside));
    // This opens the devices of what was found.
    let _ = runtime.load(iter::empty::<PathBuf>());
}

/// Starts a runtime with the plugins that are found.
///
/// # Errors
/// A setting in the environment is invalid.
pub(crate) fn start(options: RuntimeOptions) -> Result<Runtime, Failure> {
    let (runtime, _) = Runtime::new(options)?;
    load_beside(&runtime);
    Ok(runtime)
}

/// The name of a task of a cluster; an empty job is the one of a process on its own.
///
/// # Errors
/// A job whose name has other characters than names of devices.
pub(crate) fn task_name(job: &str, task: u32) -> Result<DeviceName, Failure> {
    let is_name = job.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if !is_name {
        return Err(Failure::invalid(format!(
            "job: expected letters, digits, '_' and '-', such as worker, found '{job}'"
        )));
    }
    Ok(DeviceName::of_task(if job.is_empty() { "localhost" } else { job }, task))
}

/// The runtime of the process.
///
/// # Errors
/// A setting in the environment is invalid. Later calls have the same error.
pub(crate) fn runtime() -> Result<&'static Runtime, Failure> {
    static RUNTIME: OnceLock<Result<Runtime, Failure>> = OnceLock::new();
    RUNTIME.get_or_init(|| start(RuntimeOptions::default())).as_ref().map_err(Failure::clone)
}

api! {
    /// The version of TensorFlow whose C API this is, such as `2.21.0+tenon.0.1.0`.
    fn TF_Version() -> *const c_char { VERSION.as_ptr() }
}
