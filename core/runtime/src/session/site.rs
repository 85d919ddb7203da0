//! A placed node as its kernels see it: whether they take it, and the objects that are made for it.

use super::{
    compile::Placed,
    kernels::{Chosen, KernelCache},
    measured,
};
use crate::{
    error::RuntimeError,
    plan::{Choice, MakeKernel, PerShape},
    tuning::{Tuner, Wish},
};
use std::{fmt::Write, sync::Arc};
use tenon_framework::{
    Code, KernelError, PartialShape, Shape, Tensor,
    device::base::DeviceBase,
    infer::{Symbols, ValueInfo, infer},
    knob::Knobs,
    registry::{KernelDef, Registry, SupportAnswer, fastest},
};
use tenon_graph::{Graph, Node, NodeId};
use tenon_host::{
    KnobScope,
    devices::PluginDevice,
    instance::{KernelInstance, KernelSpec},
    pool::ThreadPool,
};

/// What kernels for a node are asked and made with.
pub(super) struct Site {
    graph: Arc<Graph>,
    id: NodeId,
    device: Arc<PluginDevice>,
    /// What is known of the inputs' shapes before a step.
    pub shapes: Vec<PartialShape>,
    /// Values of inputs that are the same in every step.
    constants: Vec<Option<Tensor>>,
    knobs: Arc<Knobs>,
    kernels: Arc<KernelCache>,
    /// Number of the graph, where it was made for one plan; else 0.
    own_graph: u64,
    /// The session's graph.
    base: Arc<Graph>,
    /// Under policy `measured`: what times are kept by.
    pub tuned: Option<Tuned>,
}

/// What measurements need. It does not hold the runtime, which waits for them as it ends.
pub(super) struct Tuned {
    pub tuner: Arc<Tuner>,
    pub pool: Arc<ThreadPool>,
    /// Features of this CPU.
    pub features: String,
    registry: Arc<Registry>,
}

impl Tuned {
    fn new(placed: &Placed<'_>) -> Option<Tuned> {
        placed.current.wish?;
        let runtime = &placed.session.runtime;
        Some(Tuned {
            tuner: Arc::clone(runtime.tuner()),
            pool: Arc::clone(runtime.pool()),
            features: runtime.features().iter().collect::<Vec<_>>().join(" "),
            registry: Arc::clone(&placed.current.registry),
        })
    }

    /// A kernel with the build of its plugin: another build is another kernel.
    pub fn kernel_name(&self, kernel: &KernelDef) -> String {
        let info = self.registry.plugins().find(|info| info.id == kernel.plugin);
        let build = info.map_or_else(String::new, |info| match info.digest.get(..16) {
            Some(digest) => digest.to_owned(),
            None => info.version.clone(),
        });
        format!("{}@{build} {kernel}", kernel.plugin_name)
    }
}

impl Site {
    pub fn new(placed: &Placed<'_>, id: NodeId) -> Site {
        let inputs = &placed.graph.node(id).inputs;
        let shapes = inputs.iter().map(|&input| placed.shapes.seen(&placed.sub, input)).collect();
        let constants = inputs.iter().map(|&input| match placed.sub.feed_of(input) {
            Some(_) => None,
            None => placed.shapes.constant(input).cloned(),
        });
        Site {
            graph: Arc::clone(&placed.graph),
            id,
            device: Arc::clone(placed.device(id)),
            shapes,
            constants: constants.collect(),
            knobs: Arc::clone(&placed.current.knobs),
            kernels: Arc::clone(&placed.session.kernels),
            own_graph: placed.own_graph,
            base: Arc::clone(&placed.current.graph),
            tuned: Tuned::new(placed),
        }
    }

    /// What stands for a constant among the packed forms. Plans share the form of a constant of the session's graph;
    /// one that was made for this plan, under whatever name, is its own.
    fn pack_key(&self, at: usize) -> String {
        let node = self.graph.node(self.id);
        let device = self.device.full_name();
        let source = node.inputs[at].node;
        if self.graph.shares(&self.base, self.id) && self.graph.shares(&self.base, source) {
            return format!("{}/{at}/{device}", node.name);
        }
        format!("{}/{at}/{device}/{}", node.name, self.own_graph)
    }

