//! Replicas that run at their own pace, and updates that wait for enough of their gradients.

use crate::{
    Initial, Towers, TrainError, Variable, VariableOptions, Variables,
    nodes::{Scope, group},
    optimizer::{Optimizer, VariableGradient, deduplicated, dense},
};
use tenon_framework::{
    DType, PartialShape, Tensor,
    attr::{AttrList, AttrValue},
};
use tenon_gradient::Gradient;
use tenon_graph::{GraphBuilder, NodeId, Output};

/// Synchronous training of replicas through accumulators (`tf.compat.v1.train.SyncReplicasOptimizer`).
///
/// Each variable has an accumulator beside it. A replica adds its gradients with the number of the step for which it
/// computed them, and waits for a token; an accumulator drops a gradient of an earlier step. The chief's op waits for
/// `to_aggregate` gradients of each variable, updates by their mean, and gives each replica a token. With `to_aggregate`
/// below the number of replicas, slow replicas are backups: their gradients are dropped.
///
/// TensorFlow has one queue of tokens for all replicas, from which a fast replica can take the token of another. Here each
/// replica has its own queue, so that all of them take part in each update, and after a token it reads the step that is
/// current then.
///
/// Of slices, an accumulator takes the mean for each index over the gradients that have it, as TensorFlow's does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncReplicas {
    /// The gradients of an update.
    pub to_aggregate: i32,
}

/// The ops of [`SyncReplicas`].
#[derive(Debug, Clone)]
pub struct Replicated {
    /// Run once, after the variables have values: sets the steps of replicas and accumulators to the global step.
    pub start: NodeId,
    /// One for each replica, which runs it again and again.
    pub train: Vec<NodeId>,
    /// The chief runs it again and again on a thread of its own.
    pub chief: NodeId,
    /// Closes the queues of tokens: a replica that waits for one gets `OUT_OF_RANGE`.
    pub close: NodeId,
    /// The steps of the replicas, which are local variables: no checkpoint has them. `start` gives them values.
    pub local: Variables,
}

/// Slices in ascending order of their indices, none twice, as accumulators require.
fn ascending(
    scope: &mut Scope<'_, '_>,
    values: Output,
    indices: Output,
) -> Result<(Output, Output), TrainError> {
    let (values, indices) = deduplicated(scope, values, indices)?;
    let indices = scope.cast(indices, DType::INT64)?;
    let negative = scope.unary("Neg", indices)?;
    let count = scope.unary("Size", indices)?;
    let order = scope.node("TopKV2").input(negative).input(count).build()?;
    let axis = scope.constant("axis", Tensor::scalar(0i32)?)?;
    let mut gather = |values: Output| {
        let gather = scope.node("GatherV2").input(values).input(Output::new(order, 1));
        Ok::<Output, TrainError>(gather.input(axis).build()?.into())
    };
    Ok((gather(values)?, gather(indices)?))
}

/// The accumulator of a variable.
struct Accumulator<'a> {
    variable: &'a Variable,
    device: &'a str,
    handle: NodeId,
    /// What the names of its ops begin with.
    family: &'static str,
    dims: Output,
}

