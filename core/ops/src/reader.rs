//! Readers: records of files whose names come from a queue.
//!
//! In older graphs a reader is a reference to two strings, its container and its name.

use crate::shape::{handle_input, input_of_rank, scalar_output, two_texts};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::op::GradientRule;

register_op!(
    "WholeFileReaderV2",
    outputs = &["reader_handle: resource"],
    attrs = &["container: string = ''", "shared_name: string = ''"],
    stateful = true,
    shape = scalar_output,
    summary = "A reader whose records are whole files.",
);

register_op!(
    "TextLineReaderV2",
    outputs = &["reader_handle: resource"],
    attrs = &["skip_header_lines: int = 0", "container: string = ''", "shared_name: string = ''"],
    stateful = true,
    shape = scalar_output,
    summary = "A reader whose records are the lines of files.",
);

register_op!(
    "FixedLengthRecordReaderV2",
    outputs = &["reader_handle: resource"],
    attrs = &[
        "header_bytes: int = 0",
        "record_bytes: int",
        "footer_bytes: int = 0",
        "hop_bytes: int = 0",
        "container: string = ''",
        "shared_name: string = ''",
        "encoding: string = ''"
    ],
    stateful = true,
    shape = scalar_output,
    summary = "A reader whose records have a fixed number of bytes.",
);

register_op!(
    "TFRecordReaderV2",
    outputs = &["reader_handle: resource"],
    attrs =
        &["container: string = ''", "shared_name: string = ''", "compression_type: string = ''"],
    stateful = true,
    shape = scalar_output,
    summary = "A reader whose records are those of TFRecord files.",
);

register_op!(
    "IdentityReaderV2",
    outputs = &["reader_handle: resource"],
    attrs = &["container: string = ''", "shared_name: string = ''"],
    stateful = true,
    shape = scalar_output,
    summary = "A reader whose records are the work items.",
);

register_op!(
    "ReaderReadV2",
    inputs = &["reader_handle: resource", "queue_handle: resource"],
    outputs = &["key: string", "value: string"],
    stateful = true,
    shape = read,
    summary = "The next record of a reader, which takes files from a queue.",
);

register_op!(
    "ReaderReadUpToV2",
    inputs = &["reader_handle: resource", "queue_handle: resource", "num_records: int64"],
    outputs = &["keys: string", "values: string"],
    stateful = true,
    shape = read_up_to,
    summary = "Up to a number of records of a reader, which takes files from a queue.",
);

register_op!(
    "ReaderNumRecordsProducedV2",
    inputs = &["reader_handle: resource"],
    outputs = &["records_produced: int64"],
    stateful = true,
    shape = of_reader,
    summary = "The number of records that a reader has produced.",
);

register_op!(
    "ReaderNumWorkUnitsCompletedV2",
    inputs = &["reader_handle: resource"],
    outputs = &["units_completed: int64"],
    stateful = true,
    shape = of_reader,
    summary = "The number of files that a reader has read to the end.",
);

register_op!(
    "ReaderSerializeStateV2",
    inputs = &["reader_handle: resource"],
    outputs = &["state: string"],
    stateful = true,
    shape = of_reader,
    summary = "The state of a reader as text.",
);

register_op!(
    "ReaderRestoreStateV2",
    inputs = &["reader_handle: resource", "state: string"],
    stateful = true,
    shape = restore,
    summary = "Sets the state of a reader.",
);

register_op!(
    "ReaderResetV2",
    inputs = &["reader_handle: resource"],
    stateful = true,
    shape = with_reader,
    summary = "Puts a reader back to its first state.",
);

register_op!(
    "WholeFileReader",
    outputs = &["reader_handle: Ref(string)"],
    attrs = &["container: string = ''", "shared_name: string = ''"],
    stateful = true,
    shape = two_texts,
    gradient = GradientRule::None,
    summary = "A reference to the name of a reader whose records are whole files.",
);

register_op!(
    "TextLineReader",
    outputs = &["reader_handle: Ref(string)"],
    attrs = &["skip_header_lines: int = 0", "container: string = ''", "shared_name: string = ''"],
    stateful = true,
    shape = two_texts,
    gradient = GradientRule::None,
    summary = "A reference to the name of a reader whose records are the lines of files.",
);

