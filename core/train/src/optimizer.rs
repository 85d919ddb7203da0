//! Optimisers: nodes that change variables against their gradients.
//!
//! What it is: an [`Optimizer`] names a [`Rule`], which is a table: the op that updates one variable, the slots that the
//! op has beside the variable, and its scalars. One function reads the table, and adds slots and updates to a graph. The
//! optimisers of TensorFlow are such tables, with TensorFlow's names and defaults; an optimiser of your own is another
//! one.
//!
//! What it is not: the arithmetic, which is in the kernels of `plugins/train`.
//!
//! # Names
//! Slots are variables, named as `tf.compat.v1.train` names them: `w/Momentum`; `w/Adam` and `w/Adam_1`, with
//! `beta1_power` and `beta2_power`; `w/RMSProp` and `w/RMSProp_1`. A checkpoint of TensorFlow with them can be restored. An
//! optimiser has its slots however often it is applied to a graph; clones share them, and others have slots of their own.
//!
//! # Order within a step
//! An update follows the computation of its gradient and nothing else, as in TensorFlow: another reader of the variable
//! may read it before or after the update. [`Gate::Graph`] computes all gradients before any update.
//!
//! # Example
//! ```
//! use tenon_framework::{DType, PartialShape, registry::*};
//! use tenon_graph::GraphBuilder;
//! use tenon_training::{
//!     Initial, Variables, global_step,
//!     optimizer::{Adam, MinimizeOptions, Optimizer},
//!     schedule::Schedule,
//! };
//!
//! # tenon_ops::link();
//! # tenon_framework::testing::install_host();
//! # let mut plugin = Transaction::new(PluginInfo::linked(PluginId(0), "ops", "0", 0));
//! # tenon_author::testing::registered_ops().into_values().for_each(|op| plugin.add_op(op));
//! # let (registry, _) = commit_all(&Registry::new(), vec![plugin]).unwrap();
//! let (mut b, mut variables) = (GraphBuilder::new(&registry), Variables::new());
//! let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[-1, 3])?)?;
//! let w = variables.add(&mut b, "w", DType::FLOAT, &[3, 1], &Initial::GlorotUniform { seed: (1, 2) })?;
//! let step = global_step(&mut b, &mut variables)?;
//! let y = b.op("MatMul").input(x).input(w.value).build()?;
//! let loss = b.op("L2Loss").name("loss").input(y).build()?;
//!
//! let rate = Schedule::exponential(0.1, 100.0, 0.5).build(&mut b, "rate", &step, DType::FLOAT)?;
//! let options = MinimizeOptions { global_step: Some(step), ..MinimizeOptions::default() };
//! let train = Adam::new(rate).minimize(&mut b, &mut variables, loss.into(), &options)?;
//! assert_eq!(b.graph().node(train).name, "Adam");
//! assert!(variables.find("w/Adam_1").is_some_and(|slot| !slot.is_trainable));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apply;
mod decay;
mod rule;
mod slices;
mod table;

pub use decay::{DecoupledWeightDecay, weight_decay_loss};
pub use rule::{Argument, Decay, Power, Rule, Slices};
pub use table::{Adadelta, Adagrad, Adam, AdamW, Adamax, Ftrl, GradientDescent, Momentum, RmsProp};

pub(crate) use slices::{deduplicated, dense};

use crate::{TrainError, Variable, Variables, nodes::Scope};
use tenon_gradient::{Gradient, Options, gradients};
use tenon_graph::{GraphBuilder, NodeId, Output};

/// The gradient of a loss with respect to a variable; `None` if the loss does not depend on it.
pub type VariableGradient = (Option<Gradient>, Variable);

/// Adds updates of variables to a graph.
pub trait Optimizer {
    /// What the optimiser does to one variable.
    ///
    /// # Errors
    /// A hyperparameter is out of its range.
    fn rule(&self) -> Result<Rule, TrainError>;

    /// Adds updates of variables by their gradients, and returns the node that runs all of them. With `global_step`, the
    /// node also adds 1 to that variable after the updates.
    ///
    /// # Errors
    /// No variable has a gradient, a gradient's type is not the variable's, or the graph refuses a node.
    fn apply(
        &self,
        b: &mut GraphBuilder<'_>,
        variables: &mut Variables,
        gradients: &[VariableGradient],
        global_step: Option<&Variable>,
    ) -> Result<NodeId, TrainError> {
        apply::apply(&self.rule()?, b, variables, gradients, global_step)
    }

