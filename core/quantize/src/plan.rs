//! Decides which nodes are quantised, and in which form each tensor is needed.

use super::{
    QuantizeError,
    between::{self, Between, Candidate},
    layers::{self, Layer},
    step::{Step, Uses},
};
use std::collections::{BTreeSet, HashMap, HashSet};
use tenon_graph::{NodeId, Output};

/// The role of a node in the quantised graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The node stays in float.
    Float,
    /// The node gives the output of this layer.
    Layer(usize),
    /// The node gives the output of this 8-bit node between layers.
    Between(usize),
    /// The node is an inner part of a layer, or of an 8-bit node between layers.
    Part,
}

/// Options of a plan.
#[derive(Debug, Clone, Default)]
pub struct PlanOptions {
    /// The nodes that stay in float; a layer that contains one stays in float as a whole.
    pub keep: BTreeSet<String>,
    /// Whether activations are quantised at run time, each by its range in that step.
    pub dynamic: bool,
}

/// The decision which parts of a graph are quantised.
pub struct Plan<'a> {
    pub(super) step: Step<'a>,
    pub(super) layers: Vec<Layer>,
    pub(super) between: Vec<Candidate>,
    pub(super) roles: HashMap<NodeId, Role>,
    pub(super) dynamic: bool,
    /// The nodes that are needed in float.
    pub(super) floats: HashSet<NodeId>,
    /// The tensors that are needed in 8 bits.
    pub(super) bytes: HashSet<Output>,
    /// The products that stay in float, with the reason.
    pub(super) left: Vec<(NodeId, String)>,
}

