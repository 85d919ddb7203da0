//! Fusions: patterns of ops, and the one op that does the same.
//!
//! A fusion is declared with `register_fusion!`, in texts that cross the boundary as
//! they are. Here they are read; `tenon-optimize` looks for them in graphs. The grammar:
//!
//! ```text
//! pattern = expr
//! expr    = [ name "@" ] ( tensor | number | call )     name@: this value, to be named again
//! tensor  = name | "*" name                             any tensor; *name: all inputs that are left
//! call    = [ name ":" ] Op { "|" Op } "(" [ expr { "," expr } ] [ ";" attr { "," attr } ] ")"
//! attr    = name "=" value                              in a pattern: is equal; $name: is taken as that
//! value   = "true" | "false" | int | float | 'text' | "[" [ item { "," item } ] "]" | "$" name
//!         | "number" "(" name ")"                       in a result: the one value of a constant
//! item    = value | "*" "$" name                        *$name: the items of that list
//! result  = Op "(" ... ")"                              inputs are names of the pattern
//! where   = name "(" name { "," ( name | int | number ) } ")"
//! ```
//!
//! A number in a pattern is a constant whose elements all are the value of their type that is nearest to the number.
//! Its shape, and that of a constant of which the result takes the `number`, leaves the shape of another input of the
//! same op as it is, whatever is fed: a scalar always does. Inputs of sums and products are matched in either order.
//! A name that occurs twice represents one tensor. Values inside the pattern are used by nothing but the pattern: the
//! pass that applies a fusion makes sure of that. An attribute `equation` is met by any that differs in the names of
//! its labels only.
//!
//! Conditions: `vector(x)`, `scalar(x)`, `constant(x)`, `rank(x, 4)`, `same_shape(x, y)`, `same_type(x, y)`,
//! `channels(x, y)` (x is a vector, as long as the last dimension of y, where both are known),
//! `last_axis(axes, x)`, `leading(x, y, 2)` (all dimensions of x and y but the last 2 are equal).

mod parse;

pub use parse::parse_fusion;

use crate::op::SourceInfo;
use crate::text::{cut, cut_text};
use std::sync::Arc;
use thiserror::Error;

/// A fusion.
#[derive(Debug, Clone)]
pub struct FusionDef {
    /// Name, in snake_case, unique in its library.
    pub name: String,
    /// The pattern to look for.
    pub pattern: Expr,
    /// The result that replaces it.
    pub result: Fused,
    /// Further conditions.
    pub conditions: Vec<Condition>,
    /// Where it is registered.
    pub source: SourceInfo,
    /// Name of the plugin that registered it.
    pub plugin: Arc<str>,
}

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// A name for the value.
    pub name: Option<String>,
    /// The kind of value.
    pub term: Term,
}

/// The kind of a value in a pattern.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    /// Any tensor, or the one of this name.
    Tensor,
    /// All inputs that are left.
    Rest,
    /// A constant whose elements all are the nearest of their type to this.
    Number(f64),
    /// Output 0 of a node.
    Call(Call),
}

/// A node of a pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// A name for the op that was found.
    pub capture: Option<String>,
    /// Ops, one of which it is.
    pub ops: Vec<String>,
    /// Its inputs.
    pub args: Vec<Expr>,
    /// Its attributes, as far as they matter.
    pub attrs: Vec<(String, Value)>,
}

/// What a fusion makes.
#[derive(Debug, Clone, PartialEq)]
pub struct Fused {
    /// The op.
    pub op: String,
    /// Names of the pattern's tensors, in order.
    pub inputs: Vec<String>,
    /// Attributes; others have their default or follow from the inputs.
    pub attrs: Vec<(String, Value)>,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Another number.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// What the pattern took under this name.
    Capture(String),
    /// The items of the list that the pattern took under this name.
    Splice(String),
    /// The one value of a constant.
    Number(String),
}

/// What must hold for a match.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The kind of condition.
    pub name: String,
    /// Its tensors.
    pub tensors: Vec<String>,
    /// Its numbers.
    pub numbers: Vec<i64>,
}

/// All kinds of conditions: name, tensors, numbers.
pub const CONDITIONS: &[(&str, usize, usize)] = &[
    ("vector", 1, 0),
    ("scalar", 1, 0),
    ("constant", 1, 0),
    ("rank", 1, 1),
    ("same_shape", 2, 0),
    ("same_type", 2, 0),
    ("channels", 2, 0),
    ("last_axis", 2, 0),
    ("leading", 2, 1),
];

/// What is wrong with the texts of a fusion.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "fusion '{name}' ({source_at}): {what} '{text}' at byte {at}: {expected}",
    name = cut(.name), text = cut_text(.text), expected = cut_text(.expected)
)]
pub struct FusionError {
    /// The fusion.
    pub name: String,
    /// The part of the fusion.
    pub what: &'static str,
    /// The text.
    pub text: String,
    /// Byte in the text.
    pub at: usize,
    /// What was expected.
    pub expected: String,
    /// Where it is registered.
    pub source_at: Box<SourceInfo>,
}

impl Expr {
    /// The names that a pattern gives to values, in the order in which they are first met.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        let mut stack = vec![self];
        while let Some(expr) = stack.pop() {
            names.extend(expr.name.as_deref());
            if let Term::Call(call) = &expr.term {
                stack.extend(call.args.iter().rev());
            }
        }
        names
    }

    /// The names under which it takes attributes and ops.
    pub fn captures(&self) -> Vec<&str> {
        let mut captures = Vec::new();
        let mut stack = vec![self];
        while let Some(expr) = stack.pop() {
            let Term::Call(call) = &expr.term else { continue };
            captures.extend(call.capture.as_deref());
            for (_, value) in &call.attrs {
                if let Value::Capture(name) = value {
                    captures.push(name);
                }
            }
            stack.extend(call.args.iter().rev());
        }
        captures
    }
}

#[cfg(test)]
mod tests;
