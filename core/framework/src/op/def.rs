//! Op definitions.

use super::{
    bench::Bench,
    cases::{Case, parse_cases},
    error::OpError,
    facts::{OpFacts, OpRole},
    gradient::GradientFn,
    raw,
    remote::RemoteShape,
    spec::{parse_arg, parse_attr},
    value::same_value,
};
use crate::attr::{AttrType, AttrValue};
use std::{fmt, sync::Arc};
use tenon_abi::{
    AttrKind, DType, ExtBench, ExtCases, ExtFacts, ExtGradient, ShapeFn, Source, ext_tags, layout,
    op_flags,
};

/// The place of a registration in its author's source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SourceInfo {
    /// Crate, or project of a C plugin.
    pub krate: String,
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

impl SourceInfo {
    /// Copies what a plugin gave.
    ///
    /// # Errors
    /// Null pointers, text that is not UTF-8.
    ///
    /// # Safety
    /// The texts of `source` are readable.
    pub unsafe fn from_abi(source: &Source) -> Result<SourceInfo, raw::RawError> {
        // SAFETY: the texts of `source` are readable, as the caller guarantees.
        unsafe {
            Ok(SourceInfo {
                krate: raw::text(source.krate, "source", "krate")?,
                file: raw::text(source.file, "source", "file")?,
                line: source.line,
            })
        }
    }
}

impl fmt::Display for SourceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}:{}", self.krate, self.file, self.line)
    }
}

/// Where the element type of an argument comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgType {
    /// Always this type.
    Fixed(DType),
    /// A `type` attribute of this name.
    Attr(String),
    /// A `list(type)` attribute of this name, which gives the number of values too.
    ListAttr(String),
}

/// A named argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgDef {
    /// Name.
    pub name: String,
    /// Element type.
    pub ty: ArgType,
    /// `int` attribute that gives the number of values; without one it is one value (or a type list).
    pub number_attr: Option<String>,
    /// Whether it is a reference.
    pub is_ref: bool,
}

/// The values that an attribute may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// Of a `type` or `list(type)`.
    Types(Vec<DType>),
    /// Of a `string` or `list(string)`.
    Strings(Vec<String>),
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<String> = match self {
            Allowed::Types(types) => types.iter().map(DType::to_string).collect(),
            Allowed::Strings(texts) => texts.iter().map(|text| format!("'{text}'")).collect(),
        };
        f.write_str(&items.join(", "))
    }
}

/// An attribute.
#[derive(Debug, Clone)]
pub struct AttrDef {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: AttrType,
    /// Default.
    pub default: Option<AttrValue>,
    /// Smallest value of an `int`, or smallest length of a list.
    pub minimum: Option<i64>,
    /// Allowed values; without them, all.
    pub allowed: Option<Allowed>,
}

/// An op.
#[derive(Clone)]
pub struct OpDef {
    /// Name in CamelCase.
    pub name: String,
    /// Input arguments.
    pub inputs: Vec<ArgDef>,
    /// Output arguments.
    pub outputs: Vec<ArgDef>,
    /// Attributes, in declared order.
    pub attrs: Vec<AttrDef>,
    /// Has state or effects: never folded, merged or dropped.
    pub stateful: bool,
    /// Swapping the inputs gives the same result.
    pub commutative: bool,
    /// Adds up any number of inputs of one type.
    pub aggregate: bool,
    /// May be given a reference that has no value yet.
    pub allows_uninitialized_input: bool,
    /// One sentence; may be empty.
    pub summary: String,
    /// The contract; may be empty.
    pub description: String,
    /// Shape function; without one the shapes of the outputs are unknown.
    pub shape: ShapeFn,
    /// The shape function, when it is not in this process.
    pub remote: Option<Arc<dyn RemoteShape>>,
    /// Where it is registered.
    pub source: SourceInfo,
    /// Cases that are valid.
    pub(crate) cases: Vec<Case>,
    /// Calls to measure, and their work.
    pub(crate) bench: Bench,
    /// What passes, placement and execution must know of it.
    pub(crate) facts: OpFacts,
    /// The nodes that compute its gradient.
    pub(crate) gradient: Option<GradientFn>,
    /// Whether it is not registered.
    pub(crate) missing: bool,
}

