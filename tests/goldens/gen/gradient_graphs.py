"""Graphs with TensorFlow's gradients: random graphs of 20 ops, loops, conditionals, functions, slices, second order.

`gradient_graphs/NAME.pb` is the graph before TensorFlow adds gradients to it; `gradient_graphs/index.json` has the feeds, the names of
`ys` and `xs`, and the gradients. All numbers are float64.
"""

import json
import zlib

import numpy as np

from . import session  # noqa: F401  (sets TensorFlow's environment before TensorFlow is imported)
import tensorflow as tf

v1 = tf.compat.v1
RANDOM = 61
OPS = 20


def seeded(name):
    return np.random.default_rng(zlib.crc32(name.encode()))


def placeholder(name, *shape):
    return v1.placeholder(tf.float64, shape, name=name)


def unary(x, g):
    functions = [tf.sin, tf.cos, tf.tanh, tf.sigmoid, tf.exp, tf.square, tf.abs, tf.negative, tf.math.erf, tf.atan, tf.asinh]
    x = g.choice(functions)(x)
    # Numbers stay small.
    return tf.tanh(x) if x.op.type in ("Exp", "Square", "Sinh") else x


def binary(x, y, g):
    functions = [tf.add, tf.subtract, tf.multiply, tf.maximum, tf.minimum, tf.math.squared_difference, tf.atan2]
    return tf.tanh(g.choice(functions)(x, y))


def moved(x, g):
    """The same elements in another form, of shape [2, 3] again."""
    which = g.integers(9)
    if which == 0:
        return tf.reshape(tf.transpose(tf.reshape(x, [3, 2])), [2, 3])
    if which == 1:
        return tf.concat([x[:, 1:], x[:, :1]], 1)
    if which == 2:
        return tf.stack(tf.unstack(x, axis=1)[::-1], axis=1)
    if which == 3:
        return tf.gather(x, [1, 0], axis=0)
    if which == 4:
        return tf.pad(x[:, 1:], [[0, 0], [1, 0]])
    if which == 5:
        return tf.reverse(x, [1])
    if which == 6:
        return tf.roll(x, [1], [1])
    if which == 7:
        return tf.where(x > 0, x, 0.25 * x)
    return tf.tile(x[:1, :], [2, 1])


def random_graph(name):
    g = seeded(name)
    values = [placeholder("a", 2, 3), placeholder("b", 2, 3), placeholder("c", 3)]
    for _ in range(OPS):
        x = values[g.integers(max(0, len(values) - 6), len(values))]
        y = values[g.integers(len(values))]
        kind = g.integers(3)
        if kind == 0 or x.shape.rank < 2 and kind == 2:
            made = unary(x, g)
        elif kind == 1:
            made = binary(x, y, g)
        else:
            made = moved(x, g)
        values.append(made)
    y = tf.add_n([tf.broadcast_to(v, [2, 3]) for v in values[-4:]], name="y")
    return [y], values[:3]


def loop(x, w):
    """A loop with a branch in it."""
    condition = lambda i, x: i < 5
    branch = lambda i, x: tf.cond(tf.equal(i % 2, 0), lambda: tf.sin(x) * w, lambda: x * x + w)
    return tf.while_loop(condition, lambda i, x: (i + 1, branch(i, x)), (0, x))[1]


def nested(x, w):
    inner = lambda x: tf.while_loop(lambda j, x: j < 2, lambda j, x: (j + 1, tf.sin(x) * w), (0, x))[1]
    return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, inner(x) * x), (0, x))[1]


def scan(x, w):
    """Writes and reads arrays in a loop."""
    array = tf.TensorArray(tf.float64, 3).unstack(x)
    out = tf.TensorArray(tf.float64, 3)

    def body(i, state, out):
        state = tf.tanh(state + array.read(i) * w)
        return i + 1, state, out.write(i, state)

    _, state, out = tf.while_loop(lambda i, *_: i < 3, body, (0, w, out))
    return out.stack() * state


def control(make):
    def build(_):
        x, w = placeholder("x", 3, 2), placeholder("w", 2)
        return [tf.identity(make(x, w), name="y")], [x, w]

    return build


def embedding(_):
    x = placeholder("x", 5, 2)
    rows = tf.gather(x, [[0, 3], [3, 1]]) * tf.gather(x, [[1, 1], [2, 0]])
    return [tf.tanh(rows, name="y"), tf.sin(x)], [x]


def function(_):
    x, w = placeholder("x", 3), placeholder("w", 3)

    @tf.function
    def inner(x, w):
        return tf.sin(x) * w, tf.exp(x * w)

    @tf.function
    def outer(x, w):
        a, b = inner(x, w)
        return tf.tanh(a * b + x)

    return [tf.identity(outer(x, w), name="y")], [x, w]


def second(_):
    x, w = placeholder("x", 2, 3), placeholder("w", 2, 3)
    y = tf.sin(x * w) * tf.exp(-x) + tf.pow(tf.abs(x) + 1, w) + tf.math.erf(x) * tf.math.log1p(w * w)
    return [y], [x, w]


def cases():
    for at in range(RANDOM):
        yield f"random_{at}", random_graph, False, 1
    for name, make in (("loop", loop), ("nested", nested), ("scan", scan)):
        yield f"{name}_v1", control(make), False, 1
        yield f"{name}_v2", control(make), True, 1
    yield "embedding", embedding, False, 1
    yield "function", function, True, 1
    yield "second_order", second, False, 2


def array(value):
    return {"shape": list(value.shape), "values": [float(v) for v in np.ravel(value)]}


def case(name, build, v2, order):
    graph = tf.Graph()
    with graph.as_default():
        (v1.enable_control_flow_v2 if v2 else v1.disable_control_flow_v2)()
        ys, xs = build(name)
        definition = graph.as_graph_def(add_shapes=False)
        gradients = ys
        for _ in range(order):
            gradients = tf.gradients(gradients, xs)
        gradients = [None if g is None else tf.convert_to_tensor(g) for g in gradients]
        g = seeded(name + "/feeds")
        feeds = {x: g.uniform(-1.5, 1.5, x.shape.as_list()) for x in xs}
        with v1.Session(graph=graph) as s:
            results = s.run([x for x in gradients if x is not None], feeds)
    results = iter(results)
    return definition, {
        "name": name,
        "order": order,
        "ys": [y.name for y in ys],
        "xs": [x.name for x in xs],
        "feeds": [array(feeds[x]) for x in xs],
        "gradients": [None if x is None else array(next(results)) for x in gradients],
    }


def write(folder):
    folder.mkdir(exist_ok=True)
    index = []
    for name, build, v2, order in cases():
        definition, entry = case(name, build, v2, order)
        # The gradient of `atan2` of two zeros is NaN.
        if not all(np.all(np.isfinite(g["values"])) for g in entry["gradients"] if g):
            continue
        (folder / f"{name}.pb").write_bytes(definition.SerializeToString(deterministic=True))
        index.append(entry)
    lines = ",\n".join(json.dumps(entry) for entry in index)
    (folder / "index.json").write_text(f'{{"tensorflow": "{tf.__version__}", "cases": [\n{lines}\n]}}\n')
    return len(index)
