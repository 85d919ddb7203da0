//! The host's table: services that a plugin can use outside a call.

use crate::{
    call::{self, monotonic_ns},
    context::{PluginContext, release_entry as release_context_entry, retain_entry},
    devices::{self, device_lost_entry},
    memory::{allocate_entry, deallocate_entry},
    record::PluginRecord,
    services::{
        buffers::{keep_entry, release_entry, view_entry},
        state::{self, STATE_TABLE},
        strings::STRING_TABLE,
    },
    sink::report_entry,
};
use std::{
    cell::RefCell,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};
use tenon_abi::{
    self as abi, ABI_MAJOR, ABI_MINOR, Code, ExtCollectives, ExtFunctions, ExtHandles, ExtHeader,
    ExtNativeOf, ExtVariants, Host, KnobValue, LogLevel, Plugin, Str,
};
use tenon_framework::{
    attr_view::attr_entry,
    infer::SHAPE_TABLE,
    plugin::{guard, install_host},
};

/// The links of the table, in a chain.
static COLLECTIVES: ExtCollectives = call::COLLECTIVES;
static VARIANTS: ExtVariants = ExtVariants {
    header: ExtHeader { next: ptr::from_ref(&COLLECTIVES).cast(), ..state::VARIANTS.header },
    ..state::VARIANTS
};
static HANDLES: ExtHandles = ExtHandles {
    header: ExtHeader { next: ptr::from_ref(&VARIANTS).cast(), ..state::HANDLES.header },
    ..state::HANDLES
};
static FUNCTIONS: ExtFunctions = ExtFunctions {
    header: ExtHeader { next: ptr::from_ref(&HANDLES).cast(), ..call::FUNCTIONS.header },
    ..call::FUNCTIONS
};
static NATIVE_OF: ExtNativeOf = ExtNativeOf {
    header: ExtHeader { next: ptr::from_ref(&FUNCTIONS).cast(), ..devices::NATIVE_OF.header },
    ..devices::NATIVE_OF
};

/// The table that every plugin receives.
pub static HOST: Host = Host {
    struct_size: size_of::<Host>() as u32,
    abi_major: ABI_MAJOR,
    abi_minor: ABI_MINOR,
    reserved: 0,
    report: Some(report_entry),
    log: Some(log_entry),
    attr: Some(attr_entry),
    knob: Some(knob_entry),
    retain_context: Some(retain_entry),
    release_context: Some(release_context_entry),
    path: Some(path_entry),
    allocate: Some(allocate_entry),
    deallocate: Some(deallocate_entry),
    now_ns: Some(now_ns_entry),
    keep: Some(keep_entry),
    view: Some(view_entry),
    release: Some(release_entry),
    device_lost: Some(device_lost_entry),
    strings: &STRING_TABLE,
    shapes: &SHAPE_TABLE,
    state: &STATE_TABLE,
    ext: ptr::from_ref(&NATIVE_OF).cast(),
};

/// The table that plugins receive instead of [`HOST`]; null for `HOST`.
static OTHER: AtomicPtr<Host> = AtomicPtr::new(std::ptr::null_mut());

/// The table that a library receives when it is opened.
pub(crate) fn table() -> *const Host {
    match OTHER.load(Ordering::Acquire) {
        other if other.is_null() => &raw const HOST,
        other => other,
    }
}

/// Sets another table for libraries that are opened from now on.
#[cfg(target_os = "linux")]
pub fn give_plugins(table: &'static Host) {
    OTHER.store(std::ptr::from_ref(table).cast_mut(), Ordering::Release);
}

/// Provides the table to plugins linked into the host. Only the first call has an effect.
pub fn install() {
    // SAFETY: table and record live as long as the process; every entry is filled.
    unsafe { install_host(&raw const HOST, PluginRecord::linked().as_plugin()) }
}

/// `Host::log`: a line in the host's log, with the plugin's name.
///
/// # Safety
/// - `plugin` is null or the record that the plugin received.
/// - `message` is readable.
unsafe extern "C" fn log_entry(plugin: *const Plugin, level: LogLevel, message: Str) {
    // SAFETY: the plugin passes null or its record, and a readable message.
    let (name, bytes) = unsafe { (PluginRecord::of(plugin).name(), message.bytes()) };
    let text = String::from_utf8_lossy(bytes);
    // A subscriber's panic stays here: it must not unwind into the plugin.
    let _ = guard(|| log(name, level, &text));
}

/// Writes a plugin's line to the host's log.
pub fn log(name: &str, level: LogLevel, text: &str) {
    match level {
        LogLevel::ERROR => tracing::error!(plugin = name, "{text}"),
        LogLevel::WARN => tracing::warn!(plugin = name, "{text}"),
        LogLevel::INFO => tracing::info!(plugin = name, "{text}"),
        LogLevel::DEBUG => tracing::debug!(plugin = name, "{text}"),
        _ => tracing::trace!(plugin = name, "{text}"),
    }
}

thread_local! {
    /// Keeps the text of the last knob read on this thread alive, as the ABI requires.
    static LAST_TEXT: RefCell<tenon_framework::knob::KnobValue> =
        const { RefCell::new(tenon_framework::knob::KnobValue::Bool(false)) };
}