const WHAT: &str = "op definition";
const NAME_RULE: &str = "_?([A-Z][A-Za-z0-9_]*>)*[A-Z][A-Za-z0-9_]*";

impl OpDef {
    /// An op without flags, texts and shape function, from the texts that `REGISTER_OP` takes.
    ///
    /// # Errors
    /// A bad name or text, two of one name, an argument whose attribute is missing or of the wrong type.
    pub fn from_spec<S: AsRef<str>>(
        name: &str,
        inputs: &[S],
        outputs: &[S],
        attrs: &[S],
    ) -> Result<OpDef, OpError> {
        check_op_name(name)?;
        let mut attrs = attrs
            .iter()
            .map(|text| parse_attr(name, text.as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        let args = |texts: &[S]| {
            texts.iter().map(|text| parse_arg(name, text.as_ref())).collect::<Result<Vec<_>, _>>()
        };
        let (mut inputs, mut outputs) = (args(inputs)?, args(outputs)?);
        check_unique(name, "attribute", attrs.iter().map(|attr| &attr.name))?;
        check_unique(name, "input", inputs.iter().map(|arg| &arg.name))?;
        check_unique(name, "output", outputs.iter().map(|arg| &arg.name))?;
        for arg in inputs.iter_mut().chain(&mut outputs) {
            bind_arg(name, arg, &mut attrs)?;
        }
        Ok(OpDef {
            inputs,
            outputs,
            attrs,
            stateful: false,
            missing: false,
            ..OpDef::missing(name)
        })
    }

    /// The definition in the place of an unregistered op, of which only the name is known. It counts as an op with
    /// effects.
    pub fn missing(name: &str) -> OpDef {
        OpDef {
            name: name.to_owned(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            attrs: Vec::new(),
            stateful: true,
            commutative: false,
            aggregate: false,
            allows_uninitialized_input: false,
            summary: String::new(),
            description: String::new(),
            shape: ShapeFn { run: None },
            remote: None,
            source: SourceInfo::default(),
            cases: Vec::new(),
            bench: Bench::default(),
            facts: OpFacts::NONE,
            gradient: None,
            missing: true,
        }
    }

    /// An op that a function of a graph's library defines: its nodes call the function.
    pub fn of_function(
        name: &str,
        inputs: Vec<ArgDef>,
        outputs: Vec<ArgDef>,
        attrs: Vec<AttrDef>,
        stateful: bool,
    ) -> OpDef {
        let facts = OpFacts { role: OpRole::Call, ..OpFacts::NONE };
        let missing = false;
        OpDef { inputs, outputs, attrs, stateful, facts, missing, ..OpDef::missing(name) }
    }

    /// Whether the op is not registered, so that its nodes cannot run.
    pub fn is_missing(&self) -> bool {
        self.missing
    }

    /// Copies and checks what a plugin handed over.
    ///
    /// # Errors
    /// As [`OpDef::from_spec`]; a struct that is too small, null pointers, text that is not UTF-8.
    ///
    /// # Safety
    /// `op` is null or points to a struct that begins with its size and whose pointers are readable. The
    /// shape function stays callable for as long as the definition is kept.
    pub unsafe fn from_abi(op: *const tenon_abi::OpDef) -> Result<OpDef, OpError> {
        // SAFETY: the caller gives null or a struct that begins with its size, with readable pointers. Nothing else is
        // read.
        unsafe {
            let op = raw::sized(op, WHAT)?;
            let name = raw::text(op.name, WHAT, "name")?;
            let inputs = raw::texts(op.inputs, WHAT, "inputs")?;
            let outputs = raw::texts(op.outputs, WHAT, "outputs")?;
            let attrs = raw::texts(op.attrs, WHAT, "attrs")?;
            let flag = |bit: u32| op.flags & bit != 0;
            let link = |link| OpError::Link { op: name.clone(), link };
            let cases = raw::link::<ExtCases>(op.ext, ext_tags::CASES, "cases", &layout::EXT_CASES)
                .map_err(link)?;
            let bench = raw::link::<ExtBench>(op.ext, ext_tags::BENCH, "bench", &layout::EXT_BENCH)
                .map_err(link)?;
            let facts = raw::link::<ExtFacts>(op.ext, ext_tags::FACTS, "facts", &layout::EXT_FACTS)
                .map_err(link)?;
            let gradient = raw::link::<ExtGradient>(
                op.ext,
                ext_tags::GRADIENT,
                "gradient",
                &layout::EXT_GRADIENT,
            )
            .map_err(link)?;
            let mut def = OpDef {
                stateful: flag(op_flags::STATEFUL),
                commutative: flag(op_flags::COMMUTATIVE),
                aggregate: flag(op_flags::AGGREGATE),
                allows_uninitialized_input: flag(op_flags::ALLOWS_UNINITIALIZED_INPUT),
                summary: raw::text(op.summary, WHAT, "summary")?,
                description: raw::text(op.description, WHAT, "description")?,
                shape: op.shape,
                source: SourceInfo::from_abi(&op.source)?,
                ..OpDef::from_spec(&name, &inputs, &outputs, &attrs)?
            };
            if let Some(link) = cases {
                def.set_cases(&raw::texts(link.cases, "cases link", "cases")?)?;
            }
            if let Some(link) = bench {
                let what = "bench link";
                let calls = raw::texts(link.calls, what, "calls")?;
                let flops = raw::text(link.flops, what, "flops")?;
                def.set_bench(&calls, &flops, &raw::text(link.bytes, what, "bytes")?)?;
            }
            if let Some(link) = facts {
                let facts = OpFacts::from_abi(&def.name, &link.facts)?;
                def.set_facts(facts)?;
            }
            if let Some(link) = gradient {
                let run = link
                    .gradient
                    .run
                    .ok_or(raw::RawError::Null { what: "gradient link", field: "gradient" })?;
                def.set_gradient(run)?;
            }
            Ok(def)
        }
    }

    /// Cases that are valid, in declared order; none where the signature says all.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// Gives the op its cases, in the grammar of core/abi/docs/cases.md.
    ///
    /// # Errors
    /// [`OpError::Case`]: what is wrong with a text, and where.
    pub fn set_cases<S: AsRef<str>>(&mut self, texts: &[S]) -> Result<(), OpError> {
        self.cases = parse_cases(self, texts)?;
        Ok(())
    }

    /// Calls that say how fast a kernel is, and the work of a call.
    pub fn bench(&self) -> &Bench {
        &self.bench
    }

    /// Gives the op calls to measure and formulas of their work, in the grammar of core/abi/docs/bench.md; an empty
    /// formula is none.
    ///
    /// # Errors
    /// [`OpError::Spec`]: what is wrong with a text, and where.
    pub fn set_bench<S: AsRef<str>>(
        &mut self,
        calls: &[S],
        flops: &str,
        bytes: &str,
    ) -> Result<(), OpError> {
        self.bench = Bench::parse(self, calls, flops, bytes)?;
        Ok(())
    }

    /// The attribute of this name.
    pub fn attr(&self, name: &str) -> Option<&AttrDef> {
        self.attrs.iter().find(|attr| attr.name == name)
    }

    /// Position of the input argument of this name.
    pub fn input_index(&self, name: &str) -> Option<usize> {
        self.inputs.iter().position(|arg| arg.name == name)
    }

    /// Position of the output argument of this name.
    pub fn output_index(&self, name: &str) -> Option<usize> {
        self.outputs.iter().position(|arg| arg.name == name)
    }

    /// The first part in which two definitions of one op differ; texts, cases, sources and shape functions do
    /// not count, since each library has its own copy of them. Facts count where both state some.
    pub fn difference(&self, other: &OpDef) -> Option<String> {
        let flags =
            |op: &OpDef| [op.stateful, op.commutative, op.aggregate, op.allows_uninitialized_input];
        if self.inputs != other.inputs {
            return Some("the inputs".to_owned());
        }
        if self.outputs != other.outputs {
            return Some("the outputs".to_owned());
        }
        if self.attrs.len() != other.attrs.len() {
            return Some("the number of attributes".to_owned());
        }
        let differing = self.attrs.iter().zip(&other.attrs).find(|(a, b)| !a.same(b));
        if let Some((attr, _)) = differing {
            return Some(format!("attribute '{}'", attr.name));
        }
        if flags(self) != flags(other) {
            return Some("the flags".to_owned());
        }
        let stated = [self, other].iter().all(|op| op.facts != OpFacts::NONE);
        (stated && self.facts != other.facts).then(|| "the facts".to_owned())
    }
}

impl AttrDef {
    fn same(&self, other: &AttrDef) -> bool {
        let defaults = match (&self.default, &other.default) {
            (None, None) => true,
            (Some(a), Some(b)) => same_value(a, b),
            _ => false,
        };
        defaults
            && self.name == other.name
            && self.ty == other.ty
            && self.minimum == other.minimum
            && self.allowed == other.allowed
    }
}

impl fmt::Debug for OpDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpDef")
            .field("name", &self.name)
            .field("inputs", &self.inputs)
            .field("outputs", &self.outputs)
            .field("attrs", &self.attrs)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

fn check_op_name(name: &str) -> Result<(), OpError> {
    let segment = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_uppercase())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    if name.strip_prefix('_').unwrap_or(name).split('>').all(segment) {
        return Ok(());
    }
    Err(OpError::Name { name: name.to_owned(), rule: NAME_RULE })
}

fn check_unique<'a>(
    op: &str,
    what: &'static str,
    names: impl Iterator<Item = &'a String>,
) -> Result<(), OpError> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(OpError::Duplicate { op: op.to_owned(), what, name: name.clone() });
        }
    }
    Ok(())
}

