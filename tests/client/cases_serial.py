"""Sparse tensors as messages, which are shown in base64, since texts that end in NUL are lost on the way to NumPy."""

import numpy as np
import tensorflow as tf

from harness import case

tf1 = tf.compat.v1
raw = tf.raw_ops

PLACES = np.int64([[0, 1], [0, 3], [2, 0], [2, 2]])
SHAPE = np.int64([3, 4])
VALUES = {
    "bool": np.array([True, False, True, True]),
    "int8": np.int8([1, -2, 3, -128]),
    "uint16": np.uint16([1, 2, 65535, 0]),
    "int64": np.int64([1, -2, 1 << 40, 0]),
    "half": np.float16([1.5, -2, 0, 65504]),
    "float": np.float32([1.5, -2, 0, np.inf]),
    "double": np.float64([1.5, -2, 0, 1e300]),
    "complex": np.complex64([1 + 2j, 0, -1j, 3]),
    "texts": np.array([b"a", b"", b"bc\0", b"\xff"], object),
}


def dtype_of(values):
    return tf.string if values.dtype == object else tf.as_dtype(values.dtype)


def shown(session, messages):
    return session.run(raw.EncodeBase64(input=messages, pad=False))


def each_type():
    for name, values in VALUES.items():
        def run(address, log, values=values):
            tensor = {"sparse_indices": PLACES, "sparse_values": values, "sparse_shape": SHAPE}
            dtype = dtype_of(values)
            with tf1.Session(address) as session:
                for op in (raw.SerializeSparse, raw.SerializeManySparse):
                    messages = op(**tensor)
                    log.value("messages", shown(session, messages))
                    back = raw.DeserializeSparse(serialized_sparse=messages, dtype=dtype)
                    if dtype == tf.string:
                        back = (back[0], raw.EncodeBase64(input=back[1], pad=False), back[2])
                    log.value("back", [part.tolist() for part in session.run(back)])
        run.__name__ = f"sparse_messages_of_{name}"
        case(run)


each_type()


@case
def many_sparse_tensors_become_one(address, log):
    def messages(places, values, shape):
        return raw.SerializeSparse(sparse_indices=np.int64(places).reshape(-1, len(shape)), sparse_values=np.float32(values),
                                   sparse_shape=np.int64(shape))

    parts = [messages([[0, 1], [1, 2]], [1, 2], [2, 3]), messages([], [], [5, 1]), messages([[3, 0]], [3], [4, 2]),
             messages([[0, 0]], [4], [1, 1])]
    with tf1.Session(address) as session:
        for shape in ([4, 3], [2, 2, 3], [1, 4, 1, 3]):
            stacked = tf.reshape(tf.stack(parts), shape)
            log.value(f"{shape}", [part.tolist() for part in session.run(
                raw.DeserializeSparse(serialized_sparse=stacked, dtype=tf.float32))])
        log.value("many", [part.tolist() for part in session.run(
            raw.DeserializeManySparse(serialized_sparse=tf.stack(parts), dtype=tf.float32))])
        log.value("one", [part.tolist() for part in session.run(
            raw.DeserializeManySparse(serialized_sparse=tf.stack(parts[:1]), dtype=tf.float32))])


@case
def what_is_no_sparse_tensor(address, log):
    whole = raw.SerializeSparse(sparse_indices=PLACES, sparse_values=VALUES["float"], sparse_shape=SHAPE)
    other = raw.SerializeSparse(sparse_indices=PLACES[:2], sparse_values=VALUES["float"][:2], sparse_shape=SHAPE[:1])
    flat = raw.SerializeSparse(sparse_indices=PLACES[:, :1], sparse_values=VALUES["float"], sparse_shape=SHAPE[:1])
    wrong = {
        "another type": (whole, tf.float64),
        "no messages": (tf.constant(["x", "y", "z"]), tf.float32),
        "two messages": (whole[:2], tf.float32),
        "other values": (tf.stack([whole[0], other[1], whole[2]]), tf.float32),
        "another shape": (tf.stack([whole[0], whole[1], other[2]]), tf.float32),
        "other ranks": (tf.stack([whole, flat]), tf.float32),
        "no tensor": (tf.zeros([0, 3], tf.string), tf.float32),
    }
    with tf1.Session(address) as session:
        for name, (messages, dtype) in wrong.items():
            # Of unknown shape, so that the step refuses it.
            given = tf1.placeholder_with_default(messages, None)
            with log.refused(name):
                session.run(raw.DeserializeSparse(serialized_sparse=given, dtype=dtype))


@case
def what_has_no_parts(address, log):
    places, shape = tf1.placeholder(tf.int64), tf1.placeholder(tf.int64)
    many = raw.SerializeManySparse(sparse_indices=places, sparse_values=np.float32([1, 2]), sparse_shape=shape)
    with tf1.Session(address) as session:
        for name, given in {
            "order": ([[2, 0], [0, 1]], [3, 4]), "twice": ([[0, 1], [0, 1]], [3, 4]), "outside": ([[0, 1], [3, 1]], [3, 4]),
            "vector": ([[0], [1]], [3]), "ranks": ([[0, 1], [1, 1]], [3]),
        }.items():
            with log.refused(name):
                session.run(many, {places: given[0], shape: given[1]})