/// `Host::knob`: one of the plugin's own knobs.
///
/// # Safety
/// - `context` is null or a live context that the plugin received.
/// - `name` is readable.
/// - `result` is null or valid for writes.
unsafe extern "C" fn knob_entry(
    context: *const abi::PluginContext,
    name: Str,
    result: *mut KnobValue,
) -> Code {
    // SAFETY: the plugin passes null or a live context that it received, and a readable name.
    let (context, name) = unsafe { (PluginContext::of(context), name.text()) };
    let Some(name) = name.filter(|_| !result.is_null()) else { return Code::INVALID_ARGUMENT };
    let Some(setting) = context.and_then(|context| context.knob(name)) else {
        return Code::NOT_FOUND;
    };
    LAST_TEXT.with(|last| {
        let mut last = last.borrow_mut();
        *last = setting.value;
        // SAFETY: `result` is not null, and the plugin passes a pointer that is valid for writes.
        unsafe { result.write(last.to_abi()) };
    });
    Code::OK
}

/// `Host::path`: the plugin's own file.
///
/// # Safety
/// - `plugin` is null or the record that the plugin received.
unsafe extern "C" fn path_entry(plugin: *const Plugin) -> Str {
    // SAFETY: the plugin passes null or its record.
    unsafe { PluginRecord::of(plugin) }.path_bytes()
}

/// `Host::now_ns`: the clock of steps and traces.
///
/// # Safety
/// None: `unsafe` only for the type of the table's entry.
unsafe extern "C" fn now_ns_entry() -> u64 {
    monotonic_ns()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{path::Path, sync::Arc};
    use tenon_abi::KnobKind;
    use tenon_framework::{
        knob::{KnobDef, KnobStore, Knobs},
        op::SourceInfo,
    };

    fn knobs(list: &[(&str, &str, KnobKind, &str)]) -> Arc<Knobs> {
        let mut store = KnobStore::default();
        for (scope, name, kind, default) in list {
            let def = KnobDef::new(scope, name, *kind, default, "", SourceInfo::default());
            store.declare(Arc::new(def.unwrap())).unwrap();
        }
        Arc::new(store.snapshot([], &[], &[]).unwrap())
    }

    fn read(context: &Arc<PluginContext>, name: &str) -> Result<KnobValue, Code> {
        let mut value = tenon_framework::knob::KnobValue::Bool(false).to_abi();
        // SAFETY: a live context, a readable name, a writable result.
        match unsafe { knob_entry(context.as_raw(), Str::new(name), &mut value) } {
            Code::OK => Ok(value),
            code => Err(code),
        }
    }

    #[test]
    fn a_plugin_reads_its_own_knobs_only() {
        let values = |count: &str| {
            knobs(&[
                ("p", "name", KnobKind::STRING, "text"),
                ("p", "count", KnobKind::INT, count),
                ("q", "other", KnobKind::INT, "8"),
            ])
        };
        let context = PluginContext::new("tenon-p", values("7"));
        assert_eq!(read(&context, "count").unwrap().int_value, 7);
        let text = read(&context, "name").unwrap().text;
        // SAFETY: the text is valid until the next look-up on this thread.
        assert_eq!(unsafe { text.text() }, Some("text"));
        assert_eq!(read(&context, "other").err(), Some(Code::NOT_FOUND));
        // SAFETY: null or a live context, a readable name; a null result is refused.
        let (code, nobody) = unsafe {
            let mut value = tenon_framework::knob::KnobValue::Bool(false).to_abi();
            let name = Str::new("count");
            (
                knob_entry(context.as_raw(), name, std::ptr::null_mut()),
                knob_entry(std::ptr::null(), name, &mut value),
            )
        };
        assert_eq!((code, nobody), (Code::INVALID_ARGUMENT, Code::NOT_FOUND));
        context.set_knobs(values("9"));
        assert_eq!(read(&context, "count").unwrap().int_value, 9);
    }

    #[test]
    fn two_contexts_of_one_plugin_have_values_of_their_own() {
        let of =
            |count| PluginContext::new("tenon-p", knobs(&[("p", "count", KnobKind::INT, count)]));
        let (first, second) = (of("1"), of("2"));
        assert_eq!(read(&first, "count").unwrap().int_value, 1);
        assert_eq!(read(&second, "count").unwrap().int_value, 2);
    }

    #[test]
    fn the_path_is_the_plugin_s_own() {
        let record = PluginRecord::leak("tenon-p", Path::new("/lib/p.so"));
        // SAFETY: null or a live record; null means that the plugin is linked in.
        let (own, linked) =
            unsafe { (path_entry(record.as_plugin()).text(), path_entry(std::ptr::null()).text()) };
        assert_eq!(own, Some("/lib/p.so"));
        assert_eq!(linked, Some(""));
    }

    #[test]
    fn the_clock_never_goes_back() {
        // SAFETY: no arguments.
        let (first, second) = unsafe { (now_ns_entry(), now_ns_entry()) };
        assert!(first <= second);
    }
}
