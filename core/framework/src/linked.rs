//! The list of registrations that are linked into this process.
//!
//! The crates of the core register knobs here, by [`register_knob!`](crate::register_knob). Ops, kernels and all other
//! kinds are registered through `tenon-author`, which adds its own list as a [`Source`]. The host reads [`entries`] and
//! makes one transaction for each crate. A library that a host opens does not use this list: its door submits the list
//! of `tenon-author`.
//!
//! ```
//! use tenon_framework::linked::entries;
//!
//! tenon_framework::register_knob!("rounds": INT = "3", "Rounds at most.");
//! # fn main() {
//! let own = env!("CARGO_PKG_NAME");
//! assert_eq!(entries().iter().filter(|entry| entry.site().krate == own).count(), 1);
//! # }
//! ```

use tenon_abi::{Code, KnobDef, KnobKind, Registrar, RegistrarTable, Str};

/// The place of a registration in the source; filled by the macros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// Crate.
    pub krate: &'static str,
    /// File.
    pub file: &'static str,
    /// Line, from 1.
    pub line: u32,
}

impl Site {
    /// For the boundary.
    pub const fn source(&self) -> tenon_abi::Source {
        tenon_abi::Source {
            krate: Str::new(self.krate),
            file: Str::new(self.file),
            line: self.line,
        }
    }
}

/// A registration of any kind.
pub trait Entry: Sync {
    /// Its place in the source.
    fn site(&self) -> &Site;

    /// Gives it to a registrar.
    ///
    /// # Safety
    /// - `to` is a registrar that `table` belongs to, and no other thread uses it during the call.
    /// - The entry of `table` for this kind of registration is filled.
    unsafe fn submit(&self, to: *mut Registrar, table: &RegistrarTable) -> Code;
}

/// Gives the registrations of a list that another crate keeps.
pub struct Source(pub fn() -> Vec<&'static dyn Entry>);

inventory::collect!(Source);
inventory::collect!(KnobReg);

/// All that is linked into this process, in an order that link order does not change: by crate, file and line.
pub fn entries() -> Vec<&'static dyn Entry> {
    let mut all: Vec<&dyn Entry> = inventory::iter::<Source>().flat_map(|list| list.0()).collect();
    all.extend(inventory::iter::<KnobReg>().map(|knob| knob as &dyn Entry));
    all.sort_by_key(|entry| (entry.site().krate, entry.site().file, entry.site().line));
    all
}

/// Gives registrations to a registrar, in their order; the first code that is an error ends it and is returned.
///
/// # Safety
/// - `table` points to a table that lives during the call.
/// - The conditions of [`Entry::submit`] for `to` and `table` hold for each of the entries.
pub unsafe fn submit<'a>(
    entries: impl IntoIterator<Item = &'a dyn Entry>,
    to: *mut Registrar,
    table: *const RegistrarTable,
) -> Code {
    // SAFETY: the table lives during the call, as the caller guarantees.
    let table = unsafe { &*table };
    for entry in entries {
        // SAFETY: the caller guarantees of `to` and `table` what an entry asks.
        let code = unsafe { entry.submit(to, table) };
        if !code.is_ok() {
            return code;
        }
    }
    Code::OK
}

/// A setting as `register_knob!` writes it.
#[derive(Clone, Copy)]
pub struct KnobReg {
    name: &'static str,
    kind: KnobKind,
    default: &'static str,
    help: &'static str,
    site: Site,
}

impl KnobReg {
    /// A knob; `default` is its value as text.
    pub const fn new(
        name: &'static str,
        kind: KnobKind,
        default: &'static str,
        help: &'static str,
        site: Site,
    ) -> KnobReg {
        KnobReg { name, kind, default, help, site }
    }

    /// Its name, without the scope.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its default as text.
    pub const fn default_text(&self) -> &'static str {
        self.default
    }

    /// Its place in the source.
    pub const fn site(&self) -> &Site {
        &self.site
    }
}

impl Entry for KnobReg {
    fn site(&self) -> &Site {
        &self.site
    }

    unsafe fn submit(&self, to: *mut Registrar, table: &RegistrarTable) -> Code {
        let def = KnobDef {
            struct_size: size_of::<KnobDef>() as u32,
            kind: self.kind,
            name: Str::new(self.name),
            default_value: Str::new(self.default),
            help: Str::new(self.help),
            source: self.site.source(),
            ext: std::ptr::null(),
        };
        // SAFETY: `to` and `table` belong together and no other thread uses `to`, as the caller guarantees; the host
        // copies the definition.
        unsafe { table.knob.expect("the host fills every entry")(to, &def) }
    }
}

/// Registers a knob of a crate of the core: `register_knob!("rounds": INT = "3", "Rounds at most.")`. Its scope is the
/// crate's name without `tenon-`. A knob that has the scope of another crate names that crate:
/// `register_knob!("monitor" of "tenon-runtime": STRING = "", "Port.")`.
///
/// Plugins use the macro of `tenon-sdk`, which writes the plugin's manifest too.
#[macro_export]
macro_rules! register_knob {
    ($name:literal : $kind:ident = $default:literal, $help:literal $(,)?) => {
        $crate::__knob!($name, env!("CARGO_PKG_NAME"), $kind, $default, $help);
    };
    ($name:literal of $owner:literal : $kind:ident = $default:literal, $help:literal $(,)?) => {
        $crate::__knob!($name, $owner, $kind, $default, $help);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __knob {
    ($name:literal, $owner:expr, $kind:ident, $default:literal, $help:literal) => {
        $crate::__private::inventory::submit! {
            $crate::linked::KnobReg::new(
                $name,
                $crate::abi::KnobKind::$kind,
                $default,
                $help,
                $crate::linked::Site { krate: $owner, file: file!(), line: line!() },
            )
        }
    };
}
