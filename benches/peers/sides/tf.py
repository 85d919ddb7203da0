"""TensorFlow: the frozen graph as a concrete function, its placeholders of the fed shapes, Grappler and oneDNN on."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from prepared import Case, key

VERSION = tf.__version__


class Step:
    """A case as a function of constants."""

    def __init__(self, case: Case, threads: int):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        graph_def = tf.compat.v1.GraphDef.FromString(case.file(".pb").read_bytes())
        self.fed = [tf.constant(array) for array in case.fed().values()]
        self.names = list(case.fetches)
        specs = [tf.TensorSpec(x.shape, x.dtype) for x in self.fed]
        feeds = [key(name) for name in case.feeds]

        def step(*fed):
            return tf.import_graph_def(graph_def, dict(zip(feeds, fed)), self.names, name="")

        self.function = tf.function(step, autograph=False).get_concrete_function(*specs)

    def run(self) -> None:
        """One step."""
        self.fetched = self.function(*self.fed)

    def results(self) -> dict[str, np.ndarray]:
        """What the last step gave."""
        return {name: value.numpy() for name, value in zip(self.names, self.fetched)}
