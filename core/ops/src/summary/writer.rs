//! Event files that graphs write: a writer is a resource, and takes summaries with their steps.

use super::{REAL, input_of_rank};
use tenon_author::{ShapeContext, ShapeResult, register_op};

register_op!(
    "SummaryWriter",
    inputs = &[],
    outputs = &["writer: resource"],
    attrs = &["shared_name: string = ''", "container: string = ''"],
    stateful = true,
    shape = super::scalar_output,
    summary = "The handle of a writer of event files, which has no file yet.",
);

register_op!(
    "CreateSummaryFileWriter",
    inputs = &[
        "writer: resource",
        "logdir: string",
        "max_queue: int32",
        "flush_millis: int32",
        "filename_suffix: string",
    ],
    outputs = &[],
    attrs = &[],
    stateful = true,
    shape = |c: &ShapeContext<'_>| scalars(
        c,
        &["writer", "logdir", "max_queue", "flush_millis", "filename_suffix"]
    ),
    summary = "Creates an event file in a folder, unless the writer has one.",
);

register_op!(
    "FlushSummaryWriter",
    inputs = &["writer: resource"],
    outputs = &[],
    attrs = &[],
    stateful = true,
    shape = |c: &ShapeContext<'_>| scalars(c, &["writer"]),
    summary = "Writes the events that the writer holds back.",
);

register_op!(
    "CloseSummaryWriter",
    inputs = &["writer: resource"],
    outputs = &[],
    attrs = &[],
    stateful = true,
    shape = |c: &ShapeContext<'_>| scalars(c, &["writer"]),
    summary = "Writes the events that the writer holds back, and leaves it without a file.",
);

register_op!(
    "WriteSummary",
    inputs = &[
        "writer: resource",
        "step: int64",
        "tensor: T",
        "tag: string",
        "summary_metadata: string",
    ],
    outputs = &[],
    attrs = &["T: type"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        input_of_rank(c, 3, "tag", 0)?;
        input_of_rank(c, 4, "summary_metadata", 0)?;
        scalars(c, &["writer", "step"])
    },
    summary = "Writes a tensor under a tag, and what a viewer is told of it.",
);

register_op!(
    "WriteScalarSummary",
    inputs = &["writer: resource", "step: int64", "tag: string", "value: T"],
    outputs = &[],
    attrs = &[REAL],
    stateful = true,
    shape = |c: &ShapeContext<'_>| scalars(c, &["writer", "step", "tag", "value"]),
    summary = "Writes a number under a tag.",
);

register_op!(
    "WriteHistogramSummary",
    inputs = &["writer: resource", "step: int64", "tag: string", "values: T"],
    outputs = &[],
    attrs = &[
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, bool} = float"
    ],
    stateful = true,
    shape = |c: &ShapeContext<'_>| scalars(c, &["writer", "step", "tag"]),
    summary = "Writes a histogram of values under a tag.",
);

register_op!(
    "WriteImageSummary",
    inputs = &["writer: resource", "step: int64", "tag: string", "tensor: T", "bad_color: uint8"],
    outputs = &[],
    attrs = &["max_images: int >= 1 = 3", "T: {uint8, double, float, half} = float"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        input_of_rank(c, 3, "tensor", 4)?;
        input_of_rank(c, 4, "bad_color", 1)?;
        scalars(c, &["writer", "step", "tag"])
    },
    summary = "Writes images under a tag.",
);

register_op!(
    "WriteAudioSummary",
    inputs =
        &["writer: resource", "step: int64", "tag: string", "tensor: float", "sample_rate: float"],
    outputs = &[],
    attrs = &["max_outputs: int >= 1 = 3"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        input_of_rank(c, 4, "sample_rate", 0)?;
        scalars(c, &["writer", "step", "tag"])
    },
    summary = "Writes clips of sound under a tag.",
);

register_op!(
    "WriteGraphSummary",
    inputs = &["writer: resource", "step: int64", "tensor: string"],
    outputs = &[],
    attrs = &[],
    stateful = true,
    shape = |c: &ShapeContext<'_>| scalars(c, &["writer", "step", "tensor"]),
    summary = "Writes a graph, which is a serialised GraphDef.",
);

register_op!(
    "WriteRawProtoSummary",
    inputs = &["writer: resource", "step: int64", "tensor: string"],
    outputs = &[],
    attrs = &[],
    stateful = true,
    shape = |c: &ShapeContext<'_>| scalars(c, &["writer", "step"]),
    summary = "Writes serialised summaries as one event.",
);

register_op!(
    "ImportEvent",
    inputs = &["writer: resource", "event: string"],
    outputs = &[],
    attrs = &[],
    stateful = true,
    shape = |c: &ShapeContext<'_>| scalars(c, &["writer", "event"]),
    summary = "Writes a serialised event as it is.",
);

/// The first inputs, which have these names, are scalars.
fn scalars(c: &ShapeContext<'_>, names: &[&'static str]) -> ShapeResult {
    names.iter().enumerate().try_for_each(|(at, name)| input_of_rank(c, at, name, 0).map(drop))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn what_an_event_has_once_is_a_scalar() {
        check(
            "WriteScalarSummary",
            &[],
            &[
                (&["[]", "?", "[]", "[]"], ""),
                (&["[]", "[]", "[1]", "[]"], "! tag must have 0 dimensions, got 1"),
            ],
        );
        check(
            "WriteImageSummary",
            &[],
            &[(&["[]", "[]", "[]", "[3,4,1]", "[4]"], "! tensor must have 4 dimensions, got 3")],
        );
    }
}
