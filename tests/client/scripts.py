"""Not cases: what the training scripts of `cases_scripts.py` and `cases_recovery.py` have in common."""

import glob
import os

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1

# Rows of the table that examples are taken from.
ROWS = 48


def numbers(seed, *dims):
    """Standard normal values that only depend on the seed."""
    return np.random.default_rng(seed).standard_normal(dims).astype(np.float32)


def table():
    """Points and their classes: three groups around centres."""
    classes = np.arange(ROWS) % 3
    return numbers(1, 3, 4)[classes] + 0.3 * numbers(2, ROWS, 4), classes.astype(np.int64)


def batch_of(step, size=8):
    """The examples of a step: the same for every run that is at the same step."""
    features, classes = table()
    rows = (tf.cast(step, tf.int32) * size + tf.range(size)) % ROWS
    return tf.gather(features, rows), tf.gather(classes, rows)


def perceptron(features, classes, **options):
    """The mean loss of a perceptron with one hidden layer, whose initial weights are given."""
    hidden = tf1.get_variable("hidden/kernel", initializer=0.5 * numbers(3, 4, 8), **options)
    bias = tf1.get_variable("hidden/bias", [8], initializer=tf1.zeros_initializer(), **options)
    kernel = tf1.get_variable("logits/kernel", initializer=0.5 * numbers(4, 8, 3), **options)
    logits = tf.matmul(tf.nn.relu(tf1.nn.xw_plus_b(features, hidden, bias)), kernel)
    return tf1.losses.sparse_softmax_cross_entropy(classes, logits)


def ends(folder):
    """The names of the files in a folder."""
    return sorted(os.path.basename(name) for name in glob.glob(os.path.join(folder, "*")))


def stored(path):
    """The tensors of a checkpoint, as TensorFlow reads them from the files."""
    reader = tf1.train.NewCheckpointReader(path)
    return {name: reader.get_tensor(name) for name in sorted(reader.get_variable_to_shape_map())}
