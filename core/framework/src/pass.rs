//! Passes that libraries bring: their definition, and the graph as they edit it.
//!
//! A pass is declared with `register_pass!` and written against `PassContext`, both of `tenon-author`. On the host's
//! side it runs over anything that implements [`GraphEdit`].

pub(crate) mod given;
mod table;

pub use table::run_pass;

use crate::{KernelError, Tensor, attr::AttrMap, attr_view::AttrTable, op::SourceInfo};
use std::sync::Arc;
use tenon_abi::{Code, DType, Host, PassCall, PassTable};

/// The entry that runs a pass.
pub type PassFn =
    unsafe extern "C" fn(host: *const Host, call: *mut PassCall, table: *const PassTable) -> Code;

/// A pass.
#[derive(Debug, Clone)]
pub struct PassDef {
    /// Name, in snake_case.
    pub name: String,
    /// One sentence.
    pub help: String,
    /// Whether it waits for other passes.
    pub late: bool,
    /// Runs it.
    pub run: PassFn,
    /// Where it is registered.
    pub source: SourceInfo,
    /// Name of the plugin that registered it.
    pub plugin: Arc<str>,
    /// Scope of that plugin's knobs.
    pub scope: String,
}

impl PassDef {
    /// Name of the knob that switches it, in the plugin's scope.
    pub fn knob(&self) -> String {
        format!("pass_{}", self.name)
    }
}

/// A tensor of a graph: node and output.
pub type Edge = (u32, u32);

/// A node that a pass makes.
#[derive(Debug, Clone, Default)]
pub struct NodeSpec {
    /// The op.
    pub op: String,
    /// Attributes.
    pub attrs: AttrMap,
    /// Data inputs.
    pub inputs: Vec<Edge>,
    /// Nodes that run before this one.
    pub control: Vec<u32>,
}

/// A graph that passes of libraries edit. Nodes have numbers; a node that does not exist has no properties.
pub trait GraphEdit {
    /// The nodes that run, sources first.
    ///
    /// # Errors
    /// There is a cycle.
    fn nodes(&self) -> Result<Vec<u32>, KernelError>;
    /// Name of a node.
    fn name(&self, node: u32) -> Option<&str>;
    /// Op of a node.
    fn op(&self, node: u32) -> Option<&str>;
    /// Full name of the device of a node.
    fn device(&self, node: u32) -> Option<String>;
    /// Attributes of a node.
    fn attrs(&self, node: u32) -> Option<&AttrTable>;
    /// Data inputs of a node.
    fn inputs(&self, node: u32) -> Vec<Edge>;
    /// Number of outputs of a node.
    fn output_count(&self, node: u32) -> usize;
    /// Element type of a tensor.
    fn dtype(&self, tensor: Edge) -> DType;
    /// Dimensions of a tensor, -1 where unknown; `None` if the rank is unknown.
    fn dims(&self, tensor: Edge) -> Option<Vec<i64>>;
    /// The value of a tensor that is the same in every step.
    fn constant(&self, tensor: Edge) -> Option<&Tensor>;
    /// How many inputs read a tensor.
    fn uses(&self, tensor: Edge) -> usize;
    /// Whether a tensor is fed.
    fn is_fed(&self, tensor: Edge) -> bool;
    /// Whether a feed, a fetch or a target names the node.
    fn is_kept(&self, node: u32) -> bool;
    /// Whether the node may be replaced.
    fn is_rewritable(&self, node: u32) -> bool;
    /// Replaces a node by another one.
    ///
    /// # Errors
    /// The reason for the refusal; then nothing has changed. The edits below have the same errors.
    fn replace(&mut self, node: u32, new: NodeSpec) -> Result<(), KernelError>;
    /// Adds a node on the device of `near`.
    ///
    /// # Errors
    /// As above.
    fn add(&mut self, near: u32, suffix: &str, new: NodeSpec) -> Result<u32, KernelError>;
    /// Makes the readers of `from` read `to`.
    ///
    /// # Errors
    /// As above.
    fn redirect(&mut self, from: Edge, to: Edge) -> Result<(), KernelError>;
    /// Removes a node whose value is that of an input; its readers read the input.
    ///
    /// # Errors
    /// As above.
    fn bypass(&mut self, node: u32, index: usize) -> Result<(), KernelError>;
    /// Reports a change of a node.
    fn note(&mut self, node: u32, text: &str);
}
