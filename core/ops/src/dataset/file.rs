//! Datasets of the records of files.

use super::files;
use tenon_author::{ShapeContext, register_op};

/// The attributes of a dataset of the records of files.
const OF_FILES: &[&str] = &["metadata: string = ''"];

register_op!(
    "TextLineDataset",
    inputs = &["filenames: string", "compression_type: string", "buffer_size: int64"],
    outputs = &["handle: variant"],
    attrs = OF_FILES,
    stateful = true,
    shape = |c: &ShapeContext<'_>| files(c, &["compression_type", "buffer_size"]),
    summary = "A dataset of the lines of files.",
);

register_op!(
    "TFRecordDataset",
    inputs = &["filenames: string", "compression_type: string", "buffer_size: int64"],
    outputs = &["handle: variant"],
    attrs = OF_FILES,
    stateful = true,
    shape = |c: &ShapeContext<'_>| files(c, &["compression_type", "buffer_size"]),
    summary = "A dataset of the records of TFRecord files.",
);

register_op!(
    "TFRecordDatasetV2",
    inputs = &[
        "filenames: string",
        "compression_type: string",
        "buffer_size: int64",
        "byte_offsets: int64"
    ],
    outputs = &["handle: variant"],
    attrs = OF_FILES,
    stateful = true,
    shape = |c: &ShapeContext<'_>| files(c, &["compression_type", "buffer_size"]),
    summary = "A dataset of the records of TFRecord files, from byte offsets on.",
);

register_op!(
    "FixedLengthRecordDataset",
    inputs = &[
        "filenames: string",
        "header_bytes: int64",
        "record_bytes: int64",
        "footer_bytes: int64",
        "buffer_size: int64"
    ],
    outputs = &["handle: variant"],
    attrs = OF_FILES,
    stateful = true,
    shape = |c: &ShapeContext<'_>| files(
        c,
        &["header_bytes", "record_bytes", "footer_bytes", "buffer_size"]
    ),
    summary = "A dataset of the records of files, all of which have one number of bytes.",
);

register_op!(
    "FixedLengthRecordDatasetV2",
    inputs = &[
        "filenames: string",
        "header_bytes: int64",
        "record_bytes: int64",
        "footer_bytes: int64",
        "buffer_size: int64",
        "compression_type: string"
    ],
    outputs = &["handle: variant"],
    attrs = OF_FILES,
    stateful = true,
    shape = |c: &ShapeContext<'_>| files(
        c,
        &["header_bytes", "record_bytes", "footer_bytes", "buffer_size", "compression_type"]
    ),
    summary = "A dataset of the records of files, perhaps compressed, all of which have one number of bytes.",
);
