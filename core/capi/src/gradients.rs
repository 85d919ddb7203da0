//! Gradients, added to a graph.

use crate::{
    fail::Failure,
    graph::{Shared, TF_Graph, shared},
    operation::TF_Output,
    raw::{Array, Out, Text},
    status::TF_Status,
};
use std::ffi::c_int;
use tenon_gradient::{Gradient, Options, dense, gradients};
use tenon_graph::Graph;

/// The prefix of the names of gradients that are given none.
const PREFIX: &str = "gradients";

/// What is asked for.
pub(crate) struct Asked<'a> {
    pub(crate) prefix: Option<&'a str>,
    pub(crate) ys: &'a [TF_Output],
    pub(crate) xs: &'a [TF_Output],
    /// The gradients of `ys`; empty for ones.
    pub(crate) given: &'a [TF_Output],
}

impl Asked<'_> {
    fn options(&self, graph: &Graph, of: &Shared) -> Result<Options, Failure> {
        let prefix = self.prefix.unwrap_or(PREFIX).trim_end_matches('/');
        let inside = |name: &str| {
            name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let conflict = || graph.nodes().find(|(_, node)| inside(&node.name));
        if let Some((_, node)) = self.prefix.and_then(|_| conflict()) {
            return Err(Failure::invalid(format!(
                "prefix '{prefix}': the graph has node '{}' already; choose another one",
                node.name
            )));
        }
        let given = self.given.iter().map(|given| match given.oper {
            None => Ok(None),
            Some(_) => Ok(Some(Gradient::Dense(given.of(of, "a given gradient")?))),
        });
        Ok(Options {
            prefix: format!("{prefix}/"),
            grad_ys: given.collect::<Result<_, Failure>>()?,
            ..Options::default()
        })
    }

    /// Adds the gradients.
    ///
    /// # Errors
    /// No path leads from an x to the ys, as in TensorFlow.
    pub(crate) fn add(&self, of: &Shared) -> Result<Vec<TF_Output>, Failure> {
        let outputs = |outputs: &[TF_Output], what: &str| {
            outputs.iter().map(|output| output.of(of, what)).collect::<Result<Vec<_>, _>>()
        };
        let (ys, xs) = (outputs(self.ys, "a y")?, outputs(self.xs, "an x")?);
        let made = of.build(|builder| {
            let options = self.options(builder.graph(), of)?;
            let found = gradients(builder, &ys, &xs, &options)?;
            let dense = found.into_iter().zip(&xs).map(|(found, &x)| match found {
                // C has no slices.
                Some(gradient) => Ok(dense(builder, x, gradient)?),
                None => Err(Failure::invalid(format!(
                    "no path leads from '{}' to what is differentiated: leave it out",
                    builder.graph().output_name(x)
                ))),
            });
            dense.collect::<Result<Vec<_>, Failure>>()
        })?;
        let state = of.lock();
        Ok(made.into_iter().map(|made| state.output(made)).collect())
    }
}

fn add(
    graph: Option<&TF_Graph>,
    asked: &Asked<'_>,
    results: &Out<'_, TF_Output>,
) -> Result<(), Failure> {
    if results.is_null() && !asked.xs.is_empty() {
        return Err(Failure::null("the array of gradients"));
    }
    let made = asked.add(shared(graph)?)?;
    made.into_iter().enumerate().for_each(|(at, made)| results.set_at(at, made));
    Ok(())
}

api! {
    /// Adds nodes that compute the gradients of the sum of `ys` with respect to each of `xs`, and writes these as `dy`. `dx` has
    /// the gradients of `ys`, or is null for ones. It is an error if no path leads from an x to the ys.
    fn TF_AddGradients(
        graph: Option<&TF_Graph>,
        ys: Array<'_, TF_Output>,
        y_count: c_int,
        xs: Array<'_, TF_Output>,
        x_count: c_int,
        dx: Array<'_, TF_Output>,
        status: Option<&mut TF_Status>,
        dy: Out<'_, TF_Output>,
    ) [status] {
        let asked = Asked {
            prefix: None,
            ys: ys.checked(y_count, "the ys")?,
            xs: xs.checked(x_count, "the xs")?,
            given: dx.of(y_count),
        };
        add(graph, &asked, &dy)
    }

    /// As `TF_AddGradients`, with a prefix of the nodes' names, which no node of the graph has; null for one that is chosen.
    fn TF_AddGradientsWithPrefix(
        graph: Option<&TF_Graph>,
        prefix: Text<'_>,
        ys: Array<'_, TF_Output>,
        y_count: c_int,
        xs: Array<'_, TF_Output>,
        x_count: c_int,
        dx: Array<'_, TF_Output>,
        status: Option<&mut TF_Status>,
        dy: Out<'_, TF_Output>,
    ) [status] {
        let prefix = match prefix.get() {
            None => None,
            Some(_) => Some(prefix.required("the prefix")?),
        };
        let asked = Asked {
            prefix,
            ys: ys.checked(y_count, "the ys")?,
            xs: xs.checked(x_count, "the xs")?,
            given: dx.of(y_count),
        };
        add(graph, &asked, &dy)
    }
}
