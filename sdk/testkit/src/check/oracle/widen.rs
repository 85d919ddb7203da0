//! Floating types made wider, results rounded back once, and inputs without denormals.

use super::is_float;
use crate::float::Format;
use half::{bf16, f16};
use tenon_framework::{
    DType, Tensor,
    attr::{AttrMap, AttrValue},
    op::{Allowed, OpDef, Signature},
};

/// The types with every narrower float replaced by this one; `None` where that changes nothing, or where the op
/// does not allow it.
pub(super) fn types(op: &OpDef, types: &AttrMap, to: DType) -> Option<AttrMap> {
    let bits = |dtype: DType| Format::of(dtype).map(|_| dtype.bits());
    let mut changed = false;
    let mut wider = AttrMap::new();
    for (name, value) in types {
        let own = value.as_type()?;
        let narrow = bits(own).zip(bits(to)).is_some_and(|(own, to)| own < to);
        let allowed = match op.attr(name).and_then(|attr| attr.allowed.as_ref()) {
            Some(Allowed::Types(types)) => types.contains(&to),
            _ => true,
        };
        // A type that cannot be widened stays, as `U` of a batch normalisation does.
        let dtype = if narrow && allowed { to } else { own };
        changed |= dtype != own;
        wider.insert(name.clone(), AttrValue::Type(dtype));
    }
    changed.then_some(wider)
}

/// Element types of the inputs under these attributes.
pub(super) fn input_types(op: &OpDef, attrs: &AttrMap) -> Option<Vec<DType>> {
    Signature::resolve(op, attrs).ok().map(|signature| signature.inputs)
}

/// Element types of the outputs under these attributes.
pub(super) fn output_types(op: &OpDef, attrs: &AttrMap) -> Option<Vec<DType>> {
    Signature::resolve(op, attrs).ok().map(|signature| signature.outputs)
}

/// The numbers of a tensor of floats, each part of a complex one by itself.
pub(super) fn numbers(tensor: &Tensor) -> Option<Vec<f64>> {
    let format = Format::of_parts(tensor.dtype())?;
    let bytes = tensor.as_bytes().ok()?;
    Some((0..bytes.len() / format.size()).map(|at| format.read(bytes, at).value()).collect())
}

/// A tensor of floats from numbers, rounded once.
fn rounded(dtype: DType, dims: &[i64], numbers: &[f64]) -> Option<Tensor> {
    match dtype {
        DType::HALF => {
            let values: Vec<f16> = numbers.iter().map(|&x| f16::from_f64(x)).collect();
            Tensor::from_slice(dims, &values).ok()
        }
        DType::BFLOAT16 => {
            let values: Vec<bf16> = numbers.iter().map(|&x| bf16::from_f64(x)).collect();
            Tensor::from_slice(dims, &values).ok()
        }
        DType::FLOAT => {
            let values: Vec<f32> = numbers.iter().map(|&x| x as f32).collect();
            Tensor::from_slice(dims, &values).ok()
        }
        DType::DOUBLE => Tensor::from_slice(dims, numbers).ok(),
        DType::COMPLEX64 => {
            let bytes: Vec<u8> = numbers.iter().flat_map(|&x| (x as f32).to_ne_bytes()).collect();
            Tensor::from_bytes(dtype, dims, &bytes).ok()
        }
        DType::COMPLEX128 => {
            let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_ne_bytes()).collect();
            Tensor::from_bytes(dtype, dims, &bytes).ok()
        }
        _ => None,
    }
}

/// The tensor as another float type; itself, where it has the type already.
pub(super) fn convert(tensor: &Tensor, dtype: DType) -> Option<Tensor> {
    if tensor.dtype() == dtype {
        return Some(tensor.clone());
    }
    rounded(dtype, tensor.shape().dims(), &numbers(tensor)?)
}

/// A tensor with each number replaced.
pub(super) fn map(tensor: &Tensor, f: impl Fn(f64) -> f64) -> Option<Tensor> {
    let numbers: Vec<f64> = numbers(tensor)?.into_iter().map(f).collect();
    rounded(tensor.dtype(), tensor.shape().dims(), &numbers)
}

/// Whether a tensor holds denormal numbers.
pub(super) fn has_denormals(tensor: &Tensor) -> bool {
    let Some(format) = Format::of_parts(tensor.dtype()) else { return false };
    let Ok(bytes) = tensor.as_bytes() else { return false };
    (0..bytes.len() / format.size()).any(|at| format.read(bytes, at).is_denormal())
}

/// The inputs with zeros in the place of denormals; `None` without denormals.
pub(super) fn without_denormals(inputs: &[Tensor]) -> Option<Vec<Tensor>> {
    if !inputs.iter().any(has_denormals) {
        return None;
    }
    let flushed = |tensor: &Tensor| {
        if !is_float(tensor.dtype()) || !has_denormals(tensor) {
            return Some(tensor.clone());
        }
        let tiny = Format::of_parts(tensor.dtype())?.tiny();
        map(tensor, |x| if x.abs() < tiny { 0.0f64.copysign(x) } else { x })
    };
    inputs.iter().map(flushed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widening_follows_what_the_op_allows() {
        let op = OpDef::from_spec(
            "Norm",
            &["x: T", "scale: U"],
            &["y: T"],
            &["T: {half, float, double}", "U: {float}", "Tidx: {int32}"],
        )
        .unwrap();
        let given = |t: DType| -> AttrMap {
            [("T", t), ("U", DType::FLOAT), ("Tidx", DType::INT32)]
                .into_iter()
                .map(|(name, dtype)| (name.to_owned(), AttrValue::Type(dtype)))
                .collect()
        };
        let wide = types(&op, &given(DType::HALF), DType::DOUBLE).unwrap();
        let of = |name: &str| wide[name].as_type().unwrap();
        assert_eq!((of("T"), of("U"), of("Tidx")), (DType::DOUBLE, DType::FLOAT, DType::INT32));
        assert!(types(&op, &given(DType::DOUBLE), DType::FLOAT).is_none(), "never narrower");
    }

    #[test]
    fn what_is_widened_is_rounded_back_to_the_same() {
        let values = [f16::from_f32(0.1), f16::NAN, f16::NEG_INFINITY, f16::from_bits(1)];
        let narrow = Tensor::from_slice(&[4], &values).unwrap();
        let wide = convert(&narrow, DType::DOUBLE).unwrap();
        assert_eq!(wide.dtype(), DType::DOUBLE);
        let back = convert(&wide, DType::HALF).unwrap();
        assert_eq!(back.as_slice::<f16>().unwrap()[0], values[0]);
        assert!(back.as_slice::<f16>().unwrap()[1].is_nan());
        assert!(convert(&Tensor::scalar(1i32).unwrap(), DType::FLOAT).is_none());
    }

    #[test]
    fn denormals_become_zeros_of_their_sign() {
        let tensor = Tensor::from_slice(&[3], &[-f32::from_bits(3), 1.0, 0.0]).unwrap();
        let whole = Tensor::scalar(3i32).unwrap();
        let flushed = without_denormals(&[tensor, whole.clone()]).unwrap();
        let values = flushed[0].as_slice::<f32>().unwrap();
        assert_eq!(values[0].to_bits(), (-0.0f32).to_bits());
        assert_eq!(values[1], 1.0);
        assert!(without_denormals(&[whole]).is_none());
    }
}
