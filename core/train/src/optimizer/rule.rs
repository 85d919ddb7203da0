//! What an optimiser does to one variable, as a table.

use crate::{nodes::Scalar, variables::Identity};

/// An input of an update op behind the variable's handle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Argument {
    /// The handle of the slot of this number.
    Slot(usize),
    /// The value of the power of this number.
    Power(usize),
    /// The learning rate.
    LearningRate,
    /// A constant, with its name.
    Number(&'static str, f64),
    /// `base + numerator / learning rate`, with its name.
    OverRate {
        /// The name.
        name: &'static str,
        /// What is added.
        base: f64,
        /// What is divided.
        numerator: f64,
    },
    /// The gradient. If it is slices, their indices follow.
    Gradient,
}

/// A variable that holds a power: `base` at first, and `base` times more after each application.
#[derive(Debug, Clone, PartialEq)]
pub struct Power {
    /// The name of the variable.
    pub name: &'static str,
    /// The base.
    pub base: f64,
}

/// How a gradient of slices is applied. Slices of the same index are added up first, except by [`Slices::Scatter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slices {
    /// By the op that updates rows: rows without a slice, and their slots, stay as they are.
    Rows,
    /// By `ResourceScatterSub` of the slices times the learning rate.
    Scatter,
    /// As the dense gradient that they stand for: the slots of all rows decay.
    Dense,
}

/// A decay of variables beside their updates: each loses `learning rate * rate` of itself before its update.
#[derive(Debug, Clone, PartialEq)]
pub struct Decay {
    /// The rate.
    pub rate: f64,
    /// Variables whose names contain one of these do not decay.
    pub exclude: Vec<String>,
}

/// What an optimiser does to one variable.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Which optimiser it is: the owner of the slots.
    pub identity: Identity,
    /// The name of the nodes and slots.
    pub name: String,
    /// The end of the names of the update ops: `Momentum` for `ResourceApplyMomentum` and `ResourceSparseApplyMomentum`.
    pub op: &'static str,
    /// The initial value of each slot, in the order in which they are added.
    pub slots: Vec<f64>,
    /// The powers.
    pub powers: Vec<Power>,
    /// The inputs of the op behind the variable.
    pub arguments: Vec<Argument>,
    /// Attributes of the op.
    pub flags: Vec<(&'static str, bool)>,
    /// How slices are applied.
    pub slices: Slices,
    /// The learning rate.
    pub learning_rate: Scalar,
    /// The decay; `None` for none.
    pub decay: Option<Decay>,
}
