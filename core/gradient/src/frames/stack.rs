//! Values of the forward graph in the frame of a gradient.

use super::{Counted, enter_attrs};
use crate::{GradientError, engine::Engine};
use tenon_framework::{
    DType, KernelError, Tensor,
    attr::{AttrMap, AttrValue},
};
use tenon_graph::{ControlFlow, FrameId, NodeId, Output};

fn scalar(value: i32) -> Result<AttrMap, KernelError> {
    let value = Tensor::scalar(value);
    let value = value.map_err(|error| KernelError::new(error.code(), error.to_string()))?;
    Ok(AttrMap::from([
        ("dtype".to_owned(), AttrValue::Type(DType::INT32)),
        ("value".to_owned(), AttrValue::Tensor(value)),
    ]))
}

impl Engine<'_, '_> {
    /// The number of frames of gradients that are open.
    pub fn depth(&self) -> usize {
        self.scopes.len()
    }

    /// Adds a node as it is, whose values belong to the frame of the gradient at this depth.
    pub fn raw(
        &mut self,
        what: &str,
        op: &str,
        inputs: &[Output],
        control: &[NodeId],
        attrs: AttrMap,
        depth: usize,
    ) -> Result<NodeId, KernelError> {
        let id = self.raw_unnamed(what, op, inputs, control, attrs)?;
        self.home.insert(id, depth);
        Ok(id)
    }

    /// Adds a node as it is to a forward frame.
    pub(super) fn forward(
        &mut self,
        what: &str,
        op: &str,
        inputs: &[Output],
        control: &[NodeId],
        attrs: AttrMap,
        frame: FrameId,
    ) -> Result<NodeId, KernelError> {
        let id = self.raw_unnamed(what, op, inputs, control, attrs)?;
        self.loops.put(id, frame);
        Ok(id)
    }

    /// Adds a node as it is under an unused name that ends with `what`.
    fn raw_unnamed(
        &mut self,
        what: &str,
        op: &str,
        inputs: &[Output],
        control: &[NodeId],
        attrs: AttrMap,
    ) -> Result<NodeId, KernelError> {
        let name = format!("{}{what}", self.prefix);
        let name = self.b.unused_name(&name);
        self.raw_named(&name, op, inputs, control, attrs)
    }

    /// A scalar of type int32 in the frame of the gradient at this depth, beside `pivot`.
    pub fn raw_int(
        &mut self,
        value: i32,
        pivot: NodeId,
        depth: usize,
    ) -> Result<Output, KernelError> {
        Ok(self.raw("count/const", "Const", &[], &[pivot], scalar(value)?, depth)?.into())
    }

    /// A scalar of type int32 in a forward frame.
    fn forward_int(&mut self, value: i32, frame: FrameId) -> Result<Output, GradientError> {
        let control = match frame {
            FrameId::ROOT => Vec::new(),
            frame => vec![self.counted(frame)?.pivot],
        };
        Ok(self.forward("forward/const", "Const", &[], &control, scalar(value)?, frame)?.into())
    }

    /// The counter of a forward frame, which is added when it is asked for.
    pub fn counted(&mut self, frame: FrameId) -> Result<Counted, GradientError> {
        if let Some(counted) = self.counters.get(&frame) {
            return Ok(counted.clone());
        }
        let info = self.loops.info(frame).cloned();
        let Some((info, cond)) = info.and_then(|info| Some((info.clone(), info.cond?))) else {
            return Err(KernelError::unimplemented("a loop without a condition").into());
        };
        let zero = self.forward_int(0, info.parent)?;
        let none = AttrMap::new;
        let attrs = enter_attrs(&info.name, info.parallel, false);
        let enter = self.forward("count/Enter", "Enter", &[zero], &[], attrs, frame)?;
        let twice = [enter.into(), enter.into()];
        let merge = self.forward("count/Merge", "Merge", &twice, &[], none(), frame)?;
        let inputs = [merge.into(), cond];
        let switch = self.forward("count/Switch", "Switch", &inputs, &[], none(), frame)?;
        let going = [Output::new(switch, 1)];
        let pivot = self.forward("count/Identity", "Identity", &going, &[], none(), frame)?;
        let one = self.forward("count/one", "Const", &[], &[pivot], scalar(1)?, frame)?;
        let inputs = [pivot.into(), one.into()];
        let next_count = self.forward("count/Add", "AddV2", &inputs, &[], none(), frame)?;
        let next = [next_count.into()];
        let next =
            self.forward("count/NextIteration", "NextIteration", &next, &[], none(), frame)?;
        self.b.back_edge(merge, 1, next)?;
        let done = [Output::new(switch, 0)];
        let total = self.forward("count/Exit", "Exit", &done, &[], none(), info.parent)?.into();
        let counted = Counted { pivot, next_count, total };
        self.counters.insert(frame, counted.clone());
        Ok(counted)
    }

