//! What can be wrong with an op definition, or with a node of it.

use super::raw::{LinkError, RawError};
use crate::attr::AttrType;
use crate::text::{cut, cut_text};
use tenon_abi::{Code, DType};
use thiserror::Error;

/// What is wrong with an op definition, or with the attributes and inputs of a node.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OpError {
    /// A plugin handed over a malformed struct.
    #[error(transparent)]
    Raw(#[from] RawError),
    /// A text that does not follow the grammar.
    #[error(
        "op '{op}': in {text:?} at byte {position}: expected {expected}, found {found}",
        op = cut(.op), text = cut_text(.text), expected = cut_text(.expected),
        found = cut_text(.found)
    )]
    Spec {
        /// The op.
        op: String,
        /// The text.
        text: String,
        /// Byte in the text.
        position: usize,
        /// What the grammar wants there.
        expected: String,
        /// The text that was found there.
        found: String,
    },
    /// A case that does not follow the grammar, or says what the op forbids.
    #[error(
        "op '{op}': case {number} {text:?} at byte {position}: expected {expected}, found {found}",
        op = cut(.op), text = cut_text(.text), expected = cut_text(.expected),
        found = cut_text(.found)
    )]
    Case {
        /// The op.
        op: String,
        /// Number of the case, from 1.
        number: usize,
        /// The text.
        text: String,
        /// Byte in the text.
        position: usize,
        /// What is wanted there.
        expected: String,
        /// The text that was found there.
        found: String,
    },
    /// A link of another layout than this host's.
    #[error("op '{op}': {link}", op = cut(.op))]
    Link {
        /// The op.
        op: String,
        /// What is wrong.
        link: LinkError,
    },
    /// A fact that does not fit the op, or that this host does not know.
    #[error(
        "op '{op}': fact {fact}: expected {expected}, found {found}",
        op = cut(.op), found = cut_text(.found)
    )]
    Fact {
        /// The op.
        op: String,
        /// The fact.
        fact: &'static str,
        /// What the fact needs.
        expected: String,
        /// What the op has.
        found: String,
    },
    /// A name that does not follow its rule.
    #[error("op names follow {rule}, found '{name}'", name = cut(.name))]
    Name {
        /// What was found.
        name: String,
        /// The rule, as a regular expression.
        rule: &'static str,
    },
    /// Two arguments or attributes of one name.
    #[error(
        "op '{op}': two {what}s are named '{name}': rename one",
        op = cut(.op), name = cut(.name)
    )]
    Duplicate {
        /// The op.
        op: String,
        /// `input`, `output` or `attribute`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// An argument names an attribute that is not declared.
    #[error(
        "op '{op}': argument '{arg}' names attribute '{attr}', which the op does not declare",
        op = cut(.op), arg = cut(.arg), attr = cut(.attr)
    )]
    UndeclaredAttr {
        /// The op.
        op: String,
        /// The argument.
        arg: String,
        /// The attribute.
        attr: String,
    },
    /// An argument names an attribute of a type that does not serve.
    #[error(
        "op '{op}': argument '{arg}' needs attribute '{attr}' to be {expected}, it is {found}",
        op = cut(.op), arg = cut(.arg), attr = cut(.attr)
    )]
    AttrRole {
        /// The op.
        op: String,
        /// The argument.
        arg: String,
        /// The attribute.
        attr: String,
        /// Types that serve.
        expected: &'static str,
        /// Type that was declared.
        found: AttrType,
    },
    /// A node lacks an attribute that has no default.
    #[error(
        "op '{op}': attribute '{attr}' of type {expected} is missing and has no default: set it",
        op = cut(.op), attr = cut(.attr)
    )]
    MissingAttr {
        /// The op.
        op: String,
        /// The attribute.
        attr: String,
        /// Its type.
        expected: AttrType,
    },
    /// An attribute of another type than declared.
    #[error(
        "op '{op}': attribute '{attr}' is of type {expected}, found {found}",
        op = cut(.op), attr = cut(.attr)
    )]
    AttrType {
        /// The op.
        op: String,
        /// The attribute.
        attr: String,
        /// Declared.
        expected: AttrType,
        /// Found.
        found: AttrType,
    },
    /// A value that the op does not allow.
    #[error(
        "op '{op}': attribute '{attr}' is one of {allowed}, found {found}",
        op = cut(.op), attr = cut(.attr), allowed = cut_text(.allowed), found = cut_text(.found)
    )]
    NotAllowed {
        /// The op.
        op: String,
        /// The attribute.
        attr: String,
        /// What is allowed.
        allowed: String,
        /// What was found.
        found: String,
    },
    /// A number, or a length of a list, below its minimum.
    #[error(
        "op '{op}': {quantity} '{attr}' is at least {minimum}, found {found}",
        op = cut(.op), attr = cut(.attr)
    )]
    BelowMinimum {
        /// The op.
        op: String,
        /// The attribute.
        attr: String,
        /// `attribute`, or `the length of attribute`.
        quantity: &'static str,
        /// The minimum.
        minimum: i64,
        /// What was found.
        found: i64,
    },
    /// An attribute that the op does not have.
    #[error(
        "op '{op}' has no attribute '{attr}': it has {known}; names of other attributes begin with '_'",
        op = cut(.op), attr = cut(.attr), known = cut_text(.known)
    )]
    UnknownAttr {
        /// The op.
        op: String,
        /// The attribute.
        attr: String,
        /// Those it has.
        known: String,
    },
    /// Another number of inputs than the op takes.
    #[error(
        "op '{op}' takes {expected} inputs, found {found}",
        op = cut(.op), expected = cut_text(.expected)
    )]
    InputCount {
        /// The op.
        op: String,
        /// In words.
        expected: String,
        /// Given.
        found: usize,
    },
    /// An input of the wrong type.
    #[error(
        "op '{op}': input {index} (argument '{arg}') is {expected}, found {found}",
        op = cut(.op), arg = cut(.arg)
    )]
    InputType {
        /// The op.
        op: String,
        /// The argument.
        arg: String,
        /// Flat position.
        index: usize,
        /// Wanted.
        expected: DType,
        /// Given.
        found: DType,
    },
    /// The lengths of several variadic inputs cannot be told apart.
    #[error(
        "op '{op}': the lengths {attrs} cannot be told from {found} inputs: set all but one",
        op = cut(.op), attrs = cut_text(.attrs)
    )]
    Ambiguous {
        /// The op.
        op: String,
        /// The attributes that give the lengths.
        attrs: String,
        /// Number of inputs.
        found: usize,
    },
    /// More inputs or outputs than any node may have.
    #[error(
        "op '{op}': argument '{arg}' has {found} values, a node has at most {limit}",
        op = cut(.op), arg = cut(.arg)
    )]
    TooMany {
        /// The op.
        op: String,
        /// The argument.
        arg: String,
        /// The limit.
        limit: usize,
        /// What was found.
        found: i64,
    },
}

impl OpError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        Code::INVALID_ARGUMENT
    }
}
