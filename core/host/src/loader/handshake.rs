//! Steps 5 and 6: obtains a library's table through its root symbol, and checks it.

use crate::error::{AbiVersion, LoadError};
use std::{fmt, path::Path};
use tenon_abi::{
    ABI_MAJOR, ABI_MINOR, CPluginFn, PluginV1, Str,
    door::{self, AbiHeaderRef, C_SYMBOL, Refusal},
};

/// The kind of root symbol by which a library provides its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Door {
    /// Door 1: a root module with this symbol.
    Root(String),
    /// Door 2: a C function.
    C,
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Door::Root(_) => f.write_str("1 (Rust)"),
            Door::C => f.write_str("2 (C)"),
        }
    }
}

/// The plugin that is being loaded, for messages.
#[derive(Clone, Copy)]
pub struct Who<'a> {
    /// The file.
    pub path: &'a Path,
    /// Name in the manifest.
    pub plugin: &'a str,
    /// Version in the manifest.
    pub version: &'a str,
}

/// The library's table, checked.
///
/// # Errors
/// An incompatible ABI or layout, a plugin that declines, a table that violates the boundary.
///
/// # Safety
/// - The library is a plugin: its root symbol is what `door` says.
/// - The library stays mapped for the life of the process.
pub unsafe fn table(
    library: &libloading::Library,
    door: &Door,
    who: Who<'_>,
) -> Result<&'static PluginV1, LoadError> {
    // SAFETY: the caller guarantees a plugin that stays mapped, and whose root symbol is what
    // `door` says.
    let table = unsafe {
        match door {
            Door::Root(symbol) => root(library, symbol, who)?,
            Door::C => c_table(library, who)?,
        }
    };
    check(table, who)?;
    // SAFETY: not null, of the size that this host knows, and alive as long as the process.
    let table = unsafe { &*table };
    check_texts(table, who)?;
    Ok(table)
}

fn missing_symbol(who: Who<'_>, error: &libloading::Error) -> LoadError {
    let (path, plugin) = (who.path.to_owned(), who.plugin.to_owned());
    LoadError::Open { path, plugin, detail: detail(error) }
}

/// The dynamic linker's message, if the error has more than the name of the failed call.
pub fn detail(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), |cause| cause.to_string())
}

/// The table of a library with a root module.
///
/// # Safety
/// - The caller upholds what [`table`] requires, with a root module as the door.
unsafe fn root(
    library: &libloading::Library,
    symbol: &str,
    who: Who<'_>,
) -> Result<*const PluginV1, LoadError> {
    // SAFETY: the symbol is the static that `export_plugin!` exports.
    let header = unsafe { library.get::<AbiHeaderRef>(symbol.as_bytes()) };
    let header = *header.map_err(|error| missing_symbol(who, &error))?;
    door::open(header).map(|table| &raw const *table).map_err(|refusal| refused(refusal, who))
}

fn refused(refusal: Refusal, who: Who<'_>) -> LoadError {
    let (path, plugin) = (who.path.to_owned(), who.plugin.to_owned());
    match refusal {
        Refusal::Layout { path: difference, report } => {
            tracing::debug!(plugin = who.plugin, "layout report:\n{report}");
            LoadError::Layout { path, plugin, difference }
        }
        Refusal::AbiStable { detail: report } => {
            tracing::debug!(plugin = who.plugin, "root module refused:\n{report}");
            let detail =
                "it is not a root module, or another version of abi_stable made it".to_owned();
            LoadError::Root { path, plugin, detail }
        }
        Refusal::Root { detail: report } => {
            tracing::debug!(plugin = who.plugin, "root module refused:\n{report}");
            let first = report.lines().map(str::trim).find(|line| !line.is_empty());
            let detail = first.unwrap_or("without a reason").to_owned();
            LoadError::Root { path, plugin, detail }
        }
    }
}

/// The table of a library with a C function.
///
/// # Safety
/// - The caller upholds what [`table`] requires, with a C function as the door.
unsafe fn c_table(
    library: &libloading::Library,
    who: Who<'_>,
) -> Result<*const PluginV1, LoadError> {
    // SAFETY: the symbol is a function of this type.
    let function = unsafe { library.get::<CPluginFn>(C_SYMBOL.as_bytes()) };
    let function = function.map_err(|error| missing_symbol(who, &error))?;
    // SAFETY: the symbol is a function of this type.
    let table = unsafe { function(ABI_MAJOR, ABI_MINOR) };
    if table.is_null() {
        let (path, plugin) = (who.path.to_owned(), who.plugin.to_owned());
        return Err(LoadError::Declined { path, plugin, host: AbiVersion::HOST });
    }
    Ok(table)
}

