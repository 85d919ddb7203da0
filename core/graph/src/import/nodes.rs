//! Resolves a node without its edges: op, attributes, signature and device.

use crate::{GraphError, Node};
use crate::{graph::tensor_placeholder, names::near_names};
use std::{collections::HashMap, sync::Arc};
use tenon_framework::{
    PartialShape,
    attr::{AttrMap, AttrValue},
    attr_view::AttrTable,
    device::DeviceName,
    op::{OpDef, Signature, apply_defaults, check_attrs},
    registry::Registry,
};
use tenon_proto::{
    AttrValue as AttrProto, AttrValueKind, FunctionLibrary, NodeDef,
    convert::{Decoder, function_op_from_proto, is_plain},
    versions::LAST_PRODUCER_OF_SCALARS_FOR_ANY_SHAPE,
};

/// The state that nodes are resolved against.
pub(crate) struct Resolver<'a> {
    registry: &'a Registry,
    /// The functions that a node may be named after.
    functions: Option<&'a FunctionLibrary>,
    /// The ops of such nodes.
    function_ops: HashMap<String, Arc<OpDef>>,
    decoder: Decoder<'a>,
    /// The producer version of the message.
    producer: i32,
}

impl<'a> Resolver<'a> {
    pub fn new(registry: &'a Registry, decoder: Decoder<'a>, producer: i32) -> Resolver<'a> {
        let (functions, function_ops) = (None, HashMap::new());
        Resolver { registry, functions, function_ops, decoder, producer }
    }

    /// Sets the functions that nodes may be named after.
    pub fn with_functions(mut self, functions: Option<&'a FunctionLibrary>) -> Resolver<'a> {
        self.functions = functions;
        self
    }

    /// The op of this name: a registered one, or that of a function.
    fn op(&mut self, node: &str, name: &str) -> Result<Option<Arc<OpDef>>, GraphError> {
        if let Some(op) = self.registry.op(name).or(self.function_ops.get(name)) {
            return Ok(Some(Arc::clone(op)));
        }
        let function = self.functions.and_then(|functions| functions.function(name));
        let signature = function.and_then(|function| function.signature.as_ref());
        let Some(signature) = signature else { return Ok(None) };
        let op = function_op_from_proto(signature).map_err(|source| GraphError::Attr {
            node: node.to_owned(),
            attr: name.to_owned(),
            source: Box::new(source),
        })?;
        let op = Arc::new(op);
        self.function_ops.insert(name.to_owned(), Arc::clone(&op));
        Ok(Some(op))
    }

    /// Resolves a node; its inputs are still empty.
    pub fn resolve(&mut self, def: &NodeDef) -> Result<Node, GraphError> {
        let device = DeviceName::parse(&def.device).map_err(|error| GraphError::Device {
            node: def.name.clone(),
            source: Box::new(error),
        })?;
        let Some(op) = self.op(&def.name, &def.op)? else {
            return Ok(missing(def, device));
        };
        let of_node = |error| GraphError::Op { node: def.name.clone(), source: Box::new(error) };
        let mut attrs = self.attrs(def, &op)?;
        apply_defaults(&op, &mut attrs).map_err(of_node)?;
        check_attrs(&op, &attrs).map_err(of_node)?;
        let signature = Signature::resolve(&op, &attrs).map_err(of_node)?;
        let origin = Some(Arc::new(origin(def, &attrs)));
        Ok(Node {
            name: def.name.clone(),
            op,
            attrs: Arc::new(AttrTable::new(attrs)),
            device,
            inputs: Vec::new(),
            control_inputs: Vec::new(),
            signature,
            origin,
        })
    }

    /// Reads the attributes that the message sets. An undeclared attribute is kept if its name
    /// begins with `_` and its value can be represented. Other undeclared attributes come from
    /// newer producers and stay in the message only.
    fn attrs(&mut self, def: &NodeDef, op: &OpDef) -> Result<AttrMap, GraphError> {
        let mut attrs = AttrMap::new();
        for (name, value) in &def.attr {
            let value = match op.attr(name) {
                Some(attr) => self.decoder.attr(value, attr.ty),
                None if name.starts_with('_') => {
                    Ok(self.decoder.undeclared_attr(value).unwrap_or(None))
                }
                None => Ok(None),
            };
            let value = value.map_err(|source| GraphError::Attr {
                node: def.name.clone(),
                attr: name.clone(),
                source: Box::new(source),
            })?;
            attrs.extend(value.map(|value| (name.clone(), value)));
        }
        self.read_as_written(op, &mut attrs);
        Ok(attrs)
    }

    /// Gives attributes the meaning that they had for the message's producer.
    fn read_as_written(&self, op: &OpDef, attrs: &mut AttrMap) {
        if self.producer > LAST_PRODUCER_OF_SCALARS_FOR_ANY_SHAPE || op.name != "Placeholder" {
            return;
        }
        if let Some(AttrValue::Shape(shape)) = attrs.get_mut("shape")
            && shape.rank() == Some(0)
        {
            *shape = PartialShape::UNKNOWN;
        }
    }
}

/// Creates a node of an unregistered op. It keeps the whole message, for when the op is registered.
fn missing(def: &NodeDef, device: DeviceName) -> Node {
    Node {
        name: def.name.clone(),
        op: Arc::new(OpDef::missing(&def.op)),
        attrs: Arc::new(AttrTable::new(AttrMap::new())),
        device,
        inputs: Vec::new(),
        control_inputs: Vec::new(),
        signature: Signature::default(),
        origin: Some(Arc::new(def.clone())),
    }
}

/// The message to write the node from. A tensor that is also among the node's attributes, and would
/// be written exactly as it was read, is replaced by a placeholder, so that constants are not in
/// memory twice.
fn origin(def: &NodeDef, attrs: &AttrMap) -> NodeDef {
    let attr = |(name, value): (&String, &AttrProto)| {
        let is_kept = attrs.contains_key(name);
        let value = match &value.value {
            Some(AttrValueKind::Tensor(tensor)) if is_kept && is_plain(tensor) => {
                tensor_placeholder()
            }
            _ => value.clone(),
        };
        (name.clone(), value)
    };
    NodeDef {
        name: def.name.clone(),
        op: def.op.clone(),
        input: def.input.clone(),
        device: def.device.clone(),
        attr: def.attr.iter().map(attr).collect(),
        experimental_debug_info: def.experimental_debug_info.clone(),
        experimental_type: def.experimental_type.clone(),
    }
}

/// The error for an unregistered op.
pub(crate) fn unknown_op(registry: &Registry, node: String, op: String) -> GraphError {
    let near = near_names(&op, registry.ops().map(|op| op.name.as_str()));
    GraphError::UnknownOp { node, op, near }
}
