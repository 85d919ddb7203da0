//! Which variables of a loop have gradients, and which shapes stay.

use crate::{
    GradientError,
    body::{self, Body, Flow},
    calls::CallSite,
    engine::Engine,
    known::{Known, is_trainable},
    region::{Bounds, Region, spread},
    reuse::Loop,
};
use tenon_framework::{DType, PartialShape, attr::FuncValue};
use tenon_graph::{Callee, Output};

impl CallSite<'_> {
    /// The condition and the body of a loop.
    pub(super) fn loop_functions(&self) -> Result<(FuncValue, FuncValue), GradientError> {
        match (self.function("cond"), self.function("body")) {
            (Some(cond), Some(body)) => Ok((cond, body)),
            _ => Err(self.unsupported("expected functions in attributes 'cond' and 'body'")),
        }
    }
}

impl<'r> Engine<'_, 'r> {
    /// Differentiates the body of a loop; `None` if no variable has a gradient.
    pub(super) fn differentiate_loop(
        &mut self,
        site: &CallSite<'_>,
    ) -> Result<Option<Loop<'r>>, GradientError> {
        let (cond, function) = site.loop_functions()?;
        let callee = body::open(self, site.node, &function)?;
        let count = site.node.inputs.len();
        if callee.args.len() != count || callee.returns.len() != count {
            return Err(site.unsupported(&format!(
                "expected a body of {count} arguments and results, found {} and {}",
                callee.args.len(),
                callee.returns.len()
            )));
        }
        let carried = carried(&callee, site);
        if !carried.contains(&true) {
            return Ok(None);
        }
        let shapes = self.lasting_shapes(site, &function)?;
        let flow = Flow { results: carried.clone(), args: carried.clone() };
        let mut body = Body::differentiate(self, site.node, &function, &flow, &shapes)?;
        body.compute_again();
        let stays = |at: usize| body.returns[at] == body.args[at];
        let has = |at: &usize| {
            // The gradient of what is behind a resource has a type only where there is one.
            let resource = body.dtype(body.args[*at]) == DType::RESOURCE;
            carried[*at] && (!resource || body.gradients[*at].is_some())
        };
        let carried: Vec<usize> = (0..count).filter(has).collect();
        let (fixed, varying): (Vec<usize>, Vec<usize>) =
            body.kept_args.iter().copied().partition(|&at| stays(at));
        let varying = varying.into_iter().map(|at| body.args[at]);
        let listed: Vec<Output> = body.kept.iter().copied().chain(varying).collect();
        Ok(Some(Loop { body, cond, name: function.name, carried, listed, fixed }))
    }

    /// The shapes of the variables that are the same in each iteration, as far as they are known.
    fn lasting_shapes(
        &self,
        site: &CallSite<'_>,
        function: &FuncValue,
    ) -> Result<Vec<PartialShape>, GradientError> {
        let mut shapes = self.shapes(&site.node.inputs);
        loop {
            let callee = body::open(self, site.node, function)?;
            let (graph, _) =
                body::with_placeholders(self.b.registry(), callee.graph, &callee.args, &shapes)?;
            let known = Known::of(&graph);
            let mut changed = false;
            for (shape, &result) in shapes.iter_mut().zip(&callee.returns) {
                let after = known.value(result).map(|value| value.shape.partial());
                let after = after.unwrap_or_default();
                if *shape != PartialShape::UNKNOWN && after != *shape {
                    *shape = PartialShape::UNKNOWN;
                    changed = true;
                }
            }
            if !changed {
                return Ok(shapes);
            }
        }
    }
}

/// Which variables have a gradient: those that lead from a wanted input to an output with a gradient, perhaps through
/// several iterations.
fn carried(callee: &Callee, site: &CallSite<'_>) -> Vec<bool> {
    let Callee { graph, args, returns, .. } = callee;
    let leads: Vec<Vec<bool>> = args
        .iter()
        .map(|&arg| {
            let bounds = Bounds { ys: returns.clone(), xs: [arg].into(), ..Bounds::default() };
            let region = Region::find(graph, &bounds, |id| graph.node(id).inputs.clone());
            returns.iter().map(|result| region.reached.contains(result)).collect()
        })
        .collect();
    let trainable = |at: usize| is_trainable(graph.dtype(args[at]));
    let first = |flags: &[bool]| -> Vec<bool> {
        flags.iter().enumerate().map(|(at, &flag)| flag && trainable(at)).collect()
    };
    let mut wanted = first(&site.wanted);
    spread(&mut wanted, |at, to| leads[at][to]);
    let given: Vec<bool> = site.gradients.iter().map(Option::is_some).collect();
    let mut flowing = first(&given);
    spread(&mut flowing, |at, to| leads[to][at]);
    (0..args.len()).map(|at| flowing[at] && wanted[at]).collect()
}
