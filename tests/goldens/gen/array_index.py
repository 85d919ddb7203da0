"""Ops that cut, pick and write parts: Slice, Split, Unpack, Gather, ScatterNd, TensorScatter*, strided slices, ..."""

import numpy as np

from .arrays import MOVED, make
from .data import COMPLEX, NUMBERS, QUANTISED, seeded, small, values
from .stand_in import as_signed, wide_index
from .suite import Suite

WIDE = MOVED + COMPLEX
SLICED = WIDE + ["qint8", "quint8", "qint32"]
JOINED = WIDE + list(QUANTISED)


def labels(dtype, forms, few):
    """All forms for float, the smaller ones for strings, a few for the other types."""
    if dtype == "string":
        return [form for form in forms if "large" not in form]
    return forms if dtype == "float" else few


BOXES = {  # label: (shape, begin, size)
    "vector": ((7,), [2], [3]),
    "rest": ((7,), [2], [-1]),
    "whole": ((3, 5), [0, 0], [-1, -1]),
    "matrix": ((5, 7), [1, 2], [3, 4]),
    "rows": ((5, 7), [1, 0], [2, -1]),
    "rank4": ((2, 3, 4, 5), [0, 1, 2, 0], [2, 2, 1, -1]),
    "rank6": ((2, 1, 2, 3, 1, 2), [0, 0, 1, 1, 0, 0], [1, 1, 1, 2, 1, 2]),
    "nothing": ((5, 7), [5, 0], [-1, 7]),
    "empty": ((0, 3), [0, 1], [0, 2]),
    "scalar": ((), [], []),
    "large": ((37, 53), [3, 5], [29, 41]),
}


def slice_(folder):
    """Slice."""
    suite = Suite(folder, "array", "Slice")
    for dtype in SLICED:
        for label in labels(dtype, BOXES, ["matrix", "nothing"]):
            shape, begin, size = BOXES[label]
            inputs = [make(suite, dtype, label, shape), np.array(begin, np.int32), np.array(size, np.int32)]
            suite.case(f"{dtype}_{label}", inputs, const=[1, 2])
    for label in ("matrix", "rows"):
        shape, begin, size = BOXES[label]
        suite.case(f"float_{label}_int64", [make(suite, "float", label, shape), np.int64(begin), np.int64(size)], const=[1, 2])
    x = make(suite, "float", "errors", (5, 7))
    for label, begin, size in (
        ("beyond", [3, 0], [3, 1]),
        ("begin_high", [6, 0], [0, 1]),
        ("begin_negative", [-1, 0], [1, 1]),
        ("size_negative", [0, 0], [-2, 1]),
        ("short", [0], [1]),
        ("lengths", [0, 0], [1]),
        ("matrices", [[0, 0]], [[1, 1]]),
    ):
        suite.error(label, [x, np.int32(begin), np.int32(size)], const=[1, 2])
    yield suite.finish()


SPLITS = {  # label: (shape, axis, pieces)
    "rows": ((6, 3), 0, 3),
    "columns": ((2, 6), 1, 2),
    "last": ((2, 3, 4), -1, 4),
    "one": ((3, 2), 0, 1),
    "middle": ((2, 4, 3), 1, 2),
    "empty": ((0, 3), 0, 2),
    "empty_inner": ((4, 0), 0, 2),
    "vector": ((8,), 0, 8),
    "large": ((36, 53), 0, 2),
    "large_columns": ((37, 52), 1, 4),
}


