//! Assignments of an op's attributes, other than its single types, which the subject gives.
//!
//! There is a base, in which every attribute has its default or its first value; then each further value of each
//! attribute with the others at the base; then mixtures by the generator, so that attributes meet.

use super::Scope;
use crate::check::fill::Random;
use tenon_framework::{
    DType, PartialShape,
    abi::AttrKind,
    attr::{AttrList, AttrMap, AttrValue},
    op::{Allowed, AttrDef, Case, OpDef},
};

/// An assignment.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// Every attribute of the op, the subject's types included.
    pub attrs: AttrMap,
    /// How it differs from the base, such as `keep_dims=true`; empty for the base.
    pub label: String,
    /// All values as `name=value`: what is to be covered.
    pub features: Vec<String>,
}

/// An attribute with the values that are tried, the base's first.
type Choice = (String, Vec<AttrValue>);

/// The assignments of an op. `lists` gives the element types that a `list(type)` attribute may have.
pub(super) fn settings(
    op: &OpDef,
    types: &AttrMap,
    lists: &dyn Fn(&AttrDef) -> Vec<DType>,
    scope: &Scope,
) -> Vec<Setting> {
    let free = op.attrs.iter().filter(|attr| !types.contains_key(&attr.name));
    let choice = |attr: &AttrDef| (attr.name.clone(), values(op, attr, types, lists));
    let choices: Vec<Choice> = free.map(choice).collect();
    assignments(types, &choices, scope.seed_of(&[&op.name, "settings"]), scope.mixtures())
}

/// The assignments that an op's own case allows: attributes that it does not set have their defaults; those
/// that follow from the inputs, and have none, any value.
pub(super) fn declared(
    op: &OpDef,
    types: &AttrMap,
    case: &Case,
    lists: &dyn Fn(&AttrDef) -> Vec<DType>,
    scope: &Scope,
) -> Vec<Setting> {
    let free = op.attrs.iter().filter(|attr| !types.contains_key(&attr.name));
    let choice = |attr: &AttrDef| {
        let set = case.attr(&attr.name).map(<[AttrValue]>::to_vec);
        let count = described(op, case, &attr.name).map(|count| vec![AttrValue::Int(count)]);
        let default = attr.default.clone().map(|value| vec![value]);
        let chosen = set.or(count).or(default).unwrap_or_else(|| values(op, attr, types, lists));
        (attr.name.clone(), chosen)
    };
    let choices: Vec<Choice> = free.map(choice).collect();
    let seed = scope.seed_of(&[&op.name, &case.name, "settings"]);
    assignments(types, &choices, seed, scope.mixtures())
}

/// How many descriptions a case gives of the input whose number an attribute says.
fn described(op: &OpDef, case: &Case, attr: &str) -> Option<i64> {
    let arg = op.inputs.iter().find(|arg| arg.number_attr.as_deref() == Some(attr))?;
    let count = case.input(&arg.name)?.tensors.len();
    (count > 1).then_some(count as i64)
}

