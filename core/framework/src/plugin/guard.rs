//! Panics stay on the side where they happen: each library has its own standard library, so the host
//! cannot catch a plugin's.

use crate::growth;
use std::{
    any::Any,
    cell::RefCell,
    panic::{self, AssertUnwindSafe},
};

thread_local! {
    static LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `body`; a panic becomes its message. The payload is forgotten, since its destructor may panic
/// again.
///
/// # Errors
/// The message of the panic, with its place where the library's panic hook recorded it.
#[inline(always)]
pub fn guard<R>(body: impl FnOnce() -> R) -> Result<R, String> {
    panic::catch_unwind(AssertUnwindSafe(body)).map_err(describe)
}

#[cold]
fn describe(payload: Box<dyn Any + Send>) -> String {
    if let Some(message) = growth::lack_of(&*payload) {
        return message.to_owned();
    }
    let message = panic_message(&*payload);
    std::mem::forget(payload);
    match LOCATION.with(|place| place.borrow_mut().take()) {
        Some(place) => format!("{message} ({place})"),
        None => message,
    }
}

/// The text of a panic's payload.
pub fn panic_message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_owned()
    }
}

/// Installs the hook of a loaded plugin: it prints nothing and keeps file and line for [`guard`]. Called
/// when a host opens the library, never for code that is linked into the host.
pub fn install_panic_hook() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
        LOCATION.with(|slot| *slot.borrow_mut() = place);
    }));
}

/// Starts a thread of the plugin's own, for devices and asynchronous kernels. A panic ends the thread,
/// not the process: it is written to the host's log.
///
/// # Errors
/// The operating system refuses another thread.
pub fn spawn(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    let label = name.to_owned();
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        if let Err(message) = guard(body) {
            let text = format!("thread {label} panicked: {message}");
            super::host::log(tenon_abi::LogLevel::ERROR, &text);
        }
    })
}
