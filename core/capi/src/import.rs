//! Importing `GraphDef` messages into a graph.

use crate::{
    buffer::TF_Buffer,
    fail::Failure,
    graph::{Shared, State, TF_Graph, shared},
    import_names::{Imported, Plan, rewrite},
    operation::{OpRef, TF_Output, node_of},
    raw::{Out, Text, c_count},
    status::{TF_Status, c_text},
};
use std::{
    collections::BTreeMap,
    ffi::{CString, c_char, c_int},
};
use tenon_proto::{GraphDef, MAX_MESSAGE_BYTES, versions::merged_versions};

/// Options of an import.
#[derive(Default, Clone)]
pub struct TF_ImportGraphDefOptions {
    /// Without what is mapped, which `mapped` and `after` have.
    pub(crate) plan: Plan,
    pub(crate) mapped: BTreeMap<(String, c_int), TF_Output>,
    after: Vec<Option<OpRef>>,
    return_outputs: Vec<(String, c_int)>,
    return_operations: Vec<String>,
    /// The first thing that was wrong with an option.
    failure: Option<Failure>,
}

/// What an import gave.
#[derive(Default)]
pub struct TF_ImportGraphDefResults {
    outputs: Vec<TF_Output>,
    operations: Vec<OpRef>,
    /// Mapped inputs that no node of the message reads, and that no node of it gives.
    missing_names: Vec<CString>,
    missing_pointers: Vec<*const c_char>,
    missing_indexes: Vec<c_int>,
}

impl TF_ImportGraphDefOptions {
    /// The changes that the options ask for.
    ///
    /// # Errors
    /// Something that replaces an input is not of this graph.
    fn plan(&self, graph: &Shared) -> Result<Plan, Failure> {
        let mut plan = self.plan.clone();
        for ((name, index), to) in &self.mapped {
            let what = format!("the replacement of '{name}:{index}'");
            let id = match index {
                -1 => node_of(to.oper, graph, &what)?,
                _ => to.of(graph, &what)?.node,
            };
            let to_name = graph.lock().graph.node(id).name.clone();
            plan.inputs.insert((name.clone(), *index), (to_name, to.index));
        }
        for &oper in &self.after {
            let id = node_of(oper, graph, "what imported nodes wait for")?;
            plan.control.push(graph.lock().graph.node(id).name.clone());
        }
        Ok(plan)
    }

    fn set<T>(&mut self, value: Result<T, Failure>, set: impl FnOnce(&mut Self, T)) {
        match value {
            Ok(value) => set(self, value),
            Err(failure) => self.failure = self.failure.take().or(Some(failure)),
        }
    }
}

impl TF_ImportGraphDefResults {
    fn of(
        state: &State,
        options: &TF_ImportGraphDefOptions,
        plan: &Plan,
        imported: &Imported,
    ) -> Result<TF_ImportGraphDefResults, Failure> {
        let mut results = TF_ImportGraphDefResults::default();
        for (name, index) in &options.return_outputs {
            let mapped = options.mapped.get(&(name.clone(), *index));
            results.outputs.push(match mapped {
                Some(mapped) => *mapped,
                None => state.output(imported.find(&state.graph, name, *index)?),
            });
        }
        for name in &options.return_operations {
            let id = imported.node(&state.graph, name).ok_or_else(|| {
                Failure::invalid(format!(
                    "the graph that is imported has no node '{name}' to return"
                ))
            })?;
            results.operations.push(state.operation(id));
        }
        for (name, index) in imported.missing(&state.graph, plan) {
            results.missing_names.push(c_text(&name));
            results.missing_indexes.push(index);
        }
        let pointers = results.missing_names.iter().map(|name| name.as_ptr());
        results.missing_pointers = pointers.collect();
        Ok(results)
    }
}

/// Imports a message.
fn import(
    graph: Option<&TF_Graph>,
    message: Option<&TF_Buffer>,
    options: Option<&TF_ImportGraphDefOptions>,
) -> Result<TF_ImportGraphDefResults, Failure> {
    let graph = shared(graph)?;
    let message = message.ok_or_else(|| Failure::null("the buffer with the graph"))?;
    if message.length > MAX_MESSAGE_BYTES {
        return Err(Failure::invalid(format!(
            "a graph of {} bytes: expected {MAX_MESSAGE_BYTES} at most",
            message.length
        )));
    }
    let def: GraphDef = message.message()?;
    let given = options.cloned().unwrap_or_default();
    if let Some(failure) = &given.failure {
        return Err(failure.clone());
    }
    import_def(graph, def, &given)
}

