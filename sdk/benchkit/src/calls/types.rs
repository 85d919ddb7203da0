//! Element types of a call.

use super::{Wish, attrs};
use crate::error::BenchError;
use std::sync::Arc;
use tenon_framework::{
    DType,
    abi::AttrKind,
    attr::{AttrMap, AttrType, AttrValue},
    op::{Allowed, ArgType, AttrDef, OpDef},
    registry::KernelDef,
};

/// The single types among an op's attributes, as the user wants them, else such that a kernel takes them.
///
/// # Errors
/// A type that no kernel takes.
pub fn choose(op: &OpDef, kernels: &[Arc<KernelDef>], wish: &Wish) -> Result<AttrMap, BenchError> {
    let first = first_attr(op);
    let is_type = |attr: &&AttrDef| attr.ty == AttrType::one(AttrKind::TYPE);
    let mut types = AttrMap::new();
    let mut left: Vec<&Arc<KernelDef>> = kernels.iter().collect();
    // The type of the first input first: other types depend on it where kernels take certain pairs.
    let mut all: Vec<&AttrDef> = op.attrs.iter().filter(is_type).collect();
    all.sort_by_key(|attr| Some(attr.name.as_str()) != first);
    for attr in all {
        let taken = taken(attr, &left);
        let given = wish.attrs.iter().find(|(name, _)| *name == attr.name);
        let wanted = match given {
            Some((name, text)) => attrs::parse(op, name, text)?.as_type(),
            None => wish.dtype.filter(|_| first == Some(&attr.name)),
        };
        let dtype = match wanted {
            Some(dtype) if taken.contains(&dtype) => dtype,
            Some(dtype) => return Err(refused(op, attr, dtype, &taken)),
            None => preferred(attr, &taken),
        };
        left.retain(|kernel| {
            kernel.types_of(&attr.name).is_none_or(|types| types.contains(&dtype))
        });
        types.insert(attr.name.clone(), AttrValue::Type(dtype));
    }
    if let Some(dtype) = wish.dtype.filter(|_| first.is_none()) {
        let problem = format!("--dtype {dtype}: the types of its inputs are fixed");
        return Err(BenchError::wish(&op.name, problem));
    }
    Ok(types)
}

fn refused(op: &OpDef, attr: &AttrDef, dtype: DType, taken: &[DType]) -> BenchError {
    let taken: Vec<String> = taken.iter().map(DType::to_string).collect();
    let problem =
        format!("no kernel takes {dtype} for {}: they take {}", attr.name, taken.join(", "));
    BenchError::wish(&op.name, problem)
}

/// The attribute that gives the first input's type; without inputs, the first output's.
fn first_attr(op: &OpDef) -> Option<&str> {
    let of = |arg: &tenon_framework::op::ArgDef| match &arg.ty {
        ArgType::Attr(name) => Some(name.clone()),
        _ => None,
    };
    let name = op.inputs.iter().chain(&op.outputs).find_map(of)?;
    op.attr(&name).map(|attr| attr.name.as_str())
}

/// The types that some kernel takes for an attribute, in the order in which the op allows them; all, where there is
/// no kernel to ask.
fn taken(attr: &AttrDef, kernels: &[&Arc<KernelDef>]) -> Vec<DType> {
    let all = match &attr.allowed {
        Some(Allowed::Types(types)) => types.clone(),
        _ => DType::ALL.to_vec(),
    };
    let by = |kernel: &&Arc<KernelDef>, dtype: &DType| {
        kernel.types_of(&attr.name).is_none_or(|types| types.contains(dtype))
    };
    let takes =
        |dtype: &DType| kernels.is_empty() || kernels.iter().any(|kernel| by(kernel, dtype));
    all.into_iter().filter(takes).collect()
}

/// The default where a kernel takes it, else float, else a usual index type, else the first.
fn preferred(attr: &AttrDef, taken: &[DType]) -> DType {
    let default = attr.default.as_ref().and_then(AttrValue::as_type);
    let usual = [DType::FLOAT, DType::INT32];
    let known = default.into_iter().chain(usual).find(|dtype| taken.contains(dtype));
    known.or_else(|| taken.first().copied()).unwrap_or(DType::FLOAT)
}
