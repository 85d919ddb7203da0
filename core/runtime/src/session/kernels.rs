//! Which kernel a node gets, and the kernel objects.

use super::{Current, Inner, compile::Placed};
use crate::error::RuntimeError;
use std::{collections::HashMap, sync::Arc};
use tenon_framework::{
    KernelError, PartialShape, Tensor,
    attr::AttrMap,
    device::base::DeviceBase,
    registry::{Explanation, KernelDef, KernelQuery, SupportAnswer, candidates},
    sync::{Mutex, rank},
};
use tenon_graph::{DeviceEntry, DeviceView, NodeId, NodeQuery};
use tenon_host::{
    KnobScope,
    devices::PluginDevice,
    instance::{KernelInstance, KernelSpec, PackCache},
};

/// The kernel that a node gets.
#[derive(Clone)]
pub(super) struct Chosen {
    pub kernel: Arc<KernelDef>,
}

/// Ops that the executor is, or that only order others.
pub(super) fn is_built_in(op: &str) -> bool {
    matches!(
        op,
        "NoOp"
            | "ControlTrigger"
            | "Switch"
            | "RefSwitch"
            | "Merge"
            | "RefMerge"
            | "Enter"
            | "RefEnter"
            | "Exit"
            | "RefExit"
            | "NextIteration"
            | "RefNextIteration"
            | "LoopCond"
            | "_Arg"
            | "_Retval"
            | "_Send"
            | "_Recv"
    )
}

/// The devices of a session's runtime, as placement sees them.
pub(super) struct Devices<'s> {
    session: &'s Inner,
    current: &'s Current,
    local: Vec<Arc<PluginDevice>>,
    entries: Vec<DeviceEntry>,
}

impl<'s> Devices<'s> {
    pub fn new(session: &'s Inner, current: &'s Current) -> Devices<'s> {
        let local = session.runtime.devices().devices();
        let entries = local
            .iter()
            .map(|device| DeviceEntry {
                name: device.name().clone(),
                device_type: device.device_type().to_owned(),
                priority: current
                    .registry
                    .device_type(device.device_type())
                    .map_or(0, |device_type| device_type.priority),
                is_local: true,
                host_memory: device.info().host_memory,
            })
            .collect();
        Devices { session, current, local, entries }
    }

    /// The devices, by position.
    pub fn local(&self) -> &[Arc<PluginDevice>] {
        &self.local
    }

    /// Where feeds enter and fetches leave: the first device that computes in host memory.
    pub fn client(&self) -> usize {
        self.entries.iter().position(|entry| entry.host_memory).unwrap_or(0)
    }

    /// The candidates for a node on a device type, asked without its shapes.
    pub fn candidates(&self, query: NodeQuery<'_>, device_type: &str) -> Explanation {
        explain(self.session, self.current, query.op, query.attrs, device_type, &mut |_| {
            SupportAnswer::Yes
        })
    }
}

impl DeviceView for Devices<'_> {
    fn devices(&self) -> &[DeviceEntry] {
        &self.entries
    }

    fn has_kernel(&self, node: NodeQuery<'_>, device_type: &str) -> Result<(), String> {
        if is_built_in(node.op) {
            return Ok(());
        }
        match self.candidates(node, device_type).result() {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The candidates for an op on a device type, and the winner.
fn explain(
    session: &Inner,
    current: &Current,
    op: &str,
    attrs: &AttrMap,
    device_type: &str,
    supports: &mut dyn FnMut(&KernelDef) -> SupportAnswer,
) -> Explanation {
    let own = attrs.get("_kernel").and_then(|value| value.as_text()).map(str::to_owned);
    let features = session.runtime.features();
    let forced = session.options.kernel_label.as_deref();
    let ask = |label: Option<&str>, supports: &mut dyn FnMut(&KernelDef) -> SupportAnswer| {
        let query = KernelQuery { op, device_type, attrs, features, label };
        candidates(&current.registry, &query, supports)
    };
    if own.is_none() && forced.is_some() {
        // A label asked for by the session holds where there is such a kernel.
        let explanation = ask(forced, supports);
        if explanation.winner.is_some() {
            return explanation;
        }
    }
    ask(own.as_deref(), supports)
}

/// What is known of a node's inputs.
fn input_shapes(placed: &Placed<'_>, id: NodeId) -> Vec<PartialShape> {
    let node = placed.current.graph.node(id);
    node.inputs.iter().map(|&input| placed.shapes.seen(&placed.sub, input)).collect()
}

/// The candidates for a placed node, asked with its shapes.
pub(super) fn explain_node(placed: &Placed<'_>, id: NodeId) -> Explanation {
    let node = placed.current.graph.node(id);
    let device = placed.device(id);
    let shapes = input_shapes(placed, id);
    let attrs = node.attrs.attrs();
    let _knobs = KnobScope::enter(&placed.current.knobs);
    explain(
        placed.session,
        placed.current,
        &node.op.name,
        attrs,
        device.device_type(),
        &mut |kernel| {
            let def = Arc::new(kernel.clone());
            let spec = spec(placed, id, &def, device, &shapes, &[]);
            let known = shapes.iter().all(|shape| shape.full().is_some());
            match spec.supports() {
                Ok(SupportAnswer::DependsOnShapes) if !known => SupportAnswer::No(
                    "it depends on shapes that are not known before the step runs".to_owned(),
                ),
                Ok(answer) => answer,
                Err(error) => SupportAnswer::No(error.message),
            }
        },
    )
}

fn spec<'a>(
    placed: &'a Placed<'_>,
    id: NodeId,
    def: &'a Arc<KernelDef>,
    device: &'a Arc<PluginDevice>,
    input_shapes: &'a [PartialShape],
    constants: &'a [Option<Tensor>],
) -> KernelSpec<'a> {
    let node = placed.current.graph.node(id);
    KernelSpec {
        def,
        op: &node.op,
        node: &node.name,
        attrs: &node.attrs,
        signature: &node.signature,
        input_shapes,
        constants,
        device: Some(device),
    }
}