/// Imports a graph.
///
/// # Errors
/// The graph is refused, and then the graph that it was to become a part of is unchanged.
pub(crate) fn import_def(
    graph: &Shared,
    def: GraphDef,
    options: &TF_ImportGraphDefOptions,
) -> Result<TF_ImportGraphDefResults, Failure> {
    let plan = options.plan(graph)?;
    let mut imported = None;
    graph.change(|graph, registry| {
        let (mut def, names) = rewrite(graph, def, &plan, registry)?;
        names.check_returns(&plan, &options.return_outputs, &options.return_operations)?;
        // The nodes are read as their producer wrote them; then the graph is as old as its oldest part.
        let found = def.versions.get_or_insert_default().clone();
        let versions = merged_versions(graph.versions(), &found);
        graph.set_versions(found);
        graph.extend_owned(def, registry)?;
        graph.set_versions(versions);
        names.check_outputs(graph, &plan, &options.return_outputs)?;
        imported = Some(names);
        Ok(())
    })?;
    let imported = imported.unwrap_or_default();
    TF_ImportGraphDefResults::of(&graph.lock(), options, &plan, &imported)
}

/// Imports a message whose names a plan changes, as a part of a larger change of a graph. Returns how names were changed.
pub(crate) fn import_part(
    graph: &mut tenon_graph::Graph,
    def: GraphDef,
    plan: &Plan,
    registry: &tenon_framework::registry::Registry,
) -> Result<Imported, Failure> {
    let (mut def, names) = rewrite(graph, def, plan, registry)?;
    def.versions = None;
    graph.extend_owned(def, registry)?;
    Ok(names)
}

