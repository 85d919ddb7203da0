//! Ops that write rows, elements or boxes of a variable, which indices name.
//!
//! The handles' ops lock the variable shared, so that several write at the same time; those of
//! references lock it alone. Updates of the same place are applied in order.

use super::value_of_handle;
use crate::array::check_updates;
use crate::shape::unchanged;
use tenon_author::{ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::KernelError;

const NUMBERS: &str = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}";
const NUMBERS_OF_HANDLE: &str = "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}";
const COMPARED: &str = "T: {half, bfloat16, float, double, int32, int64}";
const NUMBERS_OR_BOOL: &str = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, bool}";
const INDICES: &str = "Tindices: {int32, int64}";
const POLICY: &str = "bad_indices_policy: string = ''";

/// Registers an op that combines rows of a variable behind a handle with updates.
macro_rules! resource_scatter {
    ($($name:literal: $types:expr, $summary:literal;)*) => {$(
        register_op!(
            $name,
            inputs = &["resource: resource", "indices: Tindices", "updates: dtype"],
            attrs = &[$types, INDICES],
            stateful = true,
            shape = resource_rows,
            summary = $summary,
        );
    )*};
}

resource_scatter! {
    "ResourceScatterUpdate": "dtype: type", "Writes rows of a variable; the last update of a row wins.";
    "ResourceScatterAdd": NUMBERS_OF_HANDLE, "Adds to rows of a variable.";
    "ResourceScatterSub": NUMBERS_OF_HANDLE, "Subtracts from rows of a variable.";
    "ResourceScatterMul": NUMBERS_OF_HANDLE, "Multiplies rows of a variable.";
    "ResourceScatterDiv": NUMBERS_OF_HANDLE, "Divides rows of a variable.";
    "ResourceScatterMin": NUMBERS_OF_HANDLE, "Keeps the smaller of rows of a variable and updates.";
    "ResourceScatterMax": NUMBERS_OF_HANDLE, "Keeps the larger of rows of a variable and updates.";
}

/// Registers an op that combines rows of the variable behind a reference with updates.
macro_rules! scatter {
    ($($name:literal: $types:expr, $locking:literal, $summary:literal;)*) => {$(
        register_op!(
            $name,
            inputs = &["ref: Ref(T)", "indices: Tindices", "updates: T"],
            outputs = &["output_ref: Ref(T)"],
            attrs = &[$types, INDICES, $locking],
            shape = rows,
            summary = $summary,
        );
    )*};
}

scatter! {
    "ScatterUpdate": "T: type", "use_locking: bool = true",
        "Writes rows of the variable behind a reference; the last update of a row wins.";
    "ScatterAdd": NUMBERS, "use_locking: bool = false",
        "Adds to rows of the variable behind a reference.";
    "ScatterSub": NUMBERS, "use_locking: bool = false",
        "Subtracts from rows of the variable behind a reference.";
    "ScatterMul": NUMBERS, "use_locking: bool = false",
        "Multiplies rows of the variable behind a reference.";
    "ScatterDiv": NUMBERS, "use_locking: bool = false",
        "Divides rows of the variable behind a reference.";
    "ScatterMin": COMPARED, "use_locking: bool = false",
        "Keeps the smaller of rows of the variable behind a reference and updates.";
    "ScatterMax": COMPARED, "use_locking: bool = false",
        "Keeps the larger of rows of the variable behind a reference and updates.";
}

/// Registers an op that combines slices of a variable behind a handle with updates.
macro_rules! resource_scatter_nd {
    ($($name:literal: $summary:literal;)*) => {$(
        register_op!(
            $name,
            inputs = &["ref: resource", "indices: Tindices", "updates: T"],
            attrs = &["T: type", INDICES, "use_locking: bool = true", POLICY],
            stateful = true,
            shape = |c: &ShapeContext<'_>| check_updates(c, value_of_handle(c), [1, 2]),
            summary = $summary,
        );
    )*};
}

