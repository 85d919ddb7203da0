//! Inputs from shapes and values that the user gives.

use super::{Wish, attrs};
use crate::{
    error::BenchError,
    wanted::{Shapes, dims_with},
};
use std::collections::BTreeMap;
use tenon_framework::{
    DType, Tensor,
    attr::{AttrMap, AttrValue},
    attr_view::AttrTable,
    op::{ArgDef, OpDef, Signature},
};
use tenon_testkit::check::{Argument, CheckCase, Fill};

/// A case of an op with these types, where symbols have these values.
///
/// # Errors
/// An input without a shape, shapes for inputs that are not there, attributes that are missing.
pub fn case(
    op: &OpDef,
    types: &AttrMap,
    wish: &Wish,
    shapes: &Shapes,
    symbols: &BTreeMap<&str, i64>,
) -> Result<CheckCase, BenchError> {
    check_names(op, wish, shapes)?;
    let attrs = attributes(op, types, wish, shapes)?;
    let signature = Signature::resolve(op, &attrs)?;
    let given = Given { op, wish, shapes, symbols };
    let mut inputs = Vec::with_capacity(signature.inputs.len());
    for (arg, range) in op.inputs.iter().zip(&signature.input_args) {
        for place in 0..range.len as usize {
            let at = range.start as usize + place;
            inputs.push(given.input(arg, place, range.len as usize, signature.inputs[at], at)?);
        }
    }
    let name = inputs.iter().map(|input| crate::record::dims_text(&input.dims));
    let name = name.collect::<Vec<_>>().join("+");
    Ok(CheckCase { name, tags: Vec::new(), attrs, inputs })
}

/// Whether the op has the inputs that the user names.
///
/// # Errors
/// It has not.
pub fn check_names(op: &OpDef, wish: &Wish, shapes: &Shapes) -> Result<(), BenchError> {
    let shaped = shapes.named.iter().map(|(name, _)| name);
    let valued = wish.values.iter().map(|(name, ..)| name);
    let unknown =
        shaped.chain(valued).chain(&wish.constants).find(|name| op.input_index(name).is_none());
    let Some(name) = unknown else { return Ok(()) };
    let known: Vec<&str> = op.inputs.iter().map(|arg| arg.name.as_str()).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(BenchError::wish(&op.name, format!("has no input '{name}': its inputs are {known}")))
}

/// Every attribute: types, those that the user gives, numbers of inputs as there are shapes, defaults.
fn attributes(
    op: &OpDef,
    types: &AttrMap,
    wish: &Wish,
    shapes: &Shapes,
) -> Result<AttrMap, BenchError> {
    let mut all = types.clone();
    for (name, text) in &wish.attrs {
        all.insert(name.clone(), attrs::parse(op, name, text)?);
    }
    for arg in &op.inputs {
        let Some(number) = &arg.number_attr else { continue };
        let named = shapes.named.iter().find(|(name, _)| *name == arg.name);
        let count = match named {
            Some((_, dims)) => dims.len(),
            None => 2,
        };
        all.entry(number.clone()).or_insert(AttrValue::Int(count as i64));
    }
    Ok(AttrTable::with_defaults(op, all)?.attrs().clone())
}

/// What the user gives for the inputs.
struct Given<'a> {
    op: &'a OpDef,
    wish: &'a Wish,
    shapes: &'a Shapes,
    symbols: &'a BTreeMap<&'a str, i64>,
}

