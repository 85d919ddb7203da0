"""Running GraphDefs with TensorFlow as it stands: no rewriting, one thread, Eigen kernels."""

import os

# oneDNN's kernels pick their accumulation order per CPU; Eigen's are the reference here.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from .data import QUANTISED, Quantised

CODES = {value: name for name, value in vars(tf.errors).items() if name.isupper() and isinstance(value, int)}


def config():
    """Session options under which TensorFlow computes each node as it is written."""
    options = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    options.graph_options.rewrite_options.disable_meta_optimizer = True
    options.graph_options.optimizer_options.opt_level = -1
    return options


def feedable(array):
    """The array as Session.run takes it."""
    if isinstance(array, Quantised):
        return array.values.view(tf.as_dtype(array.name).as_numpy_dtype)
    if array.dtype.kind == "S":
        return array.astype(object)
    return array


def fetched(array, dtype):
    """A fetched result as golden data stores it; some versions of NumPy lose the name of a quantised type."""
    array = np.asarray(array)
    if dtype.name not in QUANTISED:
        return array
    return Quantised(dtype.name, array[dtype.name] if array.dtype.names else array)


def run(graph_def, feeds, fetches, targets=()):
    """Fetches as arrays. `feeds` maps tensor names to arrays."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    with tf.compat.v1.Session(graph=graph, config=config()) as session:
        feed = {name: feedable(array) for name, array in feeds.items()}
        results, _ = session.run([list(fetches), list(targets)], feed)
    return [fetched(result, graph.get_tensor_by_name(name).dtype) for name, result in zip(fetches, results)]


def error_code(graph_def, feeds, fetches):
    """The canonical code with which TensorFlow refuses, and its message; (None, None) if it does not."""
    try:
        run(graph_def, feeds, fetches)
    except tf.errors.OpError as error:
        return CODES[error.error_code], error.message
    except ValueError as error:
        # What the C API refuses with INVALID_ARGUMENT, import_graph_def raises as ValueError.
        return "INVALID_ARGUMENT", str(error)
    return None, None
