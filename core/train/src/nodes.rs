//! Nodes that several parts add.

use crate::TrainError;
use tenon_framework::{DType, Shape, Tensor};
use tenon_graph::{GraphBuilder, NodeBuilder, NodeId, Output};

/// Adds a constant, under this name or one that begins with it.
pub(crate) fn constant(
    b: &mut GraphBuilder<'_>,
    name: &str,
    value: Tensor,
) -> Result<Output, TrainError> {
    let name = b.unused_name(name);
    Ok(b.constant(&name, value)?)
}

/// Adds a scalar.
pub(crate) fn number(
    b: &mut GraphBuilder<'_>,
    name: &str,
    dtype: DType,
    value: f64,
) -> Result<Output, TrainError> {
    constant(b, name, Tensor::number(dtype, value)?)
}

/// Adds a tensor of one number.
pub(crate) fn filled(
    b: &mut GraphBuilder<'_>,
    name: &str,
    dtype: DType,
    shape: &Shape,
    value: f64,
) -> Result<Output, TrainError> {
    if shape.rank() == 0 {
        return number(b, name, dtype, value);
    }
    let dims = dims(b, &format!("{name}/shape_as_tensor"), shape)?;
    let value = number(b, &format!("{name}/Const"), dtype, value)?;
    Ok(b.op("Fill").name(name).input(dims).input(value).build()?.into())
}

/// Adds random values of an op such as `RandomUniform`.
pub(crate) fn random(
    b: &mut GraphBuilder<'_>,
    op: &str,
    name: &str,
    dtype: DType,
    shape: &Shape,
    seed: (i64, i64),
) -> Result<Output, TrainError> {
    let dims = dims(b, &format!("{name}/shape"), shape)?;
    let node = b.op(op).name(name).input(dims).attr("dtype", dtype);
    Ok(node.attr("seed", seed.0).attr("seed2", seed.1).build()?.into())
}

/// Adds a node that runs others, under this name or one that begins with it.
pub(crate) fn group(
    b: &mut GraphBuilder<'_>,
    name: &str,
    device: &str,
    nodes: &[NodeId],
) -> Result<NodeId, TrainError> {
    let name = b.unused_name(name);
    let group = b.op("NoOp").name(&name).device(device);
    Ok(nodes.iter().fold(group, |group, &node| group.control(node)).build()?)
}

/// Adds the dimensions of a shape, as int64.
fn dims(b: &mut GraphBuilder<'_>, name: &str, shape: &Shape) -> Result<Output, TrainError> {
    constant(b, name, Tensor::from_slice(&[shape.rank() as i64], shape.dims())?)
}

/// Adds nodes whose names begin with one prefix, on one device.
pub(crate) struct Scope<'s, 'r> {
    /// The graph.
    pub b: &'s mut GraphBuilder<'r>,
    prefix: String,
    device: String,
}

impl<'s, 'r> Scope<'s, 'r> {
    /// Nodes below `prefix`, on a device; empty for any.
    pub fn new(b: &'s mut GraphBuilder<'r>, prefix: &str, device: &str) -> Scope<'s, 'r> {
        Scope { b, prefix: prefix.to_owned(), device: device.to_owned() }
    }

    /// Starts a node that is named after its op.
    pub fn node(&mut self, op: &str) -> NodeBuilder<'_, 'r> {
        self.named(op, op)
    }

    /// Starts a node of this name below the prefix.
    pub fn named(&mut self, name: &str, op: &str) -> NodeBuilder<'_, 'r> {
        let name = self.b.unused_name(&format!("{}/{name}", self.prefix));
        self.b.op(op).name(&name).device(&self.device)
    }

    /// A node of one input.
    pub fn unary(&mut self, op: &str, x: Output) -> Result<Output, TrainError> {
        Ok(self.node(op).input(x).build()?.into())
    }

    /// A node of two inputs.
    pub fn binary(&mut self, op: &str, x: Output, y: Output) -> Result<Output, TrainError> {
        Ok(self.node(op).input(x).input(y).build()?.into())
    }

    /// A scalar, on any device.
    pub fn number(&mut self, name: &str, dtype: DType, value: f64) -> Result<Output, TrainError> {
        let name = format!("{}/{name}", self.prefix);
        number(self.b, &name, dtype, value)
    }

    /// A constant, on any device.
    pub fn constant(&mut self, name: &str, value: Tensor) -> Result<Output, TrainError> {
        let name = format!("{}/{name}", self.prefix);
        constant(self.b, &name, value)
    }

    /// This value as a number of another type.
    pub fn cast(&mut self, x: Output, dtype: DType) -> Result<Output, TrainError> {
        match self.b.graph().dtype(x).base() == dtype {
            true => Ok(x),
            false => Ok(self.node("Cast").input(x).attr("DstT", dtype).build()?.into()),
        }
    }

    /// The type of a value.
    pub fn dtype(&self, x: Output) -> DType {
        self.b.graph().dtype(x).base()
    }
}

/// A number that an optimiser or a schedule gets: fixed, or computed by the graph in each step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// A fixed number.
    Constant(f64),
    /// A scalar of the graph, such as a [schedule](crate::schedule)'s.
    Output(Output),
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Scalar {
        Scalar::Constant(value)
    }
}

impl From<Output> for Scalar {
    fn from(output: Output) -> Scalar {
        Scalar::Output(output)
    }
}

impl Scalar {
    /// The number in a graph, of this type.
    pub(crate) fn build(
        self,
        scope: &mut Scope<'_, '_>,
        name: &str,
        dtype: DType,
    ) -> Result<Output, TrainError> {
        match self {
            Scalar::Constant(value) => scope.number(name, dtype, value),
            Scalar::Output(output) => scope.cast(output, dtype),
        }
    }
}
