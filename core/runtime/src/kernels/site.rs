//! A node on its device, as its kernels see it: queries for support, and creation of kernel
//! objects.

use super::{KernelCache, can_be_measured, times};
use crate::{
    error::RuntimeError,
    plan::{Choice, MakeKernel, PerShape},
    runtime::Runtime,
    tuning::{Tuner, TuningOptions},
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

/// The properties that the nodes of a step's graph share.
pub(crate) struct Scope {
    /// The knob values for new kernels.
    pub knobs: Arc<Knobs>,
    /// The objects that outlive a plan.
    pub cache: Arc<KernelCache>,
    /// The data for measurement, under policy `measured`.
    pub tuned: Option<Tuned>,
}

/// The data for measurement. It does not hold the runtime, which waits for measurements when it is
/// dropped.
pub(crate) struct Tuned {
    pub tuning_options: TuningOptions,
    pub tuner: Arc<Tuner>,
    pub pool: Arc<ThreadPool>,
    /// The features of this CPU.
    pub features: String,
    registry: Arc<Registry>,
}

impl Tuned {
    pub fn new(
        runtime: &Runtime,
        registry: &Arc<Registry>,
        tuning_options: TuningOptions,
    ) -> Tuned {
        Tuned {
            tuning_options,
            tuner: Arc::clone(runtime.tuner()),
            pool: Arc::clone(runtime.pool()),
            features: runtime.features().iter().collect::<Vec<_>>().join(" "),
            registry: Arc::clone(registry),
        }
    }

    /// The name of a kernel, with the build of its plugin: another build counts as another kernel.
    pub fn kernel_name(&self, kernel: &KernelDef) -> String {
        let info = self.registry.plugins().find(|info| info.id == kernel.plugin);
        let build = info.map_or_else(String::new, |info| match info.digest.get(..16) {
            Some(digest) => digest.to_owned(),
            None => info.version.clone(),
        });
        format!("{}@{build} {kernel}", kernel.plugin_name)
    }
}

/// A node with its device.
pub(crate) struct Site {
    name: String,
    op: PartOp,
    signature: Signature,
    device: Arc<PluginDevice>,
    scope: Arc<Scope>,
}

impl Site {
    /// Creates the site of a node with this name on this device.
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

    /// Returns the partition op.
    pub fn into_op(self) -> PartOp {
        self.op
    }

    /// The name of the node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The partition op of the node.
    pub fn op(&self) -> &PartOp {
        &self.op
    }

    /// The types of the inputs and outputs.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The shapes of the inputs, as far as they are known before a step.
    pub fn shapes(&self) -> &[PartialShape] {
        &self.op.input_shapes
    }

    /// The data for measurement, under policy `measured`.
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

    /// Whether a kernel supports the node with these shapes. If all shapes are known, the kernel
    /// must answer yes or no.
    pub fn supports(&self, def: &Arc<KernelDef>, shapes: &[PartialShape]) -> SupportAnswer {
        let known = shapes.iter().all(|shape| shape.full().is_some());
        match self.spec(def, shapes).supports() {
            Ok(SupportAnswer::DependsOnShapes) if known => {
                SupportAnswer::No("its answer depends on shapes, although all are known".to_owned())
            }
            Ok(answer) => answer,
            Err(error) => SupportAnswer::No(error.message),
        }
    }

    /// The object of a kernel. For a stateful op it is shared by all plans and shapes.
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

    /// Creates an object of a kernel.
    pub fn make(
        &self,
        def: &Arc<KernelDef>,
        shapes: &[PartialShape],
    ) -> Result<Arc<KernelInstance>, KernelError> {
        let mut made = KernelInstance::create(&self.spec(def, shapes))?;
        // The plans of the session share packed forms of constants.
        let device = self.device.full_name();
        let named = self.op.constants.iter().zip(&self.op.keys);
        for ((constant, key), at) in named.zip(0..) {
            let (Some(constant), Some(key)) = (constant, key) else { continue };
            made.prepack(at, constant, &self.scope.cache.packed, &format!("{key}/{device}"))?;
        }
        Ok(Arc::new(made))
    }

    /// The object of the chosen kernel, or the table that creates one per shape.
    pub fn choice(self, chosen: &KernelChoice) -> Result<Choice, RuntimeError> {
        if !chosen.per_shape.is_empty() {
            let info = self.spec(&chosen.kernel, self.shapes()).node_info();
            let kernels = chosen.per_shape.clone();
            let measured = self.tuned().map(|tuned| tuned.tuning_options);
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

    /// Runs the shape function with the actual shapes and the constant values.
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

    /// Whether the host runs the shape function at run time, because the kernel does not check
    /// shapes and not all of them are known before a step.
    fn host_checks(&self, def: &KernelDef) -> bool {
        let op = &self.op.def;
        let has_function = op.shape.run.is_some() || op.remote.is_some();
        !def.checks_shapes
            && has_function
            && self.shapes().iter().any(|shape| shape.full().is_none())
    }
}

/// A kernel that leaves the shape check to the host.
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
    /// The candidates, in the order in which they are asked.
    kernels: Vec<Arc<KernelDef>>,
    /// Under policy `measured`: the fastest of the kernels that support the shapes is chosen.
    measured: Option<TuningOptions>,
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
                format!("{def} supports these shapes, but: {}", error.message),
            )
        };
        self.site.create(def, shapes).map_err(named)
    }
}

impl Open {
    /// The fastest kernel that supports the shapes, if there are several and their times are known
    /// within the budget.
    fn fastest(&self, shapes: &[PartialShape]) -> Option<Arc<KernelDef>> {
        let tuning_options = self.measured?;
        let known: Vec<Shape> = shapes.iter().map(PartialShape::full).collect::<Option<_>>()?;
        let takes = |def: &&Arc<KernelDef>| self.site.supports(def, shapes) == SupportAnswer::Yes;
        let rivals: Vec<Arc<KernelDef>> = self.kernels.iter().filter(takes).cloned().collect();
        if rivals.len() < 2 {
            return None;
        }
        let times = times(&self.site, &rivals, &known, tuning_options, true)?;
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
                // The shape of a reference input is never known.
                SupportAnswer::DependsOnShapes => {
                    "its answer depends on shapes that are never known".to_owned()
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
