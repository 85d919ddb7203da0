//! The state of one run of a shape function.

use crate::{
    KernelError, Tensor,
    attr_view::AttrTable,
    op::Signature,
    shape::PartialShape,
    symbolic::{Dimension, HandlePart, SymbolicShape, SymbolicValue, Symbols, ValueInfo},
};
use std::collections::BTreeMap;
use tenon_abi::{Attrs, Code, DType, DimId, MAX_RANK, ShapeId, Slot};

/// A dimension of the run. Dimensions that were merged lead to one of them, a known one if there is one,
/// else the oldest symbol.
struct Node {
    parent: u32,
    dim: Dimension,
}

struct Input {
    shape: ShapeId,
    value: Option<SymbolicValue>,
    handle: Vec<(DType, ShapeId)>,
    slot: Option<Slot>,
}

#[derive(Default)]
struct Output {
    shape: Option<ShapeId>,
    handle: Vec<(DType, ShapeId)>,
}

/// The meaning of the handles of one run of a shape function, and the outputs that it has set.
pub struct InferenceContext {
    attrs: *const Attrs,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    nodes: Vec<Node>,
    /// Nodes that lead to another since a merge, in the order of the merges.
    merged: Vec<u32>,
    known: BTreeMap<Dimension, DimId>,
    shapes: Vec<Option<Vec<DimId>>>,
    symbols: Symbols,
    message: Option<String>,
    /// A mistake of the shape function in an entry that has no code to say so.
    broken: Option<String>,
    /// What the slots show.
    _constants: Vec<Option<Tensor>>,
}

/// The shape of unknown rank.
pub(super) const UNKNOWN: ShapeId = ShapeId(0);

impl InferenceContext {
    /// A run for a node; `attrs` outlives it.
    pub(super) fn new(
        attrs: &AttrTable,
        inputs: &[&ValueInfo],
        signature: &Signature,
        symbols: Symbols,
    ) -> InferenceContext {
        let values: Vec<_> = inputs.iter().map(|input| input.symbolic_value()).collect();
        let constant = |(at, value): (usize, &Option<SymbolicValue>)| {
            let given = inputs[at].constant.clone().filter(Tensor::is_on_host);
            given.or_else(|| value.as_ref()?.to_tensor(signature.inputs[at].base()))
        };
        let constants: Vec<Option<Tensor>> = values.iter().enumerate().map(constant).collect();
        let mut context = InferenceContext {
            attrs: attrs.as_raw(),
            inputs: Vec::with_capacity(inputs.len()),
            outputs: signature.outputs.iter().map(|_| Output::default()).collect(),
            nodes: Vec::new(),
            merged: Vec::new(),
            known: BTreeMap::new(),
            shapes: vec![None],
            symbols,
            message: None,
            broken: None,
            _constants: Vec::new(),
        };
        for ((input, value), constant) in inputs.iter().zip(values).zip(&constants) {
            let shape = context.import(&input.shape);
            let handle = input.handle.iter().map(|p| (p.dtype, context.import(&p.shape))).collect();
            let slot = constant.as_ref().map(Tensor::slot);
            context.inputs.push(Input { shape, value, handle, slot });
        }
        context._constants = constants;
        context
    }

    fn import(&mut self, shape: &SymbolicShape) -> ShapeId {
        let dims = shape.dims().map(|dims| dims.iter().map(|&dim| self.node(dim)).collect());
        self.push_shape(dims)
    }

    fn push_shape(&mut self, dims: Option<Vec<DimId>>) -> ShapeId {
        if dims.is_none() {
            return UNKNOWN;
        }
        self.shapes.push(dims);
        ShapeId((self.shapes.len() - 1) as u32)
    }

    /// The handle of a dimension: one per size and one per symbol.
    fn node(&mut self, dim: Dimension) -> DimId {
        let next = DimId(self.nodes.len() as u32);
        let id = *self.known.entry(dim).or_insert(next);
        if id == next {
            self.nodes.push(Node { parent: next.0, dim });
        }
        id
    }

    fn fresh(&mut self) -> DimId {
        let symbol = self.symbols.fresh();
        self.node(Dimension::Unknown(symbol))
    }

    /// The dimension to which a dimension leads; `None` for a handle that is not of this run.
    fn root(&self, id: DimId) -> Option<&Node> {
        let mut node = self.nodes.get(id.0 as usize)?;
        while let Some(parent) = self.nodes.get(node.parent as usize) {
            if parent.parent == node.parent {
                return Some(parent);
            }
            node = parent;
        }
        None
    }

    fn dims_of(&self, shape: ShapeId) -> Option<&[DimId]> {
        self.shapes.get(shape.0 as usize)?.as_deref()
    }

