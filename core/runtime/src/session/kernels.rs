//! Which kernel a node gets, and the kernel objects.

use super::{Current, Inner, compile::Placed, measured, site::Site};
use crate::{error::RuntimeError, tuning::Wish};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tenon_framework::{
    KernelError, PartialShape,
    attr::{AttrMap, AttrValue},
    device::base::DeviceBase,
    registry::{Explanation, KernelDef, KernelQuery, SupportAnswer, candidates, select},
    sync::{Mutex, rank},
};
use tenon_graph::{DeviceEntry, DeviceView, Node, NodeId, NodeQuery};
use tenon_host::{
    KnobScope,
    devices::PluginDevice,
    instance::{KernelInstance, KernelSpec, PackCache},
};

/// The kernel that a node gets.
#[derive(Clone)]
pub(super) struct Chosen {
    /// Where the choice is open: the one that is asked first.
    pub kernel: Arc<KernelDef>,
    /// Where the choice is open: those that are asked for each shape, in order.
    pub per_shape: Vec<Arc<KernelDef>>,
    /// Where the choice is open, under policy `measured`: what is asked of measurement.
    pub measured: Option<Wish>,
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

    /// Whether a device gives buffers back only when a step ends: what is enqueued on a stream may still use them.
    pub fn holds_all(&self, device: usize) -> bool {
        self.local.get(device).is_some_and(|device| device.info().streams)
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
        let any = &mut |_: &Arc<KernelDef>| SupportAnswer::Yes;
        if selected(self.session, self.current, node.op, node.attrs, device_type, any).is_some() {
            return Ok(());
        }
        self.candidates(node, device_type).result().map(drop).map_err(|error| error.to_string())
    }

    fn image_format(&self, device: usize) -> Option<&str> {
        // Kernels of the host take channels first by transposing themselves, each its own images.
        let host = self.entries.get(device).is_some_and(|entry| entry.host_memory);
        let format = self.current.knobs.text("graph", "host_image_format").filter(|_| host);
        format.filter(|format| !format.is_empty())
    }

    fn has_any_kernel(&self, op: &str) -> bool {
        !self.current.registry.kernels_of(op).is_empty()
    }

    fn can_run(&self, node: &Node, inputs: &[PartialShape], device: usize) -> Result<(), String> {
        let Some(device) = self.local.get(device) else {
            return Err(format!("there is no device {device}"));
        };
        if is_built_in(&node.op.name) {
            return Ok(());
        }
        let _knobs = KnobScope::enter(&self.current.knobs);
        let (op, attrs) = (&node.op.name, node.attrs.attrs());
        let supports = |def: &Arc<KernelDef>| {
            let spec = KernelSpec {
                def,
                op: &node.op,
                node: &node.name,
                attrs: &node.attrs,
                signature: &node.signature,
                input_shapes: inputs,
                constants: &[],
                device: Some(device),
            };
            spec.supports().unwrap_or_else(|error| SupportAnswer::No(error.message))
        };
        let kind = device.device_type();
        if selected(self.session, self.current, op, attrs, kind, &mut |def| supports(def)).is_some()
        {
            return Ok(());
        }
        let mut supports = |kernel: &KernelDef| supports(&Arc::new(kernel.clone()));
        let found = explain(self.session, self.current, op, attrs, kind, &mut supports);
        found.result().map(drop).map_err(|error| error.to_string())
    }
}

/// The labels that a node asks for itself, and that the session or the knob does.
fn labels<'a>(
    session: &'a Inner,
    current: &'a Current,
    attrs: &'a AttrMap,
) -> (Option<&'a str>, Option<&'a str>) {
    let own = attrs.get("_kernel").and_then(AttrValue::as_text);
    let by_knob = current.knobs.text("runtime", "kernel_label").filter(|label| !label.is_empty());
    (own, session.options.kernel_label.as_deref().or(by_knob))
}

/// The winner that [`explain`] finds, and the kernels that are asked for each shape, without the reasons, which cost
/// most of the time. `None` where there is none, or where a label is asked for that holds for some nodes only.
fn selected(
    session: &Inner,
    current: &Current,
    op: &str,
    attrs: &AttrMap,
    device_type: &str,
    supports: &mut dyn FnMut(&Arc<KernelDef>) -> SupportAnswer,
) -> Option<(Arc<KernelDef>, Vec<Arc<KernelDef>>)> {
    let (own, forced) = labels(session, current, attrs);
    if own.is_none() && forced.is_some() {
        return None;
    }
    let features = session.runtime.features();
    let query = KernelQuery { op, device_type, attrs, features, label: own };
    select(&current.registry, &query, supports)
}

