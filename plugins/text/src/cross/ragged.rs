//! `RaggedCross`: the combinations of the values of ragged, sparse and whole columns, as rows of a ragged tensor.

use super::{Column, Columns, Rows, Values, refuse};
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    geometry::byte_size,
    growth,
    reg::Numerics,
    register_kernel,
};

struct RaggedCross {
    /// The kind of each column in turn: `R`, `S` or `D`.
    order: Vec<u8>,
    hashed: bool,
    buckets: i64,
    key: u64,
}

/// The splits of a ragged column's values.
fn splits(c: &ComputeContext<'_>, input: usize, values: usize) -> Result<Vec<i64>, KernelError> {
    let (dims, found) = (c.dims(input), c.dims(values));
    let (&[_], &[count]) = (dims, found) else {
        return Err(refuse(format!(
            "ragged_row_splits and ragged_values: expected vectors, found shapes {dims:?} and {found:?}"
        )));
    };
    let splits = c.integers(input)?;
    let ascends = splits.is_sorted() && splits.first() == Some(&0);
    if !ascends || splits.last() != Some(&count) {
        return Err(refuse(format!(
            "ragged_row_splits: expected numbers that ascend from 0 to {count}, the number of values, found {splits:?}"
        )));
    }
    Ok(splits)
}

impl RaggedCross {
    fn columns<'c>(&self, c: &ComputeContext<'c>) -> Result<Columns<'c>, KernelError> {
        let [ragged, row_splits, indices, sparse, shapes, dense] =
            [0, 1, 2, 3, 4, 5].map(|arg| c.input_range(arg));
        let number = |kind: u8| self.order.iter().filter(|&&own| own == kind).count();
        let expected = [b'R', b'S', b'D'].map(number);
        let found = [ragged.len(), sparse.len(), dense.len()];
        let pairs = row_splits.len() == ragged.len() && indices.len() == sparse.len();
        if expected != found || found.iter().sum::<usize>() != self.order.len() || !pairs {
            return Err(refuse(format!(
                "input_order: expected an R, S or D for each of {found:?} ragged, sparse and whole columns with their splits \
                 or indices, found '{}'",
                String::from_utf8_lossy(&self.order)
            )));
        }
        let mut columns = Columns { all: Vec::new(), rows: 0 };
        let (mut ragged, mut sparse, mut dense) = (ragged.zip(row_splits), 0.., dense);
        for kind in &self.order {
            match kind {
                b'R' => {
                    let Some((values, row_splits)) = ragged.next() else { break };
                    let splits = splits(c, row_splits, values)?;
                    let rows = splits.len() as i64 - 1;
                    let column =
                        Column { values: Values::new(c, values)?, rows: Rows::Ragged(splits) };
                    columns.add(column, "ragged_row_splits", rows)?;
                }
                b'S' => {
                    let Some(at) = sparse.next() else { break };
                    let values = c.input_range(3).start + at;
                    columns.add_sparse(c, [indices.start + at, values, shapes.start + at])?;
                }
                _ => {
                    let Some(input) = dense.next() else { break };
                    columns.add_dense(c, input)?;
                }
            }
        }
        match columns.all.is_empty() {
            true => Err(refuse("input_order: expected at least one column, found none".to_owned())),
            false => Ok(columns),
        }
    }
}

/// Writes where the combinations of each row end; how many there are.
fn write_splits(
    c: &ComputeContext<'_>,
    rows: i64,
    counts: &[(i64, i64)],
) -> Result<i64, KernelError> {
    let mut ends = growth::filled(rows as usize + 1, 0i64)?;
    for &(row, count) in counts {
        ends[row as usize + 1] = count;
    }
    let mut total = 0i64;
    for end in &mut ends {
        total = total.saturating_add(*end);
        *end = total;
    }
    byte_size(&[total], 16)?;
    let dims = [ends.len() as i64];
    if c.output_slot(1)?.dtype == DType::INT64 {
        c.output::<i64>(1, &dims)?.data.copy_from_slice(&ends);
        return Ok(total);
    }
    for (y, &end) in c.output::<i32>(1, &dims)?.data.iter_mut().zip(&ends) {
        *y = i32::try_from(end).map_err(|_| {
            refuse(format!("out_row_splits_type: expected a type that has {end}, found int32"))
        })?;
    }
    Ok(total)
}

impl Kernel for RaggedCross {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(RaggedCross {
            order: growth::copied(c.attr::<&[u8]>("input_order")?)?,
            hashed: c.attr("hashed_output")?,
            buckets: c.attr("num_buckets")?,
            key: c.attr::<i64>("hash_key")? as u64,
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let columns = self.columns(c)?;
        let is_text = c.output_slot(0)?.dtype == DType::STRING;
        if is_text == self.hashed {
            return Err(refuse(format!(
                "out_values_type: expected int64 for hashes and string for texts, found {} with hashed_output {}",
                c.output_slot(0)?.dtype,
                self.hashed
            )));
        }
        let counts = columns.counts()?;
        let total = write_splits(c, columns.rows, &counts)?;
        if self.hashed {
            let mut y = c.output::<i64>(0, &[total])?.data.iter_mut();
            return columns.for_each(c, &counts, |chosen| {
                if let Some(y) = y.next() {
                    *y = columns.fingerprint(chosen, self.key, self.buckets) as i64;
                }
                Ok(())
            });
        }
        let mut texts = Vec::new();
        columns.for_each_text(c, &counts, b"_X_", |text| growth::push(&mut texts, text))?;
        c.set_strings(0, &[total], texts.iter())
    }
}

register_kernel!("RaggedCross" on "CPU": RaggedCross, numerics = Numerics::EXACT);
