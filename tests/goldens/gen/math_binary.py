"""The functions of two and three numbers that elementwise.py leaves."""

import numpy as np

from . import complexes, exact
from .data import (
    COMPLEX,
    FLOATS,
    INTS,
    NUMBERS,
    QUANTISED,
    SIGNED,
    UNSIGNED,
    ANY,
    array,
    denormals,
    full,
    normal,
    seeded,
    small,
    specials,
    strings,
    values,
)
from .elementwise import BROADCASTS, binary_errors
from .suite import EXACT, Suite, ulp

FEW = ["same", "scalar_right", "scalar_left", "row", "column", "outer", "empty_one"]
SHORT = ("half", "bfloat16")


def labels(dtype):
    return BROADCASTS if dtype == "float" else FEW


def long(case):
    return [np.asarray(x).astype(np.longdouble) for x in case.inputs]


def measured(function, dtype, ulps):
    n = 2 if dtype in SHORT and ulps > 1 else ulps
    return {"tolerance": ulp(n), "reference": lambda case: [function(*long(case))]}


def cases(suite, dtype, left, right, options, attrs=None, large=True):
    """Broadcasts and one longer pair; `left` and `right` make an input of a shape."""
    for label in labels(dtype):
        rng = seeded(suite.op, dtype, label)
        x, y = BROADCASTS[label]
        suite.case(f"{dtype}_{label}", [left(rng, dtype, x), right(rng, dtype, y)], attrs, **dict(options))
    if large:
        n = 1009 if dtype == "float" else 101
        rng = seeded(suite.op, dtype, "large")
        suite.case(f"{dtype}_{n}", [left(rng, dtype, (n,)), right(rng, dtype, (n,))], attrs, **dict(options))


def all_pairs(dtype, keep=lambda x: x == x):
    x = specials(dtype)
    x = x[keep(x)] if keep else x
    return [side.ravel() for side in np.meshgrid(x, x, indexing="ij")]


def divisors(rng, dtype, shape):
    """Whole numbers but 0, and but -1, by which the least integer cannot be divided."""
    if dtype in FLOATS:
        x = normal(rng, dtype, shape).astype(np.float64)
        return array(np.sign(x) * (np.abs(x) + 0.1), dtype)
    x = rng.integers(2, 100, shape)
    return array(x if dtype in UNSIGNED else x * rng.choice([-1, 1], shape), dtype)


def dividends(rng, dtype, shape):
    return normal(rng, dtype, shape, 20) if dtype in FLOATS else full(rng, dtype, shape)


DIVISION = {
    "Div": NUMBERS,
    "TruncateDiv": NUMBERS,
    "FloorDiv": NUMBERS,
    "FloorMod": NUMBERS,
    "Mod": ["float", "double", "int32", "int64"],
    "TruncateMod": ["float", "double", "int32", "int64"],
}


def division(folder):
    for op, dtypes in DIVISION.items():
        suite = Suite(folder, "math_binary", op)
        for dtype in dtypes:
            options = {"tolerance": ulp(1) if op == "Div" and dtype in FLOATS else EXACT}
            cases(suite, dtype, dividends, divisors, options, large=dtype in FLOATS)
            if dtype in FLOATS:
                # Quotients beyond what the type holds are infinite or not according to how they are computed.
                x, y = all_pairs(dtype, lambda x: ~(np.abs(x.astype(np.float64)) < 0.1) | (x == 0))
                suite.case(f"{dtype}_special", [x, y], **options)
            else:
                y = [1, 2, 3, 7] + ([-2, -3] if dtype in SIGNED else [])
                suite.case(f"{dtype}_special", [specials(dtype)[:, None], array(y, dtype)[None]], **options)
        if op == "Div":
            complexes.binary(suite, np.divide)
        for dtype in ("int32", "uint8", "int64"):
            if dtype in dtypes:
                x = array([1, 2, 3], dtype)
                suite.error(f"{dtype}_zero", [x, array([1, 0, 1], dtype)])
                suite.error(f"{dtype}_zero_scalar", [x, array(0, dtype)])
                suite.error(f"{dtype}_zero_row", [x[None] * array([[1], [1]], dtype), array([1, 0, 1], dtype)])
                suite.case(f"{dtype}_zero_of_nothing", [x[:0], array([0], dtype)])
        binary_errors(suite, "float")
        yield suite.finish()


