//! Kernel definitions.

use super::{error::RegistryError, features, plugin::PluginId, remote::RemoteKernel};
use crate::op::{RawError, SourceInfo, raw};
use std::{fmt, sync::Arc};
use tenon_abi::{
    DType, Determinism, ExtCost, ExtHeader, InPlace, KernelTable, Numerics, ToleranceKind,
    ext_tags, kernel_def_flags, layout,
};

/// The element types that a kernel takes for one type attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeConstraint {
    /// Name of the attribute.
    pub attr: String,
    /// Allowed types, at least one.
    pub types: Vec<DType>,
}

/// What its author expects a call to cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Nanoseconds of a call on an empty tensor.
    pub fixed_ns: f64,
    /// Nanoseconds per element of the first output.
    pub per_element_ns: f64,
}

/// A kernel.
#[derive(Clone)]
pub struct KernelDef {
    /// Name of the op.
    pub op: String,
    /// Device type; `DEFAULT` for every type.
    pub device_type: String,
    /// Label of the variant; empty for the ordinary kernel.
    pub label: String,
    /// Priority: the kernel with the highest number wins.
    pub priority: i32,
    /// Never chosen by policy, only when its label is requested.
    pub on_request: bool,
    /// Computes with denormals, which others on the host flush.
    pub keeps_denormals: bool,
    /// Refuses by itself the shapes that the op's shape function refuses.
    pub checks_shapes: bool,
    /// Type constraints, one per constrained attribute, in the order of their names.
    pub constraints: Vec<TypeConstraint>,
    /// Names of arguments that are in host memory, whatever the device.
    pub host_memory: Vec<String>,
    /// In-place pairs, by positions of the named arguments.
    pub in_place: Vec<InPlace>,
    /// Features of the processor that it needs.
    pub features: Vec<String>,
    /// Numerics contract.
    pub numerics: Numerics,
    /// Entries.
    pub table: &'static KernelTable,
    /// Where the entries are that `table` lacks, when they are not in this process.
    pub remote: Option<Arc<dyn RemoteKernel>>,
    /// What its author expects a call to cost.
    pub cost: Option<Cost>,
    /// Where it is registered.
    pub source: SourceInfo,
    /// The plugin that registered it.
    pub plugin: PluginId,
    /// Name of that plugin.
    pub plugin_name: Arc<str>,
    /// Whether that plugin is [foreign](super::PluginInfo::foreign): then its bools are any bytes.
    pub foreign: bool,
    /// Declared order of its plugin, then place among the plugin's sorted kernels.
    pub order: (u32, u32),
}

const WHAT: &str = "kernel definition";
/// The device type that represents every type.
pub(super) const DEFAULT_DEVICE: &str = "DEFAULT";

impl KernelDef {
    /// Copies and checks what a plugin handed over; whether it fits its op is checked at commit.
    ///
    /// # Errors
    /// Structs that are too small, null pointers, text that is not UTF-8, bad names, a missing entry, a
    /// numerics contract that says nothing.
    ///
    /// # Safety
    /// `def` is null or points to a struct that begins with its size and whose pointers are readable. Its
    /// table stays in memory for as long as the process lives.
    pub unsafe fn from_abi(
        plugin: PluginId,
        plugin_name: &Arc<str>,
        def: *const tenon_abi::KernelDef,
    ) -> Result<KernelDef, RegistryError> {
        // SAFETY: the caller gives null or a struct that begins with its size, has readable pointers and a table that
        // lives as long as the process. Nothing else is read below.
        unsafe {
            let def = raw::sized(def, WHAT)?;
            if def.table.is_null() {
                return Err(RawError::Null { what: WHAT, field: "table" }.into());
            }
            let table: &'static KernelTable = raw::sized(def.table, "kernel table")?;
            let constraints =
                raw::array(def.constraints, def.constraint_count, WHAT, "constraints")?;
            let in_place = raw::array(def.in_place, def.in_place_count, WHAT, "in_place")?;
            let mut kernel = KernelDef {
                op: raw::text(def.op, WHAT, "op")?,
                device_type: raw::text(def.device_type, WHAT, "device_type")?,
                label: raw::text(def.label, WHAT, "label")?,
                priority: def.priority,
                on_request: def.flags & kernel_def_flags::ON_REQUEST != 0,
                keeps_denormals: def.flags & kernel_def_flags::KEEPS_DENORMALS != 0,
                checks_shapes: def.flags & kernel_def_flags::CHECKS_SHAPES != 0,
                constraints: constraints
                    .iter()
                    .map(|constraint| copy_constraint(constraint))
                    .collect::<Result<_, _>>()?,
                host_memory: raw::texts(def.host_memory, WHAT, "host_memory")?,
                in_place: in_place.to_vec(),
                features: raw::texts(def.features, WHAT, "features")?,
                numerics: def.numerics,
                table,
                remote: None,
                cost: None,
                source: SourceInfo::from_abi(&def.source)?,
                plugin,
                plugin_name: plugin_name.clone(),
                foreign: false,
                order: (0, 0),
            };
            kernel.cost = read_cost(&kernel, def.ext)?;
            kernel.sort_parts();
            kernel.check()?;
            Ok(kernel)
        }
    }

