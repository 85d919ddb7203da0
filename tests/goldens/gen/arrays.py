"""Ops that move or describe values: Const, Identity, Shape, Reshape, Squeeze, ExpandDims, Transpose, ..."""

import numpy as np

from .data import ANY, COMPLEX, NUMBERS, QUANTISED, seeded, specials, values
from .suite import Suite

SHAPES = {"scalar": (), "one": (1,), "empty": (0,), "prime": (7,), "rank3": (2, 3, 5), "empty3": (2, 0, 3)}
MOVED = ["bool"] + NUMBERS + ["string"]  # what most ops with typed kernels take; COMPLEX besides


def make(suite, dtype, label, shape):
    return values(seeded(suite.op, dtype, label), dtype, shape)


def const(folder):
    """Const."""
    suite = Suite(folder, "array", "Const")
    for dtype in ANY + COMPLEX:
        for label, shape in SHAPES.items():
            suite.case(f"{dtype}_{label}", [], {"value": make(suite, dtype, label, shape), "dtype": dtype})
        if dtype in NUMBERS:
            suite.case(f"{dtype}_special", [], {"value": specials(dtype), "dtype": dtype})
    suite.case("float_1009", [], {"value": make(suite, "float", "1009", (1009,)), "dtype": "float"})
    suite.error("dtype", [], {"value": np.float32([1]), "dtype": "int32"})
    yield suite.finish()


def identity(folder):
    """Identity and PlaceholderWithDefault."""
    for op in ("Identity", "PlaceholderWithDefault"):
        suite = Suite(folder, "array", op)
        for dtype in ANY + COMPLEX:
            for label, shape in SHAPES.items():
                attrs = {"shape": None} if op != "Identity" else {}
                suite.case(f"{dtype}_{label}", [make(suite, dtype, label, shape)], attrs)
        suite.case("float_special", [specials("float")], {"shape": [-1]} if op != "Identity" else {})
        if op != "Identity":
            x = make(suite, "float", "shapes", (2, 3))
            suite.case("float_shape_known", [x], {"shape": [2, 3]})
            suite.case("float_shape_partial", [x], {"shape": [-1, 3]})
        yield suite.finish()


def shape(folder):
    """Shape."""
    suite = Suite(folder, "array", "Shape")
    for dtype in ANY + COMPLEX:
        x = make(suite, dtype, "x", (2, 3, 1))
        suite.case(f"{dtype}_rank3", [x])
    for out in ("int32", "int64"):
        for label, dims in (SHAPES | {"rank5": (1, 2, 1, 3, 1), "large": (37, 53)}).items():
            x = make(suite, "float", label, dims)
            suite.case(f"float_{label}_{out}", [x], {"out_type": out})
    suite.error("out_type", [np.float32([1])], {"out_type": "float"})
    yield suite.finish()


RESHAPES = {  # label: (from, to)
    "same": ((2, 3), [2, 3]),
    "flat": ((2, 3, 5), [-1]),
    "split": ((30,), [2, 3, 5]),
    "infer_first": ((4, 6), [-1, 8]),
    "infer_middle": ((4, 6), [2, -1, 3]),
    "to_scalar": ((1, 1), []),
    "from_scalar": ((), [1, 1]),
    "scalar": ((), []),
    "infer_one": ((3,), [3, -1]),
    "empty": ((0, 3), [3, 0]),
    "empty_flat": ((0, 3), [-1]),
    "empty_infer": ((0, 3), [-1, 3]),
    "ones": ((1, 5, 1), [5, 1, 1, 1]),
    "scalar_infer": ((), [-1]),
    "empty_infer_zero": ((0, 3), [0, -1]),
}


def reshape(folder):
    """Reshape."""
    suite = Suite(folder, "array", "Reshape")
    for dtype in ANY + COMPLEX:
        for label in RESHAPES if dtype in ("float", "string") else ("infer_first", "empty"):
            source, target = RESHAPES[label]
            suite.case(f"{dtype}_{label}", [make(suite, dtype, label, source), np.array(target, np.int32)], const=[1])
    for label, (source, target) in RESHAPES.items():
        suite.case(f"float_{label}_int64", [make(suite, "float", label, source), np.array(target, np.int64)], const=[1])
    x = make(suite, "float", "errors", (2, 3))
    empty = np.zeros((0, 3), np.float32)
    for label, data, target in (
        ("size", x, [4]),
        ("size_larger", x, [2, 4]),
        ("two_inferred", x, [-1, -1]),
        ("negative", x, [-2, -3]),
        ("not_divisible", x, [4, -1]),
        ("zero", x, [0]),
        ("zero_inferred", x, [0, -1]),
        ("to_scalar", x, []),
        ("from_empty", empty, [1]),
        ("overflow", x, [2**31 - 1, 2**31 - 1, 2**31 - 1]),
    ):
        suite.error(label, [data, np.array(target, np.int32)], const=[1])
    suite.error("shape_rank", [x, np.int32([[2, 3]])], const=[1])
    suite.error("overflow_int64", [x, np.int64([2**62, 4])], const=[1])
    yield suite.finish()


