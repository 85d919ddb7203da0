//! How the names of `src/` are written in C.

use super::source::{Constant, Item, Kind, Module};
use std::collections::{BTreeMap, BTreeSet};

/// The text before and after the name of a constant, by its owner.
const AFFIXES: &[(&str, &str, &str)] = &[
    ("", "TENON_", ""),
    ("Code", "TENON_", ""),
    ("DType", "TENON_", ""),
    ("MemoryKind", "TENON_", "_MEMORY"),
    ("AttrKind", "TENON_ATTR_", ""),
    ("Support", "TENON_SUPPORT_", ""),
    ("LogLevel", "TENON_LOG_", ""),
    ("KnobKind", "TENON_KNOB_", ""),
    ("ToleranceKind", "TENON_TOLERANCE_", ""),
    ("Determinism", "TENON_DETERMINISM_", ""),
    ("FunctionStart", "TENON_FUNCTION_START_", ""),
    ("CollectiveKind", "TENON_COLLECTIVE_", ""),
    ("ext_tags", "TENON_EXT_", ""),
    ("fact_flags", "TENON_FACT_", ""),
    ("OpRole", "TENON_ROLE_", ""),
    ("ValueRule", "TENON_VALUE_", ""),
    ("Refusal", "TENON_REFUSES_", ""),
    ("Symmetry", "TENON_SYMMETRY_", ""),
    ("GradientRule", "TENON_GRADIENT_", ""),
    ("GradientKind", "TENON_GRADIENT_KIND_", ""),
    ("GraphValue", "TENON_GRAPH_VALUE_", ""),
    ("slot_flags", "TENON_SLOT_FLAG_", ""),
    ("kernel_flags", "TENON_KERNEL_FLAG_", ""),
    ("op_flags", "TENON_OP_FLAG_", ""),
    ("kernel_def_flags", "TENON_KERNEL_DEF_FLAG_", ""),
    ("device_flags", "TENON_DEVICE_FLAG_", ""),
];

/// Fields whose names are words of C or C++.
const RESERVED: &[&str] = &["default", "float", "int", "register"];

/// The C name of a constant.
pub fn constant(owner: &str, name: &str) -> String {
    let affix = AFFIXES.iter().find(|affix| affix.0 == owner);
    let (_, before, after) =
        affix.unwrap_or_else(|| panic!("{owner}: say in names.rs how its constants are written"));
    format!("{before}{name}{after}")
}

/// The C name of a type.
pub fn ty(name: &str) -> String {
    format!("Tenon{name}")
}

/// The C name of a field, as cbindgen escapes it.
pub fn field(name: &str) -> String {
    if RESERVED.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// Every name that a comment may speak of.
pub struct Names {
    types: BTreeSet<String>,
    /// Fields of each struct.
    fields: BTreeSet<(String, String)>,
    /// Module and owner of each constant, by its name.
    constants: BTreeMap<String, Vec<(String, String)>>,
    owners: BTreeSet<String>,
}

impl Names {
    /// The names of these files.
    pub fn new(modules: &[Module]) -> Names {
        let mut names = Names {
            types: BTreeSet::new(),
            fields: BTreeSet::new(),
            constants: BTreeMap::new(),
            owners: BTreeSet::new(),
        };
        for module in modules {
            for item in &module.items {
                names.add(&module.name, item);
            }
        }
        names
    }

    fn add(&mut self, module: &str, item: &Item) {
        match item {
            Item::Struct(item) => {
                let fields = item.fields.iter().filter(|_| item.kind == Kind::Fields);
                self.fields.extend(fields.map(|field| (item.name.clone(), field.clone())));
                self.types.insert(item.name.clone());
            }
            Item::Alias(name) => {
                self.types.insert(name.clone());
            }
            Item::Constants(group) => {
                self.owners.insert(group.owner.clone());
                for Constant { name, .. } in &group.list {
                    let place = (module.to_owned(), group.owner.clone());
                    self.constants.entry(name.clone()).or_default().push(place);
                }
            }
        }
    }

    /// The C form of a name in a comment of `module`; `None` when it is none of ours.
    pub fn resolve(&self, module: &str, name: &str) -> Option<String> {
        let Some((owner, name)) = name.rsplit_once("::") else {
            return self.resolve_bare(module, name);
        };
        let owner = owner.rsplit("::").next().unwrap_or(owner);
        if matches!(owner, "crate" | "super" | "self") {
            return self.resolve_bare(module, name);
        }
        if self.fields.contains(&(owner.to_owned(), name.to_owned())) {
            return Some(format!("{}.{}", ty(owner), field(name)));
        }
        let owners = self.constants.get(name)?;
        owners.iter().any(|place| place.1 == owner).then(|| constant(owner, name))
    }

    fn resolve_bare(&self, module: &str, name: &str) -> Option<String> {
        if self.types.contains(name) {
            return Some(ty(name));
        }
        if self.owners.contains(name) {
            return Some(constant(name, "*"));
        }
        let places = self.constants.get(name)?;
        let near = places.iter().find(|place| place.0 == module);
        let code = places.iter().find(|place| place.1 == "Code");
        let only = if places.len() == 1 { places.first() } else { None };
        let place = near.or(code).or(only);
        let place = place.unwrap_or_else(|| panic!("`{name}` in {module}.rs: name its owner"));
        Some(constant(&place.1, name))
    }
}