    /// Differentiates `loss` with respect to the trainable variables, and adds updates by these gradients.
    ///
    /// # Errors
    /// As [`compute_gradients`] and [`Optimizer::apply`].
    fn minimize(
        &self,
        b: &mut GraphBuilder<'_>,
        variables: &mut Variables,
        loss: Output,
        options: &MinimizeOptions,
    ) -> Result<NodeId, TrainError> {
        let gradients = compute_gradients(b, variables, loss, options)?;
        self.apply(b, variables, &gradients, options.global_step.as_ref())
    }
}

/// What waits for what while gradients are computed and used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gate {
    /// Nothing waits.
    None,
    /// The gradients of a node's inputs are complete before one of them is used.
    #[default]
    Op,
    /// All gradients are complete before one of them is used.
    Graph,
}

/// What a caller of [`Optimizer::minimize`] may choose.
#[derive(Debug, Clone, Default)]
pub struct MinimizeOptions {
    /// The variables to change; all trainable ones if it is `None`.
    pub variables: Option<Vec<Variable>>,
    /// The variable that counts updates.
    pub global_step: Option<Variable>,
    /// Whether the nodes of gradients run on the devices of the nodes whose gradients they are.
    pub colocate: bool,
    /// What waits for what.
    pub gate: Gate,
    /// The gradient of the loss; ones if it is `None`.
    pub grad_loss: Option<Output>,
    /// Tensors through which no gradient flows.
    pub stop_gradients: Vec<Output>,
}

/// Adds the gradients of `loss` with respect to variables, through whatever reads their handles.
///
/// # Errors
/// There are no variables, or an op between has no gradient.
pub fn compute_gradients(
    b: &mut GraphBuilder<'_>,
    variables: &Variables,
    loss: Output,
    options: &MinimizeOptions,
) -> Result<Vec<VariableGradient>, TrainError> {
    let chosen = options.variables.clone();
    let chosen: Vec<Variable> = chosen.unwrap_or_else(|| variables.trainable().cloned().collect());
    if chosen.is_empty() {
        let found = "none; add one, or name variables in the options";
        return Err(TrainError::argument("what to optimise", "at least one variable", found));
    }
    let handles: Vec<Output> = chosen.iter().map(|variable| variable.handle).collect();
    let how = Options {
        colocate: options.colocate,
        gate: options.gate == Gate::Op,
        stop_gradients: options.stop_gradients.clone(),
        grad_ys: options.grad_loss.map(|g| vec![Some(Gradient::Dense(g))]).unwrap_or_default(),
        ..Options::default()
    };
    let mut made = gradients(b, &[loss], &handles, &how)?;
    if options.gate == Gate::Graph {
        made = gated(b, &made)?;
    }
    Ok(made.into_iter().zip(chosen).collect())
}

/// Each gradient again, once all of them are computed.
fn gated(
    b: &mut GraphBuilder<'_>,
    gradients: &[Option<Gradient>],
) -> Result<Vec<Option<Gradient>>, TrainError> {
    let before: Vec<NodeId> =
        gradients.iter().flatten().map(|gradient| values(gradient).node).collect();
    let mut scope = Scope::new(b, "tuple", "");
    let group = scope.named("group_deps", "NoOp");
    let group = before.into_iter().fold(group, |group, node| group.control(node)).build()?;
    let mut wait = |value: Output| {
        let value = scope.named("control_dependency", "Identity").input(value).control(group);
        Ok::<_, TrainError>(Output::from(value.build()?))
    };
    let wait_for = |gradient: &Option<Gradient>| match *gradient {
        None => Ok(None),
        Some(Gradient::Dense(value)) => Ok(Some(Gradient::Dense(wait(value)?))),
        Some(Gradient::Slices { values, indices, dense_shape }) => {
            Ok(Some(Gradient::Slices { values: wait(values)?, indices, dense_shape }))
        }
    };
    gradients.iter().map(wait_for).collect()
}

/// The numbers of a gradient: the tensor, or the slices.
pub(crate) fn values(gradient: &Gradient) -> Output {
    match gradient {
        Gradient::Dense(values) | Gradient::Slices { values, .. } => *values,
    }
}

/// A gradient with other numbers in the same places.
pub(crate) fn with_values(gradient: &Gradient, values: Output) -> Gradient {
    match *gradient {
        Gradient::Dense(_) => Gradient::Dense(values),
        Gradient::Slices { indices, dense_shape, .. } => {
            Gradient::Slices { values, indices, dense_shape }
        }
    }
}