SQUEEZES = {  # label: (shape, dims)
    "all": ((1, 2, 1, 3, 1), []),
    "first": ((1, 2, 1, 3, 1), [0]),
    "last": ((1, 2, 1, 3, 1), [-1]),
    "two": ((1, 2, 1, 3, 1), [2, 0]),
    "negative": ((1, 2, 1, 3, 1), [-3, -5]),
    "repeated": ((1, 2, 1), [0, -3]),
    "to_scalar": ((1, 1), []),
    "none": ((2, 3), []),
    "scalar": ((), []),
    "empty": ((0, 1), []),
    "empty_dim": ((1, 0, 1), [0]),
}


def squeeze(folder):
    """Squeeze."""
    suite = Suite(folder, "array", "Squeeze")
    for dtype in ANY + COMPLEX:
        for label in SQUEEZES if dtype in ("float", "string") else ("all", "last"):
            dims, axes = SQUEEZES[label]
            suite.case(f"{dtype}_{label}", [make(suite, dtype, label, dims)], {"squeeze_dims": axes})
    x = make(suite, "float", "errors", (1, 2, 1))
    for label, axes in {"not_one": [1], "high": [3], "low": [-4], "one_of_two": [0, 1]}.items():
        suite.error(label, [x], {"squeeze_dims": axes})
    suite.error("of_scalar", [np.float32(1)], {"squeeze_dims": [0]})
    suite.error("zero_dim", [np.zeros((0, 1), np.float32)], {"squeeze_dims": [0]})
    yield suite.finish()


def expand_dims(folder):
    """ExpandDims."""
    suite = Suite(folder, "array", "ExpandDims")
    for dtype in ANY + COMPLEX:
        suite.case(f"{dtype}_middle", [make(suite, dtype, "m", (2, 3)), np.int32(1)], const=[1])
        suite.case(f"{dtype}_scalar", [make(suite, dtype, "s", ()), np.int32(0)], const=[1])
    x = make(suite, "float", "x", (2, 3))
    for index in ("int32", "int64"):
        for axis in range(-3, 3):
            suite.case(f"float_{index}_{'m' if axis < 0 else ''}{abs(axis)}", [x, np.asarray(axis, index)], const=[1])
    suite.case("float_scalar_negative", [np.float32(3), np.int32(-1)], const=[1])
    suite.case("float_vector_dim", [x, np.int32([1])], const=[1])
    suite.case("float_empty", [np.zeros((0, 2), np.float32), np.int32(0)], const=[1])
    suite.error("high", [x, np.int32(3)], const=[1])
    suite.error("low", [x, np.int32(-4)], const=[1])
    suite.error("two", [x, np.int32([0, 1])], const=[1])
    suite.error("none", [x, np.zeros(0, np.int32)], const=[1])
    yield suite.finish()


PERMUTATIONS = {  # label: (shape, permutation)
    "scalar": ((), []),
    "vector": ((5,), [0]),
    "matrix": ((3, 7), [1, 0]),
    "matrix_kept": ((3, 7), [0, 1]),
    "row": ((1, 7), [1, 0]),
    "021": ((2, 3, 5), [0, 2, 1]),
    "102": ((2, 3, 5), [1, 0, 2]),
    "120": ((2, 3, 5), [1, 2, 0]),
    "201": ((2, 3, 5), [2, 0, 1]),
    "210": ((2, 3, 5), [2, 1, 0]),
    "nhwc_nchw": ((2, 3, 5, 4), [0, 3, 1, 2]),
    "nchw_nhwc": ((2, 3, 5, 4), [0, 2, 3, 1]),
    "rank4_reverse": ((2, 3, 2, 5), [3, 2, 1, 0]),
    "rank5": ((2, 1, 3, 2, 2), [4, 0, 3, 1, 2]),
    "rank6": ((2, 1, 2, 3, 1, 2), [5, 3, 1, 0, 2, 4]),
    "rank8": ((2, 1, 2, 1, 2, 1, 2, 2), [7, 5, 3, 1, 0, 2, 4, 6]),
    "ones": ((1, 1, 5, 1), [3, 2, 0, 1]),
    "empty": ((0, 3), [1, 0]),
    "empty3": ((2, 0, 3), [2, 0, 1]),
    "negative": ((2, 3, 5), [-1, 0, 1]),
}
BLOCKS = {"37x53": ((37, 53), [1, 0]), "64x64": ((64, 64), [1, 0]), "3x17x19": ((3, 17, 19), [0, 2, 1])}


