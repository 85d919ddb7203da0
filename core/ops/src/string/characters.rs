//! Strings by their characters and parts: hashes, encodings, older forms of splitting. The kernels are
//! plugins/text/src/hash.rs, unicode.rs, join.rs and regex.rs.

use crate::shape::{input_of_rank, unchanged};
use tenon_author::{ShapeContext, ShapeResult, register_op};

register_op!(
    "StringStrip",
    inputs = &["input: string"],
    outputs = &["output: string"],
    shape = unchanged,
    summary = "Each string without white space at its ends.",
);

register_op!(
    "UnicodeScript",
    inputs = &["input: int32"],
    outputs = &["output: int32"],
    shape = unchanged,
    summary = "The script of each character, by ICU's number; -1 where there is no such character.",
);

register_op!(
    "StringToHashBucket",
    inputs = &["string_tensor: string"],
    outputs = &["output: int64"],
    attrs = &["num_buckets: int >= 1"],
    shape = unchanged,
    summary = "A bucket for each string, by a hash that newer graphs do not use.",
);

register_op!(
    "StringToHashBucketStrong",
    inputs = &["input: string"],
    outputs = &["output: int64"],
    attrs = &["num_buckets: int >= 1", "key: list(int)"],
    shape = unchanged,
    summary = "A bucket for each string, by a hash under a key.",
);

register_op!(
    "StaticRegexReplace",
    inputs = &["input: string"],
    outputs = &["output: string"],
    attrs = &["pattern: string", "rewrite: string", "replace_global: bool = true"],
    shape = unchanged,
    summary = "Each string with all matches of a regular expression, an attribute, rewritten, or only the first.",
);

register_op!(
    "StringSplit",
    inputs = &["input: string", "delimiter: string"],
    outputs = &["indices: int64", "values: string", "shape: int64"],
    attrs = &["skip_empty: bool = true"],
    shape = split_at_bytes,
    summary = "The parts of each string between the bytes of a delimiter, as a sparse matrix; without one, its bytes.",
);

register_op!(
    "UnicodeDecode",
    inputs = &["input: string"],
    outputs = &["row_splits: Tsplits", "char_values: int32"],
    attrs = &[
        "input_encoding: string",
        "errors: {'strict', 'replace', 'ignore'} = 'replace'",
        "replacement_char: int = 65533",
        "replace_control_characters: bool = false",
        "Tsplits: {int32, int64} = DT_INT64"
    ],
    shape = decoded,
    summary = "The characters of all strings, one after the other, and where those of each begin.",
);

register_op!(
    "UnicodeDecodeWithOffsets",
    inputs = &["input: string"],
    outputs = &["row_splits: Tsplits", "char_values: int32", "char_to_byte_starts: int64"],
    attrs = &[
        "input_encoding: string",
        "errors: {'strict', 'replace', 'ignore'} = 'replace'",
        "replacement_char: int = 65533",
        "replace_control_characters: bool = false",
        "Tsplits: {int32, int64} = DT_INT64"
    ],
    shape = decoded,
    summary = "The characters of all strings, one after the other, where those of each begin, and the byte where each character does.",
);

register_op!(
    "UnicodeEncode",
    inputs = &["input_values: int32", "input_splits: Tsplits"],
    outputs = &["output: string"],
    attrs = &[
        "errors: {'ignore', 'replace', 'strict'} = 'replace'",
        "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}",
        "replacement_char: int = 65533",
        "Tsplits: {int32, int64} = DT_INT64"
    ],
    shape = encoded,
    summary = "Strings of characters, of which the splits say where each string begins.",
);

register_op!(
    "UnicodeTranscode",
    inputs = &["input: string"],
    outputs = &["output: string"],
    attrs = &[
        "input_encoding: string",
        "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}",
        "errors: {'strict', 'replace', 'ignore'} = 'replace'",
        "replacement_char: int = 65533",
        "replace_control_characters: bool = false"
    ],
    shape = unchanged,
    summary = "Strings in another encoding.",
);

fn split_at_bytes(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "input", 1)?;
    input_of_rank(c, 1, "delimiter", 0)?;
    c.set_output(0, c.shape_of(&[-1, 2]))?;
    c.set_output(1, c.shape_of(&[-1]))?;
    c.set_output(2, c.shape_of(&[2]))
}

/// One split more than there are strings; of characters, as many as there are.
fn decoded(c: &ShapeContext<'_>) -> ShapeResult {
    let count = c.dims(c.input(0)).map_or(Some(-1), |dims| match dims.contains(&-1) {
        true => Some(-1),
        false => dims.iter().try_fold(1i64, |count, dim| count.checked_mul(*dim)),
    });
    let splits = count.filter(|&count| count >= 0).and_then(|count| count.checked_add(1));
    c.set_output(0, c.make_shape(&[c.make_dim(splits)]))?;
    let characters = c.make_shape(&[c.make_dim(None)]);
    (1..c.output_count()).try_for_each(|at| c.set_output(at, characters))
}

fn encoded(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "input_values", 1)?;
    let splits = input_of_rank(c, 1, "input_splits", 1)?;
    let count = c.value(c.dim(splits, 0)).map(|count| (count - 1).max(0));
    c.set_output(0, c.make_shape(&[c.make_dim(count)]))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::attr::AttrValue;

    #[test]
    fn there_is_one_split_more_than_strings() {
        let encoding = [("input_encoding", AttrValue::from("UTF-8"))];
        let cases: [(&[&str], &str); 2] = [(&["[2,3]"], "[7]; [?]"), (&["[n]"], "[?]; [?]")];
        check("UnicodeDecode", &encoding, &cases);
        let encoding = [("output_encoding", AttrValue::from("UTF-8"))];
        check("UnicodeEncode", &encoding, &[(&["[n]", "[4]"], "[3]")]);
    }

    #[test]
    fn parts_are_a_sparse_matrix() {
        check("StringSplit", &[], &[(&["[n]", "[]"], "[?,2]; [?]; [2]")]);
        check("StringStrip", &[], &[(&["[n,2]"], "[n,2]")]);
    }
}
