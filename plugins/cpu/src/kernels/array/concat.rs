//! `ConcatV2` and `Pack`.

use super::{
    JOINED, Word, by_size, copy, element_size, moves::TEXTS, moves::write_integers, words,
    words_mut,
};
use crate::split::{Parts, for_units};
use std::ops::Range;
use tenon_reference::array as reference;
use tenon_sdk::{
    DType, KernelError, PartialShape, View,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::{ConcatPlan, concat_axis},
    reg::Numerics,
    register_kernel,
};

/// An input, and the number of its elements that are copied at a time.
struct Source<'a, W> {
    data: &'a [W],
    piece: usize,
}

/// Joins the pieces in `range` of every input.
fn join<W: Word>(sources: &[Source<'_, W>], range: Range<usize>, y: &mut [W]) {
    let mut rest = y;
    for o in range {
        for source in sources {
            let (y, behind) = rest.split_at_mut(source.piece);
            let x = &source.data[o * source.piece..][..source.piece];
            copy(x, y);
            rest = behind;
        }
    }
}

fn compute<W: Word>(
    c: &ComputeContext<'_>,
    inputs: Range<usize>,
    plan: &ConcatPlan,
) -> Result<(), KernelError> {
    if plan.outer == 1 {
        return in_turn::<W>(c, inputs, &plan.output);
    }
    let sources = inputs
        .map(|i| Ok(Source { data: words::<W>(c.input_bytes(i)?)?, piece: plan.piece(c.dims(i)) }))
        .collect::<Result<Vec<_>, KernelError>>()?;
    let y = words_mut::<W>(c.output_bytes(0, &plan.output)?)?;
    let row: usize = sources.iter().map(|source| source.piece).sum();
    if row == 0 {
        return Ok(());
    }
    let cost = 0.05 * row as f64 * size_of::<W>() as f64 + 3.0 * sources.len() as f64;
    let y = Parts::new(y);
    for_units(c, plan.outer, cost, |range| {
        // SAFETY: ranges of one split are disjoint.
        let y = unsafe { y.part(range.start * row..range.end * row) };
        join(&sources, range, y);
    })
}

/// Joins whole inputs, one after the other.
fn in_turn<W: Word>(
    c: &ComputeContext<'_>,
    inputs: Range<usize>,
    output: &[i64],
) -> Result<(), KernelError> {
    let mut rest = words_mut::<W>(c.output_bytes(0, output)?)?;
    for i in inputs {
        let x = words::<W>(c.input_bytes(i)?)?;
        let (y, behind) = rest.split_at_mut(x.len());
        copy(x, y);
        rest = behind;
    }
    Ok(())
}

fn compute_strings(
    c: &ComputeContext<'_>,
    inputs: Range<usize>,
    plan: &ConcatPlan,
) -> Result<(), KernelError> {
    let values = inputs.clone().map(|i| c.strings(i)).collect::<Result<Vec<_>, _>>()?;
    let views: Vec<View<'_, &[u8]>> =
        inputs.zip(&values).map(|(i, data)| View { dims: c.dims(i), data }).collect();
    c.fill_strings(0, &plan.output, |y| reference::concat(plan, &views, y))
}

fn write(
    c: &ComputeContext<'_>,
    inputs: Range<usize>,
    plan: &ConcatPlan,
) -> Result<(), KernelError> {
    if c.slot(inputs.start)?.dtype == DType::STRING {
        return compute_strings(c, inputs, plan);
    }
    by_size!(element_size(c, inputs.start)?, compute(c, inputs, plan))
}

fn shapes<'a>(c: &ComputeContext<'a>, inputs: Range<usize>) -> Vec<&'a [i64]> {
    inputs.map(|i| c.dims(i)).collect()
}

/// The plan of a call of `ConcatV2`, whose last input is the axis.
pub fn concat_plan(c: &ComputeContext<'_>) -> Result<ConcatPlan, KernelError> {
    let axis_input = c.input_count().saturating_sub(1);
    plan_of(c, c.integer(axis_input, "axis")?, 0..axis_input)
}

fn plan_of(
    c: &ComputeContext<'_>,
    axis: i64,
    inputs: Range<usize>,
) -> Result<ConcatPlan, KernelError> {
    if c.dims(inputs.start).is_empty() {
        return Err(KernelError::invalid_argument(
            "values must have at least 1 dimension to be concatenated along an axis, found scalars: use Pack",
        ));
    }
    Ok(ConcatPlan::concat(&shapes(c, inputs), axis)?)
}

fn concat(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let plan = concat_plan(c)?;
    write(c, 0..c.input_count() - 1, &plan)
}

/// `Concat`, whose first input is the axis.
fn concat_first(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let inputs = 1..c.input_count();
    let plan = plan_of(c, c.integer(0, "concat_dim")?, inputs.clone())?;
    write(c, inputs, &plan)
}

