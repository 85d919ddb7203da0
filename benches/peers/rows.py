"""Elementwise ops, reductions and a transposition of 1e3, 1e5 and 1e7 floats, on one side; the rate is that of the
least possible traffic, each input read once and each output written once.

Usage: python rows.py WORK --side numpy [--threads 1] [--seconds 1] [--match exp]

Results are compared with NumPy's at double precision before anything is timed. Tenon runs graphs of ops.py.
"""

import argparse
import importlib
import math
from pathlib import Path

import numpy as np
import timing
from prepared import SHARE, largest

SIZES = {"1e3": 1000, "1e5": 100_000, "1e7": 10_000_000}
MATRICES = {"1e3": (25, 40), "1e5": (250, 400), "1e7": (2500, 4000)}
ROW = 1024
EPSILON = 1e-5
# At so many places elementwise ops are compared.
PLACES = 1000
SIDES = {
    "tenon": "sides.tenon",
    "numpy": "sides.rows_numpy",
    "ort": "sides.rows_ort",
    "tensorflow": "sides.rows_tf",
    "torch": "sides.rows_torch",
}


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def layer_norm(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + EPSILON)


# What is right, of doubles; elementwise ops take what is at some places.
ELEMENTWISE = {
    "add": lambda x: x + x,
    "relu": lambda x: np.maximum(x, 0),
    "exp": np.exp,
    "tanh": np.tanh,
    "gelu": lambda x: x * (1 + np.array([math.erf(value / math.sqrt(2)) for value in x])) / 2,
}
WHOLE = {
    "softmax": softmax,
    "layernorm": layer_norm,
    "sum_all": np.sum,
    "sum_rows": lambda x: x.sum(-1),
    "transpose": np.transpose,
}


def shape_of(op: str, size: str) -> tuple[int, ...]:
    """Of the input."""
    count = SIZES[size]
    if op == "transpose":
        return MATRICES[size]
    if op in ("softmax", "layernorm", "sum_rows"):
        return (count // ROW, ROW) if count > ROW else (1, count)
    return (count,)


def operand(op: str, size: str) -> np.ndarray:
    """The input, and for additions the second one too; its mean is not 0, so that sums have a scale."""
    rng = np.random.default_rng(SIZES[size])
    return rng.standard_normal(shape_of(op, size), dtype=np.float32) + np.float32(0.5)


def traffic(op: str, size: str) -> int:
    """Bytes that have to be moved."""
    shape = shape_of(op, size)
    count = math.prod(shape)
    return 4 * (count * (2 if op == "add" else 1) + {"sum_all": 1, "sum_rows": shape[0]}.get(op, count))


def judge(op: str, x: np.ndarray, found: np.ndarray) -> None:
    """Raises ValueError where the result is not right."""
    if op in ELEMENTWISE:
        places = np.linspace(0, x.size - 1, PLACES).astype(int)
        expected = ELEMENTWISE[op](x.ravel()[places].astype(np.float64))
        share = largest(found.ravel()[places], expected)
    else:
        share = largest(np.asarray(found), np.asarray(WHOLE[op](x.astype(np.float64))))
    if not share <= SHARE:
        raise ValueError(f"{op} is off by {share:.3g} (expected at most {SHARE}): not timed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--side", required=True, choices=SIDES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--match", default="")
    chosen = parser.parse_args()
    side = None if chosen.side == "tenon" else importlib.import_module(SIDES[chosen.side])
    for op in [*ELEMENTWISE, *WHOLE]:
        for size in SIZES:
            name = f"{op}_{size}"
            if chosen.match in name and (side is None or op in side.OPS):
                measure(side, chosen, op, size)


def measure(side, chosen: argparse.Namespace, op: str, size: str) -> None:
    """Compares, times and prints one row."""
    row = {"bench": "elementwise", "peer": chosen.side, "size": f"{op}_{size}", "threads": chosen.threads}
    try:
        version, samples = of_peer(side, chosen, op, size) if side else of_tenon(chosen, op, size)
    except Exception as error:  # whatever a library raises is why there is no figure
        timing.skip(f"{chosen.side} {op}_{size}", f"{type(error).__name__}: {error}")
        return
    timing.line(row | {"version": version}, samples, traffic(op, size), "GB/s")


def of_peer(side, chosen: argparse.Namespace, op: str, size: str) -> tuple[str, list[float]]:
    """The version, and nanoseconds per call."""
    x = operand(op, size)
    call, result = side.prepare(op, x, chosen.threads)
    call()
    judge(op, x, result())
    return side.VERSION, timing.measure(call, chosen.seconds)


def of_tenon(chosen: argparse.Namespace, op: str, size: str) -> tuple[str, list[float]]:
    """The same of Tenon's command, which makes operands of its own and compares with the graph as it is written."""
    from sides import tenon

    shape = "x".join(map(str, shape_of(op, size)))
    feeds = ",".join(f"{name}={shape}" for name in (("x", "y") if op == "add" else ("x",)))
    record = tenon.bench(chosen.work / f"{op}_{size}.pb", ["--shape", feeds], chosen.threads, chosen.seconds)
    return record["version"], sorted(record["kernel"]["ns"])


if __name__ == "__main__":
    main()
