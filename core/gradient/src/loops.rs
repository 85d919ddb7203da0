//! Gradients of `While`.
//!
//! The forward loop gets further values: a count of its iterations, and a list for each value of an iteration that the
//! gradient reads, to which each iteration appends. The gradient is a loop of as many iterations, which takes the values
//! from the ends of the lists. What the loop does not change is given to it once, and what follows from that cheaply is
//! computed again.

mod flow;
mod forward;
mod invariant;

use crate::{
    GradientError,
    body::{Extract, Flow},
    calls::{CallSite, Set, types},
    engine::Engine,
    options::Gradient,
    reuse::{Key, Loop, LoopFunctions},
};
use std::rc::Rc;
use tenon_framework::{
    DType, PartialShape, Tensor,
    attr::{AttrList, AttrMap, AttrValue, FuncValue},
    tensor::TensorError,
};
use tenon_graph::{GraphBuilder, Output};

/// The outputs that the forward loop has besides its own.
struct Recorded {
    /// The number of iterations.
    count: Output,
    lists: Vec<Output>,
}

impl<'r> Engine<'_, 'r> {
    /// The gradients of the inputs of a loop.
    pub fn while_loop(&mut self, site: &CallSite<'_>) -> Result<Set, GradientError> {
        if self.depth() > 0 {
            return Err(site.unsupported("expected a loop outside of frames, found one in a frame"));
        }
        let none = vec![None; site.node.inputs.len()];
        let Some(made) = self.loop_functions(site)? else { return Ok(none) };
        let found = &made.found;
        let passed = found.passed(site)?;
        let Some(functions) = &made.functions else { return Ok(passed) };
        let [forward_cond, forward_body, cond, body] = functions.clone();
        let recorded = self.record(site, found, [forward_cond, forward_body])?;
        let mut inputs = vec![recorded.count];
        for &at in &found.carried {
            inputs.push(self.first_of(site, found, at)?);
        }
        inputs.extend(&recorded.lists);
        inputs.extend(found.fixed.iter().map(|&at| site.node.inputs[at]));
        let dtypes: Vec<DType> =
            inputs.iter().map(|&input| self.b.graph().dtype(input).base()).collect();
        let mut shapes = vec![PartialShape::UNKNOWN; inputs.len()];
        for (shape, &at) in shapes[1..].iter_mut().zip(&found.carried) {
            if found.dtype_of(at) != DType::RESOURCE {
                *shape = found.body.shape(found.body.args[at]);
            }
        }
        let mut attrs = AttrMap::from([
            ("T".to_owned(), types(dtypes)),
            ("cond".to_owned(), AttrValue::Func(cond)),
            ("body".to_owned(), AttrValue::Func(body)),
            ("output_shapes".to_owned(), AttrValue::List(AttrList::Shape(shapes))),
        ]);
        if let Some(parallel) = site.node.attrs.get("parallel_iterations") {
            attrs.insert("parallel_iterations".to_owned(), parallel.clone());
        }
        let name = self.name_in(&site.node.name, &site.node.op.name);
        let made = self.add(&name, &site.node.op.name, &inputs, attrs)?;
        let mut set = passed;
        for (output, &at) in (1..).zip(&found.carried) {
            set[at] = Some(Gradient::Dense(Output::new(made, output)));
        }
        Ok(set)
    }

    /// The functions for the gradient of a loop, which are made once for all that are alike; `None` if no variable has a
    /// gradient.
    fn loop_functions(
        &mut self,
        site: &CallSite<'_>,
    ) -> Result<Option<Rc<LoopFunctions<'r>>>, GradientError> {
        let (cond, body) = site.loop_functions()?;
        let flow = Flow {
            results: site.gradients.iter().map(Option::is_some).collect(),
            args: site.wanted.clone(),
        };
        let key = Key::new([&cond, &body], &flow, &self.shapes(&site.node.inputs));
        if let Some(made) = self.shared.loops.get(&key) {
            return Ok(Some(Rc::clone(made)));
        }
        let Some(found) = self.differentiate_loop(site)? else { return Ok(None) };
        let functions = match found.carried.is_empty() {
            true => None,
            false => Some([
                self.recording_cond(site, &found)?,
                self.recording_body(&found)?,
                self.backward_cond(&found)?,
                self.backward_body(&found)?,
            ]),
        };
        let made = Rc::new(LoopFunctions { found, functions });
        self.shared.loops.insert(key, Rc::clone(&made));
        Ok(Some(made))
    }

    /// The gradient of a variable with which the backward loop begins.
    fn first_of(
        &mut self,
        site: &CallSite<'_>,
        found: &Loop<'r>,
        at: usize,
    ) -> Result<Output, GradientError> {
        let output = Output::new(site.id, at as u32);
        if let Some(gradient) = site.gradients[at] {
            return Ok(self.dense(output, gradient)?);
        }
        let near = self.name_in(&site.node.name, "");
        if found.dtype_of(at) == DType::RESOURCE {
            return self.zeros_of_variable(site.node.inputs[at], found.carried_dtype(at), &near);
        }
        Ok(self.zeros(output, &near)?)
    }

    /// Whether iterations are left.
    fn backward_cond(&mut self, found: &Loop<'r>) -> Result<FuncValue, GradientError> {
        let mut part = found.body.part();
        let left = part.free_arg(DType::INT32, &scalar_shape())?;
        found.other_args(&mut part, false)?;
        let zero = constant(part.builder(), Tensor::scalar(0i32))?;
        let more = part.builder().op("Greater").input(left).input(zero).build()?;
        self.define_part(&found.name, "gradient_cond", part, &[more.into()])
    }

    /// The gradient of one iteration.
    fn backward_body(&mut self, found: &Loop<'r>) -> Result<FuncValue, GradientError> {
        let body = &found.body;
        let mut part = body.part();
        let left = part.free_arg(DType::INT32, &scalar_shape())?;
        let [carried, lists, fixed] = found.other_args(&mut part, true)?;
        let one = constant(part.builder(), Tensor::scalar(1i32))?;
        let mut results = vec![part.builder().op("Sub").input(left).input(one).build()?.into()];
        let mut shorter = Vec::with_capacity(lists.len());
        for (&tensor, &list) in found.listed.iter().zip(&lists) {
            let shape = constant(part.builder(), element_shape(&body.shape(tensor)))?;
            let pop = part.builder().op("TensorListPopBack").input(list).input(shape);
            let pop = pop.attr("element_dtype", body.dtype(tensor)).build()?;
            shorter.push(Output::new(pop, 0));
            part.map(tensor, Output::new(pop, 1));
        }
        body.copy_backward(&mut part);
        for (&at, &so_far) in found.carried.iter().zip(&carried) {
            let gradient = body.gradients[at].map(|gradient| part.tensor(gradient));
            results.push(match (gradient, found.dtype_of(at) == DType::RESOURCE) {
                (Some(gradient), false) => gradient,
                (Some(gradient), true) => {
                    part.builder().op("AddV2").input(so_far).input(gradient).build()?.into()
                }
                (None, true) => so_far,
                (None, false) => part.builder().op("ZerosLike").input(so_far).build()?.into(),
            });
        }
        results.extend(shorter);
        results.extend(fixed);
        self.define_part(&found.name, "gradient_body", part, &results)
    }

    /// Makes a part of a graph a function.
    fn define_part(
        &mut self,
        near: &str,
        what: &str,
        mut part: Extract<'_, 'r>,
        results: &[Output],
    ) -> Result<FuncValue, GradientError> {
        let name = self.function_name(near, what);
        let args = std::mem::take(&mut part.args);
        self.b.define(&name, &part.finish(), &args, results)?;
        Ok(FuncValue { name, ..FuncValue::default() })
    }
}

