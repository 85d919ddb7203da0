//! The frame of a gradient.

use super::{
    Contexts, Scope,
    find::{LoopFrame, LoopVar},
};
use crate::{
    GradientError,
    engine::{Engine, Gradients},
    known::is_trainable,
    options::Gradient,
    region::{Bounds, Region, spread},
};
use std::collections::{HashMap, HashSet};
use tenon_framework::{
    DType,
    attr::{AttrMap, AttrValue},
};
use tenon_graph::{FrameId, NodeId, Output};

/// A variable of the loop of a gradient.
struct Carried {
    /// The forward tensor whose gradient it is, in each iteration.
    of: Output,
    /// The tensor around the loop that gets the gradient.
    to: Output,
    /// Whether what iterations contribute adds up.
    adds: bool,
    merge: NodeId,
    switch: NodeId,
}

/// Which values of a loop have a gradient.
struct Flowing {
    vars: Vec<bool>,
    constants: Vec<bool>,
}

impl Engine<'_, '_> {
    /// Makes the gradient of a loop whose exits have these gradients.
    pub fn frame_gradient(
        &mut self,
        frame: FrameId,
        region: &Region,
        bounds: &Bounds,
        found: &mut Gradients,
    ) -> Result<(), GradientError> {
        let Some(info) = self.loops.info(frame).cloned() else { return Ok(()) };
        let mut given = Vec::with_capacity(info.vars.len());
        for var in &info.vars {
            given.push(self.given(var, bounds, found)?);
        }
        let flowing = self.flowing(frame, &info, &given, region);
        if !flowing.vars.contains(&true) {
            return Ok(());
        }
        let total = self.counted(frame)?.total;
        self.note_result(&info, total.node);
        let depth = self.depth();
        let begin = self.begin(frame, &info, &flowing, &given)?;
        let begin: Vec<Output> =
            begin.into_iter().map(|value| self.at(value, depth)).collect::<Result<_, _>>()?;
        let total = self.at(total, depth)?;
        let cond = self.open_scope(frame, &info, total)?;
        let carried = self.carry(&info, &flowing, &begin, cond)?;
        let outcome = self.iteration(frame, &info, &carried);
        self.scopes.pop();
        outcome?;
        for var in &carried {
            let done = [Output::new(var.switch, 0)];
            let exit = self.raw("Exit", "Exit", &done, &[], AttrMap::new(), depth)?;
            if region.reached.contains(&var.to) {
                let from = info.vars.iter().find_map(|var| var.exits.first().copied());
                found.add(var.to, from, Gradient::Dense(exit.into()));
            }
        }
        Ok(())
    }

    /// The sum of the gradients of a variable's exits.
    fn given(
        &mut self,
        var: &LoopVar,
        bounds: &Bounds,
        found: &mut Gradients,
    ) -> Result<Option<Gradient>, GradientError> {
        let mut parts = Vec::with_capacity(var.exits.len());
        for &exit in &var.exits {
            let total = self.total(exit.into(), found)?;
            parts.extend(total.filter(|_| !bounds.stops.contains(&exit.into())));
        }
        Ok(match (parts.as_slice(), var.exits.first()) {
            ([], _) | (_, None) => None,
            ([one], _) => Some(*one),
            (parts, Some(&exit)) => Some(self.sum(exit.into(), parts)?),
        })
    }

