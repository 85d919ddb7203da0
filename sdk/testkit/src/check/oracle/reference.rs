//! The kernel that says what is right.

use super::{IS_REFERENCE, widen};
use crate::{
    check::{CheckCase, Subject},
    node::{Node, Refusal, Stage, device_of},
};
use std::{fmt, ptr, sync::Arc};
use tenon_framework::{
    Code, DType, KernelError, Tensor,
    attr::AttrMap,
    op::OpDef,
    registry::{KernelDef, Registry},
};
use tenon_runtime::{
    Runtime,
    host::{call::StepEnv, resources::Resources},
};

/// The label of kernels that specify their op.
const REFERENCE: &str = "reference";
pub(super) const CPU: &str = "CPU";
const DEFAULT: &str = "DEFAULT";

/// A kernel that says what is right, and the types for which it is asked.
#[derive(Debug)]
pub(super) struct Found {
    pub op: Arc<OpDef>,
    pub def: Arc<KernelDef>,
    /// The subject's types, or wider ones.
    types: AttrMap,
    /// Whether it computes in wider types.
    widened: bool,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = if self.def.label.is_empty() { "ordinary" } else { &self.def.label };
        write!(f, "kernel '{label}' of {} on {}", self.def.plugin_name, self.def.device_type)?;
        if self.widened { f.write_str(", in wider types") } else { Ok(()) }
    }
}

/// The kernel that judges a subject.
///
/// # Errors
/// Why there is no reference.
pub(super) fn find(registry: &Registry, subject: &Subject) -> Result<Found, String> {
    let found = |def: &Arc<KernelDef>, types: &AttrMap, widened: bool| Found {
        op: Arc::clone(&subject.op),
        def: Arc::clone(def),
        types: types.clone(),
        widened,
    };
    let wider: Vec<AttrMap> = [DType::FLOAT, DType::DOUBLE]
        .iter()
        .filter_map(|&to| widen::types(&subject.op, &subject.types, to))
        .collect();
    if let Some(def) = labelled(registry, subject, &subject.types) {
        return Ok(found(def, &subject.types, false));
    }
    if subject.kernel.label == REFERENCE {
        return Err(IS_REFERENCE.to_owned());
    }
    for types in &wider {
        if let Some(def) = labelled(registry, subject, types) {
            return Ok(found(def, types, true));
        }
    }
    let host = registry.kernels_of(&subject.op.name).iter().find(|def| {
        def.device_type == DEFAULT
            && registry.plugin(def.plugin).is_some_and(|plugin| plugin.path.is_none())
            && may_judge(def, subject, &subject.types)
    });
    match host {
        Some(def) => Ok(found(def, &subject.types, false)),
        None => Err(unjudged(registry.kernels_of(&subject.op.name), subject)),
    }
}

/// Why a subject has no judge; these are the kernels of its op.
fn unjudged(kernels: &[Arc<KernelDef>], subject: &Subject) -> String {
    let op = &subject.op.name;
    let is_labelled = |def: &&Arc<KernelDef>| {
        def.label == REFERENCE
            && !Arc::ptr_eq(def, &subject.kernel)
            && is_same(def, &subject.kernel)
            && takes(def, &subject.types)
    };
    match kernels.iter().find(is_labelled) {
        Some(def) => format!(
            "no golden data, and the kernel of op {op} labelled '{REFERENCE}' ({}) is the same function as this one: a \
             kernel does not judge itself. Write the reference as a function of its own, in other steps, since a \
             compiler may make one of two that are equal",
            def.source
        ),
        None => format!(
            "no golden data, and no other kernel of op {op} labelled '{REFERENCE}' for these types"
        ),
    }
}

/// The reference kernel for these types: another plugin's first, on the CPU first.
fn labelled<'r>(
    registry: &'r Registry,
    subject: &Subject,
    types: &AttrMap,
) -> Option<&'r Arc<KernelDef>> {
    let own = &subject.kernel;
    let other_plugin_only = own.label == REFERENCE;
    registry
        .kernels_of(&subject.op.name)
        .iter()
        .filter(|def| def.label == REFERENCE)
        .filter(|def| def.device_type == CPU || def.device_type == own.device_type)
        .filter(|def| !other_plugin_only || def.plugin != own.plugin)
        .filter(|def| may_judge(def, subject, types))
        .min_by_key(|def| (def.plugin == own.plugin, def.device_type != CPU))
}

