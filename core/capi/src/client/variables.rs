//! Variables of a graph, and what saves them.

use crate::{
    client::{
        graph::Graph,
        handle::Handle,
        info::{TypeNumber, dims as dimensions, dtype as dtype_of},
        session::Session,
        status::Status,
        text::List,
        versioned::{Flag, Options, Versioned},
    },
    fail::Failure,
    raw::{Array, Text},
};
use std::ffi::c_int;
use tenon_framework::DType;
use tenon_graph::Output;
use tenon_training::{Initial, Saver as Inner, SaverOptions as Settings, VariableOptions};

/// Saves the variables of a graph to checkpoints, and restores them.
pub struct Saver(Inner);

kept! { Saver => "a saver" }

/// Options of a saver. Zeros are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SaverOptions {
    /// sizeof(tn_saver_options).
    pub size: usize,
    /// How many of the newest checkpoints are kept; 0 for 5, -1 for all.
    pub max_to_keep: i32,
    /// Whether the variables of each device go to a file of their own.
    pub sharded: Flag,
    /// The prefix of the names of the saver's nodes; null for "save".
    pub scope: Text<'static>,
}

// SAFETY: `repr(C)`, the size comes first, and zeros are null pointers, numbers and false.
unsafe impl Versioned for SaverOptions {
    const NAME: &'static str = "tn_saver_options";
}

fn settings(options: &SaverOptions) -> Result<Settings, Failure> {
    let mut made = Settings { sharded: options.sharded != 0, ..Settings::default() };
    made.max_to_keep = match options.max_to_keep {
        0 => made.max_to_keep,
        -1 => 0,
        number => usize::try_from(number).map_err(|_| {
            Failure::invalid(format!("max_to_keep: expected -1 or more, found {number}"))
        })?,
    };
    let scope = options.scope.optional("scope")?;
    if !scope.is_empty() {
        scope.clone_into(&mut made.scope);
    }
    Ok(made)
}

/// The tensor with a variable's first value.
///
/// # Errors
/// The graph does not have it, or it is of another type, or of a shape that is known to be another one.
fn initial_value(graph: &Graph, name: &str, dtype: DType, dims: &[i64]) -> Result<Output, Failure> {
    let state = graph.shared.lock();
    let output = state.graph.tensor(name)?;
    let (found, shape) = (state.graph.dtype(output).base(), state.shapes.shape(output));
    let fits = |known: &[i64]| {
        let mut pairs = known.iter().zip(dims);
        known.len() == dims.len() && pairs.all(|(&known, &dim)| known < 0 || known == dim)
    };
    if found != dtype || !shape.dims().is_none_or(fits) {
        return Err(Failure::invalid(format!(
            "the initial value '{name}': expected {dtype} of shape {dims:?}, found {found} of shape {shape}"
        )));
    }
    Ok(output)
}

fn add_variable(
    graph: &Graph,
    name: &str,
    initial: &str,
    options: (DType, &[i64], &str, bool),
) -> Result<Vec<String>, Failure> {
    let (dtype, dims, device, is_trainable) = options;
    let initial = initial_value(graph, initial, dtype, dims)?;
    let options = VariableOptions { is_trainable, device: device.to_owned(), slice: None };
    let mut variables = graph.variables.lock();
    let made = graph.shared.build(|b| {
        // A list that gained a variable whose node was refused later would be wrong.
        let mut grown = variables.clone();
        let made = grown.add_with(b, name, dtype, dims, &Initial::Output(initial), options)?;
        let named = [made.handle, made.value].map(|output| b.graph().output_name(output));
        Ok((grown, named, b.graph().node(made.initializer).name.clone()))
    });
    let (grown, [handle, value], initializer) = made?;
    *variables = grown;
    Ok(vec![handle, value, initializer])
}

