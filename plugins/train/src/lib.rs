//! Training on the CPU: updates of variables by the rules of optimisers, and summaries.
//!
//! What it is: a plugin with these kernels for device type `CPU`. `rules` has the formulas, each
//! once, over the numbers of `lane`; `run` compiles them for several instruction sets. `dense`
//! updates whole variables and `rows` the rows that indices name, both by handles and by references
//! (`variables`). Beside them it has what training graphs watch themselves by: `summary` has values as
//! messages of event files, and writes such files; `checks` finds infinities and hits among samples, `inplace` writes
//! rows. `sampling` draws classes, `words` trains a model of words; `files` says which files graphs may use.
//!
//! What it is not: gradients, and the loop that trains, which is a client of sessions.
//!
//! # Invariants
//! - Each operation rounds to the element type, as TensorFlow's do; 16-bit floats are computed in
//!   float, one operation at a time.
//! - An update reads and writes each element of the variables once, in place, while it holds their
//!   locks. A reader of an older value keeps it.
//! - Every access to a file goes through `tenon-files`, which asks the knob `train.files`.
//! - The number of threads does not change a result: one thread applies all updates of a row, in the
//!   order of the indices.

mod checks;
mod dense;
mod files;
mod inplace;
mod lane;
mod rows;
mod rules;
mod run;
mod sampling;
mod summary;
mod variables;
mod words;

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();
