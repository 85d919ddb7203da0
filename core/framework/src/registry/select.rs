//! Choosing a kernel: a pure function over facts.
//!
//! Candidates are the kernels of the op. Each is removed by the first rule that excludes it: device
//! type, element types, features, label, `supports`; among those left, policy `priority` takes the highest
//! priority, then a kernel of the very device type over a `DEFAULT` one, then the declared order. If the
//! winner needs shapes that are not known yet, the choice stays open ([`Explanation::per_shape`]).

use super::{features::FeatureSet, kernel_def::KernelDef, removal::Removal, snapshot::Registry};
use crate::attr::{AttrList, AttrMap, AttrValue};
use crate::text::{cut, cut_message, some_of};
use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};
use tenon_abi::{Code, DType};
use thiserror::Error;

/// The request for a kernel.
#[derive(Debug, Clone, Copy)]
pub struct KernelQuery<'a> {
    /// Name of the op.
    pub op: &'a str,
    /// Type of the device.
    pub device_type: &'a str,
    /// Attributes of the node, defaults applied.
    pub attrs: &'a AttrMap,
    /// Features that are present.
    pub features: &'a FeatureSet,
    /// Label that the node (`_kernel`) or a knob asks for; then only kernels of that label count.
    pub label: Option<&'a str>,
}

/// Answer of a kernel's `supports`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupportAnswer {
    /// Yes, whatever the unknown dimensions turn out to be.
    Yes,
    /// Not these attributes or shapes, with the reason.
    No(String),
    /// Ask again when the shapes are known.
    DependsOnShapes,
}

/// A kernel of the op, and the reason for its removal.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The kernel.
    pub kernel: Arc<KernelDef>,
    /// Why it does not run; `None` for the winner, and for those that may run if the choice is open.
    pub removed: Option<Removal>,
    /// Whether its `supports` needs the shapes.
    pub depends_on_shapes: bool,
    /// Nanoseconds of a call, if policy `measured` knows them.
    pub measured_ns: Option<f64>,
}

/// The candidates, the rule that removed each, and the winner.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// Name of the op.
    pub op: String,
    /// Type of the device.
    pub device_type: String,
    /// Requested label.
    pub label: Option<String>,
    /// Whether the op is registered.
    pub op_is_known: bool,
    /// All kernels of the op, in declared order.
    pub candidates: Vec<Candidate>,
    /// The winner; if the choice is open, the kernel that is asked first.
    pub winner: Option<Arc<KernelDef>>,
    /// If the choice is open: the kernels to ask for each shape, of which the first that takes it runs. All but the
    /// last depend on shapes. Empty if the choice is made.
    pub per_shape: Vec<Arc<KernelDef>>,
}

/// Why no kernel can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SelectError {
    /// The op is not registered.
    #[error("op '{op}' is not registered: load the plugin that defines it", op = cut(.op))]
    UnknownOp {
        /// The op.
        op: String,
    },
    /// No kernel has the requested label.
    #[error(
        "op '{op}' has no kernel with label '{wanted}' on {device_type}: the labels are {}",
        quoted(.labels), op = cut(.op), wanted = cut(.wanted), device_type = cut(.device_type)
    )]
    Label {
        /// The op.
        op: String,
        /// Type of the device.
        device_type: String,
        /// The label.
        wanted: String,
        /// The existing labels.
        labels: Vec<String>,
    },
    /// All candidates were removed.
    #[error(
        "no kernel of op '{op}' runs this node on {device_type}{}",
        listed(.candidates), op = cut(.op), device_type = cut(.device_type)
    )]
    NoKernel {
        /// The op.
        op: String,
        /// Type of the device.
        device_type: String,
        /// Each candidate with the reason.
        candidates: Vec<String>,
    },
}

fn quoted(labels: &[String]) -> String {
    const MOST: usize = 32;
    match labels {
        [] => "none".to_owned(),
        labels => some_of(labels.iter().map(String::as_str), MOST),
    }
}

fn listed(candidates: &[String]) -> String {
    match candidates {
        [] => ": none is registered".to_owned(),
        lines => format!(":\n  {}", cut_message(&lines.join("\n  "))),
    }
}

impl SelectError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        Code::NOT_FOUND
    }
}

impl Explanation {
    /// The kernel that runs.
    ///
    /// # Errors
    /// There is none; the error lists the candidates with the reasons.
    pub fn result(&self) -> Result<&Arc<KernelDef>, SelectError> {
        self.winner.as_ref().ok_or_else(|| self.error())
    }

    /// Whether the choice is open until the shapes are known, because the winner's `supports` needs them.
    pub fn depends_on_shapes(&self) -> bool {
        !self.per_shape.is_empty()
    }

