//! `QuantizedConcat`: converts each input to the range that contains all of theirs, then joins
//! them.

use super::range::{Ends, Range, ToCodes, ToReals, scalar};
use tenon_sdk::{
    KernelError,
    author::ComputeContext,
    element::{QInt32, QUInt8, Quantised},
    geometry::{ConcatPlan, GeometryError},
    reg::Numerics,
    register_kernel,
};

const ENDS: Ends = ["input_mins", "input_maxes"];

/// The range that contains all ranges; for signed codes, with 0 in its middle.
fn hull<T: Quantised>(ranges: &[Range]) -> Result<Range, KernelError> {
    let min = ranges.iter().fold(f32::MAX, |min, range| min.min(range.min));
    let max = ranges.iter().fold(f32::MIN, |max, range| max.max(range.max));
    match T::SIGNED {
        true => Range::symmetric(min.abs().max(max.abs())),
        false => Range::new(min, max, ENDS),
    }
}

/// An input, the number of its codes that are joined at a time, and its range unless that is the
/// output's.
struct Source<'a, T> {
    codes: &'a [T],
    piece: usize,
    convert: Option<(ToReals<T>, ToCodes<T>)>,
}

impl<T: Quantised> Source<'_, T> {
    fn write(&self, number: usize, y: &mut [T]) {
        let x = &self.codes[number * self.piece..][..self.piece];
        match &self.convert {
            None => y.copy_from_slice(x),
            Some((reals, codes)) => {
                y.iter_mut().zip(x).for_each(|(y, &x)| *y = codes.code(reals.real(x)));
            }
        }
    }
}

fn concat<T: Quantised>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let axis = c.integer(0, "concat_dim")?;
    let (values, mins, maxes) = (c.input_range(1), c.input_range(2), c.input_range(3));
    let shapes: Vec<&[i64]> = values.clone().map(|at| c.dims(at)).collect();
    if shapes.first().is_some_and(|dims| dims.is_empty()) {
        return Err(GeometryError::RankTooSmall { what: "values", expected: 1, found: 0 }.into());
    }
    let plan = ConcatPlan::concat(&shapes, axis)?;
    let ends = mins.zip(maxes);
    let range = |(min, max)| Range::new(scalar(c, min, ENDS[0])?, scalar(c, max, ENDS[1])?, ENDS);
    let ranges = ends.map(range).collect::<Result<Vec<Range>, KernelError>>()?;
    let to = hull::<T>(&ranges)?;
    let source = |(at, from): (usize, &Range)| {
        let convert = (*from != to).then(|| (ToReals::new(*from), ToCodes::new(to)));
        Ok(Source { codes: c.input::<T>(at)?.data, piece: plan.piece(c.dims(at)), convert })
    };
    let sources = values.zip(&ranges).map(source).collect::<Result<Vec<_>, KernelError>>()?;
    join(c, &plan, &sources)?;
    to.write(c, 1)
}

fn join<T: Quantised>(
    c: &ComputeContext<'_>,
    plan: &ConcatPlan,
    sources: &[Source<'_, T>],
) -> Result<(), KernelError> {
    let y = c.output::<T>(0, &plan.output)?.data;
    if y.is_empty() {
        return Ok(());
    }
    let row: usize = sources.iter().map(|source| source.piece).sum();
    let group = 4096usize.div_ceil(row).min(plan.outer);
    let groups = y.chunks_mut(group * row);
    c.parallel_items(groups, 2.0 * (group * row) as f64, |at, y| {
        for (number, mut rest) in y.chunks_exact_mut(row).enumerate() {
            for source in sources {
                let (piece, behind) = rest.split_at_mut(source.piece);
                source.write(at * group + number, piece);
                rest = behind;
            }
        }
        Ok(())
    })
}

register_kernel!("QuantizedConcat" on "CPU": fn concat<T> for "T" in [QUInt8, QInt32],
    host_memory = &["concat_dim", "input_mins", "input_maxes"], numerics = Numerics::EXACT);
