//! Tests of graphs from message to partition.

mod builder;
mod cost;
mod functions;
mod goldens;
mod import;
mod memory;
mod messages;
mod missing;
mod partition;
mod placer;
mod properties;
mod prune;
mod shapes;
mod support;