    /// If it is possible that no kernel takes a shape, those of `next` are asked after these. `next` is an explanation
    /// for the same op with another request, such as one without a label.
    #[must_use]
    pub fn or(mut self, next: Explanation) -> Explanation {
        let depends = |kernel: &Arc<KernelDef>| {
            let found = self.candidates.iter().find(|c| Arc::ptr_eq(&c.kernel, kernel));
            found.is_some_and(|c| c.depends_on_shapes)
        };
        match (self.per_shape.last(), &next.winner) {
            (None, _) if self.winner.is_some() => return self,
            (None, _) => return next,
            (Some(last), Some(_)) if depends(last) => {}
            _ => return self,
        }
        let order = if next.per_shape.is_empty() {
            next.winner.into_iter().collect()
        } else {
            next.per_shape
        };
        let own = std::mem::take(&mut self.per_shape);
        let more: Vec<_> = order
            .into_iter()
            .filter(|kernel| !own.iter().any(|o| Arc::ptr_eq(o, kernel)))
            .collect();
        for (candidate, other) in self.candidates.iter_mut().zip(next.candidates) {
            if candidate.removed.is_some() {
                *candidate = other;
            }
        }
        self.per_shape = own.into_iter().chain(more).collect();
        self
    }

    /// If the choice is open, keeps those kernels that agree with the first on what is in host memory: that
    /// is decided before the shapes are known.
    pub fn keep_same_memory(&mut self) {
        let Some(first) = self.per_shape.first().cloned() else { return };
        for candidate in &mut self.candidates {
            if candidate.removed.is_none() && candidate.kernel.host_memory != first.host_memory {
                candidate.removed = Some(Removal::OtherMemory { than: first.to_string() });
            }
        }
        self.per_shape.retain(|kernel| kernel.host_memory == first.host_memory);
    }

    fn error(&self) -> SelectError {
        if !self.op_is_known {
            return SelectError::UnknownOp { op: self.op.clone() };
        }
        let here = self.candidates.iter().filter(|c| c.kernel.serves(&self.device_type));
        let labels: BTreeSet<String> = here.map(|c| c.kernel.label.clone()).collect();
        let (op, device_type) = (self.op.clone(), self.device_type.clone());
        if let Some(wanted) = self.label.as_ref().filter(|label| !labels.contains(*label)) {
            let (wanted, labels) = (wanted.clone(), labels.into_iter().collect());
            return SelectError::Label { op, device_type, wanted, labels };
        }
        let line = |c: &Candidate| {
            let reason = c.removed.as_ref().map(Removal::to_string).unwrap_or_default();
            format!("{}: {reason}", c.kernel)
        };
        let candidates = self.candidates.iter().map(line).collect();
        SelectError::NoKernel { op, device_type, candidates }
    }
}

/// Goes through the kernels of an op. `supports` is asked only for those that all other rules leave.
pub fn candidates(
    registry: &Registry,
    query: &KernelQuery<'_>,
    supports: &mut dyn FnMut(&KernelDef) -> SupportAnswer,
) -> Explanation {
    let mut candidates: Vec<Candidate> = registry
        .kernels_of(query.op)
        .iter()
        .map(|kernel| examine(kernel, query, supports))
        .collect();
    let order = order(&candidates, query.device_type);
    // The last kernel decides about those that come after it: it runs, or is the last one to be asked.
    if let Some(last) = order.last() {
        for candidate in &mut candidates {
            let stays = order.iter().any(|kernel| Arc::ptr_eq(kernel, &candidate.kernel));
            if candidate.removed.is_none() && !stays {
                candidate.removed = Some(outranked(&candidate.kernel, last));
            }
        }
    }
    let winner = order.first().cloned();
    let open = candidates.iter().any(|c| c.removed.is_none() && c.depends_on_shapes);
    Explanation {
        op: query.op.to_owned(),
        device_type: query.device_type.to_owned(),
        label: query.label.map(str::to_owned),
        op_is_known: registry.op(query.op).is_some(),
        candidates,
        winner,
        per_shape: if open { order } else { Vec::new() },
    }
}

/// The kernels that a node gets.
#[derive(Debug, Clone)]
pub struct KernelChoice {
    /// The kernel that runs; if the choice is open, the one that is asked first.
    pub kernel: Arc<KernelDef>,
    /// If the choice is open until a step knows the shapes: the kernels that are asked for each shape, in order.
    pub per_shape: Vec<Arc<KernelDef>>,
}

/// The winner among [`candidates`], and the kernels to ask for each shape, as in [`Explanation::per_shape`], without
/// the reasons; `None` if no kernel is left.
pub fn select(
    registry: &Registry,
    query: &KernelQuery<'_>,
    supports: &mut dyn FnMut(&Arc<KernelDef>) -> SupportAnswer,
) -> Option<KernelChoice> {
    let kernels = registry.kernels_of(query.op).iter();
    let left = kernels.filter(|kernel| against(kernel, query).is_none());
    let left: Vec<Candidate> = left
        .filter_map(|kernel| {
            let depends_on_shapes = match supports(kernel) {
                SupportAnswer::Yes => false,
                SupportAnswer::DependsOnShapes => true,
                SupportAnswer::No(_) => return None,
            };
            Some(Candidate {
                kernel: Arc::clone(kernel),
                removed: None,
                depends_on_shapes,
                measured_ns: None,
            })
        })
        .collect();
    let order = order(&left, query.device_type);
    let kernel = order.first().cloned()?;
    // All but the last depend on shapes, and the last one does if it is the only one.
    let open = left.iter().any(|c| c.depends_on_shapes && Arc::ptr_eq(&c.kernel, &kernel));
    Some(KernelChoice { kernel, per_shape: if open { order } else { Vec::new() } })
}

