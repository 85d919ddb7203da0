//! What the signatures of a model are.

use crate::ImportError;
use std::collections::BTreeMap;
use tenon_framework::{DType, PartialShape, Tensor};
use tenon_proto::{
    SignatureDef, TensorInfo, TensorInfoEncoding,
    convert::{ConvertError, dtype_from_proto, shape_from_proto, tensor_from_proto},
};

/// An input or a result of a signature.
#[derive(Debug, Clone)]
pub struct Argument {
    /// The name by which a caller gives or gets it. A sparse tensor is three, `NAME/indices`, `NAME/values` and
    /// `NAME/dense_shape`; another composite one, such as a ragged tensor, is `NAME/0`, `NAME/1` and so on.
    pub name: String,
    /// The tensor of the graph.
    pub tensor: String,
    /// The element type; `None` where the model does not say.
    pub dtype: Option<DType>,
    /// The shape, as far as the model says.
    pub shape: PartialShape,
    /// The value of an input that a caller does not give.
    pub default: Option<Tensor>,
}

/// A function that a model offers to its callers.
#[derive(Debug, Clone)]
pub struct SignatureInfo {
    /// The key, such as `serving_default`.
    pub key: String,
    /// The kind, such as `tensorflow/serving/predict`.
    pub method_name: String,
    /// The inputs, in the order of their names.
    pub inputs: Vec<Argument>,
    /// The results, in the order of their names.
    pub outputs: Vec<Argument>,
}

impl SignatureInfo {
    /// Reads a signature.
    ///
    /// # Errors
    /// A type, a shape or a default makes no sense.
    pub(crate) fn read(key: &str, def: &SignatureDef) -> Result<SignatureInfo, ImportError> {
        let named = |argument: &str, source| ImportError::Argument {
            signature: key.to_owned(),
            argument: argument.to_owned(),
            source,
        };
        let mut inputs = arguments(&def.inputs, named)?;
        for input in &mut inputs {
            if let Some(default) = def.defaults.get(&input.name) {
                let value = tensor_from_proto(default);
                input.default = Some(value.map_err(|source| named(&input.name, source))?);
            }
        }
        Ok(SignatureInfo {
            key: key.to_owned(),
            method_name: def.method_name.clone(),
            inputs,
            outputs: arguments(&def.outputs, named)?,
        })
    }

    /// The input with this name.
    ///
    /// # Errors
    /// There is none; the message lists those that there are.
    pub fn input(&self, name: &str) -> Result<&Argument, ImportError> {
        self.inputs.iter().find(|input| input.name == name).ok_or_else(|| {
            let (signature, name) = (self.key.clone(), name.to_owned());
            ImportError::UnknownInput { signature, name, have: names(&self.inputs) }
        })
    }

    /// The result with this name.
    ///
    /// # Errors
    /// There is none; the message lists those that there are.
    pub fn output(&self, name: &str) -> Result<&Argument, ImportError> {
        self.outputs.iter().find(|output| output.name == name).ok_or_else(|| {
            let (signature, name) = (self.key.clone(), name.to_owned());
            ImportError::UnknownOutput { signature, name, have: names(&self.outputs) }
        })
    }

    /// The values of all inputs, in the order of [`SignatureInfo::inputs`]: those that are given by name, in any order, and the
    /// defaults of others.
    ///
    /// # Errors
    /// An input is unknown or given twice; one that has no default is not given.
    pub fn complete(&self, given: &[(&str, Tensor)]) -> Result<Vec<Tensor>, ImportError> {
        let mut by_name: BTreeMap<&str, &Tensor> = BTreeMap::new();
        for (name, value) in given {
            let name = &self.input(name)?.name;
            if by_name.insert(name, value).is_some() {
                let (signature, name) = (self.key.clone(), name.clone());
                return Err(ImportError::InputTwice { signature, name });
            }
        }
        let (mut values, mut missing) = (Vec::with_capacity(self.inputs.len()), Vec::new());
        for input in &self.inputs {
            match by_name.get(input.name.as_str()).copied().or(input.default.as_ref()) {
                Some(value) => values.push(value.clone()),
                None => missing.push(input.name.clone()),
            }
        }
        if missing.is_empty() {
            return Ok(values);
        }
        Err(ImportError::MissingInputs { signature: self.key.clone(), names: missing })
    }
}

fn names(arguments: &[Argument]) -> Vec<String> {
    arguments.iter().map(|argument| argument.name.clone()).collect()
}

fn arguments(
    infos: &BTreeMap<String, TensorInfo>,
    named: impl Fn(&str, ConvertError) -> ImportError,
) -> Result<Vec<Argument>, ImportError> {
    let mut arguments = Vec::with_capacity(infos.len());
    for (name, info) in infos {
        add(&mut arguments, name, info).map_err(|source| named(name, source))?;
    }
    Ok(arguments)
}

/// Adds the tensors of an argument. The nesting of composite tensors is bounded by that of messages.
fn add(to: &mut Vec<Argument>, name: &str, info: &TensorInfo) -> Result<(), ConvertError> {
    match &info.encoding {
        Some(TensorInfoEncoding::CooSparse(sparse)) => {
            let dtype = dtype(info.dtype)?;
            let index = Some(DType::INT64);
            let mut part = |part: &str, tensor: &str, dtype| {
                let (name, tensor) = (format!("{name}/{part}"), tensor.to_owned());
                let shape = PartialShape::UNKNOWN;
                to.push(Argument { name, tensor, dtype, shape, default: None });
            };
            part("dense_shape", &sparse.dense_shape_tensor_name, index);
            part("indices", &sparse.indices_tensor_name, index);
            part("values", &sparse.values_tensor_name, dtype);
        }
        Some(TensorInfoEncoding::CompositeTensor(composite)) => {
            for (at, component) in composite.components.iter().enumerate() {
                add(to, &format!("{name}/{at}"), component)?;
            }
        }
        Some(TensorInfoEncoding::Name(tensor)) => to.push(Argument {
            name: name.to_owned(),
            tensor: tensor.clone(),
            dtype: dtype(info.dtype)?,
            shape: shape(info)?,
            default: None,
        }),
        None => to.push(Argument {
            name: name.to_owned(),
            tensor: String::new(),
            dtype: dtype(info.dtype)?,
            shape: shape(info)?,
            default: None,
        }),
    }
    Ok(())
}

fn dtype(number: i32) -> Result<Option<DType>, ConvertError> {
    if number == 0 { Ok(None) } else { dtype_from_proto(number).map(Some) }
}

fn shape(info: &TensorInfo) -> Result<PartialShape, ConvertError> {
    info.tensor_shape.as_ref().map_or(Ok(PartialShape::UNKNOWN), shape_from_proto)
}
