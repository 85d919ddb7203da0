//! Attributes and inputs that are odd: of the right kind, and such as no author expects.

use super::{choice::Chosen, plain::attr_text};
use tenon_framework::{
    DType, PartialShape, Shape, Tensor,
    abi::AttrKind,
    attr::{AttrList, AttrMap, AttrType, AttrValue},
    op::{Allowed, AttrDef, OpDef},
    tensor::Memory,
};
use tenon_runtime::host::memory::{HostMemory, copy_on_host};

/// A call with one thing changed.
pub(super) struct Odd {
    /// What was changed, in words.
    pub what: String,
    pub attrs: AttrMap,
    pub inputs: Vec<Tensor>,
    /// Whether the op's definition refuses it, before any code of the plugin sees it.
    pub is_forbidden: bool,
    /// Whether it is an input that was changed, and no attribute.
    pub is_of_input: bool,
}

/// Calls with one attribute changed.
pub(super) fn attributes(op: &OpDef, chosen: &Chosen) -> Vec<Odd> {
    let mut all = Vec::new();
    for def in &op.attrs {
        let present = chosen.case.attrs.get(&def.name);
        for (value, is_forbidden) in values(def, present) {
            let what = format!("attribute {}={}", def.name, attr_text(&value));
            let mut attrs = chosen.case.attrs.clone();
            attrs.insert(def.name.clone(), value);
            let inputs = chosen.inputs.clone();
            all.push(Odd { what, attrs, inputs, is_forbidden, is_of_input: false });
        }
    }
    all
}

/// Values of an attribute that are odd, and whether the definition forbids each.
fn values(def: &AttrDef, present: Option<&AttrValue>) -> Vec<(AttrValue, bool)> {
    match def.ty {
        AttrType { kind: AttrKind::INT, is_list: false } => integers(def),
        AttrType { kind: AttrKind::FLOAT, is_list: false } => {
            [f32::NAN, f32::INFINITY, -1.0, 0.0, f32::MAX].map(|v| (v.into(), false)).to_vec()
        }
        AttrType { kind: AttrKind::STRING, is_list: false } => texts(def),
        AttrType { kind: AttrKind::TYPE, is_list: false } => types(def),
        AttrType { kind: AttrKind::SHAPE, is_list: false } => shapes(),
        AttrType { kind: AttrKind::INT, is_list: true } => lists(def, present),
        _ => Vec::new(),
    }
}

/// A small number when only 32 bits of it are kept: a size that is computed so comes out small too, and none that is not
/// fits in memory.
const CUT: i64 = (1 << 32) + 1;

fn integers(def: &AttrDef) -> Vec<(AttrValue, bool)> {
    let least = def.minimum.unwrap_or(i64::MIN);
    let mut values = vec![-1, 0, i64::from(i32::MAX), CUT, i64::MAX, i64::MIN];
    values.extend(least.checked_sub(1).filter(|_| def.minimum.is_some()));
    values.into_iter().map(|value| (value.into(), value < least)).collect()
}

fn texts(def: &AttrDef) -> Vec<(AttrValue, bool)> {
    let is_forbidden = |text: &str| match &def.allowed {
        Some(Allowed::Strings(allowed)) => !allowed.iter().any(|allowed| allowed == text),
        _ => false,
    };
    ["", "no such value\u{e9}"].map(|text| (text.into(), is_forbidden(text))).to_vec()
}

fn types(def: &AttrDef) -> Vec<(AttrValue, bool)> {
    let Some(Allowed::Types(allowed)) = &def.allowed else { return Vec::new() };
    let all = [DType::STRING, DType::COMPLEX128, DType::INT8, DType::BOOL, DType::RESOURCE];
    let other = all.into_iter().find(|dtype| !allowed.contains(dtype));
    other.map(|dtype| (dtype.into(), true)).into_iter().collect()
}

fn shapes() -> Vec<(AttrValue, bool)> {
    let dims: [&[i64]; 3] = [&[-1], &[0], &[1 << 31, 1 << 31]];
    let known = dims.iter().filter_map(|dims| PartialShape::new(dims).ok());
    known.chain([PartialShape::UNKNOWN]).map(|shape| (shape.into(), false)).collect()
}

