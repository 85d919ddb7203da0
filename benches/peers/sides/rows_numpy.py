"""NumPy: outputs that are there already, where its functions take one."""

import numpy as np

VERSION = np.__version__
OPS = {
    "add": lambda x, out: np.add(x, x, out=out),
    "relu": lambda x, out: np.maximum(x, 0, out=out),
    "exp": lambda x, out: np.exp(x, out=out),
    "tanh": lambda x, out: np.tanh(x, out=out),
    "sum_all": lambda x, out: np.sum(x),
    "sum_rows": lambda x, out: np.sum(x, -1),
    "transpose": lambda x, out: np.ascontiguousarray(x.T),
}


def prepare(op: str, x: np.ndarray, _threads: int):
    """A call, and what gives its result."""
    out, function = np.empty_like(x), OPS[op]
    return lambda: function(x, out), lambda: function(x, out)