def split(folder):
    """Split and SplitV."""
    suite = Suite(folder, "array", "Split")
    for dtype in WIDE + ["quint8"]:
        for label in labels(dtype, SPLITS, ["rows", "columns"]):
            shape, axis, pieces = SPLITS[label]
            x = make(suite, dtype, label, shape)
            suite.case(f"{dtype}_{label}", [np.int32(axis), x], {"num_split": pieces}, const=[0])
    many = make(suite, "float", "many", (70, 2))
    suite.case("float_many", [np.int32(0), many], {"num_split": 70}, const=[0])
    x = make(suite, "float", "errors", (6, 3))
    for label, axis, pieces in (("uneven", 0, 4), ("high", 2, 1), ("low", -3, 1), ("none", 0, 0), ("axes", [0, 1], 2)):
        suite.error(label, [np.int32(axis), x], {"num_split": pieces}, const=[0])
    suite.error("of_scalar", [np.int32(0), np.float32(1)], {"num_split": 1}, const=[0])
    yield suite.finish()

    suite = Suite(folder, "array", "SplitV")
    forms = {
        "rows": ((7, 3), [2, 0, 5], 0),
        "columns": ((2, 6), [1, 5], -1),
        "rest": ((7, 2), [2, -1, 1], 0),
        "rest_empty": ((3, 2), [3, -1], 0),
        "one": ((3, 2), [2], 1),
        "middle": ((2, 5, 3), [1, 1, 3], 1),
        "empty": ((0, 3), [1, 2], 1),
        "large": ((37, 53), [30, 7], 0),
    }
    for dtype in WIDE + ["quint8"]:
        for label in labels(dtype, forms, ["rows", "rest"]):
            shape, sizes, axis = forms[label]
            inputs = [make(suite, dtype, label, shape), np.int64(sizes), np.int32(axis)]
            suite.case(f"{dtype}_{label}", inputs, {"num_split": len(sizes)}, const=[1, 2])
    for kind in ("int8", "int32"):
        for dtype in WIDE + ["quint8"]:
            inputs = [make(suite, dtype, kind, (7, 3)), np.array([2, -1, 1], kind), np.int32(0)]
            suite.case(f"{dtype}_{kind}_sizes", inputs, {"num_split": 3}, const=[1, 2])
    x = make(suite, "float", "errors", (6, 3))
    for label, sizes, axis, pieces in (
        ("sum_low", [2, 3], 0, 2),
        ("sum_high", [4, 3], 0, 2),
        ("rest_negative", [7, -1], 0, 2),
        ("two_rests", [-1, -1], 0, 2),
        ("negative", [8, -2], 0, 2),
        ("count", [2, 4], 0, 3),
        ("axis_high", [6], 2, 1),
        ("matrix", [[2, 4]], 0, 2),
    ):
        suite.error(label, [x, np.int64(sizes), np.int32(axis)], {"num_split": pieces}, const=[1, 2])
    yield suite.finish()


def unpack(folder):
    """Unpack."""
    suite = Suite(folder, "array", "Unpack")
    forms = {
        "rows": ((2, 3), 0),
        "columns": ((2, 3), 1),
        "last": ((2, 3, 4), -1),
        "middle": ((2, 3, 4), 1),
        "one": ((1, 3), 0),
        "one_inner": ((3, 1, 2), 1),
        "vector": ((5,), 0),
        "empty": ((2, 0), 0),
        "large": ((3, 601), 0),
        "many": ((67, 2), 0),
    }
    for dtype in WIDE:
        for label in labels(dtype, forms, ["rows", "columns"]):
            shape, axis = forms[label]
            suite.case(f"{dtype}_{label}", [make(suite, dtype, label, shape)], {"num": shape[axis], "axis": axis})
    x = make(suite, "float", "errors", (2, 3))
    for label, axis, num in (("number", 0, 3), ("high", 2, 2), ("low", -3, 2)):
        suite.error(label, [x], {"num": num, "axis": axis})
    suite.error("of_scalar", [np.float32(1)], {"num": 1})
    yield suite.finish()


WRITTEN = {  # label: (shape, begin, end, strides, masks, shape of the slice)
    "vector": ((7,), [1], [5], [2], {}, (2,)),
    "matrix": ((5, 7), [1, 2], [4, 6], [1, 2], {}, (3, 2)),
    "reverse": ((5, 7), [4, 6], [0, 1], [-1, -2], {}, (4, 3)),
    "shrink": ((5, 7), [2, 1], [3, 5], [1, 1], {"shrink_axis_mask": 1}, (4,)),
    "new_axis": ((5, 7), [1, 0, 2], [4, 0, 5], [1, 1, 1], {"new_axis_mask": 2}, (3, 1, 3)),
    "ellipsis": ((2, 3, 2, 5), [1, 0, 1], [2, 0, 4], [1, 1, 2], {"ellipsis_mask": 2}, (1, 3, 2, 2)),
    "whole": ((3, 5), [0, 0], [0, 0], [1, 1], {"begin_mask": 3, "end_mask": 3}, (3, 5)),
    "rows": ((5, 7), [2], [4], [1], {}, (2, 7)),
    "nothing": ((5, 7), [3, 0], [3, 7], [1, 1], {}, (0, 7)),
    "one": ((4, 3), [2, 1], [3, 2], [1, 1], {"shrink_axis_mask": 3}, ()),
    "large": ((37, 53), [5, 3], [31, 50], [2, 1], {}, (13, 47)),
}


