//! Gradients, added to a graph.

use crate::{
    client::{graph::Graph, handle::Handle, status::Status, text::List},
    gradients::Asked,
    raw::{Array, Text},
};

api! {
    /// Adds nodes that compute the gradients of the sum of the tensors "ys" with respect to each of "xs". Returns the names of the
    /// gradients, in the order of "xs", which the caller deletes. "given" has the gradients of "ys", or is null for ones. "prefix"
    /// begins the names of the nodes, and no node of the graph has it; null for one that is chosen. It is an error if no path
    /// leads from an x to the ys, or an op on the path has no gradient; then nothing is added.
    fn tn_graph_gradients(
        graph: Handle<Graph>,
        prefix: Text<'_>,
        ys: Array<'_, Text<'_>>,
        y_count: usize,
        xs: Array<'_, Text<'_>>,
        x_count: usize,
        given: Array<'_, Text<'_>>,
        status: Option<&mut Status>,
    ) -> Handle<List> [status] {
        let graph = graph.get()?;
        let prefix = prefix.get().map(|_| prefix.required("the prefix")).transpose()?;
        let given_count = if given.is_null() { 0 } else { y_count };
        let asked = Asked {
            prefix,
            ys: &graph.outputs(ys, y_count, "a y")?,
            xs: &graph.outputs(xs, x_count, "an x")?,
            given: &graph.outputs(given, given_count, "a given gradient")?,
        };
        let made = asked.add(&graph.shared)?;
        let names = made.iter().map(|output| graph.name(output)).collect::<Result<Vec<_>, _>>()?;
        Ok(List::of(names))
    }
}