resource_scatter_nd! {
    "ResourceScatterNdUpdate":
        "Writes slices of a variable that index vectors name; the last update of a slice wins.";
    "ResourceScatterNdAdd": "Adds to slices of a variable that index vectors name.";
    "ResourceScatterNdSub": "Subtracts from slices of a variable that index vectors name.";
    "ResourceScatterNdMax":
        "Keeps the larger of slices of a variable that index vectors name and updates.";
    "ResourceScatterNdMin":
        "Keeps the smaller of slices of a variable that index vectors name and updates.";
}

/// Registers an op that combines slices of the variable behind a reference with updates.
macro_rules! scatter_nd {
    ($($name:literal: $types:expr, $locking:literal, $summary:literal;)*) => {$(
        register_op!(
            $name,
            inputs = &["ref: Ref(T)", "indices: Tindices", "updates: T"],
            outputs = &["output_ref: Ref(T)"],
            attrs = &[$types, INDICES, $locking, POLICY],
            shape = slices,
            summary = $summary,
        );
    )*};
}

scatter_nd! {
    "ScatterNdUpdate": "T: type", "use_locking: bool = true",
        "Writes slices of the variable behind a reference; the last update of a slice wins.";
    "ScatterNdAdd": NUMBERS, "use_locking: bool = false",
        "Adds to slices of the variable behind a reference.";
    "ScatterNdSub": NUMBERS, "use_locking: bool = false",
        "Subtracts from slices of the variable behind a reference.";
    "ScatterNdMax": NUMBERS, "use_locking: bool = false",
        "Keeps the larger of slices of the variable behind a reference and updates.";
    "ScatterNdMin": NUMBERS, "use_locking: bool = false",
        "Keeps the smaller of slices of the variable behind a reference and updates.";
}

register_op!(
    "ScatterNdNonAliasingAdd",
    inputs = &["input: T", "indices: Tindices", "updates: T"],
    outputs = &["output: T"],
    attrs = &[NUMBERS_OR_BOOL, INDICES, POLICY],
    shape = slices,
    summary = "The input with updates added to the slices that index vectors name.",
    cases = &[
        "elements; n in 1..2000; input: [n]; indices: [k, 1] integers(0..n); updates: [k]",
        "rows; k in 0..9; input: [9, m]; indices: [k, 1] distinct(0..9); updates: [k, m]",
        "pairs; bad_indices_policy in {'', 'IGNORE'}; input: [5, 5]; indices: [k, 2] integers(0..5); \
         updates: [k]",
    ],
);

/// The updates are a scalar, or have the shape of the indices followed by that of a row.
fn check_rows(c: &ShapeContext<'_>, value: ShapeHandle) -> ShapeResult {
    let (Some(value), Some(indices), Some(updates)) =
        (c.dims(value), c.dims(c.input(1)), c.dims(c.input(2)))
    else {
        return Ok(());
    };
    let expected: Vec<i64> = indices.iter().chain(value.iter().skip(1)).copied().collect();
    let fits = |(&a, &b): (&i64, &i64)| a == b || a == -1 || b == -1;
    if updates.is_empty()
        || (updates.len() == expected.len() && updates.iter().zip(&expected).all(fits))
    {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "updates: expected a scalar or shape {expected:?}, that of indices and of a row, found {updates:?}"
    )))
}

fn resource_rows(c: &ShapeContext<'_>) -> ShapeResult {
    check_rows(c, value_of_handle(c))
}

fn rows(c: &ShapeContext<'_>) -> ShapeResult {
    check_rows(c, c.input(0))?;
    unchanged(c)
}

fn slices(c: &ShapeContext<'_>) -> ShapeResult {
    check_updates(c, c.input(0), [1, 2])?;
    unchanged(c)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn updates_fit_the_rows() {
        check(
            "ScatterAdd",
            &[],
            &[
                (&["[n,3]", "[2]", "[2,3]"], "[n,3]"),
                (&["[n,3]", "[2]", "[]"], "[n,3]"),
                (
                    &["[n,3]", "[2]", "[2,4]"],
                    "! updates: expected a scalar or shape [2, 3], that of indices and of a row, found [2, 4]",
                ),
            ],
        );
        check(
            "ScatterNdAdd",
            &[],
            &[
                (&["[n,3]", "[k,1]", "[k,3]"], "[n,3]"),
                (&["[n,3]", "[2,1]", "[2]"], "! updates must have shape [2, 3], got [2]"),
            ],
        );
    }
}
