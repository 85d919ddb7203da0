//! Numbers, shapes, tensors and attributes, ordinary ones and those at which arithmetic goes wrong.

use super::bytes::Bytes;
use crate::check::{Listed, listed};
use tenon_framework::{
    DType, PartialShape, Tensor,
    abi::AttrKind,
    attr::{AttrList, AttrValue, FuncValue},
    op::{Allowed, AttrDef},
};

/// Inputs have at most this many elements: what is looked for hides in their shapes, not in their length.
const MOST_ELEMENTS: i64 = 1 << 12;

const HOSTILE: [i64; 18] = [
    -1,
    i64::MAX,
    i64::MIN,
    i32::MAX as i64,
    i32::MIN as i64,
    i32::MAX as i64 + 1,
    u32::MAX as i64,
    1 << 62,
    i64::MAX - 1,
    i64::MIN + 1,
    1 << 31,
    1 << 40,
    1 << 33,
    -2,
    i16::MAX as i64,
    1 << 20,
    1 << 16,
    -(1 << 40),
];

const REALS: [f64; 16] = [
    0.0,
    1.0,
    -1.0,
    0.5,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    -0.0,
    1e-40,
    3.4e38,
    -1e300,
    2.5,
    1e10,
    0.999_999_9,
    -7.25,
    1e-8,
];

/// Sizes whose products overflow, or over which no loop may run although there is no element.
const HUGE: [i64; 6] = [1 << 40, 1 << 62, i64::MAX, i32::MAX as i64, 1 << 32, 1 << 31];

/// An integer: mostly a small one.
pub(super) fn integer(bytes: &mut Bytes<'_>) -> i64 {
    match bytes.below(4) {
        3 => bytes.of(&HOSTILE),
        2 => bytes.below(12) as i64 - 6,
        _ => bytes.below(5) as i64,
    }
}

pub(super) fn real(bytes: &mut Bytes<'_>) -> f64 {
    bytes.of(&REALS)
}

/// Dimensions of an input: near those of `others` half of the time.
pub(super) fn dims(bytes: &mut Bytes<'_>, others: &[Vec<i64>]) -> Vec<i64> {
    let mut dims = match others {
        [_, ..] if bytes.below(4) < 3 => others[bytes.below(others.len())].clone(),
        _ => {
            let rank = bytes.below(6);
            (0..rank).map(|_| bytes.of(&[2, 3, 1, 4, 5, 0])).collect()
        }
    };
    if bytes.one_in(3) {
        change(bytes, &mut dims);
    }
    if bytes.one_in(8) {
        hollow(bytes, &mut dims);
    }
    // Half are scalars and vectors, which indices, axes and sizes are.
    if bytes.one_in(4) {
        dims.truncate(bytes.below(2));
    }
    bounded(&mut dims);
    dims
}

/// Changes one dimension, or the rank by one.
fn change(bytes: &mut Bytes<'_>, dims: &mut Vec<i64>) {
    let at = bytes.below(dims.len() + 1);
    match (bytes.below(3), at < dims.len()) {
        (0, true) => dims[at] = bytes.below(6) as i64,
        (1, true) => drop(dims.remove(at)),
        _ => dims.insert(at, bytes.of(&[1, 2, 0, 3])),
    }
}

/// A shape without elements that is huge in another dimension.
fn hollow(bytes: &mut Bytes<'_>, dims: &mut Vec<i64>) {
    for _ in 0..=bytes.below(2) {
        let at = bytes.below(dims.len() + 1);
        dims.insert(at, bytes.of(&HUGE));
    }
    let at = bytes.below(dims.len() + 1);
    dims.insert(at, 0);
    let product = dims.iter().try_fold(1i64, |product, &size| product.checked_mul(size.max(1)));
    if product.is_none() {
        // No tensor has such a shape; one size fewer often does.
        let huge = dims.iter().position(|&size| size > 5);
        dims.remove(huge.unwrap_or(0));
    }
}

fn bounded(dims: &mut [i64]) {
    while dims.iter().try_fold(1i64, |n, &d| n.checked_mul(d)).is_none_or(|n| n > MOST_ELEMENTS) {
        let Some(largest) = (0..dims.len()).max_by_key(|&at| dims[at]) else { return };
        dims[largest] = 1;
    }
}

