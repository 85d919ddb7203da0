//! Registration of an op.

use super::{
    Site,
    link::{ExtensionLink, Link},
    strs,
};
use crate::author::{ShapeFunction, shape_entry};
use tenon_abi::{
    Code, ExtCases, ExtHeader, OpDef, Registrar, RegistrarTable, ShapeFn, Str, Strs, ext_tags,
    layout::EXT_CASES, op_flags,
};

/// An op as `register_op!` writes it. Arguments and attributes are texts in the form of `REGISTER_OP`.
#[derive(Clone, Copy)]
pub struct OpReg {
    pub(crate) name: &'static str,
    pub(crate) inputs: &'static [&'static str],
    pub(crate) outputs: &'static [&'static str],
    pub(crate) attrs: &'static [&'static str],
    pub(crate) summary: &'static str,
    pub(crate) description: &'static str,
    pub(crate) flags: u32,
    pub(crate) shape: ShapeFn,
    pub(crate) cases: &'static [&'static str],
    links: Link,
    pub(crate) site: Site,
}

impl OpReg {
    /// An op without arguments.
    pub const fn new(name: &'static str, site: Site) -> OpReg {
        OpReg {
            name,
            inputs: &[],
            outputs: &[],
            attrs: &[],
            summary: "",
            description: "",
            flags: 0,
            shape: ShapeFn { run: None },
            cases: &[],
            links: Link::NONE,
            site,
        }
    }

    /// Input arguments, such as `"x: T"`, `"values: N * T"`.
    pub const fn inputs(mut self, inputs: &'static [&'static str]) -> OpReg {
        self.inputs = inputs;
        self
    }

    /// Output arguments.
    pub const fn outputs(mut self, outputs: &'static [&'static str]) -> OpReg {
        self.outputs = outputs;
        self
    }

    /// Attributes, such as `"T: {float, double}"`, `"keep_dims: bool = false"`.
    pub const fn attrs(mut self, attrs: &'static [&'static str]) -> OpReg {
        self.attrs = attrs;
        self
    }

    /// One sentence.
    pub const fn summary(mut self, summary: &'static str) -> OpReg {
        self.summary = summary;
        self
    }

    /// The contract.
    pub const fn description(mut self, description: &'static str) -> OpReg {
        self.description = description;
        self
    }

    /// Shape function: a function, or a closure that captures nothing.
    #[track_caller]
    pub const fn shape<F: ShapeFunction>(mut self, function: F) -> OpReg {
        self.shape = shape_entry(function);
        self
    }

    /// Cases that are valid, where the signature does not say what is: each a text such as
    /// `"rows; n in 1..9; x: [n, 4] uniform(-1, 1); index: [k] integers(0..n)"`. The grammar stands at
    /// [`op::Case`](crate::op::Case); a text that does not follow it refuses the plugin.
    pub const fn cases(mut self, cases: &'static [&'static str]) -> OpReg {
        self.cases = cases;
        self
    }

    /// A link of the author's own on the definition: see [`extension_link!`](crate::extension_link).
    pub const fn ext<T: ExtensionLink>(mut self, link: &'static T) -> OpReg {
        self.links = Link::to(link);
        self
    }

    const fn flag(mut self, bit: u32, on: bool) -> OpReg {
        if on {
            self.flags |= bit;
        } else {
            self.flags &= !bit;
        }
        self
    }

    /// Has state or effects: never folded, merged or dropped.
    pub const fn stateful(self, on: bool) -> OpReg {
        self.flag(op_flags::STATEFUL, on)
    }

    /// Swapping the inputs gives the same result.
    pub const fn commutative(self, on: bool) -> OpReg {
        self.flag(op_flags::COMMUTATIVE, on)
    }

    /// Adds up any number of inputs of one type.
    pub const fn aggregate(self, on: bool) -> OpReg {
        self.flag(op_flags::AGGREGATE, on)
    }

    /// May be given a reference that has no value yet.
    pub const fn allows_uninitialized_input(self, on: bool) -> OpReg {
        self.flag(op_flags::ALLOWS_UNINITIALIZED_INPUT, on)
    }

    /// Gives the op to a registrar.
    pub(crate) unsafe fn submit(&self, to: *mut Registrar, table: &RegistrarTable) -> Code {
        let (inputs, outputs, attrs) = (strs(self.inputs), strs(self.outputs), strs(self.attrs));
        let (cases, next) = (strs(self.cases), self.links.head());
        let cases = ExtCases {
            header: ExtHeader { next, ..ExtHeader::new(ext_tags::CASES, 1, &EXT_CASES) },
            cases: Strs::new(&cases),
        };
        let ext = if self.cases.is_empty() { next } else { (&raw const cases).cast() };
        let def = OpDef {
            struct_size: size_of::<OpDef>() as u32,
            flags: self.flags,
            name: Str::new(self.name),
            inputs: Strs::new(&inputs),
            outputs: Strs::new(&outputs),
            attrs: Strs::new(&attrs),
            summary: Str::new(self.summary),
            description: Str::new(self.description),
            shape: self.shape,
            source: self.site.source(),
            ext,
        };
        // SAFETY: the caller gives a registrar with its table; the host copies the definition.
        unsafe { table.op.expect("the host fills every entry")(to, &def) }
    }
}
