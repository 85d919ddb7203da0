//! Registrations on their way from a worker to the host.
//!
//! The worker copies what its plugin passes to the registrar, text by text
//! ([`capture`](super::worker)); the host passes the copies to its own registrar, which checks them
//! like those of a plugin in its own process ([`submit`]). Kernel tables and shape functions stay
//! in the worker: the host's kernels have a table that calls the worker.

use super::kernel::table_for;
use serde::{Deserialize, Serialize};
use std::ptr;
use tenon_abi::{
    Code, DType, ExtBench, ExtCases, ExtCost, ExtFacts, ExtHeader, Facts, GradientRule, InPlace,
    KernelDef, KnobDef, KnobKind, Numerics, OpDef, OpRole, Refusal, Registrar, RegistrarTable,
    ShapeFn, Source, Str, Strs, Symmetry, ToleranceKind, TypeConstraint, ValueRule, ext_tags,
    layout,
};

/// A registration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Definition {
    Op(OpWire),
    Kernel(KernelWire),
    Knob(KnobWire),
    /// The texts of a fusion.
    Fusion(Vec<String>),
    /// A device type, by its name, which the host refuses.
    DeviceType(String),
    /// A graph pass, which cannot run in the host's process; the host ignores it.
    Pass,
    /// A registration of another kind, by its tag, which the host does not know either.
    Other(u32),
}

/// Crate, file, line.
pub(super) type SourceWire = (String, String, u32);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct OpWire {
    pub name: String,
    pub flags: u32,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub attrs: Vec<String>,
    pub summary: String,
    pub description: String,
    pub has_shape: bool,
    pub cases: Option<Vec<String>>,
    pub bench: Option<BenchWire>,
    pub facts: Option<FactsWire>,
    pub source: SourceWire,
}

/// Numbers of calls to measure, and formulas of operations and bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct BenchWire {
    pub calls: Vec<String>,
    pub flops: String,
    pub bytes: String,
}

