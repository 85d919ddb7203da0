//! Saving and restoring tensors.

use crate::shape::input_of_rank;
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::KernelError;

register_op!(
    "SaveV2",
    inputs =
        &["prefix: string", "tensor_names: string", "shape_and_slices: string", "tensors: dtypes"],
    outputs = &[],
    attrs = &["dtypes: list(type) >= 1"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| saved(c, "prefix", &["tensor_names", "shape_and_slices"]),
    summary = "Saves tensors, or parts of some, in a checkpoint with a prefix.",
);

register_op!(
    "RestoreV2",
    inputs = &["prefix: string", "tensor_names: string", "shape_and_slices: string"],
    outputs = &["tensors: dtypes"],
    attrs = &["dtypes: list(type) >= 1"],
    stateful = true,
    shape = restored,
    summary =
        "Reads tensors, or parts of some, from a checkpoint with a prefix, or from a V1 file.",
);

register_op!(
    "MergeV2Checkpoints",
    inputs = &["checkpoint_prefixes: string", "destination_prefix: string"],
    outputs = &[],
    attrs = &["delete_old_dirs: bool = true", "allow_missing_files: bool = false"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        input_of_rank(c, 0, "checkpoint_prefixes", 1)?;
        input_of_rank(c, 1, "destination_prefix", 0).map(|_| ())
    },
    summary = "Makes one checkpoint of several, whose data files get new names.",
);

register_op!(
    "Save",
    inputs = &["filename: string", "tensor_names: string", "data: T"],
    outputs = &[],
    attrs = &["T: list(type) >= 1"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| saved(c, "filename", &["tensor_names"]),
    summary = "Saves tensors in a V1 file.",
);

register_op!(
    "SaveSlices",
    inputs = &["filename: string", "tensor_names: string", "shapes_and_slices: string", "data: T"],
    outputs = &[],
    attrs = &["T: list(type) >= 1"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| saved(c, "filename", &["tensor_names", "shapes_and_slices"]),
    summary = "Saves tensors, or parts of some, in a V1 file.",
);

register_op!(
    "Restore",
    inputs = &["file_pattern: string", "tensor_name: string"],
    outputs = &["tensor: dt"],
    attrs = &["dt: type", "preferred_shard: int = -1"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| read(c, &["file_pattern", "tensor_name"]),
    summary = "Reads a tensor from the V1 files of a pattern.",
);

register_op!(
    "RestoreSlice",
    inputs = &["file_pattern: string", "tensor_name: string", "shape_and_slice: string"],
    outputs = &["tensor: dt"],
    attrs = &["dt: type", "preferred_shard: int = -1"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| read(c, &["file_pattern", "tensor_name", "shape_and_slice"]),
    summary = "Reads a part of a tensor from the V1 files of a pattern.",
);

register_op!(
    "LoadAndRemapMatrix",
    inputs = &[
        "ckpt_path: string",
        "old_tensor_name: string",
        "row_remapping: int64",
        "col_remapping: int64",
        "initializing_values: float",
    ],
    outputs = &["output_matrix: float"],
    attrs = &["num_rows: int >= 0", "num_cols: int >= 1", "max_rows_in_memory: int = -1"],
    stateful = true,
    shape = remapped,
    summary = "A matrix of a checkpoint with its rows and columns in other places, and values for those that are new.",
);

fn remapped(c: &ShapeContext<'_>) -> ShapeResult {
    let ranks = [
        ("ckpt_path", 0),
        ("old_tensor_name", 0),
        ("row_remapping", 1),
        ("col_remapping", 1),
        ("initializing_values", 1),
    ];
    for (at, (what, rank)) in ranks.into_iter().enumerate() {
        input_of_rank(c, at, what, rank)?;
    }
    c.set_output(0, c.shape_of(&[c.attr("num_rows")?, c.attr("num_cols")?]))
}

/// A file's name, and lists with a text for each tensor, which come after them.
fn saved(c: &ShapeContext<'_>, file: &'static str, lists: &[&'static str]) -> ShapeResult {
    input_of_rank(c, 0, file, 0)?;
    let tensors = c.input_count() - 1 - lists.len();
    for (at, list) in lists.iter().enumerate() {
        check_count(c, at + 1, list, tensors)?;
    }
    Ok(())
}

fn restored(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "prefix", 0)?;
    check_count(c, 1, "tensor_names", c.output_count())?;
    check_count(c, 2, "shape_and_slices", c.output_count())?;
    (0..c.output_count()).try_for_each(|at| c.set_output(at, c.unknown()))
}

/// A list has a text for each tensor.
fn check_count(
    c: &ShapeContext<'_>,
    input: usize,
    name: &'static str,
    count: usize,
) -> ShapeResult {
    let list = input_of_rank(c, input, name, 1)?;
    match c.dims(list).as_deref() {
        Some(&[size]) if size >= 0 && size != count as i64 => Err(KernelError::invalid_argument(
            format!("{name} must hold a text for each of {count} tensors, got {size}"),
        )),
        _ => Ok(()),
    }
}

fn read(c: &ShapeContext<'_>, names: &[&'static str]) -> ShapeResult {
    (0..names.len()).try_for_each(|at| input_of_rank(c, at, names[at], 0).map(|_| ()))?;
    c.set_output(0, c.unknown())
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::{
        DType,
        attr::{AttrList, AttrValue},
    };

    #[test]
    fn a_matrix_has_the_rows_that_are_asked_for() {
        let attrs = [("num_rows", 3i64.into()), ("num_cols", 2i64.into())];
        let wrong = "! col_remapping must have 1 dimensions, got 0";
        check(
            "LoadAndRemapMatrix",
            &attrs,
            &[
                (&["[]", "[]", "[3]", "[?]", "[?]"], "[3,2]"),
                (&["[]", "[]", "[3]", "[]", "[?]"], wrong),
            ],
        );
    }

    #[test]
    fn each_tensor_has_a_name() {
        let types = || AttrValue::List(AttrList::Type(vec![DType::INT32, DType::FLOAT]));
        let wrong = "! tensor_names must hold a text for each of 2 tensors, got 3";
        check(
            "SaveV2",
            &[("dtypes", types())],
            &[
                (&["[]", "[2]", "[?]", "[4]", "?"], ""),
                (&["[]", "[3]", "[2]", "[4]", "?"], wrong),
                (&["[]", "[]", "[2]", "[4]", "?"], "! tensor_names must have 1 dimensions, got 0"),
            ],
        );
        check(
            "RestoreV2",
            &[("dtypes", types())],
            &[(&["[]", "[2]", "?"], "?; ?"), (&["[]", "[3]", "[3]"], wrong)],
        );
        let message = "! filename must have 0 dimensions, got 1";
        check(
            "SaveSlices",
            &[("T", types())],
            &[(&["[]", "[2]", "[2]", "?", "?"], ""), (&["[1]", "[2]", "[2]", "?", "?"], message)],
        );
        check("Save", &[("T", types())], &[(&["[]", "[3]", "?", "?"], wrong)]);
    }

    #[test]
    fn names_of_files_are_scalars() {
        let dt = [("dt", AttrValue::Type(DType::INT32))];
        check("Restore", &dt, &[(&["[]", "[]"], "?")]);
        let message = "! shape_and_slice must have 0 dimensions, got 1";
        check("RestoreSlice", &dt, &[(&["[]", "[]", "[1]"], message)]);
        let message = "! checkpoint_prefixes must have 1 dimensions, got 0";
        check("MergeV2Checkpoints", &[], &[(&["[2]", "[]"], ""), (&["[]", "[]"], message)]);
    }
}
