//! Policy `measured` for a node: the name of its call, and the times of its kernels.

use super::{Site, Tuned};
use crate::tuning::{Call, Job, JobInput, TuningOptions, bucket};
use std::{fmt::Write, sync::Arc};
use tenon_framework::{
    DType, PartialShape, Shape,
    attr::AttrValue,
    device::base::DeviceBase,
    op::Signature,
    registry::{KernelDef, Timed},
};
use tenon_graph::PartOp;

/// The maximum number of elements of an integer constant that becomes part of a call's name: sizes
/// and axes determine the computation.
const MAX_NAMED_ELEMENTS: usize = 16;

/// Whether the node can be called with generated values: it has no state, and its elements are
/// numbers.
pub(crate) fn can_be_measured(op: &PartOp, signature: &Signature) -> bool {
    let mut types = signature.inputs.iter().chain(&signature.outputs);
    !op.def.stateful && types.all(|dtype| !dtype.needs_drop() && !dtype.is_ref())
}

/// The times of kernels for these shapes; `None` while one is missing.
pub(crate) fn times(
    site: &Arc<Site>,
    kernels: &[Arc<KernelDef>],
    shapes: &[Shape],
    tuning_options: TuningOptions,
    may_measure: bool,
) -> Option<Vec<Timed>> {
    let tuned = site.tuned()?;
    let call = Call {
        place: place(site, tuned),
        call: call_name(site, shapes),
        node: site.name().to_owned(),
        kernels: kernels.iter().map(|kernel| tuned.kernel_name(kernel)).collect(),
    };
    let tuner = &tuned.tuner;
    if !may_measure {
        return tuner.known(site.knobs(), &call);
    }
    tuner.times(site.knobs(), &call, tuning_options.budget, || job(site, tuned, kernels, shapes))
}

fn job(site: &Arc<Site>, tuned: &Tuned, kernels: &[Arc<KernelDef>], shapes: &[Shape]) -> Job {
    let types = &site.signature().inputs;
    let input = |at: usize| match site.constant(at) {
        Some(constant) => JobInput::Constant(constant.clone()),
        None => JobInput::Generated(types[at].base(), shapes[at]),
    };
    let inputs = (0..types.len()).map(input).collect();
    let (maker, kernels) = (Arc::clone(site), kernels.to_vec());
    let known: Vec<PartialShape> = shapes.iter().copied().map(PartialShape::from).collect();
    let count = kernels.len();
    let make = Box::new(move |at: usize| maker.make(&kernels[at], &known));
    Job { kernels: count, make, inputs, pool: Arc::clone(&tuned.pool) }
}

/// The machine, threads and device; times from others do not apply.
fn place(site: &Site, tuned: &Tuned) -> String {
    let device = site.device();
    format!(
        "{} | {} threads | {} {} | {}",
        processor(),
        tuned.pool.threads(),
        device.device_type(),
        device.info().description,
        tuned.features
    )
}

/// The model of this machine's processor; the architecture if the system does not report one.
fn processor() -> &'static str {
    use std::sync::OnceLock;
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("model name"));
        let name =
            line.and_then(|line| line.split_once(": ")).map(|(_, name)| name.trim().to_owned());
        name.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
    })
}

/// The op, types, shapes rounded up, and a digest of the attributes and of the constants that
/// determine the computation.
fn call_name(site: &Site, shapes: &[Shape]) -> String {
    let op = site.op();
    let mut name = op.def.name.clone();
    let mut rest = String::new();
    for (at, (dtype, shape)) in site.signature().inputs.iter().zip(shapes).enumerate() {
        let dims: Vec<String> = shape.dims().iter().map(|&dim| bucket(dim).to_string()).collect();
        let constant = site.constant(at);
        let mark = if constant.is_some() { "=" } else { "" };
        let _ = write!(name, " {mark}{dtype}[{}]", dims.join(","));
        if let Some(constant) = constant
            && matches!(dtype.base(), DType::INT32 | DType::INT64)
            && constant.elements() <= MAX_NAMED_ELEMENTS
        {
            let _ = write!(rest, "{at}: {:?};", constant.as_bytes());
        }
    }
    for (attr, value) in op.attrs.attrs() {
        // Annotations by graphs and passes do not affect the computation.
        if !attr.starts_with('_') && !matches!(value, AttrValue::Func(_)) {
            let _ = write!(rest, "{attr} = {value:?};");
        }
    }
    format!("{name} {}", tenon_host::digest::short_digest(rest.as_bytes()))
}
