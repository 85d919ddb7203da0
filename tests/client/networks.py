"""Parts of the graphs of cases_networks.py and cases_networks_v1.py: layers of Keras, weights, a model of words."""

import zlib

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def normal(name, *shape):
    """Numbers that depend on the name and the shape only."""
    seed = zlib.crc32(f"{name}{shape}".encode())
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


def given(name, *shape):
    """A variable by handle with numbers of its name, half as large as those of `normal`."""
    return tf1.get_variable(name, initializer=normal(name, *shape) * 0.5, use_resource=True)


def initialiser(name):
    """What Keras calls for the first values of a weight."""
    return lambda shape, dtype=None: tf.constant(normal(name, *shape) * 0.5)


def layer(kind, **options):
    """A layer of Keras whose weights are the same in every process; its first call creates them as variables."""
    import keras
    weights = {"Dense": ("kernel", "bias"), "Embedding": ("embeddings",)}
    for name in weights.get(kind, ("kernel", "recurrent", "bias")):
        options[f"{name}_initializer"] = initialiser(f"{kind}.{name}")
    if kind in ("LSTM", "ConvLSTM2D"):
        options["unit_forget_bias"] = False
    return getattr(keras.layers, kind)(**options)


def stateless(kind, shape, **options):
    """A layer as a function: its weights are constants of the graph in which it is called.

    Its variables are in a graph of their own, which never runs.
    """
    with tf.Graph().as_default():
        made = layer(kind, **options)
        made.build(shape)
        names = [variable.path.rsplit("/", 1)[1] for variable in made.trainable_variables]
        shapes = [tuple(variable.shape) for variable in made.trainable_variables]
        seeds = [np.zeros(variable.shape, np.uint32) for variable in made.non_trainable_variables]
    short = {"recurrent_kernel": "recurrent"}

    def call(*inputs, **keywords):
        weights = [tf.constant(normal(f"{kind}.{short.get(name, name)}", *shape) * 0.5)
                   for name, shape in zip(names, shapes)]
        return made.stateless_call(weights, [tf.constant(seed) for seed in seeds], *inputs, **keywords)[0]
    return call


class Words:
    """A recurrent model of a language: a state and a word give the next state and the logits of the next word.

    The last word ends a sentence.
    """

    def __init__(self, words, units):
        self.words, self.units = words, units
        self.embedding, self.recurrent, self.output = (
            normal(name, *shape) for name, shape in (
                ("embedding", (words, units)), ("recurrent", (units, units)), ("output", (units, words))))

    def step(self, state, ids):
        """States [n, units] and words [n] to states and logits [n, words]."""
        state = tf.tanh(tf.matmul(state, tf.constant(self.recurrent)) + tf.gather(tf.constant(self.embedding), ids))
        return state, tf.matmul(state, tf.constant(self.output))

    def search(self, first, steps, width):
        """The `width` best sentences of at most `steps` words after `first`, and the logarithms of their chances."""
        end = self.words - 1
        # A sentence that has ended goes on with the last word only, at no cost.
        ended = tf.constant(np.where(np.arange(self.words) == end, 0, -1e9).astype(np.float32))

        def step(i, state, ids, scores):
            state, logits = self.step(state, ids[:, -1])
            chances = tf.where(tf.equal(ids[:, -1:], end), ended, tf.nn.log_softmax(logits))
            scores, chosen = tf.math.top_k(tf.reshape(scores[:, tf.newaxis] + chances, [-1]), width)
            beam, word = chosen // self.words, chosen % self.words
            ids = tf.concat([tf.gather(ids, beam), word[:, tf.newaxis]], 1)
            return i + 1, tf.gather(state, beam), ids, scores

        def goes_on(i, state, ids, scores):
            return tf.logical_and(i < steps, tf.logical_not(tf.reduce_all(tf.equal(ids[:, -1], end))))

        begin = [0, tf.zeros([width, self.units]), tf.fill([width, 1], first),
                 tf.constant([0.] + [-1e9] * (width - 1))]
        shapes = [tf.TensorShape(shape) for shape in ([], [width, self.units], [width, None], [width])]
        _, _, ids, scores = tf.while_loop(goes_on, step, begin, shapes)
        return ids, scores
