//! Step 7, start: runs the plugin's own `open`, once per process.

use super::handshake::Who;
use crate::{
    entries::table as table_of_host, error::LoadError, record::PluginRecord, sink::MessageSink,
};
use tenon_abi::PluginV1;

/// Runs the plugin's `open`, if it has one.
pub fn start(
    table: &'static PluginV1,
    record: &'static PluginRecord,
    who: Who<'_>,
) -> Result<(), LoadError> {
    let Some(open) = table.open else { return Ok(()) };
    let sink = MessageSink::new();
    // SAFETY: table and record live as long as the process, and the sink is valid during the call.
    let code = unsafe { open(table_of_host(), record.as_plugin(), sink.as_sink()) };
    sink.check(code).map_err(|error| {
        let (path, plugin) = (who.path.to_owned(), who.plugin.to_owned());
        LoadError::Start { path, plugin, error }
    })
}
