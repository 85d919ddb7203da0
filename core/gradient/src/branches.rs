//! Gradients of conditionals.
//!
//! Each branch gives the values that its gradient reads as further results; the other branches have values of no meaning
//! in their places. The gradient is a conditional of the same selector over the gradients of the branches.

use crate::{
    GradientError,
    body::{Body, Flow},
    calls::{CallSite, Set, types},
    engine::Engine,
    options::Gradient,
    reuse::{BranchFunctions, BranchLayout, Key},
};
use std::rc::Rc;
use tenon_framework::{
    DType, PartialShape,
    attr::{AttrList, AttrMap, AttrValue, FuncValue},
};
use tenon_graph::{GraphBuilder, Node, NodeId, Output};

impl<'r> Engine<'_, 'r> {
    /// The gradients of the inputs of a conditional.
    pub fn branches(
        &mut self,
        site: &CallSite<'_>,
        branches: &[FuncValue],
    ) -> Result<Set, GradientError> {
        site.check_results()?;
        let node = site.node;
        let flow = Flow {
            results: site.gradients.iter().map(Option::is_some).collect(),
            args: site.wanted[1..].to_vec(),
        };
        let shapes = self.shapes(&node.inputs[1..]);
        let made = self.branch_functions(node, branches, &flow, &shapes)?;
        let BranchFunctions { bodies, layout, .. } = &*made;
        let mut set = vec![None; node.inputs.len()];
        if layout.args.is_empty() {
            return Ok(set);
        }
        let kept = self.keep_branches(site, &made)?;
        let mut inputs = vec![node.inputs[0]];
        for (at, gradient) in site.gradients.iter().enumerate() {
            let has = bodies.iter().any(|body| body.incoming[at].is_some());
            if let Some(gradient) = gradient.filter(|_| has) {
                inputs.push(self.dense(Output::new(site.id, at as u32), gradient)?);
            }
        }
        inputs.extend(kept);
        inputs.extend(layout.read.iter().map(|&at| node.inputs[at + 1]));
        let mut attrs = branch_attrs(&node.op.name, made.backward.clone());
        attrs.insert("Tout".to_owned(), types(layout.args.iter().map(|&(_, dtype)| dtype)));
        let known = layout.args.iter().map(|&(at, _)| {
            let resource = self.b.graph().dtype(node.inputs[at + 1]).base() == DType::RESOURCE;
            if resource { PartialShape::UNKNOWN } else { shapes[at].clone() }
        });
        let known = AttrValue::List(AttrList::Shape(known.collect()));
        attrs.insert("output_shapes".to_owned(), known);
        let name = self.name_in(&node.name, &node.op.name);
        let made = self.add(&name, &node.op.name, &inputs, attrs)?;
        for (output, &(at, _)) in (0..).zip(&layout.args) {
            set[at + 1] = Some(Gradient::Dense(Output::new(made, output)));
        }
        Ok(set)
    }

    /// The functions for the gradient of a conditional, which are made once for all that are alike.
    fn branch_functions(
        &mut self,
        node: &Node,
        branches: &[FuncValue],
        flow: &Flow,
        shapes: &[PartialShape],
    ) -> Result<Rc<BranchFunctions<'r>>, GradientError> {
        let key = Key::new(branches, flow, shapes);
        if let Some(made) = self.shared.branches.get(&key) {
            return Ok(Rc::clone(made));
        }
        let mut bodies = Vec::with_capacity(branches.len());
        for branch in branches {
            bodies.push(Body::differentiate(self, node, branch, flow, shapes)?);
        }
        let layout = layout(&bodies, flow.args.len());
        let (mut forward, mut backward) = (Vec::new(), Vec::new());
        if !layout.args.is_empty() {
            if bodies.iter().any(|body| !body.kept.is_empty()) {
                forward = self.define_forward_branches(branches, &bodies)?;
            }
            for at in 0..branches.len() {
                backward.push(self.define_branch(branches, &bodies, at, &layout)?);
            }
        }
        let made = Rc::new(BranchFunctions { bodies, layout, forward, backward });
        self.shared.branches.insert(key, Rc::clone(&made));
        Ok(made)
    }

    /// Defines the branches with further results: the values that the gradients of all of them read.
    fn define_forward_branches(
        &mut self,
        branches: &[FuncValue],
        bodies: &[Body<'r>],
    ) -> Result<Vec<FuncValue>, GradientError> {
        let mut names = Vec::with_capacity(branches.len());
        for (at, body) in bodies.iter().enumerate() {
            let mut part = body.forward_part()?;
            let mut results: Vec<Output> =
                body.returns.iter().map(|&tensor| part.tensor(tensor)).collect();
            for (other, theirs) in bodies.iter().enumerate() {
                for &tensor in &theirs.kept {
                    results.push(match other == at {
                        true => part.tensor(tensor),
                        false => nothing(part.builder(), theirs.dtype(tensor))?,
                    });
                }
            }
            let effects = body.effects_in(&part);
            let name = self.function_name(&branches[at].name, "forward");
            let args = std::mem::take(&mut part.args);
            self.b.define_with(&name, &part.finish(), &args, &results, &effects)?;
            names.push(FuncValue { name, ..FuncValue::default() });
        }
        Ok(names)
    }

    /// Lets the branches give the values that their gradients read, as further outputs of the conditional.
    fn keep_branches(
        &mut self,
        site: &CallSite<'_>,
        made: &BranchFunctions<'r>,
    ) -> Result<Vec<Output>, GradientError> {
        let bodies = &made.bodies;
        let total: usize = bodies.iter().map(|body| body.kept.len()).sum();
        if total == 0 {
            return Ok(Vec::new());
        }
        let node = site.node;
        let first = node.outputs().len() as u32;
        let kept =
            || bodies.iter().flat_map(|body| body.kept.iter().map(move |&kept| (body, kept)));
        let own = node.outputs().iter().map(|dtype| dtype.base());
        let results = types(own.chain(kept().map(|(body, kept)| body.dtype(kept))));
        let mut shapes = match node.attrs.get("output_shapes") {
            Some(AttrValue::List(AttrList::Shape(shapes))) => shapes.clone(),
            _ => Vec::new(),
        };
        shapes.resize(first as usize, PartialShape::UNKNOWN);
        // A value of a branch that is not taken has a shape of no meaning.
        shapes.resize(first as usize + total, PartialShape::UNKNOWN);
        let mut attrs = node.attrs.attrs().clone();
        attrs.extend(branch_attrs(&node.op.name, made.forward.clone()));
        attrs.insert("Tout".to_owned(), results);
        attrs.insert("output_shapes".to_owned(), AttrValue::List(AttrList::Shape(shapes)));
        self.replace(site.id, &node.op.name, &node.inputs, attrs)?;
        Ok((first..).take(total).map(|at| Output::new(site.id, at)).collect())
    }

    /// Defines the gradient of a branch over the arguments that the gradients of all branches have.
    fn define_branch(
        &mut self,
        branches: &[FuncValue],
        bodies: &[Body<'r>],
        at: usize,
        layout: &BranchLayout,
    ) -> Result<FuncValue, GradientError> {
        let body = &bodies[at];
        let mut part = body.part();
        for (result, &tensor) in body.returns.iter().enumerate() {
            match body.incoming[result] {
                Some(incoming) => _ = part.arg(incoming, &body.shape(incoming))?,
                None if bodies.iter().any(|body| body.incoming[result].is_some()) => {
                    part.free_arg(body.dtype(tensor), &PartialShape::UNKNOWN)?;
                }
                None => {}
            }
        }
        for (other, theirs) in bodies.iter().enumerate() {
            for &tensor in &theirs.kept {
                match other == at {
                    true => _ = part.arg(tensor, &body.shape(tensor))?,
                    false => _ = part.free_arg(theirs.dtype(tensor), &PartialShape::UNKNOWN)?,
                }
            }
        }
        for &arg in &layout.read {
            part.arg(body.args[arg], &body.shape(body.args[arg]))?;
        }
        body.copy_backward(&mut part);
        let mut results = Vec::with_capacity(layout.args.len());
        for &(arg, dtype) in &layout.args {
            results.push(match body.gradients[arg] {
                Some(gradient) => part.tensor(gradient),
                None => {
                    let value = part.tensor(body.args[arg]);
                    zeros(part.builder(), value, dtype)?.into()
                }
            });
        }
        let name = self.function_name(&branches[at].name, "gradient");
        let args = std::mem::take(&mut part.args);
        self.b.define(&name, &part.finish(), &args, &results)?;
        Ok(FuncValue { name, ..FuncValue::default() })
    }
}

fn layout(bodies: &[Body<'_>], count: usize) -> BranchLayout {
    let dtype = |at: usize| {
        let made = bodies.iter().find_map(|body| Some(body.dtype(body.gradients[at]?)));
        made.map(|dtype| (at, dtype))
    };
    let args: Vec<(usize, DType)> = (0..count).filter_map(dtype).collect();
    let lacks = |at: usize| {
        let some = args.iter().any(|&(arg, _)| arg == at);
        some && bodies.iter().any(|body| body.gradients[at].is_none())
    };
    let reads = |at: usize| bodies.iter().any(|body| body.kept_args.contains(&at));
    let read = (0..count).filter(|&at| reads(at) || lacks(at)).collect();
    BranchLayout { args, read }
}

/// The attributes that name the functions of a conditional.
fn branch_attrs(op: &str, functions: Vec<FuncValue>) -> AttrMap {
    if op.ends_with("Case") {
        let list = AttrValue::List(AttrList::Func(functions));
        return AttrMap::from([("branches".to_owned(), list)]);
    }
    let names = ["then_branch", "else_branch"].map(str::to_owned);
    names.into_iter().zip(functions.into_iter().map(AttrValue::Func)).collect()
}

/// A value of no meaning.
fn nothing(b: &mut GraphBuilder<'_>, dtype: DType) -> Result<Output, GradientError> {
    let shape = PartialShape::new(&[0]).unwrap_or_default();
    Ok(b.op("FakeParam").attr("dtype", dtype).attr("shape", shape).build()?.into())
}

/// Zeros of the shape of an argument, or of the value behind a resource.
pub(crate) fn zeros(
    b: &mut GraphBuilder<'_>,
    like: Output,
    dtype: DType,
) -> Result<NodeId, GradientError> {
    if b.graph().dtype(like).base() != DType::RESOURCE {
        return Ok(b.op("ZerosLike").input(like).build()?);
    }
    let shape = b.op("VariableShape").input(like).build()?;
    let zero =
        tenon_framework::Tensor::from_bytes(dtype, &[], &[0; 16][..dtype.size().unwrap_or(0)]);
    let zero =
        zero.map_err(|error| tenon_framework::KernelError::new(error.code(), error.to_string()))?;
    let zero = b.op("Const").attr("dtype", dtype).attr("value", zero).build()?;
    Ok(b.op("Fill").input(shape).input(zero).build()?)
}