/// The candidates for an op on a device type, and the winner.
pub(super) fn explain(
    session: &Inner,
    current: &Current,
    op: &str,
    attrs: &AttrMap,
    device_type: &str,
    supports: &mut dyn FnMut(&KernelDef) -> SupportAnswer,
) -> Explanation {
    let (own, forced) = labels(session, current, attrs);
    let features = session.runtime.features();
    let ask = |label: Option<&str>, supports: &mut dyn FnMut(&KernelDef) -> SupportAnswer| {
        let query = KernelQuery { op, device_type, attrs, features, label };
        candidates(&current.registry, &query, supports)
    };
    if own.is_none() && forced.is_some() {
        // A label asked for by the session, or by the knob, holds where such a kernel takes the node.
        let labelled = ask(forced, supports);
        return labelled.or(ask(None, supports));
    }
    ask(own, supports)
}

/// The candidates for a placed node, asked with what is known of its shapes. Under policy `measured` with what is known
/// of their times, which are measured only where `may_measure` says so.
pub(super) fn explain_node(placed: &Placed<'_>, id: NodeId, may_measure: bool) -> Explanation {
    let node = placed.graph.node(id);
    let device = placed.device(id);
    let site = Site::new(placed, id);
    let mut explanation = explain(
        placed.session,
        placed.current,
        &node.op.name,
        node.attrs.attrs(),
        device.device_type(),
        &mut |kernel| site.supports(&Arc::new(kernel.clone()), &site.shapes),
    );
    if !device.info().host_memory {
        explanation.keep_same_memory();
    }
    measured::choose(placed, id, &mut explanation, may_measure);
    explanation
}

/// The kernel of a placed node; `None` for one that only orders others.
pub(super) fn choose(placed: &Placed<'_>, id: NodeId) -> Result<Option<Chosen>, RuntimeError> {
    let node = placed.graph.node(id);
    if is_built_in(&node.op.name) {
        return Ok(None);
    }
    let device = placed.device(id);
    let measured = placed.current.wish;
    if device.info().host_memory && measured.is_none() {
        let site = Site::new(placed, id);
        let (op, attrs, kind) = (&node.op.name, node.attrs.attrs(), device.device_type());
        let supports = &mut |kernel: &Arc<KernelDef>| site.supports(kernel, &site.shapes);
        let found = selected(placed.session, placed.current, op, attrs, kind, supports);
        if let Some((kernel, per_shape)) = found {
            return Ok(Some(Chosen { kernel, per_shape, measured: None }));
        }
    }
    let explanation = explain_node(placed, id, true);
    match explanation.result() {
        Ok(kernel) => {
            let kernel = Arc::clone(kernel);
            let measured = measured.filter(|_| measured::can_be_measured(placed, id));
            Ok(Some(Chosen { kernel, per_shape: explanation.per_shape, measured }))
        }
        Err(error) => Err(RuntimeError::NoKernel {
            node: node.name.clone(),
            op: node.op.name.clone(),
            message: error.to_string(),
        }),
    }
}

/// The kernel objects that live as long as the session: those of stateful nodes.
pub(super) struct KernelCache {
    /// By node, device and kernel: which of several kernels runs may depend on shapes.
    stateful: Mutex<HashMap<(String, String, usize), Arc<KernelInstance>>>,
    pub packed: PackCache,
    /// Numbers for graphs that were made for one plan.
    graphs: AtomicU64,
}

impl Default for KernelCache {
    fn default() -> KernelCache {
        KernelCache {
            stateful: Mutex::ranked(rank::LEAF, HashMap::new()),
            packed: PackCache::new(),
            graphs: AtomicU64::new(0),
        }
    }
}

impl KernelCache {
    /// A number that no graph of this session has.
    pub fn next_graph(&self) -> u64 {
        self.graphs.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Forgets them; plans that use them keep theirs.
    pub fn clear(&self) {
        let gone = std::mem::take(&mut *self.stateful.lock());
        // Without the lock: their ends are the plugins'.
        drop(gone);
    }

    /// The object of a stateful node for this kernel, made by `make` when there is none.
    pub fn stateful(
        &self,
        node: &str,
        device: &str,
        kernel: &Arc<KernelDef>,
        make: impl FnOnce() -> Result<Arc<KernelInstance>, KernelError>,
    ) -> Result<Arc<KernelInstance>, KernelError> {
        let key = (node.to_owned(), device.to_owned(), Arc::as_ptr(kernel) as usize);
        if let Some(instance) = self.stateful.lock().get(&key) {
            return Ok(Arc::clone(instance));
        }
        // The object keeps its kernel, whose address no other has meanwhile.
        let made = make()?;
        // Where two were made the first is kept; the other ends without the lock.
        let kept = Arc::clone(self.stateful.lock().entry(key).or_insert_with(|| Arc::clone(&made)));
        drop(made);
        Ok(kept)
    }
}
