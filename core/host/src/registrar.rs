//! The registrar: collects a plugin's registrations, and their texts for the comparison with the
//! manifest.

use crate::{
    entries::HOST,
    manifest::{
        DeviceLine, KernelLine, KnobLine, OpLine, Place, device_entry, extension_entry,
        kernel_entry, knob_entry, op_entry,
    },
};
use std::collections::BTreeMap;
use tenon_abi::{
    Code, DeviceTypeDef, ExtCases, ExtHeader, Host, KernelDef, KnobDef, OpDef, Registrar,
    RegistrarTable, Sink, Str, Strs, TypeConstraint, ext_tags, find_ext, kernel_def_flags,
};
use tenon_framework::{
    op::RawError,
    plugin::guard,
    registry::{PluginInfo, RegistryError, Transaction},
};

/// `PluginV1::register_all`.
pub type RegisterFn = unsafe extern "C" fn(
    host: *const Host,
    registrar: *mut Registrar,
    table: *const RegistrarTable,
    sink: *mut Sink,
) -> Code;

/// Collects what one plugin registers: the type behind the opaque `Registrar`.
pub struct Collector {
    transaction: Transaction,
    entries: Vec<String>,
    panic: Option<String>,
}

/// The registrar's table.
static TABLE: RegistrarTable = RegistrarTable {
    struct_size: size_of::<RegistrarTable>() as u32,
    reserved: 0,
    op: Some(op),
    kernel: Some(kernel),
    device_type: Some(device_type),
    knob: Some(knob),
    extension: Some(extension),
};

impl Collector {
    /// An empty collector for this plugin.
    pub fn new(info: PluginInfo) -> Collector {
        Collector { transaction: Transaction::new(info), entries: Vec::new(), panic: None }
    }

    /// Calls a plugin's registration.
    ///
    /// # Safety
    /// - `register` is a plugin's entry; its definitions point to readable memory and its tables
    ///   live as long as the process.
    /// - `sink` is null or a live sink.
    pub unsafe fn call(&mut self, register: Option<RegisterFn>, sink: *mut Sink) -> Code {
        let Some(register) = register else { return Code::INTERNAL };
        let registrar = (&raw mut *self).cast();
        // SAFETY: the caller guarantees a plugin's entry with definitions as the boundary requires,
        // and a `sink` that is null or live; the collector and the tables outlive the call.
        unsafe { register(&raw const HOST, registrar, &raw const TABLE, sink) }
    }

    /// Collects what is linked into the host: `submit` receives a registrar and its table.
    pub fn call_linked(&mut self, submit: impl FnOnce(*mut Registrar, *const RegistrarTable)) {
        submit((&raw mut *self).cast(), &raw const TABLE);
    }

    /// The transaction, and a sorted list with a text for every registration that could be read.
    pub fn finish(mut self) -> (Transaction, Vec<String>) {
        if let Some(panic) = self.panic.take() {
            tracing::error!("the host's registrar panicked: {panic}");
        }
        self.entries.sort();
        (self.transaction, self.entries)
    }

    /// Adds one registration. Errors are collected, and reported when the transaction is committed;
    /// the plugin continues.
    fn add(
        &mut self,
        take: impl FnOnce(&mut Transaction) -> Code,
        entry: impl FnOnce() -> String,
    ) -> Code {
        if take(&mut self.transaction).is_ok() {
            self.entries.push(entry());
        }
        Code::OK
    }
}

/// Runs an entry on the collector; a panic must not unwind into the plugin.
///
/// # Safety
/// - `registrar` is null or the one that the running `register_all` received.
unsafe fn with(registrar: *mut Registrar, body: impl FnOnce(&mut Collector) -> Code) -> Code {
    // SAFETY: the caller guarantees that `registrar` is null or the collector that the running
    // `register_all` received; `register_all` uses it from one thread.
    let Some(collector) = (unsafe { registrar.cast::<Collector>().as_mut() }) else {
        return Code::INVALID_ARGUMENT;
    };
    match guard(|| body(&mut *collector)) {
        Ok(code) => code,
        Err(panic) => {
            collector.panic = Some(panic);
            Code::INTERNAL
        }
    }
}

/// # Safety
/// - The text was checked to be readable.
unsafe fn text(text: Str) -> String {
    // SAFETY: the caller guarantees that the text is of a definition that was read before, and so
    // is readable.
    String::from_utf8_lossy(unsafe { text.bytes() }).into_owned()
}

/// # Safety
/// - The texts were checked to be readable.
unsafe fn texts(list: Strs) -> Vec<String> {
    // SAFETY: the caller guarantees that the texts are of a definition that was read before, and so
    // are readable.
    unsafe { list.slice().iter().map(|&item| text(item)).collect() }
}

