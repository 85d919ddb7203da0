//! What an op states about its measurement: calls that show how fast a kernel is, and the work of a call.
//!
//! A definition carries them as texts ([`ExtBench`](tenon_abi::ExtBench)); the grammar is in
//! core/abi/docs/bench.md. What they are not: cases that a check uses, which say what is valid.
//!
//! ```
//! use tenon_framework::op::OpDef;
//!
//! let mut op = OpDef::from_spec("Rows", &["x: T", "w: T"], &["y: T"], &["T: {float, double}"])?;
//! op.set_bench(&["rows; n in {64, 4096}; x: [n, 768]; w: [768]"], "4 * x", "")?;
//! let calls = op.bench().calls[0].sizes();
//! assert_eq!(calls[1], [("n", 4096)].into());
//!
//! let error = op.set_bench(&["rows; x: [n, 768]; w: [768]"], "", "").unwrap_err();
//! assert!(error.to_string().contains("'n in {64, 4096}'"), "{error}");
//! # Ok::<(), tenon_framework::op::OpError>(())
//! ```

mod formula;

#[cfg(test)]
mod tests;

use super::{Case, OpDef, OpError, Sizes, cases::parse_cases, spec::Cursor};
use crate::attr::AttrType;
pub use formula::{Formula, Tensors};
use std::collections::BTreeMap;
use tenon_abi::AttrKind;

/// Calls of one text at most: sizes with many values each are soon thousands.
pub const MAX_CALLS: usize = 64;

/// Calls to measure, and their work.
#[derive(Debug, Clone, Default)]
pub struct Bench {
    /// The calls: each describes every input, and every size in it has values.
    pub calls: Vec<Case>,
    /// Operations of a call.
    pub flops: Option<Formula>,
    /// Bytes that a call moves, where they are not those of its inputs and outputs.
    pub bytes: Option<Formula>,
}

impl Bench {
    /// Reads the texts of an op.
    pub(super) fn parse<S: AsRef<str>>(
        op: &OpDef,
        calls: &[S],
        flops: &str,
        bytes: &str,
    ) -> Result<Bench, OpError> {
        let texts = calls;
        let calls = parse_cases(op, texts).map_err(unnumbered)?;
        for (case, text) in calls.iter().zip(texts) {
            check(op, case, &Cursor::new(&op.name, text.as_ref()))?;
        }
        let formula = |text: &str| match text.trim() {
            "" => Ok(None),
            _ => Formula::parse(op, text).map(Some),
        };
        Ok(Bench { calls, flops: formula(flops)?, bytes: formula(bytes)? })
    }
}

/// A case's error as one of a text: calls have no numbers.
fn unnumbered(error: OpError) -> OpError {
    match error {
        OpError::Case { op, number: _, text, position, expected, found } => {
            OpError::Spec { op, text, position, expected, found }
        }
        other => other,
    }
}

/// A call leaves nothing open, so that a benchmark does not have to choose anything.
fn check(op: &OpDef, case: &Case, cursor: &Cursor<'_>) -> Result<(), OpError> {
    let left = op.inputs.iter().find(|arg| case.input(&arg.name).is_none());
    if let Some(arg) = left {
        let expected =
            format!("input '{0}' described in a call to measure: '{0}: [...]'", arg.name);
        return Err(cursor.fail(&expected));
    }
    let limited = |symbol: &str| case.symbols.iter().any(|choice| choice.symbol == symbol);
    let is_int =
        |name: &str| op.attr(name).is_some_and(|attr| attr.ty == AttrType::one(AttrKind::INT));
    if let Some(open) = case.used_symbols().into_iter().find(|name| !limited(name) && !is_int(name))
    {
        let expected =
            format!("values of size '{open}' in a call to measure: '{open} in {{64, 4096}}'");
        return Err(cursor.fail(&expected));
    }
    if case.sizes().len() > MAX_CALLS {
        return Err(cursor.fail(&format!("at most {MAX_CALLS} calls of one text")));
    }
    Ok(())
}

impl Case {
    /// The values of its sizes, with one map for each call that it describes: those of a list, and of a range the first
    /// value and those that doubling gives; at most one more than [`MAX_CALLS`] maps.
    pub fn sizes(&self) -> Vec<BTreeMap<&str, i64>> {
        let mut all: Vec<BTreeMap<&str, i64>> = vec![BTreeMap::new()];
        for choice in &self.symbols {
            let values = match &choice.sizes {
                Sizes::List(values) => values.clone(),
                Sizes::Range(first, end) => doubled(*first, *end),
            };
            let mut longer = Vec::new();
            'rows: for row in &all {
                for &value in &values {
                    if longer.len() > MAX_CALLS {
                        break 'rows;
                    }
                    let mut row = row.clone();
                    row.insert(choice.symbol.as_str(), value);
                    longer.push(row);
                }
            }
            all = longer;
        }
        all
    }
}

/// From the first number on, each twice the one before, below `end`.
fn doubled(first: i64, end: i64) -> Vec<i64> {
    let next = |&at: &i64| at.max(1).checked_mul(2).filter(|&next| at > 0 && next < end);
    let rest = std::iter::successors(Some(first.max(1)), next).filter(|&at| at < end);
    let zero = (first == 0).then_some(0);
    zero.into_iter().chain(rest).collect()
}
