//! `Gather`, `GatherV2`, `GatherNd`.

use super::{
    copy,
    moves::{Item, JOINED_TEXTS, Move, SLICED_TEXTS, indices, one_integer, place, produce},
};
use crate::split::for_rows;
use tenon_sdk::{
    KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{GatherPlan, GeometryError, SlicePlan},
    growth,
    reg::Numerics,
    register_kernel,
};

/// Slices along an axis.
struct Slices<'a> {
    plan: &'a GatherPlan,
    indices: &'a [i64],
}

impl Move for Slices<'_> {
    fn run<T: Item>(
        &self,
        c: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        let GatherPlan { outer, size, inner, count, .. } = *self.plan;
        let cost = 3.0 + 0.05 * inner as f64 * size_of::<T>() as f64;
        for_rows(c, y, inner, cost, |first, y| {
            let (mut step, mut at) = (first / count, first % count);
            for y in y.chunks_exact_mut(inner) {
                let index = self.indices[step / outer * count + at] as usize;
                copy(&x[0][(step * size + index) * inner..][..inner], y);
                at += 1;
                if at == count {
                    (step, at) = (step + 1, 0);
                }
            }
        })
    }
}

fn write(c: &ComputeContext<'_>, axis: i64, batch_dims: i64) -> Result<(), KernelError> {
    let plan = GatherPlan::new(c.dims(0), c.dims(1), axis, batch_dims)?;
    let indices = indices(c, 1)?;
    let bound = plan.size as i64;
    if let Some(at) = indices.iter().position(|index| !(0..bound).contains(index)) {
        return Err(KernelError::invalid_argument(format!(
            "indices{} = {} is not in [0, {bound})",
            place(c.dims(1), at),
            indices[at]
        )));
    }
    produce(c, &[0], &plan.output, &Slices { plan: &plan, indices: &indices })
}

fn gather(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    write(c, 0, 0)
}

/// `GatherV2`.
struct GatherV2 {
    batch_dims: i64,
}

impl Kernel for GatherV2 {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(GatherV2 { batch_dims: c.attr("batch_dims")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let axis = one_integer(c, 2, "axis")?;
        if !c.dims(2).is_empty() {
            let found = c.dims(2).len();
            return Err(GeometryError::Rank { what: "axis", expected: 0, found }.into());
        }
        write(c, axis, self.batch_dims)
    }
}

/// How indices out of range are treated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BadIndices {
    /// They are errors.
    Refused,
    /// They pick zeros, and write nothing.
    Ignored,
}

impl BadIndices {
    /// Reads the attribute.
    pub(super) fn new(c: &CreateContext<'_>) -> Result<BadIndices, KernelError> {
        match c.attr("bad_indices_policy")? {
            "" | "DEFAULT" | "ERROR" => Ok(BadIndices::Refused),
            "IGNORE" => Ok(BadIndices::Ignored),
            found => Err(KernelError::invalid_argument(format!(
                "bad_indices_policy must be one of DEFAULT, ERROR, IGNORE, found {found:?}"
            ))),
        }
    }

    /// The slices that the index vectors of an input refer to.
    pub(super) fn slices(
        self,
        c: &ComputeContext<'_>,
        input: usize,
        (plan, tensor): (&SlicePlan, &[i64]),
    ) -> Result<Vec<Option<usize>>, KernelError> {
        let indices = indices(c, input)?;
        let vector = |at: usize| &indices[at * plan.depth..(at + 1) * plan.depth];
        let slices = growth::collected((0..plan.count).map(|at| plan.slice(vector(at))))?;
        match slices.iter().position(Option::is_none) {
            Some(at) if self == BadIndices::Refused => {
                let outer = &c.dims(input)[..c.dims(input).len() - 1];
                Err(KernelError::invalid_argument(format!(
                    "indices{} = {:?} does not index into shape {tensor:?}",
                    place(outer, at),
                    vector(at)
                )))
            }
            _ => Ok(slices),
        }
    }
}

/// Slices by their numbers, with zeros for `None`.
pub(super) struct Numbered<'a, S> {
    pub slices: &'a [S],
    pub len: usize,
}

impl<S: Copy + Into<Option<usize>> + Sync> Move for Numbered<'_, S> {
    fn run<T: Item>(
        &self,
        c: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        let cost = 3.0 + 0.05 * self.len as f64 * size_of::<T>() as f64;
        for_rows(c, y, self.len, cost, |first, y| {
            for (&slice, y) in self.slices[first..].iter().zip(y.chunks_exact_mut(self.len)) {
                match slice.into() {
                    Some(slice) => copy(&x[0][slice * self.len..][..self.len], y),
                    None => y.fill(T::default()),
                }
            }
        })
    }
}

/// `GatherNd`.
struct GatherNd {
    bad: BadIndices,
}

impl Kernel for GatherNd {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(GatherNd { bad: BadIndices::new(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let params = c.dims(0);
        if params.is_empty() {
            return Err(KernelError::invalid_argument(
                "params must be at least a vector, found a scalar",
            ));
        }
        let plan = SlicePlan::new(params, c.dims(1))?;
        if plan.count > 0 && params.contains(&0) {
            let message = format!("indices name slices of empty params of shape {params:?}");
            return Err(KernelError::invalid_argument(message));
        }
        let slices = self.bad.slices(c, 1, (&plan, params))?;
        produce(c, &[0], &plan.slices, &Numbered { slices: &slices, len: plan.len })
    }
}

register_kernel!("Gather" on "CPU": fn gather, types = ("Tparams", JOINED_TEXTS),
    numerics = Numerics::EXACT);
register_kernel!("GatherV2" on "CPU": GatherV2, types = ("Tparams", JOINED_TEXTS),
    host_memory = &["axis"], numerics = Numerics::EXACT);
register_kernel!("GatherNd" on "CPU": GatherNd, types = ("Tparams", SLICED_TEXTS),
    numerics = Numerics::EXACT);