/// Whether a kernel is another than the subject's and takes these types.
fn may_judge(def: &Arc<KernelDef>, subject: &Subject, types: &AttrMap) -> bool {
    !is_same(def, &subject.kernel) && takes(def, types)
}

fn takes(def: &KernelDef, types: &AttrMap) -> bool {
    types.iter().all(|(name, value)| match (def.types_of(name), value.as_type()) {
        (Some(allowed), Some(dtype)) => allowed.contains(&dtype),
        _ => true,
    })
}

/// Whether two registrations are of one kernel: one entry may be registered twice, under two labels.
fn is_same(a: &Arc<KernelDef>, b: &Arc<KernelDef>) -> bool {
    let entry = |def: &KernelDef| def.table.compute.map(|entry| entry as usize);
    Arc::ptr_eq(a, b) || ptr::eq(a.table, b.table) || entry(a) == entry(b)
}

/// Calls of the oracle's kernel with the attributes of a case.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub runtime: &'a Runtime,
    pub found: &'a Found,
    pub case: &'a CheckCase,
    /// Whether it computes with denormals, as kernels on the host do not.
    pub keep_denormals: bool,
}

impl Call<'_> {
    /// The outputs for inputs of the subject's types, in its types.
    ///
    /// # Errors
    /// A refusal of the kernel.
    pub fn outputs(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, Refusal> {
        let computed = self.in_types(&self.found.def, &self.found.types, inputs)?;
        if !self.found.widened {
            return Ok(computed);
        }
        let own = widen::output_types(&self.found.op, &self.case.attrs).unwrap_or_default();
        computed.iter().zip(own).map(|(tensor, dtype)| convert(tensor, dtype)).collect()
    }

    /// The outputs of a reference kernel for these types, to which the inputs are converted.
    ///
    /// # Errors
    /// A refusal of the kernel.
    pub fn in_types(
        &self,
        def: &Arc<KernelDef>,
        types: &AttrMap,
        inputs: &[Tensor],
    ) -> Result<Vec<Tensor>, Refusal> {
        let mut attrs = self.case.attrs.clone();
        attrs.extend(types.clone());
        let wanted = widen::input_types(&self.found.op, &attrs).unwrap_or_default();
        let inputs: Vec<Tensor> = (inputs.iter().zip(wanted))
            .map(|(tensor, dtype)| convert(tensor, dtype))
            .collect::<Result<_, _>>()?;
        let constant = |at: usize| self.case.inputs.get(at).is_some_and(|input| input.constant);
        let node = Node::new(&self.found.op, &self.case.name, attrs, &inputs, constant)
            .map_err(|error| Refusal::definition(&error))?;
        let device = device_of(self.runtime, &def.device_type);
        // Its own resources: a call that leaves something there changes no later one.
        let resources = Arc::new(Resources::new());
        let mut env = StepEnv::new(Arc::clone(self.runtime.pool()), resources);
        env.keep_denormals = self.keep_denormals;
        node.call(def, device.as_ref(), &self.runtime.plugins().knobs(), &inputs, &env)
    }

    /// The reference kernel in the widest types that there is one for.
    pub fn widest(&self, subject: &Subject) -> (Arc<KernelDef>, AttrMap) {
        let registry = self.runtime.registry();
        let wide = [DType::DOUBLE, DType::FLOAT].into_iter().find_map(|to| {
            let types = widen::types(&subject.op, &subject.types, to)?;
            Some((Arc::clone(labelled(&registry, subject, &types)?), types))
        });
        wide.unwrap_or_else(|| (Arc::clone(&self.found.def), self.found.types.clone()))
    }
}