    fn sort_parts(&mut self) {
        self.constraints.sort_by(|a, b| a.attr.cmp(&b.attr));
        self.features.sort();
        self.host_memory.sort();
    }

    /// Checks what can be checked without the op.
    ///
    /// # Errors
    /// Bad names, a missing entry, a numerics contract that says nothing.
    pub(super) fn check(&self) -> Result<(), RegistryError> {
        let upper = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
        let starts_upper = self.device_type.starts_with(|c: char| c.is_ascii_uppercase());
        if !starts_upper || !self.device_type.bytes().all(upper) {
            return Err(self.name_error("device type", &self.device_type, "[A-Z][A-Z0-9_]*"));
        }
        let word = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
        if !self.label.bytes().all(word) {
            return Err(self.name_error("label", &self.label, "[A-Za-z0-9_.-]*"));
        }
        if self.on_request && self.label.is_empty() {
            return Err(self.name_error("label of an on-request kernel", "", "[A-Za-z0-9_.-]+"));
        }
        if let Some(bad) = self.features.iter().find(|f| f.is_empty() || !f.bytes().all(word)) {
            return Err(self.name_error("feature", bad, "[A-Za-z0-9_.-]+"));
        }
        if let Some(unknown) = self.features.iter().find(|name| !features::is_known(name)) {
            return Err(RegistryError::UnknownFeature {
                kernel: self.to_string(),
                feature: unknown.clone(),
                meant: features::nearest(unknown),
                known: features::known(),
            });
        }
        self.check_table()?;
        self.check_numerics()
    }

    fn name_error(&self, what: &'static str, name: &str, rule: &'static str) -> RegistryError {
        RegistryError::KernelName { kernel: self.to_string(), what, name: name.to_owned(), rule }
    }

    fn check_table(&self) -> Result<(), RegistryError> {
        let table = self.table;
        let prepack = table.prepack.is_some();
        let missing = [
            (true, table.compute.is_some(), "compute"),
            (prepack, table.attach_packed.is_some(), "attach_packed"),
            (prepack, table.release_packed.is_some(), "release_packed"),
        ]
        .into_iter()
        .find(|(needed, there, _)| *needed && !there);
        match missing {
            Some((_, _, entry)) => {
                Err(RegistryError::KernelEntry { kernel: self.to_string(), entry })
            }
            None => Ok(()),
        }
    }

