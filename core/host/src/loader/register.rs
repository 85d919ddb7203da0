//! Step 8, register: collects a plugin's registrations in a transaction.

use super::{
    compare::compare,
    library::{Library, turn},
};
use crate::{
    entries::table as table_of_host, error::LoadError, registrar::Collector, sink::MessageSink,
};
use tenon_framework::registry::{PluginInfo, Transaction};

/// Steps 8 and 9: collects what the plugin registers, under `info`, and compares it with its
/// manifest. The transaction contains the errors of single registrations.
///
/// # Errors
/// `register_all` fails, or manifest and registrations differ.
pub fn collect(library: &'static Library, info: PluginInfo) -> Result<Transaction, LoadError> {
    let (path, plugin) = (library.path.clone(), library.manifest.plugin.name.clone());
    let mut collector = Collector::new(info);
    let sink = MessageSink::new();
    let turn = turn();
    // SAFETY: the plugin's own entry, with a registrar, its table and a sink that outlive the call.
    let code = unsafe { collector.call(library.table.register_all, sink.as_sink()) };
    drop(turn);
    if let Err(error) = sink.check(code) {
        return Err(LoadError::Register { path, plugin, error });
    }
    let (transaction, entries) = collector.finish();
    if transaction.errors().is_empty() {
        compare(&path, &plugin, library.manifest.entries(), entries)?;
    }
    Ok(transaction)
}

/// Calls a library's registration with a registrar of the caller.
///
/// # Safety
/// - `registrar` and `table` are a registrar and its table, valid during the call.
#[cfg(target_os = "linux")]
pub unsafe fn register_with(
    library: &'static Library,
    registrar: *mut tenon_abi::Registrar,
    table: *const tenon_abi::RegistrarTable,
) -> Result<(), LoadError> {
    let sink = MessageSink::new();
    let code = match library.table.register_all {
        // SAFETY: the plugin's own entry; the caller guarantees that the registrar and its table
        // are valid during the call.
        Some(register) => unsafe { register(table_of_host(), registrar, table, sink.as_sink()) },
        None => tenon_abi::Code::INTERNAL,
    };
    sink.check(code).map_err(|error| {
        let (path, plugin) = (library.path.clone(), library.manifest.plugin.name.clone());
        LoadError::Register { path, plugin, error }
    })
}
