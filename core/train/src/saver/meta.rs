//! The message beside a checkpoint: the graph, and what it has of variables and savers.

use crate::{TrainError, Variable, Variables};
use tenon_graph::GraphBuilder;
use tenon_proto::{
    BytesList, CollectionDef, CollectionDefKind, MetaGraphDef, MetaInfoDef, SaverDef, encode,
};

/// The graph that is built so far, with the collections `variables`, `trainable_variables` and `savers` as TensorFlow's.
///
/// # Errors
/// A node has an attribute that cannot be written to a message.
pub fn meta_graph(
    b: &GraphBuilder<'_>,
    variables: &Variables,
    saver: Option<&SaverDef>,
) -> Result<MetaGraphDef, TrainError> {
    let mut meta = MetaGraphDef {
        meta_info_def: Some(MetaInfoDef::default()),
        graph_def: Some(b.graph().to_graph_def()?),
        saver_def: saver.cloned(),
        ..MetaGraphDef::default()
    };
    let written =
        |variables: &mut dyn Iterator<Item = &Variable>| -> Result<Vec<Vec<u8>>, TrainError> {
            variables.map(|variable| Ok(encode(&variable.to_def(b))?)).collect()
        };
    add_collection(&mut meta, "variables", written(&mut variables.all().iter())?);
    add_collection(&mut meta, "trainable_variables", written(&mut variables.trainable())?);
    let savers = saver.map(encode).transpose()?;
    add_collection(&mut meta, "savers", savers.into_iter().collect());
    Ok(meta)
}

/// Adds encoded messages to a collection; none add nothing.
pub fn add_collection(meta: &mut MetaGraphDef, name: &str, messages: Vec<Vec<u8>>) {
    if messages.is_empty() {
        return;
    }
    let collection = meta.collection_def.entry(name.to_owned()).or_insert_with(|| CollectionDef {
        kind: Some(CollectionDefKind::BytesList(BytesList::default())),
    });
    if let Some(CollectionDefKind::BytesList(list)) = &mut collection.kind {
        list.value.extend(messages);
    }
}