    fn partial(&self, shape: ShapeId) -> PartialShape {
        let Some(dims) = self.dims_of(shape) else { return PartialShape::UNKNOWN };
        let values: Vec<i64> = dims.iter().map(|&dim| self.value(dim)).collect();
        PartialShape::new(&values).unwrap_or(PartialShape::UNKNOWN)
    }

    /// Keeps the message of an error.
    pub(super) fn keep(&mut self, error: KernelError) -> Code {
        self.message = Some(error.message);
        error.code
    }

    /// Keeps the first mistake; the run fails with it.
    pub(super) fn mistake(&mut self, message: String) {
        self.broken.get_or_insert(message);
    }

    pub(super) fn take_message(&mut self) -> Option<String> {
        self.message.take()
    }

    pub(super) fn into_symbols(self) -> Symbols {
        self.symbols
    }

    pub(super) fn attrs(&self) -> *const Attrs {
        self.attrs
    }

    pub(super) fn input_count(&self) -> u32 {
        self.inputs.len() as u32
    }

    pub(super) fn output_count(&self) -> u32 {
        self.outputs.len() as u32
    }

    pub(super) fn input(&self, input: u32) -> ShapeId {
        self.inputs.get(input as usize).map_or(UNKNOWN, |input| input.shape)
    }

    pub(super) fn constant(&self, input: u32) -> Option<&Slot> {
        self.inputs.get(input as usize)?.slot.as_ref()
    }

    pub(super) fn rank(&self, shape: ShapeId) -> i32 {
        self.dims_of(shape).map_or(-1, |dims| dims.len() as i32)
    }

    pub(super) fn dim(&mut self, shape: ShapeId, index: u32) -> DimId {
        let dim = self.dims_of(shape).and_then(|dims| dims.get(index as usize)).copied();
        dim.unwrap_or_else(|| self.fresh())
    }

    pub(super) fn value(&self, dim: DimId) -> i64 {
        self.root(dim).map_or(-1, |node| node.dim.value())
    }

    pub(super) fn make_dim(&mut self, value: i64) -> DimId {
        if value >= 0 {
            return self.node(Dimension::Known(value));
        }
        if value < -1 {
            self.mistake(format!("a dimension is at least 0, or -1 if unknown, found {value}"));
        }
        self.fresh()
    }

    pub(super) fn make_shape(&mut self, dims: &[DimId]) -> ShapeId {
        if dims.len() > MAX_RANK {
            let found = dims.len();
            self.mistake(format!("a tensor has at most {MAX_RANK} dimensions, found {found}"));
            return UNKNOWN;
        }
        self.push_shape(Some(dims.to_vec()))
    }

    pub(super) fn merge_dim(&mut self, a: DimId, b: DimId) -> Result<DimId, KernelError> {
        let (Some(x), Some(y)) = (self.root(a), self.root(b)) else {
            let message = "merge of a dimension that is not of this run: make it again";
            return Err(KernelError::internal(message));
        };
        let ((p, x), (q, y)) = ((x.parent, x.dim), (y.parent, y.dim));
        if x == y {
            return Ok(DimId(p));
        }
        if let (Dimension::Known(x), Dimension::Known(y)) = (x, y) {
            let message = format!("expected a dimension of {x}, found {y}");
            return Err(KernelError::invalid_argument(message));
        }
        // Sizes come before symbols, old symbols before new ones.
        let (winner, loser) = if x < y { (p, q) } else { (q, p) };
        self.nodes[loser as usize].parent = winner;
        self.merged.push(loser);
        Ok(DimId(winner))
    }

    pub(super) fn merge(&mut self, a: ShapeId, b: ShapeId) -> Result<ShapeId, KernelError> {
        let (Some(x), Some(y)) = (self.dims_of(a), self.dims_of(b)) else {
            return Ok(if self.dims_of(a).is_some() { a } else { b });
        };
        let (x, y) = (x.to_vec(), y.to_vec());
        if x.len() != y.len() {
            let what = format!("expected rank {}, found {}", x.len(), y.len());
            return Err(self.conflict(a, b, &what));
        }
        let before = self.merged.len();
        let mut dims = Vec::with_capacity(x.len());
        for (at, (&x, &y)) in x.iter().zip(&y).enumerate() {
            let (expected, found) = (self.value(x), self.value(y));
            match self.merge_dim(x, y) {
                Ok(dim) => dims.push(dim),
                Err(_) if expected >= 0 && found >= 0 => {
                    self.part(before);
                    let what = format!("dimension {at}: expected {expected}, found {found}");
                    return Err(self.conflict(a, b, &what));
                }
                Err(error) => {
                    self.part(before);
                    return Err(error);
                }
            }
        }
        Ok(self.push_shape(Some(dims)))
    }