/// A tensor of this type; `None` if none of such a shape or type can be made.
pub(super) fn tensor(bytes: &mut Bytes<'_>, dtype: DType, dims: &[i64]) -> Option<Tensor> {
    let elements = dims.iter().try_fold(1i64, |n, &d| n.checked_mul(d))?;
    if elements > MOST_ELEMENTS {
        return None;
    }
    if dtype == DType::STRING {
        let texts: Vec<Vec<u8>> = (0..elements).map(|_| text(bytes)).collect();
        return Tensor::from_strings(dims, &texts).ok();
    }
    let parts = if is_complex(dtype) { 2 } else { 1 };
    // A single number fills the tensor; a short list is repeated.
    let given: Vec<Listed> = match bytes.below(4) {
        0 => vec![number(bytes, dtype)],
        1 => (0..4).map(Listed::Integer).collect(),
        _ => (0..elements.min(8)).map(|_| number(bytes, dtype)).collect(),
    };
    let count = (elements * parts) as usize;
    let items: Vec<Listed> = given.iter().copied().cycle().take(count).collect();
    listed(dtype, dims, &items).ok()
}

fn is_complex(dtype: DType) -> bool {
    matches!(dtype, DType::COMPLEX64 | DType::COMPLEX128)
}

fn number(bytes: &mut Bytes<'_>, dtype: DType) -> Listed {
    let floats = [DType::HALF, DType::BFLOAT16, DType::FLOAT, DType::DOUBLE];
    if floats.contains(&dtype) || is_complex(dtype) {
        if bytes.below(2) == 0 {
            return Listed::Real(real(bytes));
        }
        return Listed::Integer(bytes.below(8) as i64 - 2);
    }
    Listed::Integer(integer(bytes))
}

/// The tensor with one integer replaced; `None` for other types and for a tensor without elements.
pub(super) fn spoilt(bytes: &mut Bytes<'_>, tensor: &Tensor) -> Option<Tensor> {
    let mut values: Vec<i64> = match tensor.dtype() {
        DType::INT32 => tensor.as_slice::<i32>().ok()?.iter().map(|&x| x.into()).collect(),
        DType::INT64 => tensor.as_slice::<i64>().ok()?.to_vec(),
        _ => return None,
    };
    if values.is_empty() {
        return None;
    }
    let at = bytes.below(values.len().min(8));
    values[at] = integer(bytes);
    let items: Vec<Listed> = values.into_iter().map(Listed::Integer).collect();
    listed(tensor.dtype(), tensor.shape().dims(), &items).ok()
}

/// The tensor with one of its texts damaged, as files are: bytes changed, cut out, put in, or the end missing.
pub(super) fn spoilt_text(bytes: &mut Bytes<'_>, tensor: &Tensor) -> Option<Tensor> {
    let mut texts: Vec<Vec<u8>> =
        tensor.as_strings().ok()?.into_iter().map(<[u8]>::to_vec).collect();
    let count = texts.len();
    let text = texts.get_mut(bytes.below(count.clamp(1, 8)))?;
    for _ in 0..=bytes.below(4) {
        let at = bytes.below(text.len().clamp(1, 1 << 16)).min(text.len());
        match bytes.below(6) {
            0 => text.truncate(at),
            1 => drop(text.drain(at..text.len().min(at + 1 + bytes.below(8)))),
            2 => text.insert(at, bytes.below(256) as u8),
            3 if at < text.len() => text[at] = bytes.of(&[0, 0xff, 0x7f, 0x80]),
            4 if at < text.len() => text[at] ^= 1 << bytes.below(8),
            _ if at < text.len() => text[at] = bytes.below(256) as u8,
            _ => {}
        }
    }
    Tensor::from_strings(tensor.shape().dims(), &texts).ok()
}

const TEXTS: [&[u8]; 12] = [
    b"",
    b"a",
    b"1",
    b"-1.5e400",
    b"ab,bc->ac",
    b"...a,...a->a",
    b"ii->i",
    b"SAME",
    b"\xff\xfe",
    "Gr\u{fc}\u{df}e".as_bytes(),
    b"%d %s {}",
    b"([",
];

fn text(bytes: &mut Bytes<'_>) -> Vec<u8> {
    bytes.of(&TEXTS).to_vec()
}

/// Letters of equations.
const LETTERS: &[u8] = b"abci,->.A";

fn equation(bytes: &mut Bytes<'_>) -> Vec<u8> {
    let count = bytes.below(12);
    (0..count).map(|_| bytes.of(LETTERS)).collect()
}

