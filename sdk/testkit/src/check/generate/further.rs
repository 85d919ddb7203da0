//! Cases beside those that are chosen: integer attributes far from their defaults, and huge numbers.
//!
//! Chosen cases have an attribute at its default and next to it, and numbers that are ordinary or at the ends of
//! their range. What is between shows other mistakes: a division by an attribute, a square that overflows. These
//! cases come on top of the chosen ones, so that they take the place of none. They are for kernels that an oracle
//! judges. An op's own cases say what is valid, and are not left.

use super::palette;
use crate::{
    check::{CheckCase, Fill, Subject, Tag},
    float::Format,
    node::Node,
};
use tenon_framework::{
    Shape,
    abi::AttrKind,
    attr::{AttrType, AttrValue},
    op::{AttrDef, OpDef},
};

/// Values that are tried for an integer attribute, as many as are accepted and not tried elsewhere.
const VALUES: [i64; 7] = [0, -1, 7, 64, 1000, -7, 16];
const PER_ATTRIBUTE: usize = 4;
/// Cases of all attributes together.
const MOST: usize = 12;
/// Elements of all inputs together that a case begins with, and of an output that it may have.
const SMALL: i64 = 128;
const OUTPUT: i64 = 1 << 14;

/// Cases in which an integer attribute is far from its default, whatever the kernel says to that.
pub fn far(subject: &Subject, cases: &[CheckCase]) -> Vec<CheckCase> {
    let op = &*subject.op;
    if op.stateful || op.remote.is_some() || !op.cases().is_empty() {
        return Vec::new();
    }
    let Some(base) = base(op, cases) else { return Vec::new() };
    let integers = op.attrs.iter().filter(|attr| is_free(op, attr));
    let of = |attr: &AttrDef| {
        let values = VALUES.into_iter().filter(|&value| is_new(attr, value, cases));
        let made = values.filter_map(|value| with(subject, base, attr, value));
        made.take(PER_ATTRIBUTE).collect::<Vec<_>>()
    };
    integers.flat_map(of).take(MOST).collect()
}

/// Whether an attribute is an integer of which the definition alone says what it may be.
fn is_free(op: &OpDef, attr: &AttrDef) -> bool {
    let args = || op.inputs.iter().chain(&op.outputs);
    let is_count = args().any(|arg| arg.number_attr.as_ref() == Some(&attr.name));
    attr.ty == AttrType::one(AttrKind::INT) && !is_count && !attr.name.starts_with('_')
}

fn is_new(attr: &AttrDef, value: i64, cases: &[CheckCase]) -> bool {
    let is_tried = |case: &CheckCase| {
        !case.is(Tag::Golden)
            && case.attrs.get(&attr.name).and_then(AttrValue::as_int) == Some(value)
    };
    attr.minimum.is_none_or(|least| value >= least) && !cases.iter().any(is_tried)
}

/// The case that is changed: with attributes at their defaults where there is one, and with more than one element.
fn base<'c>(op: &OpDef, cases: &'c [CheckCase]) -> Option<&'c CheckCase> {
    let elements = |case: &CheckCase| {
        case.inputs.iter().map(|input| palette::elements(&input.dims)).fold(0, i64::saturating_add)
    };
    let whole = |case: &&CheckCase| {
        let has_all = case.inputs.iter().all(|input| palette::elements(&input.dims) > 0);
        has_all && elements(case) <= SMALL && !case.is(Tag::Special) && !case.is(Tag::Golden)
    };
    let text = |value: &AttrValue| format!("{value:?}");
    let is_default = |attr: &AttrDef, case: &CheckCase| {
        let own = case.attrs.get(&attr.name).map(text);
        attr.default.as_ref().is_none_or(|default| own == Some(text(default)))
    };
    let changed = |case: &CheckCase| op.attrs.iter().filter(|attr| !is_default(attr, case)).count();
    let whole = cases.iter().filter(whole);
    whole.min_by_key(|case| (changed(case), std::cmp::Reverse(elements(case))))
}

/// The case with another value of an attribute, where definition and shape function take it and no output is large.
fn with(subject: &Subject, base: &CheckCase, attr: &AttrDef, value: i64) -> Option<CheckCase> {
    let mut case = base.clone();
    case.name = format!("{}:{}={value}", base.name, attr.name);
    case.tags = vec![Tag::Attribute];
    case.attrs.insert(attr.name.clone(), AttrValue::Int(value));
    let inputs = case.tensors().ok()?;
    let constant = |at: usize| case.inputs[at].constant;
    let node = Node::new(&subject.op, &case.name, case.attrs.clone(), &inputs, constant).ok()?;
    let small = |shape: Shape| shape.elements() as i64 <= OUTPUT;
    let inferred = node.infer().ok()?;
    // Of an output of which nothing is known, the size may be anything that the attribute says.
    let is_small = inferred.iter().all(|info| match info.shape.partial().full() {
        Some(shape) => small(shape),
        None => value.abs() <= SMALL,
    });
    is_small.then_some(case)
}

/// The case with special numbers once more, with huge ones in their place.
pub fn huge(cases: &[CheckCase]) -> Option<CheckCase> {
    let is_special = |input: &super::Argument| {
        matches!(input.fill, Fill::Special { .. }) && Format::of_parts(input.dtype).is_some()
    };
    let elements = |case: &CheckCase| {
        case.inputs.iter().map(|input| palette::elements(&input.dims)).fold(0, i64::saturating_add)
    };
    let special = cases.iter().filter(|case| case.inputs.iter().any(is_special));
    let mut case = special.min_by_key(|case| elements(case))?.clone();
    for input in &mut case.inputs {
        if let (true, Fill::Special { seed }) = (is_special(input), &input.fill) {
            input.fill = Fill::Huge { seed: *seed };
        }
    }
    let name = case.name.strip_suffix("special").unwrap_or(&case.name);
    case.name = format!("{name}huge");
    Some(case)
}

#[cfg(test)]
#[path = "further_tests.rs"]
mod tests;
