"""Graphs with control dependencies, placement and TensorFlow 1's control flow."""

import numpy as np
import tensorflow as tf

from . import store
from .data import seeded
from .graphs import PLAIN, Golden, normal
from .graphs_passes import PASSES
from .graphs_written import WRITTEN

tf1 = tf.compat.v1


def control_dependencies():
    """Control edges, NoOp targets, and a control edge from a node that is not fetched."""
    rng, graph = seeded("control"), tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [3], name="x")
        first = tf.negative(x, name="first")
        second = tf.square(x, name="second")
        with tf.control_dependencies([first, second]):
            joint = tf.no_op(name="joint")
            constant = tf.constant([1.0, 2.0, 3.0], name="late_constant")
        with tf.control_dependencies([joint]):
            tf.add(constant, first, name="y")
        tf.group(first, joint, name="everything")
    golden = Golden("control_dependencies", "control edges through NoOp, a Const that waits, targets", graph)
    feeds = {"x:0": normal(rng, 3)}
    golden.run(feeds, ["y:0"]).run(feeds, ["y:0", "second:0"], ["everything"]).run(feeds, [], ["everything", "joint"])
    # Without its feed the constant cannot be reached, though no data flows from the feed to it.
    return golden.refuse({}, ["late_constant:0"])


def colocation():
    """`_class` lists of TensorFlow's colocation."""
    rng, graph = seeded("colocation"), tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [2, 2], name="x")
        base = tf.negative(x, name="base")
        with tf1.colocate_with(base.op):
            near = tf.square(x, name="near")
            with tf1.colocate_with(x.op):
                both = tf.add(base, near, name="both")
        tf.matmul(both, near, name="y")
        with tf1.get_default_graph().device("/device:CPU:0"), tf1.colocate_with(both.op, ignore_existing=True):
            tf.identity(both, name="placed")
    golden = Golden(
        "colocation",
        "_class with loc:@ names, chained and combined with a device",
        graph,
        {"absolute": 1e-6, "relative": 1e-6},
    )
    return golden.run({"x:0": normal(rng, 2, 2)}, ["y:0", "placed:0", "base:0"])


def partial_devices():
    """Device names with some parts only."""
    rng, graph = seeded("devices"), tf.Graph()
    names = [
        "/cpu:0",
        "/device:CPU:0",
        "/device:CPU:*",
        "/job:localhost",
        "/replica:0/task:0",
        "/job:localhost/replica:0/task:0/device:CPU:0",
        "/task:0/device:CPU:0",
        "",
    ]
    with graph.as_default():
        y = tf1.placeholder(tf.float32, [4], name="x")
        for i, name in enumerate(names):
            with tf.device(name):
                y = tf.add(y, float(i + 1), name=f"step{i}")
        with tf.device("/job:localhost"), tf.device("/device:CPU:0"):
            tf.square(y, name="merged")
    golden = Golden("partial_devices", "device names with parts missing, a wildcard, and merged scopes", graph)
    return golden.run({"x:0": normal(rng, 4)}, ["merged:0", f"step{len(names) - 1}:0"])


def cond_v1():
    """Conditionals of Switch and Merge, one inside the other."""
    rng, graph = seeded("cond"), tf.Graph()
    with graph.as_default():
        outer = tf1.placeholder(tf.bool, [], name="outer")
        inner = tf1.placeholder(tf.bool, [], name="inner")
        x = tf1.placeholder(tf.float32, [None], name="x")

        def nested():
            return tf1.cond(inner, lambda: x + 1.0, lambda: tf.square(x), name="nested")

        y = tf1.cond(outer, nested, lambda: tf.negative(x), name="choice")
        tf.identity(y, name="y")
        a, b = tf1.cond(outer, lambda: (x, x + 2.0), lambda: (x * 3.0, x), name="pair")
        tf.stack([a, b], name="stacked")
    golden = Golden("cond_v1", "Switch/Merge conditionals, nested, with two results", graph)
    feed = normal(rng, 5)
    for p in (True, False):
        for q in (True, False):
            golden.run({"outer:0": np.array(p), "inner:0": np.array(q), "x:0": feed}, ["y:0", "stacked:0"])
    # Only the taken branch's inputs are needed by value, but all are needed by the graph.
    return golden.refuse({"outer:0": np.array(False), "x:0": feed}, ["y:0"])


