"""DynamicPartition, DynamicStitch, ParallelDynamicStitch."""

import numpy as np

from .arrays import MOVED, make
from .data import COMPLEX, seeded, values
from .suite import Suite

WIDE = MOVED + COMPLEX

PARTITIONS = {  # label: (shape of data, partitions, number of them)
    "vector": ((7,), [0, 2, 1, 2, 2, 0, 1], 3),
    "rows": ((5, 3), [1, 0, 1, 1, 3], 4),
    "places": ((2, 3, 2), [[0, 1, 1], [1, 0, 0]], 2),
    "unused": ((4, 2), [2, 2, 2, 2], 4),
    "one": ((3, 2), [0, 0, 0], 1),
    "whole": ((2, 3), 1, 2),
    "scalar": ((), 0, 2),
    "empty": ((0, 3), np.zeros(0), 2),
    "empty_rows": ((3, 0), [1, 0, 1], 2),
    "rank4": ((3, 2, 2, 2), [[0, 1], [2, 0], [1, 1]], 3),
}


def partition(folder):
    """DynamicPartition."""
    suite = Suite(folder, "array", "DynamicPartition")
    for dtype in WIDE:
        for label in PARTITIONS if dtype in ("float", "double", "string") else ("rows", "places"):
            shape, numbers, count = PARTITIONS[label]
            inputs = [make(suite, dtype, label, shape), np.array(numbers, np.int32)]
            suite.case(f"{dtype}_{label}", inputs, {"num_partitions": count})
    numbers = np.random.default_rng(7).integers(0, 9, 1009).astype(np.int32)
    suite.case("float_large", [make(suite, "float", "large", (1009, 13)), numbers], {"num_partitions": 9})
    x = make(suite, "float", "x", (3, 2))
    for label, numbers in (
        ("high", [0, 2, 1]),
        ("negative", [0, -1, 1]),
        ("short", [0, 1]),
        ("long", [0, 1, 1, 0]),
        ("deep", [[[0], [1]]] * 3),
        ("other", [[0, 1, 1]] * 3),
    ):
        suite.error(label, [x, np.array(numbers, np.int32)], {"num_partitions": 2})
    suite.error("scalar", [np.float32(1), np.int32(2)], {"num_partitions": 2})
    yield suite.finish()


STITCHES = {  # label: (indices, shapes of slices); no two indices are equal, and none is left out
    "vectors": ([[0, 3], [4, 1, 2]], ()),
    "rows": ([[2, 0], [1, 3, 4]], (3,)),
    "places": ([1, [[4, 0], [2, 3]]], (2,)),
    "scalars": ([1, 0, 2], ()),
    "one": ([[1, 2, 0]], (2, 2)),
    "empty": ([[]], (3,)),
    "with_empty": ([[], [1, 0]], (2,)),
    "empty_rows": ([[1], [0]], (0, 2)),
}


def stitch(folder):
    """DynamicStitch, ParallelDynamicStitch."""
    for op in ("DynamicStitch", "ParallelDynamicStitch"):
        suite = Suite(folder, "array", op)
        for dtype in WIDE + ["qint8", "quint8", "qint32"]:
            for label in STITCHES if dtype in ("float", "double", "string") else ("rows", "places"):
                lists, slices = STITCHES[label]
                indices = [np.array(numbers, np.int32) for numbers in lists]
                data = [values(seeded(op, dtype, label, i), dtype, x.shape + slices) for i, x in enumerate(indices)]
                suite.case(f"{dtype}_{label}", indices + data, {"N": len(indices)})
        order = np.random.default_rng(5).permutation(1009).astype(np.int32)
        data = make(suite, "float", "large", (1009, 13))
        suite.case("float_large", [order[:300], order[300:], data[:300], data[300:]], {"N": 2})
        # What no index names is undefined in TensorFlow, but for strings.
        suite.case("string_gap", [np.int32([4, 1]), make(suite, "string", "gap", (2, 2))])
        if op == "DynamicStitch":
            # The last of equal indices counts.
            for dtype in ("float", "double", "string", "int16"):
                indices = [np.int32([0, 2, 0]), np.int32([1, 2])]
                data = [values(seeded(op, dtype, "twice", i), dtype, (len(x), 2)) for i, x in enumerate(indices)]
                suite.case(f"{dtype}_twice", indices + data, {"N": 2})
        x = make(suite, "float", "x", (3, 2))
        for label, indices, data in (
            ("negative", [[0, -1, 1]], [x]),
            ("largest", [[2**31 - 1]], [x[:1]]),
            ("short", [[0, 1]], [x]),
            ("long", [[0, 1, 2, 3]], [x]),
            ("scalar", [[0, 1]], [x[0, 0]]),
            ("slices", [[0, 1, 2], [3]], [x, x[:1, :1]]),
            ("ranks", [[0, 1, 2], [3]], [x, x[:1, :, None]]),
        ):
            suite.error(label, [np.array(numbers, np.int32) for numbers in indices] + data, {"N": len(data)})
        yield suite.finish()


GROUPS = [partition, stitch]