def split_shapes(suite):
    """Outputs whose work is worth more than one thread, of every way to split it."""
    for label, x, y in (("same", 5003, 5003), ("scalar", 5003, ()), ("left", (), 5003), ("column", (83, 61), (83, 1))):
        rng = seeded("Pow", "split", label)
        suite.case(f"int16_split_{label}", [small(rng, "int16", x), array(rng.integers(0, 5, y), "int16")])


def powers(folder):
    """Pow."""
    suite = Suite(folder, "math_binary", "Pow")
    bases = lambda rng, dtype, shape: array(np.exp(rng.standard_normal(shape)), dtype)
    for dtype in FLOATS:
        options = measured(np.power, dtype, 4)
        cases(suite, dtype, bases, lambda rng, dtype, shape: normal(rng, dtype, shape, 2), options)
        x, y = all_pairs(dtype, lambda x: ~(np.abs(x.astype(np.float64)) > 1e3) | np.isinf(x))
        suite.case(f"{dtype}_special", [x, y], **dict(options))
        whole = np.array([-3, -2, -1, 0, 1, 2, 3, 4])
        suite.case(f"{dtype}_whole", [array(whole[:, None] * 0.75, dtype), array(whole, dtype)], **dict(options))
        if dtype in SHORT:
            # An exponent is not flushed, as it is of float and double in vector registers: it is not 0, to which
            # everything is 1.
            all_bases = array([np.nan, -2, -1, 0, -0.0, 1, 2, np.inf, -np.inf, -0.5], dtype)
            tiny = denormals(dtype)[:7]
            suite.case(f"{dtype}_exponent_denormal", [np.tile(all_bases, 4)[:, None], tiny], tolerance=ulp(0))
    for dtype in SIGNED:
        exponents = lambda rng, dtype, shape: array(rng.integers(0, 9, shape), dtype)
        cases(suite, dtype, lambda rng, dtype, shape: small(rng, dtype, shape), exponents, {})
        suite.case(f"{dtype}_wraps", [specials(dtype)[:, None], array([0, 1, 2, 3, 31, 100], dtype)])
        suite.error(f"{dtype}_negative", [array([1, 2], dtype), array([1, -1], dtype)])
    split_shapes(suite)
    suite.error("negative_scalar", [np.int32([1, 2]), np.int32(-1)])
    complexes.binary(suite, np.power, special=False)
    binary_errors(suite, "float")
    yield suite.finish()


def xlogy(x, y):
    return np.where(x == 0, 0, x * np.log(y))


def xlog1py(x, y):
    return np.where(x == 0, 0, x * np.log1p(y))


def xdivy(x, y):
    return np.where(x == 0, 0, x / y)


def mul_no_nan(x, y):
    return np.where(y == 0, 0, x * y)


def div_no_nan(x, y):
    return np.where(y == 0, 0, x / np.where(y == 0, 1, y))


def positive(rng, dtype, shape):
    return array(np.exp(rng.standard_normal(shape)), dtype)


def sparse(rng, dtype, shape):
    """Every third value 0."""
    return array(rng.standard_normal(shape) * (rng.random(shape) > 0.3), dtype)


# op: (right inputs, function, ULPs, whether overflow is left out of the special pairs)
FLOATING = {
    "SquaredDifference": (normal, lambda x, y: (x - y) ** 2, 2),
    "Atan2": (normal, np.arctan2, 4),
    "Xdivy": (divisors, xdivy, 1),
    "Xlogy": (positive, xlogy, 4),
    "Xlog1py": (positive, xlog1py, 4),
    "MulNoNan": (sparse, mul_no_nan, 1),
    "DivNoNan": (sparse, div_no_nan, 1),
}


