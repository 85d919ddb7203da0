//! While loops: two graphs, of the condition and of the body, that become a loop in a third.
//!
//! A loop has, for each of its values, an `Enter`, a `Merge`, a `Switch`, a `NextIteration` and an `Exit`; the nodes of the condition
//! read the `Merge`s, and those of the body what the `Switch`es let through.

use crate::{
    fail::{Failure, Fallback},
    graph::{Parent, Shared, TF_Graph, shared},
    import::import_part,
    import_names::Plan,
    operation::TF_Output,
    raw::{Array, Out, Text, c_count},
    status::TF_Status,
};
use std::{collections::HashSet, ffi::c_int, ptr, slice, sync::Arc};
use tenon_framework::{DType, registry::Registry};
use tenon_graph::{Graph, GraphBuilder, GraphError, NodeId, Output};
use tenon_proto::GraphDef;

/// A loop under construction, whose layout is public.
#[repr(C)]
pub struct TF_WhileParams {
    /// The number of values.
    pub ninputs: c_int,
    /// The graph of the condition.
    pub cond_graph: *mut TF_Graph,
    /// Its inputs, placeholders for the values.
    pub cond_inputs: *const TF_Output,
    /// Its result, which the user sets.
    pub cond_output: TF_Output,
    /// The graph of the body.
    pub body_graph: *mut TF_Graph,
    /// Its inputs, placeholders for the values.
    pub body_inputs: *const TF_Output,
    /// The values of the next iteration, which the user sets.
    pub body_outputs: *mut TF_Output,
    /// The name of the loop, which the user sets and keeps.
    pub name: Text<'static>,
}

impl Fallback for TF_WhileParams {
    fn fallback() -> TF_WhileParams {
        TF_WhileParams {
            ninputs: 0,
            cond_graph: ptr::null_mut(),
            cond_inputs: ptr::null(),
            cond_output: TF_Output::NONE,
            body_graph: ptr::null_mut(),
            body_inputs: ptr::null(),
            body_outputs: ptr::null_mut(),
            name: Text::NULL,
        }
    }
}

/// A graph with a placeholder for each value.
fn part(
    parent: &Arc<Shared>,
    inputs: &[TF_Output],
    prefix: &str,
) -> Result<(TF_Graph, Vec<TF_Output>), Failure> {
    let graph = Shared::new(None);
    let mut placeholders = Vec::with_capacity(inputs.len());
    for (at, input) in inputs.iter().enumerate() {
        let source = input.of(parent, "a value of the loop")?;
        let state = parent.lock();
        let (dtype, shape) = (state.graph.dtype(source).base(), state.shapes.shape(source));
        drop(state);
        let name = format!("{prefix}{at}");
        let oper = graph.append(|builder| {
            let node = builder.op("Placeholder").name(&name);
            Ok(node.attr("dtype", dtype).attr("shape", shape).checked()?.0)
        })?;
        placeholders.push(TF_Output::new(oper, 0));
    }
    let parent = Parent { graph: Arc::clone(parent), inputs: inputs.to_vec() };
    Ok((TF_Graph { shared: graph, parent: Some(parent) }, placeholders))
}

fn leak<T>(values: Vec<T>) -> *mut T {
    Box::into_raw(values.into_boxed_slice()).cast()
}

fn begin(graph: Option<&TF_Graph>, inputs: &[TF_Output]) -> Result<TF_WhileParams, Failure> {
    let graph = shared(graph)?;
    if inputs.is_empty() {
        return Err(Failure::invalid("a loop has one value at least, found none"));
    }
    let (cond, cond_inputs) = part(graph, inputs, "cond_input")?;
    let (body, body_inputs) = part(graph, inputs, "body_input")?;
    let body_outputs = vec![TF_Output::NONE; inputs.len()];
    Ok(TF_WhileParams {
        ninputs: c_count(inputs.len()),
        cond_graph: Box::into_raw(Box::new(cond)),
        cond_inputs: leak(cond_inputs),
        body_graph: Box::into_raw(Box::new(body)),
        body_inputs: leak(body_inputs),
        body_outputs: leak(body_outputs),
        ..TF_WhileParams::fallback()
    })
}

/// Frees what [`begin`] made.
///
/// # Safety
/// `begin` gave the parameters, and nothing of them is used afterwards.
unsafe fn free(params: &TF_WhileParams) {
    let count = usize::try_from(params.ninputs).unwrap_or(0);
    if params.cond_graph.is_null() || params.body_graph.is_null() {
        return;
    }
    for values in
        [params.cond_inputs.cast_mut(), params.body_inputs.cast_mut(), params.body_outputs]
    {
        // SAFETY: `leak` made it of a slice of as many values.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(values, count)) });
    }
    for graph in [params.cond_graph, params.body_graph] {
        // SAFETY: `begin` made it of a box.
        drop(unsafe { Box::from_raw(graph) });
    }
}