impl Given<'_> {
    fn error(&self, problem: String) -> BenchError {
        BenchError::wish(&self.op.name, problem)
    }

    /// The input at `place` of `count` of an argument, `at` among all.
    fn input(
        &self,
        arg: &ArgDef,
        place: usize,
        count: usize,
        dtype: DType,
        at: usize,
    ) -> Result<Argument, BenchError> {
        let name = &arg.name;
        if let Some(argument) = by_value(self.op, self.wish, name, dtype)? {
            return Ok(argument);
        }
        let dims = self.dims(name, place, count)?;
        let dims = dims_with(dims, self.symbols)
            .map_err(|problem| self.error(format!("shape of '{name}': {problem}")))?;
        let fill = fill(&self.op.name, dtype, self.wish.seed.wrapping_add(at as u64));
        Ok(Argument { dtype, dims, fill, constant: self.wish.constants.contains(name) })
    }

    fn dims(
        &self,
        name: &str,
        place: usize,
        count: usize,
    ) -> Result<&[crate::wanted::Size], BenchError> {
        let named = self.shapes.named.iter().find(|(known, _)| known == name).map(|(_, dims)| dims);
        match (named, &self.shapes.all) {
            (Some(dims), _) if dims.len() == 1 => Ok(&dims[0]),
            (Some(dims), _) if dims.len() == count => Ok(&dims[place]),
            (Some(dims), _) => {
                let found = dims.len();
                Err(self.error(format!("'{name}' is {count} inputs, found {found} shapes: give 1 or {count}")))
            }
            (None, Some(all)) => Ok(all),
            (None, None) => Err(self.error(format!(
                "input '{name}' has no shape: add {name}=SHAPE to --shape, or its elements by --value {name}=[...]"
            ))),
        }
    }
}

/// The input whose elements the user gives.
///
/// # Errors
/// Elements that its type cannot hold.
pub fn by_value(
    op: &OpDef,
    wish: &Wish,
    name: &str,
    dtype: DType,
) -> Result<Option<Argument>, BenchError> {
    let Some((_, values, scalar)) = wish.values.iter().find(|(known, ..)| known == name) else {
        return Ok(None);
    };
    let dims = if *scalar { Vec::new() } else { vec![values.len() as i64] };
    let tensor = integers(dtype, &dims, values).ok_or_else(|| {
        BenchError::wish(&op.name, format!("input '{name}' of {dtype} cannot hold {values:?}"))
    })?;
    Ok(Some(Argument { dtype, dims, fill: Fill::Explicit(tensor), constant: true }))
}

/// Ops whose results are numbers for positive operands only.
const POSITIVE: [&str; 5] = ["Log", "Log1p", "Sqrt", "Rsqrt", "Pow"];

/// Elements about one: no denormals, no overflow, nothing that a kernel could skip.
pub fn fill(op: &str, dtype: DType, seed: u64) -> Fill {
    let unsigned =
        [DType::UINT8, DType::UINT16, DType::UINT32, DType::UINT64, DType::QUINT8, DType::QUINT16];
    let floats = [
        DType::HALF,
        DType::BFLOAT16,
        DType::FLOAT,
        DType::DOUBLE,
        DType::COMPLEX64,
        DType::COMPLEX128,
    ];
    let divides = op.contains("Div") || op.contains("Mod");
    let (low, high) = match dtype {
        _ if floats.contains(&dtype) && POSITIVE.contains(&op) => (0.25, 2.0),
        _ if floats.contains(&dtype) => (-2.0, 2.0),
        _ if divides || unsigned.contains(&dtype) => (1.0, 16.0),
        DType::BOOL => (0.0, 2.0),
        _ => (-8.0, 8.0),
    };
    Fill::Uniform { low, high, seed }
}

/// A tensor of these integers; `None` where the type cannot hold them.
fn integers(dtype: DType, dims: &[i64], values: &[i64]) -> Option<Tensor> {
    macro_rules! of {
        ($ty:ty) => {{
            let items: Option<Vec<$ty>> =
                values.iter().map(|&value| <$ty>::try_from(value).ok()).collect();
            Tensor::from_slice(dims, &items?).ok()
        }};
    }
    match dtype {
        DType::INT8 => of!(i8),
        DType::INT16 => of!(i16),
        DType::INT32 => of!(i32),
        DType::INT64 => of!(i64),
        DType::UINT8 => of!(u8),
        DType::UINT16 => of!(u16),
        DType::UINT32 => of!(u32),
        DType::UINT64 => of!(u64),
        DType::FLOAT => {
            Tensor::from_slice(dims, &values.iter().map(|&v| v as f32).collect::<Vec<_>>()).ok()
        }
        DType::DOUBLE => {
            Tensor::from_slice(dims, &values.iter().map(|&v| v as f64).collect::<Vec<_>>()).ok()
        }
        _ => None,
    }
}
