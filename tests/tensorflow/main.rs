//! TensorFlow's results (`tests/goldens`), case by case and graph by graph, and the numerics of fused kernels.

mod event_files;
mod frozen_graphs;
mod fused_numerics;
mod goldens_accel;
mod goldens_cpu;
mod goldens_reference;
mod gradients;
mod graph_goldens;
mod saved_models;
mod sequences;
mod training;
mod winograd;
