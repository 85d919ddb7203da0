//! Chooses the kernel of a node.

use super::{Context, placed::PlacedStep};
use crate::{
    error::RuntimeError,
    kernels::{Site, can_be_measured, times},
};
use std::sync::Arc;
use tenon_framework::{
    PartialShape, Shape,
    attr::{AttrMap, AttrValue},
    device::base::DeviceBase,
    registry::{
        Explanation, KernelChoice, KernelDef, KernelQuery, SupportAnswer, candidates, select,
    },
};
use tenon_graph::{DeviceEntry, DeviceView, Node, NodeId, NodeQuery};
use tenon_host::{devices::PluginDevice, instance::KernelSpec};

/// The devices of a session's runtime, as placement sees them.
pub(super) struct Devices<'s> {
    context: Context<'s>,
    local: Vec<Arc<PluginDevice>>,
    entries: Vec<DeviceEntry>,
}

impl<'s> Devices<'s> {
    pub fn new(context: Context<'s>) -> Devices<'s> {
        let local = context.runtime.devices().devices();
        let entries = local
            .iter()
            .map(|device| DeviceEntry {
                name: context.options.named(device.name()),
                device_type: device.device_type().to_owned(),
                incarnation: device.incarnation(),
                priority: context
                    .version
                    .registry
                    .device_type(device.device_type())
                    .map_or(0, |device_type| device_type.priority),
                is_local: true,
                host_memory: device.info().host_memory,
            })
            .chain(context.options.remote.iter().cloned())
            .collect();
        Devices { context, local, entries }
    }

    /// The devices of this process, which have the first positions.
    pub fn local(&self) -> &[Arc<PluginDevice>] {
        &self.local
    }

    /// Whether a device releases buffers only at the end of a step, because work on its streams may
    /// still use them.
    pub fn holds_all(&self, device: usize) -> bool {
        self.local.get(device).is_some_and(|device| device.info().streams)
    }

    /// The location of feeds and fetches: the first device that computes in host memory.
    pub fn client(&self) -> usize {
        self.entries.iter().position(|entry| entry.host_memory).unwrap_or(0)
    }

    /// The candidates for a node on a device type, without regard to its shapes.
    pub fn candidates(&self, query: NodeQuery<'_>, device_type: &str) -> Explanation {
        explain(self.context, query.op, query.attrs, device_type, &mut |_| SupportAnswer::Yes)
    }
}

impl DeviceView for Devices<'_> {
    fn devices(&self) -> &[DeviceEntry] {
        &self.entries
    }

    fn has_kernel(&self, node: NodeQuery<'_>, device_type: &str) -> Result<(), String> {
        // A task may have devices of types that are not known here: it checks its part itself.
        if node.is_built_in || self.context.version.registry.device_type(device_type).is_none() {
            return Ok(());
        }
        let any = &mut |_: &Arc<KernelDef>| SupportAnswer::Yes;
        if selected(self.context, node.op, node.attrs, device_type, any).is_some() {
            return Ok(());
        }
        self.candidates(node, device_type).result().map(drop).map_err(|error| error.to_string())
    }

    fn image_format(&self, device: usize) -> Option<&str> {
        // Kernels of the host support channels first by transposing their own images.
        let host = self.entries.get(device).is_some_and(|entry| entry.host_memory);
        let format = self.context.version.knobs.text("graph", "host_image_format").filter(|_| host);
        format.filter(|format| !format.is_empty())
    }

    fn has_any_kernel(&self, op: &str) -> bool {
        !self.context.version.registry.kernels_of(op).is_empty()
    }

    fn can_run(&self, node: &Node, inputs: &[PartialShape], device: usize) -> Result<(), String> {
        let Some(device) = self.local.get(device) else {
            return Err(format!("there is no device {device}"));
        };
        if node.op.is_built_in() {
            return Ok(());
        }
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
                knobs: &self.context.version.knobs,
            };
            spec.supports().unwrap_or_else(|error| SupportAnswer::No(error.message))
        };
        let kind = device.device_type();
        if selected(self.context, op, attrs, kind, &mut |def| supports(def)).is_some() {
            return Ok(());
        }
        let mut supports = |kernel: &KernelDef| supports(&Arc::new(kernel.clone()));
        let found = explain(self.context, op, attrs, kind, &mut supports);
        found.result().map(drop).map_err(|error| error.to_string())
    }
}

/// The kernel label that the node requests, and the one that the session or the knob requests.
fn labels<'a>(context: Context<'a>, attrs: &'a AttrMap) -> (Option<&'a str>, Option<&'a str>) {
    let own = attrs.get("_kernel").and_then(AttrValue::as_text);
    let by_knob = context.kernel_label_by_knob();
    (own, context.options.kernel_label.as_deref().or(by_knob))
}