def transpose(folder):
    """Transpose."""
    suite = Suite(folder, "array", "Transpose")
    for dtype in MOVED + COMPLEX:
        for label in PERMUTATIONS if dtype in ("float", "uint8", "string") else ("matrix", "120", "nhwc_nchw", "empty"):
            dims, order = PERMUTATIONS[label]
            suite.case(f"{dtype}_{label}", [make(suite, dtype, label, dims), np.array(order, np.int32)], const=[1])
    for label, (dims, order) in BLOCKS.items():
        for dtype in ("float", "uint8", "half"):
            suite.case(f"{dtype}_{label}", [make(suite, dtype, label, dims), np.array(order, np.int32)], const=[1])
    x = make(suite, "float", "x", (2, 3, 5))
    suite.case("float_int64_perm", [x, np.int64([2, 0, 1])], const=[1])
    for label, order in {
        "short": [1, 0],
        "long": [0, 1, 2, 3],
        "twice": [0, 0, 1],
        "high": [0, 1, 3],
        "low": [0, 1, -4],
        "alias": [0, 1, -2],
    }.items():
        suite.error(label, [x, np.array(order, np.int32)], const=[1])
    suite.error("perm_matrix", [x, np.int32([[0, 1, 2]])], const=[1])
    yield suite.finish()


JOINS = {  # label: (shapes, axis)
    "vectors": ([(2,), (3,)], 0),
    "rows": ([(2, 3), (1, 3)], 0),
    "columns": ([(2, 3), (2, 1)], 1),
    "negative": ([(2, 3), (2, 4)], -1),
    "three": ([(2, 1, 3), (2, 4, 3), (2, 2, 3)], 1),
    "last": ([(2, 3, 1), (2, 3, 5)], 2),
    "with_empty": ([(2, 3), (0, 3), (1, 3)], 0),
    "all_empty": ([(0, 3), (0, 3)], 0),
    "empty_inner": ([(2, 0), (3, 0)], 0),
    "many": ([(1, 2)] * 17, 0),
    "single_columns": ([(5, 1)] * 4, 1),
    "rank5": ([(1, 2, 1, 2, 1), (1, 2, 3, 2, 1)], 2),
    "empty_vector": ([(0,), (3,)], 0),
}


def concat(folder):
    """ConcatV2."""
    suite = Suite(folder, "array", "ConcatV2")
    for dtype in MOVED + COMPLEX + list(QUANTISED):
        for label in JOINS if dtype in ("float", "string") else ("rows", "columns", "with_empty"):
            shapes, axis = JOINS[label]
            parts = [values(seeded("ConcatV2", dtype, label, i), dtype, s) for i, s in enumerate(shapes)]
            suite.case(f"{dtype}_{label}", [*parts, np.int32(axis)], const=[len(parts)])
    a, b = (make(suite, "float", i, (37, 53)) for i in "ab")
    suite.case("float_large_rows", [a, b, np.int32(0)], const=[2])
    suite.case("float_large_columns", [a, b, np.int32(1)], const=[2])
    suite.case("float_int64_axis", [a[:2, :3], b[:2, :2], np.int64(1)], const=[2])
    x = np.ones((2, 3), np.float32)
    for label, parts, axis in (
        ("axis_high", [x, x], 2),
        ("axis_low", [x, x], -3),
        ("sizes", [x, np.ones((2, 4), np.float32)], 0),
        ("ranks", [x, np.ones(3, np.float32)], 0),
        ("scalars", [np.float32(1), np.float32(2)], 0),
        ("axis_vector", [x, x], [0, 1]),
        ("one", [x], 0),
    ):
        suite.error(label, [*parts, np.array(axis, np.int32)], const=[len(parts)])
    yield suite.finish()


