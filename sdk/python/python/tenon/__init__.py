"""Tenon: dataflow graphs on kernels that come as plugins.

Importing the package starts nothing. The first graph, session or list of devices starts the runtime, which loads the plugins of
the package and those that are installed.

>>> import tenon
>>> import numpy as np
>>> with tenon.Graph() as graph:
...     x = tenon.placeholder(tenon.float32, [None], name="x")
...     y = tenon.ops.relu(x, name="y")
>>> with tenon.Session(graph) as session:
...     session.run(y, {x: np.array([-1.0, 2.0], np.float32)})
array([0., 2.], dtype=float32)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import _native
from ._native import Callable, CancelToken, PartialRun, Tensor, configure, from_dlpack
from .dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    half,
    int8,
    int16,
    int32,
    int64,
    qint8,
    qint16,
    qint32,
    quint8,
    quint16,
    resource,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
    variant,
)
from .errors import TenonError
from .graph import Graph, Node, Output, constant, default_graph, gradients, placeholder
from .runtime import check, empty, list_devices, load_plugin, profile, show
from .session import Session

if TYPE_CHECKING:
    from . import dtypes, eager, errors, graph, ops, runtime, serving, session, train
    from .serving import serve

__all__ = [
    "Callable",
    "CancelToken",
    "DType",
    "Graph",
    "Node",
    "Output",
    "PartialRun",
    "Session",
    "TenonError",
    "Tensor",
    "__version__",
    "as_dtype",
    "bfloat16",
    "bool_",
    "check",
    "complex128",
    "complex64",
    "configure",
    "constant",
    "default_graph",
    "dtypes",
    "eager",
    "empty",
    "errors",
    "float16",
    "float32",
    "float64",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "from_dlpack",
    "gradients",
    "graph",
    "half",
    "int16",
    "int32",
    "int64",
    "int8",
    "list_devices",
    "load_plugin",
    "ops",
    "placeholder",
    "profile",
    "qint16",
    "qint32",
    "qint8",
    "quint16",
    "quint8",
    "resource",
    "runtime",
    "serve",
    "serving",
    "session",
    "show",
    "string",
    "train",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "variant",
]

__version__: str = _native.__version__

_LAZY = ("dtypes", "eager", "errors", "graph", "ops", "runtime", "serving", "session", "train")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"tenon.{name}")
    if name == "serve":
        return importlib.import_module("tenon.serving").serve
    raise AttributeError(f"module 'tenon' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
