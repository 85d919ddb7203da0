//! Files, and records of bytes or text.

use crate::shape::{input_of_rank, scalar_or_vector, scalar_output, unchanged};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::{KernelError, op::GradientRule};
use tenon_geometry::GeometryError;

register_op!(
    "ReadFile",
    inputs = &["filename: string"],
    outputs = &["contents: string"],
    attrs = &[],
    shape = |c: &ShapeContext<'_>| scalars(c, &["filename"]),
    checks = true,
    summary = "The bytes of a file.",
);

register_op!(
    "WriteFile",
    inputs = &["filename: string", "contents: string"],
    outputs = &[],
    attrs = &[],
    stateful = true,
    shape = |c: &ShapeContext<'_>| scalars(c, &["filename", "contents"]),
    summary = "Writes a file, and creates its folders.",
);

register_op!(
    "MatchingFiles",
    inputs = &["pattern: string"],
    outputs = &["filenames: string"],
    attrs = &[],
    shape = some_names,
    checks = true,
    summary = "The names of the files that match any of some patterns.",
);

register_op!(
    "DecodeRaw",
    inputs = &["bytes: string"],
    outputs = &["output: out_type"],
    attrs = &[
        "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, bfloat16}",
        "little_endian: bool = true",
    ],
    shape = raw,
    gradient = GradientRule::None,
    summary = "The bytes of each string as numbers, along one more dimension; a bool is false where its byte is 0.",
);

register_op!(
    "DecodeCSV",
    inputs = &["records: string", "record_defaults: OUT_TYPE"],
    outputs = &["output: OUT_TYPE"],
    attrs = &[
        "OUT_TYPE: list({float, double, int32, int64, string}) >= 1",
        "field_delim: string = ','",
        "use_quote_delim: bool = true",
        "na_value: string = ''",
        "select_cols: list(int) = []",
    ],
    shape = columns,
    summary = "The columns of records of comma-separated values; empty fields get a default.",
);

register_op!(
    "ShardedFilename",
    inputs = &["basename: string", "shard: int32", "num_shards: int32"],
    outputs = &["filename: string"],
    attrs = &[],
    shape = |c: &ShapeContext<'_>| scalars(c, &["basename", "shard", "num_shards"]),
    summary = "The file name of one shard.",
);

register_op!(
    "ShardedFilespec",
    inputs = &["basename: string", "num_shards: int32"],
    outputs = &["filename: string"],
    attrs = &[],
    shape = |c: &ShapeContext<'_>| scalars(c, &["basename", "num_shards"]),
    summary = "The pattern for the file names of all shards.",
);

/// All inputs are scalars, and so is the output, if there is one.
fn scalars(c: &ShapeContext<'_>, names: &[&'static str]) -> ShapeResult {
    (0..c.input_count()).try_for_each(|at| input_of_rank(c, at, names[at], 0).map(|_| ()))?;
    if c.output_count() == 0 { Ok(()) } else { scalar_output(c) }
}

fn some_names(c: &ShapeContext<'_>) -> ShapeResult {
    scalar_or_vector(c, 0, "pattern")?;
    c.set_output(0, c.shape_of(&[-1]))
}

fn raw(c: &ShapeContext<'_>) -> ShapeResult {
    let input = c.input(0);
    let Some(rank) = c.rank(input) else { return c.set_output(0, c.unknown()) };
    let mut dims: Vec<_> = (0..rank).map(|at| c.dim(input, at)).collect();
    dims.push(c.make_dim(None));
    c.set_output(0, c.make_shape(&dims))
}

fn columns(c: &ShapeContext<'_>) -> ShapeResult {
    for default in 1..c.input_count() {
        match c.dims(c.input(default)).as_deref() {
            None | Some([]) => {}
            Some(&[size]) if size <= 1 => {}
            Some(&[size]) => {
                return Err(KernelError::invalid_argument(format!(
                    "record_defaults[{}] must hold at most 1 value, got {size}",
                    default - 1
                )));
            }
            Some(dims) => {
                let (what, found) = ("each of record_defaults", dims.len());
                return Err(GeometryError::Rank { what, expected: 1, found }.into());
            }
        }
    }
    (0..c.output_count()).try_for_each(|at| match at {
        0 => unchanged(c),
        at => c.set_output(at, c.input(0)),
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::{
        DType,
        attr::{AttrList, AttrValue},
    };

    #[test]
    fn names_of_files_are_scalars() {
        check("ReadFile", &[], &[(&["[]"], "[]"), (&["?"], "[]")]);
        let message = "! contents must have 0 dimensions, got 1";
        check("WriteFile", &[], &[(&["[]", "[]"], ""), (&["[]", "[1]"], message)]);
        check(
            "MatchingFiles",
            &[],
            &[(&["[2]"], "[?]"), (&["[2,3]"], "! pattern must have 1 dimensions, got 2")],
        );
    }

    #[test]
    fn bytes_become_a_dimension() {
        check("DecodeRaw", &[], &[(&["[n,2]"], "[n,2,?]"), (&["?"], "?")]);
    }

    #[test]
    fn columns_are_shaped_as_the_records() {
        let types = AttrList::Type(vec![DType::INT32, DType::FLOAT]);
        let attrs = [("OUT_TYPE", AttrValue::List(types))];
        check(
            "DecodeCSV",
            &attrs,
            &[
                (&["[n]", "[]", "[0]"], "[n]; [n]"),
                (&["[n]", "[2]", "[]"], "! record_defaults[0] must hold at most 1 value, got 2"),
                (
                    &["[n]", "[]", "[1,1]"],
                    "! each of record_defaults must have 1 dimensions, got 2",
                ),
            ],
        );
    }
}
