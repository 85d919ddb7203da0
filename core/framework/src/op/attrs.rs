//! Attributes of one node: inferred from its inputs, completed by defaults, checked.

use super::{
    def::{Allowed, ArgDef, ArgType, AttrDef, OpDef},
    error::OpError,
    signature::MAX_VALUES,
};
use crate::{
    attr::{AttrList, AttrMap, AttrValue},
    attr_view::AttrTable,
};
use std::collections::BTreeSet;
use tenon_abi::{AttrKind, DType};

impl AttrTable {
    /// The table of these attributes, completed by the op's defaults.
    ///
    /// # Errors
    /// An attribute is missing that has no default.
    pub fn with_defaults(op: &OpDef, mut attrs: AttrMap) -> Result<AttrTable, OpError> {
        apply_defaults(op, &mut attrs)?;
        Ok(AttrTable::new(attrs))
    }
}

/// Adds the defaults of the attributes that a node lacks.
///
/// # Errors
/// An attribute is missing that has no default.
pub fn apply_defaults(op: &OpDef, attrs: &mut AttrMap) -> Result<(), OpError> {
    for attr in &op.attrs {
        if attrs.contains_key(&attr.name) {
            continue;
        }
        let default = attr.default.as_ref().ok_or_else(|| missing(op, attr))?;
        attrs.insert(attr.name.clone(), default.clone());
    }
    Ok(())
}

/// Checks the attributes of a node, defaults already applied. Names that begin with `_` are not the op's
/// and pass.
///
/// # Errors
/// Missing, of another type, not allowed, below its minimum, not the op's.
pub fn check_attrs(op: &OpDef, attrs: &AttrMap) -> Result<(), OpError> {
    for attr in &op.attrs {
        let value = attrs.get(&attr.name).ok_or_else(|| missing(op, attr))?;
        check_value(op, attr, value)?;
    }
    match attrs.keys().find(|name| !name.starts_with('_') && op.attr(name).is_none()) {
        Some(name) => Err(OpError::UnknownAttr {
            op: op.name.clone(),
            attr: name.clone(),
            known: known_attrs(op),
        }),
        None => Ok(()),
    }
}

