//! State on the CPU: kernels of values that outlive a step; and sparse tensors, which parsing makes.
//!
//! Its kernels are for device type `CPU`, which plugins/cpu registers; those that only pass the values of variables on are
//! for every type, since the host keeps such a value in the memory of any device. `resource` and `several` have
//! the kernels of resource variables, `reference` and `temporary` those of the reference variables of
//! older graphs; both are two doors to the host's variables. `gather` reads and `scatter` updates parts
//! of a variable. `handle` removes what a handle shows, `session` keeps tensors under a text. `naming` says under which name something is found, `update` what an update does to a
//! value that is locked.
//!
//! `tensor_list` and `tensor_map` have values of variants, `tensor_array` and `stack` resources of a
//! step, which `handle_of_step` finds; all four hold tensors, which `tensors` joins and adds, and whose shapes `shapes` compares.
//!
//! `table` has the tables from keys to values, `reader` the records of files whose names come from a
//! queue, `mutex` locks between steps. `parsing` makes tensors of messages, whose fields `wire` reads;
//! `files` says which files graphs may read.
//!
//! `sparse` computes with tensors by the coordinates of their values, `ragged` with tensors of rows of unequal length.
//!
//! `dataset` has descriptions of elements, `iterator` the walks over them that steps share, `optional` elements
//! that may be there or not.
//!
//! `queue`, `barrier`, `accumulator` and `staging` have what elements wait in between steps. Their calls
//! wait without a thread (`attempts`), and find each other by `place`. `for_loop` calls a function of the
//! graph for each value of a counter. `collective` has the operations of several devices, which the host
//! brings together.
//!
//! # Invariants
//! - Every access to a file goes through `tenon-files`, which asks the knob `data.files`.
//! - A kernel computes with the value of a variable only while it holds the variable's lock.
//! - A reader of an older value keeps it: an update copies a value that somebody else holds.

mod accumulator;
mod attempts;
mod barrier;
mod collective;
mod dataset;
mod files;
mod for_loop;
mod gather;
mod handle;
mod handle_of_step;
mod iterator;
mod mutex;
mod naming;
mod optional;
mod parsing;
mod place;
mod queue;
mod ragged;
mod reader;
mod reference;
mod resource;
mod scatter;
mod session;
mod several;
mod shapes;
mod sparse;
mod stack;
mod staging;
mod table;
mod temporary;
mod tensor_array;
mod tensor_list;
mod tensor_map;
mod tensors;
mod update;
mod variants;
mod wire;

tenon_sdk::export_plugin!();
tenon_sdk::kernels_check_shapes!();
