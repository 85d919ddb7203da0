//! The edits of a draft. Each is checked before anything changes, and recorded.

use super::{Draft, NewNode};
use crate::{
    Graph, Node, NodeId, Output,
    optimize::{PassError, undo::Undo},
};
use std::{collections::HashMap, sync::Arc};
use tenon_framework::{
    DType,
    attr_view::AttrTable,
    device::DeviceName,
    infer::{SymbolicShape, ValueInfo, infer},
    op::{Signature, apply_defaults, check_attrs, infer_attrs},
};

impl Draft<'_> {
    /// Makes a node another one, under its name, on its device. What its outputs were must be what they are:
    /// as many of the same types, with shapes that do not contradict; only those at the end that nobody uses
    /// may be missing.
    ///
    /// # Errors
    /// A node that is protected ([`Draft::is_rewritable`]), wrong attributes or inputs, no kernel; then
    /// nothing has changed.
    pub fn replace(&mut self, id: NodeId, new: NewNode) -> Result<(), PassError> {
        self.check_rewritable(id)?;
        self.substitute(id, new)
    }

    /// As [`Draft::replace`], of nodes that steer too.
    pub(in crate::optimize) fn substitute(
        &mut self,
        id: NodeId,
        new: NewNode,
    ) -> Result<(), PassError> {
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

    /// Adds a node where `near` runs, called after it.
    ///
    /// # Errors
    /// Wrong attributes or inputs, no kernel.
    pub fn add(&mut self, near: NodeId, suffix: &str, new: NewNode) -> Result<NodeId, PassError> {
        let name = self.free_name(near, suffix);
        let node = self.made(name.clone(), DeviceName::default(), new)?;
        let device = self.devices[near.index()];
        if let Some(device) = device {
            self.has_kernel(&node, device)?;
        }
        let values = self.inferred(&node)?;
        let id = NodeId(self.nodes.len() as u32);
        self.names.insert(name, id);
        self.nodes.push(Arc::new(node));
        self.shapes.push(values);
        self.devices.push(device);
        self.live.push(true);
        self.kept.push(false);
        self.effect.push(false);
        self.clean.push(false);
        self.users.push(Vec::new());
        self.undo.push(Undo::Added);
        self.add_edges(id);
        self.clean[id.index()] = self.looks_clean(id);
        self.version += 1;
        Ok(id)
    }

    /// Lets whoever reads `from` read `to`; fetches and feeds of `from` stay. Gives the number of edges.
    ///
    /// # Errors
    /// Another type.
    pub fn redirect(&mut self, from: Output, to: Output) -> Result<usize, PassError> {
        let (expected, found) = (self.dtype(from), self.dtype(to));
        if expected != found || expected.is_ref() {
            let tensor = self.output_name(from);
            return Err(PassError::Type { tensor, expected, found });
        }
        if !self.is_there(to) {
            return Err(PassError::NoNode { found: self.output_name(to) });
        }
        if self.is_fed(from) || from == to {
            return Ok(0);
        }
        let mut users = self.users[from.node.index()].clone();
        users.sort_unstable();
        users.dedup();
        let mut count = 0;
        for user in users {
            let edges = self.node(user).inputs.iter().filter(|&&input| input == from).count();
            if edges == 0 {
                continue;
            }
            count += edges;
            let mut node = Node::clone(&self.nodes[user.index()]);
            node.inputs.iter_mut().filter(|input| **input == from).for_each(|input| *input = to);
            self.set_node(user, node);
        }
        Ok(count)
    }

    /// Lets whoever waits for `from` wait for `to` instead.
    pub fn redirect_control(&mut self, from: NodeId, to: &[NodeId]) {
        let mut users = self.users[from.index()].clone();
        users.sort_unstable();
        users.dedup();
        for user in users {
            if self.node(user).control_inputs.contains(&from) && !to.contains(&user) {
                let mut control = self.node(user).control_inputs.clone();
                control.retain(|id| *id != from);
                control.extend(to.iter().filter(|id| **id != user));
                self.set_control(user, control);
            }
        }
    }

    /// Sets what a node waits for beside its data.
    pub fn set_control(&mut self, id: NodeId, mut control: Vec<NodeId>) {
        control.sort_unstable();
        control.dedup();
        let mut node = Node::clone(&self.nodes[id.index()]);
        node.control_inputs = control;
        self.set_node(id, node);
    }

    /// Takes a node that gives what its input `index` is out of the way: who reads it reads the input. Where
    /// it is kept, or others order themselves by it or it by others, it stays, as an `Identity`.
    ///
    /// # Errors
    /// The node is protected, or has other types or shapes than the input; then nothing has changed.
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
        let orders =
            self.users(id).iter().any(|&user| self.node(user).control_inputs.contains(&id));
        if self.is_kept(id) || orders || needed {
            let is_identity = self.node(id).op.name == "Identity";
            if !is_identity {
                self.replace(id, NewNode::new("Identity").input(input).after(control))?;
            }
            if needed {
                return Ok(());
            }
        }
        self.redirect(output, input).map(drop)
    }

    /// Gives up the effects and errors of a node: on a branch that is never taken, or since others answer for them.
    pub(in crate::optimize) fn give_up_effects(&mut self, id: NodeId) {
        if std::mem::replace(&mut self.effect[id.index()], false) {
            self.undo.push(Undo::Effect(id));
        }
    }

    /// Infers anew what is known of a node's outputs, after more is known of its inputs. What the shape
    /// function then refuses it refuses as the step runs.
    pub fn refresh(&mut self, id: NodeId) {
        let node = Arc::clone(&self.nodes[id.index()]);
        let known = self.shapes.of_node(id).to_vec();
        if let Ok(values) = self.inferred(&node)
            && let Ok(values) = self.agreed(&node, &known, values)
        {
            self.set_values(id, values);
        }
    }

    /// Removes what nothing needs that must run; the nodes that went.
    pub fn sweep(&mut self) -> Vec<NodeId> {
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
    pub(in crate::optimize) fn roll_back(&mut self) {
        while let Some(undo) = self.undo.pop() {
            match undo {
                Undo::Node(id, node) => self.nodes[id.index()] = node,
                Undo::Values(id, values) => drop(self.shapes.replace(id, values)),
                Undo::Clean(id, clean) => self.clean[id.index()] = clean,
                Undo::Live(id) => self.live[id.index()] = true,
                Undo::Effect(id) => self.effect[id.index()] = true,
                Undo::Added => self.drop_last(),
            }
        }
        self.changes.clear();
        self.count_users();
    }

    fn drop_last(&mut self) {
        if let Some(node) = self.nodes.pop() {
            self.names.remove(&node.name);
        }
        self.shapes.pop();
        self.devices.pop();
        for list in [&mut self.live, &mut self.kept, &mut self.effect, &mut self.clean] {
            list.pop();
        }
    }

    pub(super) fn count_users(&mut self) {
        self.users = vec![Vec::new(); self.nodes.len()];
        let live: Vec<NodeId> = self.ids().filter(|id| self.is_live(*id)).collect();
        live.into_iter().for_each(|id| self.add_edges(id));
    }

    fn add_edges(&mut self, id: NodeId) {
        let node = Arc::clone(&self.nodes[id.index()]);
        for &input in &node.inputs {
            if let Some(source) = self.source(input) {
                self.users[source.index()].push(id);
            }
        }
        node.control_inputs.iter().for_each(|source| self.users[source.index()].push(id));
    }

    fn remove_edges(&mut self, id: NodeId) {
        let node = Arc::clone(&self.nodes[id.index()]);
        let data = node.inputs.iter().filter_map(|&input| self.source(input));
        let sources: Vec<NodeId> = data.chain(node.control_inputs.iter().copied()).collect();
        for source in sources {
            let users = &mut self.users[source.index()];
            if let Some(at) = users.iter().position(|user| *user == id) {
                users.swap_remove(at);
            }
        }
    }

    fn set_node(&mut self, id: NodeId, node: Node) {
        self.remove_edges(id);
        let node = Arc::new(Node { origin: None, ..node });
        let old = std::mem::replace(&mut self.nodes[id.index()], node);
        self.undo.push(Undo::Node(id, old));
        self.add_edges(id);
        let clean = self.looks_clean(id);
        let was = std::mem::replace(&mut self.clean[id.index()], clean);
        self.undo.push(Undo::Clean(id, was));
        self.version += 1;
    }

    fn set_values(&mut self, id: NodeId, values: Vec<ValueInfo>) {
        let old = self.shapes.replace(id, values);
        self.undo.push(Undo::Values(id, old));
    }

    fn free_name(&self, near: NodeId, suffix: &str) -> String {
        let stem = format!("{}/{suffix}", self.node(near).name);
        let is_free =
            |name: &String| self.base.find(name).is_none() && !self.names.contains_key(name);
        let numbered = (1..u64::MAX).map(|number| format!("{stem}_{number}"));
        std::iter::once(stem.clone()).chain(numbered).find(is_free).unwrap_or(stem)
    }

    fn made(&self, name: String, device: DeviceName, new: NewNode) -> Result<Node, PassError> {
        let Some(op) = self.ground.registry.op(&new.op).cloned() else {
            return Err(PassError::UnknownOp { node: name, op: new.op });
        };
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
            control_inputs: new.control,
            signature,
            origin: None,
        })
    }

    /// What is known of the outputs of a node.
    fn inferred(&mut self, node: &Node) -> Result<Vec<ValueInfo>, PassError> {
        let mut symbols = std::mem::take(&mut self.shapes.symbols);
        let unknown = ValueInfo::default();
        let inputs: Vec<&ValueInfo> =
            node.inputs.iter().map(|&input| self.value(input).unwrap_or(&unknown)).collect();
        let inferred = infer(&node.op, &node.attrs, &inputs, &mut symbols);
        self.shapes.symbols = symbols;
        inferred.map_err(|source| PassError::Shape {
            node: node.name.clone(),
            op: node.op.name.clone(),
            source,
        })
    }

    /// Both what was known of the outputs and what is known now, which may not contradict.
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
            // Unknown dimensions keep their identity, by which others know them.
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

    /// Whether the step has a tensor: it is fed, or its node runs.
    fn is_there(&self, output: Output) -> bool {
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

    fn output_name(&self, output: Output) -> String {
        format!("{}:{}", self.node(output.node).name, output.output)
    }

    /// The graph as it is now, and the nodes that run for their effects, or for their errors alone.
    pub(in crate::optimize) fn graph(&self) -> (Graph, Vec<NodeId>) {
        let mut graph = Graph::clone(self.base);
        graph.nodes.clone_from(&self.nodes);
        let names: HashMap<String, NodeId> = self.names.clone();
        graph.names.extend(names);
        let (_, alone) = self.needed();
        (graph, self.effects().chain(alone).collect())
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