def strided(folder):
    """StridedSliceGrad and TensorStridedSliceUpdate."""
    for op in ("StridedSliceGrad", "TensorStridedSliceUpdate"):
        suite = Suite(folder, "array", op)
        grad = op == "StridedSliceGrad"
        const = [0, 1, 2, 3] if grad else [1, 2, 3]

        def form(dtype, label, spec, index=np.int32, value=None, suite=suite, grad=grad):
            shape, begin, end, strides, masks, part = spec
            x = np.array(shape, index) if grad else make(suite, dtype, label, shape)
            part = make(suite, dtype, label + "v", part if value is None else value)
            return [x, *(np.array(b, index) for b in (begin, end, strides)), part], masks

        for dtype in SLICED:
            options = as_signed(dtype) if dtype in QUANTISED and not grad else {}
            for label in labels(dtype, WRITTEN, ["matrix", "shrink"]):
                inputs, masks = form(dtype, label, WRITTEN[label])
                suite.case(f"{dtype}_{label}", inputs, masks, const=const, **options)
        inputs, masks = form("float", "matrix", WRITTEN["matrix"], np.int64)
        suite.case("float_matrix_int64", inputs, masks, const=const)
        if not grad:
            for label, value in (("scalar", ()), ("row", (2,)), ("column", (3, 1)), ("ones", (1, 1))):
                inputs, masks = form("float", "matrix", WRITTEN["matrix"], value=value)
                suite.case(f"float_broadcast_{label}", inputs, masks, const=const)
        inputs, masks = form("float", "matrix", WRITTEN["matrix"], value=(2, 3))
        suite.error("value_shape", inputs, masks, const=const)
        inputs, masks = form("float", "matrix", WRITTEN["matrix"], value=(4, 2))
        suite.error("value_long", inputs, masks, const=const)
        inputs, masks = form("float", "stride", ((5,), [0], [5], [0], {}, (5,)))
        suite.error("stride_zero", inputs, masks, const=const)
        inputs, masks = form("float", "many", ((5,), [0, 0], [5, 5], [1, 1], {}, (5,)))
        suite.error("too_many", inputs, masks, const=const)
        inputs, masks = form("float", "high", ((5,), [5], [6], [1], {"shrink_axis_mask": 1}, ()))
        suite.error("shrink_high", inputs, masks, const=const)
        yield suite.finish()


def gather(folder):
    """Gather and GatherV2."""
    suite = Suite(folder, "array", "Gather")
    for dtype in JOINED:
        x = make(suite, dtype, "x", (5, 3))
        suite.case(f"{dtype}_rows", [x, np.int32([4, 0, 4])])
        suite.case(f"{dtype}_scalar", [x, np.int64(2)])
    x = make(suite, "float", "errors", (5, 3))
    suite.case("float_unchecked_attribute", [x, np.int32([1])], {"validate_indices": False})
    suite.error("high", [x, np.int32([[0, 1], [5, 0]])])
    suite.error("low", [x, np.int32([-1])])
    suite.error("of_scalar", [np.float32(1), np.int32([0])])
    yield suite.finish()

    suite = Suite(folder, "array", "GatherV2")
    forms = {  # label: (shape, indices, axis, batch_dims)
        "rows": ((5, 3), [4, 0, 4], 0, 0),
        "columns": ((5, 3), [[2, 0], [1, 1]], 1, 0),
        "scalar": ((5, 3), 2, 0, 0),
        "last": ((2, 3, 4), [3, 0], -1, 0),
        "middle": ((2, 5, 3), [4, 2, 2], 1, 0),
        "batch": ((2, 5), [[4, 0, 1], [0, 0, 3]], 1, 1),
        "batch_rows": ((2, 3, 2), [[2, 0], [1, 1]], 1, 1),
        "batch_later": ((2, 3, 4), [[3, 0], [1, 1]], 2, 1),
        "batch_negative": ((2, 3, 4), [[3, 0], [1, 1]], 2, -1),
        "batch_two": ((2, 3, 4), np.arange(12).reshape(2, 3, 2) % 4, 2, 2),
        "batch_all": ((2, 3), [2, 0], 1, 1),
        "no_indices": ((5, 3), np.zeros((0,)), 0, 0),
        "empty_rows": ((5, 0), [1, 2], 0, 0),
        "vector": ((7,), [6, 0, 3, 3], 0, 0),
        "large": ((53, 37), np.arange(50) * 7 % 53, 0, 0),
        "large_columns": ((37, 53), np.arange(50) * 7 % 53, 1, 0),
    }
    for dtype in JOINED:
        for label in labels(dtype, forms, ["rows", "columns"]):
            shape, picked, axis, batch = forms[label]
            inputs = [make(suite, dtype, label, shape), np.array(picked, np.int32), np.int32(axis)]
            suite.case(f"{dtype}_{label}", inputs, {"batch_dims": batch}, const=[2])
    for kind in ("int16", "int64"):
        inputs = [make(suite, "float", kind, (5, 3)), np.array([4, 0], kind), np.int64(1 if kind == "int16" else 0)]
        if kind == "int16":
            inputs[1] = np.array([2, 0], kind)
        suite.case(f"float_{kind}", inputs, const=[2])
    x = make(suite, "float", "errors", (5, 3))
    for label, picked, axis, batch in (
        ("high", [0, 5], 0, 0),
        ("low", [-1], 0, 0),
        ("column_high", [[0, 3]], 1, 0),
        ("axis_high", [0], 2, 0),
        ("axis_low", [0], -3, 0),
        ("axis_vector", [0], [0, 1], 0),
        ("batch_high", [0], 0, 1),
        ("batch_sizes", [[0], [0]], 1, 1),
        ("batch_rank", [0], 1, 2),
    ):
        suite.error(label, [x, np.int32(picked), np.int32(axis)], {"batch_dims": batch}, const=[2])
    suite.error("of_scalar", [np.float32(1), np.int32([0]), np.int32(0)], const=[2])
    suite.error("of_empty", [np.zeros((0, 3), np.float32), np.int32([0]), np.int32(0)], const=[2])
    yield suite.finish()


