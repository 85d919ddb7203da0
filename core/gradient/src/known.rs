//! What is known of the tensors of a graph that grows.

use tenon_framework::{
    DType, KernelError, Tensor,
    attr::AttrValue,
    infer::{Dimension, Symbols, ValueInfo, infer},
};
use tenon_graph::{ControlFlow, Graph, NodeId, Output, topological};

/// Shapes and constants of the tensors of a graph, as far as its ops' shape functions know them.
#[derive(Debug)]
pub(crate) struct Known {
    values: Vec<Vec<ValueInfo>>,
    symbols: Symbols,
}

impl Known {
    /// What is known of all tensors of a graph. Nothing is known of the outputs of a node that its shape function
    /// refuses: whoever runs the node is told.
    pub fn of(graph: &Graph) -> Known {
        let mut known =
            Known { values: vec![Vec::new(); graph.len()], symbols: Symbols::default() };
        let order = topological(graph.len(), |at| {
            let node = graph.node(NodeId(at as u32));
            let loops = node.control_flow() == ControlFlow::Merge;
            let back = move |input: &&Output| {
                loops && graph.node(input.node).control_flow() == ControlFlow::NextIteration
            };
            node.inputs.iter().filter(move |input| !back(input)).map(|input| input.node.index())
        });
        for at in order {
            let id = NodeId(at as u32);
            let outputs = graph.node(id).outputs().len();
            let values = known.infer(graph, id);
            known.values[at] = values.unwrap_or_else(|_| vec![ValueInfo::default(); outputs]);
        }
        known
    }

    /// Infers what is known of the nodes that were added since.
    pub fn extend(&mut self, graph: &Graph) -> Result<(), KernelError> {
        while self.values.len() < graph.len() {
            let id = NodeId(self.values.len() as u32);
            match self.infer(graph, id) {
                Ok(values) => self.values.push(values),
                Err(error) => {
                    let node = graph.node(id);
                    self.values.push(vec![ValueInfo::default(); node.outputs().len()]);
                    let message =
                        format!("node '{}' (op '{}'): {}", node.name, node.op.name, error.message);
                    return Err(KernelError::new(error.code, message));
                }
            }
        }
        Ok(())
    }

    /// Infers again what is known of a node that was replaced.
    pub fn refresh(&mut self, graph: &Graph, id: NodeId) {
        let outputs = graph.node(id).outputs().len();
        let values = self.infer(graph, id);
        let values = values.unwrap_or_else(|_| vec![ValueInfo::default(); outputs]);
        if let Some(place) = self.values.get_mut(id.index()) {
            *place = values;
        }
    }

    fn infer(&mut self, graph: &Graph, id: NodeId) -> Result<Vec<ValueInfo>, KernelError> {
        let unknown = ValueInfo::default();
        let node = graph.node(id);
        let (values, symbols) = (&self.values, &mut self.symbols);
        let of = |input: &Output| values.get(input.node.index())?.get(input.output as usize);
        // The value at a back edge differs between iterations.
        let back = |input: &Output| {
            node.control_flow() == ControlFlow::Merge
                && graph.node(input.node).control_flow() == ControlFlow::NextIteration
        };
        let seen = |input: &Output| if back(input) { None } else { of(input) };
        let inputs: Vec<&ValueInfo> =
            node.inputs.iter().map(|input| seen(input).unwrap_or(&unknown)).collect();
        if node.op.is_missing() {
            return Ok(vec![ValueInfo::default(); node.outputs().len()]);
        }
        let mut outputs = infer(&node.op, &node.attrs, &inputs, symbols)?;
        if node.op.facts().declares_shape
            && let (Some(AttrValue::Shape(shape)), [output]) =
                (node.attrs.get("shape"), outputs.as_mut_slice())
            && output.shape.rank().is_none()
        {
            *output = ValueInfo::of_shape(shape, symbols);
        }
        Ok(outputs)
    }

    /// What is known of a tensor.
    pub fn value(&self, output: Output) -> Option<&ValueInfo> {
        self.values.get(output.node.index())?.get(output.output as usize)
    }

    /// Notes that a tensor has the shape of another one.
    pub fn copy_shape(&mut self, from: Output, to: Output) {
        let Some(shape) = self.value(from).map(|value| value.shape.clone()) else { return };
        let place = self.values.get_mut(to.node.index());
        if let Some(value) = place.and_then(|values| values.get_mut(to.output as usize)) {
            value.shape = shape;
        }
    }

    /// The dimensions of a tensor, -1 where unknown; `None` if the rank is unknown.
    pub fn dims(&self, output: Output) -> Option<Vec<i64>> {
        Some(self.value(output)?.shape.dims()?.iter().map(|dim| dim.value()).collect())
    }

    /// The dimensions of a tensor if all are known.
    pub fn known_dims(&self, output: Output) -> Option<Vec<i64>> {
        self.dims(output).filter(|dims| dims.iter().all(|&dim| dim >= 0))
    }

    /// The value of a tensor that is the same in every step.
    pub fn constant(&self, output: Output) -> Option<&Tensor> {
        self.value(output)?.constant.as_ref().filter(|tensor| tensor.is_on_host())
    }

    /// Whether two tensors have the same shape in every step.
    pub fn same_shape(&self, a: Output, b: Output) -> bool {
        if a == b {
            return true;
        }
        let dims = |output| -> Option<&[Dimension]> { self.value(output)?.shape.dims() };
        matches!((dims(a), dims(b)), (Some(a), Some(b)) if a == b)
    }

    /// Whether two shapes may be the same in some step.
    pub fn may_agree(&self, a: Output, b: Output) -> bool {
        match (self.dims(a), self.dims(b)) {
            (Some(a), Some(b)) => {
                let agree = |(a, b): (&i64, &i64)| a == b || *a < 0 || *b < 0;
                a.len() == b.len() && a.iter().zip(&b).all(agree)
            }
            _ => true,
        }
    }
}

/// Whether gradients flow through tensors of this type.
pub(crate) fn is_trainable(dtype: DType) -> bool {
    let base = dtype.base();
    base.is_floating() || base.is_complex() || base == DType::RESOURCE || base == DType::VARIANT
}
