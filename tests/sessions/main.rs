//! Sessions: what they compute, refuse and survive, and what the process holds before and after.
//!
//! One test runs at a time (`session::turn`): a test looks at all that the process holds. A test that takes no turn does
//! not belong here.

mod all_reduce;
mod bad_input;
mod cluster;
mod cluster_collective;
mod cluster_faults;
mod cluster_plane;
mod cluster_propagated;
mod collective;
mod collective_groups;
mod compiling;
mod control_flow;
mod embed;
mod faults;
mod feed_shapes;
mod functions;
mod hand_over;
mod kernel_functions;
mod knobs;
mod long_kernels;
mod memory_peak;
mod replace;
mod serve;
mod serve_hostile;
mod sessions;
mod state;
mod traces;
mod training;
mod training_step;
mod workers;
mod zoo_knobs;
