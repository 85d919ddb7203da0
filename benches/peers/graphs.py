"""Graphs of TensorFlow as files that every side reads: the graph, its ONNX form, operands, TensorFlow's results."""

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import onnx
import tensorflow as tf
import tf2onnx
from prepared import BATCH, key

tf1 = tf.compat.v1
OPSET = 17
# Bytes of a constant that is kept from the converter.
LARGE = 1 << 24
PRODUCTS = {"MatMul", "BatchMatMulV2", "Conv2D", "DepthwiseConv2dNative"}


def run(graph_def: tf1.GraphDef, feeds: dict[str, np.ndarray], fetches: list[str]) -> list[np.ndarray]:
    """TensorFlow's results of a graph."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    with tf1.Session(graph=graph) as session:
        return session.run(fetches, feeds)


def operations(graph_def: tf1.GraphDef, feeds: dict[str, np.ndarray]) -> float:
    """Multiplications and additions of all products and convolutions, at the fed shapes."""
    graph = tf.Graph()
    with graph.as_default():
        fed = {key(name): tf1.placeholder(x.dtype, x.shape) for name, x in feeds.items()}
        tf.import_graph_def(graph_def, fed, name="")
    return float(sum(node_operations(node) for node in graph.get_operations() if node.type in PRODUCTS))


def node_operations(node: tf.Operation) -> int:
    """Twice the terms of every sum."""
    left, right = (list(x.shape) for x in node.inputs)
    terms = {
        "MatMul": lambda: left[0 if node.type == "MatMul" and node.get_attr("transpose_a") else -1],
        "BatchMatMulV2": lambda: left[-2 if node.get_attr("adj_x") else -1],
        "Conv2D": lambda: int(np.prod(right[:3])),
        "DepthwiseConv2dNative": lambda: int(np.prod(right[:2])),
    }
    return 2 * int(np.prod(node.outputs[0].shape)) * terms[node.type]()


def convert(graph_def, feeds: list[str], fetches: list[str], images: list[str], file: Path, free: bool = True) -> None:
    """The same graph in ONNX, the first dimension free; images come in ONNX's own order, channels first.

    The converter copies constants many times over, so that large ones are fed while it works, and put in afterwards.
    """
    small, large = without_large(graph_def)
    model, _ = tf2onnx.convert.from_graph_def(
        small, input_names=[*feeds, *large], output_names=fetches, opset=OPSET, inputs_as_nchw=images or None
    )
    graph = model.graph
    graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in large.items())
    fed = [value for value in graph.input if value.name not in large]
    del graph.input[:]
    graph.input.extend(fed)
    for value in graph.input if free else []:
        value.type.tensor_type.shape.dim[0].dim_param = BATCH
    onnx.save(model, file)


def without_large(graph_def: tf1.GraphDef) -> tuple[tf1.GraphDef, dict[str, np.ndarray]]:
    """The graph with placeholders for large constants, and these."""
    small, large = tf1.GraphDef.FromString(graph_def.SerializeToString()), {}
    for node in small.node:
        if node.op != "Const" or len(node.attr["value"].tensor.tensor_content) < LARGE:
            continue
        array = tf.make_ndarray(node.attr["value"].tensor)
        large[f"{node.name}:0"] = array
        del node.attr["value"]
        node.op = "Placeholder"
        node.attr["shape"].shape.CopyFrom(tf.TensorShape(array.shape).as_proto())
    return small, large


def describe(graph_def: tf1.GraphDef, work: Path, feeds: dict[str, np.ndarray], fetches: list[str], data: str) -> dict:
    """Writes operands and results; what prepared.Case needs of them."""
    results = dict(zip(fetches, run(graph_def, feeds, fetches)))
    np.savez(work / f"{data}.npz", **{key(name): x for name, x in (feeds | results).items()})
    np.savez(work / f"{data}_feeds.npz", **{key(name): x for name, x in feeds.items()})
    for name, x in feeds.items():
        np.save(work / f"{data}.{key(name)}.npy", x)
    return {
        "work": operations(graph_def, feeds),
        "unit": "GFLOP/s",
        "feeds": {name: list(x.shape) for name, x in feeds.items()},
        "fetches": {name: list(x.shape) for name, x in results.items()},
        "channels_first": [name for name, x in feeds.items() if is_image(x)],
        "data": data,
    }


def is_image(x: np.ndarray) -> bool:
    """True for pixels or maps of features: attention masks have four dimensions too, but no extent."""
    return x.ndim == 4 and x.shape[1] > 1
