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
from .graph import Graph, Node, Output, constant, default_graph, placeholder
from .session import Session

# As `typing` has it; importing that takes longer than importing this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import (
        custom,
        dtypes,
        eager,
        errors,
        functions,
        graph,
        measure,
        ops,
        runtime,
        safetensors,
        saved_model,
        serving,
        session,
        train,
    )
    from .custom import op
    from ._gradients import gradients
    from .functions import cond, function, switch_case, while_loop
    from .measure import bench
    from .runtime import check, empty, list_devices, load_plugin, profile, show
    from ._progress import Progress, progress
    from .serving import serve

__all__ = [
    "Callable",
    "CancelToken",
    "DType",
    "Graph",
    "Node",
    "Output",
    "PartialRun",
    "Progress",
    "Session",
    "TenonError",
    "Tensor",
    "__version__",
    "as_dtype",
    "bench",
    "bfloat16",
    "bool_",
    "check",
    "complex128",
    "complex64",
    "cond",
    "configure",
    "constant",
    "custom",
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
    "function",
    "functions",
    "gradients",
    "graph",
    "half",
    "int16",
    "int32",
    "int64",
    "int8",
    "list_devices",
    "load_plugin",
    "measure",
    "op",
    "ops",
    "placeholder",
    "profile",
    "progress",
    "qint16",
    "qint32",
    "qint8",
    "quint16",
    "quint8",
    "resource",
    "runtime",
    "safetensors",
    "saved_model",
    "serve",
    "serving",
    "session",
    "show",
    "string",
    "switch_case",
    "train",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "variant",
    "while_loop",
]

__version__: str = _native.__version__

_LAZY = (
    "custom",
    "dtypes",
    "eager",
    "errors",
    "functions",
    "graph",
    "measure",
    "ops",
    "runtime",
    "safetensors",
    "saved_model",
    "serving",
    "session",
    "train",
)
#: Functions and classes, by the module that is imported when they are first named.
_FROM = {
    "Progress": "_progress",
    "bench": "measure",
    "check": "runtime",
    "cond": "functions",
    "empty": "runtime",
    "function": "functions",
    "gradients": "_gradients",
    "list_devices": "runtime",
    "load_plugin": "runtime",
    "op": "custom",
    "profile": "runtime",
    "progress": "_progress",
    "serve": "serving",
    "show": "runtime",
    "switch_case": "functions",
    "while_loop": "functions",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"tenon.{name}")
    if name in _FROM:
        made = getattr(importlib.import_module(f"tenon.{_FROM[name]}"), name)
        globals()[name] = made
        return made
    raise AttributeError(f"module 'tenon' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
