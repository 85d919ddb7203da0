"""PyTorch: eager ops, an output given where the function takes one."""

import numpy as np
import torch
import torch.nn.functional as F

VERSION = torch.__version__
OPS = {
    "add": lambda x, out: torch.add(x, x, out=out),
    "relu": lambda x, out: F.relu(x),
    "exp": lambda x, out: torch.exp(x, out=out),
    "tanh": lambda x, out: torch.tanh(x, out=out),
    "gelu": lambda x, out: F.gelu(x),
    "softmax": lambda x, out: torch.softmax(x, -1),
    "layernorm": lambda x, out: F.layer_norm(x, x.shape[-1:]),
    "sum_all": lambda x, out: x.sum(),
    "sum_rows": lambda x, out: x.sum(-1),
    "transpose": lambda x, out: x.t().contiguous(),
}


def prepare(op: str, x: np.ndarray, threads: int):
    """A call, and what gives its result."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    tensor, function = torch.from_numpy(x), OPS[op]
    out = torch.empty_like(tensor)
    return lambda: function(tensor, out), lambda: function(tensor, out).numpy()
