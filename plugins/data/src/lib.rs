//! State on the CPU: kernels of values that outlive a step.
//!
//! Its kernels are for device type `CPU`, which plugins/cpu registers. `resource` has the kernels of
//! resource variables, `reference` those of the reference variables of older graphs; both are two
//! doors to the host's variables. `naming` says under which name a variable is found, `update` what
//! an update does to a value that is locked. `tensor_list` and `tensor_map` have values of variants,
//! `tensor_array` and `stack` resources of a step; all four hold tensors, which `tensors` joins and
//! adds, and whose shapes `shapes` compares.
//!
//! `queue`, `barrier`, `accumulator` and `staging` have what elements wait in between steps. Their calls
//! wait without a thread (`attempts`), and find each other by `place`.
//!
//! # Invariants
//! - A kernel computes with the value of a variable only while it holds the variable's lock.
//! - A reader of an older value keeps it: an update copies a value that somebody else holds.

mod accumulator;
mod attempts;
mod barrier;
mod naming;
mod philox;
mod place;
mod queue;
mod reference;
mod resource;
mod shapes;
mod stack;
mod tensor_array;
mod tensor_list;
mod tensor_map;
mod tensors;
mod staging;
mod update;
mod variants;

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();