api! {
    /// Adds a variable, whose nodes have the names that TensorFlow gives them. "initial" is the tensor that gives its first value, of
    /// the same type and shape. "device" is a full or partial name, or null. Returns three names, which the caller deletes:
    /// the tensor with the variable's handle, which ops such as ResourceApplyGradientDescent take; the tensor with its value;
    /// and the node that sets its first value.
    fn tn_graph_add_variable(
        graph: Handle<Graph>,
        name: Text<'_>,
        dtype: TypeNumber,
        dims: Array<'_, i64>,
        rank: c_int,
        initial: Text<'_>,
        device: Text<'_>,
        trainable: Flag,
        status: Option<&mut Status>,
    ) -> Handle<List> [status] {
        let (graph, name) = (graph.get()?, name.required("the name of the variable")?);
        let initial = initial.required("the tensor with the initial value")?;
        let shape = dimensions(dims, rank)?;
        let options = (dtype_of(dtype)?, shape, device.optional("the device")?, trainable != 0);
        add_variable(&graph, name, initial, options).map(List::of)
    }

    /// The names of the variables that tn_graph_add_variable added. The caller deletes the list.
    fn tn_graph_variables(graph: Handle<Graph>, status: Option<&mut Status>) -> Handle<List> [status] {
        let graph = graph.get()?;
        let variables = graph.variables.lock();
        let names: Vec<String> = variables.all().iter().map(|it| it.name.clone()).collect();
        drop(variables);
        Ok(List::of(names))
    }

    /// Adds a node of this name that sets the first values of all variables that the graph has now.
    fn tn_graph_add_initializer(
        graph: Handle<Graph>,
        name: Text<'_>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let (graph, name) = (graph.get()?, name.required("the name of the node")?);
        let variables = graph.variables.lock();
        graph.shared.build(|b| Ok(variables.initializer(b, name)?))?;
        Ok(true)
    }

    /// Adds the nodes that save and restore all variables that the graph has now. "options" may be null. The caller deletes the
    /// saver.
    fn tn_saver_new(
        graph: Handle<Graph>,
        options: Options<'_, SaverOptions>,
        status: Option<&mut Status>,
    ) -> Handle<Saver> [status] {
        let (graph, options) = (graph.get()?, settings(&options.read()?)?);
        let variables = graph.variables.lock();
        let saver = graph.shared.build(|b| Ok(Inner::build(b, variables.all(), options)?))?;
        Ok(Handle::new(Saver(saver)))
    }

    /// Deletes a saver; its nodes and its checkpoints stay.
    fn tn_saver_delete(saver: Handle<Saver>) -> c_int { saver.delete() }

    /// Writes a checkpoint of the form of TensorFlow's, with the files PREFIX-STEP.index and PREFIX-STEP.data-..., and notes it in the
    /// file "checkpoint" of its folder. A negative step leaves "-STEP" out. Older checkpoints than those to keep are deleted.
    /// Returns a list with the prefix of the checkpoint, which the caller deletes.
    fn tn_saver_save(
        saver: Handle<Saver>,
        session: Handle<Session>,
        prefix: Text<'_>,
        step: i64,
        status: Option<&mut Status>,
    ) -> Handle<List> [status] {
        let (saver, session) = (saver.get()?, session.get()?);
        let prefix = prefix.required("the prefix of the checkpoint")?;
        session.ready()?;
        let step = (step >= 0).then_some(step);
        let made = saver.0.save(session.inner.place.session(), prefix, step)?;
        Ok(List::of([made.display().to_string()]))
    }

    /// Restores all variables of the saver from the checkpoint with this prefix.
    fn tn_saver_restore(
        saver: Handle<Saver>,
        session: Handle<Session>,
        prefix: Text<'_>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let (saver, session) = (saver.get()?, session.get()?);
        let prefix = prefix.required("the prefix of the checkpoint")?;
        session.ready()?;
        saver.0.restore(session.inner.place.session(), prefix)?;
        Ok(true)
    }

    /// The prefixes of the checkpoints that the saver keeps, the newest last. The caller deletes the list.
    fn tn_saver_checkpoints(saver: Handle<Saver>, status: Option<&mut Status>) -> Handle<List> [status] {
        let kept = saver.get()?.0.checkpoints();
        Ok(List::of(kept.iter().map(|path| path.display().to_string())))
    }
}
