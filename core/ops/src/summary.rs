//! Summaries: values of a step as serialised `Summary` messages, which event files have.
//!
//! `writer` has the ops that write event files. The kernels are plugins/train/src/summary.

mod writer;

use crate::shape::{input_of_rank, scalar_output};
use tenon_author::{ShapeContext, ShapeResult, register_op};

const REAL: &str =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";
const REAL_OR_FLOAT: &str = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64} = float";

register_op!(
    "ScalarSummary",
    inputs = &["tags: string", "values: T"],
    outputs = &["summary: string"],
    attrs = &[REAL],
    shape = scalar_output,
    summary = "A summary with a value for each tag.",
);

register_op!(
    "HistogramSummary",
    inputs = &["tag: string", "values: T"],
    outputs = &["summary: string"],
    attrs = &[REAL_OR_FLOAT],
    shape = scalar_output,
    summary = "A summary with a histogram of the values.",
);

register_op!(
    "MergeSummary",
    inputs = &["inputs: N * string"],
    outputs = &["summary: string"],
    attrs = &["N: int >= 1"],
    shape = scalar_output,
    summary = "The values of several summaries in one.",
);

register_op!(
    "TensorSummary",
    inputs = &["tensor: T"],
    outputs = &["summary: string"],
    attrs = &[
        "T: type",
        "description: string = ''",
        "labels: list(string) = []",
        "display_name: string = ''",
    ],
    shape = scalar_output,
    summary = "A summary with the tensor under the name of the node.",
);

register_op!(
    "TensorSummaryV2",
    inputs = &["tag: string", "tensor: T", "serialized_summary_metadata: string"],
    outputs = &["summary: string"],
    attrs = &["T: type"],
    shape = scalar_output,
    summary = "A summary with the tensor under a tag, and what a viewer is told of it.",
);

register_op!(
    "AudioSummary",
    inputs = &["tag: string", "tensor: float"],
    outputs = &["summary: string"],
    attrs = &["sample_rate: float", "max_outputs: int >= 1 = 3"],
    shape = audio,
    summary = "A summary with clips of sound as WAV files of 16 bits.",
);

register_op!(
    "AudioSummaryV2",
    inputs = &["tag: string", "tensor: float", "sample_rate: float"],
    outputs = &["summary: string"],
    attrs = &["max_outputs: int >= 1 = 3"],
    shape = audio,
    summary = "A summary with clips of sound as WAV files of 16 bits.",
);

register_op!(
    "ImageSummary",
    inputs = &["tag: string", "tensor: T"],
    outputs = &["summary: string"],
    attrs = &[
        "max_images: int >= 1 = 3",
        "T: {uint8, float, half, double} = float",
        "bad_color: tensor = { dtype: DT_UINT8 tensor_shape { dim { size: 4 } } int_val: 255 int_val: 0 int_val: 0 int_val: 255 }",
    ],
    shape = |c: &ShapeContext<'_>| {
        input_of_rank(c, 1, "tensor", 4)?;
        scalar_output(c)
    },
    summary = "A summary with images as PNG files.",
);

/// The sample rate is a scalar, where it is an input.
fn audio(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "tag", 0)?;
    if c.input_count() > 2 {
        input_of_rank(c, 2, "sample_rate", 0)?;
    }
    scalar_output(c)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn a_summary_is_a_scalar() {
        check("ScalarSummary", &[], &[(&["[2]", "[2]"], "[]")]);
        check(
            "AudioSummaryV2",
            &[],
            &[
                (&["[]", "[2,9,1]", "?"], "[]"),
                (&["[1]", "?", "?"], "! tag must have 0 dimensions, got 1"),
            ],
        );
    }
}