/// A loop that is complete.
struct Loop<'a> {
    name: &'a str,
    parent: &'a Arc<Shared>,
    inputs: Vec<Output>,
    cond: Part,
    body: Part,
}

/// The condition or the body, as it was when the loop was finished: no lock is held on its graph while that of the loop is.
struct Part {
    what: &'static str,
    /// The nodes but the placeholders.
    def: GraphDef,
    /// The names of the placeholders.
    inputs: Vec<String>,
    results: Vec<PartResult>,
}

/// A result of a part: an output of a node, or a placeholder.
struct PartResult {
    node: String,
    index: c_int,
    dtype: DType,
}

impl Part {
    fn of(
        what: &'static str,
        graph: &TF_Graph,
        inputs: &[TF_Output],
        results: &[TF_Output],
    ) -> Result<Part, Failure> {
        let name = |output: &TF_Output| Some(output.oper.as_ref()?.node.name.clone());
        let inputs: Vec<String> = inputs.iter().filter_map(name).collect();
        let placeholders: HashSet<&String> = inputs.iter().collect();
        let result = format!("a result of the loop's {what}");
        let state = graph.shared.lock();
        let results = results.iter().map(|output| {
            let found = output.of(&graph.shared, &result)?;
            Ok(PartResult {
                node: state.graph.node(found.node).name.clone(),
                index: output.index,
                dtype: state.graph.dtype(found).base(),
            })
        });
        let results = results.collect::<Result<Vec<_>, Failure>>()?;
        let mut def = state.graph.to_graph_def()?;
        def.node.retain(|node| !placeholders.contains(&node.name));
        Ok(Part { what, def, inputs, results })
    }

    /// Copies the nodes into the graph of the loop. `values` replace the placeholders, and nodes that read none of them wait for the
    /// first. Returns the results.
    fn copy(
        &self,
        graph: &mut Graph,
        registry: &Registry,
        name: &str,
        values: &[Output],
    ) -> Result<Vec<Output>, Failure> {
        let mut plan = Plan {
            prefix: format!("{name}/{}", self.what),
            uniquify_prefix: true,
            ..Plan::default()
        };
        for (input, value) in self.inputs.iter().zip(values) {
            let to = graph.node(value.node).name.clone();
            plan.inputs.insert((input.clone(), -1), (to.clone(), -1));
            plan.inputs.insert((input.clone(), 0), (to, value.output as c_int));
        }
        plan.control.extend(values.first().map(|value| graph.node(value.node).name.clone()));
        let names = import_part(graph, self.def.clone(), &plan, registry)?;
        let found = self.results.iter().map(|result| {
            match self.inputs.iter().position(|input| *input == result.node) {
                Some(at) => Ok(values[at]),
                None => names.find(graph, &result.node, result.index),
            }
        });
        found.collect()
    }
}