register_op!(
    "FixedLengthRecordReader",
    outputs = &["reader_handle: Ref(string)"],
    attrs = &[
        "header_bytes: int = 0",
        "record_bytes: int",
        "footer_bytes: int = 0",
        "hop_bytes: int = 0",
        "container: string = ''",
        "shared_name: string = ''"
    ],
    stateful = true,
    shape = two_texts,
    gradient = GradientRule::None,
    summary = "A reference to the name of a reader whose records have a fixed number of bytes.",
);

register_op!(
    "TFRecordReader",
    outputs = &["reader_handle: Ref(string)"],
    attrs =
        &["container: string = ''", "shared_name: string = ''", "compression_type: string = ''"],
    stateful = true,
    shape = two_texts,
    gradient = GradientRule::None,
    summary = "A reference to the name of a reader whose records are those of TFRecord files.",
);

register_op!(
    "IdentityReader",
    outputs = &["reader_handle: Ref(string)"],
    attrs = &["container: string = ''", "shared_name: string = ''"],
    stateful = true,
    shape = two_texts,
    gradient = GradientRule::None,
    summary = "A reference to the name of a reader whose records are the work items.",
);

register_op!(
    "ReaderRead",
    inputs = &["reader_handle: Ref(string)", "queue_handle: Ref(string)"],
    outputs = &["key: string", "value: string"],
    shape = read,
    gradient = GradientRule::None,
    summary = "The next record of a reader behind a reference, which takes files from a queue.",
);

register_op!(
    "ReaderReadUpTo",
    inputs = &["reader_handle: Ref(string)", "queue_handle: Ref(string)", "num_records: int64"],
    outputs = &["keys: string", "values: string"],
    shape = read_up_to,
    gradient = GradientRule::None,
    summary =
        "Up to a number of records of a reader behind a reference, which takes files from a queue.",
);

register_op!(
    "ReaderNumRecordsProduced",
    inputs = &["reader_handle: Ref(string)"],
    outputs = &["records_produced: int64"],
    shape = of_reader,
    gradient = GradientRule::None,
    summary = "The number of records that a reader behind a reference has produced.",
);

register_op!(
    "ReaderNumWorkUnitsCompleted",
    inputs = &["reader_handle: Ref(string)"],
    outputs = &["units_completed: int64"],
    shape = of_reader,
    gradient = GradientRule::None,
    summary = "The number of files that a reader behind a reference has read to the end.",
);

register_op!(
    "ReaderSerializeState",
    inputs = &["reader_handle: Ref(string)"],
    outputs = &["state: string"],
    shape = of_reader,
    gradient = GradientRule::None,
    summary = "The state of a reader behind a reference as text.",
);

register_op!(
    "ReaderRestoreState",
    inputs = &["reader_handle: Ref(string)", "state: string"],
    shape = restore,
    gradient = GradientRule::None,
    summary = "Sets the state of a reader behind a reference.",
);

register_op!(
    "ReaderReset",
    inputs = &["reader_handle: Ref(string)"],
    shape = with_reader,
    gradient = GradientRule::None,
    summary = "Puts a reader behind a reference back to its first state.",
);

fn with_reader(c: &ShapeContext<'_>) -> ShapeResult {
    handle_input(c, 0, "reader_handle")
}

fn of_reader(c: &ShapeContext<'_>) -> ShapeResult {
    with_reader(c)?;
    scalar_output(c)
}

fn read(c: &ShapeContext<'_>) -> ShapeResult {
    with_reader(c)?;
    handle_input(c, 1, "queue_handle")?;
    c.set_output(0, c.scalar())?;
    c.set_output(1, c.scalar())
}

fn read_up_to(c: &ShapeContext<'_>) -> ShapeResult {
    with_reader(c)?;
    handle_input(c, 1, "queue_handle")?;
    input_of_rank(c, 2, "num_records", 0)?;
    c.set_output(0, c.unknown_of_rank(1))?;
    c.set_output(1, c.unknown_of_rank(1))
}

fn restore(c: &ShapeContext<'_>) -> ShapeResult {
    with_reader(c)?;
    input_of_rank(c, 1, "state", 0).map(drop)
}