def in_range(function, x, y, dtype):
    """Pairs whose result is not beyond the range, nor denormal."""
    with np.errstate(all="ignore"):
        result = np.abs(function(x.astype(np.longdouble), y.astype(np.longdouble)))
        fits = array(result.astype(np.float64), dtype).astype(np.float64)
    tiny = np.abs(specials(dtype)[-1].astype(np.float64))
    keep = ~np.isfinite(result) | (np.isfinite(fits) & ((result == 0) | (fits > tiny)))
    return x[keep], y[keep]


def floating(folder):
    for op, (right, function, ulps) in FLOATING.items():
        suite = Suite(folder, "math_binary", op)
        for dtype in FLOATS:
            options = measured(function, dtype, ulps)
            left = normal if op in ("SquaredDifference", "Atan2") else sparse
            cases(suite, dtype, left, right, options)
            suite.case(f"{dtype}_special", list(in_range(function, *all_pairs(dtype), dtype)), **dict(options))
        if op == "SquaredDifference":
            for dtype in ("int32", "int64"):
                cases(suite, dtype, values, values, {})
                suite.case(f"{dtype}_special", all_pairs(dtype))
            complexes.binary(suite, lambda x, y: np.abs(x - y) ** 2, 4)
        elif op != "Atan2":
            complexes.binary(suite, function, special=op not in ("Xlogy", "Xlog1py"))
        binary_errors(suite, "float")
        yield suite.finish()


def next_after(folder):
    suite = Suite(folder, "math_binary", "NextAfter")
    for dtype in ("float", "double"):
        cases(suite, dtype, normal, normal, {})
        x = specials(dtype)
        # The neighbours of zero and of the smallest number are denormal.
        x = x[(np.abs(x) >= 0.5) | np.isnan(x)]
        suite.case(f"{dtype}_special", [side.ravel() for side in np.meshgrid(x, specials(dtype), indexing="ij")])
    binary_errors(suite, "float")
    yield suite.finish()


def orders(rng, dtype, shape):
    return array(np.exp(rng.standard_normal(shape)), dtype)


def beyond_one(rng, dtype, shape):
    return array(1.1 + np.exp(rng.standard_normal(shape)), dtype)


def few_orders(rng, dtype, shape):
    return array(rng.integers(0, 5, shape), dtype)


SPECIAL = {
    "Igamma": (orders, orders, (exact.igamma, exact.igamma_by_order, exact.gamma_density)),
    "Igammac": (orders, orders, (exact.igammac, exact.igamma_by_order, exact.gamma_density)),
    "Zeta": (beyond_one, orders, (exact.zeta, exact.zeta_by_power, exact.zeta_by_offset)),
    "Polygamma": (few_orders, orders, (exact.polygamma, None, exact.polygamma_slope)),
}
INF, NAN = np.inf, np.nan
POLES = {
    "Igamma": ([0, 0, 1, 1, -1, 1, INF, 2, NAN, 2], [0, 1, 0, -1, 1, INF, 1, INF, 1, NAN]),
    "Igammac": ([0, 0, 1, 1, -1, 1, INF, 2, NAN, 2], [0, 1, 0, -1, 1, INF, 1, INF, 1, NAN]),
    "Zeta": ([1, 0.5, 2, 2, 2, 1.5, NAN, 2, 0, INF, 3, 2.5], [1, 1, 0, -1, INF, -0.5, 1, NAN, 1, 2, -2, -2.5]),
    "Polygamma": ([-1, 0.5, 1, 3, 0, NAN, 1], [1, 1, 0, -1, 0, 1, NAN]),
}


