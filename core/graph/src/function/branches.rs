//! Conditionals: a branch is a copy of its function behind a switch.

use super::{
    assembly::{Assembly, Copied, Place, Replaced, Site, is_plain_constant},
    expand::{Expander, Function},
};
use crate::{ControlFlow, GraphError, NodeId, Output, required_ops};
use tenon_framework::DType;

/// The outputs of a switch, one for each branch.
struct Switch<'s> {
    site: &'s Site,
    /// The selector: a bool for two branches, a number for more.
    selector: Output,
    branches: usize,
}

impl Switch<'_> {
    /// The tensor on the branch of this number, if that branch is taken.
    fn tensor(
        &self,
        assembly: &mut Assembly<'_>,
        tensor: Output,
        name: &str,
    ) -> Result<NodeId, GraphError> {
        let tensor = assembly.gate(tensor, &[], &format!("{name}/value"))?;
        let is_bool = assembly.graph().dtype(self.selector).base() == DType::BOOL;
        let op = if is_bool { required_ops::SWITCH } else { required_ops::SWITCH_N };
        assembly.add(op, name, |node| {
            let node = node.input(tensor).input(self.selector);
            let node = self.site.control.iter().fold(node, |node, &id| node.control(id));
            if is_bool { node } else { node.attr("num_outs", self.branches as i64) }
        })
    }
}

/// The results of a branch, which wait for its effects, and the node to wait for.
struct Branch {
    returns: Vec<Output>,
    done: Output,
}

impl Expander<'_> {
    /// Replaces an `If`. Its first input is the condition.
    pub(super) fn lower_if(
        &mut self,
        assembly: &mut Assembly<'_>,
        site: &Site,
        branches: [Function; 2],
    ) -> Result<Replaced, GraphError> {
        let selector = self.truth(assembly, site.inputs[0], &site.node.name)?;
        let [then_branch, else_branch] = branches;
        self.lower_branches(assembly, site, selector, &[else_branch, then_branch])
    }

    /// Replaces a conditional whose first input selects one of the branches.
    pub(super) fn lower_branches(
        &mut self,
        assembly: &mut Assembly<'_>,
        site: &Site,
        selector: Output,
        branches: &[Function],
    ) -> Result<Replaced, GraphError> {
        let name = &site.node.name;
        let switch = Switch { site, selector, branches: branches.len() };
        let pivots = switch.tensor(assembly, selector, &format!("{name}/pivot"))?;
        let mut switches = Vec::with_capacity(site.inputs.len() - 1);
        for (at, &input) in site.inputs[1..].iter().enumerate() {
            switches.push(switch.tensor(assembly, input, &format!("{name}/switch_{at}"))?);
        }
        let mut done = Vec::with_capacity(branches.len());
        for (at, function) in branches.iter().enumerate() {
            let at = at as u32;
            let args: Vec<Output> = switches.iter().map(|&id| Output::new(id, at)).collect();
            let pivot = Output::new(pivots, at);
            done.push(self.branch(assembly, site, function, &args, pivot)?);
        }
        let mut outputs = Vec::with_capacity(site.node.outputs().len());
        for at in 0..site.node.outputs().len() {
            let results = done.iter().map(|branch| branch.returns[at]).collect();
            outputs.push(merge(assembly, results, &format!("{name}/merge_{at}"))?.into());
        }
        let ends = done.iter().map(|branch| branch.done).collect();
        let done = merge(assembly, ends, &format!("{name}/done"))?;
        Ok(Replaced { outputs, done })
    }

    fn branch(
        &mut self,
        assembly: &mut Assembly<'_>,
        site: &Site,
        function: &Function,
        args: &[Output],
        pivot: Output,
    ) -> Result<Branch, GraphError> {
        let prefix = format!("{}/{}", site.node.name, function.key.name());
        let identity = required_ops::IDENTITY;
        let taken = assembly.add(identity, &format!("{prefix}/pivot"), |node| node.input(pivot))?;
        let place = Place {
            prefix: &prefix,
            device: &site.node.device,
            pivot: Some(taken),
            is_branch: true,
            frame: None,
        };
        let Copied { returns, effects } = self.place(assembly, site, function, args, &place)?;
        let gated = returns.iter().enumerate().map(|(at, &result)| {
            // A constant is there whichever branch is taken.
            let is_free = is_plain_constant(assembly.graph().node(result.node));
            let before: Vec<NodeId> =
                effects.iter().copied().chain(is_free.then_some(taken)).collect();
            assembly.gate(result, &before, &format!("{prefix}/result_{at}"))
        });
        let returns = gated.collect::<Result<Vec<_>, _>>()?;
        // The branch is done when its results are there.
        let mut ends: Vec<NodeId> = effects;
        let is_switch =
            |&id: &NodeId| assembly.graph().node(id).control_flow() == ControlFlow::Switch;
        ends.extend(returns.iter().map(|output| output.node).filter(|id| !is_switch(id)));
        let done = assembly.gate(taken.into(), &ends, &format!("{prefix}/done"))?;
        Ok(Branch { returns, done })
    }
}

/// Adds a `Merge`.
fn merge(
    assembly: &mut Assembly<'_>,
    inputs: Vec<Output>,
    name: &str,
) -> Result<NodeId, GraphError> {
    assembly.add(required_ops::MERGE, name, |node| node.inputs(inputs))
}