/// Ties an argument to the attributes that it names. The parser takes every name for a `type`.
fn bind_arg(op: &str, arg: &mut ArgDef, attrs: &mut [AttrDef]) -> Result<(), OpError> {
    if let ArgType::Attr(name) = &arg.ty {
        let expected = if arg.number_attr.is_some() { "type" } else { "type or list(type)" };
        let attr = find_attr(op, arg, name, attrs)?;
        if attr.ty == AttrType::list(AttrKind::TYPE) && arg.number_attr.is_none() {
            // As TensorFlow: an argument is at least one value unless the attribute says otherwise.
            attr.minimum = attr.minimum.or(Some(1));
            arg.ty = ArgType::ListAttr(name.clone());
        } else if attr.ty != AttrType::one(AttrKind::TYPE) {
            return Err(role_error(op, arg, attr, expected));
        }
    }
    if let Some(name) = &arg.number_attr {
        let attr = find_attr(op, arg, name, attrs)?;
        if attr.ty != AttrType::one(AttrKind::INT) {
            return Err(role_error(op, arg, attr, "int"));
        }
        attr.minimum = attr.minimum.or(Some(1));
    }
    Ok(())
}

fn find_attr<'a>(
    op: &str,
    arg: &ArgDef,
    name: &str,
    attrs: &'a mut [AttrDef],
) -> Result<&'a mut AttrDef, OpError> {
    attrs.iter_mut().find(|attr| attr.name == name).ok_or_else(|| OpError::UndeclaredAttr {
        op: op.to_owned(),
        arg: arg.name.clone(),
        attr: name.to_owned(),
    })
}

fn role_error(op: &str, arg: &ArgDef, attr: &AttrDef, expected: &'static str) -> OpError {
    OpError::AttrRole {
        op: op.to_owned(),
        arg: arg.name.clone(),
        attr: attr.name.clone(),
        expected,
        found: attr.ty,
    }
}
