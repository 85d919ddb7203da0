//! Questions about whole graphs: operations by name and in order, shapes, messages.

use crate::{
    attr_set::shape,
    buffer::{TF_Buffer, give},
    fail::{Failure, Length},
    graph::{TF_Graph, shared},
    operation::{OpRef, TF_Output},
    raw::{Array, Out, Text, c_count},
    shapes::refine,
    status::TF_Status,
};
use std::ffi::c_int;
use tenon_framework::{Code, PartialShape};
use tenon_proto::convert::op_def_to_proto;

/// The shape of an output, as far as it is known.
fn shape_of(graph: Option<&TF_Graph>, output: TF_Output) -> Result<PartialShape, Failure> {
    let graph = shared(graph)?;
    let output = output.of(graph, "the tensor")?;
    Ok(graph.lock().shapes.shape(output))
}

api! {
    /// The operation of this name; null if there is none.
    fn TF_GraphOperationByName(graph: Option<&TF_Graph>, name: Text<'_>) -> Option<OpRef> {
        let (graph, name) = (shared(graph).ok()?, name.required("the name").ok()?);
        let state = graph.lock();
        Some(state.operation(state.graph.find(name)?))
    }

    /// The operation number `*position`, which is then incremented; null behind the last one.
    fn TF_GraphNextOperation(
        graph: Option<&TF_Graph>,
        position: Option<&mut usize>,
    ) -> Option<OpRef> {
        let position = position?;
        let found = shared(graph).ok()?.lock().operation_at(*position)?;
        *position += 1;
        Some(found)
    }

    /// Makes the shape of an output more exact. A dimension of -1 is unknown; a rank of -1 means that the rank is.
    fn TF_GraphSetTensorShape(
        graph: Option<&TF_Graph>,
        output: TF_Output,
        dims: Array<'_, i64>,
        rank: c_int,
        status: Option<&mut TF_Status>,
    ) [status] {
        let graph = shared(graph)?;
        let output = output.of(graph, "the tensor")?;
        let shape = shape(dims, rank)?;
        refine(&mut graph.lock().shapes, output, &shape)
    }

    /// The number of dimensions of an output; -1 if it is unknown, and after a failure.
    fn TF_GraphGetTensorNumDims(
        graph: Option<&TF_Graph>,
        output: TF_Output,
        status: Option<&mut TF_Status>,
    ) -> Length [status] {
        let rank = shape_of(graph, output)?.rank();
        Ok(Length(rank.map_or(-1, c_count)))
    }

    /// Writes the dimensions of an output, -1 for unknown ones. `rank` is their number.
    fn TF_GraphGetTensorShape(
        graph: Option<&TF_Graph>,
        output: TF_Output,
        dims: Out<'_, i64>,
        rank: c_int,
        status: Option<&mut TF_Status>,
    ) [status] {
        let shape = shape_of(graph, output)?;
        let Some(known) = shape.dims() else { return Ok(()) };
        if usize::try_from(rank).ok() != Some(known.len()) {
            return Err(Failure::invalid(format!(
                "the tensor has {} dimensions, expected room for as many, found {rank}",
                known.len()
            )));
        }
        dims.fill(rank, known.iter().copied());
        Ok(())
    }

    /// Writes the graph as a `GraphDef`.
    fn TF_GraphToGraphDef(
        graph: Option<&TF_Graph>,
        message: Option<&mut TF_Buffer>,
        status: Option<&mut TF_Status>,
    ) [status] {
        let def = shared(graph)?.lock().graph.to_graph_def()?;
        give(message, &def)
    }

    /// Writes the definition of an op, or of the op of a function of the graph, as an `OpDef`.
    fn TF_GraphGetOpDef(
        graph: Option<&TF_Graph>,
        name: Text<'_>,
        message: Option<&mut TF_Buffer>,
        status: Option<&mut TF_Status>,
    ) [status] {
        let (graph, name) = (shared(graph)?, name.required("the name of the op")?);
        if let Some(op) = graph.runtime()?.registry().op(name) {
            return give(message, &op_def_to_proto(op)?);
        }
        let state = graph.lock();
        let function = state.graph.function(name).and_then(|function| function.signature.as_ref());
        let signature = function.ok_or_else(|| {
            Failure::new(
                Code::NOT_FOUND,
                format!("op '{name}' is neither registered nor a function of the graph"),
            )
        })?;
        give(message, signature)
    }

    /// Writes the versions of the graph as a `VersionDef`.
    fn TF_GraphVersions(
        graph: Option<&TF_Graph>,
        message: Option<&mut TF_Buffer>,
        status: Option<&mut TF_Status>,
    ) [status] {
        let versions = shared(graph)?.lock().graph.versions().cloned().unwrap_or_default();
        give(message, &versions)
    }
}
