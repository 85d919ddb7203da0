"""Small GraphDefs written by TensorFlow, with feeds and results, for tests of sessions."""

import numpy as np
import tensorflow as tf

from . import session, store
from .data import dtype_name, seeded

tf1 = tf.compat.v1


class Golden:
    """One graph and the runs that tests repeat."""

    def __init__(self, name, about, graph, tolerance="exact", add_shapes=False):
        self.name, self.about, self.tolerance = name, about, tolerance
        self.graph_def = graph.as_graph_def(add_shapes=add_shapes)
        self.runs, self.arrays = [], {}

    def run(self, feeds, fetches, targets=()):
        """Adds a run: TensorFlow computes the fetches."""
        number = len(self.runs)
        results = session.run(self.graph_def, feeds, fetches, targets)
        run = {
            "feeds": [self.keep(f"run{number}.feed{i}", t, a) for i, (t, a) in enumerate(feeds.items())],
            "fetches": [self.keep(f"run{number}.out{i}", t, a) for i, (t, a) in enumerate(zip(fetches, results))],
        }
        if targets:
            run["targets"] = list(targets)
        self.runs.append(run)
        return self

    def refuse(self, feeds, fetches):
        """Adds a run that TensorFlow refuses."""
        code, _ = session.error_code(self.graph_def, feeds, fetches)
        assert code, f"{self.name}: not refused"
        number = len(self.runs)
        kept = [self.keep(f"run{number}.feed{i}", t, a) for i, (t, a) in enumerate(feeds.items())]
        self.runs.append({"feeds": kept, "fetches": [{"tensor": t} for t in fetches], "error": code})
        return self

    def keep(self, key, tensor, array):
        """Stores an array and describes it."""
        self.arrays[key] = array
        plain = np.asarray(store.storable(array))
        return {"tensor": tensor, "array": key, "dtype": dtype_name(np.asarray(array)), "shape": list(plain.shape)}

    def write(self, folder):
        """Writes the graph and its arrays; returns its line of the index."""
        data = self.graph_def.SerializeToString(deterministic=True)
        (folder / f"{self.name}.pb").write_bytes(data)
        store.write_npz(folder / f"{self.name}.npz", self.arrays)
        ops = {node.op for node in self.graph_def.node}
        library = {node.op for f in self.graph_def.library.function for node in f.node_def}
        entry = {"name": self.name, "about": self.about, "file": f"{self.name}.pb", "arrays": f"{self.name}.npz"}
        entry |= {"ops": sorted(ops), "nodes": len(self.graph_def.node)}
        if self.graph_def.library.function:
            functions = sorted(f.signature.name for f in self.graph_def.library.function)
            entry |= {"functions": functions, "library_ops": sorted(library)}
        return entry | {"tolerance": self.tolerance, "runs": self.runs}


def normal(rng, *shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def mlp():
    """Two dense layers."""
    rng, graph = seeded("mlp"), tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [None, 13], name="x")
        w1 = tf.constant(normal(rng, 13, 17, scale=0.3), name="w1")
        w2 = tf.constant(normal(rng, 17, 5, scale=0.3), name="w2")
        hidden = tf.nn.relu(
            tf.nn.bias_add(tf.matmul(x, w1, name="mm1"), tf.constant(normal(rng, 17), name="b1")), name="hidden"
        )
        logits = tf.add(tf.matmul(hidden, w2, name="mm2"), tf.constant(normal(rng, 5), name="b2"), name="logits")
        tf.nn.softmax(logits, name="probabilities")
        tf.argmax(logits, axis=-1, name="classes")
    golden = Golden(
        "mlp",
        "multilayer perceptron; batches of several sizes, an inner tensor fed",
        graph,
        {"absolute": 1e-5, "relative": 1e-5},
    )
    for batch in (1, 7, 0, 31):
        golden.run({"x:0": normal(rng, batch, 13)}, ["logits:0", "probabilities:0", "classes:0"])
    golden.run({"hidden:0": normal(rng, 3, 17)}, ["logits:0", "hidden:0"])
    golden.run({"x:0": normal(rng, 2, 13)}, ["hidden:0", "hidden:0", "mm1:0"], ["probabilities"])
    return golden.refuse({"x:0": normal(rng, 2, 12)}, ["logits:0"])


