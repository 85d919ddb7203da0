"""Pooling of windows whose sizes are drawn at random, and its gradients."""

import numpy as np

from .data import array, normal, seeded, small
from .random import attrs_of
from .suite import Suite, ulp

TYPES = ("int32", "int64", "float", "double")
RATIOS = {"plain": [1.0, 1.5, 1.25, 1.0], "larger": [1.0, 2.7, 3.1, 1.0], "one": [1.0, 1.0, 1.0, 1.0], "half": [1.0, 2.0, 2.0, 1.0]}


def elements(name, dtype, shape):
    rng = seeded("fractional", name, dtype, *shape)
    return normal(rng, dtype, shape, 4.0) if dtype in ("float", "double") else small(rng, dtype, shape, -20, 21)


def pools(folder):
    """FractionalMaxPool and FractionalAvgPool."""
    for op in ("FractionalMaxPool", "FractionalAvgPool"):
        suite = Suite(folder, "nn", op)
        for dtype in TYPES:
            for label, ratio in RATIOS.items() if dtype == "float" else [("plain", RATIOS["plain"])]:
                for pseudo in (False, True):
                    for overlapping in (False, True):
                        attrs = attrs_of((7, 12), pooling_ratio=ratio, pseudo_random=pseudo, overlapping=overlapping, deterministic=True)
                        options = {"tolerance": ulp(4), "reason": "sums of a window"} if op == "FractionalAvgPool" and dtype in ("float", "double") else {}
                        x = elements(op, dtype, (2, 7, 8, 2))
                        suite.case(f"{dtype}_{label}_{pseudo}_{overlapping}", [x], attrs, **options)
        x = elements(op, "int32", (1, 6, 7, 2))
        for seed in ((1, 0), (0, 5), (2**40, 3)):
            suite.case(f"seed_{seed[0]}", [x], attrs_of(seed, pooling_ratio=RATIOS["plain"], deterministic=True))
        suite.case("drawn", [x], {"pooling_ratio": RATIOS["plain"]}, shape_only=(0, 1, 2))
        suite.error("seed", [x], attrs_of((1, 2), pooling_ratio=RATIOS["plain"]))
        suite.error("rank", [x[0]], {"pooling_ratio": RATIOS["plain"]})
        suite.error("batch", [x], {"pooling_ratio": [2.0, 1.5, 1.5, 2.0]})
        suite.error("short", [x], {"pooling_ratio": [1.0, 1.5, 1.5]})
        suite.error("below", [x], {"pooling_ratio": [1.0, 0.5, 1.5, 1.0]})
        yield suite.finish()


def ends(name, size, windows):
    """Ends of windows, each of one element or more."""
    inner = np.sort(seeded(name, size, windows).permutation(size - 1)[: windows - 1] + 1)
    return np.int64([0, *inner, size])


def gradients(folder):
    """FractionalMaxPoolGrad and FractionalAvgPoolGrad."""
    shape, sizes = (2, 7, 8, 3), (4, 3)
    rows, columns = ends("rows", shape[1], sizes[0]), ends("columns", shape[2], sizes[1])
    suite = Suite(folder, "nn_grad", "FractionalMaxPoolGrad")
    for dtype in TYPES:
        for overlapping in (False, True):
            x = elements("input", dtype, shape)
            y = np.stack([[largest(x[b], rows, columns, overlapping) for b in range(shape[0])]])[0].astype(x.dtype)
            grad = elements("grad", dtype, y.shape)
            options = {"tolerance": ulp(4), "reason": "sums of up to four gradients"} if dtype in ("float", "double") and overlapping else {}
            suite.case(f"{dtype}_{overlapping}", [x, y, grad, rows, columns], {"overlapping": overlapping}, **options)
    suite.error("shapes", [x, y, grad[:, :2], rows, columns])
    yield suite.finish()
    suite = Suite(folder, "nn_grad", "FractionalAvgPoolGrad")
    for dtype in TYPES:
        for overlapping in (False, True):
            grad = elements("grad", dtype, (shape[0], *sizes, shape[3]))
            options = {"tolerance": ulp(2), "reason": "sums of parts in double precision"} if dtype in ("float", "double") else {}
            suite.case(f"{dtype}_{overlapping}", [np.int64(shape), grad, rows, columns], {"overlapping": overlapping}, const=[0], **options)
    suite.error("shape", [np.int64(shape[:3]), grad, rows, columns])
    yield suite.finish()


def largest(image, rows, columns, overlapping):
    """The greatest elements of the windows over an image."""
    more = int(overlapping)
    return [
        [image[top : bottom + more, left : right + more].max((0, 1)) for left, right in zip(columns, columns[1:])]
        for top, bottom in zip(rows, rows[1:])
    ]


GROUPS = [pools, gradients]