/// Compares ABI version and size, in this order, since another version explains another size. Both
/// numbers are in the first 12 bytes, which every version of the table has.
fn check(table: *const PluginV1, who: Who<'_>) -> Result<(), LoadError> {
    // SAFETY: not null, and at least as long as its first three numbers.
    let [found, major, minor] = unsafe { table.cast::<[u32; 3]>().read() };
    check_abi(AbiVersion { major, minor }, "table", who)?;
    let expected = size_of::<PluginV1>();
    if found as usize != expected {
        let (path, plugin) = (who.path.to_owned(), who.plugin.to_owned());
        return Err(LoadError::TableSize { path, plugin, expected, found });
    }
    Ok(())
}

/// Compares an ABI version with the host's.
///
/// # Errors
/// The versions are incompatible.
pub fn check_abi(found: AbiVersion, place: &'static str, who: Who<'_>) -> Result<(), LoadError> {
    if AbiVersion::HOST.accepts(found) {
        return Ok(());
    }
    let (path, plugin) = (who.path.to_owned(), who.plugin.to_owned());
    Err(LoadError::Abi { path, plugin, place, expected: AbiVersion::HOST, found })
}

/// Checks that name and version match the manifest, and that the required entry exists.
fn check_texts(table: &PluginV1, who: Who<'_>) -> Result<(), LoadError> {
    let wrong = |field, found| LoadError::Table {
        path: who.path.to_owned(),
        plugin: who.plugin.to_owned(),
        field,
        found,
    };
    for (field, text, expected) in
        [("name", table.name, who.plugin), ("version", table.version, who.version)]
    {
        let found = text_of(text);
        if found.as_deref() != Some(expected) {
            let found = found.unwrap_or_else(|| "not UTF-8".to_owned());
            return Err(wrong(field, format!("'{found}', in the manifest '{expected}'")));
        }
    }
    if table.register_all.is_none() {
        return Err(wrong("register_all", "null".to_owned()));
    }
    Ok(())
}

fn text_of(text: Str) -> Option<String> {
    // SAFETY: a text of the plugin's table, which lives as long as the library.
    unsafe { text.text() }.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Step;
    use std::ptr;

    fn who() -> Who<'static> {
        Who { path: Path::new("/lib/p.so"), plugin: "p", version: "1" }
    }

    fn plugin() -> PluginV1 {
        unsafe extern "C" fn register(
            _host: *const tenon_abi::Host,
            _registrar: *mut tenon_abi::Registrar,
            _table: *const tenon_abi::RegistrarTable,
            _sink: *mut tenon_abi::Sink,
        ) -> tenon_abi::Code {
            tenon_abi::Code::OK
        }
        PluginV1 {
            struct_size: size_of::<PluginV1>() as u32,
            abi_major: ABI_MAJOR,
            abi_minor: ABI_MINOR,
            reserved: 0,
            name: Str::new("p"),
            version: Str::new("1"),
            open: None,
            register_all: Some(register),
            ext: ptr::null(),
        }
    }

    fn checked(table: &PluginV1) -> Result<(), LoadError> {
        check(table, who())?;
        check_texts(table, who())
    }

    #[test]
    fn a_table_of_this_host_is_accepted() {
        checked(&plugin()).unwrap();
    }

    #[test]
    fn other_versions_and_sizes_are_refused_in_this_order() {
        let other = PluginV1 { abi_minor: ABI_MINOR + 1, struct_size: 8, ..plugin() };
        let error = checked(&other).unwrap_err();
        assert_eq!(error.step(), Step::Handshake);
        assert!(error.to_string().contains("its table says ABI 0."), "{error}");
        let error = checked(&PluginV1 { struct_size: 8, ..plugin() }).unwrap_err();
        assert!(matches!(error, LoadError::TableSize { found: 8, .. }));
    }

    #[test]
    fn a_table_that_contradicts_its_manifest_is_refused() {
        let error = checked(&PluginV1 { name: Str::new("q"), ..plugin() }).unwrap_err();
        assert!(
            error.to_string().contains("field 'name' of its table is 'q', in the manifest 'p'")
        );
        let error = checked(&PluginV1 { version: Str::from_bytes(b"\xff"), ..plugin() });
        assert!(matches!(error, Err(LoadError::Table { field: "version", .. })));
        let error = checked(&PluginV1 { register_all: None, ..plugin() }).unwrap_err();
        assert!(matches!(error, LoadError::Table { field: "register_all", .. }));
    }

    #[test]
    fn versions_before_1_are_equal_or_refused() {
        let version = |major, minor| AbiVersion { major, minor };
        assert!(version(0, 1).accepts(version(0, 1)) && !version(0, 2).accepts(version(0, 1)));
        assert!(version(1, 2).accepts(version(1, 0)) && version(1, 0).accepts(version(1, 2)));
        assert!(!version(1, 0).accepts(version(0, 1)) && !version(1, 0).accepts(version(2, 0)));
    }
}
