//! What a graph is fed: arrays of a file, or made-up elements of the shapes that the user or the graph gives.

use crate::{
    error::BenchError,
    wanted::{Shapes, dims_with},
};
use std::{collections::BTreeMap, path::Path};
use tenon_framework::{Tensor, attr::AttrValue};
use tenon_runtime::graph::{Graph, Node, Output};
use tenon_testkit::{
    archive::Archive,
    check::{Argument, Fill},
};

/// What the user gives for a graph.
#[derive(Debug, Clone, Default)]
pub struct GraphWish<'a> {
    /// Shapes of placeholders that leave theirs open.
    pub shapes: Shapes,
    /// Values of symbols in the shapes.
    pub symbols: BTreeMap<&'a str, i64>,
    /// Of the elements that are fed.
    pub seed: u64,
    /// Arrays: those named as placeholders are fed, the others are what the tensors of these names have to be.
    pub data: Option<&'a Path>,
    /// Whether what is fed is in memory that a device has pinned.
    pub pinned: bool,
}

/// Tensors for the placeholders.
///
/// # Errors
/// A placeholder without a shape, a shape for what is not a placeholder, an array that does not fit.
pub fn feeds(
    graph: &Graph,
    file: &Path,
    wish: &GraphWish<'_>,
) -> Result<Vec<(Output, Tensor)>, BenchError> {
    let error = |problem| BenchError::Graph { file: file.to_owned(), problem };
    let placeholders = || graph.nodes().filter(|(_, node)| is_fed(node));
    let is_one = |name: &str| placeholders().any(|(_, node)| node.name == name);
    if let Some((name, _)) = wish.shapes.named.iter().find(|(name, _)| !is_one(name)) {
        let known: Vec<&str> = placeholders().map(|(_, node)| node.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(error(format!("has no placeholder '{name}': its placeholders are {known}")));
    }
    let mut archive = wish.data.map(Archive::open).transpose()?;
    let mut fed = Vec::new();
    for (at, (id, node)) in placeholders().enumerate() {
        let dtype = node.outputs()[0];
        let array = archive.as_mut().filter(|archive| archive.has(&node.name));
        if let Some(archive) = array {
            let tensor = archive.tensor_of_any_shape(&node.name, Some(dtype))?;
            fed.push((Output::new(id, 0), tensor));
            continue;
        }
        let dims = placeholder_dims(node, wish).map_err(error)?;
        let fill = Fill::Uniform { low: 0.0, high: 1.0, seed: wish.seed.wrapping_add(at as u64) };
        let tensor = Argument { dtype, dims, fill, constant: false }.tensor();
        let tensor =
            tensor.map_err(|problem| error(format!("placeholder '{}': {problem}", node.name)))?;
        fed.push((Output::new(id, 0), tensor));
    }
    Ok(fed)
}

/// Whether a step feeds this node.
pub fn is_fed(node: &Node) -> bool {
    node.op.name == "Placeholder"
}

/// The arrays of the file that are not feeds: what is to come out, by the tensors' names.
///
/// # Errors
/// A file that cannot be read, an array whose name no tensor has.
pub fn expected(
    graph: &Graph,
    file: &Path,
    wish: &GraphWish<'_>,
) -> Result<Vec<(String, Tensor)>, BenchError> {
    let Some(data) = wish.data else { return Ok(Vec::new()) };
    let mut archive = Archive::open(data)?;
    let mut found = Vec::new();
    for name in archive.names() {
        let unknown = |_| {
            let data = data.display();
            let problem = format!(
                "has no tensor '{name}', which an array of {data} is named after: arrays are named as placeholders \
                 that they feed, or as tensors that they are the expected values of"
            );
            BenchError::Graph { file: file.to_owned(), problem }
        };
        let output = graph.tensor(&name).map_err(unknown)?;
        if !is_fed(graph.node(output.node)) {
            let tensor = archive.tensor_of_any_shape(&name, Some(graph.dtype(output)))?;
            found.push((name, tensor));
        }
    }
    Ok(found)
}

fn placeholder_dims(node: &Node, wish: &GraphWish<'_>) -> Result<Vec<i64>, String> {
    let name = &node.name;
    let named = wish.shapes.named.iter().find(|(known, _)| known == name);
    let given = named.and_then(|(_, dims)| dims.first()).or(wish.shapes.all.as_ref());
    if let Some(dims) = given {
        return dims_with(dims, &wish.symbols)
            .map_err(|problem| format!("shape of '{name}': {problem}"));
    }
    let Some(AttrValue::Shape(shape)) = node.attrs.get("shape") else {
        return Err(format!("placeholder '{name}' has no shape: give it by --shape {name}=SHAPE"));
    };
    let full = shape.full().map(|shape| shape.dims().to_vec());
    full.ok_or_else(|| {
        format!("placeholder '{name}' has shape {shape}: give its sizes by --shape {name}=SHAPE")
    })
}
