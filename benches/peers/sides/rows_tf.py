"""TensorFlow: a concrete function per op."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

VERSION = tf.__version__


def layer_norm(x: tf.Tensor) -> tf.Tensor:
    """Op by op, with a scale and an offset that change nothing, as ONNX Runtime's op has them."""
    mean = tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(tf.math.squared_difference(x, mean), -1, keepdims=True)
    scale, offset = tf.ones(x.shape[-1]), tf.zeros(x.shape[-1])
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-5)


def gelu(x: tf.Tensor) -> tf.Tensor:
    """By the error function, as models have it; `tf.nn.gelu` has its complement instead."""
    return 0.5 * x * (1.0 + tf.math.erf(x / np.float32(np.sqrt(2))))


OPS = {
    "add": lambda x: x + x,
    "relu": tf.nn.relu,
    "exp": tf.exp,
    "tanh": tf.tanh,
    "gelu": gelu,
    "softmax": tf.nn.softmax,
    "layernorm": layer_norm,
    "sum_all": tf.reduce_sum,
    "sum_rows": lambda x: tf.reduce_sum(x, -1),
    "transpose": tf.transpose,
}


def set_threads(threads: int) -> None:
    """Before TensorFlow makes its pools; afterwards it must not be asked to."""
    if tf.config.threading.get_intra_op_parallelism_threads() != threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)


def prepare(op: str, x: np.ndarray, threads: int):
    """A call, and what gives its result."""
    set_threads(threads)
    fed = tf.constant(x)
    function = tf.function(OPS[op], autograph=False).get_concrete_function(tf.TensorSpec(x.shape, tf.float32))
    return lambda: function(fed), lambda: function(fed).numpy()