/// The winner that [`explain`] finds, and the kernels to be asked per shape, without the reasons,
/// which take most of the time. `None` if there is no winner, or if a requested label applies to
/// some nodes only.
fn selected(
    context: Context<'_>,
    op: &str,
    attrs: &AttrMap,
    device_type: &str,
    supports: &mut dyn FnMut(&Arc<KernelDef>) -> SupportAnswer,
) -> Option<KernelChoice> {
    let (own, forced) = labels(context, attrs);
    if own.is_none() && forced.is_some() {
        return None;
    }
    let features = context.runtime.features();
    let query = KernelQuery { op, device_type, attrs, features, label: own };
    select(&context.version.registry, &query, supports)
}

/// The candidates for an op on a device type, and the winner.
pub(super) fn explain(
    context: Context<'_>,
    op: &str,
    attrs: &AttrMap,
    device_type: &str,
    supports: &mut dyn FnMut(&KernelDef) -> SupportAnswer,
) -> Explanation {
    let (own, forced) = labels(context, attrs);
    let features = context.runtime.features();
    let ask = |label: Option<&str>, supports: &mut dyn FnMut(&KernelDef) -> SupportAnswer| {
        let query = KernelQuery { op, device_type, attrs, features, label };
        candidates(&context.version.registry, &query, supports)
    };
    if own.is_none() && forced.is_some() {
        // The label that the session or the knob requests applies if a kernel with it supports the
        // node.
        let labelled = ask(forced, supports);
        return labelled.or(ask(None, supports));
    }
    ask(own, supports)
}

/// The candidates for a placed node, given its known shapes; under policy `measured`, also given
/// the known times. Missing times are measured only if `may_measure` is set.
pub(super) fn explain_node(placed: &PlacedStep<'_>, id: NodeId, may_measure: bool) -> Explanation {
    explain_site(placed, id, &placed.site(id), may_measure)
}

fn explain_site(
    placed: &PlacedStep<'_>,
    id: NodeId,
    site: &Arc<Site>,
    may_measure: bool,
) -> Explanation {
    let node = placed.graph.node(id);
    let device = placed.device(id);
    let mut explanation = explain(
        placed.context,
        &node.op.name,
        node.attrs.attrs(),
        device.device_type(),
        &mut |kernel| site.supports(&Arc::new(kernel.clone()), site.shapes()),
    );
    if !device.info().host_memory {
        explanation.keep_same_memory();
    }
    prefer_fastest(placed, site, &mut explanation, may_measure);
    explanation
}

/// Under policy `measured`, chooses the fastest kernel of a node if the shapes are known and the
/// times are known or can be measured within the budget. `may_measure` is false for a caller that
/// only wants an explanation.
fn prefer_fastest(
    placed: &PlacedStep<'_>,
    site: &Arc<Site>,
    explanation: &mut Explanation,
    may_measure: bool,
) {
    let Some(tuning_options) = placed.context.version.tuning_options else { return };
    if !can_be_measured(site.op(), site.signature()) || explanation.label.is_some() {
        return;
    }
    let rivals = explanation.rivals(&tuning_options.contract);
    if rivals.len() < 2 {
        return;
    }
    let shapes: Option<Vec<Shape>> = site.shapes().iter().map(PartialShape::full).collect();
    match shapes {
        // The kernels are asked for each shape at run time.
        None => explanation.per_shape = rivals,
        Some(shapes) if explanation.per_shape.is_empty() => {
            if let Some(times) = times(site, &rivals, &shapes, tuning_options, may_measure) {
                explanation.prefer(&rivals, &times);
            }
        }
        Some(_) => {}
    }
}

/// The kernel of a placed node; `None` if the node only orders others or the executor runs it.
pub(super) fn choose(
    placed: &PlacedStep<'_>,
    id: NodeId,
    site: &Arc<Site>,
) -> Result<Option<KernelChoice>, RuntimeError> {
    let node = placed.graph.node(id);
    if node.op.is_built_in() {
        return Ok(None);
    }
    let device = placed.device(id);
    if device.info().host_memory && placed.context.version.tuning_options.is_none() {
        let (op, attrs, kind) = (&node.op.name, node.attrs.attrs(), device.device_type());
        let supports = &mut |kernel: &Arc<KernelDef>| site.supports(kernel, site.shapes());
        if let Some(found) = selected(placed.context, op, attrs, kind, supports) {
            return Ok(Some(found));
        }
    }
    let explanation = explain_site(placed, id, site, true);
    match explanation.result() {
        Ok(kernel) => {
            let kernel = Arc::clone(kernel);
            Ok(Some(KernelChoice { kernel, per_shape: explanation.per_shape }))
        }
        Err(error) => Err(RuntimeError::NoKernel {
            node: node.name.clone(),
            op: node.op.name.clone(),
            message: error.to_string(),
        }),
    }
}
