//! Constants and partly known integers, carried from the inputs of a node to its outputs.

use crate::{
    Tensor,
    attr::AttrValue,
    attr_view::AttrTable,
    op::{OpDef, OpRole, Signature, ValueRule},
    symbolic::{Dimension, Item, MAX_ITEMS, SymbolicValue, ValueInfo},
};
use tenon_abi::DType;

/// Completes `outputs`, whose shapes are known, by what the op makes of the values of its inputs.
pub(super) fn propagate(
    op: &OpDef,
    attrs: &AttrTable,
    signature: &Signature,
    inputs: &[&ValueInfo],
    outputs: &mut [ValueInfo],
) {
    let facts = op.facts();
    for (from, to) in facts.passed_on(signature) {
        let (Some(input), Some(output)) = (inputs.get(from), outputs.get_mut(to)) else { continue };
        if facts.is_identity() {
            pass_on(input, output);
        } else if is_followed(signature.outputs[to]) {
            output.value = reshaped(input, output);
        }
    }
    match (facts.role, facts.value, inputs) {
        (OpRole::Switch, _, [data, _]) if !signature.inputs[0].is_ref() => {
            outputs.iter_mut().for_each(|output| pass_on(data, output));
        }
        (_, ValueRule::None, _) => {}
        (_, ValueRule::Constant, _) => constant(attrs, outputs),
        (_, ValueRule::Shape, _) => {
            for ((input, output), &dtype) in inputs.iter().zip(outputs).zip(&signature.outputs) {
                let dims = || dims_of(input).and_then(SymbolicValue::vector);
                output.value = is_followed(dtype).then(dims).flatten();
            }
        }
        (_, rule, _) => {
            let [output] = outputs else { return };
            if is_followed(signature.outputs[0]) {
                output.value = single(rule, attrs, signature.outputs[0], inputs, output);
            }
        }
    }
}

/// Whether the integers of a type are followed.
fn is_followed(dtype: DType) -> bool {
    matches!(dtype, DType::INT16 | DType::INT32 | DType::INT64)
}

/// The value of the one output, of this integer type.
fn single(
    rule: ValueRule,
    attrs: &AttrTable,
    dtype: DType,
    inputs: &[&ValueInfo],
    output: &ValueInfo,
) -> Option<SymbolicValue> {
    match (rule, inputs) {
        (ValueRule::Size, [input]) => size(input),
        (ValueRule::Rank, [input]) => {
            Some(SymbolicValue::scalar(Item::Known(input.shape.rank()? as i64)))
        }
        (ValueRule::Cast, [input]) => input.symbolic_value().filter(|value| value.fits(dtype)),
        (ValueRule::Pack, _) => pack(inputs, output),
        (ValueRule::Concat, [values @ .., _]) => concat(values, output),
        (ValueRule::StridedSlice, [input, begin, _, strides]) => {
            slice(attrs, &input.symbolic_value()?, [begin, strides], output)
        }
        _ => None,
    }
}

/// The integers of an input that is given under another shape.
fn reshaped(input: &ValueInfo, output: &ValueInfo) -> Option<SymbolicValue> {
    input.symbolic_value()?.with_rank(output.shape.rank()?)
}

fn constant(attrs: &AttrTable, outputs: &mut [ValueInfo]) {
    if let (Some(AttrValue::Tensor(tensor)), [output]) = (attrs.get("value"), outputs) {
        output.value = SymbolicValue::from_tensor(tensor);
        output.constant = Some(Tensor::clone(tensor));
    }
}

fn pass_on(input: &ValueInfo, output: &mut ValueInfo) {
    output.value.clone_from(&input.value);
    output.constant.clone_from(&input.constant);
}

fn dims_of(input: &ValueInfo) -> Option<Vec<Item>> {
    Some(input.shape.dims()?.iter().map(|&dim| Item::from(dim)).collect())
}

/// Known when every dimension is, when one is 0, or when all but one are 1.
fn size(input: &ValueInfo) -> Option<SymbolicValue> {
    let dims = input.shape.dims()?;
    if dims.contains(&Dimension::Known(0)) {
        return Some(SymbolicValue::scalar(Item::Known(0)));
    }
    let others: Vec<Dimension> =
        dims.iter().copied().filter(|&dim| dim != Dimension::Known(1)).collect();
    if let [only] = others[..] {
        return Some(SymbolicValue::scalar(only.into()));
    }
    let known = others.iter().map(|dim| match dim {
        Dimension::Known(value) => Some(*value),
        Dimension::Unknown(_) => None,
    });
    let product = known.into_iter().try_fold(1i64, |product, value| product.checked_mul(value?))?;
    Some(SymbolicValue::scalar(Item::Known(product)))
}

