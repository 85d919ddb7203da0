//! The walk from `ys` to `xs`.

use crate::{
    GradientError,
    calls::CallSite,
    edit::NodeEdit,
    frames::{Counted, Loops, Scope},
    known::Known,
    options::{Gradient, Options, Unconnected},
    region::{Bounds, Region},
    reuse::Shared,
};
use std::collections::HashMap;
use tenon_framework::{
    DType, KernelError, Tensor,
    attr::{AttrList, AttrMap, AttrValue},
    gradient::run_gradient,
    op::OpRole,
};
use tenon_graph::{ControlFlow, FrameId, GraphBuilder, Node, NodeId, Output};

/// A graph whose gradients are made.
pub(crate) struct Engine<'b, 'r> {
    pub b: &'b mut GraphBuilder<'r>,
    pub known: Known,
    pub options: &'b Options,
    /// What the names of all nodes begin with.
    pub prefix: String,
    pub loops: Loops,
    /// The frames of gradients that are open, outermost first.
    pub scopes: Vec<Scope>,
    /// The number of frames of gradients around the values of each node that was added.
    pub home: HashMap<NodeId, usize>,
    /// The counters of forward frames.
    pub counters: HashMap<FrameId, Counted>,
    /// The stacks of values of forward frames.
    pub stacks: HashMap<Output, Output>,
    /// Whether some nodes run under a condition.
    pub conditional: bool,
    /// The name of this differentiation, which is the same in functions.
    pub scope: String,
    /// The number of functions around the graph.
    pub level: usize,
    pub shared: Shared<'r>,
}

/// The gradients of tensors as they come together.
#[derive(Debug, Default)]
pub(crate) struct Gradients {
    /// What readers contribute to a tensor.
    parts: HashMap<Output, Vec<Gradient>>,
    /// The node that contributed first.
    from: HashMap<Output, NodeId>,
}

impl Gradients {
    /// Adds what a reader contributes.
    pub fn add(&mut self, to: Output, from: Option<NodeId>, gradient: Gradient) {
        self.parts.entry(to).or_default().push(gradient);
        if let Some(from) = from {
            self.from.entry(to).or_insert(from);
        }
    }

    fn has_any(&self, output: Output) -> bool {
        self.parts.contains_key(&output)
    }
}

impl<'b, 'r> Engine<'b, 'r> {
    pub fn new(b: &'b mut GraphBuilder<'r>, options: &'b Options) -> Engine<'b, 'r> {
        let known = Known::of(b.graph());
        let prefix = unused_prefix(b, &options.prefix);
        let switches = |node: &Node| node.control_flow() == ControlFlow::Switch;
        let conditional = b.graph().nodes().any(|(_, node)| switches(node));
        let scope = prefix.trim_end_matches('/').to_owned();
        Engine {
            b,
            known,
            options,
            prefix,
            loops: Loops::default(),
            scopes: Vec::new(),
            home: HashMap::new(),
            counters: HashMap::new(),
            stacks: HashMap::new(),
            conditional,
            scope,
            level: 0,
            shared: Shared::default(),
        }
    }

    /// See [`gradients`](crate::gradients).
    pub fn gradients(
        &mut self,
        ys: &[Output],
        xs: &[Output],
    ) -> Result<Vec<Option<Gradient>>, GradientError> {
        self.check("y", ys)?;
        self.check("x", xs)?;
        self.check("stop_gradient", &self.options.stop_gradients)?;
        self.check_given(ys)?;
        let bounds = Bounds {
            ys: ys.to_vec(),
            xs: xs.iter().copied().collect(),
            stops: self.options.stop_gradients.iter().copied().collect(),
        };
        self.loops = Loops::find(self.b.graph(), ys)?;
        let region = self.region(&bounds, FrameId::ROOT);
        let mut found = Gradients::default();
        for (at, &y) in ys.iter().enumerate() {
            if region.reached.contains(&y) {
                let gradient = self.first(at, y)?;
                found.add(y, None, gradient);
            }
        }
        self.walk(&region, &bounds, &mut found, FrameId::ROOT)?;
        xs.iter().map(|&x| self.result(x, &mut found)).collect()
    }

    /// The region of a frame within these bounds.
    pub fn region(&self, bounds: &Bounds, frame: FrameId) -> Region {
        let graph = self.b.graph();
        Region::find(graph, bounds, |id| self.loops.sources(graph, id, frame))
    }

    fn result(
        &mut self,
        x: Output,
        found: &mut Gradients,
    ) -> Result<Option<Gradient>, GradientError> {
        let total = self.total(x, found)?;
        match self.options.unconnected {
            Unconnected::Zero if total.is_none() => {
                let dtype = self.b.graph().dtype(x);
                if dtype.base() == DType::RESOURCE {
                    return Ok(None);
                }
                let zeros = self.zeros(x, &self.prefix.clone())?;
                Ok(Some(Gradient::Dense(zeros)))
            }
            _ => Ok(total),
        }
    }