impl<'a> Plan<'a> {
    /// Decides what is quantised: every product with constant weights that is not kept, and the
    /// nodes between these that can be computed on 8 bits.
    ///
    /// # Errors
    /// There is no product to quantise.
    pub fn new(step: Step<'a>, options: &PlanOptions) -> Result<Plan<'a>, QuantizeError> {
        let uses = Uses::of(step);
        let mut plan = Plan {
            step,
            layers: Vec::new(),
            between: Vec::new(),
            roles: HashMap::new(),
            dynamic: options.dynamic,
            floats: HashSet::new(),
            bytes: HashSet::new(),
            left: Vec::new(),
        };
        let kept = |id: NodeId| {
            options.keep.contains(&step.node(id).name) || step.sub.targets.contains(&id)
        };
        plan.find_layers(&uses, &kept);
        if plan.layers.is_empty() {
            return Err(plan.nothing());
        }
        if !plan.dynamic {
            plan.find_between(&uses, &kept);
        }
        plan.find_needs();
        Ok(plan)
    }

    fn nothing(&self) -> QuantizeError {
        let found = match self.left.first() {
            None => "no such node".to_owned(),
            Some((id, reason)) => {
                format!(
                    "{} of them, such as '{}': {reason}",
                    self.left.len(),
                    self.step.node(*id).name
                )
            }
        };
        QuantizeError::NothingToQuantize { found }
    }

    fn find_layers(&mut self, uses: &Uses, kept: &dyn Fn(NodeId) -> bool) {
        for &id in &self.step.sub.order {
            match layers::find(self.step, uses, kept, id) {
                None => {}
                Some(_) if kept(id) => self.left.push((id, "it is kept in float".to_owned())),
                Some(Err(reason)) => self.left.push((id, reason)),
                Some(Ok(layer)) => {
                    self.roles.extend(layer.nodes.iter().map(|id| (*id, Role::Part)));
                    self.roles.insert(layer.output.node, Role::Layer(self.layers.len()));
                    self.layers.push(layer);
                }
            }
        }
    }

    pub(super) fn role(&self, id: NodeId) -> Role {
        self.roles.get(&id).copied().unwrap_or(Role::Float)
    }

    /// Finds the nodes whose inputs are all in 8 bits, and whose output is read in 8 bits.
    fn find_between(&mut self, uses: &Uses, kept: &dyn Fn(NodeId) -> bool) {
        let found = self.reached(uses, kept);
        let wanted = self.wanted(&found);
        for candidate in found.into_iter().filter(|one| wanted.contains(&one.output)) {
            self.roles.insert(candidate.id, Role::Part);
            self.roles.insert(candidate.output.node, Role::Between(self.between.len()));
            self.between.push(candidate);
        }
    }

    /// The candidates that read only layers, each other, and constants.
    fn reached(&self, uses: &Uses, kept: &dyn Fn(NodeId) -> bool) -> Vec<Candidate> {
        let mut there: HashSet<Output> = self.layers.iter().map(|layer| layer.output).collect();
        let mut taken: HashSet<NodeId> = HashSet::new();
        let mut found: Vec<Candidate> = Vec::new();
        for &id in &self.step.sub.order {
            if self.role(id) != Role::Float || taken.contains(&id) {
                continue;
            }
            let Some(candidate) = between::find(self.step, uses, kept, id) else { continue };
            let is_constant = |input: &Output| self.takes_constant(&candidate, *input);
            let fits = |input: &Output| there.contains(input) || is_constant(input);
            if candidate.inputs.iter().all(fits) && !candidate.inputs.iter().all(is_constant) {
                there.insert(candidate.output);
                taken.extend([candidate.id, candidate.output.node]);
                found.push(candidate);
            }
        }
        found
    }

    /// Whether an input is a constant that can be quantised in advance.
    fn takes_constant(&self, candidate: &Candidate, input: Output) -> bool {
        let takes = matches!(candidate.what, Between::Add(_) | Between::Joined(_));
        let values = self.step.floats(input).unwrap_or_default();
        takes && !values.is_empty() && values.iter().all(|value| value.is_finite())
    }

    /// The tensors that are read in 8 bits by a layer, or by a candidate whose output is.
    fn wanted(&self, found: &[Candidate]) -> HashSet<Output> {
        let mut wanted: HashSet<Output> = self.layers.iter().map(|layer| layer.input).collect();
        for candidate in found.iter().rev() {
            if wanted.contains(&candidate.output) {
                wanted.extend(&candidate.inputs);
            }
        }
        wanted
    }

    /// Walks backwards from the fetches to find the needed forms.
    fn find_needs(&mut self) {
        let step = self.step;
        for fetch in step.sub.fetches.iter().filter(|fetch| !step.is_fed(**fetch)) {
            self.floats.insert(fetch.node);
        }
        self.floats.extend(&step.sub.targets);
        for &id in step.sub.order.iter().rev() {
            let outputs = step.node(id).outputs().len() as u32;
            let in_bytes = (0..outputs).any(|at| self.bytes.contains(&Output::new(id, at)));
            match self.role(id) {
                _ if !in_bytes && !self.floats.contains(&id) => {}
                Role::Part => {}
                Role::Layer(at) => self.need(self.layers[at].input, !self.dynamic),
                Role::Between(at) => self.need_between(at),
                Role::Float => self.need_float(id),
            }
        }
    }

    fn need(&mut self, tensor: Output, in_bytes: bool) {
        if in_bytes {
            self.bytes.insert(tensor);
        }
        // Nodes computed on 8 bits need no float in between, and constants are quantised in
        // advance.
        let is_made = self.role(tensor.node) == Role::Float && self.step.constant(tensor).is_none();
        if is_made || !in_bytes {
            self.floats.insert(tensor.node);
        }
    }

    fn need_between(&mut self, at: usize) {
        let Candidate { id, inputs, .. } = self.between[at].clone();
        for &input in &self.step.node(id).inputs {
            self.need(input, inputs.contains(&input));
        }
    }

    fn need_float(&mut self, id: NodeId) {
        self.floats.insert(id);
        let node = self.step.node(id);
        // An op that only reads a shape can read it from the bytes.
        let asks = matches!(node.op.name.as_str(), "Shape" | "Size" | "Rank");
        for &input in &node.inputs {
            let in_bytes = asks && self.role(input.node) != Role::Float && !self.dynamic;
            self.need(input, in_bytes);
        }
        for &control in &node.control_inputs {
            if self.role(control) == Role::Float {
                self.floats.insert(control);
            }
        }
    }

    /// The tensors whose ranges determine a scale, for calibration, in the order of their
    /// computation.
    pub fn observed(&self) -> Vec<Output> {
        let mut observed: Vec<Output> = Vec::new();
        let fed = self.step.sub.feeds.iter().copied().filter(|feed| self.bytes.contains(feed));
        observed.extend(fed);
        for &id in &self.step.sub.order {
            let own = (0..self.step.node(id).outputs().len()).map(|at| Output::new(id, at as u32));
            observed.extend(own.filter(|output| self.has_range(*output)));
        }
        observed
    }

    fn has_range(&self, output: Output) -> bool {
        self.bytes.contains(&output)
            && !self.step.is_fed(output)
            && self.step.constant(output).is_none()
            && match self.role(output.node) {
                Role::Between(at) => self.between[at].rescales(),
                _ => true,
            }
    }
}
