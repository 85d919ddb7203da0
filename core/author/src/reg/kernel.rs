//! Registration of a kernel.

use super::{
    CheckingCrate, Site,
    link::{ExtensionLink, Link},
    strs,
};
use crate::{FnTable, KernelFn};
use std::marker::PhantomData;
use tenon_abi::{
    Code, DType, ExtCost, ExtHeader, InPlace, KernelDef, KernelTable, Registrar, RegistrarTable,
    Str, Strs, TypeConstraint, ext_tags, kernel_def_flags, layout::EXT_COST,
};
use tenon_framework::{element::Element, registry::Numerics};

/// Most type attributes that one kernel constrains.
const MAX_CONSTRAINTS: usize = 6;

/// Every type with elements of fixed size that this version computes on.
pub const COPYABLE: &[DType] = &[
    DType::BOOL,
    DType::INT8,
    DType::INT16,
    DType::INT32,
    DType::INT64,
    DType::UINT8,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
    DType::HALF,
    DType::BFLOAT16,
    DType::FLOAT,
    DType::DOUBLE,
    DType::COMPLEX64,
    DType::COMPLEX128,
    DType::QINT8,
    DType::QUINT8,
    DType::QINT16,
    DType::QUINT16,
    DType::QINT32,
];

/// [`COPYABLE`] and the types whose elements need destruction.
pub const ANY_TYPE: &[DType] = &join_types::<{ COPYABLE.len() + 3 }>(
    COPYABLE,
    &[DType::STRING, DType::RESOURCE, DType::VARIANT],
);

/// The types of one list, then those of another; `N` is how many they are together.
pub const fn join_types<const N: usize>(first: &[DType], second: &[DType]) -> [DType; N] {
    assert!(first.len() + second.len() == N, "N is the number of types in both lists");
    let mut joined = [DType::INVALID; N];
    let mut at = 0;
    while at < N {
        joined[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    joined
}

/// The treatment of denormal numbers in a kernel's arithmetic on the host's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Denormals {
    /// Operands and results are taken for zeros of their sign, as in TensorFlow's kernels.
    #[default]
    Flush,
    /// They keep their values; the processor takes longer for each of them.
    Keep,
}

const fn with_flag(flags: u32, flag: u32, on: bool) -> u32 {
    if on { flags | flag } else { flags & !flag }
}

/// A kernel as `register_kernel!` writes it.
#[derive(Clone, Copy)]
pub struct KernelReg {
    pub(crate) op: &'static str,
    pub(crate) device: &'static str,
    pub(crate) label: &'static str,
    pub(crate) priority: i32,
    pub(crate) flags: u32,
    pub(crate) constraints: [(&'static str, &'static [DType]); MAX_CONSTRAINTS],
    pub(crate) constraint_count: usize,
    host_memory: &'static [&'static str],
    in_place: &'static [(u32, u32)],
    pub(crate) features: &'static [&'static str],
    numerics: Numerics,
    cost: Option<(f64, f64)>,
    links: Link,
    table: &'static KernelTable,
    pub(crate) site: Site,
}

struct One<T>(PhantomData<T>);

impl<T: Element> One<T> {
    const TYPES: &'static [DType] = &[T::DTYPE];
}

impl KernelReg {
    /// A kernel with these entries, for any element types that the op allows.
    pub const fn new(
        op: &'static str,
        device: &'static str,
        table: &'static KernelTable,
        site: Site,
    ) -> KernelReg {
        KernelReg {
            op,
            device,
            label: "",
            priority: 0,
            flags: 0,
            constraints: [("", &[]); MAX_CONSTRAINTS],
            constraint_count: 0,
            host_memory: &[],
            in_place: &[],
            features: &[],
            numerics: Numerics::UNSPECIFIED,
            cost: None,
            links: Link::NONE,
            table,
            site,
        }
    }

    /// A kernel function.
    #[track_caller]
    pub const fn function<F: KernelFn>(
        op: &'static str,
        device: &'static str,
        function: F,
        site: Site,
    ) -> KernelReg {
        KernelReg::new(op, device, FnTable::of(function), site)
    }

    /// Takes only these element types for a type attribute: its name, and the types.
    #[track_caller]
    pub const fn types(mut self, constraint: (&'static str, &'static [DType])) -> KernelReg {
        let (attr, types) = constraint;
        assert!(self.constraint_count < MAX_CONSTRAINTS, "too many constraints on one kernel");
        assert!(!types.is_empty(), "a constraint names at least one type");
        self.constraints[self.constraint_count] = (attr, types);
        self.constraint_count += 1;
        self
    }

    /// Takes only `T` for a type attribute.
    #[track_caller]
    pub const fn element<T: Element>(self, attr: &'static str) -> KernelReg {
        self.types((attr, One::<T>::TYPES))
    }

    /// Sets the priority: the kernel with the highest number wins.
    pub const fn priority(mut self, priority: i32) -> KernelReg {
        self.priority = priority;
        self
    }

