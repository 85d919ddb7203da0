"""Graphs of one product, one layer or one elementwise op each, for prepare.py: MatMul with a right factor that is fed
or constant; convolutions with bias, depthwise ones, and pools, as they occur in VGG, ResNet and MobileNet; the rows.
"""

from pathlib import Path

import numpy as np
import tensorflow as tf
from graphs import convert, describe, tf1
from rows import SIZES, shape_of
from sides import rows_tf

# kind, channels in and out, height and width, window, stride
LAYERS = [
    ("conv", 64, 64, 56, 3, 1),
    ("conv", 128, 128, 28, 3, 1),
    ("conv", 256, 256, 14, 3, 1),
    ("conv", 512, 512, 7, 3, 1),
    ("conv", 64, 256, 56, 1, 1),
    ("conv", 1024, 256, 14, 1, 1),
    ("conv", 3, 64, 224, 7, 2),
    ("conv", 3, 64, 224, 3, 1),
    ("conv", 64, 64, 224, 3, 1),
    ("conv", 256, 256, 56, 3, 1),
    ("conv", 512, 512, 28, 3, 1),
    ("conv", 512, 512, 14, 3, 1),
    ("depthwise", 32, 32, 112, 3, 1),
    ("depthwise", 128, 128, 56, 3, 1),
    ("depthwise", 512, 512, 14, 3, 1),
    ("maxpool", 64, 64, 112, 3, 2),
    ("maxpool", 64, 64, 224, 2, 2),
]


def normal(rng: np.random.Generator, *shape: int, terms: int = 1) -> np.ndarray:
    """Values whose sums of so many products are about 1."""
    return (rng.standard_normal(shape) / np.sqrt(terms)).astype(np.float32)


def sizes() -> list[tuple[int, int, int]]:
    """M, N and K of the products."""
    lines = (Path(__file__).parent / "gemm_sizes.txt").read_text().split("\n")
    return [tuple(map(int, line.split())) for line in lines if line]


def product(m: int, n: int, k: int, constant: bool) -> tuple[tf.Graph, dict[str, np.ndarray]]:
    """A product, and what it is fed."""
    rng, graph = np.random.default_rng([m, n, k]), tf.Graph()
    feeds, right = {"a:0": normal(rng, m, k)}, normal(rng, k, n, terms=k)
    with graph.as_default():
        a = tf1.placeholder(tf.float32, [m, k], name="a")
        if constant:
            b = tf.constant(right, name="b")
        else:
            b = tf1.placeholder(tf.float32, [k, n], name="b")
            feeds["b:0"] = right
        tf.matmul(a, b, name="out")
    return graph, feeds


def layer(kind: str, into: int, out: int, size: int, window: int, stride: int) -> tuple[tf.Graph, dict]:
    """A layer with its bias, and what it is fed."""
    rng, graph = np.random.default_rng([into, out, size, window]), tf.Graph()
    before = window // 2
    pads = [[0, 0], [before, before], [before, before], [0, 0]] if before and window % 2 else "VALID"
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [1, size, size, into], name="x")
        if kind == "maxpool":
            tf.nn.max_pool2d(x, window, stride, "SAME" if window % 2 else "VALID", name="out")
        else:
            shape, terms = (window, window, into, out), window * window * into
            if kind == "depthwise":
                shape, terms = (window, window, into, 1), window * window
                pads = "SAME"
            filters = tf.constant(normal(rng, *shape, terms=terms), name="filters")
            of = tf.nn.depthwise_conv2d if kind == "depthwise" else tf.nn.conv2d
            strides = [1, stride, stride, 1]
            y = of(x, filters, strides, pads, name="layer")
            tf.nn.bias_add(y, tf.constant(normal(rng, out), name="bias"), name="out")
    return graph, {"x:0": normal(rng, 1, size, size, into)}


def case(bench: str, size: str, made: tuple[tf.Graph, dict], work: Path) -> dict[str, object]:
    """Writes a graph in both forms."""
    graph, feeds = made
    name, graph_def = f"{bench}_{size}", graph.as_graph_def()
    (work / f"{name}.pb").write_bytes(graph_def.SerializeToString(deterministic=True))
    told = describe(graph_def, work, feeds, ["out:0"], name)
    convert(graph_def, list(feeds), ["out:0"], told["channels_first"], work / f"{name}.onnx", free=False)
    return {"name": name, "bench": bench, "size": size} | told


def write_rows(work: Path) -> None:
    """The graphs of elementwise ops and reductions, which have no operands of their own."""
    for op, function in rows_tf.OPS.items():
        for size in SIZES:
            graph = tf.Graph()
            with graph.as_default():
                x = tf1.placeholder(tf.float32, shape_of(op, size), name="x")
                # Two inputs, so that as much is read as by the others.
                given = [x, tf1.placeholder(tf.float32, x.shape, name="y")] if op == "add" else [x]
                tf.identity(given[0] + given[1] if op == "add" else function(x), name="out")
            data = graph.as_graph_def().SerializeToString(deterministic=True)
            (work / f"{op}_{size}.pb").write_bytes(data)


def cases(work: Path) -> list[dict[str, object]]:
    """All of them but the rows, which are only written."""
    write_rows(work)
    made = []
    for m, n, k in sizes():
        for bench, constant in (("gemm_f32", False), ("gemm_f32_packedB", True)):
            made.append(case(bench, f"{m}x{n}x{k}", product(m, n, k, constant), work))
    for kind, into, out, size, window, stride in LAYERS:
        name = f"{kind}_c{into}-{out}_{size}x{size}_k{window}s{stride}"
        told = case("conv_f32", name, layer(kind, into, out, size, window, stride), work)
        if kind == "maxpool":  # comparisons, counted once
            told["work"] = float((size // stride) ** 2 * out * window**2)
        made.append(told)
    return made