    /// A value in the frame of the gradient at this depth.
    pub fn at(&mut self, value: Output, depth: usize) -> Result<Output, GradientError> {
        if depth == 0 {
            return Ok(value);
        }
        let scope = &self.scopes[depth - 1];
        if let Some(&here) = scope.here.get(&value) {
            return Ok(here);
        }
        let frame = scope.frame;
        let home = self.home.get(&value.node).copied();
        if home == Some(depth) {
            return Ok(value);
        }
        let node = self.b.graph().node(value.node).clone();
        let own = home.is_none() && self.loops.frame(value.node) == frame;
        let here = if home.is_none() && node.op.is_constant() {
            let pivot = self.scopes[depth - 1].pivot;
            let attrs = node.attrs.attrs().clone();
            Output::from(self.raw("Const", "Const", &[], &[pivot], attrs, depth)?)
        } else if own && node.control_flow() == ControlFlow::Enter {
            let outside = self.at(node.inputs[0], depth - 1)?;
            self.enter(outside, depth, true)?
        } else if own {
            self.popped(value, depth)?
        } else {
            let outside = self.at(value, depth - 1)?;
            self.enter(outside, depth, true)?
        };
        self.known.copy_shape(value, here);
        self.scopes[depth - 1].here.insert(value, here);
        Ok(here)
    }

    /// Brings a value of the frame around into that at this depth.
    pub fn enter(
        &mut self,
        value: Output,
        depth: usize,
        is_constant: bool,
    ) -> Result<Output, GradientError> {
        let scope = &self.scopes[depth - 1];
        let attrs = enter_attrs(&scope.name, scope.parallel, is_constant);
        Ok(self.raw("Enter", "Enter", &[value], &[], attrs, depth)?.into())
    }

    /// A value of an iteration, by a stack.
    fn popped(&mut self, value: Output, depth: usize) -> Result<Output, GradientError> {
        let frame = self.scopes[depth - 1].frame;
        let dtype = self.b.graph().dtype(value).base();
        let handle = match self.stacks.get(&value) {
            Some(&handle) => handle,
            None => self.pushed(value, dtype, frame)?,
        };
        let outside = self.at(handle, depth - 1)?;
        let handle = self.enter(outside, depth, true)?;
        let scope = &self.scopes[depth - 1];
        let (pivot, next_count) = (scope.pivot, scope.next_count);
        let mut control = vec![pivot];
        if let Some(branch) = scope.contexts.branch(value) {
            control.push(self.taken(branch, depth)?);
        }
        let attrs = AttrMap::from([("elem_type".to_owned(), AttrValue::Type(dtype))]);
        let pop = self.raw("StackPopV2", "StackPopV2", &[handle], &control, attrs, depth)?;
        let none = AttrMap::new();
        let done = self.raw("popped", "ControlTrigger", &[], &[pop], none, depth)?;
        self.wait(next_count, done);
        Ok(pop.into())
    }

    /// Pushes a value in each iteration of its frame; returns the handle of the stack, a value of the frame around.
    fn pushed(
        &mut self,
        value: Output,
        dtype: DType,
        frame: FrameId,
    ) -> Result<Output, GradientError> {
        let counted = self.counted(frame)?;
        let Some(info) = self.loops.info(frame).cloned() else {
            return Err(KernelError::internal("a stack outside a loop").into());
        };
        let most = self.forward_int(-1, info.parent)?;
        let attrs = AttrMap::from([
            ("elem_type".to_owned(), AttrValue::Type(dtype)),
            ("stack_name".to_owned(), AttrValue::from(self.b.graph().output_name(value).as_str())),
        ]);
        let stack = self.forward("StackV2", "StackV2", &[most], &[], attrs, info.parent)?;
        let attrs = enter_attrs(&info.name, info.parallel, true);
        let inside = self.forward("stack/Enter", "Enter", &[stack.into()], &[], attrs, frame)?;
        let inputs = [inside.into(), value];
        let (none, control) = (AttrMap::new(), [counted.pivot]);
        let push = self.forward("StackPushV2", "StackPushV2", &inputs, &control, none, frame)?;
        let none = AttrMap::new();
        let done = self.forward("pushed", "ControlTrigger", &[], &[push], none, frame)?;
        self.wait(counted.next_count, done);
        self.stacks.insert(value, stack.into());
        Ok(stack.into())
    }

    /// A node that runs where a branch of the forward frame was taken.
    fn taken(&mut self, branch: (Output, u32), depth: usize) -> Result<NodeId, GradientError> {
        if let Some(&taken) = self.scopes[depth - 1].branches.get(&branch) {
            return Ok(taken);
        }
        let (pred, side) = branch;
        if self.b.graph().dtype(pred).base() != DType::BOOL {
            let what = "a branch of a switch with a number in a loop: expected a bool";
            return Err(KernelError::unimplemented(what).into());
        }
        let pred = self.at(pred, depth)?;
        let none = AttrMap::new;
        let switch = self.raw("branch/Switch", "Switch", &[pred, pred], &[], none(), depth)?;
        let side = [Output::new(switch, side)];
        let taken = self.raw("branch/Identity", "Identity", &side, &[], none(), depth)?;
        self.scopes[depth - 1].branches.insert(branch, taken);
        Ok(taken)
    }

    /// Lets a node wait for another one.
    fn wait(&mut self, id: NodeId, before: NodeId) {
        let node = self.b.graph().node(id);
        let (inputs, mut control) = (node.inputs.clone(), node.control_inputs.clone());
        control.push(before);
        self.b.rewire(id, inputs, control);
    }
}
