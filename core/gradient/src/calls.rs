//! Gradients of calls of functions.
//!
//! The function of a call gets further results: the values that its gradient reads. The gradient is a function of its
//! own, which is called with the gradients of the results and these values. Nothing is computed twice, so a function may
//! have state. A function for which the library names a gradient has that one instead.

use crate::{
    GradientError,
    body::{Body, Flow},
    engine::Engine,
    options::Gradient,
    reuse::{CallFunctions, Key},
};
use std::rc::Rc;
use tenon_framework::{
    DType,
    attr::{AttrList, AttrMap, AttrValue, FuncValue},
};
use tenon_graph::{Node, NodeId, Output};
use tenon_proto::{NameAttrList, ProtoError, convert::call_of_function, decode, encode};

/// The gradients of a node's inputs.
pub(crate) type Set = Vec<Option<Gradient>>;

/// A node whose functions are differentiated.
pub(crate) struct CallSite<'n> {
    pub id: NodeId,
    pub node: &'n Node,
    /// The gradient of each output, where it has one.
    pub gradients: Vec<Option<Gradient>>,
    /// Whether the gradient of each input is wanted.
    pub wanted: Vec<bool>,
}

impl CallSite<'_> {
    /// The function that an attribute names.
    pub fn function(&self, attr: &str) -> Option<FuncValue> {
        match self.node.attrs.get(attr) {
            Some(AttrValue::Func(function)) => Some(function.clone()),
            _ => None,
        }
    }

    /// Refuses the gradient of a result that is a resource, which a function's gradient does not take in.
    pub fn check_results(&self) -> Result<(), GradientError> {
        let resource = |dtype: &DType| dtype.base() == DType::RESOURCE;
        let inputs = self.node.signature.inputs.iter();
        let wanted = inputs.zip(&self.wanted).any(|(dtype, wanted)| *wanted && resource(dtype));
        let has = |at: &usize| resource(&self.node.outputs()[*at]) && self.gradients[*at].is_some();
        match (0..self.gradients.len()).find(has) {
            Some(at) if wanted => Err(self.unsupported(&format!(
                "expected no gradient of output {at}, found one: the output is a resource; read the variable through the \
                 input that it came from"
            ))),
            _ => Ok(()),
        }
    }

    /// The error of a form that has no gradient.
    pub fn unsupported(&self, what: &str) -> GradientError {
        GradientError::Unsupported {
            node: self.node.name.clone(),
            op: self.node.op.name.clone(),
            what: what.to_owned(),
        }
    }
}

/// A call of another function with the attributes of a call.
pub(crate) fn renamed(call: &FuncValue, name: &str) -> Result<FuncValue, ProtoError> {
    let attr = match call.call.is_empty() {
        true => NameAttrList::default().attr,
        false => decode::<NameAttrList>(&call.call)?.attr,
    };
    let call = encode(&NameAttrList { name: name.to_owned(), attr })?;
    Ok(FuncValue { name: name.to_owned(), call, definition: Vec::new() })
}

/// A list of types as an attribute.
pub(crate) fn types(types: impl IntoIterator<Item = DType>) -> AttrValue {
    AttrValue::List(AttrList::Type(types.into_iter().collect()))
}

