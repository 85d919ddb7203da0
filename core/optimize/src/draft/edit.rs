//! The edits of a draft. Each is checked before anything changes, and recorded.

use super::{Cleanliness, Draft, NewNode};
use crate::{PassError, undo::Undo};
use std::sync::Arc;
use tenon_framework::{
    DType,
    attr_view::AttrTable,
    device::DeviceName,
    infer::{SymbolicShape, ValueInfo, infer},
    op::{Signature, apply_defaults, check_attrs, infer_attrs},
};
use tenon_graph::{Graph, Node, NodeId, Output, each_once, required_ops};

impl Draft<'_> {
    /// Replaces a node, keeping its name and device. The outputs must stay the same in number and
    /// types, with compatible shapes; only unused outputs at the end may be dropped.
    ///
    /// # Errors
    /// The node is protected ([`Draft::is_rewritable`]), its attributes or inputs are wrong, or
    /// there is no kernel. The draft is then unchanged.
    pub fn replace(&mut self, id: NodeId, new: NewNode) -> Result<(), PassError> {
        self.check_rewritable(id)?;
        self.substitute(id, new)
    }

    /// Like [`Draft::replace`], also for control-flow nodes.
    pub(crate) fn substitute(&mut self, id: NodeId, new: NewNode) -> Result<(), PassError> {
        let old = Arc::clone(&self.nodes[id.index()]);
        let node = self.made(old.name.clone(), old.device.clone(), new)?;
        self.check_outputs(id, &node)?;
        if let Some(device) = self.devices[id.index()] {
            self.has_kernel(&node, device)?;
        }
        let known = self.shapes.of_node(id).to_vec();
        let values = self.inferred(&node)?;
        let values = self.agreed(&node, &known, values)?;
        self.set_node(id, node);
        self.set_values(id, values);
        Ok(())
    }

    /// Adds a node on the device of `near`; its name is derived from that of `near`.
    ///
    /// # Errors
    /// The attributes or inputs are wrong, or there is no kernel.
    pub fn add(&mut self, near: NodeId, suffix: &str, new: NewNode) -> Result<NodeId, PassError> {
        let name = self.free_name(near, suffix);
        let node = self.made(name.clone(), DeviceName::default(), new)?;
        let device = self.devices[near.index()];
        if let Some(device) = device {
            self.has_kernel(&node, device)?;
        }
        let values = self.inferred(&node)?;
        let id = NodeId(self.nodes.len() as u32);
        self.names.insert(name);
        self.nodes.push(Arc::new(node));
        self.shapes.push(values);
        self.devices.push(device);
        self.live.push(true);
        self.kept.push(false);
        self.effect.push(false);
        self.clean.push(Cleanliness::default());
        self.edges.push_node();
        self.undo.push(Undo::Added);
        self.add_edges(id);
        self.clean[id.index()].is_clean.set(self.looks_clean(id));
        self.version += 1;
        Ok(id)
    }

    /// Bypasses a node whose value equals its input `index`: its readers read the input instead. If
    /// the node is kept, or has control edges to or from other nodes, it stays as an `Identity`.
    ///
    /// # Errors
    /// The node is protected, or its types or shapes differ from those of the input. The draft is
    /// then unchanged.
    pub fn bypass(&mut self, id: NodeId, index: usize) -> Result<(), PassError> {
        self.check_rewritable(id)?;
        let inputs = self.node(id).inputs.clone();
        let (input, output) = (inputs[index], Output::new(id, 0));
        let mut control = self.node(id).control_inputs.clone();
        for (at, &other) in
            inputs.iter().enumerate().filter(|&(at, other)| at != index && *other != input)
        {
            let anchors = self.anchors(other).ok_or_else(|| {
                self.protected(id, "an input comes from a branch that may not be taken")
            });
            let _ = at;
            control.extend(anchors?);
        }
        let needed = control.iter().any(|&id| !self.is_clean(id));
        if self.is_kept(id) || self.is_waited_for(id) || needed {
            let is_identity = self.node(id).op.name == required_ops::IDENTITY;
            if !is_identity {
                self.replace(id, NewNode::new(required_ops::IDENTITY).input(input).after(control))?;
            }
            if needed {
                return Ok(());
            }
        }
        self.redirect(output, input).map(drop)
    }

    /// Drops the effects and errors of a node, because its branch is never taken or other nodes
    /// fail in its place.
    pub(crate) fn give_up_effects(&mut self, id: NodeId) {
        if std::mem::replace(&mut self.effect[id.index()], false) {
            self.undo.push(Undo::Effect(id));
        }
    }

    /// Infers a node's outputs again, once more is known about its inputs. An error of the shape
    /// function is ignored here: the node fails at run time.
    pub fn refresh(&mut self, id: NodeId) {
        let node = Arc::clone(&self.nodes[id.index()]);
        let known = self.shapes.of_node(id).to_vec();
        if let Ok(values) = self.inferred(&node)
            && let Ok(values) = self.agreed(&node, &known, values)
        {
            self.set_values(id, values);
        }
    }

    /// Removes the nodes that no required node needs, and returns them.
    pub fn sweep(&mut self) -> Vec<NodeId> {
        self.spend(self.nodes.len() + self.edges.count);
        let (needed, _) = self.needed();
        let gone = |id: &NodeId| self.live[id.index()] && !needed[id.index()];
        let gone: Vec<NodeId> = self.ids().filter(gone).collect();
        for &id in &gone {
            self.remove(id);
        }
        gone
    }

    pub(super) fn remove(&mut self, id: NodeId) {
        self.remove_edges(id);
        self.live[id.index()] = false;
        self.undo.push(Undo::Live(id));
        self.version += 1;
    }

    /// Undoes every edit since the record was last cleared.
    pub(crate) fn roll_back(&mut self) {
        while let Some(undo) = self.undo.pop() {
            match undo {
                Undo::Node(id, node) => self.nodes[id.index()] = node,
                Undo::Input(id, slot, input) => self.node_mut(id).inputs[slot as usize] = input,
                Undo::ControlGone(id, slot, source) => {
                    let control = &mut self.node_mut(id).control_inputs;
                    control.push(source);
                    let last = control.len() - 1;
                    control.swap(slot as usize, last);
                }
                Undo::ControlAdded(id) => drop(self.node_mut(id).control_inputs.pop()),
                Undo::Values(id, values) => drop(self.shapes.replace(id, values)),
                Undo::Clean(id, clean) => {
                    self.clean[id.index()].is_clean.set(clean);
                    self.clean[id.index()].is_stale.set(false);
                }
                Undo::Live(id) => self.live[id.index()] = true,
                Undo::Effect(id) => self.effect[id.index()] = true,
                Undo::Added => self.drop_last(),
            }
        }
        self.changes.clear();
        self.stale.clear();
        self.count_users();
    }

    /// A mutable node, which no other graph shares.
    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        Arc::make_mut(&mut self.nodes[id.index()])
    }

    fn drop_last(&mut self) {
        if let Some(node) = self.nodes.pop() {
            self.names.remove(&node.name);
        }
        self.shapes.pop();
        self.devices.pop();
        for list in [&mut self.live, &mut self.kept, &mut self.effect] {
            list.pop();
        }
        self.clean.pop();
    }

    pub(super) fn set_values(&mut self, id: NodeId, values: Vec<ValueInfo>) {
        let old = self.shapes.replace(id, values);
        self.undo.push(Undo::Values(id, old));
    }

    fn free_name(&self, near: NodeId, suffix: &str) -> String {
        let stem = format!("{}/{suffix}", self.node(near).name);
        let is_free = |name: &String| self.base.find(name).is_none() && !self.names.contains(name);
        let numbered = (1..u64::MAX).map(|number| format!("{stem}_{number}"));
        std::iter::once(stem.clone()).chain(numbered).find(is_free).unwrap_or(stem)
    }

    fn made(&self, name: String, device: DeviceName, new: NewNode) -> Result<Node, PassError> {
        let Some(op) = self.context.registry.op(&new.op).cloned() else {
            return Err(PassError::UnknownOp { node: name, op: new.op });
        };
        self.spend(2 * (new.inputs.len() + new.control.len()));
        let mut types: Vec<DType> = Vec::with_capacity(new.inputs.len());
        for &input in &new.inputs {
            let source = self.nodes.get(input.node.index());
            let known = source.is_some_and(|node| (input.output as usize) < node.outputs().len());
            if !known || !self.is_there(input) {
                return Err(PassError::NoNode {
                    found: format!("output {} of {}", input.output, input.node),
                });
            }
            types.push(self.dtype(input));
        }
        if let Some(id) = new.control.iter().find(|id| !self.is_there((**id).into())) {
            return Err(PassError::NoNode { found: id.to_string() });
        }
        let mut attrs = new.attrs;
        let checked = infer_attrs(&op, &types, &mut attrs)
            .and_then(|()| apply_defaults(&op, &mut attrs))
            .and_then(|()| check_attrs(&op, &attrs))
            .and_then(|()| Signature::resolve(&op, &attrs))
            .and_then(|signature| signature.check_inputs(&op, &types).map(|()| signature));
        let signature = checked
            .map_err(|source| PassError::Op { node: name.clone(), source: Box::new(source) })?;
        Ok(Node {
            name,
            op,
            attrs: Arc::new(AttrTable::new(attrs)),
            device,
            inputs: new.inputs,
            control_inputs: each_once(new.control),
            signature,
            origin: None,
        })
    }

    /// The inferred values of a node's outputs.
    fn inferred(&mut self, node: &Node) -> Result<Vec<ValueInfo>, PassError> {
        let mut symbols = std::mem::take(self.shapes.symbols_mut());
        let unknown = ValueInfo::default();
        let inputs: Vec<&ValueInfo> =
            node.inputs.iter().map(|&input| self.value(input).unwrap_or(&unknown)).collect();
        let inferred = infer(&node.op, &node.attrs, &inputs, &mut symbols);
        *self.shapes.symbols_mut() = symbols;
        inferred.map_err(|source| PassError::Shape {
            node: node.name.clone(),
            op: node.op.name.clone(),
            source,
        })
    }

    /// Merges the former and the new values of the outputs, which must be compatible.
    fn agreed(
        &self,
        node: &Node,
        known: &[ValueInfo],
        mut values: Vec<ValueInfo>,
    ) -> Result<Vec<ValueInfo>, PassError> {
        for (at, (known, value)) in known.iter().zip(&mut values).enumerate() {
            if !compatible(&known.shape, &value.shape) {
                return Err(PassError::OtherShape {
                    tensor: format!("{}:{at}", node.name),
                    expected: known.shape.partial(),
                    found: value.shape.partial(),
                });
            }
            // An unknown dimension keeps its symbol, which relates it to others.
            if unknown_dims(&value.shape) >= unknown_dims(&known.shape) {
                value.shape.clone_from(&known.shape);
            }
            if value.constant.is_none() {
                value.constant.clone_from(&known.constant);
            }
            if value.value.is_none() {
                value.value.clone_from(&known.value);
            }
        }
        Ok(values)
    }

    /// Whether the step has this tensor: it is fed, or its node runs.
    pub(super) fn is_there(&self, output: Output) -> bool {
        self.is_fed(output) || self.is_live(output.node)
    }

    fn check_outputs(&self, id: NodeId, node: &Node) -> Result<(), PassError> {
        for (at, &expected) in self.node(id).outputs().iter().enumerate() {
            let output = Output::new(id, at as u32);
            let needed = || self.is_fetched(output) || self.uses(output) > 0;
            let found = node.outputs().get(at).copied();
            if found != Some(expected) && (found.is_some() || needed()) {
                let found = found.unwrap_or(DType::INVALID);
                let tensor = self.output_name(output);
                return Err(PassError::Type { tensor, expected, found });
            }
        }
        Ok(())
    }

    fn check_rewritable(&self, id: NodeId) -> Result<(), PassError> {
        if id.index() >= self.nodes.len() {
            return Err(PassError::NoNode { found: id.to_string() });
        }
        match self.is_rewritable(id) {
            true => Ok(()),
            false => Err(self.protected(id, "it has an effect, is fed, or asks for its kernel")),
        }
    }

    fn protected(&self, id: NodeId, reason: &'static str) -> PassError {
        let (node, op) = (self.node(id).name.clone(), self.node(id).op.name.clone());
        PassError::Protected { node, op, reason }
    }

    pub(super) fn output_name(&self, output: Output) -> String {
        format!("{}:{}", self.node(output.node).name, output.output)
    }

    /// The graph in its current state, and the nodes that run only for their effects or errors.
    pub(crate) fn graph(&self) -> (Graph, Vec<NodeId>) {
        let (_, alone) = self.needed();
        (self.base.with_nodes(self.nodes.clone()), self.effects().chain(alone).collect())
    }
}

fn unknown_dims(shape: &SymbolicShape) -> usize {
    let unknown = |dims: &[tenon_framework::infer::Dimension]| {
        dims.iter().filter(|dim| dim.value() < 0).count()
    };
    shape.dims().map_or(usize::MAX, unknown)
}

fn compatible(a: &SymbolicShape, b: &SymbolicShape) -> bool {
    let (Some(a), Some(b)) = (a.dims(), b.dims()) else { return true };
    let meets = |(a, b): (i64, i64)| a < 0 || b < 0 || a == b;
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| meets((a.value(), b.value())))
}
