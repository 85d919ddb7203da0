//! A node without its edges: op, attributes, signature, device.

use super::near_names;
use crate::{GraphError, Node};
use std::{collections::HashSet, sync::Arc};
use tenon_framework::{
    attr::AttrMap,
    attr_view::AttrTable,
    device::DeviceName,
    op::{OpDef, Signature, apply_defaults, check_attrs},
    registry::Registry,
};
use tenon_proto::{
    AttrValue as AttrProto, AttrValueKind, FunctionDefLibrary, NodeDef,
    convert::{Decoder, is_plain},
};

/// What nodes are resolved against.
pub(super) struct Resolver<'a> {
    registry: &'a Registry,
    functions: HashSet<&'a str>,
    decoder: Decoder<'a>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(
        registry: &'a Registry,
        library: Option<&'a FunctionDefLibrary>,
        decoder: Decoder<'a>,
    ) -> Resolver<'a> {
        let functions = library.iter().flat_map(|library| &library.function);
        let functions = functions.filter_map(|f| f.signature.as_ref()).map(|s| s.name.as_str());
        Resolver { registry, functions: functions.collect(), decoder }
    }

    /// The node, as yet without inputs.
    pub(super) fn resolve(&mut self, def: &NodeDef) -> Result<Node, GraphError> {
        let op = self.op(def)?;
        let device = DeviceName::parse(&def.device).map_err(|error| GraphError::Device {
            node: def.name.clone(),
            source: Box::new(error),
        })?;
        let of_node = |error| GraphError::Op { node: def.name.clone(), source: Box::new(error) };
        let mut attrs = self.attrs(def, &op)?;
        apply_defaults(&op, &mut attrs).map_err(of_node)?;
        check_attrs(&op, &attrs).map_err(of_node)?;
        let signature = Signature::resolve(&op, &attrs).map_err(of_node)?;
        Ok(Node {
            name: def.name.clone(),
            op,
            attrs: Arc::new(AttrTable::new(attrs)),
            device,
            inputs: Vec::new(),
            control_inputs: Vec::new(),
            signature,
            origin: Some(Arc::new(origin(def))),
        })
    }

    fn op(&self, def: &NodeDef) -> Result<Arc<OpDef>, GraphError> {
        if let Some(op) = self.registry.op(&def.op) {
            return Ok(op.clone());
        }
        let (node, op) = (def.name.clone(), def.op.clone());
        if self.functions.contains(def.op.as_str()) {
            return Err(GraphError::FunctionCall { node, op });
        }
        Err(unknown_op(self.registry, node, op))
    }

    /// The attributes that the message sets. One that the op does not declare is left to `check_attrs`,
    /// unless its name begins with `_`: then it is kept where it has a value in the framework's terms.
    fn attrs(&mut self, def: &NodeDef, op: &OpDef) -> Result<AttrMap, GraphError> {
        let mut attrs = AttrMap::new();
        for (name, value) in &def.attr {
            let value = match op.attr(name) {
                Some(attr) => self.decoder.attr(value, attr.ty).map(Some),
                None if name.starts_with('_') => {
                    Ok(self.decoder.undeclared_attr(value).unwrap_or(None))
                }
                // Any value will do for the error that names the attribute.
                None => Ok(Some(false.into())),
            };
            let value = value.map_err(|source| GraphError::Attr {
                node: def.name.clone(),
                attr: name.clone(),
                source: Box::new(source),
            })?;
            attrs.extend(value.map(|value| (name.clone(), value)));
        }
        Ok(attrs)
    }
}

/// The message to write the node from. Of tensors that are written just as they were read, an empty one stands for the
/// value that the node has: constants would be in memory twice.
fn origin(def: &NodeDef) -> NodeDef {
    let attr = |(name, value): (&String, &AttrProto)| {
        let value = match &value.value {
            Some(AttrValueKind::Tensor(tensor)) if is_plain(tensor) => left_out(),
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

/// What stands for a tensor that the node itself has; no tensor that can be read is like it.
pub(crate) fn left_out() -> AttrProto {
    AttrProto { value: Some(AttrValueKind::Tensor(Box::default())) }
}

/// The error for an op that nobody registered.
pub(crate) fn unknown_op(registry: &Registry, node: String, op: String) -> GraphError {
    let near = near_names(&op, registry.ops().map(|op| op.name.as_str()));
    GraphError::UnknownOp { node, op, near }
}
