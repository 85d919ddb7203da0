//! A kernel on a device: its nodes, instances and calls.

use super::Examiner;
use crate::{
    check::{case::CheckCase, subject::Subject},
    harness::{Form, own_copy},
    node::{Node, Refusal, Stage},
};
use std::{ffi::c_void, sync::Arc};
use tenon_framework::{
    Code, Tensor,
    attr::AttrMap,
    device::base::DeviceBase,
    knob::Knobs,
    registry::{KernelDef, SupportAnswer},
};
use tenon_runtime::host::{
    call::StepEnv,
    devices::PluginDevice,
    instance::{KernelInstance, PackCache, call_once},
    memory::{
        HostMemory,
        guarded::{Guard, Role},
    },
    pool::ThreadPool,
    resources::Resources,
};

/// A subject on the examiner's device.
pub(super) struct Site<'a> {
    examiner: &'a Examiner,
    pub subject: &'a Subject,
}

impl<'a> Site<'a> {
    pub fn new(examiner: &'a Examiner, subject: &'a Subject) -> Site<'a> {
        Site { examiner, subject }
    }

    pub fn device(&self) -> &'a Arc<PluginDevice> {
        &self.examiner.device
    }

    /// The values of all knobs.
    pub fn knobs(&self) -> &'a Arc<Knobs> {
        &self.examiner.knobs
    }

    /// Whether this machine and this device can run the kernel.
    pub fn is_suited(&self) -> Result<(), String> {
        let kernel = &self.subject.kernel;
        if !kernel.serves(self.device().device_type()) {
            return Err(format!("{kernel} does not serve {}", self.device().full_name()));
        }
        let features = self.examiner.runtime.features();
        match kernel.features.iter().find(|feature| !features.contains(feature)) {
            Some(feature) => Err(format!("this machine has no {feature}")),
            None => Ok(()),
        }
    }

    /// The other kernels of the op that the device and the machine can run, for the subject's types.
    pub fn others(&self) -> Vec<Arc<KernelDef>> {
        let (registry, own) = (self.examiner.runtime.registry(), &self.subject.kernel);
        let features = self.examiner.runtime.features();
        let takes = |kernel: &KernelDef| {
            self.subject.types.iter().all(|(name, value)| {
                let dtype = value.as_type();
                kernel
                    .types_of(name)
                    .is_none_or(|types| dtype.is_none_or(|own| types.contains(&own)))
            })
        };
        let runs = |kernel: &&Arc<KernelDef>| {
            kernel.serves(self.device().device_type())
                && kernel.remote.is_none()
                && !Arc::ptr_eq(kernel, own)
                && kernel.features.iter().all(|feature| features.contains(feature))
                && takes(kernel)
        };
        registry.kernels_of(&self.subject.op.name).iter().filter(runs).cloned().collect()
    }

    /// Whether two calls on the same inputs may give different results, because of state between them.
    pub fn is_stateful(&self) -> bool {
        self.subject.op.stateful
    }

    /// An environment without state of other calls.
    pub fn env(&self) -> StepEnv {
        self.env_on(self.examiner.runtime.pool())
    }

    /// An environment with other threads.
    pub fn env_on(&self, pool: &Arc<ThreadPool>) -> StepEnv {
        StepEnv::new(Arc::clone(pool), Arc::new(Resources::new()))
    }

    /// The node of a case.
    pub fn node(&self, case: &CheckCase, inputs: &[Tensor], form: Form) -> Result<Node, Refusal> {
        self.node_with(case, case.attrs.clone(), inputs, form)
    }

    /// The node of a case with other attributes.
    pub fn node_with(
        &self,
        case: &CheckCase,
        attrs: AttrMap,
        inputs: &[Tensor],
        form: Form,
    ) -> Result<Node, Refusal> {
        let constant = |at: usize| {
            form == Form::Packed || case.inputs.get(at).is_some_and(|input| input.constant)
        };
        let node = Node::new(&self.subject.op, &case.name, attrs, inputs, constant);
        let mut node = node.map_err(|error| Refusal::definition(&error))?;
        if form == Form::Unknown {
            node.forget_inputs();
        }
        Ok(node)
    }

    /// Asks the kernel whether it takes the node, as a session does before it makes one.
    pub fn supports(&self, node: &Node) -> Result<(), Refusal> {
        let refused =
            |message| Refusal { stage: Stage::Select, code: Code::UNIMPLEMENTED, message };
        let spec = node.spec(&self.subject.kernel, Some(self.device()), self.knobs());
        match spec.supports().map_err(Refusal::at(Stage::Select))? {
            SupportAnswer::Yes => Ok(()),
            SupportAnswer::DependsOnShapes if node.shapes_are_known() => Ok(()),
            SupportAnswer::DependsOnShapes => {
                Err(refused("it depends on shapes that are not known".to_owned()))
            }
            SupportAnswer::No(reason) => Err(refused(reason)),
        }
    }

    /// The kernel of a node, constants packed where all are known.
    pub fn instance(&self, node: &Node, form: Form) -> Result<KernelInstance, Refusal> {
        self.supports(node)?;
        let spec = node.spec(&self.subject.kernel, Some(self.device()), self.knobs());
        let mut instance = KernelInstance::create(&spec).map_err(Refusal::at(Stage::Create))?;
        if form == Form::Packed {
            let cache = PackCache::new();
            for (at, constant) in node.constants.iter().enumerate() {
                let Some(constant) = constant else { continue };
                let packed = instance.prepack(at as u32, constant, &cache, &node.name);
                packed.map_err(Refusal::at(Stage::Create))?;
            }
        }
        Ok(instance)
    }

    /// Makes the kernel and calls it once.
    pub fn run(
        &self,
        case: &CheckCase,
        inputs: &[Tensor],
        form: Form,
    ) -> Result<Vec<Tensor>, Refusal> {
        self.run_in(case, inputs, form, &self.env())
    }

    /// As [`Site::run`], in an environment of the caller's.
    pub fn run_in(
        &self,
        case: &CheckCase,
        inputs: &[Tensor],
        form: Form,
        env: &StepEnv,
    ) -> Result<Vec<Tensor>, Refusal> {
        let node = self.node(case, inputs, form)?;
        let instance = self.instance(&node, form)?;
        call_once(&instance, inputs, env).map_err(Refusal::at(Stage::Compute))
    }
}