    /// The gradients with which the loop of a gradient begins: those of its variables, and zeros for what stays.
    fn begin(
        &mut self,
        frame: FrameId,
        info: &LoopFrame,
        flowing: &Flowing,
        given: &[Option<Gradient>],
    ) -> Result<Vec<Output>, GradientError> {
        let near = format!("{}loop/", self.prefix);
        let mut begin = Vec::new();
        for (at, var) in info.vars.iter().enumerate().filter(|(at, _)| flowing.vars[*at]) {
            // Zeros have the shape of the last value, which may not be that of the first one.
            let exit = match var.exits.first() {
                Some(&exit) => exit,
                None => self.added_exit(info, var)?,
            };
            begin.push(match given[at] {
                Some(gradient) => self.dense(exit.into(), gradient)?,
                None => self.zeros(exit.into(), &near)?,
            });
        }
        for (at, &enter) in info.constants.iter().enumerate() {
            if flowing.constants[at] {
                let like = self.b.graph().node(enter).inputs[0];
                begin.push(match self.b.graph().dtype(like).base() {
                    DType::RESOURCE => {
                        let dtype = self.read_as(frame, info, enter)?;
                        self.zeros_of_variable(like, dtype, &near)?
                    }
                    _ => self.zeros(like, &near)?,
                });
            }
        }
        Ok(begin)
    }

    /// Adds an exit for a variable of a forward frame that has none.
    fn added_exit(&mut self, info: &LoopFrame, var: &LoopVar) -> Result<NodeId, GradientError> {
        let last = [Output::new(var.switch, 0)];
        let exit = self.forward("forward/Exit", "Exit", &last, &[], AttrMap::new(), info.parent)?;
        self.note_result(info, exit);
        Ok(exit)
    }

    /// Notes that a node which was added to the frame around a loop runs only if the loop does.
    fn note_result(&mut self, info: &LoopFrame, result: NodeId) {
        let graph = self.b.graph();
        let enters = info.vars.iter().map(|var| var.enter).chain(info.constants.iter().copied());
        let read: Vec<Output> = enters.map(|enter| graph.node(enter).inputs[0]).collect();
        if let Some(scope) = self.scopes.last_mut().filter(|scope| scope.frame == info.parent) {
            scope.contexts.join(result, &read, &[]);
        }
    }

    /// The type of the values that a frame reads through a resource that it gets once.
    fn read_as(
        &self,
        frame: FrameId,
        info: &LoopFrame,
        enter: NodeId,
    ) -> Result<DType, GradientError> {
        let graph = self.b.graph();
        let mut handles = HashSet::from([Output::from(enter)]);
        for id in self.order_of(frame, info) {
            let node = graph.node(id);
            let inner = self.loops.left_by(id).filter(|inner| *inner != frame);
            if let Some((inner, info)) = inner.and_then(|id| Some((id, self.loops.info(id)?))) {
                let gets = |enter: &&NodeId| handles.contains(&graph.node(**enter).inputs[0]);
                let within = info.constants.iter().filter(gets);
                let mut within = within.map(|&enter| self.read_as(inner, info, enter));
                if let Some(dtype) = within.find_map(Result::ok) {
                    return Ok(dtype);
                }
                continue;
            }
            if !node.inputs.iter().any(|input| handles.contains(input)) {
                continue;
            }
            match node.attrs.get("dtype") {
                Some(AttrValue::Type(dtype)) if dtype.base() != DType::RESOURCE => {
                    return Ok(dtype.base());
                }
                _ => {}
            }
            let outputs = (0..).zip(node.outputs());
            let passed = outputs.filter(|(_, dtype)| dtype.base() == DType::RESOURCE);
            handles.extend(passed.map(|(output, _)| Output::new(id, output)));
        }
        let node = graph.node(enter);
        Err(GradientError::Unsupported {
            node: node.name.clone(),
            op: node.op.name.clone(),
            what: format!(
                "expected a node of frame '{}' that reads the variable and has its type as attribute 'dtype', found none: \
                 read the variable before the loop",
                info.name
            ),
        })
    }

    /// The nodes of an iteration, sources first, and what each runs after before it.
    fn order_of(&self, frame: FrameId, info: &LoopFrame) -> Vec<NodeId> {
        let graph = self.b.graph();
        let ys = info.vars.iter().map(|var| graph.node(var.next).inputs[0]).collect();
        let bounds = Bounds { ys, ..Bounds::default() };
        let sources = |id| self.loops.sources_and_control(graph, id, frame);
        Region::find(graph, &bounds, sources).order
    }