    /// Runs the gradients of the nodes of a region, readers first.
    pub fn walk(
        &mut self,
        region: &Region,
        bounds: &Bounds,
        found: &mut Gradients,
        frame: FrameId,
    ) -> Result<(), GradientError> {
        // A loop within comes when all that reads its exits is done: at the first exit of the order.
        let mut first_exits = HashMap::new();
        for &id in &region.order {
            if let Some(inner) = self.loops.left_by(id).filter(|inner| *inner != frame) {
                first_exits.entry(inner).or_insert(id);
            }
        }
        for &id in region.order.iter().rev() {
            if let Some(inner) = self.loops.left_by(id).filter(|inner| *inner != frame) {
                if first_exits.get(&inner) == Some(&id) {
                    self.frame_gradient(inner, region, bounds, found)?;
                }
                continue;
            }
            let count = self.b.graph().node(id).outputs().len() as u32;
            let outputs = (0..count).map(|output| Output::new(id, output));
            let flowing: Vec<Output> = outputs.filter(|output| found.has_any(*output)).collect();
            if flowing.is_empty() {
                continue;
            }
            let mut gradients = vec![None; count as usize];
            for output in flowing {
                let total = self.total(output, found)?;
                if !bounds.stops.contains(&output) {
                    gradients[output.output as usize] = total;
                }
            }
            if region.leads_to(id) && gradients.iter().any(Option::is_some) {
                self.node(id, gradients, region, found)?;
            }
        }
        Ok(())
    }

    /// The sum of what came together for a tensor, which takes the place of its parts.
    pub fn total(
        &mut self,
        of: Output,
        found: &mut Gradients,
    ) -> Result<Option<Gradient>, GradientError> {
        let Some(parts) = found.parts.remove(&of) else { return Ok(None) };
        let total = match parts.as_slice() {
            [one] => *one,
            _ => self.sum(of, &parts)?,
        };
        found.parts.insert(of, vec![total]);
        Ok(Some(total))
    }

    /// Runs the gradient of one node.
    fn node(
        &mut self,
        id: NodeId,
        gradients: Vec<Option<Gradient>>,
        region: &Region,
        found: &mut Gradients,
    ) -> Result<(), GradientError> {
        let node = self.b.graph().node(id).clone();
        let wanted: Vec<bool> =
            node.inputs.iter().map(|input| region.reached.contains(input)).collect();
        if node.op.facts().role == OpRole::Call {
            let site = CallSite { id, node: &node, gradients, wanted };
            let set = self.call(&site)?;
            return self.contribute(&site.node.clone(), id, set, region, found);
        }
        let Some(run) = node.op.gradient() else {
            let mut path = self.path_from_y(id, found);
            path.extend(region.path_to_x(self.b.graph(), id));
            let (op, node) = (node.op.name.clone(), node.name);
            return Err(GradientError::NoGradient { op, node, path });
        };
        let mut edit = NodeEdit::new(self, id, &node, gradients, wanted);
        let outcome = run_gradient(run, &mut edit);
        let set = edit.into_set();
        outcome.map_err(|source| GradientError::Entry {
            node: node.name.clone(),
            op: node.op.name.clone(),
            source,
        })?;
        self.contribute(&node, id, set, region, found)
    }

    /// Adds the gradients of a node's inputs to what came together for them.
    fn contribute(
        &mut self,
        node: &Node,
        id: NodeId,
        set: Vec<Option<Gradient>>,
        region: &Region,
        found: &mut Gradients,
    ) -> Result<(), GradientError> {
        let set = self.gated(&node.name, set)?;
        for (input, gradient) in node.inputs.iter().zip(set) {
            if let Some(gradient) = gradient.filter(|_| region.reached.contains(input)) {
                found.add(*input, Some(id), gradient);
            }
        }
        Ok(())
    }

    /// Names of the nodes on the path from a `y` to this node, which is the last one.
    fn path_from_y(&self, id: NodeId, found: &Gradients) -> Vec<String> {
        let graph = self.b.graph();
        let mut names = vec![graph.node(id).name.clone()];
        let mut at = id;
        let reader = |id: NodeId| {
            let outputs = (0..graph.node(id).outputs().len() as u32).map(|n| Output::new(id, n));
            outputs.filter_map(|output| found.from.get(&output)).next().copied()
        };
        while let Some(next) = reader(at).filter(|_| names.len() <= graph.len()) {
            names.push(graph.node(next).name.clone());
            at = next;
        }
        names.reverse();
        names
    }