def switch_merge():
    """Switch and Merge by themselves; a dead tensor cannot be fetched."""
    rng, graph = seeded("switch"), tf.Graph()
    with graph.as_default():
        predicate = tf1.placeholder(tf.bool, [], name="predicate")
        x = tf1.placeholder(tf.float32, [2], name="x")
        off, on = tf.raw_ops.Switch(data=x, pred=predicate, name="switch")
        left, right = tf.negative(off, name="left"), tf.square(on, name="right")
        tf.raw_ops.Merge(inputs=[left, right], name="merge")
        with tf.control_dependencies([left]):
            tf.constant(1.0, name="after_left")
    golden = Golden("switch_merge", "Switch and Merge with value_index; deadness along control edges", graph)
    for p in (True, False):
        golden.run({"predicate:0": np.array(p), "x:0": normal(rng, 2)}, ["merge:0", "merge:1"])
    feed = {"predicate:0": np.array(False), "x:0": normal(rng, 2)}
    golden.run(feed, ["left:0", "after_left:0", "switch:0"])
    feed = feed | {"predicate:0": np.array(True)}
    golden.refuse(feed, ["left:0"])
    return golden.refuse(feed, ["after_left:0"])


def while_v1():
    """A loop; its condition is a Cast to bool, so that no comparison is needed."""
    rng, graph = seeded("while"), tf.Graph()
    with graph.as_default():
        count = tf1.placeholder(tf.int32, [], name="count")
        x = tf1.placeholder(tf.float32, [3, 3], name="x")
        w = tf.constant(normal(rng, 3, 3, scale=0.5), name="w")
        left, y = tf1.while_loop(
            lambda i, a: tf.cast(i, tf.bool),
            lambda i, a: (i - 1, tf.nn.relu(tf.matmul(a, w)) + x),
            [count, x],
            parallel_iterations=4,
            name="loop",
        )
        tf.identity(left, name="left")
        tf.identity(y, name="y")
    golden = Golden(
        "while_v1",
        "Enter/Merge/Switch/NextIteration/Exit/LoopCond with loop constants",
        graph,
        {"absolute": 1e-5, "relative": 1e-5},
    )
    for n in (0, 1, 5, 100):
        golden.run({"count:0": np.array(n, np.int32), "x:0": normal(rng, 3, 3, scale=0.3)}, ["y:0", "left:0"])
    return golden


def while_nested_v1():
    """A loop inside a loop, with a conditional in the inner body."""
    graph = tf.Graph()
    with graph.as_default():
        rows = tf1.placeholder(tf.int32, [], name="rows")
        columns = tf1.placeholder(tf.int32, [], name="columns")

        def inner(i, total):
            def body(j, sum_):
                add = tf1.cond(tf.cast(j - 2, tf.bool), lambda: sum_ + i * j, lambda: sum_ - 1, name="skip")
                return j - 1, add

            loop = tf1.while_loop(lambda j, s: tf.cast(j, tf.bool), body, [columns, total], name="inner")
            return i - 1, loop[1]

        result = tf1.while_loop(lambda i, t: tf.cast(i, tf.bool), inner, [rows, tf.constant(0)], name="outer")
        tf.identity(result[1], name="total")
    golden = Golden("while_nested_v1", "nested frames and a conditional inside an iteration", graph)
    for r, c in ((0, 3), (3, 0), (1, 1), (3, 4), (17, 11)):
        golden.run({"rows:0": np.array(r, np.int32), "columns:0": np.array(c, np.int32)}, ["total:0"])
    return golden


def while_less_v1():
    """A loop as clients write it, with Less; independent of the feeds."""
    graph = tf.Graph()
    with graph.as_default():
        limit = tf1.placeholder(tf.int32, [], name="limit")
        out = tf1.while_loop(
            lambda i, a: tf.less(i, limit),
            lambda i, a: (i + 1, a * 2),
            [tf.constant(0), tf.constant([1, 3])],
            name="loop",
        )
        tf.identity(out[1], name="y")
    golden = Golden("while_less_v1", "a counting loop with Less, which is not among the first ops", graph)
    for n in (0, 3, 20):
        golden.run({"limit:0": np.array(n, np.int32)}, ["y:0"])
    return golden


CONTROL = [
    control_dependencies,
    colocation,
    partial_devices,
    cond_v1,
    switch_merge,
    while_v1,
    while_nested_v1,
    while_less_v1,
]


def write_graphs(folder):
    """Writes graphs/: every graph, its arrays, and the index."""
    tf1.disable_control_flow_v2()
    folder.mkdir(exist_ok=True)
    entries = [make().write(folder) for make in PLAIN + CONTROL + WRITTEN + PASSES]
    store.write_index(folder / "index.json", {"tensorflow": tf.__version__}, "graphs", entries)
    return len(entries)
