//! The forward loop, which records what its gradient reads.

use super::{Recorded, constant, element_shape, scalar_shape};
use crate::{
    GradientError,
    body::Extract,
    calls::{CallSite, types},
    engine::Engine,
    reuse::Loop,
};
use tenon_framework::{
    DType, KernelError, PartialShape, Tensor,
    attr::{AttrList, AttrMap, AttrValue, FuncValue},
    tensor::TensorError,
};
use tenon_graph::{Output, definition};

impl<'r> Engine<'_, 'r> {
    /// Adds a constant that belongs to the gradient of a node.
    fn beside(
        &mut self,
        near: &str,
        name: &str,
        value: Result<Tensor, TensorError>,
    ) -> Result<Output, GradientError> {
        let value = value.map_err(|error| KernelError::new(error.code(), error.to_string()))?;
        let name = self.name_in(near, name);
        Ok(self.constant(&name, value)?)
    }

    /// Lets a loop count its iterations, and record the values that its gradient reads.
    pub(super) fn record(
        &mut self,
        site: &CallSite<'_>,
        found: &Loop<'r>,
        [cond, body]: [FuncValue; 2],
    ) -> Result<Recorded, GradientError> {
        let node = site.node;
        let mut inputs = node.inputs.clone();
        inputs.push(self.beside(&node.name, "count", Tensor::scalar(0i32))?);
        for &tensor in &found.listed {
            let shape = element_shape(&found.body.shape(tensor));
            let shape = self.beside(&node.name, "list/shape", shape)?;
            let most = self.beside(&node.name, "list/most", Tensor::scalar(-1i32))?;
            let dtype = AttrValue::Type(found.body.dtype(tensor));
            let attrs = AttrMap::from([("element_dtype".to_owned(), dtype)]);
            let name = self.name_in(&node.name, "list");
            inputs.push(self.add(&name, "EmptyTensorList", &[shape, most], attrs)?.into());
        }
        let mut attrs = node.attrs.attrs().clone();
        let dtypes = inputs.iter().map(|&input| self.b.graph().dtype(input).base());
        attrs.insert("T".to_owned(), types(dtypes));
        attrs.insert("cond".to_owned(), AttrValue::Func(cond));
        attrs.insert("body".to_owned(), AttrValue::Func(body));
        if let Some(AttrValue::List(AttrList::Shape(shapes))) = attrs.get("output_shapes")
            && !shapes.is_empty()
        {
            let mut shapes = shapes.clone();
            shapes.resize(inputs.len(), PartialShape::UNKNOWN);
            let shapes = AttrValue::List(AttrList::Shape(shapes));
            attrs.insert("output_shapes".to_owned(), shapes);
        }
        self.replace(site.id, &node.op.name, &inputs, attrs)?;
        let first = node.inputs.len() as u32;
        let output = |at: u32| Output::new(site.id, at);
        let lists = (first + 1..).take(found.listed.len()).map(output).collect();
        Ok(Recorded { count: output(first), lists })
    }

    /// The condition, of a loop with further variables.
    pub(super) fn recording_cond(
        &mut self,
        site: &CallSite<'_>,
        found: &Loop<'r>,
    ) -> Result<FuncValue, GradientError> {
        let callee = definition(self.b.graph(), self.b.registry(), site.node, &found.cond)?;
        let mut part = Extract::new(self.b.registry(), &callee.graph);
        for &arg in &callee.args {
            part.arg(arg, &PartialShape::UNKNOWN)?;
        }
        part.free_arg(DType::INT32, &scalar_shape())?;
        for _ in &found.listed {
            part.free_arg(DType::VARIANT, &scalar_shape())?;
        }
        let ids = callee.graph.nodes().map(|(id, _)| id);
        let own: Vec<_> = ids.filter(|&id| !callee.args.iter().any(|arg| arg.node == id)).collect();
        part.copy(&own);
        let results: Vec<Output> =
            callee.returns.iter().map(|&result| part.tensor(result)).collect();
        self.define_part(&found.cond.name, "forward", part, &results)
    }

    /// The body, which counts and appends to the lists.
    pub(super) fn recording_body(&mut self, found: &Loop<'r>) -> Result<FuncValue, GradientError> {
        let body = &found.body;
        let mut part = body.forward_part()?;
        let count = part.free_arg(DType::INT32, &scalar_shape())?;
        let one = constant(part.builder(), Tensor::scalar(1i32))?;
        let mut results: Vec<Output> =
            body.returns.iter().map(|&result| part.tensor(result)).collect();
        results.push(part.builder().op("AddV2").input(count).input(one).build()?.into());
        for &tensor in &found.listed {
            let list = part.free_arg(DType::VARIANT, &scalar_shape())?;
            let value = part.tensor(tensor);
            let push = part.builder().op("TensorListPushBack").input(list).input(value);
            results.push(push.build()?.into());
        }
        let effects = body.effects_in(&part);
        let name = self.function_name(&found.name, "forward");
        let args = std::mem::take(&mut part.args);
        self.b.define_with(&name, &part.finish(), &args, &results, &effects)?;
        Ok(FuncValue { name, ..FuncValue::default() })
    }
}