    /// Undoes the merges since then, so that a merge that was only tried has no effect.
    fn part(&mut self, before: usize) {
        for node in self.merged.drain(before..) {
            self.nodes[node as usize].parent = node;
        }
    }

    fn conflict(&self, a: ShapeId, b: ShapeId, what: &str) -> KernelError {
        let (a, b) = (self.partial(a), self.partial(b));
        KernelError::invalid_argument(format!("shapes {a} and {b} must be equal: {what}"))
    }

    pub(super) fn with_rank(&mut self, shape: ShapeId, rank: u32) -> Result<ShapeId, KernelError> {
        let Some(dims) = self.dims_of(shape) else {
            if rank as usize > MAX_RANK {
                let message = format!("a tensor has at most {MAX_RANK} dimensions, found {rank}");
                return Err(KernelError::invalid_argument(message));
            }
            let dims = (0..rank).map(|_| self.fresh()).collect();
            return Ok(self.push_shape(Some(dims)));
        };
        if dims.len() != rank as usize {
            let found = self.partial(shape);
            let message =
                format!("expected a shape of rank {rank}, found {found} of rank {}", dims.len());
            return Err(KernelError::invalid_argument(message));
        }
        Ok(shape)
    }

    pub(super) fn constant_as_shape(&mut self, input: u32) -> Result<ShapeId, KernelError> {
        let Some(given) = self.inputs.get(input as usize) else { return Ok(UNKNOWN) };
        if let Some(value) = given.value.clone() {
            let shape = value.to_shape(&mut self.symbols)?;
            return Ok(self.import(&shape));
        }
        let shape = given.shape;
        match self.dims_of(shape) {
            // A scalar may turn out to be -1, the shape of unknown rank.
            None | Some([]) => Ok(UNKNOWN),
            Some(&[length]) => match self.value(length) {
                -1 => Ok(UNKNOWN),
                // A size above `u32` is above the greatest rank too.
                rank => self.with_rank(UNKNOWN, u32::try_from(rank).unwrap_or(u32::MAX)),
            },
            Some(_) => {
                let found = self.partial(shape);
                let message = format!("a shape is given as a vector, found a tensor of {found}");
                Err(KernelError::invalid_argument(message))
            }
        }
    }

    fn output(&mut self, output: u32) -> Result<&mut Output, KernelError> {
        let count = self.outputs.len();
        self.outputs.get_mut(output as usize).ok_or_else(|| {
            let message = format!("the shape function sets output {output} of {count}");
            KernelError::internal(message)
        })
    }

    pub(super) fn set_output(&mut self, output: u32, shape: ShapeId) -> Result<(), KernelError> {
        self.output(output)?.shape = Some(shape);
        Ok(())
    }

    pub(super) fn input_handle(&self, input: u32) -> &[(DType, ShapeId)] {
        self.inputs.get(input as usize).map_or(&[], |input| &input.handle)
    }

    pub(super) fn add_output_handle(
        &mut self,
        output: u32,
        dtype: DType,
        shape: ShapeId,
    ) -> Result<(), KernelError> {
        self.output(output)?.handle.push((dtype, shape));
        Ok(())
    }

    /// The outputs that the run has set.
    pub(super) fn outputs(&self) -> Result<Vec<ValueInfo>, KernelError> {
        if let Some(message) = &self.broken {
            return Err(KernelError::invalid_argument(message.clone()));
        }
        self.outputs.iter().enumerate().map(|(at, output)| self.export_output(at, output)).collect()
    }

    fn export_output(&self, at: usize, output: &Output) -> Result<ValueInfo, KernelError> {
        let shape = self.export(at, output.shape.unwrap_or(UNKNOWN))?;
        let handle = output
            .handle
            .iter()
            .map(|&(dtype, shape)| Ok(HandlePart { dtype, shape: self.export(at, shape)? }))
            .collect::<Result<_, KernelError>>()?;
        Ok(ValueInfo { shape, handle, ..ValueInfo::default() })
    }

    fn export(&self, at: usize, shape: ShapeId) -> Result<SymbolicShape, KernelError> {
        let Some(dims) = self.dims_of(shape) else { return Ok(SymbolicShape::UNKNOWN) };
        let foreign = || {
            let message = format!("output {at} has a dimension that is not of this run");
            KernelError::internal(message)
        };
        let dims = dims
            .iter()
            .map(|&dim| self.root(dim).map(|node| node.dim).ok_or_else(foreign))
            .collect::<Result<_, _>>()?;
        SymbolicShape::new(dims)
            .map_err(|error| KernelError::new(error.code(), format!("output {at}: {error}")))
    }
}