fn lists(def: &AttrDef, present: Option<&AttrValue>) -> Vec<(AttrValue, bool)> {
    let Some(AttrValue::List(AttrList::Int(items))) = present else { return Vec::new() };
    let of = |value: i64| vec![value; items.len().max(1)];
    let longer: Vec<i64> = items.iter().copied().chain([1]).collect();
    let shorter = items.get(1..).unwrap_or_default().to_vec();
    let all = [of(-1), of(0), of(CUT), of(i64::MAX), of(i64::MIN), longer, shorter, Vec::new()];
    let least = def.minimum.unwrap_or(0);
    all.into_iter()
        .filter(|list| list != items)
        .map(|list| {
            let is_forbidden = (list.len() as i64) < least;
            (list.into(), is_forbidden)
        })
        .collect()
}

/// Calls with one input of another shape, or with values that are not an index, axis or size.
pub(super) fn inputs(chosen: &Chosen) -> Vec<Odd> {
    let mut all = Vec::new();
    for (at, input) in chosen.inputs.iter().enumerate() {
        let dims = input.shape().dims();
        let others = other_dims(dims).into_iter().filter(|other| other != dims);
        for tensor in others.filter_map(|other| reshaped(input, &other)) {
            let what = format!("input {at} of shape {}", tensor.shape());
            all.push(with_input(chosen, at, tensor, what));
        }
        for (value, tensor) in extremes(input) {
            all.push(with_input(chosen, at, tensor, format!("input {at} full of {value}")));
        }
    }
    all
}

fn with_input(chosen: &Chosen, at: usize, tensor: Tensor, what: String) -> Odd {
    let mut inputs = chosen.inputs.clone();
    inputs[at] = tensor;
    let attrs = chosen.case.attrs.clone();
    Odd { what, attrs, inputs, is_forbidden: false, is_of_input: true }
}

fn other_dims(dims: &[i64]) -> Vec<Vec<i64>> {
    let mut all = vec![vec![], vec![0], vec![1], vec![2, 3, 5], vec![1; 9]];
    all.push(dims.iter().copied().chain([1]).collect());
    all.push(dims.iter().copied().chain([2]).collect());
    for at in 0..dims.len() {
        let mut more = dims.to_vec();
        more[at] += 1;
        all.push(more);
        let mut none = dims.to_vec();
        none[at] = 0;
        all.push(none);
    }
    if !dims.is_empty() {
        all.push(dims[1..].to_vec());
    }
    all.sort();
    all.dedup();
    all
}

/// Elements of a tensor, repeated as often as another shape needs.
fn reshaped(tensor: &Tensor, dims: &[i64]) -> Option<Tensor> {
    let count = Shape::new(dims).ok()?.elements();
    if let Ok(strings) = tensor.as_strings() {
        let texts: Vec<&[u8]> = match strings.is_empty() {
            true => vec![&b""[..]; count],
            false => strings.iter().copied().cycle().take(count).collect(),
        };
        return shared(&Tensor::from_strings(dims, &texts).ok()?);
    }
    let size = tensor.dtype().size()?;
    let bytes = tensor.as_bytes().ok()?;
    let bytes: Vec<u8> = match bytes.is_empty() {
        true => vec![0; count * size],
        false => bytes.iter().copied().cycle().take(count * size).collect(),
    };
    shared(&Tensor::from_bytes(tensor.dtype(), dims, &bytes).ok()?)
}

/// Integers that are beyond any index or size, as tensors of the same shape.
fn extremes(tensor: &Tensor) -> Vec<(i64, Tensor)> {
    let dims = tensor.shape().dims();
    let count = tensor.elements();
    let made = |value: i64| {
        let tensor = match tensor.dtype() {
            DType::INT32 => Tensor::from_slice(dims, &vec![value as i32; count]).ok()?,
            DType::INT64 => Tensor::from_slice(dims, &vec![value; count]).ok()?,
            _ => return None,
        };
        Some((value, shared(&tensor)?))
    };
    let extreme = match tensor.dtype() {
        // The square of 65537 is small too in 32 bits.
        DType::INT32 => [i64::from(i32::MIN), -1, 65_537, i64::from(i32::MAX)],
        _ => [i64::MIN, -1, CUT, i64::MAX],
    };
    if count == 0 { Vec::new() } else { extreme.into_iter().filter_map(made).collect() }
}

/// A copy in the host's shared memory, where misuse is noticed.
fn shared(tensor: &Tensor) -> Option<Tensor> {
    let memory: std::sync::Arc<dyn Memory> = HostMemory::shared().clone();
    copy_on_host(tensor, &memory).ok()
}