def special(folder):
    for op, (left, right, functions) in SPECIAL.items():
        suite = Suite(folder, "math_binary", op)
        for dtype in ("float", "double"):
            options = {
                "reference": exact.conditioned(*functions),
                "terms": 1,
                "worst": 64.0,
                "reason": "relative to |f| + |x f'| of each input x",
            }
            for label in FEW:
                rng = seeded(op, dtype, label)
                x, y = BROADCASTS[label]
                suite.case(f"{dtype}_{label}", [left(rng, dtype, x), right(rng, dtype, y)], **dict(options))
            rng = seeded(op, dtype, "101")
            suite.case(f"{dtype}_101", [left(rng, dtype, (101,)), right(rng, dtype, (101,))], **dict(options))
            suite.case(f"{dtype}_special", [array(side, dtype) for side in POLES[op]])
            if op.startswith("Igamma"):
                # TensorFlow computes x^a e^-x / Gamma(a) from three large terms: of greater a it loses digits.
                a = np.exp(rng.uniform(0, 2.5, 61))
                x = a * np.maximum(1 + rng.standard_normal(61) * 1.5 / np.sqrt(a), 0.05)
                suite.case(f"{dtype}_near", [array(a, dtype), array(x, dtype)], **dict(options))
        binary_errors(suite, "float")
        yield suite.finish()


def truths(rng, dtype, shape):
    return np.asarray(rng.integers(0, 2, shape)).astype(np.bool_)


def distances(rng, dtype, shape):
    bits = np.iinfo(array(0, dtype).dtype).bits
    return array(rng.integers(0 if dtype in UNSIGNED else -3, min(bits + 3, 100), shape), dtype)


def bits(folder):
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"):
        suite = Suite(folder, "math_binary", op)
        for dtype in INTS:
            cases(suite, dtype, full, distances if op.endswith("Shift") else full, {})
            suite.case(f"{dtype}_special", [specials(dtype)[:, None], specials(dtype)[None]])
        suite.error("shapes", [np.int32([1, 2, 3]), np.int32([1, 2])])
        suite.error("dtype", [np.float32([1]), np.float32([1])])
        yield suite.finish()
    for op in ("LogicalAnd", "LogicalOr"):
        suite = Suite(folder, "math_binary", op)
        for label, (x, y) in BROADCASTS.items():
            rng = seeded(op, label)
            suite.case(label, [truths(rng, "bool", x), truths(rng, "bool", y)])
        suite.error("shapes", [np.array([True] * 3), np.array([True] * 2)])
        yield suite.finish()


def close(rng, dtype, shape):
    """Values of which many are equal."""
    if dtype == "string":
        return np.asarray(rng.choice([b"", b"a", b"ab", b"b"], shape))
    if dtype in QUANTISED or dtype == "bool":
        return values(rng, dtype, shape)
    if dtype in COMPLEX:
        return array(rng.integers(0, 2, shape) + 1j * rng.integers(0, 2, shape), dtype)
    return small(rng, dtype, shape, -2, 3)


def comparisons(folder):
    for op in ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"):
        suite = Suite(folder, "math_binary", op)
        equality = op.endswith("qual") and op in ("Equal", "NotEqual")
        for dtype in ANY + COMPLEX if equality else NUMBERS:
            cases(suite, dtype, close, close, {}, large=dtype in ("float", "double", "string"))
            if dtype in NUMBERS:
                suite.case(f"{dtype}_special", all_pairs(dtype, None))
            if dtype in FLOATS:
                tiny = denormals(dtype)
                suite.case(f"{dtype}_denormal", [tiny, np.zeros_like(tiny)])
        if equality:
            for label, (x, y) in {"differ": ((3,), (2,)), "differ2": ((2, 3), (2, 2)), "same": ((2, 3), (3,))}.items():
                rng = seeded(op, label)
                suite.case(
                    f"loose_{label}",
                    [close(rng, "float", x), close(rng, "float", y)],
                    {"incompatible_shape_error": False},
                )
            suite.error("shapes", [np.float32([1, 2, 3]), np.float32([1, 2])])
        else:
            binary_errors(suite, "float")
        yield suite.finish()
    suite = Suite(folder, "math_binary", "ApproximateEqual")
    for dtype in ("float", "double"):
        for label, shape in {"scalar": (), "empty": (0, 2), "rank3": (2, 3, 5), "101": (101,)}.items():
            rng = seeded("ApproximateEqual", dtype, label)
            x = normal(rng, dtype, shape)
            y = array(x + rng.choice([0, 1e-6, -1e-6, 1e-3, -1e-3, 0.4], shape), dtype)
            suite.case(f"{dtype}_{label}", [x, y])
            suite.case(f"{dtype}_{label}_wide", [x, y], {"tolerance": 0.01})
        suite.case(f"{dtype}_special", all_pairs(dtype))
    suite.error("shapes", [np.float32([1, 2]), np.float32([1])])
    yield suite.finish()