/// The base, each further value by itself, and mixtures.
fn assignments(types: &AttrMap, choices: &[Choice], seed: u64, mixtures: usize) -> Vec<Setting> {
    let mut picks = vec![vec![0; choices.len()]];
    for (place, (_, values)) in choices.iter().enumerate() {
        for value in 1..values.len() {
            let mut pick = vec![0; choices.len()];
            pick[place] = value;
            picks.push(pick);
        }
    }
    let mut random = Random::new(seed);
    if choices.iter().filter(|(_, values)| values.len() > 1).count() > 1 {
        for _ in 0..mixtures {
            let pick = |(_, values): &Choice| random.integer(0, values.len() as i64) as usize;
            picks.push(choices.iter().map(pick).collect());
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    picks.retain(|pick| seen.insert(pick.clone()));
    // An attribute of which no value can be made leaves no assignment.
    let made = choices.iter().all(|(_, values)| !values.is_empty());
    picks.iter().filter(|_| made).map(|pick| setting(types, choices, pick)).collect()
}

fn setting(types: &AttrMap, choices: &[Choice], pick: &[usize]) -> Setting {
    let mut attrs = types.clone();
    let (mut label, mut features) = (Vec::new(), Vec::new());
    for ((name, values), &at) in choices.iter().zip(pick) {
        let value = &values[at];
        let text = format!("{name}={}", short(value));
        if at > 0 {
            label.push(text.clone());
        }
        if values.len() > 1 {
            features.push(text);
        }
        attrs.insert(name.clone(), value.clone());
    }
    Setting { attrs, label: label.join(":"), features }
}

/// The values that are tried for an attribute: its default first.
fn values(
    op: &OpDef,
    attr: &AttrDef,
    types: &AttrMap,
    lists: &dyn Fn(&AttrDef) -> Vec<DType>,
) -> Vec<AttrValue> {
    let mut values: Vec<AttrValue> = attr.default.iter().cloned().collect();
    values.extend(match attr.ty.is_list {
        true => list_values(attr, lists),
        false => single_values(op, attr, types),
    });
    let fits = |value: &AttrValue| match (value, attr.minimum) {
        (AttrValue::Int(value), Some(least)) => *value >= least,
        (AttrValue::List(list), Some(least)) => list.len() as i64 >= least,
        _ => true,
    };
    values.retain(fits);
    let mut seen = std::collections::BTreeSet::new();
    values.retain(|value| seen.insert(format!("{value:?}")));
    values
}

fn is_count(op: &OpDef, attr: &AttrDef) -> bool {
    op.inputs.iter().chain(&op.outputs).any(|arg| arg.number_attr.as_ref() == Some(&attr.name))
}

fn single_values(op: &OpDef, attr: &AttrDef, types: &AttrMap) -> Vec<AttrValue> {
    let ints = |values: &[i64]| values.iter().map(|&value| AttrValue::Int(value)).collect();
    match attr.ty.kind {
        AttrKind::INT if is_count(op, attr) => ints(&[2, 1, 3, 0]),
        AttrKind::INT => {
            let base = attr.default.as_ref().and_then(AttrValue::as_int).or(attr.minimum);
            let base = base.unwrap_or(0);
            ints(&[base, base.saturating_add(1), base.saturating_sub(1), 2, 3])
        }
        AttrKind::FLOAT => [0.5f32, 1.0, 0.0, -1.0, 2.0].map(AttrValue::Float).to_vec(),
        AttrKind::BOOL => [false, true].map(AttrValue::Bool).to_vec(),
        AttrKind::STRING => match &attr.allowed {
            Some(Allowed::Strings(texts)) => texts.iter().map(|t| t.as_str().into()).collect(),
            _ => vec!["a".into(), "".into(), "a_longer_text_of_32_characters__".into()],
        },
        AttrKind::SHAPE => shapes(),
        AttrKind::TENSOR => tensors(types),
        AttrKind::FUNC => {
            vec![AttrValue::function("f")]
        }
        _ => Vec::new(),
    }
}

fn shapes() -> Vec<AttrValue> {
    let known: [&[i64]; 5] = [&[2, 3], &[], &[7], &[-1, 3], &[0]];
    let known = known.iter().filter_map(|dims| PartialShape::new(dims).ok());
    known.chain([PartialShape::UNKNOWN]).map(AttrValue::Shape).collect()
}

/// Tensors of each type that the subject has, for an op such as `Const`.
fn tensors(types: &AttrMap) -> Vec<AttrValue> {
    let mut dtypes: Vec<DType> = types.values().filter_map(AttrValue::as_type).collect();
    if dtypes.is_empty() {
        dtypes = vec![DType::FLOAT, DType::INT32];
    }
    let shapes: [&[i64]; 4] = [&[2, 3], &[], &[0], &[1031]];
    let made = |(at, dtype): (usize, DType)| {
        shapes.iter().filter_map(move |dims| {
            let fill = crate::check::Fill::Whole { low: 0, high: 100, seed: at as u64 };
            let dims = dims.to_vec();
            let argument = crate::check::Argument { dtype, dims, fill, constant: true };
            argument.tensor().ok().map(AttrValue::Tensor)
        })
    };
    dtypes.into_iter().enumerate().flat_map(made).collect()
}

fn list_values(attr: &AttrDef, lists: &dyn Fn(&AttrDef) -> Vec<DType>) -> Vec<AttrValue> {
    let all: Vec<AttrList> = match attr.ty.kind {
        AttrKind::INT => INTS.iter().map(|items| AttrList::Int(items.to_vec())).collect(),
        AttrKind::TYPE => {
            let types = lists(attr);
            let some = |count: usize| {
                AttrList::Type((0..count).map(|at| types[at % types.len()]).collect())
            };
            [2, 1, 3, 0].map(some).to_vec()
        }
        AttrKind::FLOAT => [vec![1.0], vec![], vec![0.5, -2.0]].map(AttrList::Float).to_vec(),
        AttrKind::BOOL => [vec![true], vec![], vec![false, true]].map(AttrList::Bool).to_vec(),
        AttrKind::STRING => match &attr.allowed {
            Some(Allowed::Strings(texts)) => {
                let one = |text: &String| AttrList::String(vec![text.as_bytes().to_vec()]);
                texts.iter().map(one).chain([AttrList::String(Vec::new())]).collect()
            }
            _ => [vec![b"a".to_vec()], vec![], vec![b"b".to_vec(), Vec::new()]]
                .map(AttrList::String)
                .to_vec(),
        },
        AttrKind::SHAPE => {
            let shape = |value: AttrValue| match value {
                AttrValue::Shape(shape) => vec![shape],
                _ => Vec::new(),
            };
            shapes().into_iter().map(|value| AttrList::Shape(shape(value))).collect()
        }
        kind => AttrList::empty(kind).into_iter().collect(),
    };
    all.into_iter().map(AttrValue::List).collect()
}

/// Lists of integers that ops of images, axes and sizes take.
const INTS: [&[i64]; 12] = [
    &[1, 1, 1, 1],
    &[1, 2, 2, 1],
    &[1, 3, 2, 1],
    &[1, 1, 2, 2],
    &[1, 1, 1, 2],
    &[],
    &[0],
    &[-1],
    &[1],
    &[2, 2],
    &[0, -1],
    &[1, 2, 3],
];

/// A value as a word of a case's name: no spaces, quotes or characters that a shell takes for its own.
pub(super) fn short(value: &AttrValue) -> String {
    let text = match value {
        AttrValue::Shape(shape) => match shape.dims() {
            Some(dims) => dims_text(dims),
            None => "any".to_owned(),
        },
        AttrValue::Tensor(tensor) => {
            format!("{}_{}", tensor.dtype(), dims_text(tensor.shape().dims()))
        }
        AttrValue::String(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        AttrValue::Int(value) => value.to_string(),
        AttrValue::Float(value) => value.to_string(),
        AttrValue::Bool(value) => value.to_string(),
        AttrValue::Type(dtype) => dtype.to_string(),
        AttrValue::Func(function) => function.name.clone(),
        AttrValue::List(list) => list_text(list),
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.,+".contains(c) { c } else { '_' };
    text.chars().map(plain).collect()
}

fn list_text(list: &AttrList) -> String {
    fn joined<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
        items.iter().map(text).collect::<Vec<_>>().join(",")
    }
    match list {
        AttrList::Int(items) => joined(items, i64::to_string),
        AttrList::Float(items) => joined(items, f32::to_string),
        AttrList::Bool(items) => joined(items, bool::to_string),
        AttrList::Type(items) => joined(items, DType::to_string),
        AttrList::String(items) => joined(items, |b| String::from_utf8_lossy(b).into_owned()),
        AttrList::Shape(items) => joined(items, |s| short(&AttrValue::Shape(s.clone()))),
        AttrList::Tensor(items) => joined(items, |t| short(&AttrValue::Tensor(t.clone()))),
        AttrList::Func(items) => joined(items, |f| f.name.clone()),
    }
}

/// `2x3`, or `scalar`.
pub(super) fn dims_text(dims: &[i64]) -> String {
    match dims {
        [] => "scalar".to_owned(),
        _ => dims.iter().map(i64::to_string).collect::<Vec<_>>().join("x"),
    }
}