impl<'a> Accumulator<'a> {
    fn new(
        b: &mut GraphBuilder<'_>,
        variable: &'a Variable,
        device: &'a str,
        is_sparse: bool,
    ) -> Result<Accumulator<'a>, TrainError> {
        let (kind, family) = match is_sparse {
            true => ("SparseConditionalAccumulator", "Sparse"),
            false => ("ResourceConditionalAccumulator", "Resource"),
        };
        let dims = variable.shape.dims();
        let mut scope = Scope::new(b, &variable.name, device);
        let node = scope.named("grad_accum", kind).attr("dtype", variable.dtype);
        let node = node.attr("shared_name", format!("{}/grad_accum", variable.name).as_str());
        let handle = node.attr("shape", PartialShape::new(dims)?).build()?;
        let dims = Tensor::from_slice(&[dims.len() as i64], dims)?;
        let dims = scope.constant("grad_accum/shape", dims)?;
        Ok(Accumulator { variable, device, handle, family, dims })
    }

    fn scope<'s, 'r>(&self, b: &'s mut GraphBuilder<'r>) -> Scope<'s, 'r> {
        Scope::new(b, &format!("{}/grad_accum", self.variable.name), self.device)
    }

    /// Adds a gradient of a step.
    fn apply(
        &self,
        b: &mut GraphBuilder<'_>,
        step: Output,
        gradient: &Gradient,
    ) -> Result<NodeId, TrainError> {
        let mut scope = self.scope(b);
        let op = format!("{}AccumulatorApplyGradient", self.family);
        let inputs = match (*gradient, self.family) {
            (Gradient::Dense(value), "Resource") => vec![value],
            (Gradient::Slices { values, indices, .. }, "Resource") => {
                vec![dense(&mut scope, self.variable, values, indices)?]
            }
            (Gradient::Slices { values, indices, .. }, _) => {
                let (values, indices) = ascending(&mut scope, values, indices)?;
                vec![indices, values, self.dims]
            }
            (Gradient::Dense(_), _) => {
                let what = format!("the gradients of variable '{}'", self.variable.name);
                return Err(TrainError::argument(what, "slices in each tower", "a tensor in one"));
            }
        };
        let node = scope.node(&op).input(self.handle).input(step).inputs(inputs);
        let node = node.attr("dtype", self.variable.dtype);
        let node = if self.family == "Sparse" { node.attr("has_known_shape", true) } else { node };
        Ok(node.build()?)
    }

    /// Takes the mean of so many gradients.
    fn take(&self, b: &mut GraphBuilder<'_>, count: i32) -> Result<Gradient, TrainError> {
        let mut scope = self.scope(b);
        let count = scope.constant("num_required", Tensor::scalar(count)?)?;
        let op = format!("{}AccumulatorTakeGradient", self.family);
        let taken = scope.node(&op).input(self.handle).input(count);
        let taken = taken.attr("dtype", self.variable.dtype).build()?;
        Ok(match self.family {
            "Resource" => Gradient::Dense(taken.into()),
            _ => Gradient::Slices {
                values: Output::new(taken, 1),
                indices: Output::new(taken, 0),
                dense_shape: Some(Output::new(taken, 2)),
            },
        })
    }

    fn set_step(&self, b: &mut GraphBuilder<'_>, step: Output) -> Result<NodeId, TrainError> {
        let family = if self.family == "Sparse" { "" } else { self.family };
        let op = format!("{family}AccumulatorSetGlobalStep");
        Ok(self.scope(b).node(&op).input(self.handle).input(step).build()?)
    }
}

impl SyncReplicas {
    /// Adds the ops for replicas that are towers of this graph. The global step has to be an int64.
    ///
    /// # Errors
    /// `to_aggregate` is not between 1 and the number of replicas, or as [`Optimizer::apply`].
    pub fn build(
        self,
        b: &mut GraphBuilder<'_>,
        variables: &mut Variables,
        optimizer: &dyn Optimizer,
        towers: &Towers,
        global_step: &Variable,
    ) -> Result<Replicated, TrainError> {
        let replicas = towers.towers.len();
        if !usize::try_from(self.to_aggregate).is_ok_and(|count| (1..=replicas).contains(&count)) {
            let expected = format!("between 1 and {replicas}, the number of replicas");
            let found = self.to_aggregate.to_string();
            return Err(TrainError::argument("replicas to aggregate", expected, found));
        }
        if global_step.dtype != DType::INT64 {
            let found = global_step.dtype.to_string();
            return Err(TrainError::argument("the global step of replicas", "int64", found));
        }
        let accumulators = accumulators(b, towers)?;
        let tokens = Tokens::new(b, replicas, global_step)?;
        let (local, train) = replicas_of(b, towers, &accumulators, &tokens, global_step)?;
        let mut means: Vec<VariableGradient> = Vec::new();
        for accumulator in accumulators.iter().flatten() {
            let mean = accumulator.take(b, self.to_aggregate)?;
            means.push((Some(mean), accumulator.variable.clone()));
        }
        let update = optimizer.apply(b, variables, &means, Some(global_step))?;
        let chief = tokens.give(b, update)?;
        let step = global_step.value;
        let mut starts = Vec::new();
        for variable in local.all() {
            let mut scope = Scope::new(b, &variable.name, &variable.device);
            let assign = scope.node("AssignVariableOp").input(variable.handle).input(step);
            starts.push(assign.build()?);
        }
        for accumulator in accumulators.iter().flatten() {
            starts.push(accumulator.set_step(b, step)?);
        }
        let start = group(b, "sync_replicas/start", &global_step.device, &starts)?;
        let close = tokens.close(b)?;
        Ok(Replicated { start, train, chief, close, local })
    }
}

/// The accumulators of the variables that have a gradient.
fn accumulators<'a>(
    b: &mut GraphBuilder<'_>,
    towers: &'a Towers,
) -> Result<Vec<Option<Accumulator<'a>>>, TrainError> {
    let first = towers.towers.first().map_or(&[][..], |tower| &tower.gradients);
    let of = |(at, (_, variable)): (usize, &'a VariableGradient)| {
        let given = towers.towers.iter().map(|tower| tower.gradients.get(at)?.0);
        let given: Vec<Option<Gradient>> = given.collect();
        if given.iter().all(Option::is_none) {
            return Ok(None);
        }
        if given.iter().any(Option::is_none) {
            let what = format!("the gradients of variable '{}'", variable.name);
            return Err(TrainError::argument(what, "one in each tower", "none in one of them"));
        }
        let is_sparse =
            given.iter().flatten().all(|gradient| matches!(gradient, Gradient::Slices { .. }));
        Accumulator::new(b, variable, towers.device_of(variable), is_sparse).map(Some)
    };
    first.iter().enumerate().map(of).collect()
}