def cnn():
    """Convolutions of both kinds, batch normalisation, pools and a mean."""
    rng, graph = seeded("cnn"), tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [None, 17, 13, 3], name="x")
        padded = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], name="padded")
        y = tf.nn.conv2d(
            padded, tf.constant(normal(rng, 3, 3, 3, 8, scale=0.3), name="filter1"), 2, "VALID", name="conv"
        )
        vectors = [
            tf.constant(v, name=n)
            for n, v in zip(
                ("scale", "offset", "mean", "variance"),
                (normal(rng, 8), normal(rng, 8), normal(rng, 8), normal(rng, 8) ** 2),
            )
        ]
        y = tf.raw_ops.FusedBatchNormV3(
            x=y,
            scale=vectors[0],
            offset=vectors[1],
            mean=vectors[2],
            variance=vectors[3],
            epsilon=1e-3,
            is_training=False,
            name="norm",
        )[0]
        y = tf.nn.relu6(y, name="relu6")
        y = tf.nn.depthwise_conv2d(
            y, tf.constant(normal(rng, 3, 3, 8, 1), name="filter2"), [1, 1, 1, 1], "SAME", name="depthwise"
        )
        left = tf.nn.max_pool2d(y, 3, 2, "SAME", name="max_pool")
        right = tf.nn.avg_pool2d(y, 3, 2, "SAME", name="avg_pool")
        both = tf.concat([left, right], axis=3, name="both")
        pooled = tf.reduce_mean(both, [1, 2], name="pooled")
        logits = tf.matmul(pooled, tf.constant(normal(rng, 16, 4), name="w"), name="logits")
        tf.nn.softmax(logits, name="probabilities")
    golden = Golden(
        "cnn",
        "small convolutional network, inferred shapes recorded as _output_shapes",
        graph,
        {"absolute": 2e-5, "relative": 2e-5},
        add_shapes=True,
    )
    for batch in (1, 3):
        golden.run({"x:0": normal(rng, batch, 17, 13, 3)}, ["probabilities:0", "logits:0", "relu6:0"])
    return golden


def function_library():
    """A library whose functions call one another; the main graph calls none."""
    rng, graph = seeded("library"), tf.Graph()
    with graph.as_default():
        inner = tf.function(lambda a, b: tf.add(a * b, 1.0, name="sum"), autograph=False)
        outer = tf.function(
            lambda a: inner(a, a) + tf.raw_ops.PartitionedCall(args=[a], Tout=[tf.float32], f=inner_unary)[0],
            autograph=False,
        )
        inner_unary = tf.function(lambda a: -a, autograph=False).get_concrete_function(
            tf.TensorSpec([None], tf.float32)
        )
        inner_unary.add_to_graph(graph)
        concrete = outer.get_concrete_function(tf.TensorSpec([None], tf.float32))
        concrete.add_to_graph(graph)
        x = tf1.placeholder(tf.float32, [None], name="x")
        tf.add(x, x, name="y")
    golden = Golden("function_library", "functions with calls inside them, unused by the nodes", graph)
    # Names carry a counter of the process; these do not.
    rename_functions(golden.graph_def)
    return golden.run({"x:0": normal(rng, 5)}, ["y:0"])


def rename_functions(graph_def):
    """Gives the library's functions names that do not depend on what ran before."""
    names = sorted(f.signature.name for f in graph_def.library.function)
    fresh = {old: f"function_{i}" for i, old in enumerate(names)}
    for function in graph_def.library.function:
        function.signature.name = fresh[function.signature.name]
        for node in function.node_def:
            for value in node.attr.values():
                if value.WhichOneof("value") == "func":
                    value.func.name = fresh[value.func.name]