VECTORS = {  # label: (shape, indices)
    "elements": ((3, 4), [[2, 3], [0, 1], [2, 3]]),
    "rows": ((3, 4), [[2], [0]]),
    "grid": ((3, 4), [[[0, 1], [2, 2]], [[1, 1], [0, 0]]]),
    "whole": ((3, 4), np.zeros((2, 0))),
    "one": ((3, 4), [1, 2]),
    "none": ((3, 4), np.zeros((0, 2))),
    "rank3": ((2, 3, 2), [[1, 2], [0, 0]]),
}


def gather_nd(folder):
    """GatherNd."""
    suite = Suite(folder, "array", "GatherNd")
    for dtype in SLICED:
        for label in labels(dtype, VECTORS, ["elements", "rows"]):
            shape, picked = VECTORS[label]
            suite.case(f"{dtype}_{label}", [make(suite, dtype, label, shape), np.array(picked, np.int32)])
    x = make(suite, "float", "errors", (3, 4))
    for kind in ("int16", "int64"):
        suite.case(f"float_{kind}", [x, np.array([[2, 3], [0, 1]], kind)])
    outside = np.int32([[2, 3], [3, 0], [0, -1]])
    suite.case("float_ignored", [x, outside], {"bad_indices_policy": "IGNORE"})
    suite.case("float_default", [x, np.int32([[1]])], {"bad_indices_policy": "DEFAULT"})
    suite.error("outside", [x, outside])
    suite.error("outside_asked", [x, outside], {"bad_indices_policy": "ERROR"})
    suite.error("policy", [x, np.int32([[1]])], {"bad_indices_policy": "NONE"})
    suite.error("deep", [x, np.int32([[0, 0, 0]])])
    suite.error("of_scalar", [np.float32(1), np.zeros((1, 0), np.int32)])
    suite.error("scalar_index", [x, np.int32(0)])
    suite.error("of_empty", [np.zeros((0, 2), np.float32), np.int32([[0]])])
    suite.error("of_empty_rows", [np.zeros((3, 0), np.float32), np.int32([[2], [0]])])
    yield suite.finish()


SCATTERS = {  # label: (shape, indices), every slice once
    "elements": ((3, 4), [[2, 3], [0, 1]]),
    "rows": ((3, 4), [[2], [0]]),
    "vector": ((7,), [[3], [6], [0]]),
    "grid": ((3, 4), [[[0, 1], [2, 2]], [[1, 1], [0, 0]]]),
    "none": ((3, 4), np.zeros((0, 2))),
    "rank3": ((2, 3, 2), [[1, 2], [0, 0]]),
}


def part(shape, picked):
    """Shape of the updates."""
    picked = np.array(picked)
    return picked.shape[:-1] + shape[picked.shape[-1] :]


def twice(suite, dtype):
    """Several updates for one slice, whose merge must not round."""
    x = small(seeded(suite.op, dtype, "twice"), dtype, (5,)) if dtype in NUMBERS + COMPLEX else make(suite, dtype, "twice", (5,))
    u = small(seeded(suite.op, dtype, "u"), dtype, (6,)) if dtype in NUMBERS + COMPLEX else make(suite, dtype, "u", (6,))
    return x, np.int32([[1], [4], [1], [0], [1], [4]]), u