fn known_attrs(op: &OpDef) -> String {
    if op.attrs.is_empty() {
        return "none".to_owned();
    }
    op.attrs.iter().map(|attr| attr.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn missing(op: &OpDef, attr: &AttrDef) -> OpError {
    OpError::MissingAttr { op: op.name.clone(), attr: attr.name.clone(), expected: attr.ty }
}

/// Checks one value against the definition of its attribute.
pub(super) fn check_value(op: &OpDef, attr: &AttrDef, value: &AttrValue) -> Result<(), OpError> {
    let found = value.attr_type();
    if found != attr.ty {
        return Err(OpError::AttrType {
            op: op.name.clone(),
            attr: attr.name.clone(),
            expected: attr.ty,
            found,
        });
    }
    check_minimum(op, attr, value)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match value {
        AttrValue::Type(dtype) => check_type(op, attr, *dtype),
        AttrValue::List(AttrList::Type(types)) => {
            types.iter().try_for_each(|&dtype| check_type(op, attr, dtype))
        }
        AttrValue::String(bytes) => check_string(op, attr, &text(bytes)),
        AttrValue::List(AttrList::String(texts)) => {
            texts.iter().try_for_each(|bytes| check_string(op, attr, &text(bytes)))
        }
        _ => Ok(()),
    }
}

fn check_minimum(op: &OpDef, attr: &AttrDef, value: &AttrValue) -> Result<(), OpError> {
    let (quantity, found) = match value {
        AttrValue::Int(value) => ("attribute", *value),
        AttrValue::List(list) => ("the length of attribute", list.len() as i64),
        _ => return Ok(()),
    };
    match attr.minimum {
        Some(minimum) if found < minimum => Err(OpError::BelowMinimum {
            op: op.name.clone(),
            attr: attr.name.clone(),
            quantity,
            minimum,
            found,
        }),
        _ => Ok(()),
    }
}

fn not_allowed(op: &OpDef, attr: &AttrDef, allowed: String, found: String) -> OpError {
    OpError::NotAllowed { op: op.name.clone(), attr: attr.name.clone(), allowed, found }
}

fn check_type(op: &OpDef, attr: &AttrDef, dtype: DType) -> Result<(), OpError> {
    if !dtype.is_valid() {
        let found = format!("type number {}", dtype.0);
        return Err(not_allowed(op, attr, "the numbered types".to_owned(), found));
    }
    match &attr.allowed {
        Some(allowed @ Allowed::Types(types)) if !types.contains(&dtype) => {
            Err(not_allowed(op, attr, allowed.to_string(), dtype.to_string()))
        }
        _ => Ok(()),
    }
}

fn check_string(op: &OpDef, attr: &AttrDef, text: &str) -> Result<(), OpError> {
    match &attr.allowed {
        Some(allowed @ Allowed::Strings(texts)) if !texts.iter().any(|t| t == text) => {
            Err(not_allowed(op, attr, allowed.to_string(), format!("'{text}'")))
        }
        _ => Ok(()),
    }
}

/// Adds the attributes that the element types of a node's flat inputs determine: types, lists of types,
/// and numbers of values. What is set already stays and must agree. Reference types count as their base.
///
/// # Errors
/// The number of inputs fits no lengths, or several; a type contradicts an attribute or another input; a
/// value that the op does not allow.
pub fn infer_attrs(op: &OpDef, inputs: &[DType], attrs: &mut AttrMap) -> Result<(), OpError> {
    let unknown = unknown_length(op, inputs.len(), attrs)?;
    let mut at = 0;
    for arg in &op.inputs {
        let len = match (length(op, arg, attrs)?, unknown) {
            (Some(len), _) => len,
            (None, Some(len)) => len,
            (None, None) => 0,
        };
        let types = inputs.get(at..at + len).ok_or_else(|| count_error(op, inputs.len()))?;
        set_length(arg, len, attrs);
        set_types(op, arg, at, types, attrs)?;
        at += len;
    }
    if at != inputs.len() {
        return Err(count_error(op, inputs.len()));
    }
    for attr in &op.attrs {
        if let Some(value) = attrs.get(&attr.name) {
            check_value(op, attr, value)?;
        }
    }
    Ok(())
}

/// The attribute that gives the number of values of an argument.
fn length_attr(arg: &ArgDef) -> Option<&str> {
    match (&arg.number_attr, &arg.ty) {
        (Some(name), _) | (None, ArgType::ListAttr(name)) => Some(name),
        _ => None,
    }
}

/// Number of values of an argument, as far as the attributes determine it.
fn length(op: &OpDef, arg: &ArgDef, attrs: &AttrMap) -> Result<Option<usize>, OpError> {
    let Some(name) = length_attr(arg) else { return Ok(Some(1)) };
    let len = match attrs.get(name) {
        None => return Ok(None),
        Some(AttrValue::Int(value)) => *value,
        Some(AttrValue::List(list)) => list.len() as i64,
        Some(other) => {
            let expected = if arg.number_attr.is_some() { AttrKind::INT } else { AttrKind::TYPE };
            return Err(OpError::AttrType {
                op: op.name.clone(),
                attr: name.to_owned(),
                expected: crate::attr::AttrType {
                    kind: expected,
                    is_list: arg.number_attr.is_none(),
                },
                found: other.attr_type(),
            });
        }
    };
    bounded(op, arg, len).map(Some)
}

/// A number of values as an index.
pub(super) fn bounded(op: &OpDef, arg: &ArgDef, len: i64) -> Result<usize, OpError> {
    usize::try_from(len).ok().filter(|&len| len <= MAX_VALUES).ok_or_else(|| OpError::TooMany {
        op: op.name.clone(),
        arg: arg.name.clone(),
        limit: MAX_VALUES,
        found: len,
    })
}

/// The length that the inputs give to the one attribute whose length is not set.
fn unknown_length(op: &OpDef, total: usize, attrs: &AttrMap) -> Result<Option<usize>, OpError> {
    let mut known = 0usize;
    let mut names = BTreeSet::new();
    let mut uses = 0;
    for arg in &op.inputs {
        match length(op, arg, attrs)? {
            Some(len) => known = known.saturating_add(len),
            None => {
                names.extend(length_attr(arg));
                uses += 1;
            }
        }
    }
    if names.len() > 1 {
        let attrs = names.into_iter().collect::<Vec<_>>().join(", ");
        return Err(OpError::Ambiguous { op: op.name.clone(), attrs, found: total });
    }
    match total.checked_sub(known) {
        Some(0) if uses == 0 => Ok(None),
        Some(rest) if uses > 0 && rest % uses == 0 => Ok(Some(rest / uses)),
        _ => Err(count_error(op, total)),
    }
}

pub(super) fn count_error(op: &OpDef, found: usize) -> OpError {
    let args: Vec<String> = op
        .inputs
        .iter()
        .map(|arg| match length_attr(arg) {
            Some(attr) if arg.number_attr.is_some() => format!("{attr} of {}", arg.name),
            Some(attr) => format!("those of {attr} as {}", arg.name),
            None => arg.name.clone(),
        })
        .collect();
    let fixed = op.inputs.iter().all(|arg| length_attr(arg).is_none());
    let expected = match (fixed, args.len()) {
        (true, 0) => "0".to_owned(),
        (true, count) => format!("{count} ({})", args.join(", ")),
        _ => format!("({})", args.join(", ")),
    };
    OpError::InputCount { op: op.name.clone(), expected, found }
}

fn set_length(arg: &ArgDef, len: usize, attrs: &mut AttrMap) {
    if let Some(name) = &arg.number_attr {
        attrs.entry(name.clone()).or_insert(AttrValue::Int(len as i64));
    }
}

fn set_types(
    op: &OpDef,
    arg: &ArgDef,
    start: usize,
    types: &[DType],
    attrs: &mut AttrMap,
) -> Result<(), OpError> {
    let expected: Vec<DType> = match &arg.ty {
        ArgType::Fixed(dtype) => vec![*dtype; types.len()],
        ArgType::Attr(name) => {
            let Some(first) = types.first() else { return Ok(()) };
            let value = attrs.entry(name.clone()).or_insert(AttrValue::Type(first.base()));
            value.as_type().map(|dtype| vec![dtype; types.len()]).unwrap_or_default()
        }
        ArgType::ListAttr(name) => {
            let bases = types.iter().map(|dtype| dtype.base()).collect();
            let value = attrs.entry(name.clone()).or_insert(AttrValue::List(AttrList::Type(bases)));
            match value {
                AttrValue::List(AttrList::Type(types)) => types.clone(),
                _ => Vec::new(),
            }
        }
    };
    // An attribute of the wrong type gives fewer here; `check_value` names it afterwards.
    for (at, (&found, &expected)) in types.iter().zip(&expected).enumerate() {
        if found.base() != expected || (arg.is_ref && !found.is_ref()) {
            return Err(OpError::InputType {
                op: op.name.clone(),
                arg: arg.name.clone(),
                index: start + at,
                expected: if arg.is_ref { expected.as_ref_type() } else { expected },
                found,
            });
        }
    }
    Ok(())
}