/// `ParallelConcat`: joins rows to a shape that is known beforehand.
struct ParallelConcat {
    shape: PartialShape,
}

impl Kernel for ParallelConcat {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let shape: PartialShape = c.attr("shape")?;
        if shape.full().is_none() {
            let message = format!("attribute shape: every dimension must be known, found {shape}");
            return Err(KernelError::invalid_argument(message));
        }
        Ok(ParallelConcat { shape })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let inputs = 0..c.input_count();
        let plan = plan_of(c, 0, inputs.clone())?;
        if !self.shape.accepts(&plan.output) || inputs.clone().any(|i| c.dims(i)[0] != 1) {
            return Err(KernelError::invalid_argument(format!(
                "values must be single rows of shape {}, found {:?}",
                self.shape,
                shapes(c, inputs)
            )));
        }
        write(c, inputs, &plan)
    }
}

/// `ConcatOffset`.
fn concat_offset(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let inputs = 1..c.input_count();
    let shapes = inputs.clone().map(|i| c.integers(i)).collect::<Result<Vec<_>, _>>()?;
    let rank = shapes[0].len();
    if let Some(i) = inputs.clone().find(|&i| c.dims(i) != [rank as i64]) {
        return Err(KernelError::invalid_argument(format!(
            "shape {} must be a vector of {rank} dimensions, found shape {:?}",
            i - 1,
            c.dims(i)
        )));
    }
    let axis = concat_axis(c.integer(0, "concat_dim")?, rank)?;
    let mut offset = 0i64;
    for (at, shape) in shapes.iter().enumerate() {
        let same = (0..rank).all(|d| d == axis || shape[d] == shapes[0][d]);
        if !same {
            return Err(KernelError::invalid_argument(format!(
                "shape {at} must be {:?} except along dimension {axis}, found {shape:?}",
                shapes[0]
            )));
        }
        let here = (0..rank).map(|d| if d == axis { offset } else { 0 });
        write_integers(c, at, &[rank as i64], here)?;
        offset = offset.wrapping_add(shape[axis]);
    }
    Ok(())
}

/// `Pack`.
pub struct Pack {
    axis: i64,
}

impl Pack {
    /// The plan of a call.
    pub fn plan(&self, c: &ComputeContext<'_>) -> Result<ConcatPlan, KernelError> {
        Ok(ConcatPlan::pack(&shapes(c, 0..c.input_count()), self.axis)?)
    }
}

impl Kernel for Pack {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Pack { axis: c.attr("axis")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let inputs = 0..c.input_count();
        let plan = self.plan(c)?;
        if inputs.len() == 1 && c.slot(0)?.dtype != DType::STRING {
            return c.share(0, 0, &plan.output);
        }
        write(c, inputs, &plan)
    }
}

register_kernel!("ConcatV2" on "CPU": fn concat, types = ("T", JOINED), host_memory = &["axis"],
    numerics = Numerics::EXACT);
register_kernel!("ConcatV2" on "CPU": fn concat, types = ("T", &[DType::STRING]),
    host_memory = &["axis"], numerics = Numerics::EXACT);
register_kernel!("Concat" on "CPU": fn concat_first, types = ("T", JOINED),
    host_memory = &["concat_dim"], numerics = Numerics::EXACT);
register_kernel!("Concat" on "CPU": fn concat_first, types = ("T", &[DType::STRING]),
    host_memory = &["concat_dim"], numerics = Numerics::EXACT);
register_kernel!("ConcatOffset" on "CPU": fn concat_offset, numerics = Numerics::EXACT,
    host_memory = &["concat_dim", "shape", "offset"]);
register_kernel!("ParallelConcat" on "CPU": ParallelConcat, types = ("T", TEXTS),
    numerics = Numerics::EXACT);
register_kernel!("Pack" on "CPU": Pack, types = ("T", JOINED), numerics = Numerics::EXACT);
register_kernel!("Pack" on "CPU": Pack, types = ("T", &[DType::STRING]), numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_are_those_of_the_reference() {
        let (a, b): (Vec<u16>, Vec<u16>) = ((0..60).collect(), (100..130).collect());
        for (dims, axis) in [([&[6i64, 10][..], &[3, 10]], 0), ([&[6, 10], &[6, 5]], 1)] {
            let plan = ConcatPlan::concat(&dims, axis).unwrap();
            let views =
                [View { dims: dims[0], data: &a[..] }, View { dims: dims[1], data: &b[..] }];
            let mut expected = vec![0; 90];
            reference::concat(&plan, &views, &mut expected);
            let sources =
                views.map(|view| Source { data: view.data, piece: plan.piece(view.dims) });
            let mut found = vec![0; 90];
            join(&sources, 0..plan.outer, &mut found);
            assert_eq!(found, expected);
        }
    }
}
