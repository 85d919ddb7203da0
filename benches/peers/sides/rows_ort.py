"""ONNX Runtime: a graph of one node per op."""

import numpy as np
from sides import ort_node

VERSION = ort_node.VERSION
# Op -> node.
OPS = {
    "add": "Add",
    "relu": "Relu",
    "exp": "Exp",
    "tanh": "Tanh",
    "gelu": "Gelu",
    "softmax": "Softmax",
    "layernorm": "LayerNormalization",
    "sum_all": "ReduceSum",
    "sum_rows": "ReduceSum",
    "transpose": "Transpose",
}


def prepare(op: str, x: np.ndarray, threads: int):
    """A call, and what gives its result."""
    fed, constants, attributes, out = [x], [], {}, x
    if op == "add":
        fed = [x, x.copy()]
    elif op == "layernorm":
        constants = [np.ones(x.shape[-1], np.float32), np.zeros(x.shape[-1], np.float32)]
        attributes = {"axis": -1, "epsilon": 1e-5}
    elif op in ("sum_all", "sum_rows"):
        constants = [] if op == "sum_all" else [np.array([-1], np.int64)]
        attributes, out = {"keepdims": 0}, np.empty(() if op == "sum_all" else x.shape[:1], np.float32)
    elif op == "transpose":
        out = np.empty(x.shape[::-1], np.float32)
    return ort_node.prepare(OPS[op], fed, constants, out, threads, **attributes)