impl<'r> Engine<'_, 'r> {
    /// The gradients of the inputs of a node that calls functions.
    pub fn call(&mut self, site: &CallSite<'_>) -> Result<Set, GradientError> {
        match site.node.op.name.as_str() {
            "PartitionedCall" | "StatefulPartitionedCall" => {
                let function = site.function("f");
                let function = function.ok_or_else(|| site.unsupported("expected a function"))?;
                self.function_call(site, &function)
            }
            "If" | "StatelessIf" => {
                let branches = [site.function("then_branch"), site.function("else_branch")];
                let branches: Vec<FuncValue> = branches.into_iter().flatten().collect();
                self.branches(site, &branches)
            }
            "Case" | "StatelessCase" => match site.node.attrs.get("branches") {
                Some(AttrValue::List(AttrList::Func(branches))) => self.branches(site, branches),
                _ => Err(site.unsupported("expected functions")),
            },
            "While" | "StatelessWhile" => self.while_loop(site),
            tenon_graph::required_ops::SYMBOLIC_GRADIENT => Err(site.unsupported(
                "a symbolic gradient has no gradient itself: call the function, and take gradients of the call twice",
            )),
            "RemoteCall" => Err(site.unsupported("a call on a device that is named at run time")),
            _ => {
                let call = call_of_function(&site.node.op.name, site.node.attrs.attrs());
                let function = call.map_err(|error| site.unsupported(&error.to_string()))?;
                self.function_call(site, &function)
            }
        }
    }

    fn function_call(
        &mut self,
        site: &CallSite<'_>,
        function: &FuncValue,
    ) -> Result<Set, GradientError> {
        if let Some(own) = self.own_gradient(&function.name) {
            return self.call_own(site, function, &own);
        }
        site.check_results()?;
        let node = site.node;
        let flow = Flow {
            results: site.gradients.iter().map(Option::is_some).collect(),
            args: site.wanted.clone(),
        };
        let made = self.call_functions(node, function, &flow)?;
        let (body, Some(backward)) = (&made.body, &made.backward) else {
            return Ok(vec![None; node.inputs.len()]);
        };
        let kept = match &made.forward {
            Some(forward) => self.keep_values(site, forward, body)?,
            None => Vec::new(),
        };
        let mut inputs = Vec::new();
        for (at, incoming) in body.incoming.iter().enumerate() {
            if let (Some(_), Some(gradient)) = (incoming, site.gradients[at]) {
                inputs.push(self.dense(Output::new(site.id, at as u32), gradient)?);
            }
        }
        inputs.extend(kept);
        inputs.extend(body.kept_args.iter().map(|&at| node.inputs[at]));
        let results = body.gradients.iter().flatten().map(|&gradient| body.dtype(gradient));
        let made = self.add_call(site, backward, &inputs, results.collect())?;
        let mut outputs = (0..).map(|at| Output::new(made, at));
        let gradient =
            |gradient: &Option<Output>| gradient.and_then(|_| outputs.next()).map(Gradient::Dense);
        Ok(body.gradients.iter().map(gradient).collect())
    }

    /// The functions for the gradient of a call, which are made once for all calls that are alike.
    fn call_functions(
        &mut self,
        node: &Node,
        function: &FuncValue,
        flow: &Flow,
    ) -> Result<Rc<CallFunctions<'r>>, GradientError> {
        let shapes = self.shapes(&node.inputs);
        let key = Key::new([function], flow, &shapes);
        if let Some(made) = self.shared.calls.get(&key) {
            return Ok(Rc::clone(made));
        }
        let body = Body::differentiate(self, node, function, flow, &shapes)?;
        let flows = body.gradients.iter().any(Option::is_some);
        let keeps = flows && !body.kept.is_empty();
        let forward = if keeps { Some(self.define_forward(function, &body)?) } else { None };
        let backward = if flows { Some(self.define_backward(function, &body)?) } else { None };
        let made = Rc::new(CallFunctions { body, forward, backward });
        self.shared.calls.insert(key, Rc::clone(&made));
        Ok(made)
    }

    /// The name of the gradient that the graph's library has for a function.
    pub fn own_gradient(&self, function: &str) -> Option<String> {
        Some(self.b.graph().shared_library()?.gradient(function)?.to_owned())
    }

    /// Calls a function's own gradient: it takes the inputs and the gradients of all results, and gives the gradients of
    /// all inputs.
    fn call_own(
        &mut self,
        site: &CallSite<'_>,
        function: &FuncValue,
        own: &str,
    ) -> Result<Set, GradientError> {
        let mut inputs = site.node.inputs.clone();
        for (at, gradient) in site.gradients.iter().enumerate() {
            let output = Output::new(site.id, at as u32);
            inputs.push(match gradient {
                Some(gradient) => self.dense(output, *gradient)?,
                None => {
                    let near = self.name_in(&site.node.name, "");
                    self.zeros(output, &near)?
                }
            });
        }
        let call = renamed(function, own).map_err(|error| site.unsupported(&error.to_string()))?;
        let results = site.node.inputs.iter().map(|&input| self.b.graph().dtype(input).base());
        let made = self.add_call(site, &call, &inputs, results.collect())?;
        let output = |at: usize| Gradient::Dense(Output::new(made, at as u32));
        Ok(site.wanted.iter().enumerate().map(|(at, &wanted)| wanted.then(|| output(at))).collect())
    }

    /// Adds a call of a gradient beside the call of its function.
    fn add_call(
        &mut self,
        site: &CallSite<'_>,
        function: &FuncValue,
        inputs: &[Output],
        results: Vec<DType>,
    ) -> Result<NodeId, GradientError> {
        let op = call_op(site.node);
        let attrs = AttrMap::from([
            ("f".to_owned(), AttrValue::Func(function.clone())),
            ("Tout".to_owned(), types(results)),
        ]);
        let name = self.name_in(&site.node.name, op);
        Ok(self.add(&name, op, inputs, attrs)?)
    }

    /// Defines a function with further results: the values that its gradient reads.
    fn define_forward(
        &mut self,
        function: &FuncValue,
        body: &Body<'r>,
    ) -> Result<FuncValue, GradientError> {
        let mut part = body.forward_part()?;
        let all: Vec<Output> = body.returns.iter().chain(&body.kept).copied().collect();
        let all: Vec<Output> = all.into_iter().map(|tensor| part.tensor(tensor)).collect();
        let effects = body.effects_in(&part);
        let name = self.function_name(&function.name, "forward");
        let args = std::mem::take(&mut part.args);
        self.b.define_with(&name, &part.finish(), &args, &all, &effects)?;
        Ok(FuncValue { name, ..FuncValue::default() })
    }

    /// Lets a call give the values that its gradient reads, as further outputs.
    fn keep_values(
        &mut self,
        site: &CallSite<'_>,
        forward: &FuncValue,
        body: &Body<'r>,
    ) -> Result<Vec<Output>, GradientError> {
        let (node, first) = (site.node, site.node.outputs().len() as u32);
        let kept = body.kept.iter().map(|&tensor| body.dtype(tensor));
        let results = types(node.outputs().iter().map(|dtype| dtype.base()).chain(kept));
        let mut attrs = match node.op.name.as_str() {
            "PartitionedCall" | "StatefulPartitionedCall" => node.attrs.attrs().clone(),
            _ => AttrMap::new(),
        };
        attrs.insert("f".to_owned(), AttrValue::function(&forward.name));
        attrs.insert("Tout".to_owned(), results);
        let op = call_op(node);
        self.replace(site.id, op, &node.inputs, attrs)?;
        let outputs = (first..).take(body.kept.len());
        Ok(outputs.map(|at| Output::new(site.id, at)).collect())
    }

    /// Defines the gradient of a function: of the gradients of its results, the kept values and the kept arguments.
    fn define_backward(
        &mut self,
        function: &FuncValue,
        body: &Body<'r>,
    ) -> Result<FuncValue, GradientError> {
        let mut part = body.part();
        let incoming = body.incoming.iter().flatten();
        let args = body.kept_args.iter().map(|&at| &body.args[at]);
        for &tensor in incoming.chain(&body.kept).chain(args) {
            part.arg(tensor, &body.shape(tensor))?;
        }
        body.copy_backward(&mut part);
        let results: Vec<Output> =
            body.gradients.iter().flatten().map(|&gradient| part.tensor(gradient)).collect();
        let name = self.function_name(&function.name, "gradient");
        let args = std::mem::take(&mut part.args);
        self.b.define(&name, &part.finish(), &args, &results)?;
        Ok(FuncValue { name, ..FuncValue::default() })
    }

    /// Puts another node in the place of one, which has its outputs and more.
    pub fn replace(
        &mut self,
        id: NodeId,
        op: &str,
        inputs: &[Output],
        attrs: AttrMap,
    ) -> Result<(), GradientError> {
        let control = self.b.graph().node(id).control_inputs.clone();
        let mut node = self.b.op(op).inputs(inputs.iter().copied());
        for (name, value) in attrs {
            node = node.attr(&name, value);
        }
        for before in control {
            node = node.control(before);
        }
        node.replace(id)?;
        self.known.refresh(self.b.graph(), id);
        Ok(())
    }
}

/// The op of a call in the place of a node, or for its gradient.
pub(crate) fn call_op(node: &Node) -> &'static str {
    if node.op.stateful { "StatefulPartitionedCall" } else { "PartitionedCall" }
}