/// Scalars become a vector; if nothing is known of any of them, nothing is known of it.
fn pack(inputs: &[&ValueInfo], output: &ValueInfo) -> Option<SymbolicValue> {
    if output.shape.rank() != Some(1) || inputs.len() > MAX_ITEMS {
        return None;
    }
    let item = |input: &&ValueInfo| match input.symbolic_value() {
        Some(value) if value.is_scalar() => value.items()[0],
        _ => Item::Unknown,
    };
    worthwhile(inputs.iter().map(item).collect())
}

/// Vectors of known length joined.
fn concat(inputs: &[&ValueInfo], output: &ValueInfo) -> Option<SymbolicValue> {
    if output.shape.rank() != Some(1) {
        return None;
    }
    let mut items = Vec::new();
    for input in inputs {
        match (input.symbolic_value(), input.shape.dims()) {
            (Some(value), _) => items.extend_from_slice(value.items()),
            (None, Some(&[Dimension::Known(length)])) if length <= MAX_ITEMS as i64 => {
                items.resize(items.len() + length as usize, Item::Unknown);
            }
            _ => return None,
        }
        if items.len() > MAX_ITEMS {
            return None;
        }
    }
    worthwhile(items)
}

fn worthwhile(items: Vec<Item>) -> Option<SymbolicValue> {
    let nothing = !items.is_empty() && items.iter().all(|&item| item == Item::Unknown);
    if nothing { None } else { SymbolicValue::vector(items) }
}

/// Part of a vector, or one of its integers.
///
/// The shape of the output says how many integers are taken, since the op's shape function has seen begin, end and
/// strides. What is left to find is the first index and the stride.
fn slice(
    attrs: &AttrTable,
    value: &SymbolicValue,
    [begin, strides]: [&ValueInfo; 2],
    output: &ValueInfo,
) -> Option<SymbolicValue> {
    let count = match output.shape.dims()? {
        [] => 1,
        &[Dimension::Known(count)] if count <= MAX_ITEMS as i64 => count,
        _ => return None,
    };
    if value.is_scalar() {
        return None;
    }
    let length = value.items().len() as i64;
    let (first, stride) = first_and_stride(attrs, length, begin, strides)?;
    let item = |taken: i64| {
        let at = taken.checked_mul(stride)?.checked_add(first)?;
        value.items().get(usize::try_from(at).ok()?).copied()
    };
    let items = (0..count).map(item).collect::<Option<Vec<_>>>()?;
    SymbolicValue::vector(items)?.with_rank(output.shape.rank()?)
}

/// The begin of a slice of a vector, if it takes anything, and the distance between the integers that it takes.
fn first_and_stride(
    attrs: &AttrTable,
    length: i64,
    begin: &ValueInfo,
    strides: &ValueInfo,
) -> Option<(i64, i64)> {
    let mask = |name: &str| u32::try_from(attrs.get(name)?.as_int()?).ok().map(u64::from);
    let passed_by = mask("ellipsis_mask")? | mask("new_axis_mask")?;
    let begin_ignored = mask("begin_mask")? & !mask("shrink_axis_mask")?;
    let strides = strides.symbolic_value()?.known()?;
    // At most MAX_ITEMS entries, as many as there are bits. A vector has one dimension, so that one entry at most
    // speaks of it; without such an entry it is taken whole.
    let Some(entry) = (0..strides.len()).find(|&entry| passed_by >> entry & 1 == 0) else {
        return Some((0, 1));
    };
    let (stride, last) = (strides[entry], (length - 1).max(0));
    let first = if begin_ignored >> entry & 1 == 1 {
        if stride > 0 { 0 } else { last }
    } else {
        let begin = *begin.symbolic_value()?.known()?.get(entry)?;
        let from_front = if begin < 0 { begin + length } else { begin };
        from_front.clamp(0, last)
    };
    Some((first, stride))
}
