//! A library and the host that opened it: the host's table, the library's knobs, and panics, which stay on the side where
//! they happen.

mod guard;
mod host;
mod knobs;

pub use guard::{guard, install_panic_hook, panic_message, spawn};
pub use host::{PluginHandle, host, install_host, log, plugin_path};
pub(crate) use host::{give_bytes, report};
pub use knobs::{KeptKnobs, Knob, Knobs};
