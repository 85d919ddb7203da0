"""What cases of tables share."""

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
raw = tf.raw_ops


def dtype_of(value):
    return tf.string if value.dtype == object else tf.as_dtype(value.dtype)


def in_order(keys, values):
    """An export in the order of its keys."""
    pairs = sorted(zip(np.asarray(keys).tolist(), np.asarray(values).tolist()))
    return [str(pair) for pair in pairs]


def once(key, value, name):
    return raw.HashTableV2(key_dtype=key, value_dtype=value, shared_name=name)


def mutable(key, value, name):
    return raw.MutableHashTableV2(key_dtype=key, value_dtype=value, shared_name=name)


def name_of(log_name):
    """A name that no other case has."""
    return f"{tf1.get_variable_scope().name}/{log_name}"