/// Tensors that are read-only for as long as this lives, where the process guards its memory. A kernel that
/// writes to one crashes.
pub(super) struct ReadOnly {
    tensors: Vec<Tensor>,
}

impl ReadOnly {
    pub fn new(tensors: Vec<Tensor>) -> ReadOnly {
        for (at, tensor) in tensors.iter().enumerate() {
            each_guarded(tensor, |guard, data| {
                // One that is not protected is compared byte by byte all the same.
                let _ = guard.protect(data, Role::Input(at as u32));
            });
        }
        ReadOnly { tensors }
    }

    /// Copies without another holder.
    pub fn copies(tensors: &[Tensor]) -> Option<ReadOnly> {
        Some(ReadOnly::new(copies(tensors)?))
    }

    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        // Variables may have kept one: they write to it later.
        for tensor in &self.tensors {
            each_guarded(tensor, |guard, data| {
                let _ = guard.release(data);
            });
        }
    }
}

fn each_guarded(tensor: &Tensor, body: impl FnOnce(&Guard, *const c_void)) {
    if let Some(guard) = HostMemory::guarded().filter(|_| tensor.is_on_host()) {
        body(guard, tensor.buffer().data());
    }
}

/// Copies of tensors, without another holder; `None` when one cannot be copied.
pub(super) fn copies(tensors: &[Tensor]) -> Option<Vec<Tensor>> {
    tensors.iter().map(own_copy).collect()
}

/// Says which outputs guarded buffers are, except for those that are inputs at the same time.
pub(super) fn name_outputs(outputs: &[Tensor], inputs: &[Tensor]) {
    let is_input = |data| inputs.iter().any(|input| input.buffer().data() == data);
    for (at, output) in outputs.iter().enumerate() {
        if !is_input(output.buffer().data()) {
            each_guarded(output, |guard, data| guard.name(data, Role::Output(at as u32)));
        }
    }
}