def accumulate(folder):
    suite = Suite(folder, "math_binary", "AccumulateNV2")
    for dtype in NUMBERS + COMPLEX:
        for count in (1, 2, 5):
            inputs = [values(seeded("AccumulateNV2", dtype, count, i), dtype, (2, 7)) for i in range(count)]
            options = {}
            if dtype in FLOATS + COMPLEX and count > 1:
                # TensorFlow adds in whatever order its inputs come.
                options = {"reference": sum_reference, "terms": count}
            suite.case(f"{dtype}_n{count}", inputs, {"shape": [2, 7]}, **options)
    suite.case("float_empty", [np.zeros((0, 3), np.float32)] * 2, {"shape": [0, 3]})
    yield suite.finish()


def sum_reference(case):
    wide = np.complex128 if np.iscomplexobj(case.inputs[0]) else np.float64
    inputs = [np.asarray(x).astype(wide) for x in case.inputs]
    return [(sum(inputs), sum(np.abs(x) for x in inputs))]


SELECTED = ["bool"] + NUMBERS + COMPLEX + ["string"]


def selection(folder):
    suite = Suite(folder, "math_binary", "Select")
    shapes = {
        "scalar": ((), ()),
        "scalar_rank2": ((), (3, 2)),
        "vector": ((7,), (7,)),
        "rows": ((3,), (3, 2, 2)),
        "same": ((2, 3), (2, 3)),
        "empty": ((0,), (0, 2)),
        "empty_rows": ((2,), (2, 0)),
    }
    for dtype in SELECTED:
        for label, (condition, shape) in shapes.items():
            rng = seeded("Select", dtype, label)
            inputs = [truths(rng, "bool", condition), values(rng, dtype, shape), values(rng, dtype, shape)]
            suite.case(f"{dtype}_{label}", inputs)
    for label, (condition, t, e) in {
        "values": ((2,), (2,), (3,)),
        "rows": ((3,), (2, 3), (2, 3)),
        "rank": ((2, 3), (2,), (2,)),
        "condition": ((2, 2), (2, 3), (2, 3)),
    }.items():
        rng = seeded("Select", "error", label)
        suite.error(label, [truths(rng, "bool", condition), normal(rng, "float", t), normal(rng, "float", e)])
    yield suite.finish()
    suite = Suite(folder, "math_binary", "SelectV2")
    shapes = {
        "scalars": ((), (), ()),
        "same": ((2, 3), (2, 3), (2, 3)),
        "scalar": ((), (5,), (5,)),
        "values": ((7,), (), ()),
        "row": ((3,), (2, 3), (2, 3)),
        "column": ((2, 1), (2, 3), (3,)),
        "all": ((2, 1, 1), (3, 1), (4,)),
        "empty": ((0,), (1,), ()),
        "up": ((4,), (3, 1), (2, 1, 1)),
    }
    for dtype in SELECTED:
        few = ("same", "scalar", "row", "all")
        for label, (condition, t, e) in shapes.items():
            if dtype not in ("float", "string", "complex128") and label not in few:
                continue
            rng = seeded("SelectV2", dtype, label)
            inputs = [truths(rng, "bool", condition), values(rng, dtype, t), values(rng, dtype, e)]
            suite.case(f"{dtype}_{label}", inputs)
    rng = seeded("SelectV2", "large")
    suite.case(
        "float_1009", [truths(rng, "bool", (1009,)), normal(rng, "float", (1009,)), normal(rng, "float", (1009,))]
    )
    for label, shapes in {"same": ((90001,), (90001,), ()), "column": ((301, 1), (1, 300), ())}.items():
        inputs = [truths(rng, "bool", shapes[0]), *(array(rng.integers(0, 3, shape), "uint8") for shape in shapes[1:])]
        suite.case(f"uint8_split_{label}", inputs)
    for label, (condition, t, e) in {"shapes": ((3,), (2,), (2,)), "values": ((), (3,), (2,))}.items():
        suite.error(label, [truths(rng, "bool", condition), normal(rng, "float", t), normal(rng, "float", e)])
    yield suite.finish()


