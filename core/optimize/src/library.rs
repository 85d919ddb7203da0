//! Passes of plugins, and the interface through which they edit a draft.

use crate::{Draft, NewNode, Pass, PassError};
use std::sync::Arc;
use tenon_framework::{
    Code, DType, KernelError, Tensor,
    attr_view::AttrTable,
    pass::run_pass,
    pass::{Edge, GraphEdit, NodeSpec, PassDef},
};
use tenon_graph::{NodeId, Output};

/// A pass that a plugin provides.
pub struct LibraryPass {
    def: Arc<PassDef>,
}

impl LibraryPass {
    /// Creates the pass of this definition.
    pub fn new(def: Arc<PassDef>) -> LibraryPass {
        LibraryPass { def }
    }

    /// The definition of the pass.
    pub fn def(&self) -> &PassDef {
        &self.def
    }
}

impl Pass for LibraryPass {
    fn name(&self) -> &str {
        &self.def.name
    }

    fn plugin(&self) -> &str {
        &self.def.plugin
    }

    fn is_late(&self) -> bool {
        self.def.late
    }

    fn run(&self, draft: &mut Draft<'_>) -> Result<(), PassError> {
        let (before, version) = (draft.idle(), draft.version);
        run_pass(&self.def, draft).map_err(|error| PassError::Failed(error.to_string()))?;
        if draft.version == version { Ok(()) } else { absorb_new_idle(draft, &before) }
    }
}

/// Absorbs the nodes that lost their readers in a plugin's pass, which is responsible for their
/// errors.
fn absorb_new_idle(draft: &mut Draft<'_>, before: &[bool]) -> Result<(), PassError> {
    // Users come first: the nodes that only they used then become idle in turn.
    for id in draft.order()?.into_iter().rev() {
        let was_idle = before.get(id.index()).copied().unwrap_or(false);
        if !was_idle && draft.is_live(id) && !draft.is_kept(id) && draft.users(id).is_empty() {
            draft.absorb([id]);
        }
    }
    Ok(())
}

fn output((node, output): Edge) -> Output {
    Output::new(NodeId(node), output)
}

/// Refuses edits once passes should stop, since a plugin's pass does not check by itself.
fn check_not_stopped(draft: &Draft<'_>) -> Result<(), KernelError> {
    if !draft.is_stopped() {
        return Ok(());
    }
    let message = "passes over this graph met their limit of work (graph.work_limit), or the caller of the step gave up";
    Err(KernelError::new(Code::RESOURCE_EXHAUSTED, message))
}

fn refused(error: PassError) -> KernelError {
    KernelError::invalid_argument(error.to_string())
}

impl Draft<'_> {
    fn known(&self, node: u32) -> Option<NodeId> {
        Some(NodeId(node)).filter(|id| id.index() < self.nodes.len())
    }

    fn known_output(&self, tensor: Edge) -> Option<Output> {
        let id = self.known(tensor.0)?;
        Some(output(tensor)).filter(|_| (tensor.1 as usize) < self.node(id).outputs().len())
    }

    fn expect_node(&self, node: u32) -> Result<NodeId, KernelError> {
        let none = || KernelError::invalid_argument(format!("there is no node {node}"));
        self.known(node).ok_or_else(none)
    }

    fn expect_output(&self, tensor: Edge) -> Result<Output, KernelError> {
        let (node, output) = tensor;
        let none = || KernelError::invalid_argument(format!("node {node} has no output {output}"));
        self.known_output(tensor).ok_or_else(none)
    }
}

fn made(spec: NodeSpec) -> NewNode {
    NewNode {
        op: spec.op,
        attrs: spec.attrs,
        inputs: spec.inputs.into_iter().map(output).collect(),
        control: spec.control.into_iter().map(NodeId).collect(),
    }
}

impl GraphEdit for Draft<'_> {
    fn nodes(&self) -> Result<Vec<u32>, KernelError> {
        let order = self.order().map_err(refused)?;
        Ok(order.into_iter().map(|id| id.0).collect())
    }

    fn name(&self, node: u32) -> Option<&str> {
        Some(&self.node(self.known(node)?).name)
    }

    fn op(&self, node: u32) -> Option<&str> {
        Some(&self.node(self.known(node)?).op.name)
    }

    fn device(&self, node: u32) -> Option<String> {
        Some(Draft::device(self, self.known(node)?)?.name.to_string())
    }

    fn attrs(&self, node: u32) -> Option<&AttrTable> {
        Some(&self.node(self.known(node)?).attrs)
    }

    fn inputs(&self, node: u32) -> Vec<Edge> {
        let inputs = self.known(node).map(|id| self.node(id).inputs.as_slice());
        inputs.unwrap_or_default().iter().map(|input| (input.node.0, input.output)).collect()
    }

    fn output_count(&self, node: u32) -> usize {
        self.known(node).map_or(0, |id| self.node(id).outputs().len())
    }

    fn dtype(&self, tensor: Edge) -> DType {
        self.known_output(tensor).map_or(DType::INVALID, |output| Draft::dtype(self, output))
    }

    fn dims(&self, tensor: Edge) -> Option<Vec<i64>> {
        self.shape(self.known_output(tensor)?).dims().map(<[i64]>::to_vec)
    }

    fn constant(&self, tensor: Edge) -> Option<&Tensor> {
        Draft::constant(self, self.known_output(tensor)?).filter(|value| value.is_on_host())
    }

    fn uses(&self, tensor: Edge) -> usize {
        self.known_output(tensor).map_or(0, |output| Draft::uses(self, output))
    }

    fn is_fed(&self, tensor: Edge) -> bool {
        Draft::is_fed(self, output(tensor))
    }

    fn is_kept(&self, node: u32) -> bool {
        self.known(node).is_some_and(|id| Draft::is_kept(self, id))
    }

    fn is_rewritable(&self, node: u32) -> bool {
        self.known(node).is_some_and(|id| Draft::is_rewritable(self, id))
    }

    fn replace(&mut self, node: u32, new: NodeSpec) -> Result<(), KernelError> {
        check_not_stopped(self)?;
        let id = self.expect_node(node)?;
        Draft::replace(self, id, made(new)).map_err(refused)
    }

    fn add(&mut self, near: u32, suffix: &str, new: NodeSpec) -> Result<u32, KernelError> {
        check_not_stopped(self)?;
        let near = self.expect_node(near)?;
        let id = Draft::add(self, near, suffix, made(new)).map_err(refused)?;
        Ok(id.0)
    }

    fn redirect(&mut self, from: Edge, to: Edge) -> Result<(), KernelError> {
        check_not_stopped(self)?;
        let (from, to) = (self.expect_output(from)?, self.expect_output(to)?);
        Draft::redirect(self, from, to).map(drop).map_err(refused)
    }

    fn bypass(&mut self, node: u32, index: usize) -> Result<(), KernelError> {
        check_not_stopped(self)?;
        let id = self.expect_node(node)?;
        if index >= self.node(id).inputs.len() {
            return Err(KernelError::invalid_argument(format!("node {node} has no input {index}")));
        }
        Draft::bypass(self, id, index).map_err(refused)
    }

    fn note(&mut self, node: u32, text: &str) {
        if let Some(id) = self.known(node) {
            Draft::note(self, id, text.to_owned());
        }
    }
}
