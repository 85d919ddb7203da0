"""Graphs as older and newer versions of TensorFlow write them, which TensorFlow reads all the same."""

import numpy as np
import tensorflow as tf

from .data import seeded
from .graphs import Golden, normal, tf1


def product(name, producer):
    """A product of a placeholder with weights, as a producer of some version writes it."""
    rng, graph = seeded(name), tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, None, name="x")
        w = tf.constant(normal(rng, 4, 3), name="w")
        tf.nn.leaky_relu(tf.matmul(x, w, name="product"), name="y")
    golden = Golden(name, "", graph, {"absolute": 1e-6, "relative": 1e-6})
    golden.graph_def.versions.producer = producer
    return rng, golden


def node_of(golden, name):
    return next(node for node in golden.graph_def.node if node.name == name)


def old_writer():
    """Up to producer 21 a placeholder of any shape is written with the shape of a scalar."""
    rng, golden = product("old_writer", 21)
    golden.about = "producer 21: a placeholder with shape {} is of any shape"
    placeholder = node_of(golden, "x")
    placeholder.attr["shape"].Clear()
    placeholder.attr["shape"].shape.SetInParent()
    golden.run({"x:0": normal(rng, 2, 4)}, ["y:0"])
    return golden.run({"x:0": normal(rng, 5, 4)}, ["product:0", "y:0"])


def silent_writer():
    """A graph that does not say its producer counts as one of producer 0."""
    rng, golden = product("silent_writer", 0)
    golden.about = "no versions: a placeholder with shape {} is of any shape"
    golden.graph_def.ClearField("versions")
    placeholder = node_of(golden, "x")
    placeholder.attr["shape"].Clear()
    placeholder.attr["shape"].shape.SetInParent()
    return golden.run({"x:0": normal(rng, 3, 4)}, ["y:0"])


def strict_writer():
    """From producer 22 on the shape of a scalar is that of a scalar."""
    graph = tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [], name="x")
        tf.add(x, x, name="y")
    golden = Golden("strict_writer", "producer 22: a placeholder with shape {} is a scalar", graph)
    golden.graph_def.versions.producer = 22
    return golden.run({"x:0": np.float32(1.5)}, ["y:0"])


def newer_writer():
    """Attributes that the op does not have, and attributes without value, mean nothing."""
    rng, golden = product("newer_writer", 99999)
    golden.about = "a newer producer: attributes that the op does not have, attributes without value"
    y = node_of(golden, "y")
    y.attr["of_a_newer_writer"].i = 3
    y.attr["alpha"].Clear()
    y.attr["_private"].SetInParent()
    node_of(golden, "product").attr["transpose_a"].Clear()
    return golden.run({"x:0": normal(rng, 2, 4)}, ["product:0", "y:0"])


WRITTEN = [old_writer, silent_writer, strict_writer, newer_writer]