/// Facts: flags, role, rule of values, refusal, symmetry, gradient, the arguments that are passed
/// on; then a mask of the inputs that decide.
pub(super) type FactsWire = ([u32; 8], u64);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct KernelWire {
    pub op: String,
    pub device_type: String,
    pub label: String,
    pub flags: u32,
    pub priority: i32,
    pub constraints: Vec<(String, Vec<u32>)>,
    pub host_memory: Vec<String>,
    pub in_place: Vec<(u32, u32)>,
    pub features: Vec<String>,
    /// Tolerance, determinism and accumulation type, by number.
    pub numerics: [u32; 3],
    /// Units in the last place, absolute and relative part.
    pub figures: [f64; 3],
    /// Flags of the kernel's table; `None` for a table that cannot compute.
    pub table_flags: Option<u32>,
    /// Fixed cost and cost per element, in nanoseconds.
    pub cost: Option<[f64; 2]>,
    pub source: SourceWire,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct KnobWire {
    pub name: String,
    pub kind: u32,
    pub default: String,
    pub help: String,
    pub source: SourceWire,
}

/// Passes definitions to a registrar, in order.
pub(super) fn submit(
    definitions: &[Definition],
    registrar: *mut Registrar,
    table: *const RegistrarTable,
) {
    for definition in definitions {
        // The registrar records what is wrong with a definition.
        let _ = match definition {
            Definition::Op(op) => submit_op(op, registrar, table),
            Definition::Kernel(kernel) => submit_kernel(kernel, registrar, table),
            Definition::Knob(knob) => submit_knob(knob, registrar, table),
            Definition::Fusion(texts) => submit_fusion(texts, registrar, table),
            Definition::DeviceType(_) | Definition::Pass => Code::UNIMPLEMENTED,
            Definition::Other(tag) => submit_other(*tag, registrar, table),
        };
    }
}

fn strs(texts: &[String]) -> Vec<Str> {
    texts.iter().map(|text| Str::new(text)).collect()
}

fn source((krate, file, line): &SourceWire) -> Source {
    Source { krate: Str::new(krate), file: Str::new(file), line: *line }
}

fn facts((numbers, deciding_inputs): FactsWire) -> Facts {
    let [flags, role, value, refusal, symmetry, gradient, passed_input, passed_output] = numbers;
    Facts {
        flags,
        role: OpRole(role),
        value: ValueRule(value),
        refusal: Refusal(refusal),
        symmetry: Symmetry(symmetry),
        gradient: GradientRule(gradient),
        passed_input,
        passed_output,
        deciding_inputs,
    }
}

fn submit_op(op: &OpWire, registrar: *mut Registrar, table: *const RegistrarTable) -> Code {
    let (inputs, outputs, attrs) = (strs(&op.inputs), strs(&op.outputs), strs(&op.attrs));
    let none = BenchWire::default();
    let wire = op.bench.as_ref().unwrap_or(&none);
    let calls = strs(&wire.calls);
    let bench = ExtBench {
        header: ExtHeader::new(ext_tags::BENCH, 1, &layout::EXT_BENCH),
        calls: Strs::new(&calls),
        flops: Str::new(&wire.flops),
        bytes: Str::new(&wire.bytes),
    };
    let next = op.bench.as_ref().map_or(ptr::null(), |_| (&raw const bench).cast());
    let facts = ExtFacts {
        header: ExtHeader { next, ..ExtHeader::new(ext_tags::FACTS, 1, &layout::EXT_FACTS) },
        facts: facts(op.facts.unwrap_or_default()),
    };
    let next = op.facts.map_or(next, |_| (&raw const facts).cast());
    let cases = strs(op.cases.as_deref().unwrap_or_default());
    let link = ExtCases {
        header: ExtHeader { next, ..ExtHeader::new(ext_tags::CASES, 1, &layout::EXT_CASES) },
        cases: Strs::new(&cases),
    };
    let ext = op.cases.as_ref().map_or(next, |_| (&raw const link).cast());
    let def = OpDef {
        struct_size: size_of::<OpDef>() as u32,
        flags: op.flags,
        name: Str::new(&op.name),
        inputs: Strs::new(&inputs),
        outputs: Strs::new(&outputs),
        attrs: Strs::new(&attrs),
        summary: Str::new(&op.summary),
        description: Str::new(&op.description),
        shape: ShapeFn { run: None },
        source: source(&op.source),
        ext,
    };
    // SAFETY: the registrar's own entry, with a definition that lives through the call.
    unsafe { (*table).op.map_or(Code::INTERNAL, |entry| entry(registrar, &def)) }
}

fn submit_kernel(
    kernel: &KernelWire,
    registrar: *mut Registrar,
    table: *const RegistrarTable,
) -> Code {
    let types: Vec<Vec<DType>> = kernel
        .constraints
        .iter()
        .map(|(_, types)| types.iter().map(|&number| DType(number)).collect())
        .collect();
    let constraints: Vec<TypeConstraint> = kernel
        .constraints
        .iter()
        .zip(&types)
        .map(|((attr, _), types)| {
            let (types, count) = (types.as_ptr(), types.len());
            TypeConstraint { attr: Str::new(attr), types, count }
        })
        .collect();
    let in_place: Vec<InPlace> =
        kernel.in_place.iter().map(|&(input, output)| InPlace { input, output }).collect();
    let (host_memory, features) = (strs(&kernel.host_memory), strs(&kernel.features));
    let [fixed_ns, per_element_ns] = kernel.cost.unwrap_or_default();
    let header = ExtHeader::new(ext_tags::COST, 1, &layout::EXT_COST);
    let link = ExtCost { header, fixed_ns, per_element_ns };
    let def = KernelDef {
        struct_size: size_of::<KernelDef>() as u32,
        flags: kernel.flags,
        op: Str::new(&kernel.op),
        device_type: Str::new(&kernel.device_type),
        label: Str::new(&kernel.label),
        priority: kernel.priority,
        reserved: 0,
        constraints: constraints.as_ptr(),
        constraint_count: constraints.len(),
        host_memory: Strs::new(&host_memory),
        in_place: in_place.as_ptr(),
        in_place_count: in_place.len(),
        features: Strs::new(&features),
        numerics: numerics(kernel),
        table: kernel.table_flags.map_or(ptr::null(), |flags| ptr::from_ref(table_for(flags))),
        source: source(&kernel.source),
        ext: kernel.cost.map_or(ptr::null(), |_| (&raw const link).cast()),
    };
    // SAFETY: as in `submit_op`; the table is a static one.
    unsafe { (*table).kernel.map_or(Code::INTERNAL, |entry| entry(registrar, &def)) }
}

fn numerics(kernel: &KernelWire) -> Numerics {
    let ([tolerance, determinism, accumulation], [ulps, absolute, relative]) =
        (kernel.numerics, kernel.figures);
    Numerics {
        tolerance: ToleranceKind(tolerance),
        determinism: tenon_abi::Determinism(determinism),
        ulps,
        absolute,
        relative,
        accumulation: DType(accumulation),
        reserved: 0,
    }
}

fn submit_knob(knob: &KnobWire, registrar: *mut Registrar, table: *const RegistrarTable) -> Code {
    let def = KnobDef {
        struct_size: size_of::<KnobDef>() as u32,
        kind: KnobKind(knob.kind),
        name: Str::new(&knob.name),
        default_value: Str::new(&knob.default),
        help: Str::new(&knob.help),
        source: source(&knob.source),
        ext: ptr::null(),
    };
    // SAFETY: as in `submit_op`.
    unsafe { (*table).knob.map_or(Code::INTERNAL, |entry| entry(registrar, &def)) }
}

fn submit_fusion(
    texts: &[String],
    registrar: *mut Registrar,
    table: *const RegistrarTable,
) -> Code {
    let texts = strs(texts);
    let link = ExtCases {
        header: ExtHeader::new(ext_tags::FUSION, 1, &layout::EXT_CASES),
        cases: Strs::new(&texts),
    };
    extension((&raw const link).cast(), registrar, table)
}

/// Submits a registration of which only the kind was sent, for the comparison with the manifest.
fn submit_other(tag: u32, registrar: *mut Registrar, table: *const RegistrarTable) -> Code {
    let header = ExtHeader { tag, version: 0, size: 0, layout_hash: 0, next: ptr::null() };
    extension(&raw const header, registrar, table)
}

fn extension(
    link: *const ExtHeader,
    registrar: *mut Registrar,
    table: *const RegistrarTable,
) -> Code {
    // SAFETY: as in `submit_op`.
    unsafe { (*table).extension.map_or(Code::INTERNAL, |entry| entry(registrar, link)) }
}