/// Adds nodes, by a builder that continues a graph.
fn add<T>(
    graph: &mut Graph,
    registry: &Registry,
    scope: &str,
    build: impl FnOnce(&mut GraphBuilder<'_>) -> Result<T, GraphError>,
) -> Result<T, Failure> {
    let mut builder = GraphBuilder::extending(std::mem::take(graph), registry);
    let built = builder.with_name_scope(scope, build);
    *graph = builder.finish();
    Ok(built?)
}

impl Loop<'_> {
    fn check(&self) -> Result<(), Failure> {
        let condition = self.cond.results[0].dtype;
        if condition != DType::BOOL {
            return Err(Failure::invalid(format!(
                "loop '{}': expected a bool as the result of the condition, found {condition}",
                self.name
            )));
        }
        let state = self.parent.lock();
        for (at, (&input, result)) in self.inputs.iter().zip(&self.body.results).enumerate() {
            let (expected, found) = (state.graph.dtype(input).base(), result.dtype);
            if expected != found {
                return Err(Failure::invalid(format!(
                    "loop '{}': value {at} is {expected}, and the body makes it {found}",
                    self.name
                )));
            }
        }
        Ok(())
    }

    /// Adds the loop to its graph; returns its last values.
    fn finish(&self) -> Result<Vec<TF_Output>, Failure> {
        self.check()?;
        let exits = self.parent.change(|graph, registry| self.build(graph, registry))?;
        let state = self.parent.lock();
        Ok(exits.into_iter().map(|exit| state.output(exit.into())).collect())
    }

    fn build(&self, graph: &mut Graph, registry: &Registry) -> Result<Vec<NodeId>, Failure> {
        let taken = |name: &str| {
            let inside = format!("{name}/");
            graph.nodes().any(|(_, node)| node.name == name || node.name.starts_with(&inside))
        };
        let mut names = (1u64..).map(|number| format!("{}_{number}", self.name));
        let scope = match taken(self.name) {
            false => self.name.to_owned(),
            true => names.find(|name| !taken(name)).unwrap_or_default(),
        };
        let merges = add(graph, registry, &scope, |b| {
            let enters = self.inputs.iter().map(|&input| {
                let enter = b.op("Enter").input(input).attr("frame_name", scope.as_str());
                enter.attr("is_constant", false).attr("parallel_iterations", 10i64).build()
            });
            let enters = enters.collect::<Result<Vec<_>, _>>()?;
            // The second input is put in its place when the loop is closed.
            enters
                .into_iter()
                .map(|enter| b.op("Merge").input(enter).input(enter).build())
                .collect::<Result<Vec<_>, _>>()
        })?;
        let values: Vec<Output> = merges.iter().map(|&merge| merge.into()).collect();
        let condition = self.cond.copy(graph, registry, &scope, &values)?[0];
        let (kept, switches) = add(graph, registry, &scope, |b| {
            let condition = b.op("LoopCond").input(condition).build()?;
            let switches =
                values.iter().map(|&value| b.op("Switch").input(value).input(condition).build());
            let switches = switches.collect::<Result<Vec<_>, _>>()?;
            let kept = switches.iter().map(|&switch| {
                let passed = b.op("Identity").input(Output::new(switch, 1)).build();
                passed.map(Output::from)
            });
            Ok((kept.collect::<Result<Vec<_>, _>>()?, switches))
        })?;
        let results = self.body.copy(graph, registry, &scope, &kept)?;
        add(graph, registry, &scope, |b| {
            for (&merge, &result) in merges.iter().zip(&results) {
                let next = b.op("NextIteration").input(result).build()?;
                b.back_edge(merge, 1, next)?;
            }
            switches.iter().map(|&switch| b.op("Exit").input(switch).build()).collect()
        })
    }
}

fn finish(params: &TF_WhileParams) -> Result<Vec<TF_Output>, Failure> {
    // SAFETY: the caller in C gave parameters that `TF_NewWhile` made.
    let (cond, body) = unsafe { (params.cond_graph.as_ref(), params.body_graph.as_ref()) };
    let (Some(cond), Some(body)) = (cond, body) else {
        return Err(Failure::null("a graph of the loop"));
    };
    let parent = cond.parent.as_ref().ok_or_else(|| Failure::invalid("the loop has no parent"))?;
    let name = params.name.required("the name of the loop")?;
    let count = usize::try_from(params.ninputs).unwrap_or(0);
    // SAFETY: `begin` made arrays of as many values.
    let [cond_inputs, body_inputs, results] = unsafe {
        [params.cond_inputs, params.body_inputs, params.body_outputs.cast_const()]
            .map(|values| slice::from_raw_parts(values, count))
    };
    let inputs = parent.inputs.iter().map(|input| input.of(&parent.graph, "a value of the loop"));
    let complete = Loop {
        name,
        parent: &parent.graph,
        inputs: inputs.collect::<Result<_, _>>()?,
        cond: Part::of("cond", cond, cond_inputs, slice::from_ref(&params.cond_output))?,
        body: Part::of("body", body, body_inputs, results)?,
    };
    complete.finish()
}

api! {
    /// Begins a loop over these first values. The user builds the graphs of the parameters, sets the results, and calls
    /// `TF_FinishWhile` or `TF_AbortWhile`.
    fn TF_NewWhile(
        graph: Option<&TF_Graph>,
        inputs: Array<'_, TF_Output>,
        count: c_int,
        status: Option<&mut TF_Status>,
    ) -> TF_WhileParams [status] {
        begin(graph, inputs.checked(count, "the values of the loop")?)
    }

    /// Adds the loop to its graph and writes its last values. Frees what the parameters contain, also if the loop is refused.
    fn TF_FinishWhile(
        params: Option<&TF_WhileParams>,
        status: Option<&mut TF_Status>,
        outputs: Out<'_, TF_Output>,
    ) [status] {
        let params = params.ok_or_else(|| Failure::null("the parameters of the loop"))?;
        let finished = finish(params);
        // SAFETY: the parameters came from `TF_NewWhile`, and the user no longer uses what they contain.
        unsafe { free(params) };
        outputs.fill(params.ninputs, finished?);
        Ok(())
    }

    /// Frees what the parameters of a loop contain.
    fn TF_AbortWhile(params: Option<&TF_WhileParams>) {
        if let Some(params) = params {
            // SAFETY: the parameters came from `TF_NewWhile`, and the user no longer uses what they contain.
            unsafe { free(params) };
        }
    }
}
