//! Loops: a frame around a copy of the condition and a copy of the body.

use super::{
    assembly::{Assembly, Copied, Frame, Place, Replaced, Site},
    expand::{Expander, Function, Source},
};
use crate::{FunctionError, GraphError, NodeId, Output, required_ops};
use tenon_framework::Tensor;

/// A value that may change between iterations.
struct Variable {
    /// The position among the inputs; `None` for a value that only drives the frame.
    at: Option<usize>,
    merge: NodeId,
    switch: NodeId,
}

impl Expander<'_> {
    /// Replaces a `While`: its inputs are the first values.
    pub(super) fn lower_while(
        &mut self,
        assembly: &mut Assembly<'_>,
        site: &Site,
        cond: &Function,
        body: &Function,
        parallel_iterations: i64,
    ) -> Result<Replaced, GraphError> {
        let name = &site.node.name;
        let frame = Frame { name: name.clone(), parallel_iterations };
        let constant = constants(site.inputs.len(), body);
        let mut values = Vec::with_capacity(site.inputs.len());
        let mut merges = Vec::new();
        for (at, &input) in site.inputs.iter().enumerate() {
            let input = assembly.gate(input, &[], &format!("{name}/value_{at}"))?;
            let enter = format!("{name}/enter_{at}");
            let enter = assembly.enter(input, &frame, constant[at], &site.control, &enter)?;
            if !constant[at] {
                merges.push((Some(at), start(assembly, enter, &format!("{name}/merge_{at}"))?));
            }
            values.push(Output::from(enter));
        }
        if merges.is_empty() {
            merges.push((None, driver(assembly, site, &frame)?));
        }
        for &(at, merge) in &merges {
            if let Some(at) = at {
                values[at] = merge.into();
            }
        }
        let condition = self.condition(assembly, site, cond, &values, merges[0].1, &frame)?;
        let mut variables = Vec::with_capacity(merges.len());
        for (at, merge) in merges {
            let switch = format!("{name}/switch_{}", at.unwrap_or_default());
            let switch = assembly
                .add(required_ops::SWITCH, &switch, |node| node.input(merge).input(condition))?;
            variables.push(Variable { at, merge, switch });
        }
        for Variable { at, switch, .. } in &variables {
            if let Some(at) = *at {
                values[at] = Output::new(*switch, 1);
            }
        }
        self.iterate(assembly, site, body, &values, &variables, &frame)?;
        leave(assembly, site, &variables)
    }

    /// Adds the condition, and returns the `LoopCond`.
    fn condition(
        &mut self,
        assembly: &mut Assembly<'_>,
        site: &Site,
        cond: &Function,
        values: &[Output],
        pivot: NodeId,
        frame: &Frame,
    ) -> Result<NodeId, GraphError> {
        let prefix = format!("{}/{}", site.node.name, cond.key.name());
        let place = Place {
            prefix: &prefix,
            device: &site.node.device,
            pivot: Some(pivot),
            is_branch: false,
            frame: Some(frame),
        };
        let Copied { returns, effects } = self.place(assembly, site, cond, values, &place)?;
        let holds = assembly.gate(returns[0], &effects, &format!("{prefix}/result"))?;
        let holds = self.truth(assembly, holds, &prefix)?;
        assembly.add(required_ops::LOOP_COND, &format!("{}/cond", site.node.name), |node| {
            node.input(holds)
        })
    }

    /// Adds the body, whose results are the values of the next iteration.
    fn iterate(
        &mut self,
        assembly: &mut Assembly<'_>,
        site: &Site,
        body: &Function,
        values: &[Output],
        variables: &[Variable],
        frame: &Frame,
    ) -> Result<(), GraphError> {
        let prefix = format!("{}/{}", site.node.name, body.key.name());
        let first = Output::new(variables[0].switch, 1);
        let pivot = format!("{prefix}/pivot");
        let pivot = assembly.add(required_ops::IDENTITY, &pivot, |node| node.input(first))?;
        let place = Place {
            prefix: &prefix,
            device: &site.node.device,
            pivot: Some(pivot),
            is_branch: false,
            frame: Some(frame),
        };
        let Copied { returns, effects } = self.place(assembly, site, body, values, &place)?;
        for Variable { at, merge, switch } in variables {
            let (result, number) = match *at {
                Some(at) => (returns[at], at),
                None => (Output::new(*switch, 1), 0),
            };
            let result = assembly.gate(result, &effects, &format!("{prefix}/result_{number}"))?;
            let next = format!("{}/next_{number}", site.node.name);
            let next =
                assembly.add(required_ops::NEXT_ITERATION, &next, |node| node.input(result))?;
            assembly.back_edge(*merge, next)?;
        }
        Ok(())
    }
}

/// Which values are the same in all iterations: the body returns them as they are. A loop in which
/// nothing changes keeps no constants, since its values drive the frame.
fn constants(count: usize, body: &Function) -> Vec<bool> {
    let Source::Inline(body) = &body.source else { return vec![false; count] };
    let is_kept = |at: usize| body.returns[at] == Output::from(body.args[at]);
    let constants: Vec<bool> = (0..count).map(is_kept).collect();
    if constants.contains(&false) { constants } else { vec![false; count] }
}

/// Adds a `Merge` of the first value and, once [`Assembly::back_edge`] closes the loop, of the next
/// ones.
fn start(assembly: &mut Assembly<'_>, enter: NodeId, name: &str) -> Result<NodeId, GraphError> {
    assembly.add(required_ops::MERGE, name, |node| node.input(enter).input(enter))
}

/// Adds a value that drives the frame of a loop without values.
fn driver(assembly: &mut Assembly<'_>, site: &Site, frame: &Frame) -> Result<NodeId, GraphError> {
    let name = format!("{}/driver", site.node.name);
    let value = Tensor::scalar(true).map_err(|error| FunctionError::Definition {
        function: name.clone(),
        what: error.to_string(),
    })?;
    let constant = assembly.add(required_ops::CONST, &name, |node| {
        node.attr("dtype", value.dtype()).attr("value", value)
    })?;
    let enter = assembly.enter(constant.into(), frame, false, &site.control, &name)?;
    start(assembly, enter, &name)
}

/// Adds the outputs of a loop.
fn leave(
    assembly: &mut Assembly<'_>,
    site: &Site,
    variables: &[Variable],
) -> Result<Replaced, GraphError> {
    let name = &site.node.name;
    let mut exits = Vec::with_capacity(variables.len());
    let mut outputs = site.inputs.clone();
    for Variable { at, switch, .. } in variables {
        let exit = format!("{name}/exit_{}", at.unwrap_or_default());
        let exit =
            assembly.add(required_ops::EXIT, &exit, |node| node.input(Output::new(*switch, 0)))?;
        exits.push(exit);
        if let Some(at) = *at {
            outputs[at] = exit.into();
        }
    }
    // A value that stays is given when the loop is over.
    for (at, output) in outputs.iter_mut().enumerate() {
        if !exits.contains(&output.node) {
            *output = assembly.gate(*output, &exits, &format!("{name}/constant_{at}"))?;
        }
    }
    let done = assembly.anchor(&format!("{name}/done"), &exits)?;
    Ok(Replaced { outputs, done })
}
