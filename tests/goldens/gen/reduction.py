"""Reductions over axes, ArgMax and ArgMin."""

import math

import numpy as np

from .data import COMPLEX, FLOATS, INTS, NUMBERS, NUMPY, array, denormals, seeded, small, specials, values
from .stand_in import wide_index
from .suite import EXACT, Suite, ulp

# label: (shape, axes)
AXES = {
    "scalar": ((), []),
    "vector": ((7,), [0]),
    "one": ((1,), [0]),
    "none": ((2, 3), []),
    "rows": ((5, 7), [1]),
    "columns": ((5, 7), [0]),
    "both": ((5, 7), [0, 1]),
    "negative": ((5, 7), [-1]),
    "first_negative": ((5, 7), [-2]),
    "middle": ((2, 3, 5), [1]),
    "ends": ((2, 3, 5), [0, 2]),
    "last_two": ((2, 3, 5), [1, 2]),
    "first_two": ((2, 3, 5), [0, 1]),
    "unordered": ((2, 3, 5), [2, 0]),
    "mixed_sign": ((2, 3, 5), [-1, 0]),
    "alternate": ((2, 3, 2, 3), [1, 3]),
    "alternate_even": ((2, 3, 2, 3), [0, 2]),
    "spatial": ((2, 5, 3, 4), [1, 2]),
    "rank5": ((2, 1, 3, 2, 2), [0, 2, 4]),
    "ones": ((1, 1, 1), [1]),
    "reduced_empty": ((0, 3), [0]),
    "kept_empty": ((0, 3), [1]),
    "all_empty": ((2, 0), [0, 1]),
    "1009": ((1009,), [0]),
    "37x53_rows": ((37, 53), [1]),
    "37x53_columns": ((37, 53), [0]),
}
ARGS = ("ArgMax", "ArgMin")
FEW = ["scalar", "rows", "columns", "middle", "ends", "both", "reduced_empty", "kept_empty", "1009"]


def axes_of(case):
    axes = tuple(int(a) for a in np.atleast_1d(case.inputs[1]))
    return tuple(a % case.inputs[0].ndim for a in axes) if case.inputs[0].ndim else ()


def terms_of(shape, axes):
    return int(np.prod([shape[a] for a in axes])) if axes else 1


def wide(x):
    """At double precision, complex or not."""
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def exact_prod(case):
    """The product, whose rounding errors are relative to itself."""
    x, axes = wide(case.inputs[0]), axes_of(case)
    product = np.prod(x, axis=axes, keepdims=case.attrs.get("keep_dims", False)) if axes else x
    return [(product, np.abs(product))]


def exact_norm(case):
    """The Euclidean norm, likewise."""
    x, axes = wide(case.inputs[0]), axes_of(case)
    squares = np.sum(np.abs(x) ** 2, axis=axes, keepdims=case.attrs.get("keep_dims", False)) if axes else np.abs(x) ** 2
    norm = np.sqrt(squares).astype(x.dtype)
    return [(norm, np.abs(norm))]


def exact_sum(mean):
    def reference(case):
        x, axes = wide(case.inputs[0]), axes_of(case)
        keep = case.attrs.get("keep_dims", False)
        count = terms_of(x.shape, axes) if mean else 1
        total = np.sum(x, axis=axes, keepdims=keep) if axes else x
        terms = np.sum(np.abs(x), axis=axes, keepdims=keep) if axes else np.abs(x)
        return [(np.divide(total, count), np.divide(terms, max(count, 1)))]

    return reference


