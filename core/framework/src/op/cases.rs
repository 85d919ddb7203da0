//! Cases of an op: inputs and attributes that are valid, where the signature does not say what is.
//!
//! An op's definition carries them as texts ([`ExtCases`](tenon_abi::ExtCases)); the grammar and its meaning
//! are in core/abi/docs/cases.md. Here they are read, strictly, against the op's definition, and written
//! back. What they are not: values. The program that checks a kernel chooses sizes and attributes and makes
//! the inputs.
//!
//! ```
//! use tenon_framework::op::{Case, OpDef, Values};
//!
//! let inputs = ["x: T", "index: int32"];
//! let mut op = OpDef::from_spec("Rows", &inputs, &["y: T"], &["T: {float, double}"])?;
//! op.set_cases(&["some; n in 1..9; x: [n, 4]; index: [k] integers(0..n)"])?;
//!
//! let case: &Case = &op.cases()[0];
//! let Values::Integers(range) = &case.inputs[1].tensors[0].values else { panic!("integers") };
//! // With nine rows an index is one of 0 to 8.
//! assert_eq!(range.bounds(|symbol| (symbol == "n").then_some(9)), Some((0, 9)));
//! // The name, what is chosen, the inputs: written in this order, and read back the same.
//! assert_eq!(case.to_string(), "some; n in 1..9; x: [n,4]; index: [k] integers(0..n)");
//! # Ok::<(), tenon_framework::op::OpError>(())
//! ```

mod check;
mod parse;
mod write;

#[cfg(test)]
mod tests;

use crate::attr::AttrValue;
use std::collections::BTreeSet;

pub(super) use parse::parse_cases;

/// One case of an op.
#[derive(Debug, Clone)]
pub struct Case {
    /// Name, unique among the op's cases.
    pub name: String,
    /// Attributes that the case sets. Others have their default; those that have none follow from the inputs
    /// or are the checker's choice.
    pub attrs: Vec<AttrChoice>,
    /// Symbols whose sizes the case limits. Others have any size.
    pub symbols: Vec<SizeChoice>,
    /// Inputs that the case describes. Others are made as if there were no case.
    pub inputs: Vec<InputCase>,
}

/// The values that an attribute may have in a case.
#[derive(Debug, Clone)]
pub struct AttrChoice {
    /// Name of the attribute.
    pub name: String,
    /// One value at least, each of the attribute's type and allowed by the op.
    pub values: Vec<AttrValue>,
}

/// The sizes that a symbol may have in a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeChoice {
    /// The symbol.
    pub symbol: String,
    /// Its sizes.
    pub sizes: Sizes,
}

/// Sizes of a symbol, each at least 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sizes {
    /// From the first up to the second, the second not included.
    Range(i64, i64),
    /// One of these; at least one.
    List(Vec<i64>),
}

/// An input argument in a case.
#[derive(Debug, Clone, PartialEq)]
pub struct InputCase {
    /// Name of the argument.
    pub name: String,
    /// One description for every value of the argument, or one for each value of a variadic argument.
    pub tensors: Vec<TensorCase>,
}

/// A tensor in a case. Its element type is the signature's.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorCase {
    /// Dimensions. Sizes that make one negative are not chosen.
    pub dims: Vec<Term>,
    /// Its elements.
    pub values: Values,
}

/// How the elements of a tensor are made.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// As without a case: the checker's choice, special values among them.
    Any,
    /// Between two numbers, both included; of an integer type, the integers between them.
    Uniform(f64, f64),
    /// Integers of a range.
    Integers(TermRange),
    /// Integers of a range, no two the same.
    Distinct(TermRange),
    /// The integers from 0 up to the length of the vector, each once, in any order.
    Permutation,
    /// These, in order; a single one fills the tensor.
    List(Vec<Item>),
    /// Strings, each one of these.
    Strings(Vec<Vec<u8>>),
}

/// An element of a list of values.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// An integer that may depend on sizes.
    Term(Term),
    /// A number.
    Float(f64),
    /// True or false.
    Bool(bool),
}

/// `factor * symbol + offset`: a number that may depend on the size of a symbol, or on an attribute of type
/// int, whose name is a symbol too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// Factor and symbol; none for a plain number. The factor is not 0.
    pub symbol: Option<(i64, String)>,
    /// The number.
    pub offset: i64,
}

/// The integers from one number up to another, which is not included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermRange {
    /// The first.
    pub start: Term,
    /// One behind the last.
    pub end: Term,
}

impl Term {
    /// A plain number.
    pub fn number(offset: i64) -> Term {
        Term { symbol: None, offset }
    }

    /// The number, with the sizes of symbols from `size`; `None` when it knows one not, or when the number
    /// does not fit.
    pub fn value(&self, size: impl Fn(&str) -> Option<i64>) -> Option<i64> {
        match &self.symbol {
            None => Some(self.offset),
            Some((factor, symbol)) => factor.checked_mul(size(symbol)?)?.checked_add(self.offset),
        }
    }

    /// The number, when no symbol is in it.
    pub fn constant(&self) -> Option<i64> {
        self.value(|_| None)
    }
}

impl Item {
    /// The integer, when it is one.
    pub fn term(&self) -> Option<&Term> {
        if let Item::Term(term) = self { Some(term) } else { None }
    }
}

impl TermRange {
    /// Both ends; `None` as for [`Term::value`].
    pub fn bounds(&self, size: impl Fn(&str) -> Option<i64>) -> Option<(i64, i64)> {
        Some((self.start.value(&size)?, self.end.value(&size)?))
    }
}

impl TensorCase {
    /// The terms in it: of its dimensions, then of its values.
    pub fn terms(&self) -> impl Iterator<Item = &Term> {
        let (range, items): (Option<&TermRange>, &[Item]) = match &self.values {
            Values::Integers(range) | Values::Distinct(range) => (Some(range), &[]),
            Values::List(items) => (None, items),
            _ => (None, &[]),
        };
        let bounds = range.into_iter().flat_map(|range| [&range.start, &range.end]);
        self.dims.iter().chain(bounds).chain(items.iter().filter_map(Item::term))
    }

    /// Its number of elements, with the sizes of symbols from `size`; `None` when one is not known or
    /// negative, or the number does not fit.
    pub fn elements(&self, size: impl Fn(&str) -> Option<i64>) -> Option<i64> {
        self.dims.iter().try_fold(1i64, |product, dim| {
            product.checked_mul(dim.value(&size).filter(|dim| *dim >= 0)?)
        })
    }
}

impl Case {
    /// The symbols in its inputs, attributes among them.
    pub fn used_symbols(&self) -> BTreeSet<&str> {
        let tensors = self.inputs.iter().flat_map(|input| &input.tensors);
        let symbols = tensors.flat_map(TensorCase::terms).filter_map(|term| term.symbol.as_ref());
        symbols.map(|(_, symbol)| symbol.as_str()).collect()
    }

    /// What the case says of an attribute.
    pub fn attr(&self, name: &str) -> Option<&[AttrValue]> {
        self.attrs.iter().find(|attr| attr.name == name).map(|attr| &*attr.values)
    }

    /// What the case says of an input argument.
    pub fn input(&self, name: &str) -> Option<&InputCase> {
        self.inputs.iter().find(|input| input.name == name)
    }
}
