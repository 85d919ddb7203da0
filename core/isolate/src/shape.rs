//! Shape functions of isolated plugins.

use super::{
    kernel::unexpected,
    plugin::Isolated,
    values::{self, Copies},
    wire::{Dim, Inference, Reply, Request, encode},
};
use std::sync::Arc;
use tenon_framework::{
    KernelError,
    attr_view::AttrTable,
    infer::{Dimension, SymbolicShape, Symbols, ValueInfo},
    registry::RemoteShape,
};

/// Most symbols that one run of a shape function may create.
const NEW_SYMBOLS: u64 = 1 << 16;

/// The shape function of an op.
pub(super) struct Shape {
    pub plugin: Arc<Isolated>,
    /// Index of the op among those that the plugin registers.
    pub number: u32,
    /// The name of the op, for messages.
    pub name: Arc<str>,
}

impl RemoteShape for Shape {
    fn infer(
        &self,
        attrs: &AttrTable,
        inputs: &[&ValueInfo],
        symbols: &mut Symbols,
    ) -> Result<Vec<ValueInfo>, KernelError> {
        let mut copies = Copies::new();
        let attrs = values::attrs(&self.plugin, attrs, &mut copies)?;
        let mut sent = Vec::with_capacity(inputs.len());
        for input in inputs {
            let constant = input.constant.as_ref().filter(|constant| constant.is_on_host());
            let constant = values::constant(&self.plugin, constant, &mut copies)?;
            sent.push((dims(&input.shape), constant));
        }
        let count = symbols.count();
        let request =
            Request::Infer(Inference { op: self.number, attrs, inputs: sent, symbols: count });
        self.plugin.ask(&self.name, &encode(&request), |reply, _| match reply {
            Reply::Inferred(shapes) => {
                shapes.iter().map(|shape| output(shape.as_deref(), symbols, count)).collect()
            }
            other => Err(unexpected(&other)),
        })
    }
}

fn dims(shape: &SymbolicShape) -> Option<Vec<Dim>> {
    let dim = |dim: &Dimension| match dim {
        Dimension::Known(size) => Dim::Known(*size),
        Dimension::Unknown(symbol) => Dim::Unknown(symbol.number()),
    };
    shape.dims().map(|dims| dims.iter().map(dim).collect())
}

/// An output's shape; `count` symbols existed before.
fn output(
    dims: Option<&[Dim]>,
    symbols: &mut Symbols,
    count: u64,
) -> Result<ValueInfo, KernelError> {
    let Some(dims) = dims else { return Ok(ValueInfo::default()) };
    let mut made = Vec::with_capacity(dims.len());
    for dim in dims {
        made.push(match *dim {
            Dim::Known(size) => Dimension::Known(size),
            Dim::Unknown(number) => {
                let near = number <= count.saturating_add(NEW_SYMBOLS);
                let symbol = near.then(|| symbols.symbol(number)).flatten();
                Dimension::Unknown(symbol.ok_or_else(|| {
                    KernelError::internal(format!("a shape names symbol {number} of {count}"))
                })?)
            }
        });
    }
    let shape = SymbolicShape::new(made)
        .map_err(|error| KernelError::new(error.code(), error.to_string()))?;
    Ok(ValueInfo { shape, ..ValueInfo::default() })
}