/// Types that list attributes get where the definition names none.
const TYPES: [DType; 6] =
    [DType::FLOAT, DType::INT32, DType::INT64, DType::STRING, DType::BOOL, DType::COMPLEX64];

/// A value of an attribute: within its kind, and mostly within what the definition allows.
pub(super) fn attr(bytes: &mut Bytes<'_>, def: &AttrDef) -> AttrValue {
    let default = || def.default.clone();
    if bytes.below(3) == 0
        && let Some(default) = default()
    {
        return default;
    }
    if def.ty.is_list {
        return AttrValue::List(list(bytes, def));
    }
    match def.ty.kind {
        AttrKind::INT => {
            let value = integer(bytes);
            let least = def.minimum.filter(|_| !bytes.one_in(8)).unwrap_or(i64::MIN);
            AttrValue::Int(value.max(least))
        }
        AttrKind::FLOAT => AttrValue::Float(real(bytes) as f32),
        AttrKind::BOOL => AttrValue::Bool(bytes.below(2) == 1),
        AttrKind::STRING => AttrValue::String(string(bytes, def)),
        AttrKind::TYPE => AttrValue::Type(dtype(bytes, def)),
        AttrKind::SHAPE => AttrValue::Shape(shape(bytes)),
        AttrKind::TENSOR => {
            let dims = dims(bytes, &[]);
            let made = tensor(bytes, DType::FLOAT, &dims);
            made.map_or_else(|| AttrValue::Int(0), AttrValue::Tensor)
        }
        _ => AttrValue::Func(FuncValue::default()),
    }
}

fn list(bytes: &mut Bytes<'_>, def: &AttrDef) -> AttrList {
    let usual = match &def.default {
        Some(AttrValue::List(list)) => list.len(),
        _ => 0,
    };
    let count =
        if bytes.below(2) == 0 && usual > 0 { usual } else { bytes.of(&[4, 2, 1, 3, 0, 5]) };
    match def.ty.kind {
        AttrKind::INT => AttrList::Int((0..count).map(|_| integer(bytes)).collect()),
        AttrKind::FLOAT => AttrList::Float((0..count).map(|_| real(bytes) as f32).collect()),
        AttrKind::BOOL => AttrList::Bool((0..count).map(|_| bytes.below(2) == 1).collect()),
        AttrKind::STRING => AttrList::String((0..count).map(|_| string(bytes, def)).collect()),
        AttrKind::TYPE => AttrList::Type((0..count).map(|_| dtype(bytes, def)).collect()),
        AttrKind::SHAPE => AttrList::Shape((0..count).map(|_| shape(bytes)).collect()),
        AttrKind::TENSOR => AttrList::Tensor(Vec::new()),
        _ => AttrList::Func(Vec::new()),
    }
}

/// The value with an item of its list replaced; `None` for others.
pub(super) fn spoilt_attr(bytes: &mut Bytes<'_>, value: &AttrValue) -> Option<AttrValue> {
    let mut list = match value {
        AttrValue::List(list) if !list.is_empty() => list.clone(),
        _ => return None,
    };
    let at = bytes.below(list.len());
    match &mut list {
        AttrList::Int(items) => items[at] = integer(bytes),
        AttrList::Float(items) => items[at] = real(bytes) as f32,
        AttrList::Bool(items) => items[at] = !items[at],
        _ => return None,
    }
    Some(AttrValue::List(list))
}

fn string(bytes: &mut Bytes<'_>, def: &AttrDef) -> Vec<u8> {
    match &def.allowed {
        Some(Allowed::Strings(texts)) if !texts.is_empty() => {
            texts[bytes.below(texts.len())].clone().into_bytes()
        }
        _ if bytes.below(2) == 0 => text(bytes),
        _ => equation(bytes),
    }
}

fn dtype(bytes: &mut Bytes<'_>, def: &AttrDef) -> DType {
    match &def.allowed {
        Some(Allowed::Types(types)) if !types.is_empty() => types[bytes.below(types.len())],
        _ => bytes.of(&TYPES),
    }
}

fn shape(bytes: &mut Bytes<'_>) -> PartialShape {
    let rank = bytes.below(6);
    let dims: Vec<i64> = (0..rank)
        .map(|_| if bytes.one_in(8) { bytes.of(&HUGE) } else { bytes.of(&[2, 3, 1, -1, 0, 4]) })
        .collect();
    PartialShape::new(&dims).unwrap_or(PartialShape::UNKNOWN)
}
