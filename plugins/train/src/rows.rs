//! Updates of the rows that indices name.
//!
//! By handles, several calls update one variable at the same time under the shared lock, unless the
//! op says `use_locking`: they lose updates of a row that they share, and nothing else. By references,
//! a call has the variables for itself.

use crate::{
    lane::Trained,
    rules::{
        Rule,
        adaptive::{
            Adadelta, CenteredRmsPropRows, RmsPropRows,
            adagrad::{Adagrad, AdagradDaRows, AdagradV2},
        },
        descent::{KerasMomentum, Momentum},
        proximal::{FtrlRows, ProximalAdagrad, ProximalGradientDescent},
    },
    run,
    variables::{Door, Handle, Inputs, Reference, each, kernels, memory_ns},
};
use std::{array, marker::PhantomData};
use tenon_sdk::{
    author::{Cells, Var},
    geometry::element_count,
    prelude::*,
};
use tenon_vectors::split::{Parts, for_units, is_worth_asking};

/// Elements of a row that are taken from shared variables at once.
const CHUNK: usize = 64;

/// The rows that a call updates.
struct Chosen<'a, T> {
    /// Number of each row, in the order of the indices.
    rows: Vec<usize>,
    /// Elements of a row.
    len: usize,
    gradient: &'a [T],
}

impl<'a, T: Element> Chosen<'a, T> {
    /// The rows that the input after the gradient names, of variables of this shape.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for shapes that do not fit, and for an index that is out of range.
    fn new(
        c: &ComputeContext<'a>,
        inputs: &Inputs,
        dims: &[i64],
    ) -> Result<Chosen<'a, T>, KernelError> {
        let Some((&count, row)) = dims.split_first() else {
            return Err(KernelError::invalid_argument(format!(
                "{} must be at least 1 dimensional, found a scalar",
                inputs.trained()
            )));
        };
        let (gradient, of_indices) = (c.input::<T>(inputs.gradient)?, c.dims(inputs.gradient + 1));
        let &[expected] = of_indices else {
            return Err(KernelError::invalid_argument(format!(
                "indices must be one-dimensional, found shape {of_indices:?}"
            )));
        };
        if gradient.dims.split_first() != Some((&expected, row)) {
            return Err(KernelError::invalid_argument(format!(
                "grad must have a row of shape {row:?} for each of {expected} indices, found shape {:?}",
                gradient.dims
            )));
        }
        let len = element_count(row)?;
        if len == 0 {
            return Err(KernelError::invalid_argument(format!(
                "Inner dimension should be greater than zero, found rows of shape {row:?}"
            )));
        }
        let indices = c.integers(inputs.gradient + 1)?;
        if let Some(at) = indices.iter().position(|index| !(0..count).contains(index)) {
            return Err(KernelError::invalid_argument(format!(
                "Index {} at offset {at} in indices is out of range: expected one in [0, {count})",
                indices[at]
            )));
        }
        let rows = tenon_sdk::growth::collected(indices.iter().map(|&index| index as usize))?;
        Ok(Chosen { rows, len, gradient: gradient.data })
    }

    /// Calls `with` for each row with its part of the gradient, on several threads where there is much to do.
    /// One thread has all updates of a row, in their order.
    fn each(
        &self,
        c: &ComputeContext<'_>,
        cost_ns: f64,
        with: impl Fn(usize, &[T]) + Sync,
    ) -> Result<(), KernelError> {
        let cost_ns = cost_ns * self.len as f64;
        let updates = self.rows.iter().zip(self.gradient.chunks_exact(self.len));
        if !is_worth_asking(self.rows.len(), cost_ns) {
            updates.for_each(|(&row, gradient)| with(row, gradient));
            return Ok(());
        }
        let parts = c.parallelism().clamp(1, self.rows.len());
        let of_part = cost_ns * self.rows.len() as f64 / parts as f64;
        for_units(c, parts, of_part, |range| {
            let mine = updates.clone().filter(|&(row, _)| range.contains(&(row % parts)));
            mine.for_each(|(&row, gradient)| with(row, gradient));
        })
    }
}

/// Updates rows of `N` variables by a rule.
struct Rows<D, T, R, const N: usize> {
    inputs: Inputs,
    of: PhantomData<fn(D, T, R)>,
}

impl<D: Door, T: Trained, R: Rule<T::Lane>, const N: usize> Rows<D, T, R, N> {
    const COST_NS: f64 = R::COST_NS;