/// The queues of tokens, one for each replica.
struct Tokens<'a> {
    queues: Vec<NodeId>,
    global_step: &'a Variable,
}

impl<'a> Tokens<'a> {
    fn new(
        b: &mut GraphBuilder<'_>,
        replicas: usize,
        global_step: &'a Variable,
    ) -> Result<Tokens<'a>, TrainError> {
        let mut queues = Vec::with_capacity(replicas);
        for at in 0..replicas {
            let name = b.unused_name(&format!("sync_token_q_{at}"));
            let queue = b.op("FIFOQueueV2").name(&name).device(&global_step.device);
            let types = AttrValue::List(AttrList::Type(vec![global_step.dtype]));
            let shapes = AttrValue::List(AttrList::Shape(vec![PartialShape::new(&[])?]));
            let queue = queue.attr("component_types", types).attr("shapes", shapes);
            queues.push(queue.attr("shared_name", name.as_str()).build()?);
        }
        Ok(Tokens { queues, global_step })
    }

    fn scope<'s, 'r>(&self, b: &'s mut GraphBuilder<'r>) -> Scope<'s, 'r> {
        Scope::new(b, "sync_replicas", &self.global_step.device)
    }

    /// The global step after a node.
    fn step(&self, b: &mut GraphBuilder<'_>, after: NodeId) -> Result<Output, TrainError> {
        let step = self.global_step;
        let mut scope = self.scope(b);
        let read = scope.node("ReadVariableOp").input(step.handle).attr("dtype", step.dtype);
        Ok(read.control(after).build()?.into())
    }

    /// Puts a token into each queue, after a node.
    fn give(&self, b: &mut GraphBuilder<'_>, after: NodeId) -> Result<NodeId, TrainError> {
        let token = self.step(b, after)?;
        let mut given = Vec::with_capacity(self.queues.len());
        for &queue in &self.queues {
            let give = self.scope(b).node("QueueEnqueueV2").input(queue).input(token).build()?;
            given.push(give);
        }
        group(b, "sync_replicas/chief", &self.global_step.device, &given)
    }

    /// Takes a token of a replica after these nodes, and gives the global step then.
    fn take(
        &self,
        b: &mut GraphBuilder<'_>,
        replica: usize,
        after: &[NodeId],
    ) -> Result<Output, TrainError> {
        let types = AttrValue::List(AttrList::Type(vec![self.global_step.dtype]));
        let mut scope = self.scope(b);
        let take = scope.node("QueueDequeueV2").attr("component_types", types);
        let take = take.inputs(self.queues.get(replica).map(|&queue| queue.into()));
        let take = after.iter().fold(take, |take, &node| take.control(node)).build()?;
        self.step(b, take)
    }

    fn close(&self, b: &mut GraphBuilder<'_>) -> Result<NodeId, TrainError> {
        let mut closed = Vec::with_capacity(self.queues.len());
        for &queue in &self.queues {
            closed.push(self.scope(b).node("QueueCloseV2").input(queue).build()?);
        }
        group(b, "sync_replicas/close", &self.global_step.device, &closed)
    }
}

/// The steps of the replicas, and what each of them runs.
fn replicas_of(
    b: &mut GraphBuilder<'_>,
    towers: &Towers,
    accumulators: &[Option<Accumulator<'_>>],
    tokens: &Tokens<'_>,
    global_step: &Variable,
) -> Result<(Variables, Vec<NodeId>), TrainError> {
    let (mut local, mut train) = (Variables::new(), Vec::with_capacity(towers.towers.len()));
    for (at, tower) in towers.towers.iter().enumerate() {
        let device = global_step.device.clone();
        let options = VariableOptions { is_trainable: false, device, slice: None };
        let name = format!("sync_rep_local_step_{at}");
        let step = local.add_with(b, &name, DType::INT64, &[], &Initial::Zeros, options)?;
        let mut applied = Vec::with_capacity(accumulators.len());
        for ((gradient, _), accumulator) in tower.gradients.iter().zip(accumulators) {
            if let (Some(gradient), Some(accumulator)) = (gradient, accumulator) {
                applied.push(accumulator.apply(b, step.value, gradient)?);
            }
        }
        let token = tokens.take(b, at, &applied)?;
        let mut scope = Scope::new(b, "sync_replicas", &step.device);
        let assign = scope.named("train", "AssignVariableOp").input(step.handle).input(token);
        train.push(assign.build()?);
    }
    Ok((local, train))
}
