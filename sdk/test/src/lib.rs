//! Calls of a plugin's kernels from the plugin's own tests.
//!
//! A [`Host`] starts the `tenon` command, which loads the built library and computes each call as a session does. So
//! the tests of a plugin are built without a runtime, in seconds once this crate is: the runtime is in the command, and a kernel that crashes ends the command,
//! not the tests.
//!
//! ```no_run
//! use tenon_test::{Host, elements, floats, library};
//!
//! let host = Host::with([library(env!("CARGO_PKG_NAME"))]);
//! let y = host.node("Relu").call(&[floats(&[1.0, -1.0])]).unwrap();
//! assert_eq!(elements::<f32>(&y[0]), [1.0, 0.0]);
//! ```
//!
//! The command is the one that the variable `TENON` names, else `tenon` on the path. Its version must be that of this
//! crate.
//!
//! What goes wrong in the making panics with the message, as tests want it; what a kernel says comes back.

mod host;
mod values;
#[doc(hidden)]
pub mod wire;

pub use host::{Host, Node, library, library_in};
pub use values::{elements, floats, scalar, shaped, texts};