    fn spec<'a>(&'a self, def: &'a Arc<KernelDef>, shapes: &'a [PartialShape]) -> KernelSpec<'a> {
        let node = self.graph.node(self.id);
        KernelSpec {
            def,
            op: &node.op,
            node: &node.name,
            attrs: &node.attrs,
            signature: &node.signature,
            input_shapes: shapes,
            constants: &self.constants,
            device: Some(&self.device),
        }
    }

    /// Whether a kernel takes the node with these shapes. Where all are known, it has to say.
    pub fn supports(&self, def: &Arc<KernelDef>, shapes: &[PartialShape]) -> SupportAnswer {
        let _knobs = KnobScope::enter(&self.knobs);
        let known = shapes.iter().all(|shape| shape.full().is_some());
        match self.spec(def, shapes).supports() {
            Ok(SupportAnswer::DependsOnShapes) if known => {
                SupportAnswer::No("it depends on shapes, and was asked with all of them".to_owned())
            }
            Ok(answer) => answer,
            Err(error) => SupportAnswer::No(error.message),
        }
    }

    /// The object of a kernel; one for all plans, and for all shapes, where the op is stateful.
    fn create(
        &self,
        def: &Arc<KernelDef>,
        shapes: &[PartialShape],
    ) -> Result<Arc<KernelInstance>, KernelError> {
        let node = self.graph.node(self.id);
        if !node.op.stateful {
            return self.make(def, shapes);
        }
        let device = self.device.full_name();
        self.kernels.stateful(&node.name, device, def, || self.make(def, &self.shapes))
    }

    /// The node.
    pub fn node(&self) -> &Node {
        self.graph.node(self.id)
    }

    /// The device.
    pub fn device(&self) -> &PluginDevice {
        &self.device
    }

    /// The session's knobs.
    pub fn knobs(&self) -> &Knobs {
        &self.knobs
    }

    /// The value of an input that is the same in every step.
    pub fn constant(&self, input: usize) -> Option<&Tensor> {
        self.constants.get(input)?.as_ref()
    }

    /// Makes an object of a kernel.
    pub fn make(
        &self,
        def: &Arc<KernelDef>,
        shapes: &[PartialShape],
    ) -> Result<Arc<KernelInstance>, KernelError> {
        let _knobs = KnobScope::enter(&self.knobs);
        let mut made = KernelInstance::create(&self.spec(def, shapes))?;
        // Forms of constants are shared by the plans of the session.
        for (at, constant) in self.constants.iter().enumerate() {
            let Some(constant) = constant else { continue };
            made.prepack(at as u32, constant, &self.kernels.packed, &self.pack_key(at))?;
        }
        Ok(Arc::new(made))
    }

    /// The kernel object that was chosen; or the table from which each shape gets its own.
    pub fn choice(self, chosen: &Chosen) -> Result<Choice, RuntimeError> {
        if !chosen.per_shape.is_empty() {
            let info = self.spec(&chosen.kernel, &self.shapes).node_info();
            let kernels = chosen.per_shape.clone();
            let measured = chosen.measured;
            let maker = Box::new(Open { site: Arc::new(self), kernels, measured });
            return Ok(Choice::PerShape(PerShape::new(info, &chosen.per_shape, maker)));
        }
        let made = self.create(&chosen.kernel, &self.shapes).map_err(|error| {
            let node = self.graph.node(self.id);
            RuntimeError::Kernel {
                node: node.name.clone(),
                op: node.op.name.clone(),
                device: self.device.name().to_string(),
                error,
            }
        })?;
        if !self.host_checks(&chosen.kernel) {
            return Ok(Choice::Made(made));
        }
        let maker = Box::new(Checked { site: self, made: Arc::clone(&made) });
        Ok(Choice::PerShape(PerShape::checked(made, maker)))
    }

    /// Runs the shape function with shapes that a step found, and what is known of values.
    fn check(&self, shapes: &[PartialShape]) -> Result<(), KernelError> {
        let (node, mut symbols) = (self.node(), Symbols::default());
        let known = shapes.iter().zip(&self.constants).map(|(shape, constant)| match constant {
            Some(constant) => ValueInfo::of_constant(constant.clone()),
            None => ValueInfo::of_shape(shape, &mut symbols),
        });
        let known: Vec<ValueInfo> = known.collect();
        let inputs: Vec<&ValueInfo> = known.iter().collect();
        infer(&node.op, &node.attrs, &inputs, &mut symbols).map(drop)
    }

    /// Whether the host runs the shape function as steps run: its kernel does not check, and before a step not all
    /// shapes are known.
    fn host_checks(&self, def: &KernelDef) -> bool {
        let op = &self.graph.node(self.id).op;
        let has_function = op.shape.run.is_some() || op.remote.is_some();
        !def.checks_shapes && has_function && self.shapes.iter().any(|shape| shape.full().is_none())
    }
}

