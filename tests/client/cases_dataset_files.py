"""Datasets of the records of files."""

import gzip
import zlib

import tensorflow as tf

from datasets import elements, fed, wrapped
from harness import case
from written import files, records

tf1 = tf.compat.v1
raw = tf.raw_ops
data = tf.compat.v1.data


def of(name, contents, make, missing=None):
    """A case that logs the elements of a dataset of files with these bytes, twice."""
    def run(address, log):
        with files(*contents()) as paths:
            if missing is not None:
                paths.insert(missing, paths[0] + "-missing")
            elements(address, log, make(paths), limit=12, twice=True)
    run.__name__ = f"dataset_{name}"
    case(run)


def refused(name, make):
    """A case that logs by which code a dataset of a file is refused, or its first element."""
    def run(address, log):
        with files(b"abcdefgh") as paths, tf1.Session(address) as session, log.refused("first"):
            iterator = data.make_initializable_iterator(make(paths))
            session.run(iterator.initializer)
            session.run(iterator.get_next())
    run.__name__ = f"dataset_{name}"
    case(run)


LINES = [b"first\nsecond\r\n\nlast", b"", b"one\ntwo\n"]
RECORDS = lambda: [records(b"first", b"", b"x" * 3000), records(), records(b"last")]

of("lines", lambda: LINES, lambda paths: data.TextLineDataset(paths))
of("lines_of_one_file", lambda: LINES[:1], lambda paths: data.TextLineDataset(paths[0], buffer_size=3))
of("lines_of_gzip", lambda: [gzip.compress(text) for text in LINES],
   lambda paths: data.TextLineDataset(paths, compression_type="GZIP"))
of("lines_of_zlib", lambda: [zlib.compress(text) for text in LINES],
   lambda paths: data.TextLineDataset(paths, compression_type="ZLIB"))
of("lines_of_what_is_not_gzip", lambda: LINES, lambda paths: data.TextLineDataset(paths, compression_type="GZIP"))
of("lines_of_no_file", lambda: LINES[:1], lambda paths: data.TextLineDataset(tf.zeros([0], tf.string)))
of("lines_of_a_missing_file", lambda: LINES, lambda paths: data.TextLineDataset(paths), missing=1)
of("tf_records", RECORDS, lambda paths: data.TFRecordDataset(paths))
of("tf_records_of_gzip", lambda: [records(b"a", b"bc", compression="GZIP"), records(compression="GZIP")],
   lambda paths: data.TFRecordDataset(paths, compression_type="GZIP"))
of("tf_records_of_zlib", lambda: [records(b"a", b"bc", compression="ZLIB")],
   lambda paths: data.TFRecordDataset(paths, compression_type="ZLIB"))
of("tf_records_that_are_damaged", lambda: [records(b"a", b"b"), records(b"c", b"d")[:20] + b"!" + records(b"c", b"d")[21:],
                                           records(b"e")], lambda paths: data.TFRecordDataset(paths))
of("tf_records_that_are_cut_off", lambda: [records(b"abc", b"def")[:-3], records(b"e")],
   lambda paths: data.TFRecordDataset(paths))
of("tf_records_of_a_missing_file", RECORDS, lambda paths: data.TFRecordDataset(paths), missing=0)
of("tf_records_read_at_the_same_time", RECORDS, lambda paths: data.TFRecordDataset(paths, num_parallel_reads=2))


def from_offsets(paths, offsets):
    handle = raw.TFRecordDatasetV2(filenames=paths, compression_type="", buffer_size=0, byte_offsets=offsets)
    return wrapped(handle, [tf.string], [[]])


of("tf_records_from_byte_offsets", RECORDS, lambda paths: from_offsets(paths, tf.constant([21, 0, 0], tf.int64)))
of("tf_records_from_an_offset_within_a_record", RECORDS, lambda paths: from_offsets(paths, tf.constant([5, 0, 0], tf.int64)))
of("tf_records_from_beyond_the_end", RECORDS, lambda paths: from_offsets(paths, tf.constant([99999, 0, 0], tf.int64)))

FIXED = [b"headabcdefghiend", b"headend", b"headxyzend"]
of("fixed_length_records", lambda: FIXED, lambda paths: data.FixedLengthRecordDataset(paths, 3, 4, 3))
of("fixed_length_records_alone", lambda: [b"abcdef", b"gh"], lambda paths: data.FixedLengthRecordDataset(paths, 2))
of("fixed_length_records_of_gzip", lambda: [gzip.compress(text) for text in FIXED],
   lambda paths: data.FixedLengthRecordDataset(paths, 3, 4, 3, compression_type="GZIP"))
of("fixed_length_records_that_do_not_fit", lambda: [b"abcdef", b"abcd", b"xyz"],
   lambda paths: data.FixedLengthRecordDataset(paths, 3))
of("fixed_length_records_of_gzip_that_do_not_fit", lambda: [gzip.compress(b"abcdef"), gzip.compress(b"abcd"), gzip.compress(b"xyz")],
   lambda paths: data.FixedLengthRecordDataset(paths, 3, compression_type="GZIP"))
of("fixed_length_records_of_a_short_file", lambda: [b"ab", b"headxyzend"],
   lambda paths: data.FixedLengthRecordDataset(paths, 3, 4, 3))
of("fixed_length_records_v1", lambda: FIXED, lambda paths: from_v1(paths))


def from_v1(paths):
    handle = raw.FixedLengthRecordDataset(filenames=paths, header_bytes=4, record_bytes=3, footer_bytes=3, buffer_size=0)
    return wrapped(handle, [tf.string], [[]])


refused("fixed_length_records_of_0_bytes", lambda paths: data.FixedLengthRecordDataset(paths, fed(0)))
refused("fixed_length_records_with_a_header_below_0", lambda paths: data.FixedLengthRecordDataset(paths, 3, fed(-1)))
refused("lines_with_a_buffer_below_0", lambda paths: data.TextLineDataset(paths, buffer_size=fed(-1)))
refused("lines_of_an_unknown_compression", lambda paths: data.TextLineDataset(paths, compression_type=fed("LZ4", tf.string)))
of("files_in_turns", lambda: LINES, lambda paths: data.Dataset.from_tensor_slices(paths).interleave(
    data.TextLineDataset, cycle_length=2, block_length=1))
