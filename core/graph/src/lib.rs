//! Graphs: construction, validation, pruning, shape inference, placement and partitioning.
//!
//! What it is: the steps that a graph takes before it can run.
//! 1. [`Graph::extend`] imports a `GraphDef`, or [`GraphBuilder`] adds nodes one by one.
//! 2. [`prune`] takes what (feeds, fetches, targets) need: a [`Subgraph`] in topological order.
//! 3. [`infer_shapes`] runs the ops' shape functions over it.
//! 4. [`place`] gives each node a device.
//! 5. [`partition`] cuts it into one [`Partition`] per device, with `Send` and `Recv` nodes between
//!    them.
//!
//! Between steps 4 and 5, the passes of `tenon-optimize` make a smaller graph that gives the same
//! results.
//!
//! What it is not: passes (`tenon-optimize`), plans and the executor (`tenon-runtime`), kernels
//! (plugins), definitions of ops (`tenon-ops`). The crates above implement the traits
//! [`DeviceView`], which this crate needs, and [`Evaluate`], which programs that rewrite graphs
//! need.
//!
//! # Invariants
//! - A [`Graph`] is valid: its attributes are known, types and arity are right, and the only cycles
//!   are loops. The op of a node may be unregistered, as long as no step needs the node
//!   ([`Graph::check_ops`]).
//! - An extension with an error leaves the graph as it was, and the same message gives the same
//!   error.
//! - A [`Partition`] is complete in itself: no number in it refers to another graph.
//! - Nothing in this crate recurses over a graph, so that a deep graph needs no deep stack.
//!
//! ```
//! use tenon_framework::{DType, PartialShape, op::OpDef, registry::*};
//! use tenon_graph::{GraphBuilder, prune};
//!
//! let mut plugin = Transaction::new(PluginInfo::linked(PluginId(0), "ops", "0", 0));
//! let placeholder = ["dtype: type", "shape: shape = ?"];
//! plugin.add_op(OpDef::from_spec("Placeholder", &[], &["output: dtype"], &placeholder)?);
//! plugin.add_op(OpDef::from_spec("Add", &["x: T", "y: T"], &["z: T"], &["T: type"])?);
//! let (registry, _) = commit_all(&Registry::new(), vec![plugin]).unwrap();
//!
//! let mut b = GraphBuilder::new(&registry);
//! let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
//! let y = b.op("Add").name("y").input(x).input(x).build()?;
//! b.op("Add").name("unused").input(y).input(y).build()?;
//! let graph = b.finish();
//! let step = prune(&graph, &[x], &[y.into()], &[])?;
//! assert_eq!(step.order, [y]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builder;
mod control_flow;
mod error;
mod frames;
mod function;
mod graph;
mod ignored;
mod import;
mod inferred;
mod memory;
mod missing;
mod names;
mod order;
mod partition;
mod placer;
mod prune;
pub mod required_ops;
mod shape_pass;
mod strip;
mod traits;

pub use builder::{GraphBuilder, NodeBuilder};
pub use control_flow::ControlFlow;
pub use error::{FunctionError, GraphError, MissingOp, MissingOps};
pub use frames::{FrameId, FrameInfo, Frames};
pub use function::{Callee, Expanded, FunctionKey, called, callee, definition, expand};
pub use graph::{Graph, Node, NodeId, Output, each_once};
pub use import::ImportOptions;
pub use inferred::Inferred;
pub use memory::{BufferRules, DeviceMemory, plan_memory};
pub use names::is_valid_node_name;
pub use order::topological;
pub use partition::{
    ArgSide, AssembleError, Edge, MadeFrom, Memory, PartKind, PartNode, PartOp, Partition,
    PartitionOptions, Partitioned, Transfer, WithControlLoops, assemble, control_loops, partition,
    partition_part,
};
pub use placer::{
    NodePlacement, Placement, PlacementCosts, PlacementReason, PlacerOptions, place, place_by_cost,
};
pub use prune::{Subgraph, prune};
pub use shape_pass::{Shapes, infer_shapes};
pub use strip::strip_default_attrs;
pub use traits::{DeviceEntry, DeviceView, Evaluate, NodeQuery};
