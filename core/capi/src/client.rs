//! Tenon's own C API: `include/tenon_client.h`.
//!
//! What it is: the functions `tn_…` for programs in C, C++ and other languages that run graphs: runtimes, graphs, sessions, prepared
//! steps, tensors, checkpoints, saved models and servers. It is in the same library as TensorFlow's C API and shares its parts; a
//! process may use both.
//!
//! What it is not: the boundary of plugins, which is `tenon.h` (`tenon-abi`), with other names.
//!
//! # Invariants
//! - A handle is a number that is looked up, never an address that is read. A handle that was deleted, or is of another kind, is an
//!   error, also when another thread deletes it at that time. A status alone is an address.
//! - A function that fails gives null, 0 or false and sets the status; it changes nothing else.
//! - Nothing is process-wide but the receiver of log messages. Handles keep what they need: they may be deleted in any order.
//! - Structs begin with their size. A field that an older program does not know is its default.
//! - The header is generated from these modules (`TENON_UPDATE=1 cargo test -p tenon-tests --test boundary client_header`): their
//!   documentation comments are its comments, and so speak of C.

#[macro_use]
mod handle;

mod builder;
mod builder_attrs;
mod builder_lists;
mod callable;
mod cancel;
mod checkpoint;
mod devices;
mod dlpack;
mod function;
mod gradients;
mod graph;
mod info;
mod kernels;
mod log;
mod model;
mod node;
mod runtime;
mod server;
mod session;
mod status;
mod step;
mod tensor;
mod text;
mod variables;
mod versioned;
