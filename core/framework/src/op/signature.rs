//! Inputs and outputs of one node.

use super::{
    attrs::{bounded, check_value, count_error},
    def::{ArgDef, ArgType, OpDef},
    error::OpError,
};
use crate::attr::{AttrList, AttrMap, AttrType, AttrValue};
use tenon_abi::{AttrKind, DType, Range};

/// Most inputs, and most outputs, that a node may have.
pub const MAX_VALUES: usize = 1 << 16;

/// The flat inputs and outputs of one node, with the positions of each named argument.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signature {
    /// Element types of the inputs; reference types where the op takes a reference.
    pub inputs: Vec<DType>,
    /// Element types of the outputs; reference types where the op gives a reference.
    pub outputs: Vec<DType>,
    /// Positions of each input argument, in the order of the definition.
    pub input_args: Vec<Range>,
    /// Positions of each output argument.
    pub output_args: Vec<Range>,
}

impl Signature {
    /// The signature of a node with these attributes, defaults already applied.
    ///
    /// # Errors
    /// An attribute that gives a type or a number is missing or wrong; more than [`MAX_VALUES`] values.
    pub fn resolve(op: &OpDef, attrs: &AttrMap) -> Result<Signature, OpError> {
        let (inputs, input_args) = resolve_args(op, &op.inputs, attrs)?;
        let (outputs, output_args) = resolve_args(op, &op.outputs, attrs)?;
        Ok(Signature { inputs, outputs, input_args, output_args })
    }

    /// Checks the types of a node's inputs. A reference serves where a plain value is taken.
    ///
    /// # Errors
    /// Another number of inputs, another type, a plain value where a reference is taken.
    pub fn check_inputs(&self, op: &OpDef, found: &[DType]) -> Result<(), OpError> {
        if found.len() != self.inputs.len() {
            return Err(count_error(op, found.len()));
        }
        let differs = |(&expected, &found): (&DType, &DType)| {
            expected != found && (expected.is_ref() || found.base() != expected)
        };
        match self.inputs.iter().zip(found).position(differs) {
            Some(index) => Err(OpError::InputType {
                op: op.name.clone(),
                arg: self.input_arg_of(op, index).unwrap_or_default().to_owned(),
                index,
                expected: self.inputs[index],
                found: found[index],
            }),
            None => Ok(()),
        }
    }

    /// Name of the input argument that flat input `index` belongs to.
    pub fn input_arg_of<'a>(&self, op: &'a OpDef, index: usize) -> Option<&'a str> {
        let at = arg_of(&self.input_args, index)?;
        Some(op.inputs.get(at)?.name.as_str())
    }

    /// Name of the output argument that flat output `index` belongs to.
    pub fn output_arg_of<'a>(&self, op: &'a OpDef, index: usize) -> Option<&'a str> {
        let at = arg_of(&self.output_args, index)?;
        Some(op.outputs.get(at)?.name.as_str())
    }
}

fn arg_of(ranges: &[Range], index: usize) -> Option<usize> {
    ranges.iter().position(|range| {
        let start = range.start as usize;
        (start..start + range.len as usize).contains(&index)
    })
}

fn resolve_args(
    op: &OpDef,
    args: &[ArgDef],
    attrs: &AttrMap,
) -> Result<(Vec<DType>, Vec<Range>), OpError> {
    let mut types = Vec::new();
    let mut ranges = Vec::with_capacity(args.len());
    for arg in args {
        let start = types.len();
        push_types(op, arg, attrs, &mut types)?;
        if arg.is_ref {
            types[start..].iter_mut().for_each(|dtype| *dtype = dtype.as_ref_type());
        }
        bounded(op, arg, types.len() as i64)?;
        ranges.push(Range { start: start as u32, len: (types.len() - start) as u32 });
    }
    Ok((types, ranges))
}

fn push_types(
    op: &OpDef,
    arg: &ArgDef,
    attrs: &AttrMap,
    types: &mut Vec<DType>,
) -> Result<(), OpError> {
    let dtype = match &arg.ty {
        ArgType::ListAttr(name) => {
            let list = lookup(op, name, AttrType::list(AttrKind::TYPE), attrs)?;
            if let AttrValue::List(AttrList::Type(list)) = list {
                bounded(op, arg, list.len() as i64)?;
                types.extend_from_slice(list);
            }
            return Ok(());
        }
        ArgType::Attr(name) => {
            let value = lookup(op, name, AttrType::one(AttrKind::TYPE), attrs)?;
            value.as_type().unwrap_or(DType::INVALID)
        }
        ArgType::Fixed(dtype) => *dtype,
    };
    let count = match &arg.number_attr {
        Some(name) => {
            let value = lookup(op, name, AttrType::one(AttrKind::INT), attrs)?;
            bounded(op, arg, value.as_int().unwrap_or(-1))?
        }
        None => 1,
    };
    types.extend(std::iter::repeat_n(dtype, count));
    Ok(())
}

/// The value of an attribute that an argument needs, checked against its definition.
fn lookup<'a>(
    op: &OpDef,
    name: &str,
    expected: AttrType,
    attrs: &'a AttrMap,
) -> Result<&'a AttrValue, OpError> {
    let missing = || OpError::MissingAttr { op: op.name.clone(), attr: name.to_owned(), expected };
    let value = attrs.get(name).ok_or_else(missing)?;
    check_value(op, op.attr(name).ok_or_else(missing)?, value)?;
    Ok(value)
}
