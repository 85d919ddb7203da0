//! Calls of a plugin's kernels from the plugin's own tests.
//!
//! What it is: a [`Host`] starts the `tenon` command, which loads the built library and computes
//! each call as a session does. The command is the one that the variable `TENON` names, else
//! `tenon` on the path.
//!
//! What it is not: a runtime. The runtime is in the command, so that the tests of a plugin compile
//! in seconds once this crate is built, and a kernel that crashes ends the command and not the
//! tests. A check of everything that a plugin promises is `tenon check`.
//!
//! # Invariants
//! - The command's version is that of this crate; another one is refused.
//! - A mistake in starting the command or in describing a call panics with the message, as tests
//!   want it. An error of the kernel is returned.
//! - The command ends with its [`Host`].
//!
//! ```no_run
//! use tenon_test::{Host, elements, floats, library};
//!
//! let host = Host::with([library(env!("CARGO_PKG_NAME"))]);
//! let y = host.node("Relu").call(&[floats(&[1.0, -1.0])]).unwrap();
//! assert_eq!(elements::<f32>(&y[0]), [1.0, 0.0]);
//! ```

mod host;
mod values;
#[doc(hidden)]
pub mod wire;

pub use host::{Host, Node, library, library_in};
pub use values::{elements, floats, scalar, shaped, texts};