def pack(folder):
    """Pack."""
    suite = Suite(folder, "array", "Pack")
    for dtype in MOVED + COMPLEX + list(QUANTISED):
        for label, dims, count, axis in (("rows", (3,), 2, 0), ("columns", (3,), 2, 1), ("scalars", (), 3, 0)):
            parts = [values(seeded("Pack", dtype, label, i), dtype, dims) for i in range(count)]
            suite.case(f"{dtype}_{label}", parts, {"axis": axis})
    for dtype in ("float", "string"):
        for axis in range(-4, 4):
            parts = [values(seeded("Pack", dtype, i), dtype, (2, 3, 2)) for i in range(3)]
            suite.case(f"{dtype}_axis_{'m' if axis < 0 else ''}{abs(axis)}", parts, {"axis": axis})
        suite.case(f"{dtype}_single", parts[:1], {"axis": 1})
        suite.case(f"{dtype}_empty", [values(seeded("e"), dtype, (0, 2))] * 2, {"axis": 1})
        suite.case(f"{dtype}_single_scalar", [values(seeded("s"), dtype, ())])
        suite.case(f"{dtype}_many", [values(seeded("m", i), dtype, (2,)) for i in range(17)])
    x = np.ones((2, 3), np.float32)
    suite.error("axis_high", [x, x], {"axis": 3})
    suite.error("axis_low", [x, x], {"axis": -4})
    suite.error("shapes", [x, np.ones((3, 2), np.float32)])
    suite.error("ranks", [x, np.ones(3, np.float32)])
    suite.error("count", [x], {"N": 0})
    yield suite.finish()


def fill(folder):
    """Fill."""
    suite = Suite(folder, "array", "Fill")
    for dtype in ANY + COMPLEX:
        for label, dims in {"vector": [5], "matrix": [2, 3], "scalar": [], "empty": [0, 2]}.items():
            suite.case(f"{dtype}_{label}", [np.array(dims, np.int32), make(suite, dtype, label, ())], const=[0])
    suite.case("float_int64", [np.int64([3, 1, 2]), np.float32(7)], const=[0])
    suite.case("float_nan", [np.int32([3]), np.float32(np.nan)], const=[0])
    suite.case("float_minus_zero", [np.int32([3]), np.float32(-0.0)], const=[0])
    suite.case("float_1009", [np.int32([1009]), np.float32(1.5)], const=[0])
    for label, dims in {
        "negative": [-1],
        "negative_empty": [0, -2],
        "dims_matrix": [[2]],
        "overflow": [2**31 - 1] * 3,
    }.items():
        suite.error(label, [np.array(dims, np.int32), np.float32(1)], const=[0])
    suite.error("value_two", [np.int32([3]), np.float32([1, 2])], const=[0])
    yield suite.finish()


PADDED = MOVED + ["qint8", "quint8", "qint32"]
PADS = {  # label: (shape, paddings)
    "vector": ((3,), [[1, 2]]),
    "none": ((3,), [[0, 0]]),
    "matrix": ((2, 3), [[1, 0], [0, 2]]),
    "before": ((2, 3), [[2, 0], [1, 0]]),
    "after": ((2, 3), [[0, 1], [0, 2]]),
    "image": ((2, 3, 4, 2), [[0, 0], [1, 2], [2, 1], [0, 0]]),
    "rank3": ((2, 1, 3), [[1, 1], [0, 0], [2, 0]]),
    "rank5": ((1, 2, 1, 2, 1), [[0, 1], [1, 0], [0, 0], [1, 1], [0, 0]]),
    "rank6": ((1, 2, 1, 2, 1, 2), [[0, 1], [1, 0], [0, 0], [0, 1], [0, 0], [1, 0]]),
    "empty": ((0, 2), [[1, 1], [0, 1]]),
    "empty_stays": ((0, 2), [[0, 0], [1, 1]]),
    "scalar": ((), np.zeros((0, 2))),
    "ends": ((3, 5, 2), [[1, 2], [0, 0], [0, 0]]),
}


def pad(folder):
    """Pad."""
    suite = Suite(folder, "array", "Pad")
    for dtype in PADDED + COMPLEX:
        for label in PADS if dtype in ("float", "string") else ("matrix", "image", "empty"):
            dims, amounts = PADS[label]
            suite.case(f"{dtype}_{label}", [make(suite, dtype, label, dims), np.array(amounts, np.int32)], const=[1])
    for label in ("matrix", "image"):
        dims, amounts = PADS[label]
        suite.case(f"float_{label}_int64", [make(suite, "float", label, dims), np.array(amounts, np.int64)], const=[1])
    x = np.ones((2, 3), np.float32)
    for label, amounts in {
        "negative": [[-1, 0], [0, 0]],
        "rows": [[1, 1]],
        "columns": [[1], [1]],
        "vector": [1, 1],
        "three": [[1, 1, 1], [0, 0, 0]],
        "overflow": [[2**31 - 1, 2**31 - 1]] * 2,
    }.items():
        suite.error(label, [x, np.array(amounts, np.int32)], const=[1])
    yield suite.finish()


GROUPS = [const, identity, shape, reshape, squeeze, expand_dims, transpose, concat, pack, fill, pad]
