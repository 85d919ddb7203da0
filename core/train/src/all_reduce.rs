//! Data parallelism by all-reduce: each replica has variables of its own, and all update them by the mean of their gradients.
//!
//! Beside [`towers`](crate::towers), whose variables are in one place: here nothing but gradients crosses devices, and no
//! device adds up for the others. The replicas are parts of one graph, on several devices or tasks, or graphs of their own,
//! each of one master. Their variables begin with the same values, and stay equal: all apply the same bits.

use crate::{
    TrainError, Variable, Variables,
    nodes::Scope,
    optimizer::{Optimizer, VariableGradient, dense},
};
use tenon_gradient::Gradient;
use tenon_graph::{GraphBuilder, NodeId, Output};

/// The group of devices whose replicas train together. All replicas describe it alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaGroup {
    /// The key of the group: its own among the groups of a session, or of a cluster.
    pub key: i32,
    /// The number of replicas.
    pub size: u32,
    /// The key of the first of its operations; one follows for each variable.
    pub first_instance: i32,
}

impl ReplicaGroup {
    /// A group of this many replicas, with keys from 1 on.
    pub fn of(size: u32) -> ReplicaGroup {
        ReplicaGroup { key: 1, size, first_instance: 1 }
    }

    /// Adds the mean over all replicas of the loss and of each gradient of one replica, on its device. All replicas call this
    /// with the gradients of the same variables in the same order. A gradient that is given as slices is added up in a
    /// tensor of the variable's shape; a variable without a gradient has none in all replicas.
    ///
    /// # Errors
    /// The group has no member, or more operations than there are keys; the graph refuses a node.
    pub fn mean(
        &self,
        b: &mut GraphBuilder<'_>,
        device: &str,
        loss: Output,
        gradients: &[VariableGradient],
    ) -> Result<(Output, Vec<VariableGradient>), TrainError> {
        if self.size == 0 {
            return Err(TrainError::argument("replicas of a group", "at least one", "none"));
        }
        let prefix = b.unused_name("all_reduce");
        let mut scope = Scope::new(b, &format!("{prefix}/loss"), device);
        let loss = self.reduced(&mut scope, loss, 0)?;
        let mut means = Vec::with_capacity(gradients.len());
        for (at, (gradient, variable)) in gradients.iter().enumerate() {
            let mut scope = Scope::new(b, &format!("{prefix}/{}", variable.name), device);
            let value = match *gradient {
                None => None,
                Some(Gradient::Dense(value)) => Some(value),
                Some(Gradient::Slices { values, indices, .. }) => {
                    Some(dense(&mut scope, variable, values, indices)?)
                }
            };
            let mean = value.map(|value| self.reduced(&mut scope, value, at + 1)).transpose()?;
            means.push((mean.map(Gradient::Dense), variable.clone()));
        }
        Ok((loss, means))
    }

    /// Adds one update of a replica's variables by the mean of all gradients. Returns it, and the mean of the losses.
    ///
    /// # Errors
    /// As [`ReplicaGroup::mean`] and [`Optimizer::apply`].
    pub fn synchronous(
        &self,
        b: &mut GraphBuilder<'_>,
        variables: &mut Variables,
        optimizer: &dyn Optimizer,
        replica: (&str, Output, &[VariableGradient]),
        global_step: Option<&Variable>,
    ) -> Result<(NodeId, Output), TrainError> {
        let (device, loss, gradients) = replica;
        let (loss, means) = self.mean(b, device, loss, gradients)?;
        let update =
            b.with_device(device, |b| optimizer.apply(b, variables, &means, global_step))??;
        Ok((update, loss))
    }

    /// The mean of a value over all replicas.
    fn reduced(
        &self,
        scope: &mut Scope<'_, '_>,
        value: Output,
        number: usize,
    ) -> Result<Output, TrainError> {
        let key = i32::try_from(number).ok().and_then(|it| self.first_instance.checked_add(it));
        let key = key.ok_or_else(|| {
            let (what, found) = ("keys of a group's operations", format!("number {number}"));
            TrainError::argument(what, "numbers of 32 bits", found)
        })?;
        let node = scope.node("CollectiveReduce").input(value);
        let node =
            node.attr("group_size", i64::from(self.size)).attr("group_key", i64::from(self.key));
        let node = node.attr("instance_key", i64::from(key)).attr("merge_op", "Add");
        let node = node.attr("final_op", "Div").attr("subdiv_offsets", vec![0i64]);
        Ok(node.build()?.into())
    }
}