    /// With [`Options::gate`]: the gradients of a node's inputs, each of which waits for all of them.
    fn gated(
        &mut self,
        near: &str,
        set: Vec<Option<Gradient>>,
    ) -> Result<Vec<Option<Gradient>>, GradientError> {
        let tensors = |gradient: &Gradient| match *gradient {
            Gradient::Dense(values) => values.node,
            Gradient::Slices { values, .. } => values.node,
        };
        let made: Vec<NodeId> = set.iter().flatten().map(tensors).collect();
        if !self.options.gate || made.len() < 2 {
            return Ok(set);
        }
        let name = self.name_in(near, "tuple");
        let gate = self.add_after(&name, "NoOp", &[], &made, AttrMap::new())?;
        let mut gated = Vec::with_capacity(set.len());
        for gradient in set {
            gated.push(match gradient {
                None => None,
                Some(Gradient::Dense(values)) => {
                    Some(Gradient::Dense(self.behind(gate, near, values)?))
                }
                Some(Gradient::Slices { values, indices, dense_shape }) => {
                    let values = self.behind(gate, near, values)?;
                    Some(Gradient::Slices { values, indices, dense_shape })
                }
            });
        }
        Ok(gated)
    }

    /// A value that waits for a node.
    fn behind(&mut self, gate: NodeId, near: &str, value: Output) -> Result<Output, GradientError> {
        let name = self.name_in(near, "control_dependency");
        Ok(self.add_after(&name, "Identity", &[value], &[gate], AttrMap::new())?.into())
    }

    /// An unused name for a node of the gradient of node `near`.
    pub fn name_in(&mut self, near: &str, name: &str) -> String {
        let prefix = self.prefix.as_str();
        let near = near.strip_prefix(prefix).unwrap_or(near);
        let name = format!("{prefix}{near}_grad/{name}");
        self.b.unused_name(&name)
    }

    /// Adds a node.
    pub fn add(
        &mut self,
        name: &str,
        op: &str,
        inputs: &[Output],
        attrs: AttrMap,
    ) -> Result<NodeId, KernelError> {
        self.add_after(name, op, inputs, &[], attrs)
    }

    /// Adds a node that runs after others.
    pub fn add_after(
        &mut self,
        name: &str,
        op: &str,
        inputs: &[Output],
        control: &[NodeId],
        attrs: AttrMap,
    ) -> Result<NodeId, KernelError> {
        let depth = self.depth();
        let kernel_error = |error: GradientError| KernelError::new(error.code(), error.to_string());
        let mut here = Vec::with_capacity(inputs.len());
        for &input in inputs {
            here.push(self.at(input, depth).map_err(kernel_error)?);
        }
        let mut control = control.to_vec();
        if let Some(scope) = self.scopes.last()
            && here.is_empty()
            && control.is_empty()
        {
            control.push(scope.pivot);
        }
        let id = self.raw_named(name, op, &here, &control, attrs)?;
        self.home.insert(id, depth);
        Ok(id)
    }

    /// Adds a node as it is.
    pub fn raw_named(
        &mut self,
        name: &str,
        op: &str,
        inputs: &[Output],
        control: &[NodeId],
        attrs: AttrMap,
    ) -> Result<NodeId, KernelError> {
        let mut node = self.b.op(op).name(name).inputs(inputs.iter().copied());
        for &before in control {
            node = node.control(before);
        }
        for (name, value) in attrs {
            node = node.attr(&name, value);
        }
        let id = node.build().map_err(|error| KernelError::new(error.code(), error.to_string()))?;
        self.known.extend(self.b.graph())?;
        Ok(id)
    }

    /// Adds a constant.
    pub fn constant(&mut self, name: &str, value: Tensor) -> Result<Output, KernelError> {
        let attrs =
            [("dtype", AttrValue::Type(value.dtype())), ("value", AttrValue::Tensor(value))];
        let attrs = attrs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let name = self.b.unused_name(name);
        Ok(self.add(&name, "Const", &[], attrs)?.into())
    }

    /// A vector constant of type int32.
    pub fn ints(&mut self, name: &str, values: &[i64]) -> Result<Option<Output>, KernelError> {
        let narrow = values.iter().map(|&value| i32::try_from(value).ok());
        let Some(values) = narrow.collect::<Option<Vec<i32>>>() else { return Ok(None) };
        let tensor = Tensor::from_slice(&[values.len() as i64], &values);
        let tensor = tensor.map_err(|error| KernelError::new(error.code(), error.to_string()))?;
        self.constant(name, tensor).map(Some)
    }

    /// The attribute that puts a node on the device of another one.
    pub fn colocated(node: &str) -> (String, AttrValue) {
        let group = format!("loc:@{node}").into_bytes();
        ("_class".to_owned(), AttrValue::List(AttrList::String(vec![group])))
    }
}

/// This prefix, or one that begins like it and with which no name of the graph begins.
fn unused_prefix(b: &GraphBuilder<'_>, wanted: &str) -> String {
    let base = match wanted.trim_end_matches('/') {
        "" => "gradients",
        base => base,
    };
    let used = |prefix: &str| b.graph().nodes().any(|(_, node)| node.name.starts_with(prefix));
    let numbered = (1u64..).map(|number| format!("{base}_{number}/"));
    let mut candidates = std::iter::once(format!("{base}/")).chain(numbered);
    candidates.find(|prefix| !used(prefix)).unwrap_or_else(|| format!("{base}/"))
}