impl<'r> Loop<'r> {
    /// Type of a variable.
    fn dtype_of(&self, at: usize) -> DType {
        self.body.dtype(self.body.args[at])
    }

    /// The gradients of resources that the loop passes through and does not read.
    fn passed(&self, site: &CallSite<'_>) -> Result<Set, GradientError> {
        let mut set = vec![None; site.node.inputs.len()];
        for (at, gradient) in site.gradients.iter().enumerate() {
            if gradient.is_none() || !site.wanted[at] || self.dtype_of(at) != DType::RESOURCE {
                continue;
            }
            if self.body.returns[at] != self.body.args[at] {
                return Err(site.unsupported(&format!(
                    "expected a body that passes resource {at} through, found one that gives another: read the variable \
                     through the input of the loop"
                )));
            }
            if !self.carried.contains(&at) {
                set[at] = *gradient;
            }
        }
        Ok(set)
    }

    /// Type of the gradient of a variable.
    fn carried_dtype(&self, at: usize) -> DType {
        let gradient = self.body.gradients[at].map(|gradient| self.body.dtype(gradient));
        gradient.unwrap_or_else(|| self.dtype_of(at))
    }

    /// The variables of the backward loop behind the count: gradients, lists, and what does not change.
    fn other_args(
        &self,
        part: &mut Extract<'_, 'r>,
        is_body: bool,
    ) -> Result<[Vec<Output>; 3], GradientError> {
        let body = &self.body;
        let (mut carried, mut lists, mut fixed) = (Vec::new(), Vec::new(), Vec::new());
        for &at in &self.carried {
            carried.push(match body.incoming[at].filter(|_| is_body) {
                Some(incoming) => part.arg(incoming, &body.shape(incoming))?,
                None => part.free_arg(self.carried_dtype(at), &PartialShape::UNKNOWN)?,
            });
        }
        for _ in &self.listed {
            lists.push(part.free_arg(DType::VARIANT, &scalar_shape())?);
        }
        for &at in &self.fixed {
            fixed.push(part.arg(body.args[at], &body.shape(body.args[at]))?);
        }
        Ok([carried, lists, fixed])
    }
}

fn scalar_shape() -> PartialShape {
    PartialShape::new(&[]).unwrap_or_default()
}

/// Adds a constant.
fn constant(
    b: &mut GraphBuilder<'_>,
    value: Result<Tensor, TensorError>,
) -> Result<Output, GradientError> {
    let value = value
        .map_err(|error| tenon_framework::KernelError::new(error.code(), error.to_string()))?;
    let dtype = value.dtype();
    Ok(b.op("Const").attr("dtype", dtype).attr("value", value).build()?.into())
}

/// The shape of the elements of a list, as the ops of lists take it: -1 for what is not known.
fn element_shape(shape: &PartialShape) -> Result<Tensor, TensorError> {
    let dims: Option<Vec<i32>> =
        shape.dims().and_then(|dims| dims.iter().map(|&dim| i32::try_from(dim).ok()).collect());
    match dims {
        Some(dims) => Tensor::from_slice(&[dims.len() as i64], &dims),
        None => Tensor::scalar(-1i32),
    }
}