/// The kernel of a placed node; `None` for one that only orders others.
pub(super) fn choose(placed: &Placed<'_>, id: NodeId) -> Result<Option<Chosen>, RuntimeError> {
    let node = placed.current.graph.node(id);
    if is_built_in(&node.op.name) {
        return Ok(None);
    }
    let explanation = explain_node(placed, id);
    match explanation.result() {
        Ok(kernel) => Ok(Some(Chosen { kernel: Arc::clone(kernel) })),
        Err(error) => Err(RuntimeError::NoKernel {
            node: node.name.clone(),
            op: node.op.name.clone(),
            message: error.to_string(),
        }),
    }
}

/// The kernel objects that live as long as the session: those of stateful nodes.
pub(super) struct KernelCache {
    stateful: Mutex<HashMap<(String, String), Arc<KernelInstance>>>,
    packed: PackCache,
}

impl Default for KernelCache {
    fn default() -> KernelCache {
        KernelCache {
            stateful: Mutex::ranked(rank::LEAF, HashMap::new()),
            packed: PackCache::new(),
        }
    }
}

impl KernelCache {
    /// Forgets them; plans that use them keep theirs.
    pub fn clear(&self) {
        self.stateful.lock().clear();
    }
}

/// The kernel object of a node: one for all plans where the op is stateful.
pub(super) fn instance(
    placed: &Placed<'_>,
    id: NodeId,
    chosen: &Chosen,
) -> Result<Arc<KernelInstance>, RuntimeError> {
    let node = placed.current.graph.node(id);
    let device = placed.device(id);
    let key = (node.name.clone(), device.name().to_string());
    let cache = &placed.session.kernels.stateful;
    if node.op.stateful
        && let Some(instance) = cache.lock().get(&key)
    {
        return Ok(Arc::clone(instance));
    }
    let shapes = input_shapes(placed, id);
    let constants: Vec<_> = node
        .inputs
        .iter()
        .map(|&input| match placed.sub.feed_of(input) {
            Some(_) => None,
            None => placed.shapes.constant(input).cloned(),
        })
        .collect();
    let spec = spec(placed, id, &chosen.kernel, device, &shapes, &constants);
    let _knobs = KnobScope::enter(&placed.current.knobs);
    let made = KernelInstance::create(&spec).and_then(|mut made| {
        prepack(placed, id, &mut made, &constants)?;
        Ok(made)
    });
    let made = made.map_err(|error| RuntimeError::Kernel {
        node: node.name.clone(),
        op: node.op.name.clone(),
        device: device.name().to_string(),
        error,
    })?;
    let made = Arc::new(made);
    if node.op.stateful {
        return Ok(Arc::clone(cache.lock().entry(key).or_insert(made)));
    }
    Ok(made)
}

/// Offers constant inputs to the kernel; forms are shared by the plans of the session.
fn prepack(
    placed: &Placed<'_>,
    id: NodeId,
    instance: &mut KernelInstance,
    constants: &[Option<Tensor>],
) -> Result<(), KernelError> {
    let node = placed.current.graph.node(id);
    for (at, constant) in constants.iter().enumerate() {
        let Some(constant) = constant else { continue };
        let key = format!("{}/{at}/{}", node.name, placed.device(id).full_name());
        instance.prepack(at as u32, constant, &placed.session.kernels.packed, &key)?;
    }
    Ok(())
}
