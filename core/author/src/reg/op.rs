//! Registration of an op.

use super::{
    Site,
    gradient::gradient_link,
    link::{ExtensionLink, Link},
    strs,
};
use crate::{ShapeFunction, shape_entry};
use tenon_abi::{
    Code, ExtBench, ExtCases, ExtFacts, ExtHeader, OpDef, Registrar, RegistrarTable, ShapeFn, Str,
    Strs, ext_tags,
    layout::{EXT_BENCH, EXT_CASES, EXT_FACTS},
    op_flags,
};
use tenon_framework::op::{GradientRule, OpFacts, OpRole, Passed, Refusal, Symmetry, ValueRule};

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
    bench: &'static [&'static str],
    flops: &'static str,
    bytes: &'static str,
    facts: OpFacts,
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
            bench: &[],
            flops: "",
            bytes: "",
            facts: OpFacts::NONE,
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

    /// Valid cases, for an op whose signature does not say which inputs are valid: each is a text such as
    /// `"rows; n in 1..9; x: [n, 4] uniform(-1, 1); index: [k] integers(0..n)"`. The grammar is at
    /// [`op::Case`](tenon_framework::op::Case); a text that does not follow it refuses the plugin.
    pub const fn cases(mut self, cases: &'static [&'static str]) -> OpReg {
        self.cases = cases;
        self
    }

    /// Calls that say how fast a kernel is: `tenon bench` measures them if no shapes are given. Each is a text in
    /// the grammar of a case that describes every input and gives every size a value; several values are several
    /// calls: `"rows; n in {64, 4096}; x: [n, 768]; weight: [768]"`. The grammar is in core/abi/docs/bench.md; a text
    /// that does not follow it refuses the plugin.
    pub const fn bench(mut self, calls: &'static [&'static str]) -> OpReg {
        self.bench = calls;
        self
    }

    /// Operations of a call, as a formula: `"2 * y * a[-1]"` of a product. The name of an input or output is its number
    /// of elements, `a[-1]` a size of it, an attribute of type int or float its value. Rates and the roofline of
    /// `tenon bench` come from it.
    pub const fn flops(mut self, formula: &'static str) -> OpReg {
        self.flops = formula;
        self
    }

    /// Bytes that a call moves, if they are not those of all inputs and outputs: `"2 * bytes(y) + bytes(indices)"`.
    pub const fn bytes(mut self, formula: &'static str) -> OpReg {
        self.bytes = formula;
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

    /// The op has no state, but has to run: it checks, prints or sends. Never folded, merged or dropped.
    pub const fn checks(mut self, on: bool) -> OpReg {
        self.facts.checks = on;
        self
    }

    /// Each element of an output follows from the elements of the inputs at its place alone; the inputs broadcast.
    pub const fn elementwise(mut self, on: bool) -> OpReg {
        self.facts.elementwise = on;
        self
    }

    /// Output argument `.1` is input argument `.0` as it is: the same value under the same shape.
    pub const fn passes_input(mut self, (input, output): (usize, usize)) -> OpReg {
        self.facts.passed = Some(Passed { input, output, reshaped: false });
        self
    }

    /// Output argument `.1` has the elements of input argument `.0`, in their order, under another shape.
    pub const fn reshapes_input(mut self, (input, output): (usize, usize)) -> OpReg {
        self.facts.passed = Some(Passed { input, output, reshaped: true });
        self
    }

    /// The first input and the first output are images, in the format that attribute `data_format` names: a node may be
    /// computed in the format of its device. Of the other attributes `strides`, `dilations` and `ksize` follow the format
    /// where they have four items, `explicit_paddings` where it has eight.
    pub const fn images(mut self, on: bool) -> OpReg {
        self.facts.images = on;
        self
    }

    /// Represents a value that a step feeds.
    pub const fn placeholder(mut self, on: bool) -> OpReg {
        self.facts.placeholder = on;
        self
    }

    /// Attribute `shape` says the shape that a value fed in the place of the output has.
    pub const fn declares_shape(mut self, on: bool) -> OpReg {
        self.facts.declares_shape = on;
        self
    }

    /// What the executor does instead of a kernel.
    pub const fn role(mut self, role: OpRole) -> OpReg {
        self.facts.role = role;
        self
    }

    /// How the values of outputs follow from what is known of the inputs before a step.
    pub const fn value(mut self, rule: ValueRule) -> OpReg {
        self.facts.value = rule;
        self
    }

    /// Which inputs a kernel may refuse, of those that the signature accepts. Without it any: a node that may fail
    /// runs even if nothing reads it.
    pub const fn refuses(mut self, refusal: Refusal) -> OpReg {
        self.facts.refusal = refusal;
        self
    }

    /// Positions of the input arguments on whose values the answer depends too, for [`Refusal::Shapes`] and
    /// [`Refusal::Axes`].
    pub const fn deciding(mut self, inputs: &[usize]) -> OpReg {
        let mut at = 0;
        while at < inputs.len() {
            // A position beyond 63 sets all bits: no op has as many arguments, and the registration is refused.
            self.facts.deciding |= if inputs[at] < 64 { 1 << inputs[at] } else { u64::MAX };
            at += 1;
        }
        self
    }

    /// Whether the two operands may be swapped.
    pub const fn symmetry(mut self, symmetry: Symmetry) -> OpReg {
        self.facts.symmetry = symmetry;
        self
    }

    /// What the op states about its gradient. A gradient that is a function is registered by
    /// [`register_gradient!`](crate::register_gradient).
    pub const fn gradient(mut self, rule: GradientRule) -> OpReg {
        self.facts.gradient = rule;
        self
    }

    /// Gives the op to a registrar.
    pub(crate) unsafe fn submit(&self, to: *mut Registrar, table: &RegistrarTable) -> Code {
        let (inputs, outputs, attrs) = (strs(self.inputs), strs(self.outputs), strs(self.attrs));
        let (cases, calls, next) = (strs(self.cases), strs(self.bench), self.links.head());
        let facts = ExtFacts {
            header: ExtHeader { next, ..ExtHeader::new(ext_tags::FACTS, 1, &EXT_FACTS) },
            facts: self.facts.to_abi(),
        };
        let next = if self.facts == OpFacts::NONE { next } else { (&raw const facts).cast() };
        let gradient = gradient_link(self.name, next);
        let next = gradient.as_ref().map_or(next, |link| (&raw const *link).cast());
        let bench = ExtBench {
            header: ExtHeader { next, ..ExtHeader::new(ext_tags::BENCH, 1, &EXT_BENCH) },
            calls: Strs::new(&calls),
            flops: Str::new(self.flops),
            bytes: Str::new(self.bytes),
        };
        let measured = [self.flops, self.bytes].iter().any(|text| !text.is_empty());
        let measured = measured || !self.bench.is_empty();
        let next = if measured { (&raw const bench).cast() } else { next };
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