    /// Which variables and constants of a loop have a gradient: those that lead from a reached value to an exit with a
    /// gradient, perhaps through several iterations.
    fn flowing(
        &self,
        frame: FrameId,
        info: &LoopFrame,
        given: &[Option<Gradient>],
        region: &Region,
    ) -> Flowing {
        let graph = self.b.graph();
        let results: Vec<Output> =
            info.vars.iter().map(|var| graph.node(var.next).inputs[0]).collect();
        let leads = |from: Output| -> Vec<bool> {
            let bounds = Bounds { ys: results.clone(), xs: [from].into(), ..Bounds::default() };
            let inner = Region::find(graph, &bounds, |id| self.loops.sources(graph, id, frame));
            results.iter().map(|result| inner.reached.contains(result)).collect()
        };
        let vars: Vec<Vec<bool>> =
            info.vars.iter().map(|var| leads(Output::new(var.switch, 1))).collect();
        let constants: Vec<Vec<bool>> =
            info.constants.iter().map(|&enter| leads(enter.into())).collect();
        let reached = |enter: NodeId| region.reached.contains(&graph.node(enter).inputs[0]);
        let trainable =
            |var: usize| is_trainable(graph.dtype(Output::new(info.vars[var].switch, 1)));
        let count = info.vars.len();
        let mut wanted: Vec<bool> =
            (0..count).map(|at| trainable(at) && reached(info.vars[at].enter)).collect();
        for (at, leads) in constants.iter().enumerate() {
            if reached(info.constants[at]) {
                (0..count).for_each(|to| wanted[to] |= leads[to]);
            }
        }
        spread(&mut wanted, |at, to| vars[at][to]);
        let mut flowing: Vec<bool> =
            (0..count).map(|at| given[at].is_some() && wanted[at]).collect();
        spread(&mut flowing, |at, to| vars[to][at] && wanted[to]);
        let constants = constants.iter().enumerate().map(|(at, leads)| {
            reached(info.constants[at]) && (0..count).any(|to| leads[to] && flowing[to])
        });
        Flowing { constants: constants.collect(), vars: flowing }
    }

    /// Opens the frame of the gradient, with a count down; returns its condition.
    fn open_scope(
        &mut self,
        frame: FrameId,
        info: &LoopFrame,
        total: Output,
    ) -> Result<Output, GradientError> {
        let name = format!("{}{}_grad", self.prefix, info.name);
        let placeholder = total.node;
        let (graph, order) = (self.b.graph(), self.order_of(frame, info));
        let contexts = Contexts::find(graph, &order, |id| self.loops.sources(graph, id, frame));
        self.scopes.push(Scope {
            frame,
            name: format!("{name}_{}", self.home.len()),
            parallel: info.parallel,
            pivot: placeholder,
            next_count: placeholder,
            here: HashMap::new(),
            branches: HashMap::new(),
            contexts,
        });
        let depth = self.depth();
        let none = AttrMap::new;
        let enter = self.enter(total, depth, false)?;
        let merge = self.raw("count/Merge", "Merge", &[enter, enter], &[], none(), depth)?;
        let zero = self.raw_int(0, merge, depth)?;
        let more =
            self.raw("count/Greater", "Greater", &[merge.into(), zero], &[], none(), depth)?;
        let cond = self.raw("count/LoopCond", "LoopCond", &[more.into()], &[], none(), depth)?;
        let inputs = [merge.into(), cond.into()];
        let switch = self.raw("count/Switch", "Switch", &inputs, &[], none(), depth)?;
        let going = [Output::new(switch, 1)];
        let pivot = self.raw("count/Identity", "Identity", &going, &[], none(), depth)?;
        let one = self.raw_int(1, pivot, depth)?;
        let next_count = self.raw("count/Sub", "Sub", &[pivot.into(), one], &[], none(), depth)?;
        let next = [next_count.into()];
        let next = self.raw("count/NextIteration", "NextIteration", &next, &[], none(), depth)?;
        self.b.back_edge(merge, 1, next)?;
        if let Some(scope) = self.scopes.last_mut() {
            (scope.pivot, scope.next_count) = (pivot, next_count);
        }
        Ok(cond.into())
    }

