//! Splits of rows.

use tenon_sdk::{geometry::GeometryError, growth, prelude::*};

/// The splits in an input, which ascend from 0; `count` is what they split, where that is known.
///
/// # Errors
/// `INVALID_ARGUMENT` for other numbers; `RESOURCE_EXHAUSTED` without memory.
pub fn splits_in(
    c: &ComputeContext<'_>,
    input: usize,
    count: Option<usize>,
) -> Result<Vec<i64>, KernelError> {
    let (what, dims) = ("row_splits", c.dims(input));
    if dims.len() != 1 {
        return Err(GeometryError::Rank { what, expected: 1, found: dims.len() }.into());
    }
    let splits = c.integers(input)?;
    if splits.first() != Some(&0) {
        return Err(KernelError::invalid_argument(format!(
            "{what}: expected numbers that begin with 0, found {:?}",
            splits.first()
        )));
    }
    if let Some(at) = (1..splits.len()).find(|&at| splits[at - 1] > splits[at]) {
        return Err(KernelError::invalid_argument(format!(
            "{what}: expected numbers that do not descend, found {} after {}",
            splits[at],
            splits[at - 1]
        )));
    }
    match (count, splits.last()) {
        (Some(count), Some(&last)) if last != count as i64 => {
            Err(KernelError::invalid_argument(format!(
                "{what}: expected numbers that end with {count}, the number of what they split, found {last}"
            )))
        }
        _ => Ok(splits),
    }
}

/// The splits of nested rows in some inputs, from the outermost ones, and the number of values that they split.
///
/// # Errors
/// As [`splits_in`], and for splits that do not fit those inside of them.
pub fn nested(
    c: &ComputeContext<'_>,
    inputs: std::ops::Range<usize>,
    values: usize,
) -> Result<Vec<Vec<i64>>, KernelError> {
    let Some(count) = c.dims(values).first() else {
        let (what, expected, found) = ("the values", 1, 0);
        return Err(GeometryError::RankTooSmall { what, expected, found }.into());
    };
    let mut count = *count as usize;
    let mut levels = growth::with_room(inputs.len())?;
    for input in inputs.rev() {
        let splits = splits_in(c, input, Some(count))?;
        count = splits.len() - 1;
        levels.push(splits);
    }
    levels.reverse();
    Ok(levels)
}

/// Writes numbers of type int32 or int64.
///
/// # Errors
/// `INVALID_ARGUMENT` for a number that the type does not have.
pub fn write(c: &ComputeContext<'_>, output: usize, numbers: &[i64]) -> Result<(), KernelError> {
    let dims = [numbers.len() as i64];
    if c.output_slot(output)?.dtype == DType::INT64 {
        c.output::<i64>(output, &dims)?.data.copy_from_slice(numbers);
        return Ok(());
    }
    for (y, &number) in c.output::<i32>(output, &dims)?.data.iter_mut().zip(numbers) {
        *y = i32::try_from(number).map_err(|_| {
            KernelError::invalid_argument(format!(
                "row_splits: expected numbers of type int32, found {number}; int64 splits hold it"
            ))
        })?;
    }
    Ok(())
}