/// A kernel that leaves the check of its shapes to the host.
struct Checked {
    site: Site,
    made: Arc<KernelInstance>,
}

impl MakeKernel for Checked {
    fn make(&self, shapes: &[PartialShape]) -> Result<Arc<KernelInstance>, KernelError> {
        self.site.check(shapes)?;
        Ok(Arc::clone(&self.made))
    }
}

/// A choice that is open until the shapes are known.
struct Open {
    site: Arc<Site>,
    /// In the order in which they are asked.
    kernels: Vec<Arc<KernelDef>>,
    /// Under policy `measured`: among those that take the shapes, the fastest runs.
    measured: Option<Wish>,
}

impl Open {
    fn create(
        &self,
        def: &Arc<KernelDef>,
        shapes: &[PartialShape],
    ) -> Result<Arc<KernelInstance>, KernelError> {
        let named = |error: KernelError| {
            KernelError::new(
                error.code,
                format!("{def} takes these shapes, and: {}", error.message),
            )
        };
        self.site.create(def, shapes).map_err(named)
    }
}

impl Open {
    /// The fastest of the kernels that take the shapes, if there are several and their times are known within the
    /// budget.
    fn fastest(&self, shapes: &[PartialShape]) -> Option<Arc<KernelDef>> {
        let wish = self.measured?;
        let known: Vec<Shape> = shapes.iter().map(PartialShape::full).collect::<Option<_>>()?;
        let takes = |def: &&Arc<KernelDef>| self.site.supports(def, shapes) == SupportAnswer::Yes;
        let rivals: Vec<Arc<KernelDef>> = self.kernels.iter().filter(takes).cloned().collect();
        if rivals.len() < 2 {
            return None;
        }
        let times = measured::times(&self.site, &rivals, &known, wish, true)?;
        rivals.get(fastest(&times)?).cloned()
    }
}

impl MakeKernel for Open {
    fn make(&self, shapes: &[PartialShape]) -> Result<Arc<KernelInstance>, KernelError> {
        if self.kernels.iter().any(|def| self.site.host_checks(def)) {
            self.site.check(shapes)?;
        }
        if let Some(def) = self.fastest(shapes) {
            return self.create(&def, shapes);
        }
        let mut refused = String::new();
        for def in &self.kernels {
            let reason = match self.site.supports(def, shapes) {
                SupportAnswer::Yes => return self.create(def, shapes),
                SupportAnswer::No(reason) => reason,
                // Of an input that is a reference no shape is ever known.
                SupportAnswer::DependsOnShapes => {
                    "it depends on shapes that no step knows".to_owned()
                }
            };
            let _ = write!(refused, "\n  {def}: supports says no: {reason}");
        }
        let shapes: Vec<String> = shapes.iter().map(PartialShape::to_string).collect();
        Err(KernelError::new(
            Code::NOT_FOUND,
            format!(
                "no kernel takes inputs of shapes {} on {}:{refused}",
                shapes.join(", "),
                self.site.device.device_type()
            ),
        ))
    }
}
