//! `RaggedTensorToSparse`.

use super::splits::nested;
use tenon_sdk::{geometry::element_count, growth, prelude::*};

/// The longest row.
fn longest(splits: &[i64]) -> i64 {
    splits.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
}

fn to_sparse(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let inputs = c.input_range(0);
    let values = inputs.end;
    let levels = nested(c, inputs, values)?;
    let (depth, inner) = (levels.len(), &c.dims(values)[1..]);
    let rank = depth + 1 + inner.len();
    let count = element_count(c.dims(values))?;
    let indices = c.output::<i64>(0, &[count as i64, rank as i64])?.data;
    // The row of each level that the value is in; values come in order, so that rows only advance.
    let mut rows = growth::filled(depth, 0usize)?;
    let each = element_count(inner)?;
    for (at, place) in indices.chunks_exact_mut(rank).enumerate() {
        let mut item = (at / each) as i64;
        for level in (0..depth).rev() {
            let (splits, row) = (&levels[level], &mut rows[level]);
            while splits[*row + 1] <= item {
                *row += 1;
            }
            place[level + 1] = item - splits[*row];
            item = *row as i64;
        }
        place[0] = item;
        let mut rest = (at % each) as i64;
        for (place, size) in place[depth + 1..].iter_mut().zip(inner).rev() {
            *place = rest % size;
            rest /= size;
        }
    }
    let shape = c.output::<i64>(2, &[rank as i64])?.data;
    shape[0] = levels[0].len() as i64 - 1;
    for (size, splits) in shape[1..].iter_mut().zip(&levels) {
        *size = longest(splits);
    }
    shape[depth + 1..].copy_from_slice(inner);
    c.share(values, 1, &[count as i64])
}

register_kernel!("RaggedTensorToSparse" on "CPU": fn to_sparse, host_memory = &["rt_nested_splits"]);
