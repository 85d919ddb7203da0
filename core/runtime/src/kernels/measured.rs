//! Policy `measured` for a node: which call it is, and how long each of its kernels takes for it.

use super::{Site, Tuned};
use crate::tuning::{Call, Job, JobInput, Wish, bucket};
use std::{fmt::Write, sync::Arc};
use tenon_framework::{
    DType, PartialShape, Shape,
    attr::AttrValue,
    device::base::DeviceBase,
    op::Signature,
    registry::{KernelDef, Timed},
};
use tenon_graph::PartOp;

/// Elements of a constant of integers that is part of a call's name: sizes and axes, which decide what is computed.
const NAMED_ELEMENTS: usize = 16;

/// Whether a call of the node can be made up: no state, and elements that are numbers.
pub(crate) fn can_be_measured(op: &PartOp, signature: &Signature) -> bool {
    let mut types = signature.inputs.iter().chain(&signature.outputs);
    !op.def.stateful && types.all(|dtype| !dtype.needs_drop() && !dtype.is_ref())
}

/// The times of kernels for these shapes; `None` while one is missing.
pub(crate) fn times(
    site: &Arc<Site>,
    kernels: &[Arc<KernelDef>],
    shapes: &[Shape],
    wish: Wish,
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
    tuner.times(site.knobs(), &call, wish.budget, || job(site, tuned, kernels, shapes))
}

fn job(site: &Arc<Site>, tuned: &Tuned, kernels: &[Arc<KernelDef>], shapes: &[Shape]) -> Job {
    let types = &site.signature().inputs;
    let input = |at: usize| match site.constant(at) {
        Some(constant) => JobInput::Constant(constant.clone()),
        None => JobInput::MadeUp(types[at].base(), shapes[at]),
    };
    let inputs = (0..types.len()).map(input).collect();
    let (maker, kernels) = (Arc::clone(site), kernels.to_vec());
    let known: Vec<PartialShape> = shapes.iter().copied().map(PartialShape::from).collect();
    let count = kernels.len();
    let make = Box::new(move |at: usize| maker.make(&kernels[at], &known));
    Job { kernels: count, make, inputs, pool: Arc::clone(&tuned.pool) }
}

/// Machine, threads and device: times of other ones say nothing here.
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

/// The model of this machine's processor; its architecture where the system does not tell.
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

/// Op, types, shapes rounded up, and a digest of attributes and of the constants that decide what is computed.
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
            && constant.elements() <= NAMED_ELEMENTS
        {
            let _ = write!(rest, "{at}: {:?};", constant.as_bytes());
        }
    }
    for (attr, value) in op.attrs.attrs() {
        // Marks of graphs and passes are no part of what is computed.
        if !attr.starts_with('_') && !matches!(value, AttrValue::Func(_)) {
            let _ = write!(rest, "{attr} = {value:?};");
        }
    }
    format!("{name} {}", tenon_host::digest::short_digest(rest.as_bytes()))
}
