//! The scales of 8-bit tensors, and the sharing of scales.
//!
//! A computed tensor has the scale of its own range. An op that only moves values keeps the scale
//! of its input, and an op that joins several tensors makes them share one scale, whose range
//! covers all of theirs.

use super::{
    QuantizeError,
    between::Between,
    plan::{Plan, Role},
};
use std::collections::HashMap;
use tenon_framework::DType;
use tenon_geometry::fixed_point::Affine;
use tenon_graph::Output;

/// The type of activations.
pub(super) const BYTES: DType = DType::QUINT8;

/// The least and the greatest number that a tensor must represent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The least number.
    pub min: f32,
    /// The greatest number.
    pub max: f32,
}

impl Range {
    /// The range that covers both.
    #[must_use]
    pub fn hull(self, other: Range) -> Range {
        Range { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// The scale of each 8-bit tensor.
pub(super) struct Scales {
    /// The parent of each group; joined groups lead to the same root.
    parents: Vec<usize>,
    ranges: Vec<Range>,
    /// The tensor that each group is named after.
    first: Vec<Output>,
    groups: HashMap<Output, usize>,
}

impl Scales {
    /// Determines the scales of a plan from the ranges of its observed tensors.
    ///
    /// # Errors
    /// A tensor has no range, or an invalid one.
    pub fn new(plan: &Plan<'_>, ranges: &HashMap<Output, Range>) -> Result<Scales, QuantizeError> {
        let mut scales = Scales {
            parents: Vec::new(),
            ranges: Vec::new(),
            first: Vec::new(),
            groups: HashMap::new(),
        };
        let fed = plan.step.sub.feeds.iter().copied();
        for tensor in fed.filter(|feed| plan.bytes.contains(feed)) {
            scales.add(plan, ranges, tensor)?;
        }
        for &id in &plan.step.sub.order {
            for at in 0..plan.step.node(id).outputs().len() as u32 {
                let tensor = Output::new(id, at);
                if plan.bytes.contains(&tensor) && !plan.step.is_fed(tensor) {
                    scales.place(plan, ranges, tensor)?;
                }
            }
        }
        Ok(scales)
    }

    fn place(
        &mut self,
        plan: &Plan<'_>,
        ranges: &HashMap<Output, Range>,
        tensor: Output,
    ) -> Result<(), QuantizeError> {
        let Role::Between(at) = plan.role(tensor.node) else {
            return self.add(plan, ranges, tensor);
        };
        let between = &plan.between[at];
        if between.rescales() {
            return self.add(plan, ranges, tensor);
        }
        let group = self.group(between.inputs[0]);
        if let Between::Joined(_) = between.what {
            for &input in &between.inputs[1..] {
                self.join(group, self.group(input));
            }
        }
        self.groups.insert(tensor, group);
        Ok(())
    }

    /// Adds a tensor with its own range.
    fn add(
        &mut self,
        plan: &Plan<'_>,
        ranges: &HashMap<Output, Range>,
        tensor: Output,
    ) -> Result<(), QuantizeError> {
        let constant = plan.step.floats(tensor).map(range_of);
        let Some(range) = constant.or_else(|| ranges.get(&tensor).copied()) else {
            let tensor = plan.step.graph.output_name(tensor);
            return Err(QuantizeError::NotObserved { tensor });
        };
        self.groups.insert(tensor, self.parents.len());
        self.parents.push(self.parents.len());
        self.ranges.push(range);
        self.first.push(tensor);
        Ok(())
    }

    /// The group of a tensor; it was added before the readers' groups.
    fn group(&self, tensor: Output) -> usize {
        self.root(self.groups.get(&tensor).copied().unwrap_or_default())
    }

    fn root(&self, mut group: usize) -> usize {
        while self.parents[group] != group {
            group = self.parents[group];
        }
        group
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        let (to, from) = (a.min(b), a.max(b));
        if to != from {
            self.ranges[to] = self.ranges[to].hull(self.ranges[from]);
            self.parents[from] = to;
        }
    }

    /// The scale of an 8-bit tensor, and the tensor that it is named after.
    ///
    /// # Errors
    /// The range is invalid.
    pub fn of(&self, plan: &Plan<'_>, tensor: Output) -> Result<(Output, Affine), QuantizeError> {
        let group = self.group(tensor);
        let (first, Range { min, max }) = (self.first[group], self.ranges[group]);
        let affine = Affine::of_range(BYTES, min, max).map_err(|source| QuantizeError::Scale {
            tensor: plan.step.graph.output_name(first),
            source,
        })?;
        Ok((first, affine))
    }
}

fn range_of(values: &[f32]) -> Range {
    values
        .iter()
        .fold(Range { min: 0.0, max: 0.0 }, |range, &x| range.hull(Range { min: x, max: x }))
}
