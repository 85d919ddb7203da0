//! A node on its device as its kernels see it: whether they take it, and the objects that are made for it.

use super::{KernelCache, can_be_measured, times};
use crate::{
    error::RuntimeError,
    plan::{Choice, MakeKernel, PerShape},
    runtime::Runtime,
    tuning::{Tuner, Wish},
};
use std::{fmt::Write, sync::Arc};
use tenon_framework::{
    Code, KernelError, PartialShape, Shape, Tensor,
    device::base::DeviceBase,
    infer::{Symbols, ValueInfo, infer},
    knob::Knobs,
    op::Signature,
    registry::{KernelChoice, KernelDef, Registry, SupportAnswer, fastest},
};
use tenon_graph::PartOp;
use tenon_host::{
    devices::PluginDevice,
    instance::{KernelInstance, KernelSpec},
    pool::ThreadPool,
};

/// What the nodes of a step's graph have in common.
pub(crate) struct Scope {
    /// The values that kernels see as they are made.
    pub knobs: Arc<Knobs>,
    /// Objects that outlive a plan.
    pub cache: Arc<KernelCache>,
    /// Under policy `measured`: what times are kept by.
    pub tuned: Option<Tuned>,
}

/// What measurements need. It does not hold the runtime, which waits for them as it ends.
pub(crate) struct Tuned {
    pub wish: Wish,
    pub tuner: Arc<Tuner>,
    pub pool: Arc<ThreadPool>,
    /// Features of this CPU.
    pub features: String,
    registry: Arc<Registry>,
}

impl Tuned {
    pub fn new(runtime: &Runtime, registry: &Arc<Registry>, wish: Wish) -> Tuned {
        Tuned {
            wish,
            tuner: Arc::clone(runtime.tuner()),
            pool: Arc::clone(runtime.pool()),
            features: runtime.features().iter().collect::<Vec<_>>().join(" "),
            registry: Arc::clone(registry),
        }
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

/// A node on its device.
pub(crate) struct Site {
    name: String,
    op: PartOp,
    signature: Signature,
    device: Arc<PluginDevice>,
    scope: Arc<Scope>,
}

impl Site {
    /// A node of this name, on this device.
    pub fn new(
        name: &str,
        op: PartOp,
        signature: &Signature,
        device: &Arc<PluginDevice>,
        scope: &Arc<Scope>,
    ) -> Site {
        Site {
            name: name.to_owned(),
            op,
            signature: signature.clone(),
            device: Arc::clone(device),
            scope: Arc::clone(scope),
        }
    }

    /// Gives what the node has of its own.
    pub fn into_op(self) -> PartOp {
        self.op
    }

    /// Name of the node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the node has of its own.
    pub fn op(&self) -> &PartOp {
        &self.op
    }

    /// Types of its inputs and outputs.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// What is known of the inputs' shapes before a step.
    pub fn shapes(&self) -> &[PartialShape] {
        &self.op.input_shapes
    }

    /// Under policy `measured`: what times are kept by.
    pub fn tuned(&self) -> Option<&Tuned> {
        self.scope.tuned.as_ref()
    }

    fn spec<'a>(&'a self, def: &'a Arc<KernelDef>, shapes: &'a [PartialShape]) -> KernelSpec<'a> {
        KernelSpec {
            def,
            op: &self.op.def,
            node: &self.name,
            attrs: &self.op.attrs,
            signature: &self.signature,
            input_shapes: shapes,
            constants: &self.op.constants,
            device: Some(&self.device),
            knobs: &self.scope.knobs,
        }
    }

    /// Whether a kernel takes the node with these shapes. Where all are known, it has to say.
    pub fn supports(&self, def: &Arc<KernelDef>, shapes: &[PartialShape]) -> SupportAnswer {
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
        if !self.op.def.stateful {
            return self.make(def, shapes);
        }
        let device = self.device.full_name();
        let cache = &self.scope.cache;
        cache.stateful(&self.name, device, def, || self.make(def, self.shapes()))
    }

    /// The device.
    pub fn device(&self) -> &PluginDevice {
        &self.device
    }

    /// The session's knobs.
    pub fn knobs(&self) -> &Knobs {
        &self.scope.knobs
    }

    /// The value of an input that is the same in every step.
    pub fn constant(&self, input: usize) -> Option<&Tensor> {
        self.op.constants.get(input)?.as_ref()
    }

    /// Makes an object of a kernel.
    pub fn make(
        &self,
        def: &Arc<KernelDef>,
        shapes: &[PartialShape],
    ) -> Result<Arc<KernelInstance>, KernelError> {
        let mut made = KernelInstance::create(&self.spec(def, shapes))?;
        // Forms of constants are shared by the plans of the session.
        let device = self.device.full_name();
        let named = self.op.constants.iter().zip(&self.op.keys);
        for ((constant, key), at) in named.zip(0..) {
            let (Some(constant), Some(key)) = (constant, key) else { continue };
            made.prepack(at, constant, &self.scope.cache.packed, &format!("{key}/{device}"))?;
        }
        Ok(Arc::new(made))
    }

    /// The kernel object that was chosen; or the table from which each shape gets its own.
    pub fn choice(self, chosen: &KernelChoice) -> Result<Choice, RuntimeError> {
        if !chosen.per_shape.is_empty() {
            let info = self.spec(&chosen.kernel, self.shapes()).node_info();
            let kernels = chosen.per_shape.clone();
            let measured = self.tuned().map(|tuned| tuned.wish);
            let measured = measured.filter(|_| can_be_measured(&self.op, &self.signature));
            let maker = Box::new(Open { site: Arc::new(self), kernels, measured });
            return Ok(Choice::PerShape(PerShape::new(info, &chosen.per_shape, maker)));
        }
        let made =
            self.create(&chosen.kernel, self.shapes()).map_err(|error| RuntimeError::Kernel {
                node: self.name.clone(),
                op: self.op.def.name.clone(),
                device: self.device.name().to_string(),
                error,
            })?;
        if !self.host_checks(&chosen.kernel) {
            return Ok(Choice::Made(made));
        }
        let maker = Box::new(Checked { site: self, made: Arc::clone(&made) });
        Ok(Choice::PerShape(PerShape::checked(made, maker)))
    }

    /// Runs the shape function with shapes that a step found, and what is known of values.
    fn check(&self, shapes: &[PartialShape]) -> Result<(), KernelError> {
        let mut symbols = Symbols::default();
        let known = shapes.iter().zip(&self.op.constants).map(|(shape, constant)| match constant {
            Some(constant) => ValueInfo::of_constant(constant.clone()),
            None => ValueInfo::of_shape(shape, &mut symbols),
        });
        let known: Vec<ValueInfo> = known.collect();
        let inputs: Vec<&ValueInfo> = known.iter().collect();
        infer(&self.op.def, &self.op.attrs, &inputs, &mut symbols).map(drop)
    }

    /// Whether the host runs the shape function as steps run: its kernel does not check, and before a step not all
    /// shapes are known.
    fn host_checks(&self, def: &KernelDef) -> bool {
        let op = &self.op.def;
        let has_function = op.shape.run.is_some() || op.remote.is_some();
        !def.checks_shapes
            && has_function
            && self.shapes().iter().any(|shape| shape.full().is_none())
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
        let times = times(&self.site, &rivals, &known, wish, true)?;
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
