//! Whether a kernel fits its op.

use super::{error::RegistryError, kernel_def::KernelDef};
use crate::op::{Allowed, ArgDef, ArgType, OpDef};
use tenon_abi::{AttrKind, DType, InPlace};

/// All reasons why a kernel cannot serve its op.
pub(super) fn problems(kernel: &KernelDef, op: &OpDef) -> Vec<RegistryError> {
    let mut errors = Vec::new();
    check_constraints(kernel, op, &mut errors);
    check_host_memory(kernel, op, &mut errors);
    for &pair in &kernel.in_place {
        errors.extend(check_in_place(kernel, op, pair).err());
    }
    errors
}

fn check_constraints(kernel: &KernelDef, op: &OpDef, errors: &mut Vec<RegistryError>) {
    for (at, constraint) in kernel.constraints.iter().enumerate() {
        let attr = constraint.attr.clone();
        let name = || kernel.to_string();
        let bad =
            |problem| RegistryError::Constraint { kernel: name(), attr: attr.clone(), problem };
        if kernel.constraints[..at].iter().any(|earlier| earlier.attr == attr) {
            errors.push(bad("is listed twice: join the lists of types"));
        }
        if constraint.types.is_empty() {
            errors.push(bad("allows no type: name at least one"));
        }
        let Some(def) = op.attr(&attr) else {
            errors.push(RegistryError::UnknownAttr { kernel: name(), op: op.name.clone(), attr });
            continue;
        };
        if def.ty.kind != AttrKind::TYPE {
            errors.push(RegistryError::NotTypeAttr { kernel: name(), attr, found: def.ty });
            continue;
        }
        let refused = |dtype: &&DType| match &def.allowed {
            Some(Allowed::Types(types)) => !types.contains(dtype),
            _ => !dtype.is_valid() || dtype.is_ref(),
        };
        if let Some(&found) = constraint.types.iter().find(refused) {
            let allowed = def.allowed.as_ref().map_or("every type".to_owned(), Allowed::to_string);
            errors.push(RegistryError::TypeNotAllowed { kernel: name(), attr, found, allowed });
        }
    }
}

fn check_host_memory(kernel: &KernelDef, op: &OpDef, errors: &mut Vec<RegistryError>) {
    for arg in &kernel.host_memory {
        if op.input_index(arg).is_none() && op.output_index(arg).is_none() {
            let args = op.inputs.iter().chain(&op.outputs);
            let known = args.map(|arg| arg.name.as_str()).collect::<Vec<_>>().join(", ");
            let (kernel, arg) = (kernel.to_string(), arg.clone());
            errors.push(RegistryError::UnknownArg { kernel, arg, known });
        }
    }
}

fn check_in_place(kernel: &KernelDef, op: &OpDef, pair: InPlace) -> Result<(), RegistryError> {
    let input = op.inputs.get(pair.input as usize);
    let output = op.outputs.get(pair.output as usize);
    let (Some(input), Some(output)) = (input, output) else {
        return Err(RegistryError::InPlaceRange {
            kernel: kernel.to_string(),
            input: pair.input,
            output: pair.output,
            inputs: op.inputs.len(),
            outputs: op.outputs.len(),
        });
    };
    let agree = input.ty == output.ty
        || match (types_of(kernel, op, input), types_of(kernel, op, output)) {
            (Some(a), Some(b)) => a.iter().any(|dtype| b.contains(dtype)),
            _ => true,
        };
    if agree {
        return Ok(());
    }
    Err(RegistryError::InPlaceType {
        kernel: kernel.to_string(),
        input: input.name.clone(),
        output: output.name.clone(),
    })
}

/// The types that an argument may have; `None` for all.
fn types_of(kernel: &KernelDef, op: &OpDef, arg: &ArgDef) -> Option<Vec<DType>> {
    let name = match &arg.ty {
        ArgType::Fixed(dtype) => return Some(vec![*dtype]),
        ArgType::Attr(name) | ArgType::ListAttr(name) => name,
    };
    if let Some(types) = kernel.types_of(name) {
        return Some(types.to_vec());
    }
    match op.attr(name)?.allowed.as_ref()? {
        Allowed::Types(types) => Some(types.clone()),
        Allowed::Strings(_) => None,
    }
}
