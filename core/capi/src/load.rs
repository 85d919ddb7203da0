//! Sessions over saved models.

use crate::{
    buffer::{TF_Buffer, empty},
    fail::Failure,
    graph::{TF_Graph, shared},
    import::{TF_ImportGraphDefOptions, import_def},
    raw::{Array, Text},
    session::TF_Session,
    session_options::TF_SessionOptions,
    status::TF_Status,
};
use std::{ffi::c_int, time::Duration};
use tenon_import::SavedModel;
use tenon_proto::RunOptions;

/// Opens a session over the graph of a model that has these tags, and starts it.
fn load(
    options: Option<&TF_SessionOptions>,
    run_options: Option<&TF_Buffer>,
    folder: &str,
    tags: &[&str],
    graph: Option<&TF_Graph>,
    message: Option<&mut TF_Buffer>,
) -> Result<TF_Session, Failure> {
    let own = shared(graph)?;
    let message = message.map(|buffer| empty(Some(buffer))).transpose()?;
    let run_options: RunOptions =
        run_options.map(TF_Buffer::message).transpose()?.unwrap_or_default();
    let timeout = u64::try_from(run_options.timeout_in_ms).ok().filter(|&number| number > 0);
    let model = SavedModel::open(folder)?;
    let found = model.meta_graph(tags)?;
    import_def(own, found.graph()?.clone(), &TF_ImportGraphDefOptions::default())?;
    let session = TF_Session::new(graph, options)?;
    session.follow()?;
    let deadline = timeout.map(Duration::from_millis).or(session.timeout);
    found.start(session.place.session(), deadline)?;
    if let Some(buffer) = message {
        *buffer = TF_Buffer::of_message(found.message())?;
    }
    Ok(session)
}

api! {
    /// Opens a session over a saved model: imports the graph that has exactly these tags into `graph`, which is empty, restores the
    /// variables, and runs the initial op. `run_options` is a `RunOptions` or null; its `timeout_in_ms` is the limit of each of these
    /// steps. `message` is null or empty, and then gets the `MetaGraphDef`, with the signatures. Null if the model cannot be loaded;
    /// then `graph` may have nodes, and is to be deleted.
    fn TF_LoadSessionFromSavedModel(
        options: Option<&TF_SessionOptions>,
        run_options: Option<&TF_Buffer>,
        folder: Text<'_>,
        tags: Array<'_, Text<'_>>,
        tag_count: c_int,
        graph: Option<&TF_Graph>,
        message: Option<&mut TF_Buffer>,
        status: Option<&mut TF_Status>,
    ) -> Option<Box<TF_Session>> [status] {
        let folder = folder.required("the folder of the model")?;
        let tags = tags.checked(tag_count, "the tags of the graph")?.iter();
        let tags = tags.map(|tag| tag.required("a tag of the graph"));
        let tags = tags.collect::<Result<Vec<_>, _>>()?;
        load(options, run_options, folder, &tags, graph, message)
            .map(|session| Some(Box::new(session)))
    }
}