api! {
    /// Makes options without effect.
    fn TF_NewImportGraphDefOptions() -> Option<Box<TF_ImportGraphDefOptions>> { Some(Box::default()) }

    /// Deletes options.
    fn TF_DeleteImportGraphDefOptions(options: Option<Box<TF_ImportGraphDefOptions>>) { drop(options) }

    /// Puts this and a slash before the names of all imported nodes.
    fn TF_ImportGraphDefOptionsSetPrefix(
        options: Option<&mut TF_ImportGraphDefOptions>,
        prefix: Text<'_>,
    ) {
        let Some(options) = options else { return };
        options.set(prefix.optional("the prefix"), |options, prefix| {
            prefix.clone_into(&mut options.plan.prefix);
        });
    }

    /// The device of imported nodes that request none.
    fn TF_ImportGraphDefOptionsSetDefaultDevice(
        options: Option<&mut TF_ImportGraphDefOptions>,
        device: Text<'_>,
    ) {
        let Some(options) = options else { return };
        options.set(device.optional("the device"), |options, device| {
            device.clone_into(&mut options.plan.device);
        });
    }

    /// Whether names that the graph has already get a number behind them.
    fn TF_ImportGraphDefOptionsSetUniquifyNames(
        options: Option<&mut TF_ImportGraphDefOptions>,
        uniquify: u8,
    ) {
        if let Some(options) = options {
            options.plan.uniquify_names = uniquify != 0;
        }
    }

    /// Whether a prefix that the graph has already gets a number behind it.
    fn TF_ImportGraphDefOptionsSetUniquifyPrefix(
        options: Option<&mut TF_ImportGraphDefOptions>,
        uniquify: u8,
    ) {
        if let Some(options) = options {
            options.plan.uniquify_prefix = uniquify != 0;
        }
    }

    /// Makes imported nodes that read an output of a node of the message read `to` instead; index -1 is the node itself, for those
    /// that wait for it.
    fn TF_ImportGraphDefOptionsAddInputMapping(
        options: Option<&mut TF_ImportGraphDefOptions>,
        name: Text<'_>,
        index: c_int,
        to: TF_Output,
    ) {
        let Some(options) = options else { return };
        options.set(name.required("the name of a node"), |options, name| {
            options.mapped.insert((name.to_owned(), index), to);
        });
    }

    /// Makes imported nodes that wait for a node of the message wait for `to` instead.
    fn TF_ImportGraphDefOptionsRemapControlDependency(
        options: Option<&mut TF_ImportGraphDefOptions>,
        name: Text<'_>,
        to: Option<OpRef>,
    ) {
        let Some(options) = options else { return };
        options.set(name.required("the name of a node"), |options, name| {
            options.mapped.insert((name.to_owned(), -1), TF_Output { oper: to, index: -1 });
        });
    }

    /// Makes imported nodes wait for an operation of the graph. Those that follow others of the message do so by these.
    fn TF_ImportGraphDefOptionsAddControlDependency(
        options: Option<&mut TF_ImportGraphDefOptions>,
        oper: Option<OpRef>,
    ) {
        if let Some(options) = options {
            options.after.push(oper);
        }
    }

    /// Adds an output of a node of the message to those that the import returns.
    fn TF_ImportGraphDefOptionsAddReturnOutput(
        options: Option<&mut TF_ImportGraphDefOptions>,
        name: Text<'_>,
        index: c_int,
    ) {
        let Some(options) = options else { return };
        options.set(name.required("the name of a node"), |options, name| {
            options.return_outputs.push((name.to_owned(), index));
        });
    }

    /// The number of outputs that the import returns.
    fn TF_ImportGraphDefOptionsNumReturnOutputs(options: Option<&TF_ImportGraphDefOptions>) -> c_int {
        options.map_or(0, |options| c_count(options.return_outputs.len()))
    }

    /// Adds a node of the message to those that the import returns.
    fn TF_ImportGraphDefOptionsAddReturnOperation(
        options: Option<&mut TF_ImportGraphDefOptions>,
        name: Text<'_>,
    ) {
        let Some(options) = options else { return };
        options.set(name.required("the name of a node"), |options, name| {
            options.return_operations.push(name.to_owned());
        });
    }

    /// The number of nodes that the import returns.
    fn TF_ImportGraphDefOptionsNumReturnOperations(options: Option<&TF_ImportGraphDefOptions>) -> c_int {
        options.map_or(0, |options| c_count(options.return_operations.len()))
    }

    /// The returned outputs, which stay as long as the results.
    fn TF_ImportGraphDefResultsReturnOutputs(
        results: Option<&TF_ImportGraphDefResults>,
        count: Out<'_, c_int>,
        outputs: Out<'_, *const TF_Output>,
    ) {
        let Some(results) = results else { return };
        count.set(c_count(results.outputs.len()));
        outputs.set(results.outputs.as_ptr());
    }

    /// The returned operations, in an array that stays as long as the results.
    fn TF_ImportGraphDefResultsReturnOperations(
        results: Option<&TF_ImportGraphDefResults>,
        count: Out<'_, c_int>,
        operations: Out<'_, *const OpRef>,
    ) {
        let Some(results) = results else { return };
        count.set(c_count(results.operations.len()));
        operations.set(results.operations.as_ptr());
    }

    /// The mapped inputs that the message does not have, in arrays that stay as long as the results.
    fn TF_ImportGraphDefResultsMissingUnusedInputMappings(
        results: Option<&TF_ImportGraphDefResults>,
        count: Out<'_, c_int>,
        names: Out<'_, *const *const c_char>,
        indexes: Out<'_, *const c_int>,
    ) {
        let Some(results) = results else { return };
        count.set(c_count(results.missing_names.len()));
        names.set(results.missing_pointers.as_ptr());
        indexes.set(results.missing_indexes.as_ptr());
    }

    /// Deletes results.
    fn TF_DeleteImportGraphDefResults(results: Option<Box<TF_ImportGraphDefResults>>) { drop(results) }

    /// Imports a `GraphDef`; null if it is refused, and then the graph is unchanged.
    fn TF_GraphImportGraphDefWithResults(
        graph: Option<&TF_Graph>,
        message: Option<&TF_Buffer>,
        options: Option<&TF_ImportGraphDefOptions>,
        status: Option<&mut TF_Status>,
    ) -> Option<Box<TF_ImportGraphDefResults>> [status] {
        import(graph, message, options).map(|results| Some(Box::new(results)))
    }

    /// Imports a `GraphDef`, and writes the outputs that the options return, `count` in number.
    fn TF_GraphImportGraphDefWithReturnOutputs(
        graph: Option<&TF_Graph>,
        message: Option<&TF_Buffer>,
        options: Option<&TF_ImportGraphDefOptions>,
        outputs: Out<'_, TF_Output>,
        count: c_int,
        status: Option<&mut TF_Status>,
    ) [status] {
        let expected = options.map_or(0, |options| options.return_outputs.len());
        if usize::try_from(count).ok() != Some(expected) {
            return Err(Failure::invalid(format!(
                "the options return {expected} outputs: expected room for as many, found {count}"
            )));
        }
        if expected > 0 && outputs.is_null() {
            return Err(Failure::null("the array of returned outputs"));
        }
        outputs.fill(count, import(graph, message, options)?.outputs);
        Ok(())
    }

    /// Imports a `GraphDef`.
    fn TF_GraphImportGraphDef(
        graph: Option<&TF_Graph>,
        message: Option<&TF_Buffer>,
        options: Option<&TF_ImportGraphDefOptions>,
        status: Option<&mut TF_Status>,
    ) [status] {
        import(graph, message, options).map(drop)
    }
}
