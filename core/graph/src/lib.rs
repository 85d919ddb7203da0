//! Graphs: construction, validation, pruning, shape inference, placement and partitioning.
//!
//! A step's graph passes through this crate as follows:
//! 1. [`Graph::extend`] imports a `GraphDef`, or [`GraphBuilder`] adds nodes one by one. The
//!    content of a [`Graph`] is valid: attributes are known, types and arity are right, and the
//!    only cycles are loops. The op of a node may be unregistered as long as no step needs the node
//!    ([`Graph::check_ops`]).
//! 2. [`prune`] keeps what the feeds, fetches and targets need: a [`Subgraph`] in topological
//!    order.
//! 3. [`infer_shapes`] runs the ops' shape functions over it.
//! 4. [`place`] gives each node a device.
//! 5. [`optimize::optimize`] makes a smaller graph with the same results.
//! 6. [`partition`] cuts it into one [`Partition`] per device, with `Send` and `Recv` between them.
//!
//! The layers above implement the traits [`DeviceView`] and [`Evaluate`]. Plans, executors and
//! kernels are elsewhere. Nothing in this crate recurses over a graph, so deep graphs use no more
//! stack.

mod builder;
mod control_flow;
mod error;
mod frames;
mod graph;
mod ignored;
mod import;
mod memory;
mod missing;
mod names;
pub mod optimize;
mod order;
mod partition;
mod placer;
mod prune;
mod required_ops;
mod shape_pass;
mod strip;
mod traits;

pub use builder::{GraphBuilder, NodeBuilder};
pub use control_flow::ControlFlow;
pub use error::{GraphError, MissingOp, MissingOps};
pub use frames::{FrameId, FrameInfo, Frames};
pub use graph::{Graph, Node, NodeId, Output};
pub use import::ImportOptions;
pub use memory::{BufferRules, DeviceMemory, plan_memory};
pub use names::is_valid_node_name;
pub use partition::{
    ArgSide, AssembleError, Edge, MadeFrom, Memory, PartKind, PartNode, PartOp, Partition,
    PartitionOptions, Partitioned, Transfer, assemble, partition,
};
pub use placer::{NodePlacement, Placement, PlacementReason, PlacerOptions, place};
pub use prune::{Subgraph, prune};
pub use shape_pass::{Shapes, infer_shapes};
pub use strip::strip_default_attrs;
pub use traits::{DeviceEntry, DeviceView, Evaluate, NodeQuery};