    /// Brings the gradients with which a loop begins into its frame.
    fn carry(
        &mut self,
        info: &LoopFrame,
        flowing: &Flowing,
        begin: &[Output],
        cond: Output,
    ) -> Result<Vec<Carried>, GradientError> {
        let graph = self.b.graph();
        let outside = |enter: NodeId| graph.node(enter).inputs[0];
        let vars = info.vars.iter().enumerate().filter(|(at, _)| flowing.vars[*at]);
        let vars = vars.map(|(_, var)| (Output::new(var.switch, 1), outside(var.enter), false));
        let constants = info.constants.iter().enumerate().filter(|(at, _)| flowing.constants[*at]);
        let constants = constants.map(|(_, &enter)| (Output::from(enter), outside(enter), true));
        let all: Vec<(Output, Output, bool)> = vars.chain(constants).collect();
        let (depth, none) = (self.depth(), AttrMap::new);
        let mut carried = Vec::with_capacity(all.len());
        for ((of, to, adds), &value) in all.into_iter().zip(begin) {
            let enter = self.enter(value, depth, false)?;
            let merge = self.raw("Merge", "Merge", &[enter, enter], &[], none(), depth)?;
            let inputs = [merge.into(), cond];
            let switch = self.raw("Switch", "Switch", &inputs, &[], none(), depth)?;
            if self.b.graph().dtype(of).base() != DType::RESOURCE {
                self.known.copy_shape(of, Output::new(switch, 1));
            }
            carried.push(Carried { of, to, adds, merge, switch });
        }
        Ok(carried)
    }

    /// The gradient of one iteration.
    fn iteration(
        &mut self,
        frame: FrameId,
        info: &LoopFrame,
        carried: &[Carried],
    ) -> Result<(), GradientError> {
        let mut found = Gradients::default();
        let mut ys = Vec::new();
        for var in carried.iter().filter(|var| !var.adds) {
            let own = info.vars.iter().find(|own| Output::new(own.switch, 1) == var.of);
            let Some(own) = own else { continue };
            let y = self.b.graph().node(own.next).inputs[0];
            found.add(y, None, Gradient::Dense(Output::new(var.switch, 1)));
            ys.push(y);
        }
        let xs: HashSet<Output> = carried.iter().map(|var| var.of).collect();
        let bounds =
            Bounds { ys, xs, stops: self.options.stop_gradients.iter().copied().collect() };
        let region = self.region(&bounds, frame);
        self.walk(&region, &bounds, &mut found, frame)?;
        let depth = self.depth();
        for var in carried {
            let so_far = Output::new(var.switch, 1);
            let variant = self.b.graph().dtype(so_far).base() == DType::VARIANT;
            let op = if variant { "AddN" } else { "AddV2" };
            let gradient = match self.total(var.of, &mut found)? {
                Some(gradient) => Some(self.dense(var.of, gradient)?),
                None => None,
            };
            let value = match (gradient, var.adds) {
                (Some(gradient), true) => {
                    let name = self.b.unused_name(&format!("{}loop/sum", self.prefix));
                    self.add(&name, op, &[so_far, gradient], AttrMap::new())?.into()
                }
                (None, true) => so_far,
                (Some(gradient), false) => gradient,
                (None, false) => {
                    let name = self.b.unused_name(&format!("{}loop/zeros", self.prefix));
                    self.add(&name, "ZerosLike", &[so_far], AttrMap::new())?.into()
                }
            };
            let value = self.at(value, depth)?;
            let none = AttrMap::new();
            let next = self.raw("NextIteration", "NextIteration", &[value], &[], none, depth)?;
            self.b.back_edge(var.merge, 1, next)?;
        }
        Ok(())
    }
}