    fn check_numerics(&self) -> Result<(), RegistryError> {
        let numerics = &self.numerics;
        let figures = [numerics.ulps, numerics.absolute, numerics.relative];
        let accumulation = numerics.accumulation;
        let problem = if numerics.tolerance.0 > ToleranceKind::ABSOLUTE_RELATIVE.0 {
            format!("tolerance kind {}, expected at most 3", numerics.tolerance.0)
        } else if numerics.determinism.0 > Determinism::BITWISE.0 {
            format!("determinism {}, expected at most 2", numerics.determinism.0)
        } else if !figures.iter().all(|figure| figure.is_finite() && *figure >= 0.0) {
            format!("{figures:?}, expected figures that are finite and at least 0")
        } else if accumulation != DType::INVALID && !accumulation.is_valid() {
            format!("accumulation type number {}, expected a type", accumulation.0)
        } else {
            return Ok(());
        };
        Err(RegistryError::Numerics { kernel: self.to_string(), problem })
    }

    /// The types that it takes for an attribute; `None` for all that the op allows.
    pub fn types_of(&self, attr: &str) -> Option<&[DType]> {
        let constraint = self.constraints.iter().find(|constraint| constraint.attr == attr)?;
        Some(&constraint.types)
    }

    /// Whether it serves a device of this type.
    pub fn serves(&self, device_type: &str) -> bool {
        self.device_type == device_type || self.device_type == DEFAULT_DEVICE
    }

    /// The key by which a plugin's kernels are sorted, instead of by the order of registration.
    pub(super) fn sort_key(&self) -> impl Ord + use<> {
        let constraints: Vec<(String, Vec<u32>)> = self
            .constraints
            .iter()
            .map(|c| (c.attr.clone(), c.types.iter().map(|dtype| dtype.0).collect()))
            .collect();
        (
            self.op.clone(),
            self.device_type.clone(),
            self.label.clone(),
            std::cmp::Reverse(self.priority),
            constraints,
            self.source.clone(),
        )
    }
}

/// # Safety
/// The pointers of `constraint` are readable.
unsafe fn copy_constraint(
    constraint: &tenon_abi::TypeConstraint,
) -> Result<TypeConstraint, RegistryError> {
    const WHAT: &str = "type constraint";
    // SAFETY: the pointers of `constraint` are readable, as the caller guarantees.
    unsafe {
        let types = raw::array(constraint.types, constraint.count, WHAT, "types")?;
        Ok(TypeConstraint {
            attr: raw::text(constraint.attr, WHAT, "attr")?,
            types: types.to_vec(),
        })
    }
}

/// # Safety
/// `chain` is null or the head of a chain of live links.
unsafe fn read_cost(
    kernel: &KernelDef,
    chain: *const ExtHeader,
) -> Result<Option<Cost>, RegistryError> {
    // SAFETY: `chain` is null or the head of a chain of live links, as the caller guarantees.
    let link = unsafe { raw::link::<ExtCost>(chain, ext_tags::COST, "cost", &layout::EXT_COST) };
    let named = |link| RegistryError::Link { kernel: kernel.to_string(), link };
    let Some(link) = link.map_err(named)? else { return Ok(None) };
    let cost = Cost { fixed_ns: link.fixed_ns, per_element_ns: link.per_element_ns };
    let fine = |figure: f64| figure.is_finite() && figure >= 0.0;
    if !fine(cost.fixed_ns) || !fine(cost.per_element_ns) {
        let problem = format!("cost {cost:?}, expected figures that are finite and at least 0");
        return Err(RegistryError::Numerics { kernel: kernel.to_string(), problem });
    }
    Ok(Some(cost))
}

impl fmt::Display for KernelDef {
    /// `kernel 'fast' of op 'Add' on CPU (T: float; tenon-cpu src/math.rs:10)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("kernel ")?;
        if !self.label.is_empty() {
            write!(f, "'{}' ", self.label)?;
        }
        write!(f, "of op '{}' on {} (", self.op, self.device_type)?;
        for constraint in &self.constraints {
            let types: Vec<String> = constraint.types.iter().map(DType::to_string).collect();
            write!(f, "{}: {}; ", constraint.attr, types.join(", "))?;
        }
        write!(f, "{})", self.source)
    }
}

impl fmt::Debug for KernelDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} priority {} order {:?}", self.priority, self.order)
    }
}
