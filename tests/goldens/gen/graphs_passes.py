"""Graphs that an optimiser is tempted to take for others: constants that broadcast, values that fail or are dead."""

import math

import numpy as np
import tensorflow as tf

from .data import seeded
from .graphs import Golden, normal

tf1 = tf.compat.v1
ROUNDED = {"absolute": 2e-6, "relative": 2e-6}


def gelu_of(x, half, one, root):
    """GELU as graphs spell it out."""
    return (half * x) * (one + tf.math.erf(x * root))


def broadcasting_constants():
    """Constants of one number whose shapes broadcast what they meet."""
    rng, graph = seeded("broadcasting constants"), tf.Graph()
    root = math.sqrt(0.5)
    with graph.as_default():
        x = tf1.placeholder(tf.float32, None, name="x")
        partial = tf1.placeholder(tf.float32, [None], name="partial")
        for name, value in (("unknown", x), ("partial", partial)):
            tf.identity(gelu_of(value, np.full(4, 0.5, np.float32), 1.0, root), name=f"{name}_half")
            tf.identity(gelu_of(value, 0.5, np.ones([2, 1, 1], np.float32), root), name=f"{name}_one")
            tf.identity(gelu_of(value, 0.5, 1.0, np.full([1, 1, 1], root, np.float32)), name=f"{name}_root")
            tf.identity(gelu_of(value, 0.5, 1.0, root), name=f"{name}_scalars")
        q, k, v = (tf1.placeholder(tf.float32, [None, 2, n, 4], name=m) for m, n in (("q", 3), ("k", 5), ("v", 5)))
        keep = tf1.placeholder(tf.bool, [None, 1, 1, 5], name="keep")
        scores = tf.linalg.matmul(q, k, transpose_b=True)
        kept = tf.nn.softmax(tf.where(keep, scores, -100.0))
        for name, zero in (("attention", np.float32(0)), ("attention_of_four", np.zeros([4, 1, 1, 5], np.float32))):
            tf.identity(tf.linalg.matmul(tf.where(keep, kept, zero), v), name=name)
        rows = tf1.placeholder(tf.float32, [None, 4], name="rows")
        mean = tf.reduce_mean(rows, [-1], keepdims=True)
        variance = tf.reduce_mean(tf.square(rows - mean), [-1], keepdims=True)
        for name, epsilon in (("norm", np.float32(0.25)), ("norm_of_rank_three", np.full([1, 1, 1], 0.25, np.float32))):
            scale, offset = normal(rng, 4), normal(rng, 4)
            tf.identity((rows - mean) * tf.math.rsqrt(variance + epsilon) * scale + offset, name=name)
        tf.negative(rows, name="elsewhere")
    about = "constants of one number whose shapes broadcast: in GELU, attention, layer normalisation"
    golden = Golden("broadcasting_constants", about, graph, ROUNDED)
    forms = ("half", "one", "root", "scalars")
    for name, feed in (("unknown", "x"), ("partial", "partial")):
        for shape in ((1,), (4,)):
            golden.run({f"{feed}:0": normal(rng, *shape)}, [f"{name}_{form}:0" for form in forms])
    for shape in ((), (3, 4), (0, 4)):
        golden.run({"x:0": normal(rng, *shape)}, [f"unknown_{form}:0" for form in forms])
    for batch in (1, 4):
        feeds = {f"{name}:0": normal(rng, batch, 2, n, 4) for name, n in (("q", 3), ("k", 5), ("v", 5))}
        feeds["keep:0"] = rng.standard_normal((1, 1, 1, 5)) > 0
        golden.run(feeds, ["attention:0", "attention_of_four:0"])
    golden.run({"rows:0": normal(rng, 3, 4)}, ["norm:0", "norm_of_rank_three:0", "elsewhere:0"])
    return golden


