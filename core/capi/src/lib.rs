//! TensorFlow's C API over Tenon.
//!
//! What it is: the library `libtenon_tensorflow`, with the names, the layouts and the meanings of the part of
//! `tensorflow/c/c_api.h` that bindings of other languages use. A program that was compiled against TensorFlow's headers, or
//! against `include/tenon_tensorflow.h`, links it instead of `libtensorflow`.
//!
//! What it is not: the runtime (`tenon-runtime`), graphs (`tenon-graph`), servers and sessions on them (`tenon-cluster`). A function
//! of TensorFlow's that is not implemented is not exported, so that a program which needs it does not link.
//!
//! # Invariants
//! - The process has one runtime ([`process`]). It is made when a function first needs it, and is never dropped.
//! - No panic leaves a function: it becomes a status of code `INTERNAL`, or the function's failure value where it has no
//!   status.
//! - A pointer to a `TF_Operation` stays valid until its graph is deleted and all sessions of the graph are deleted.
//! - A graph and a session may be used by several threads at once. Other handles belong to one thread at a time.
//!
//! # Pointers
//! What every function requires of its caller:
//! - A pointer to a handle is null, or came from the function that makes such handles and was not deleted. A null handle is
//!   refused with `INVALID_ARGUMENT` where the function has a status, and otherwise does nothing.
//! - A status may be null: then the caller does not learn of errors.
//! - A text is null, or ends with a zero byte.
//! - An array is null, or has as many readable elements as the number beside it says. An array of results is writable.
//! - A handle that a function takes over, as its description says, is not used afterwards.

#![allow(
    non_snake_case,
    non_camel_case_types,
    clippy::too_many_arguments,
    reason = "the names and the arguments are those of TensorFlow's C API"
)]

#[macro_use]
mod fail;

mod attr_get;
mod attr_lists;
mod attr_set;
mod buffer;
mod client;
mod constant;
mod describe;
mod devices;
mod function;
mod function_def;
mod gradients;
mod graph;
mod graph_queries;
mod import;
mod import_names;
mod load;
mod operation;
mod partial;
mod plugins;
pub mod process;
mod queries;
mod raw;
mod registry;
mod run;
mod server;
mod serving;
mod session;
mod session_options;
mod shapes;
mod status;
mod tensor;
mod tensor_proto;
mod tensor_value;
mod tstring;
mod while_loop;
