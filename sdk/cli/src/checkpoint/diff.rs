//! The differences between two checkpoints.

use super::{
    CheckpointError,
    open::{Checkpoint, Info, Value},
    shape,
};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use tenon_bundle::stored_size;
use tenon_runtime::framework::{
    DType,
    element::{bf16, f16},
};

/// The difference of two numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gap {
    /// Of integers of 64 bits, whose difference a float may not show.
    Whole(u64),
    /// Of other numbers; NaN if one of them is.
    Real(f64),
}

impl Gap {
    fn of(dtype: DType, a: &[u8], b: &[u8]) -> Option<Gap> {
        Some(match dtype {
            DType::INT64 => {
                let [a, b] = [a, b].map(|bytes| bytes.try_into().map(i64::from_le_bytes));
                Gap::Whole(a.ok()?.abs_diff(b.ok()?))
            }
            DType::UINT64 => {
                let [a, b] = [a, b].map(|bytes| bytes.try_into().map(u64::from_le_bytes));
                Gap::Whole(a.ok()?.abs_diff(b.ok()?))
            }
            dtype => Gap::Real((number(dtype, a)? - number(dtype, b)?).abs()),
        })
    }

    /// The larger one of two differences of one type; NaN is larger than all.
    fn or_larger(self, other: Gap) -> Gap {
        match (self, other) {
            (Gap::Whole(a), Gap::Whole(b)) => Gap::Whole(a.max(b)),
            (Gap::Real(a), Gap::Real(b)) if b.is_nan() || b > a => other,
            _ => self,
        }
    }

    fn text(self) -> String {
        match self {
            Gap::Whole(gap) => gap.to_string(),
            Gap::Real(gap) => format!("{gap:e}"),
        }
    }

    /// A number; a text where JSON does not have it: `inf`, `NaN`.
    fn json(self) -> Json {
        match self {
            Gap::Whole(gap) => json!(gap),
            Gap::Real(gap) if gap.is_finite() => json!(gap),
            Gap::Real(gap) => json!(gap.to_string()),
        }
    }
}

/// How a tensor differs.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    OnlyFirst,
    OnlySecond,
    Type(&'static str, &'static str),
    Shape(Vec<i64>, Vec<i64>),
    Values {
        /// Elements with other bits.
        count: usize,
        /// Of this many.
        of: usize,
        /// The largest difference of numbers.
        largest: Option<Gap>,
    },
}

/// A tensor that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub name: String,
    pub what: What,
}

/// What a comparison found.
pub struct Found {
    pub same: usize,
    pub differences: Vec<Difference>,
}

impl Difference {
    /// As a row of a table.
    pub fn row(&self) -> [String; 4] {
        let (what, a, b) = match &self.what {
            What::OnlyFirst => ("only in the first".to_owned(), String::new(), String::new()),
            What::OnlySecond => ("only in the second".to_owned(), String::new(), String::new()),
            What::Type(a, b) => ("dtype".to_owned(), (*a).to_owned(), (*b).to_owned()),
            What::Shape(a, b) => ("shape".to_owned(), shape(a), shape(b)),
            What::Values { count, of, largest } => {
                let by =
                    largest.map_or_else(String::new, |by| format!(", by {} at most", by.text()));
                (format!("{count} of {of} elements{by}"), String::new(), String::new())
            }
        };
        [self.name.clone(), what, a, b]
    }

    /// As JSON.
    pub fn json(&self) -> Json {
        let name = &self.name;
        match &self.what {
            What::OnlyFirst => json!({ "name": name, "what": "only in the first" }),
            What::OnlySecond => json!({ "name": name, "what": "only in the second" }),
            What::Type(a, b) => json!({ "name": name, "what": "dtype", "first": a, "second": b }),
            What::Shape(a, b) => json!({ "name": name, "what": "shape", "first": a, "second": b }),
            What::Values { count, of, largest } => json!({
                "name": name, "what": "values", "elements": count, "of": of,
                "largest": largest.map(Gap::json),
            }),
        }
    }
}