fn convert(tensor: &Tensor, dtype: DType) -> Result<Tensor, Refusal> {
    widen::convert(tensor, dtype).ok_or_else(|| {
        let message = format!("{} is not converted to {dtype}", tensor.dtype());
        Refusal::at(Stage::Select)(KernelError::new(Code::UNIMPLEMENTED, message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Argument, Fill, Tag};
    use half::f16;
    use tenon_framework::attr::AttrValue;
    use tenon_runtime::RuntimeOptions;

    fn runtime() -> Runtime {
        let none: [&str; 0] = [];
        Runtime::new(RuntimeOptions::with_plugins(none)).unwrap().0
    }

    fn typed(dtype: DType) -> AttrMap {
        [("T".to_owned(), AttrValue::Type(dtype))].into_iter().collect()
    }

    fn subject(registry: &Registry, label: &str, dtype: DType) -> Subject {
        let own = &registry.kernels_of("Identity")[0];
        let label = label.to_owned();
        let device_type = "GPU".to_owned();
        // Another entry, so that it is another kernel.
        let table = registry.kernels_of("Shape")[0].table;
        let kernel = Arc::new(KernelDef { label, device_type, table, ..KernelDef::clone(own) });
        let op = Arc::clone(registry.op("Identity").unwrap());
        Subject { op, kernel, types: typed(dtype) }
    }

    #[test]
    fn the_host_s_own_kernel_judges_and_never_itself() {
        let registry = runtime().registry();
        let found = find(&registry, &subject(&registry, "", DType::HALF)).unwrap();
        assert_eq!(found.to_string(), "kernel 'ordinary' of tenon-host on DEFAULT");
        let mut own = subject(&registry, "", DType::HALF);
        own.kernel = Arc::clone(&registry.kernels_of("Identity")[0]);
        let why = find(&registry, &own).unwrap_err();
        assert!(why.starts_with("no golden data, and no other kernel of op Identity"), "{why}");
        let reference = subject(&registry, REFERENCE, DType::HALF);
        assert_eq!(find(&registry, &reference).unwrap_err(), IS_REFERENCE);
    }

    #[test]
    fn a_reference_that_is_the_same_function_is_told_as_such() {
        let registry = runtime().registry();
        let mut same = subject(&registry, "", DType::HALF);
        same.kernel = Arc::clone(&registry.kernels_of("Identity")[0]);
        let label = REFERENCE.to_owned();
        let labelled = Arc::new(KernelDef { label, ..KernelDef::clone(&same.kernel) });
        let told = |kernels: &[Arc<KernelDef>]| unjudged(kernels, &same);
        let why = told(&[Arc::clone(&same.kernel), labelled]);
        assert!(
            why.contains("labelled 'reference'") && why.contains("is the same function"),
            "{why}"
        );
        let other = subject(&registry, REFERENCE, DType::HALF).kernel;
        let why = told(&[Arc::clone(&same.kernel), other]);
        assert!(why.contains("no other kernel of op Identity labelled 'reference'"), "{why}");
    }

    #[test]
    fn a_reference_for_wider_types_is_given_wider_inputs_and_its_outputs_are_rounded() {
        let runtime = runtime();
        let registry = runtime.registry();
        let found = Found {
            op: Arc::clone(registry.op("Identity").unwrap()),
            def: Arc::clone(&registry.kernels_of("Identity")[0]),
            types: typed(DType::DOUBLE),
            widened: true,
        };
        let fill = Fill::Special { seed: 1 };
        let input = Argument { dtype: DType::HALF, dims: vec![40], fill, constant: false };
        let case = CheckCase {
            name: "wide".to_owned(),
            tags: vec![Tag::Special],
            attrs: typed(DType::HALF),
            inputs: vec![input],
        };
        let inputs = case.tensors().unwrap();
        let call = Call { runtime: &runtime, found: &found, case: &case, keep_denormals: false };
        let outputs = call.outputs(&inputs);
        let (x, y) = (inputs[0].as_slice::<f16>().unwrap(), outputs.unwrap());
        assert_eq!(y[0].dtype(), DType::HALF);
        let same = |(x, y): (&f16, &f16)| x == y || (x.is_nan() && y.is_nan());
        assert!(x.iter().zip(y[0].as_slice::<f16>().unwrap()).all(same));
    }
}