def scatter_nd(folder):
    """ScatterNd."""
    suite = Suite(folder, "array", "ScatterNd")
    for dtype in WIDE:
        for label in labels(dtype, SCATTERS, ["elements", "rows"]):
            shape, picked = SCATTERS[label]
            updates = make(suite, dtype, label, part(shape, picked))
            suite.case(f"{dtype}_{label}", [np.array(picked, np.int32), updates, np.int32(shape)], const=[2])
        _, picked, updates = twice(suite, dtype)
        suite.case(f"{dtype}_twice", [picked, updates, np.int32([5])], const=[2])
    rounded = values(seeded("ScatterNd", "rounded"), "half", (300,))
    suite.case("half_rounded", [np.arange(300, dtype=np.int32)[:, None] % 3, rounded, np.int32([3])], const=[2])
    large = make(suite, "float", "large", (50, 40))
    suite.case("float_large", [np.arange(50, dtype=np.int32)[:, None] * 7 % 53, large, np.int32([53, 40])], const=[2])
    suite.case("float_int64", [np.int64([[2], [0]]), np.float32([1, 2]), np.int64([4])], const=[2])
    outside = np.int32([[1], [4], [-1]])
    u = np.float32([1, 2, 3])
    suite.case("float_ignored", [outside, u, np.int32([4])], {"bad_indices_policy": "IGNORE"}, const=[2])
    suite.case("float_empty", [np.zeros((0, 1), np.int32), np.zeros(0, np.float32), np.int32([0])], const=[2])
    suite.error("outside", [outside, u, np.int32([4])], const=[2])
    suite.error("updates", [np.int32([[1]]), u, np.int32([4])], const=[2])
    suite.error("rank", [np.int32([[1]]), np.ones((1, 3), np.float32), np.int32([4])], const=[2])
    suite.error("deep", [np.int32([[1, 1]]), np.float32([1]), np.int32([4])], const=[2])
    suite.error("empty", [np.int32([[0]]), np.float32([1]), np.int32([0])], const=[2])
    suite.error("shape_scalar", [np.int32([[0]]), np.float32([1]), np.int32(4)], const=[2])
    suite.error("shape_negative", [np.int32([[0]]), np.float32([1]), np.int32([-4])], const=[2])
    yield suite.finish()


def tensor_scatter(folder):
    """TensorScatterUpdate, -Add, -Sub, -Max and -Min."""
    for op in ("Update", "Add", "Sub", "Max", "Min"):
        suite = Suite(folder, "array", f"TensorScatter{op}")
        types = {"Update": WIDE, "Add": NUMBERS + COMPLEX, "Sub": NUMBERS + COMPLEX}.get(op, NUMBERS)
        for dtype in types:
            for label in labels(dtype, SCATTERS, ["elements", "rows"]):
                shape, picked = SCATTERS[label]
                x, u = make(suite, dtype, label, shape), make(suite, dtype, label + "u", part(shape, picked))
                suite.case(f"{dtype}_{label}", [x, np.array(picked, np.int32), u])
            suite.case(f"{dtype}_twice", list(twice(suite, dtype)))
            for kind in ("int16", "uint16", "int64") if op == "Update" else ():
                x, u = make(suite, dtype, kind, (4,)), make(suite, dtype, kind + "u", (2,))
                options = {} if kind == "int64" else {"run_as": wide_index, "via": "int32 index"}
                suite.case(f"{dtype}_{kind}_indices", [x, np.array([[3], [0]], kind), u], **options)
        x, u = make(suite, "float", "x", (4,)), np.float32([1, 2, 3])
        outside = np.int32([[1], [4], [-1]])
        suite.case("float_int64", [x, np.int64([[1], [3], [0]]), u])
        suite.case("float_large", [make(suite, "float", "l", (53, 40)), np.int32([[3], [50]]), make(suite, "float", "lu", (2, 40))])
        suite.case("float_ignored", [x, outside, u], {"bad_indices_policy": "IGNORE"})
        if op in ("Max", "Min"):
            nan = np.float32([np.nan, 1, np.nan, 0])
            suite.case("float_nan", [nan, np.int32([[0], [1], [2], [3]]), np.float32([1, np.nan, np.nan, -0.0])])
        suite.error("outside", [x, outside, u])
        suite.error("updates", [x, np.int32([[1]]), u])
        suite.error("deep", [x, np.int32([[1, 1]]), np.float32([1])])
        suite.error("of_scalar", [np.float32(1), np.zeros((1, 0), np.int32), np.float32([1])])
        suite.error("empty", [np.zeros(0, np.float32), np.int32([[0]]), np.float32([1])])
        yield suite.finish()


GROUPS = [slice_, split, unpack, strided, gather, gather_nd, scatter_nd, tensor_scatter]