/// Compares all tensors, in the order of their names.
///
/// # Errors
/// A tensor cannot be read.
pub fn diff(a: &mut Checkpoint<'_>, b: &mut Checkpoint<'_>) -> Result<Found, CheckpointError> {
    let mut places: BTreeMap<String, [Option<usize>; 2]> = BTreeMap::new();
    for (side, checkpoint) in [&*a, &*b].into_iter().enumerate() {
        for (at, info) in checkpoint.infos().iter().enumerate() {
            places.entry(info.name.clone()).or_default()[side] = Some(at);
        }
    }
    let mut found = Found { same: 0, differences: Vec::new() };
    for (name, place) in places {
        let what = match place {
            [Some(at), Some(other)] => {
                let (first, second) = (a.infos()[at].clone(), b.infos()[other].clone());
                match described(&first, &second) {
                    Some(what) => Some(what),
                    None => values(first.dtype, &a.read(at)?, &b.read(other)?),
                }
            }
            [Some(_), None] => Some(What::OnlyFirst),
            _ => Some(What::OnlySecond),
        };
        match what {
            None => found.same += 1,
            Some(what) => found.differences.push(Difference { name, what }),
        }
    }
    Ok(found)
}

fn described(a: &Info, b: &Info) -> Option<What> {
    if a.dtype != b.dtype {
        return Some(What::Type(a.dtype.name(), b.dtype.name()));
    }
    (a.dims != b.dims).then(|| What::Shape(a.dims.clone(), b.dims.clone()))
}

fn values(dtype: DType, a: &Value, b: &Value) -> Option<What> {
    match (a, b) {
        (Value::Bytes(a), Value::Bytes(b)) => {
            let each = stored_size(dtype).unwrap_or(1);
            let pairs = a.chunks_exact(each).zip(b.chunks_exact(each));
            let (mut count, mut largest) = (0, None::<Gap>);
            for (a, b) in pairs.filter(|(a, b)| a != b) {
                count += 1;
                if let Some(gap) = Gap::of(dtype, a, b) {
                    largest = Some(largest.map_or(gap, |largest| largest.or_larger(gap)));
                }
            }
            (count > 0).then_some(What::Values { count, of: a.len() / each, largest })
        }
        (Value::Strings(a), Value::Strings(b)) => {
            let count = a.iter().zip(b.iter()).filter(|(a, b)| a != b).count();
            (count > 0).then_some(What::Values { count, of: a.len(), largest: None })
        }
        _ => Some(What::Values { count: 1, of: 1, largest: None }),
    }
}

/// An element as a number; `None` for complex numbers, bools and types of 8-bit floats.
pub fn number(dtype: DType, bytes: &[u8]) -> Option<f64> {
    Some(match (dtype, bytes) {
        (DType::FLOAT, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
        (DType::HALF, &[a, b]) => f16::from_le_bytes([a, b]).to_f64(),
        (DType::BFLOAT16, &[a, b]) => bf16::from_le_bytes([a, b]).to_f64(),
        (DType::INT8 | DType::QINT8, &[a]) => f64::from(a as i8),
        (DType::UINT8 | DType::QUINT8, &[a]) => f64::from(a),
        (DType::INT16 | DType::QINT16, &[a, b]) => f64::from(i16::from_le_bytes([a, b])),
        (DType::UINT16 | DType::QUINT16, &[a, b]) => f64::from(u16::from_le_bytes([a, b])),
        (DType::INT32 | DType::QINT32, &[a, b, c, d]) => {
            f64::from(i32::from_le_bytes([a, b, c, d]))
        }
        (DType::UINT32, &[a, b, c, d]) => f64::from(u32::from_le_bytes([a, b, c, d])),
        (DType::DOUBLE, bytes) => f64::from_le_bytes(bytes.try_into().ok()?),
        (DType::INT64, bytes) => i64::from_le_bytes(bytes.try_into().ok()?) as f64,
        (DType::UINT64, bytes) => u64::from_le_bytes(bytes.try_into().ok()?) as f64,
        _ => return None,
    })
}
