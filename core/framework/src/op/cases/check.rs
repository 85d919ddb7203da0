//! What a case says, against the op's definition and against itself.

use super::{Case, InputCase, Item, Term, Values};
use crate::{
    attr::{AttrList, AttrType, AttrValue},
    op::{
        OpDef, OpError,
        def::{Allowed, ArgDef, ArgType},
        spec::Cursor,
    },
};
use tenon_abi::{AttrKind, DType};

/// The places of the parts of a case in its text.
#[derive(Default)]
pub(super) struct Places {
    /// Each limited size.
    pub symbols: Vec<usize>,
    /// Each input.
    pub inputs: Vec<usize>,
    /// What describes the elements of each tensor of each input, in order.
    pub values: Vec<usize>,
}

impl Places {
    /// Checks what can be checked only after the whole case is read.
    pub fn check(&self, op: &OpDef, case: &Case, cursor: &Cursor<'_>) -> Result<(), OpError> {
        let mut values = self.values.iter().copied();
        for (input, &place) in case.inputs.iter().zip(&self.inputs) {
            let fail = |expected: &str| Err(cursor.fail_at(place, expected));
            let Some(arg) = op.inputs.iter().find(|arg| arg.name == input.name) else { continue };
            if let Some(expected) = wrong_count(case, arg, input) {
                return fail(&expected);
            }
            let types = element_types(op, case, arg);
            for (tensor, place) in input.tensors.iter().zip(&mut values) {
                if let Some(expected) = wrong_values(&tensor.values, &tensor.dims, &types) {
                    return Err(cursor.fail_at(place, &expected));
                }
            }
        }
        self.check_symbols(op, case, cursor)?;
        match op.attrs.iter().find(|attr| must_be_set(op, case, &attr.name)) {
            Some(attr) => {
                let expected = format!("'; {} = ...', since it has no default", attr.name);
                Err(cursor.fail(&expected))
            }
            None => Ok(()),
        }
    }

    fn check_symbols(&self, op: &OpDef, case: &Case, cursor: &Cursor<'_>) -> Result<(), OpError> {
        let used = case.used_symbols();
        for (symbol, &place) in case.symbols.iter().zip(&self.symbols) {
            if !used.contains(symbol.symbol.as_str()) {
                return Err(cursor.fail_at(place, "a size that an input has"));
            }
        }
        let inputs = case.inputs.iter().zip(&self.inputs);
        for (input, &place) in inputs {
            let symbols = input.tensors.iter().flat_map(|tensor| tensor.terms());
            for (_, symbol) in symbols.filter_map(|term| term.symbol.as_ref()) {
                let other = op.attr(symbol).filter(|attr| attr.ty != AttrType::one(AttrKind::INT));
                if let Some(attr) = other {
                    let expected = format!(
                        "an input without '{symbol}', which is an attribute of type {}",
                        attr.ty
                    );
                    return Err(cursor.fail_at(place, &expected));
                }
            }
        }
        Ok(())
    }
}

/// Whether an attribute is not set although it has no default and neither an input nor a checker can determine it.
fn must_be_set(op: &OpDef, case: &Case, name: &str) -> bool {
    let Some(attr) = op.attr(name) else { return false };
    let of_args = op.inputs.iter().chain(&op.outputs).any(|arg| {
        let typed =
            matches!(&arg.ty, ArgType::Attr(attr) | ArgType::ListAttr(attr) if attr == name);
        typed || arg.number_attr.as_deref() == Some(name)
    });
    attr.default.is_none() && !of_args && case.attr(name).is_none()
}

/// How many values an argument has in a case, where the case says so: each possible number.
fn lengths(case: &Case, arg: &ArgDef) -> Option<Vec<usize>> {
    let of_value = |value: &AttrValue| match value {
        AttrValue::Int(len) => usize::try_from(*len).unwrap_or(0),
        AttrValue::List(list) => list.len(),
        _ => 0,
    };
    match (&arg.number_attr, &arg.ty) {
        (Some(name), _) | (None, ArgType::ListAttr(name)) => {
            Some(case.attr(name)?.iter().map(of_value).collect())
        }
        _ => Some(vec![1]),
    }
}

/// One description serves every value of an argument; several are one each.
fn wrong_count(case: &Case, arg: &ArgDef, input: &InputCase) -> Option<String> {
    let found = input.tensors.len();
    let lengths = lengths(case, arg)?;
    if found == 1 || lengths.iter().all(|len| *len == found) {
        return None;
    }
    let lengths: Vec<String> = lengths.iter().map(usize::to_string).collect();
    Some(format!("as many descriptions as '{}' has values ({})", arg.name, lengths.join(", ")))
}

/// The element types that an argument may have in a case; `None` for all.
fn element_types(op: &OpDef, case: &Case, arg: &ArgDef) -> Option<Vec<DType>> {
    let name = match &arg.ty {
        ArgType::Fixed(dtype) => return Some(vec![*dtype]),
        ArgType::Attr(name) | ArgType::ListAttr(name) => name,
    };
    if let Some(values) = case.attr(name) {
        let types = values.iter().flat_map(|value| match value {
            AttrValue::Type(dtype) => vec![*dtype],
            AttrValue::List(AttrList::Type(types)) => types.clone(),
            _ => Vec::new(),
        });
        return Some(types.collect());
    }
    match &op.attr(name)?.allowed {
        Some(Allowed::Types(types)) => Some(types.clone()),
        _ => None,
    }
}

/// What is expected instead of these values, when they do not suit.
fn wrong_values(values: &Values, dims: &[Term], types: &Option<Vec<DType>>) -> Option<String> {
    if let Some(types) = types
        && !types.iter().any(|dtype| suits(values, *dtype))
    {
        let types: Vec<String> = types.iter().map(DType::to_string).collect();
        return Some(format!("values of {}", types.join(" or ")));
    }
    wrong_number(values, dims)
}

/// What is expected of the number of elements, when it does not suit.
fn wrong_number(values: &Values, dims: &[Term]) -> Option<String> {
    let elements = dims.iter().try_fold(1i64, |all, dim| all.checked_mul(dim.constant()?));
    match values {
        Values::Permutation if dims.len() != 1 => {
            Some("a vector: a permutation has one dimension".to_owned())
        }
        Values::Distinct(range) => {
            let (start, end) = range.bounds(|_| None)?;
            let wanted = elements.filter(|elements| end.saturating_sub(start) < *elements)?;
            Some(format!("a range of {wanted} integers or more"))
        }
        Values::List(items) if items.len() > 1 => {
            let wanted = elements.filter(|elements| *elements != items.len() as i64)?;
            Some(format!("{wanted} values, or one"))
        }
        _ => None,
    }
}

/// Whether elements of this type can be made so.
fn suits(values: &Values, dtype: DType) -> bool {
    let number = !dtype.needs_drop() && dtype != DType::BOOL;
    match values {
        Values::Any => true,
        Values::Strings(_) => dtype == DType::STRING,
        Values::List(items) => items.iter().all(|item| match item {
            Item::Bool(_) => dtype == DType::BOOL,
            Item::Term(_) => number,
            Item::Float(_) => dtype.is_floating() || dtype.is_complex(),
        }),
        _ => number,
    }
}
