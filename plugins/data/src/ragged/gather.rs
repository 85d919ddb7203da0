//! `RaggedGather`.

use super::splits::{nested, write};
use crate::sparse::Values;
use tenon_sdk::{
    geometry::{GeometryError, element_count},
    growth,
    prelude::*,
};

/// A range of rows, or of values.
type Part = (usize, usize);

/// The splits of what some parts have one level further in, and these parts of that level.
fn level(parts: &[Part], splits: &[i64]) -> Result<(Vec<i64>, Vec<Part>), KernelError> {
    let (mut ends, mut inner) = (Vec::new(), growth::with_room(parts.len())?);
    let mut end = 0i64;
    growth::push(&mut ends, 0)?;
    for &(from, to) in parts {
        for row in from..to {
            end += splits[row + 1] - splits[row];
            growth::push(&mut ends, end)?;
        }
        inner.push((splits[from] as usize, splits[to] as usize));
    }
    Ok((ends, inner))
}

/// The rows that `indices` name.
fn named(indices: &[i64], splits: &[i64]) -> Result<Vec<Part>, KernelError> {
    let count = splits.len() - 1;
    let part = |(at, &index): (usize, &i64)| match usize::try_from(index) {
        Ok(row) if row < count => Ok((row, row + 1)),
        _ => Err(KernelError::invalid_argument(format!(
            "indices: expected rows from 0 to before {count}, found {index} at place {at}"
        ))),
    };
    growth::try_collected(indices.iter().enumerate().map(part))
}

fn gather(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let inputs = c.input_range(0);
    let values = inputs.end;
    let levels = nested(c, inputs, values)?;
    let dims = c.dims(values + 1);
    let outputs = c.output_count() - 1;
    if dims.len() + levels.len() != outputs + 1 {
        return Err(KernelError::invalid_argument(format!(
            "OUTPUT_RAGGED_RANK: expected {}, for indices of {} dimensions, found {outputs}",
            dims.len() as i64 + levels.len() as i64 - 1,
            dims.len()
        )));
    }
    // The dimensions of the indices have rows of equal length.
    for at in 1..dims.len() {
        let rows = element_count(&dims[..at])? as i64;
        let splits = growth::try_collected((0..=rows).map(|row| {
            row.checked_mul(dims[at]).ok_or_else(|| KernelError::internal("rows beyond 2^63"))
        }))?;
        write(c, at - 1, &splits)?;
    }
    let mut parts = named(&c.integers(values + 1)?, &levels[0])?;
    // A scalar names one row, whose own splits are left out.
    let mut output = dims.len() as i64 - 1;
    for splits in &levels {
        let (ends, inner) = level(&parts, splits)?;
        if output >= 0 {
            write(c, output as usize, &ends)?;
        }
        (parts, output) = (inner, output + 1);
    }
    write_values(c, (values, outputs), &parts)
}

/// Writes the values of these parts.
fn write_values(
    c: &ComputeContext<'_>,
    (input, output): (usize, usize),
    parts: &[Part],
) -> Result<(), KernelError> {
    let mut dims = growth::copied(c.dims(input))?;
    let each = element_count(&dims[1..])?;
    dims[0] = 0;
    for &(from, to) in parts {
        dims[0] = dims[0]
            .checked_add((to - from) as i64)
            .ok_or_else(|| GeometryError::TooLarge { dims: dims.clone() })?;
    }
    let runs = parts.iter().map(|&(from, to)| from * each..to * each);
    Values::new(c, [input])?.write_runs(c, output, &dims, runs)
}

register_kernel!("RaggedGather" on "CPU": fn gather, types = ("Tvalues", crate::sparse::MOVED),
    host_memory = &["params_nested_splits", "indices"]);