def data_for(op, dtype, shape, label):
    rng = seeded(op, dtype, label)
    if op == "Mean" and dtype in INTS:
        # Sums stay in range: TensorFlow's integer mean accumulates in the dtype itself.
        high = 2 if dtype in ("int8", "uint8") else 60
        limit = min(high, 120 // max(int(np.prod(shape)), 1)) if dtype in ("int8", "uint8") else high
        return small(rng, dtype, shape, -max(limit, 1) + 1, max(limit, 1))
    if op == "EuclideanNorm" and dtype in INTS:
        # Sums of squares stay in range: the root of one that wrapped to a negative number is undefined.
        high = 2 if dtype in ("int8", "uint8") else 30
        return small(rng, dtype, shape, 0, high)
    if op == "Prod" and dtype in FLOATS + COMPLEX:
        # About 1, so that products stay in range.
        spread = 0.3 if np.prod(shape) < 40 else 0.02
        return array(wide(values(rng, dtype, shape)) * spread + 1, dtype)
    return values(rng, dtype, shape)


EXACT_RESULTS = {
    "Sum": exact_sum(False),
    "Mean": exact_sum(True),
    "Prod": exact_prod,
    "EuclideanNorm": exact_norm,
}


def reduce_case(suite, op, dtype, name, shape, axes, index="int32", keep=False):
    x = data_for(op, dtype, shape, name)
    options = {"const": [1]}
    if dtype in FLOATS + COMPLEX and op in EXACT_RESULTS:
        options |= {
            "reference": EXACT_RESULTS[op],
            "stepwise": op in ("Prod", "EuclideanNorm"),
            "terms": terms_of(shape, [a % len(shape) for a in axes] if shape else []),
        }
    suite.case(f"{dtype}_{name}", [x, np.asarray(axes, index)], {"keep_dims": keep}, **options)


def reduction_cases(suite, op, dtype):
    labels = AXES if dtype in ("float", "int32") else FEW
    for label in labels:
        shape, axes = AXES[label]
        if op == "Mean" and dtype in INTS and ("empty" in label or label == "1009"):
            continue  # 0 / 0, and sums that overflow
        reduce_case(suite, op, dtype, label, shape, axes)
    reduce_case(suite, op, dtype, "keep", (2, 3, 5), [1], keep=True)
    if dtype == "float":
        reduce_case(suite, op, dtype, "keep_all", (2, 3), [0, 1], keep=True)
        reduce_case(suite, op, dtype, "keep_none", (2, 3), [], keep=True)
        reduce_case(suite, op, dtype, "keep_empty", (2, 0), [-1], keep=True)
        reduce_case(suite, op, dtype, "int64_index", (2, 3, 5), [0, -1], "int64")
        suite.case("float_scalar_index", [data_for(op, dtype, (3, 5), "si"), np.int32(1)], const=[1], tolerance=ulp(4))
    special_rows(suite, op, dtype)


def wrapping_squares(dtype):
    """Rows whose sums of squares pass the greatest number: some wrap to a negative one."""
    info = np.iinfo(NUMPY[dtype])
    root = math.isqrt(info.max)
    rows = [[info.max, info.max], [info.max // 2, info.max // 2 + 1], [root + 1, 0], [root, root], [root, root // 2]]
    rows += [[info.min, 0], [info.min, 3], [info.max, 1], [3, 4]]
    return np.array(rows, NUMPY[dtype])


def special_rows(suite, op, dtype):
    """One special value among ordinary ones per row, and rows of specials alone."""
    if dtype not in FLOATS:
        if op == "EuclideanNorm" and dtype in INTS:
            suite.case(f"{dtype}_wraps", [wrapping_squares(dtype), np.int32([1])], const=[1])
        if op in ("Max", "Min"):
            suite.case(f"{dtype}_special", [np.stack([specials(dtype)] * 2), np.int32([1])], const=[1])
        return
    nan, inf = np.nan, np.inf
    rows = [
        [1, nan, 3, 4],
        [inf, 1, 2, 3],
        [-inf, 1, 2, 3],
        [inf, -inf, 1, 2],
        [0.0, -0.0, 0.0, -0.0],
        [-0.0, -0.0, -0.0, -0.0],
        [nan, nan, nan, nan],
        [-inf, -inf, -inf, -inf],
        [nan, inf, 1, 2],
        [1, 2, 3, nan],
    ]
    x = array(rows, dtype)
    tolerance = EXACT if op in ARGS else ulp(1)
    axis = np.int32(1) if op in ARGS else np.int32([1])
    suite.case(f"{dtype}_special", [x, axis], const=[1], tolerance=tolerance)
    suite.case(f"{dtype}_special_columns", [np.ascontiguousarray(x.T), axis - 1], const=[1], tolerance=tolerance)
    # Squares of half's denormals are left out: TensorFlow squares in half, where they vanish.
    if op not in ARGS and (op, dtype) != ("EuclideanNorm", "half"):
        suite.case(f"{dtype}_denormal", [denormals(dtype)[None, :8].copy(), axis], const=[1], tolerance=ulp(2))


def reductions(folder):
    """Sum, Mean, Prod, EuclideanNorm, Max, Min."""
    for op in ("Sum", "Mean", "Prod", "EuclideanNorm", "Max", "Min"):
        suite = Suite(folder, "reduction", op)
        for dtype in NUMBERS + (COMPLEX if op in EXACT_RESULTS else []):
            reduction_cases(suite, op, dtype)
        x = np.ones((2, 3), np.float32)
        suite.error("axis_high", [x, np.int32([2])], const=[1])
        suite.error("axis_low", [x, np.int32([-3])], const=[1])
        suite.error("axis_twice", [x, np.int32([1, 1])], const=[1])
        suite.error("axis_twice_negative", [x, np.int32([1, -1])], const=[1])
        suite.error("axis_of_scalar", [np.float32(1), np.int32([0])], const=[1])
        suite.error("dtype", [np.array([True]), np.int32([0])], const=[1])
        yield suite.finish()


def logical(folder):
    """All, Any."""
    for op in ("All", "Any"):
        suite = Suite(folder, "reduction", op)
        for label, (shape, axes) in AXES.items():
            # Mostly what does not decide the result.
            x = (np.asarray(seeded(op, label).random(shape)) < 0.2) ^ (op == "All")
            suite.case(label, [x, np.int32(axes)], const=[1])
        x = np.asarray(seeded(op, "keep").random((2, 3, 5))) < 0.5
        suite.case("keep", [x, np.int32([1])], {"keep_dims": True}, const=[1])
        suite.case("int64_index", [x, np.int64([0, -1])], const=[1])
        suite.error("axis_high", [x, np.int32([3])], const=[1])
        suite.error("dtype", [np.ones(3, np.float32), np.int32([0])], const=[1])
        yield suite.finish()


ARG_SHAPES = {
    "vector": ((7,), 0),
    "one": ((1,), 0),
    "rows": ((5, 7), 1),
    "columns": ((5, 7), 0),
    "negative": ((5, 7), -1),
    "middle": ((2, 3, 5), 1),
    "first": ((2, 3, 5), 0),
    "rank4": ((2, 3, 2, 3), 2),
    "rank5": ((2, 1, 3, 2, 2), -2),
    "kept_empty": ((0, 3), 1),
    "1009": ((1009,), 0),
    "37x53": ((37, 53), 1),
}
ARG_FEW = ["vector", "rows", "columns", "middle", "kept_empty"]


def argmax(folder):
    """ArgMax, ArgMin."""
    for op in ARGS:
        suite = Suite(folder, "reduction", op)
        arg_cases(suite, op)
        arg_errors(suite, op)
        yield suite.finish()


def arg_cases(suite, op):
    for dtype in NUMBERS + ["bool"]:
        for label in ARG_SHAPES if dtype in ("float", "int32") else ARG_FEW:
            shape, axis = ARG_SHAPES[label]
            x = values(seeded(op, dtype, label), dtype, shape)
            suite.case(f"{dtype}_{label}", [x, np.int32(axis)], const=[1])
        if dtype != "bool":
            ties = small(seeded(op, dtype, "ties"), dtype, (4, 11), 0, 3)
            suite.case(f"{dtype}_ties", [ties, np.int32(1)], const=[1])
        if dtype in FLOATS:
            special_rows(suite, op, dtype)
    x = values(seeded(op, "types"), "float", (3, 5))
    wide_only = op == "ArgMin"
    for index in ("int32", "int64") if wide_only else ("int16", "int32", "int64"):
        for out in ("int32", "int64") if wide_only else ("int16", "uint16", "int32", "int64"):
            # TensorFlow reads an int16 dimension as int32, past its end, and so refuses it at random.
            options = {"via": "int32 index", "run_as": wide_index} if index == "int16" else {}
            suite.case(f"types_{index}_{out}", [x, np.asarray(1, index)], {"output_type": out}, const=[1], **options)


def arg_errors(suite, op):
    x = values(seeded(op, "errors"), "float", (3, 5))
    suite.error("axis_high", [x, np.int32(2)], const=[1])
    suite.error("axis_low", [x, np.int32(-3)], const=[1])
    suite.error("axis_vector", [x, np.int32([0, 1])], const=[1])
    suite.error("axis_empty", [np.zeros((0, 3), np.float32), np.int32(0)], const=[1])
    suite.error("axis_of_scalar", [np.float32(1), np.int32(0)], const=[1])
    suite.error("output_type", [x, np.int32(0)], {"output_type": "float"}, const=[1])


GROUPS = [reductions, logical, argmax]
