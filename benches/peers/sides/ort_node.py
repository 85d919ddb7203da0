"""ONNX Runtime: a graph of one node, inputs and outputs bound."""

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from sides.ort import bound, session_of

VERSION = ort.__version__
OPSET = 20
TYPES = {"float32": TensorProto.FLOAT, "uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "int32": TensorProto.INT32}


def prepare(op: str, fed: list[np.ndarray], constants: list[np.ndarray], out: np.ndarray, threads: int, **attributes):
    """A call of a node of these inputs, the constant ones last or where `None` was fed; and what gives its result.
    `out` has the shape and type of the output."""
    waiting = iter(constants)
    named = {f"x{i}": (next(waiting), True) if x is None else (x, False) for i, x in enumerate(fed)}
    named |= {f"c{i}": (x, True) for i, x in enumerate(waiting)}
    inputs = [value(name, x) for name, (x, constant) in named.items() if not constant]
    initializers = [numpy_helper.from_array(x, name) for name, (x, constant) in named.items() if constant]
    node = helper.make_node(op, list(named), ["y"], **attributes)
    graph = helper.make_graph([node], op, inputs, [value("y", out)], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    session = session_of(model.SerializeToString(), threads)
    values = {name: ort.OrtValue.ortvalue_from_numpy(x) for name, (x, constant) in named.items() if not constant}
    result = ort.OrtValue.ortvalue_from_shape_and_type(list(out.shape), out.dtype)
    return bound(session, values, {"y": result}), result.numpy


def value(name: str, x: np.ndarray):
    """An input or output of the graph."""
    return helper.make_tensor_value_info(name, TYPES[x.dtype.name], x.shape)