    /// Names the variant.
    pub const fn label(mut self, label: &'static str) -> KernelReg {
        self.label = label;
        self
    }

    /// Never chosen by policy, only when its label is requested.
    pub const fn on_request(mut self, on: bool) -> KernelReg {
        self.flags = with_flag(self.flags, kernel_def_flags::ON_REQUEST, on);
        self
    }

    /// The treatment of denormal numbers that the kernel computes with. By default they are flushed.
    pub const fn denormals(mut self, denormals: Denormals) -> KernelReg {
        let keeps = matches!(denormals, Denormals::Keep);
        self.flags = with_flag(self.flags, kernel_def_flags::KEEPS_DENORMALS, keeps);
        self
    }

    /// Whether the kernel itself refuses every shape that the op's shape function refuses. Else the host runs the shape
    /// function where the shapes are known only as a step runs, before the first call with each combination of shapes,
    /// and compares the shapes of each later call with those that passed. A crate whose kernels all check says so once,
    /// by [`kernels_check_shapes!`](crate::kernels_check_shapes).
    pub const fn checks_shapes(mut self, checks: bool) -> KernelReg {
        self.flags = with_flag(self.flags, kernel_def_flags::CHECKS_SHAPES, checks);
        self
    }

    /// Arguments that are in host memory, whatever the device.
    pub const fn host_memory(mut self, arguments: &'static [&'static str]) -> KernelReg {
        self.host_memory = arguments;
        self
    }

    /// Pairs (input argument, output argument) that may share a buffer.
    pub const fn in_place(mut self, pairs: &'static [(u32, u32)]) -> KernelReg {
        self.in_place = pairs;
        self
    }

    /// Features of the processor that the kernel needs, by the names that Rust gives them (`avx2`): if one of them is
    /// absent, it is never a candidate. A name that no processor has is refused when the plugin is loaded.
    pub const fn features(mut self, features: &'static [&'static str]) -> KernelReg {
        self.features = features;
        self
    }

    /// Numerics contract.
    pub const fn numerics(mut self, numerics: Numerics) -> KernelReg {
        self.numerics = numerics;
        self
    }

    /// What a call costs: nanoseconds fixed, and per element of the first output.
    pub const fn cost(mut self, cost: (f64, f64)) -> KernelReg {
        self.cost = Some(cost);
        self
    }

    /// A link of the author's own on the definition: see [`extension_link!`](crate::extension_link).
    pub const fn ext<T: ExtensionLink>(mut self, link: &'static T) -> KernelReg {
        self.links = Link::to(link);
        self
    }

    /// For [`super::Registration::line`].
    pub(super) fn line(&self) -> String {
        let label = if self.label.is_empty() { "-" } else { self.label };
        let mut line = format!("kernel {} {label} ", self.op);
        for (at, (attr, types)) in self.constraints[..self.constraint_count].iter().enumerate() {
            let types: Vec<&str> = types.iter().map(|dtype| dtype.name()).collect();
            let space = if at == 0 { "" } else { " " };
            line += &format!("{space}{attr}={}", types.join(","));
        }
        line
    }

    /// Gives the kernel to a registrar.
    pub(crate) unsafe fn submit(&self, to: *mut Registrar, table: &RegistrarTable) -> Code {
        let constraints: Vec<TypeConstraint> = self.constraints[..self.constraint_count]
            .iter()
            .map(|&(attr, types)| TypeConstraint {
                attr: Str::new(attr),
                types: types.as_ptr(),
                count: types.len(),
            })
            .collect();
        let pairs: Vec<InPlace> =
            self.in_place.iter().map(|&(input, output)| InPlace { input, output }).collect();
        let (host_memory, features) = (strs(self.host_memory), strs(self.features));
        let next = self.links.head();
        let cost = self.cost.map(|(fixed_ns, per_element_ns)| ExtCost {
            header: ExtHeader { next, ..ExtHeader::new(ext_tags::COST, 1, &EXT_COST) },
            fixed_ns,
            per_element_ns,
        });
        let def = KernelDef {
            struct_size: size_of::<KernelDef>() as u32,
            flags: self.flags | CheckingCrate::flags(self.site.krate),
            op: Str::new(self.op),
            device_type: Str::new(self.device),
            label: Str::new(self.label),
            priority: self.priority,
            reserved: 0,
            constraints: constraints.as_ptr(),
            constraint_count: constraints.len(),
            host_memory: Strs::new(&host_memory),
            in_place: pairs.as_ptr(),
            in_place_count: pairs.len(),
            features: Strs::new(&features),
            numerics: self.numerics.to_abi(),
            table: self.table,
            source: self.site.source(),
            ext: cost.as_ref().map_or(next, |cost| std::ptr::from_ref(cost).cast()),
        };
        // SAFETY: the caller gives a registrar with its table; the host copies the definition.
        unsafe { table.kernel.expect("the host fills every entry")(to, &def) }
    }
}