def strings():
    """String operations."""
    graph = tf.Graph()
    with graph.as_default():
        a = tf1.placeholder(tf.string, [None], name="a")
        suffix = tf.constant([b"-x", b"-\xff\x01", b"-much longer than an inline string"], name="suffix")
        joined = tf.raw_ops.Add(x=a, y=suffix, name="joined")
        twice = tf.concat([joined, a], 0, name="twice")
        tf.reshape(tf.identity(twice), [3, 2], name="folded")
        tf.stack([a, joined], axis=1, name="stacked")
        tf.fill([2], tf.constant(b"same"), name="filled")
    golden = Golden("strings", "Add, ConcatV2, Reshape, Pack and Fill on strings", graph)
    fetches = ["joined:0", "twice:0", "folded:0", "stacked:0", "filled:0"]
    golden.run({"a:0": np.array([b"one", b"two", b"three and more than twenty-four bytes"])}, fetches)
    return golden.run({"a:0": np.array([b"scalar broadcast"])}, ["joined:0", "twice:0"])


def unknown_dims():
    """Shapes computed while the graph runs."""
    rng, graph = seeded("unknown"), tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [None, None, 4], name="x")
        anything = tf1.placeholder(tf.float32, None, name="anything")
        shape = tf.shape(x, name="shape")
        rows = tf.raw_ops.StridedSlice(input=shape, begin=[0], end=[1], strides=[1], shrink_axis_mask=1, name="rows")
        flat = tf.reshape(x, tf.stack([rows, tf.constant(-1)], name="target"), name="flat")
        tf.transpose(flat, [1, 0], name="turned")
        tf.reduce_sum(x, axis=[-1, 0], keepdims=True, name="sums")
        tf.shape(anything, out_type=tf.int64, name="any_shape")
        tf.add(anything, tf.constant(1.0), name="any_plus_one")
    golden = Golden(
        "unknown_dims",
        "unknown dimensions and unknown rank; Shape, StridedSlice, Pack, Reshape",
        graph,
        {"absolute": 1e-6, "relative": 1e-6},
    )
    for shape in ((2, 3, 4), (5, 1, 4), (1, 0, 4)):
        golden.run({"x:0": normal(rng, *shape)}, ["flat:0", "turned:0", "sums:0", "shape:0"])
    for shape in ((), (3,), (2, 0, 5)):
        golden.run({"anything:0": normal(rng, *shape)}, ["any_shape:0", "any_plus_one:0"])
    return golden.refuse({"x:0": normal(rng, 2, 3, 5)}, ["flat:0"])


CONSTANTS = [
    tf.bool,
    tf.int8,
    tf.int16,
    tf.int32,
    tf.int64,
    tf.uint8,
    tf.uint16,
    tf.uint32,
    tf.uint64,
    tf.half,
    tf.bfloat16,
    tf.float32,
    tf.float64,
]


def constants():
    """Every way in which TensorFlow writes a tensor into a graph."""
    graph, fetches = tf.Graph(), []
    with graph.as_default():
        for dtype in CONSTANTS:
            numpy = dtype.as_numpy_dtype
            forms = {
                "scalar": np.array(1, numpy),
                "splat": np.ones((3, 2), numpy),
                "tail": np.array([0, 1, 1, 1, 1, 1], numpy),
                "dense": np.arange(7).astype(numpy).reshape(7, 1),
                "empty": np.zeros((0, 2), numpy),
            }
            for form, value in forms.items():
                name = f"{dtype.name}_{form}"
                tf.constant(value, dtype, name=name)
                fetches.append(f"{name}:0")
        tf.constant([b"a", b"bc", b"bc"], name="string_dense")
        tf.constant(b"same", shape=[2, 2], name="string_splat")
        x = tf1.placeholder_with_default(np.float32([1, 2]), [None], name="x")
        tf.add(x, x, name="y")
    golden = Golden(
        "constants",
        "Const of every dtype: scalar, repeated, tail repeated, dense, empty; PlaceholderWithDefault",
        graph,
    )
    golden.run({}, fetches + ["string_dense:0", "string_splat:0", "y:0"])
    return golden.run({"x:0": np.float32([5, 6, 7])}, ["y:0", "x:0"])


PLAIN = [mlp, cnn, function_library, strings, unknown_dims, constants]
