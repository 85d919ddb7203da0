"""Files that cases write."""

import contextlib
import os
import tempfile

import tensorflow as tf


@contextlib.contextmanager
def files(*contents):
    """Files with these bytes, while the block runs; their names are the same for both servers in what is logged."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for at, content in enumerate(contents):
            paths.append(os.path.join(folder, f"file{at}"))
            with open(paths[-1], "wb") as file:
                file.write(content)
        yield paths


def records(*values, compression=None):
    """The bytes of a TFRecord file."""
    with tempfile.NamedTemporaryFile() as file:
        options = tf.io.TFRecordOptions(compression_type=compression or "")
        with tf.io.TFRecordWriter(file.name, options) as writer:
            for value in values:
                writer.write(value)
        with open(file.name, "rb") as written:
            return written.read()