    /// Updates rows of variables that this call has for itself.
    fn alone(&self, c: &ComputeContext<'_>, variables: &[&Var<'_>; N]) -> Result<(), KernelError> {
        let state = c.state();
        let mut locked = state.lock(variables)?;
        let views = locked.views_mut::<T, N>()?;
        self.inputs.check_shapes(&views.each_ref().map(|view| view.dims))?;
        let chosen = Chosen::<T>::new(c, &self.inputs, views[0].dims)?;
        let rule = self.inputs.rule::<T, R>(c, chosen.len == 1)?;
        let (len, parts) = (chosen.len, views.map(|view| Parts::new(view.data)));
        let whole = run::whole_packets::<T>(len);
        chosen.each(c, memory_ns::<T>(N) + Self::COST_NS, |row, gradient| {
            // SAFETY: one thread has all updates of a row, one after the other, and the variables differ.
            let part = |at: usize| unsafe { parts[at].part(row * len..(row + 1) * len) };
            run::update(&rule, array::from_fn::<_, N, _>(part), gradient, whole);
        })
    }

    /// Updates rows of variables that other calls update at the same time.
    fn shared(&self, c: &ComputeContext<'_>, variables: &[&Var<'_>; N]) -> Result<(), KernelError> {
        let state = c.state();
        let locked = state.share_for_update(variables)?;
        locked.differ(N)?;
        let cells: [_; N] = each(|at| locked.cells_mut::<T>(at))?;
        let cells = cells.each_ref();
        self.inputs.check_shapes(&cells.map(|cells| cells.dims()))?;
        let chosen = Chosen::<T>::new(c, &self.inputs, cells[0].dims())?;
        let rule = self.inputs.rule::<T, R>(c, chosen.len == 1)?;
        let len = chosen.len;
        let whole = run::whole_packets::<T>(len);
        chosen.each(c, memory_ns::<T>(N) + Self::COST_NS, |row, gradient| {
            for (chunk, gradient) in gradient.chunks(CHUNK).enumerate() {
                let (first, whole) =
                    (row * len + chunk * CHUNK, whole.saturating_sub(chunk * CHUNK));
                update_cells(&rule, &cells, first, gradient, whole);
            }
        })
    }
}

/// Updates elements of shared variables from a position on: as many as the gradient has, at most [`CHUNK`]. The ones from
/// `whole` on are of an incomplete packet.
fn update_cells<T: Trained, R: Rule<T::Lane>, const N: usize>(
    rule: &R,
    cells: &[&Cells<'_, T>; N],
    first: usize,
    gradient: &[T],
    whole: usize,
) {
    let mut values = [[T::default(); CHUNK]; N];
    for (values, cells) in values.iter_mut().zip(cells) {
        cells.read(first, &mut values[..gradient.len()]);
    }
    let slices = values.each_mut().map(|values| &mut values[..gradient.len()]);
    run::update(rule, slices, gradient, whole);
    for (values, cells) in values.iter().zip(cells) {
        cells.write(first, &values[..gradient.len()]);
    }
}

impl<D: Door, T: Trained, R: Rule<T::Lane>, const N: usize> Kernel for Rows<D, T, R, N> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Rows { inputs: Inputs::new::<T::Lane, R>(c, N)?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let state = c.state();
        let variables: [_; N] = each(|at| D::variable(&state, at))?;
        let variables = variables.each_ref();
        match D::SHARES_ROWS && !self.inputs.use_locking {
            true => self.shared(c, &variables)?,
            false => self.alone(c, &variables)?,
        }
        D::finish(&state, variables[0])
    }
}

type OfRows<W> = Momentum<W, true>;
type FtrlV1<W> = FtrlRows<W, false>;
type FtrlV2<W> = FtrlRows<W, true>;

kernels! {
    Rows:
    OfRows 2: "ResourceSparseApplyMomentum", "SparseApplyMomentum"
        for [f16, bf16, f32, f64, Complex32, Complex64];
    KerasMomentum 2: "ResourceSparseApplyKerasMomentum"
        for [f16, bf16, f32, f64, Complex32, Complex64];
    Adagrad 2: "ResourceSparseApplyAdagrad", "SparseApplyAdagrad"
        for [f16, bf16, f32, f64, Complex32, Complex64];
    AdagradV2 2: "ResourceSparseApplyAdagradV2", "SparseApplyAdagradV2"
        for [f16, bf16, f32, f64, Complex32, Complex64];
    AdagradDaRows 3: "ResourceSparseApplyAdagradDA", "SparseApplyAdagradDA" for [f32, f64];
    Adadelta 3: "ResourceSparseApplyAdadelta", "SparseApplyAdadelta"
        for [f16, bf16, f32, f64, Complex32, Complex64];
    RmsPropRows 3: "ResourceSparseApplyRMSProp", "SparseApplyRMSProp"
        for [f16, f32, f64, Complex32, Complex64];
    CenteredRmsPropRows 4: "ResourceSparseApplyCenteredRMSProp", "SparseApplyCenteredRMSProp"
        for [f16, f32, f64, Complex32, Complex64];
    FtrlV1 3: "ResourceSparseApplyFtrl", "SparseApplyFtrl" for [f16, bf16, f32, f64];
    FtrlV2 3: "ResourceSparseApplyFtrlV2", "SparseApplyFtrlV2" for [f16, bf16, f32, f64];
    ProximalGradientDescent 1: "ResourceSparseApplyProximalGradientDescent",
        "SparseApplyProximalGradientDescent" for [f32, f64];
    ProximalAdagrad 2: "ResourceSparseApplyProximalAdagrad", "SparseApplyProximalAdagrad"
        for [f32, f64];
}
