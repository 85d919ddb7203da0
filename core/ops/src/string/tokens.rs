//! Strings of rows: sequences of neighbours, strings joined by the numbers of their segments, and fingerprints.

use crate::shape::{constant_integer, dims_of, input_of_rank, input_of_rank_at_least};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_geometry::GeometryError;

register_op!(
    "StringNGrams",
    inputs = &["data: string", "data_splits: Tsplits"],
    outputs = &["ngrams: string", "ngrams_splits: Tsplits"],
    attrs = &[
        "separator: string",
        "ngram_widths: list(int) >= 0",
        "left_pad: string",
        "right_pad: string",
        "pad_width: int",
        "preserve_short_sequences: bool",
        "Tsplits: {int32, int64} = DT_INT64",
    ],
    shape = ngrams,
    summary = "The sequences of so many neighbours in each row of strings, joined, with padding before and after a row.",
    cases = &[
        "pairs; separator = ' '; ngram_widths in {[2], [1, 3], [4]}; left_pad = 'a'; right_pad = 'z'; \
         pad_width in {-1, 0, 1}; preserve_short_sequences in {false, true}; data: [6]; data_splits: [4] values(0, 2, 2, 6)",
    ],
);

register_op!(
    "UnsortedSegmentJoin",
    inputs = &["inputs: string", "segment_ids: Tindices", "num_segments: Tnumsegments"],
    outputs = &["output: string"],
    attrs = &[
        "separator: string = ''",
        "Tindices: {int32, int64}",
        "Tnumsegments: {int32, int64} = DT_INT32",
    ],
    shape = segments,
    summary = "The strings of each segment joined, in their order.",
    cases = &[
        "rows; separator in {'', '-'}; inputs: [n, 3]; segment_ids: [n] integers(0..5); num_segments: [] values(5)",
        "elements; inputs: [n, 3]; segment_ids: [n, 3] integers(0..4); num_segments: [] values(4)",
    ],
);

register_op!(
    "Fingerprint",
    inputs = &["data: T", "method: string"],
    outputs = &["fingerprint: uint8"],
    attrs = &["T: type"],
    shape = fingerprint,
    summary = "Eight bytes for each row, which follow from its elements.",
    cases = &["rows; data: [n, 3]; method: [] strings('farmhash64')"],
);

fn ngrams(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "data", 1)?;
    let splits = input_of_rank(c, 1, "data_splits", 1)?;
    c.set_output(0, c.unknown_of_rank(1))?;
    c.set_output(1, splits)
}

fn segments(c: &ShapeContext<'_>) -> ShapeResult {
    let ids = input_of_rank_at_least(c, 1, "segment_ids", 1)?;
    input_of_rank(c, 2, "num_segments", 0)?;
    let count = constant_integer(c, 2, "num_segments")?;
    if let Some(found) = count.filter(|&count| count < 0) {
        return Err(GeometryError::TooSmall { what: "num_segments", least: 0, found }.into());
    }
    let Some(taken) = c.rank(ids) else { return c.set_output(0, c.unknown()) };
    let inputs = input_of_rank_at_least(c, 0, "inputs", taken)?;
    if c.rank(inputs).is_none() {
        return c.set_output(0, c.unknown());
    }
    let sizes = dims_of(c, inputs);
    for (&expected, found) in sizes.iter().zip(dims_of(c, ids)) {
        c.merge_dim(expected, found)?;
    }
    let mut dims = vec![c.make_dim(count)];
    dims.extend(&sizes[taken..]);
    c.set_output(0, c.make_shape(&dims))
}

fn fingerprint(c: &ShapeContext<'_>) -> ShapeResult {
    let data = input_of_rank_at_least(c, 0, "data", 1)?;
    input_of_rank(c, 1, "method", 0)?;
    let rows = match c.rank(data) {
        Some(_) => c.dim(data, 0),
        None => c.make_dim(None),
    };
    c.set_output(0, c.make_shape(&[rows, c.make_dim(Some(8))]))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn rows_stay_rows() {
        let attrs = [("ngram_widths", vec![2i64].into())];
        check(
            "StringNGrams",
            &attrs,
            &[
                (&["[n]", "[4]"], "[?]; [4]"),
                (&["[n,2]", "[4]"], "! data must have 1 dimensions, got 2"),
            ],
        );
        check(
            "UnsortedSegmentJoin",
            &[],
            &[
                (&["[n,3]", "[n]", "= 5"], "[5,3]"),
                (&["[n,3]", "[n,3]", "[]"], "[?]"),
                (&["?", "[n]", "= 5"], "?"),
                (&["[n]", "[n,3]", "= 5"], "! inputs must have at least 2 dimensions, got 1"),
                (&["[n]", "[]", "= 5"], "! segment_ids must have at least 1 dimensions, got 0"),
                (&["[n]", "[n]", "= -1"], "! num_segments must be at least 0, got -1"),
            ],
        );
        check(
            "Fingerprint",
            &[],
            &[
                (&["[n,3]", "[]"], "[n,8]"),
                (&["?", "[]"], "[?,8]"),
                (&["[]", "[]"], "! data must have at least 1 dimensions, got 0"),
            ],
        );
    }
}