CLIPPED = FLOATS + SIGNED + ["uint8", "uint16"] + COMPLEX


def clip(folder):
    suite = Suite(folder, "math_binary", "ClipByValue")
    shapes = {"scalars": (), "same": (2, 3), "prime": (7,), "empty": (0, 2)}
    for dtype in CLIPPED:
        for label, shape in shapes.items():
            for low, high in ((0, 0), (0, 1), (1, 0), (1, 1)) if dtype in ("float", "int32") else ((0, 0), (1, 1)):
                rng = seeded("ClipByValue", dtype, label, low, high)
                x = values(rng, dtype, shape)
                limits = [
                    small(rng, "int32", shape if side else (), 0, 2) + 2 * at for at, side in enumerate((low, high))
                ]
                suite.case(f"{dtype}_{label}_{low}{high}", [x, *(array(limit, dtype) for limit in limits)])
        if dtype in FLOATS:
            x = specials(dtype)
            for name, low, high in (("range", -1, 2), ("crossed", 3, 1), ("nan_low", NAN, 1), ("nan_high", -1, NAN)):
                suite.case(f"{dtype}_{name}", [x, array(low, dtype), array(high, dtype)], tolerance=ulp(0))
    x = np.float32([[1, 2], [3, 4]])
    suite.error("row", [x, np.float32([1, 2]), np.float32(3)])
    suite.error("one", [x, np.float32(1), np.float32([3])])
    suite.error("shapes", [x, np.float32([1, 2, 3]), np.float32([1])])
    yield suite.finish()


def bitcast(folder):
    suite = Suite(folder, "math_binary", "Bitcast")
    size = {"half": 2, "bfloat16": 2, "float": 4, "double": 8, "complex64": 8, "complex128": 16}
    size |= {name: np.dtype(name).itemsize for name in INTS} | {
        name: np.dtype(of).itemsize for name, of in QUANTISED.items()
    }
    for source in size:
        for target in size:
            ratio = size[target] // size[source]
            shape = (2, 3) if ratio <= 1 else (2, ratio)
            x = values(seeded("Bitcast", source, target), source, shape)
            suite.case(f"{source}_to_{target}", [x], {"type": target})
    x = values(seeded("Bitcast", "shapes"), "float", ())
    suite.case("scalar_splits", [x], {"type": "uint8"})
    suite.case("scalar_stays", [x], {"type": "int32"})
    suite.case("vector_joins", [values(seeded("Bitcast", "joins"), "uint8", (4,))], {"type": "float"})
    suite.case("empty", [np.zeros((0, 4), np.uint8)], {"type": "float"})
    suite.error("last", [np.uint8([1, 2, 3])], {"type": "float"})
    suite.error("scalar", [np.uint8(1)], {"type": "float"})
    yield suite.finish()


GROUPS = [division, powers, floating, next_after, special, bits, comparisons, accumulate, selection, clip, bitcast]
