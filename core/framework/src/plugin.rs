//! A library and the host that opened it: the host's table, and panics, which stay on the side where they happen.

mod guard;
mod host;

pub use guard::{guard, install_panic_hook, panic_message, spawn};
pub use host::{PluginHandle, give_bytes, host, install_host, log, plugin_path, report};
