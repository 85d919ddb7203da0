//! Copies what a plugin registers for the host; tables and shape functions stay here.

use crate::definition::{
    BenchWire, Definition, FactsWire, KernelWire, KnobWire, OpWire, SourceWire,
};
use std::{slice, sync::Arc};
use tenon_abi::{
    Code, DeviceTypeDef, ExtBench, ExtCases, ExtCost, ExtFacts, ExtHeader, Facts, KernelDef,
    KernelTable, KnobDef, OpDef, Registrar, RegistrarTable, Source, Str, Strs, ext_tags, find_ext,
    kernel_flags,
};
use tenon_framework::{
    knob::{self, KnobStore},
    plugin::guard,
    registry::knob_scope,
};
use tenon_host::{
    LoadError,
    loader::{self, Library},
};

/// The registrations of a plugin.
#[derive(Default)]
pub(super) struct Captured {
    pub definitions: Vec<Definition>,
    /// The tables of its kernels, in order.
    pub tables: Vec<Option<&'static KernelTable>>,
    /// Its ops, in order; `None` for one that the host will refuse.
    pub ops: Vec<Option<Arc<tenon_framework::op::OpDef>>>,
    knobs: Vec<knob::KnobDef>,
    scope: String,
}

impl Captured {
    /// The knobs that it declares.
    pub fn knobs(&self) -> KnobStore {
        let mut store = KnobStore::default();
        for def in &self.knobs {
            // The host refuses a knob that is declared twice.
            let _ = store.declare(Arc::new(def.clone()));
        }
        store
    }
}

/// Calls a library's registration.
pub(super) fn capture(library: &'static Library) -> Result<Captured, LoadError> {
    let scope = knob_scope(library.record.name());
    let mut captured = Captured { scope, ..Captured::default() };
    let registrar: *mut Registrar = (&raw mut captured).cast();
    // SAFETY: both are valid during the call.
    unsafe { loader::register_with(library, registrar, &raw const TABLE)? };
    Ok(captured)
}

static TABLE: RegistrarTable = RegistrarTable {
    struct_size: size_of::<RegistrarTable>() as u32,
    reserved: 0,
    op: Some(op),
    kernel: Some(kernel),
    device_type: Some(device_type),
    knob: Some(knob),
    extension: Some(extension),
};

/// # Safety
/// - `registrar` is the one that the running `register_all` was given.
unsafe fn with(registrar: *mut Registrar, body: impl FnOnce(&mut Captured)) -> Code {
    // SAFETY: the plugin passes the registrar that `capture` lends to `register_all`, and uses it
    // from one thread.
    let Some(captured) = (unsafe { registrar.cast::<Captured>().as_mut() }) else {
        return Code::INVALID_ARGUMENT;
    };
    if guard(|| body(captured)).is_ok() { Code::OK } else { Code::INTERNAL }
}

/// # Safety
/// - The text is readable.
unsafe fn text(text: Str) -> String {
    // SAFETY: the text is readable, as the caller guarantees.
    String::from_utf8_lossy(unsafe { text.bytes() }).into_owned()
}

/// # Safety
/// - The list and its texts are readable.
unsafe fn texts(list: Strs) -> Vec<String> {
    // SAFETY: the list and its texts are readable, as the caller guarantees.
    unsafe { list.slice().iter().map(|&item| text(item)).collect() }
}

/// # Safety
/// - The texts of `source` are readable.
unsafe fn source(source: &Source) -> SourceWire {
    // SAFETY: the texts of `source` are readable, as the caller guarantees.
    unsafe { (text(source.krate), text(source.file), source.line) }
}

/// # Safety
/// - `first` is null or points to `count` elements that are readable for `'a`.
unsafe fn items<'a, T>(first: *const T, count: usize) -> &'a [T] {
    // SAFETY: `first` is null or points to `count` elements, which are readable for `'a`, as the
    // caller guarantees.
    if first.is_null() || count == 0 { &[] } else { unsafe { slice::from_raw_parts(first, count) } }
}

/// A struct that a plugin registers; `None` for a null pointer, or for a struct shorter than this
/// host's.
///
/// # Safety
/// - `given` is null or points to a struct that begins with its size.
/// - The struct is readable for that size for `'a`.
unsafe fn whole<'a, T>(given: *const T) -> Option<&'a T> {
    // SAFETY: every struct of the boundary begins with its size, which is read first; the caller
    // gives one that is as long as it says.
    unsafe {
        let is_whole = !given.is_null() && given.cast::<u32>().read() as usize >= size_of::<T>();
        is_whole.then(|| &*given)
    }
}

/// # Safety
/// - `chain` is null or a chain of links that are live for `'a`.
unsafe fn link<'a, T>(chain: *const ExtHeader, tag: u32) -> Option<&'a T> {
    // SAFETY: the caller gives null or a chain of live links; the one with this tag and size is a
    // `T`.
    unsafe { find_ext(chain, tag, size_of::<T>()).cast::<T>().as_ref() }
}