/// # Safety
/// - `registrar` meets what [`with`] requires.
/// - `op` meets what `OpDef::from_abi` requires.
unsafe extern "C" fn op(registrar: *mut Registrar, op: *const OpDef) -> Code {
    // SAFETY: the plugin passes its registrar and a definition as `from_abi` requires; texts are
    // read only after the definition was found readable.
    unsafe {
        with(registrar, |collector| {
            collector.add(
                |transaction| transaction.op_from_abi(op),
                || {
                    op_entry(&OpLine {
                        name: text((*op).name),
                        inputs: texts((*op).inputs),
                        outputs: texts((*op).outputs),
                        attrs: texts((*op).attrs),
                        cases: cases((*op).ext),
                        place: Place::default(),
                    })
                },
            )
        })
    }
}

/// # Safety
/// - The chain was found readable.
unsafe fn cases(chain: *const ExtHeader) -> Vec<String> {
    // SAFETY: the caller guarantees that the chain was read before, so its links are live and their
    // texts readable.
    unsafe {
        let link = find_ext(chain, ext_tags::CASES, size_of::<ExtCases>()).cast::<ExtCases>();
        link.as_ref().map(|link| texts(link.cases)).unwrap_or_default()
    }
}

/// # Safety
/// - `registrar` meets what [`with`] requires.
/// - `kernel` meets what `KernelDef::from_abi` requires.
unsafe extern "C" fn kernel(registrar: *mut Registrar, kernel: *const KernelDef) -> Code {
    // SAFETY: as in `op`.
    unsafe {
        with(registrar, |collector| {
            collector.add(
                |transaction| transaction.kernel_from_abi(kernel),
                || kernel_entry(&kernel_line(&*kernel)),
            )
        })
    }
}

/// # Safety
/// - The definition was found readable.
unsafe fn kernel_line(kernel: &KernelDef) -> KernelLine {
    // SAFETY: the caller guarantees that the definition was read before, so its pointers are
    // readable.
    unsafe {
        KernelLine {
            op: text(kernel.op),
            device: text(kernel.device_type),
            label: text(kernel.label),
            priority: kernel.priority,
            on_request: kernel.flags & kernel_def_flags::ON_REQUEST != 0,
            types: types(kernel.constraints, kernel.constraint_count),
            features: texts(kernel.features),
            place: Place::default(),
        }
    }
}

/// # Safety
/// - `constraints` points to `count` readable constraints, each with readable types.
unsafe fn types(constraints: *const TypeConstraint, count: usize) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    for at in 0..count {
        // SAFETY: the caller guarantees `count` readable constraints, each with readable types.
        unsafe {
            let constraint = &*constraints.add(at);
            let names =
                (0..constraint.count).map(|at| (*constraint.types.add(at)).name().to_owned());
            all.insert(text(constraint.attr), names.collect());
        }
    }
    all
}

/// # Safety
/// - `registrar` meets what [`with`] requires.
/// - `def` meets what `DeviceTypeDef::from_abi` requires.
unsafe extern "C" fn device_type(registrar: *mut Registrar, def: *const DeviceTypeDef) -> Code {
    // SAFETY: as in `op`.
    unsafe {
        with(registrar, |collector| {
            collector.add(
                |transaction| transaction.device_type_from_abi(def),
                || {
                    let (name, priority) = (text((*def).name), (*def).priority);
                    device_entry(&DeviceLine { name, priority, place: Place::default() })
                },
            )
        })
    }
}

/// # Safety
/// - `registrar` meets what [`with`] requires.
/// - `knob` meets what `KnobDef::from_abi` requires.
unsafe extern "C" fn knob(registrar: *mut Registrar, knob: *const KnobDef) -> Code {
    // SAFETY: as in `op`.
    unsafe {
        with(registrar, |collector| {
            collector.add(
                |transaction| transaction.knob_from_abi(knob),
                || {
                    let (name, default) = (text((*knob).name), text((*knob).default_value));
                    knob_entry(&KnobLine { name, default, place: Place::default() })
                },
            )
        })
    }
}

/// Records each tag for the comparison with the manifest; an unknown tag is not an error.
///
/// # Safety
/// - `registrar` meets what [`with`] requires.
/// - `link` is null or a live link, whose texts, entries and tables are as [`Collector::call`]
///   requires.
unsafe extern "C" fn extension(registrar: *mut Registrar, link: *const ExtHeader) -> Code {
    // SAFETY: the plugin passes its registrar and null or a live link, with texts, entries and
    // tables as the caller of `Collector::call` guarantees.
    unsafe {
        with(registrar, |collector| {
            let Some(header) = link.as_ref() else {
                let null = RawError::NullStruct { what: "extension link" };
                return collector.transaction.refuse(RegistryError::Raw(null));
            };
            collector.entries.push(extension_entry(header.tag));
            match header.tag {
                ext_tags::FUSION => collector.transaction.fusion_from_abi(link),
                ext_tags::PASS => collector.transaction.pass_from_abi(link),
                ext_tags::VARIANT => collector.transaction.variant_from_abi(link),
                _ => Code::UNIMPLEMENTED,
            }
        })
    }
}
