//! Changes of attribute values.

use crate::fuzz::bytes::Bytes;
use tenon_runtime::proto::{
    AttrValue, AttrValueKind, Dim, ListValue, TensorProto, TensorShapeProto,
};

const INTS: [i64; 12] =
    [0, 1, -1, 2, 3, 7, 255, 1 << 16, (1 << 31) - 1, 1 << 31, i64::MAX, i64::MIN];
const DIMS: [i64; 12] = [0, 1, 2, 3, 4, 5, 7, 16, -1, -2, 1 << 20, i64::MAX];
const FLOATS: [f32; 9] =
    [0.0, -0.0, 1.0, -1.0, 1e-45, 3.4e38, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
const TEXTS: [&str; 12] = [
    "",
    "VALID",
    "SAME",
    "EXPLICIT",
    "NCHW",
    "NHWC",
    "Relu",
    "BiasAdd",
    "frame",
    "ij,jk->ik",
    "\0",
    "é",
];

/// Makes a value another of its kind, most times.
pub(super) fn changed(value: &mut AttrValue, bytes: &mut Bytes<'_>) {
    if bytes.one_in(12) {
        value.value = bytes.one_in(2).then(|| AttrValueKind::I(bytes.of(&INTS)));
        return;
    }
    match &mut value.value {
        None => value.value = Some(AttrValueKind::I(bytes.of(&INTS))),
        Some(AttrValueKind::I(number)) => *number = bytes.of(&INTS),
        Some(AttrValueKind::F(number)) => *number = bytes.of(&FLOATS),
        Some(AttrValueKind::B(flag)) => *flag = !*flag,
        Some(AttrValueKind::S(text)) => *text = bytes.of(&TEXTS).as_bytes().to_vec(),
        Some(AttrValueKind::Type(number)) => *number = dtype(bytes),
        Some(AttrValueKind::Shape(changing)) => shape(changing, bytes),
        Some(AttrValueKind::Tensor(changing)) => tensor(changing, bytes),
        Some(AttrValueKind::List(changing)) => list(changing, bytes),
        Some(
            AttrValueKind::Placeholder(name)
            | AttrValueKind::Func(tenon_runtime::proto::NameAttrList { name, .. }),
        ) => {
            bytes.of(&TEXTS).clone_into(name);
        }
    }
}

/// The number of an element type, of a reference, or of none.
fn dtype(bytes: &mut Bytes<'_>) -> i32 {
    match bytes.below(8) {
        0 => 101,
        1 => bytes.of(&[0, 99, -1, 1000]),
        2 => bytes.of(&[20, 21]),
        _ => 1 + bytes.below(23) as i32,
    }
}

fn shape(shape: &mut TensorShapeProto, bytes: &mut Bytes<'_>) {
    match bytes.below(5) {
        0 => shape.unknown_rank = !shape.unknown_rank,
        1 => drop(shape.dim.pop()),
        2 => shape.dim.push(Dim { size: bytes.of(&DIMS), name: String::new() }),
        3 => shape.dim.reverse(),
        _ => {
            let at = bytes.below(shape.dim.len().max(1));
            let size = bytes.of(&DIMS);
            shape.dim.iter_mut().skip(at).take(1).for_each(|dim| dim.size = size);
        }
    }
}

fn tensor(tensor: &mut TensorProto, bytes: &mut Bytes<'_>) {
    match bytes.below(6) {
        0 => tensor.dtype = dtype(bytes),
        1 | 2 => shape(tensor.tensor_shape.get_or_insert_default(), bytes),
        3 => {
            // Other dimensions of as many elements.
            let whole = tensor.tensor_shape.get_or_insert_default();
            let count: i64 = whole.dim.iter().map(|dim| dim.size.clamp(0, 1 << 20)).product();
            let dims = bytes.of(&[[1, count], [count, 1]]);
            whole.dim = dims.iter().map(|&size| Dim { size, name: String::new() }).collect();
        }
        4 => change_content(tensor, |content| content.iter_mut().for_each(|byte| *byte ^= 0x80)),
        _ => {
            let (number, float) = (bytes.of(&INTS), bytes.of(&FLOATS));
            tensor.int_val.iter_mut().for_each(|value| *value = number as i32);
            tensor.int64_val.iter_mut().for_each(|value| *value = number);
            tensor.float_val.iter_mut().for_each(|value| *value = float);
            let content = (number as i32).to_le_bytes();
            change_content(tensor, |bytes| {
                bytes.chunks_exact_mut(4).for_each(|word| word.copy_from_slice(&content));
            });
        }
    }
}

/// Changes the packed values of a tensor.
fn change_content(tensor: &mut TensorProto, change: impl FnOnce(&mut [u8])) {
    let mut content = tensor.tensor_content.to_vec();
    change(&mut content);
    tensor.tensor_content = content.into();
}

fn list(list: &mut ListValue, bytes: &mut Bytes<'_>) {
    match bytes.below(4) {
        0 => *list = ListValue::default(),
        1 => {
            list.i.pop();
            list.r#type.pop();
            list.s.pop();
            list.shape.pop();
        }
        2 => {
            list.i.extend(list.i.last().copied());
            list.r#type.extend(list.r#type.last().copied());
            list.s.extend(list.s.last().cloned());
            list.shape.extend(list.shape.last().cloned());
        }
        _ => {
            let (at, number) = (bytes.below(8), bytes.of(&INTS));
            let dtype = dtype(bytes);
            list.i.iter_mut().skip(at % 4).take(1).for_each(|value| *value = number);
            list.r#type.iter_mut().skip(at % 4).take(1).for_each(|value| *value = dtype);
            list.shape.iter_mut().skip(at % 4).take(1).for_each(|value| shape(value, bytes));
        }
    }
}
