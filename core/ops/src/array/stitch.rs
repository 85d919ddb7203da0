//! Ops that distribute the slices of a tensor over several tensors, and join them again.

use crate::shape::{dims_of, same_size};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::stitch_rows;

register_op!(
    "DynamicPartition",
    inputs = &["data: T", "partitions: int32"],
    outputs = &["outputs: num_partitions * T"],
    attrs = &["num_partitions: int >= 1", "T: type"],
    shape = partition,
    summary = "The slices of data by their numbers in partitions: output i has those with number i, in order.",
    cases = &[
        "elements; num_partitions in {1, 3}; data: [k]; partitions: [k] integers(0..1)",
        "rows; num_partitions = 3; data: [k, m]; partitions: [k] integers(0..3)",
        "places; num_partitions = 4; data: [n, m, 2]; partitions: [n, m] integers(0..3)",
        "whole; num_partitions = 2; data: [n, m]; partitions: [] values(1)",
    ],
);

/// Registers an op that joins slices.
macro_rules! stitch {
    ($($name:literal: $summary:literal;)*) => {$(
        register_op!(
            $name,
            inputs = &["indices: N * int32", "data: N * T"],
            outputs = &["merged: T"],
            attrs = &["N: int >= 1", "T: type"],
            shape = stitch,
            summary = $summary,
            cases = &[
                "rows; indices: [2] values(0, 3), [3] values(1, 4, 2); data: [2, m], [3, m]",
                "elements; indices: [] values(1), [1, 2] values(2, 0); data: [], [1, 2]",
                "one; N = 1; indices: [k] integers(4..5); data: [k, n, 2]",
            ],
        );
    )*};
}

stitch! {
    "DynamicStitch": "The slices of several tensors in the order of their indices, of which the last of several equal \
                      ones counts. Slices that no index names are zero, or empty strings.";
    "ParallelDynamicStitch": "The slices of several tensors in the order of their indices. Of several equal ones any \
                              may count. Slices that no index names are zero, or empty strings.";
}

/// The dimensions of `data` after those of `prefix`, which it begins with; `None` where a rank is unknown.
fn rest(
    c: &ShapeContext<'_>,
    data: ShapeHandle,
    prefix: ShapeHandle,
    [data_name, prefix_name]: [&str; 2],
) -> Result<Option<Vec<Dim>>, KernelError> {
    let (Some(rank), Some(first)) = (c.rank(data), c.rank(prefix)) else { return Ok(None) };
    let text = |shape| c.dims(shape).unwrap_or_default();
    let differs = || {
        KernelError::invalid_argument(format!(
            "the shape of {data_name} must begin with the shape of {prefix_name}, {:?}: found {:?}",
            text(prefix),
            text(data)
        ))
    };
    if rank < first {
        return Err(differs());
    }
    for at in 0..first {
        same_size(c, "the shape", c.dim(prefix, at), c.dim(data, at)).map_err(|_| differs())?;
    }
    Ok(Some(dims_of(c, data).split_off(first)))
}

fn partition(c: &ShapeContext<'_>) -> ShapeResult {
    let dims = rest(c, c.input(0), c.input(1), ["data", "partitions"])?;
    (0..c.output_count()).try_for_each(|at| {
        // The numbers of slices differ, so each output has a size of its own.
        let all = |rest: &Vec<Dim>| {
            let first = c.make_dim(None);
            c.make_shape(&std::iter::once(first).chain(rest.iter().copied()).collect::<Vec<_>>())
        };
        c.set_output(at, dims.as_ref().map_or_else(|| c.unknown(), all))
    })
}

fn stitch(c: &ShapeContext<'_>) -> ShapeResult {
    let count = c.input_count() / 2;
    let mut slice: Option<Vec<Dim>> = None;
    for at in 0..count {
        let names = [format!("data[{at}]"), format!("indices[{at}]")];
        let (data, indices) = (c.input(count + at), c.input(at));
        let Some(found) = rest(c, data, indices, [&names[0], &names[1]])? else { continue };
        slice = Some(match slice {
            None => found,
            Some(slice) => same_slice(c, &slice, &found)?,
        });
    }
    let Some(slice) = slice else { return c.set_output(0, c.unknown()) };
    let constants: Option<Vec<_>> = (0..count).map(|at| c.constant_integers(at)).collect();
    let rows = constants.map(|all| stitch_rows(all.iter().map(Vec::as_slice))).transpose()?;
    let dims: Vec<Dim> = std::iter::once(c.make_dim(rows)).chain(slice).collect();
    c.set_output(0, c.make_shape(&dims))
}

fn same_slice(c: &ShapeContext<'_>, a: &[Dim], b: &[Dim]) -> Result<Vec<Dim>, KernelError> {
    let differ = || {
        let sizes =
            |dims: &[Dim]| -> Vec<i64> { dims.iter().map(|&d| c.value(d).unwrap_or(-1)).collect() };
        KernelError::invalid_argument(format!(
            "all slices of data must have one shape, found {:?} and {:?}",
            sizes(a),
            sizes(b)
        ))
    };
    if a.len() != b.len() {
        return Err(differ());
    }
    a.iter().zip(b).map(|(&a, &b)| c.merge_dim(a, b).map_err(|_| differ())).collect()
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn partitions_keep_the_shape_of_a_slice() {
        check(
            "DynamicPartition",
            &[("num_partitions", 2i64.into())],
            &[
                (&["[n,3,4]", "[n]"], "[?,3,4]; [?,3,4]"),
                (&["[2,3]", "[2,3]"], "[?]; [?]"),
                (&["[2,3]", "[]"], "[?,2,3]; [?,2,3]"),
                (&["?", "[2]"], "?; ?"),
                (
                    &["[2,3]", "[3]"],
                    "! the shape of data must begin with the shape of partitions, [3]: found [2, 3]",
                ),
                (
                    &["[]", "[1]"],
                    "! the shape of data must begin with the shape of partitions, [1]: found []",
                ),
            ],
        );
    }

    #[test]
    fn stitched_rows_follow_from_constant_indices() {
        for op in ["DynamicStitch", "ParallelDynamicStitch"] {
            check(
                op,
                &[("N", 2i64.into())],
                &[
                    (&["[n]", "[m]", "[n,3]", "[m,3]"], "[?,3]"),
                    (&["= [0,4]", "= [1]", "[2,3]", "[1,3]"], "[5,3]"),
                    (&["= [0,4]", "[]", "[2,3]", "[3]"], "[?,3]"),
                    (&["?", "[m]", "[n,3]", "[m,4]"], "[?,4]"),
                    (&["?", "?", "?", "?"], "?"),
                    (
                        &["[2]", "[m]", "[3,3]", "[m,3]"],
                        "! the shape of data[0] must begin with the shape of indices[0], [2]: found [3, 3]",
                    ),
                    (
                        &["[2]", "[m]", "[2,3]", "[m,4]"],
                        "! all slices of data must have one shape, found [3] and [4]",
                    ),
                    (
                        &["= [-1]", "= [0]", "[1]", "[1]"],
                        "! indices[0]: index -1 at position 0 is not in [0, 2147483647)",
                    ),
                ],
            );
        }
    }
}