/// The kernels that may run, the best first, up to the first that takes every shape.
fn order(candidates: &[Candidate], device_type: &str) -> Vec<Arc<KernelDef>> {
    let mut left: Vec<&Candidate> =
        candidates.iter().filter(|candidate| candidate.removed.is_none()).collect();
    left.sort_by_key(|candidate| Reverse(rank(&candidate.kernel, device_type)));
    let certain = left.iter().position(|candidate| !candidate.depends_on_shapes);
    left.truncate(certain.map_or(left.len(), |at| at + 1));
    left.into_iter().map(|candidate| Arc::clone(&candidate.kernel)).collect()
}

fn rank(kernel: &KernelDef, device_type: &str) -> impl Ord + use<> {
    let (plugin_order, place) = kernel.order;
    let declared = Reverse((plugin_order, kernel.plugin, place));
    (kernel.priority, kernel.device_type == device_type, declared)
}

fn outranked(kernel: &KernelDef, winner: &KernelDef) -> Removal {
    let than = winner.to_string();
    if kernel.priority < winner.priority {
        Removal::LowerPriority { own: kernel.priority, higher: winner.priority, than }
    } else if kernel.device_type != winner.device_type {
        Removal::LessSpecific { than }
    } else {
        Removal::DeclaredLater { than }
    }
}

fn examine(
    kernel: &Arc<KernelDef>,
    query: &KernelQuery<'_>,
    supports: &mut dyn FnMut(&KernelDef) -> SupportAnswer,
) -> Candidate {
    let mut removed = against(kernel, query).map(Against::removal);
    let mut depends_on_shapes = false;
    if removed.is_none() {
        match supports(kernel) {
            SupportAnswer::Yes => {}
            SupportAnswer::DependsOnShapes => depends_on_shapes = true,
            SupportAnswer::No(reason) => removed = Some(Removal::Supports { reason }),
        }
    }
    Candidate { kernel: kernel.clone(), removed, depends_on_shapes, measured_ns: None }
}

/// A rule that excludes a kernel, before its text is needed.
enum Against<'a> {
    DeviceType { own: &'a str, wanted: &'a str },
    MissingAttr { attr: &'a str },
    DType { attr: &'a str, found: DType, takes: &'a [DType] },
    Feature { name: &'a str, device_type: &'a str },
    Label { own: &'a str, wanted: &'a str },
    OnRequest { label: &'a str },
}

impl Against<'_> {
    fn removal(self) -> Removal {
        match self {
            Against::DeviceType { own, wanted } => {
                Removal::DeviceType { own: own.to_owned(), wanted: wanted.to_owned() }
            }
            Against::MissingAttr { attr } => Removal::MissingAttr { attr: attr.to_owned() },
            Against::DType { attr, found, takes } => {
                Removal::DType { attr: attr.to_owned(), found, takes: takes.to_vec() }
            }
            Against::Feature { name, device_type } => {
                Removal::Feature { name: name.to_owned(), device_type: device_type.to_owned() }
            }
            Against::Label { own, wanted } => {
                Removal::Label { own: own.to_owned(), wanted: wanted.to_owned() }
            }
            Against::OnRequest { label } => Removal::OnRequest { label: label.to_owned() },
        }
    }
}

/// The first rule except `supports` that excludes a kernel.
fn against<'a>(kernel: &'a KernelDef, query: &KernelQuery<'a>) -> Option<Against<'a>> {
    let device_type = query.device_type;
    if !kernel.serves(device_type) {
        return Some(Against::DeviceType { own: &kernel.device_type, wanted: device_type });
    }
    if let Some(against) = against_types(kernel, query.attrs) {
        return Some(against);
    }
    if let Some(name) = kernel.features.iter().find(|name| !query.features.contains(name)) {
        return Some(Against::Feature { name, device_type });
    }
    match query.label {
        Some(wanted) if wanted != kernel.label => {
            Some(Against::Label { own: &kernel.label, wanted })
        }
        None if kernel.on_request => Some(Against::OnRequest { label: &kernel.label }),
        _ => None,
    }
}

fn against_types<'a>(kernel: &'a KernelDef, attrs: &AttrMap) -> Option<Against<'a>> {
    for constraint in &kernel.constraints {
        let attr = constraint.attr.as_str();
        let types: &[DType] = match attrs.get(attr) {
            Some(AttrValue::Type(dtype)) => std::slice::from_ref(dtype),
            Some(AttrValue::List(AttrList::Type(types))) => types,
            _ => return Some(Against::MissingAttr { attr }),
        };
        if let Some(&found) = types.iter().find(|dtype| !constraint.types.contains(dtype)) {
            return Some(Against::DType { attr, found, takes: &constraint.types });
        }
    }
    None
}
