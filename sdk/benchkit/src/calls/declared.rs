//! Calls that an op itself says are worth measuring (core/abi/docs/bench.md).

use super::{Call, Wish, attrs, inputs};
use crate::{error::BenchError, record::dims_text};
use std::{collections::BTreeMap, sync::Arc};
use tenon_framework::{
    attr::{AttrMap, AttrValue},
    attr_view::AttrTable,
    op::{ArgDef, Case, OpDef, Signature, TensorCase, Values},
};
use tenon_testkit::check::{Argument, CheckCase, described};

/// Sizes by symbol.
pub type Row<'a> = BTreeMap<&'a str, i64>;

/// The calls of an op's `bench`, in their order, for these types.
///
/// # Errors
/// No text is for these types, or what the user gives does not suit them.
pub fn calls(op: &Arc<OpDef>, types: &AttrMap, wish: &Wish) -> Result<Vec<Call>, BenchError> {
    let mut all = Vec::new();
    for text in op.bench().calls.iter().filter(|text| is_for(text, types)) {
        for attrs in settings(op, text, types, wish)? {
            for row in text.sizes() {
                let case = instance(op, text, &attrs, &row, wish)?.ok_or_else(|| {
                    let problem = format!("sizes {row:?} do not suit its call '{}'", text.name);
                    BenchError::wish(&op.name, problem)
                })?;
                all.push(Call { op: Arc::clone(op), case, at: None, node: None, calls: 1 });
            }
        }
    }
    if all.is_empty() {
        let problem = "ships no call for these types: give shapes by --shape NAME=SHAPE,...";
        return Err(BenchError::wish(&op.name, problem));
    }
    Ok(all)
}

/// Whether a text is for these types.
pub fn is_for(text: &Case, types: &AttrMap) -> bool {
    types.iter().all(|(name, dtype)| {
        let same = |value: &AttrValue| value.as_type() == dtype.as_type();
        text.attr(name).is_none_or(|values| values.iter().any(same))
    })
}

/// Attributes of the calls of a text: the user's, those of the text in all their combinations, defaults.
pub fn settings(
    op: &OpDef,
    text: &Case,
    types: &AttrMap,
    wish: &Wish,
) -> Result<Vec<AttrMap>, BenchError> {
    let mut first = types.clone();
    for (name, text) in &wish.attrs {
        first.insert(name.clone(), attrs::parse(op, name, text)?);
    }
    let mut all = vec![first];
    for choice in &text.attrs {
        if all[0].contains_key(&choice.name) {
            continue;
        }
        let with = |attrs: &AttrMap, value: &AttrValue| {
            let mut attrs = attrs.clone();
            attrs.insert(choice.name.clone(), value.clone());
            attrs
        };
        all = all
            .iter()
            .flat_map(|attrs| choice.values.iter().map(move |value| with(attrs, value)))
            .collect();
    }
    for attrs in &mut all {
        for arg in &op.inputs {
            let Some(number) = &arg.number_attr else { continue };
            let count = text.input(&arg.name).map_or(1, |input| input.tensors.len());
            attrs.entry(number.clone()).or_insert(AttrValue::Int(count as i64));
        }
    }
    let whole = |attrs| Ok(AttrTable::with_defaults(op, attrs)?.attrs().clone());
    all.into_iter().map(whole).collect()
}

/// The call of a text with these attributes and sizes; `None` where they do not suit it.
///
/// # Errors
/// What the user gives does not suit the op.
pub fn instance(
    op: &OpDef,
    text: &Case,
    attrs: &AttrMap,
    row: &Row<'_>,
    wish: &Wish,
) -> Result<Option<CheckCase>, BenchError> {
    let signature = Signature::resolve(op, attrs)?;
    let mut made = Vec::with_capacity(signature.inputs.len());
    for (arg, range) in op.inputs.iter().zip(&signature.input_args) {
        for place in 0..range.len as usize {
            let at = range.start as usize + place;
            let dtype = signature.inputs[at];
            if let Some(argument) = inputs::by_value(op, wish, &arg.name, dtype)? {
                made.push(argument);
                continue;
            }
            let Some(tensor) = tensor_of(text, arg, place) else { return Ok(None) };
            let size =
                |symbol: &str| row.get(symbol).copied().or_else(|| attrs.get(symbol)?.as_int());
            let seed = wish.seed.wrapping_add(at as u64);
            let Some((dims, fill)) = described(tensor, dtype, &size, seed) else {
                return Ok(None);
            };
            let known = matches!(
                tensor.values,
                Values::List(_) | Values::Permutation | Values::Distinct(_)
            );
            let constant = known || wish.constants.contains(&arg.name);
            let fill = fill.unwrap_or_else(|| inputs::fill(&op.name, dtype, seed));
            made.push(Argument { dtype, dims, fill, constant });
        }
    }
    let name = made.iter().map(|input| dims_text(&input.dims)).collect::<Vec<_>>().join("+");
    Ok(Some(CheckCase { name, tags: Vec::new(), attrs: attrs.clone(), inputs: made }))
}

/// What a text says of an input: one description serves all of an argument's.
fn tensor_of<'a>(text: &'a Case, arg: &ArgDef, place: usize) -> Option<&'a TensorCase> {
    match &text.input(&arg.name)?.tensors[..] {
        [one] => Some(one),
        many => many.get(place),
    }
}