def rounded_constants():
    """GELU in double precision with constants of eight digits."""
    rng, graph = seeded("rounded constants"), tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float64, [None], name="x")
        half, one = np.float64(0.5), np.float64(1)
        tf.identity(gelu_of(x, half, one, np.float64(0.70710678)), name="eight_digits")
        tf.identity(gelu_of(x, half, one, np.float64(math.sqrt(0.5))), name="nearest")
        narrow = tf1.placeholder(tf.float32, [None], name="narrow")
        tf.negative(narrow, name="elsewhere")
    about = "GELU in double precision with constants of eight digits, which are other numbers there"
    golden = Golden("rounded_constants", about, graph, {"absolute": 1e-15, "relative": 1e-14})
    golden.run({"x:0": rng.standard_normal(9) * 2}, ["eight_digits:0", "nearest:0"])
    return golden.run({"narrow:0": normal(rng, 3)}, ["elsewhere:0"])


def unread_values():
    """Values that nothing reads by their elements, which fail or are dead."""
    rng, graph = seeded("unread values"), tf.Graph()
    with graph.as_default():
        y = tf1.placeholder(tf.float32, [2], name="y")
        predicate = tf1.placeholder(tf.bool, [], name="predicate")
        divisor = tf1.placeholder(tf.int32, [2], name="divisor")
        anything = tf1.placeholder(tf.float32, None, name="anything")
        quotient = tf.math.floordiv(tf.constant([10, 10]), divisor, name="quotient")
        off, on = tf.raw_ops.Switch(data=y, pred=predicate, name="switch")
        grouped = tf.raw_ops.IdentityN(input=[tf.negative(y), tf.square(on)], name="grouped")
        tf.raw_ops.Merge(inputs=[grouped[0], off], name="merge")
        tf.negative(tf.raw_ops.IdentityN(input=[y, quotient], name="beside_quotient")[0], name="after_quotient")
        checked = tf.raw_ops.EnsureShape(input=anything, shape=[3], name="checked")
        tf.negative(tf.raw_ops.IdentityN(input=[y, checked], name="beside_checked")[0], name="after_checked")
        tf.raw_ops.Shape(input=quotient, name="shape_of_quotient")
        tf.identity(quotient - quotient, name="difference")
        tf.identity(tf.where([True, True], tf.constant([1, 2]), quotient), name="chosen")
        tf.identity(tf.where([True, True], y, anything), name="chosen_of_any")
        tf.identity(tf.tile(anything, [1]), name="tiled")
        tf.identity(tf.pad(anything, [[0, 0]]), name="padded")
        tf.identity(tf.transpose(anything, [0, 1]), name="transposed")
        tf.identity(tf.transpose(tf.transpose(anything, [1, 0]), [1, 0]), name="transposed_twice")
        rows = tf1.placeholder(tf.float32, [None, 4], name="rows")
        folded = tf.reshape(tf.reshape(rows, [-1, 8]), tf.shape(rows), name="folded")
        tf.identity(folded, name="unfolded")
        with tf.control_dependencies([quotient]):
            tf.negative(tf.identity(y), name="waits")
    about = "values of which nothing reads the elements, and which fail or are dead: IdentityN, Shape, choices"
    golden = Golden("unread_values", about, graph)
    feed = normal(rng, 2)
    for p in (True, False):
        golden.run({"y:0": feed, "predicate:0": np.array(p)}, ["merge:0", "merge:1"])
    readers = ["after_quotient", "shape_of_quotient", "difference", "chosen", "waits"]
    for at, reader in enumerate(readers):
        golden.run({"y:0": feed, "divisor:0": np.int32([3, at + 1])}, [f"{reader}:0"])
        golden.refuse({"y:0": feed, "divisor:0": np.int32([3, 0])}, [f"{reader}:0"])
    shapes = {"after_checked": (3,), "chosen_of_any": (1,), "tiled": (3,), "padded": (2,)}
    shapes |= {"transposed": (2, 3), "transposed_twice": (1, 2)}
    for reader, shape in shapes.items():
        golden.run({"y:0": feed, "anything:0": normal(rng, *shape)}, [f"{reader}:0"])
        golden.refuse({"y:0": feed, "anything:0": normal(rng, 5, 1, 3)}, [f"{reader}:0"])
    golden.run({"rows:0": normal(rng, 2, 4)}, ["unfolded:0"])
    return golden.refuse({"rows:0": normal(rng, 3, 4)}, ["unfolded:0"])


PASSES = [broadcasting_constants, rounded_constants, unread_values]