/// Captures an op.
///
/// # Safety
/// - `registrar` meets what [`with`] requires.
/// - `op` is null or a definition whose size, texts, arrays and links are valid, as a plugin passes
///   it to a registrar.
unsafe extern "C" fn op(registrar: *mut Registrar, op: *const OpDef) -> Code {
    // SAFETY: the plugin passes these to a registrar, and so keeps them readable.
    unsafe {
        with(registrar, |captured| {
            let Some(def) = whole(op) else { return };
            let cases = link::<ExtCases>(def.ext, ext_tags::CASES).map(|link| texts(link.cases));
            let bench = link::<ExtBench>(def.ext, ext_tags::BENCH).map(|link| BenchWire {
                calls: texts(link.calls),
                flops: text(link.flops),
                bytes: text(link.bytes),
            });
            let facts = link::<ExtFacts>(def.ext, ext_tags::FACTS);
            captured.definitions.push(Definition::Op(OpWire {
                name: text(def.name),
                flags: def.flags,
                inputs: texts(def.inputs),
                outputs: texts(def.outputs),
                attrs: texts(def.attrs),
                summary: text(def.summary),
                description: text(def.description),
                has_shape: def.shape.run.is_some(),
                cases,
                bench,
                facts: facts.map(|link| facts_wire(&link.facts)),
                source: source(&def.source),
            }));
            captured.ops.push(tenon_framework::op::OpDef::from_abi(op).ok().map(Arc::new));
        })
    }
}

fn facts_wire(facts: &Facts) -> FactsWire {
    let Facts { flags, passed_input, passed_output, deciding_inputs, .. } = *facts;
    let [role, value, refusal] = [facts.role.0, facts.value.0, facts.refusal.0];
    let [symmetry, gradient] = [facts.symmetry.0, facts.gradient.0];
    let numbers = [flags, role, value, refusal, symmetry, gradient, passed_input, passed_output];
    (numbers, deciding_inputs)
}

/// Captures a kernel.
///
/// # Safety
/// - `registrar` meets what [`with`] requires.
/// - `kernel` is null or a definition as for `op`, whose table lives as long as the library.
unsafe extern "C" fn kernel(registrar: *mut Registrar, kernel: *const KernelDef) -> Code {
    // SAFETY: as in `op`; a kernel's table lives as long as its library.
    unsafe {
        with(registrar, |captured| {
            let Some(def) = whole(kernel) else { return };
            // The host refuses a kernel without a table, and a table that cannot compute.
            let table = whole(def.table).filter(|table| table.compute.is_some());
            let flags = table.map(|table| table.flags);
            captured.definitions.push(Definition::Kernel(kernel_wire(def, flags)));
            captured.tables.push(table);
        })
    }
}

/// # Safety
/// - `def` is a definition that a plugin passes to a registrar: its arrays, texts and links are
///   readable.
unsafe fn kernel_wire(def: &KernelDef, table_flags: Option<u32>) -> KernelWire {
    let known = kernel_flags::ASYNC | kernel_flags::BLOCKING | kernel_flags::EXPENSIVE;
    let numerics = &def.numerics;
    // SAFETY: the plugin, whose definition the caller passes on, keeps its arrays, texts and links
    // readable.
    unsafe {
        let constraints = items(def.constraints, def.constraint_count).iter().map(|constraint| {
            let types = items(constraint.types, constraint.count);
            (text(constraint.attr), types.iter().map(|dtype| dtype.0).collect())
        });
        let in_place = items(def.in_place, def.in_place_count).iter();
        let cost = link::<ExtCost>(def.ext, ext_tags::COST);
        KernelWire {
            op: text(def.op),
            device_type: text(def.device_type),
            label: text(def.label),
            flags: def.flags,
            priority: def.priority,
            constraints: constraints.collect(),
            host_memory: texts(def.host_memory),
            in_place: in_place.map(|pair| (pair.input, pair.output)).collect(),
            features: texts(def.features),
            numerics: [numerics.tolerance.0, numerics.determinism.0, numerics.accumulation.0],
            figures: [numerics.ulps, numerics.absolute, numerics.relative],
            table_flags: table_flags.map(|flags| flags & known),
            cost: cost.map(|cost| [cost.fixed_ns, cost.per_element_ns]),
            source: source(&def.source),
        }
    }
}

/// Captures the name of a device type.
///
/// # Safety
/// - `registrar` meets what [`with`] requires.
/// - `def` is null or a definition as for `op`.
unsafe extern "C" fn device_type(registrar: *mut Registrar, def: *const DeviceTypeDef) -> Code {
    // SAFETY: as in `op`.
    unsafe {
        with(registrar, |captured| {
            let name = whole(def).map(|def| text(def.name)).unwrap_or_default();
            captured.definitions.push(Definition::DeviceType(name));
        })
    }
}

/// Captures a knob.
///
/// # Safety
/// - `registrar` meets what [`with`] requires.
/// - `knob` is null or a definition as for `op`.
unsafe extern "C" fn knob(registrar: *mut Registrar, knob: *const KnobDef) -> Code {
    // SAFETY: as in `op`.
    unsafe {
        with(registrar, |captured| {
            let Some(def) = whole(knob) else { return };
            captured.definitions.push(Definition::Knob(KnobWire {
                name: text(def.name),
                kind: def.kind.0,
                default: text(def.default_value),
                help: text(def.help),
                source: source(&def.source),
            }));
            captured.knobs.extend(knob::KnobDef::from_abi(&captured.scope, knob).ok());
        })
    }
}

/// Captures a registration of another kind.
///
/// # Safety
/// - `registrar` meets what [`with`] requires.
/// - `link` is null or a link that is valid for its tag, and so is its chain.
unsafe extern "C" fn extension(registrar: *mut Registrar, link: *const ExtHeader) -> Code {
    // SAFETY: as in `op`.
    unsafe {
        with(registrar, |captured| {
            let Some(header) = link.as_ref() else { return };
            // Variants do not cross: nothing would decode one here.
            if header.tag == ext_tags::VARIANT {
                return;
            }
            captured.definitions.push(match header.tag {
                ext_tags::FUSION => {
                    let found = self::link::<ExtCases>(link, ext_tags::FUSION);
                    Definition::Fusion(found.map(|found| texts(found.cases)).unwrap_or_default())
                }
                ext_tags::PASS => Definition::Pass,
                tag => Definition::Other(tag),
            });
        })
    }
}
