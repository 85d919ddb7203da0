//! Constants and partly known integers, carried from the inputs of a node to its outputs.

use super::{
    ValueInfo,
    symbolic::Dimension,
    value::{Item, MAX_ITEMS, SymbolicValue},
};
use crate::{
    Tensor,
    attr::AttrValue,
    attr_view::AttrTable,
    geometry::{SliceMasks, StridedSlice, StridedSliceSpec},
    op::{OpDef, OpRole, Signature, ValueRule},
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
        (ValueRule::StridedSlice, [input, begin, end, strides]) => {
            slice(attrs, &input.symbolic_value()?, [begin, end, strides])
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

/// Scalars become a vector; where nothing is known of any of them, nothing is known of it.
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
fn slice(
    attrs: &AttrTable,
    value: &SymbolicValue,
    bounds: [&ValueInfo; 3],
) -> Option<SymbolicValue> {
    let mask = |name: &str| u32::try_from(attrs.get(name)?.as_int()?).ok();
    let [begin, end, strides] = bounds.map(|bound| bound.symbolic_value()?.known());
    let spec = StridedSliceSpec {
        begin: begin.as_deref(),
        end: end.as_deref(),
        strides: &strides?,
        masks: SliceMasks {
            begin: mask("begin_mask")?,
            end: mask("end_mask")?,
            ellipsis: mask("ellipsis_mask")?,
            new_axis: mask("new_axis_mask")?,
            shrink_axis: mask("shrink_axis_mask")?,
        },
    };
    if value.is_scalar() {
        return None;
    }
    let length = [value.items().len() as i64];
    let slice = StridedSlice::new(&length, &spec).ok()?;
    // Bounds that are not known leave the size open too.
    if slice.output.len() > 1 || slice.processing.contains(&-1) {
        return None;
    }
    let offsets = slice.offsets(&length);
    let items = offsets.map(|at| value.items().get(at).copied()).collect::<Option<Vec<_>>>()?;
    SymbolicValue::vector(items)?.with_rank(slice.output.len())
}
