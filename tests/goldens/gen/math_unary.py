"""The functions of one number that elementwise.py leaves."""

import mpmath
import numpy as np

from . import complexes, exact
from .data import FLOATS, INTS, NUMPY, SIGNED, array, denormals, full, normal, seeded, specials, values
from .suite import EXACT, Suite, ulp

SHORT = ("half", "bfloat16")
FEW = {"scalar": (), "empty": (0, 3), "prime": (7,), "rank3": (2, 3, 5)}


def shapes(dtype, large):
    return FEW | {str(large[dtype]): (large[dtype],)}


def long(case):
    return [np.asarray(x).astype(np.longdouble) for x in case.inputs]


def spread(scale):
    return lambda rng, dtype, shape: normal(rng, dtype, shape, scale)


def inside(rng, dtype, shape):
    """Between -1 and 1."""
    return array(rng.uniform(-0.999, 0.999, shape), dtype)


def above_one(rng, dtype, shape):
    return array(1 + np.exp(rng.standard_normal(shape) * 2), dtype)


def above_minus_one(rng, dtype, shape):
    return array(np.expm1(rng.standard_normal(shape)), dtype)


def sign(x):
    modulus = np.abs(x)
    return np.where(modulus == 0, 0, x / np.where(modulus == 0, 1, modulus))


def by_mpmath(function):
    return lambda x: exact.each(function, x)


# op: (inputs, function at extended precision, ULPs, edges, complex function, its ULPs)
ELEMENTARY = {
    "Reciprocal": (spread(1), lambda x: 1 / x, 1, [1e-30, 3.0, 7.0], lambda x: 1 / x, 4),
    "Inv": (spread(1), lambda x: 1 / x, 1, [1e-30, 3.0, 7.0], lambda x: 1 / x, 4),
    "Expm1": (spread(2), np.expm1, 4, [1e-8, -1e-8, 1e-3, 88.0, 89.0, -20.0, 700.0, 710.0], np.expm1, 4),
    "Log1p": (above_minus_one, np.log1p, 4, [1e-8, -1e-8, 1e-3, 1e30, -0.999, -1.0, -1.5], np.log1p, 4),
    "Sin": (spread(3), np.sin, 4, [1e-8, 3.1415926, 6.2831853, 100.0, 1e4, -1e4], np.sin, 4),
    "Cos": (spread(3), np.cos, 4, [1e-8, 1.5707963, 4.712389, 100.0, 1e4, -1e4], np.cos, 4),
    "Tan": (spread(3), np.tan, 4, [1e-8, 1.5707, 3.1415926, 100.0, 1e4], np.tan, 4),
    "Asin": (inside, np.arcsin, 4, [1e-8, 0.5, -0.5, 0.9999, 1.5], np.arcsin, 4),
    "Acos": (inside, np.arccos, 4, [1e-8, 0.5, -0.5, 0.9999, 1.5], np.arccos, 4),
    "Atan": (spread(2), np.arctan, 4, [1e-8, 0.4, 1.0, 2.5, 1e10, -1e10], np.arctan, 4),
    "Sinh": (spread(3), np.sinh, 4, [1e-8, 1e-3, 20.0, 88.0, 90.0, 709.0, 711.0], np.sinh, 4),
    "Cosh": (spread(3), np.cosh, 4, [1e-8, 1e-3, 20.0, 88.0, 90.0, 709.0, 711.0], np.cosh, 4),
    "Asinh": (spread(5), np.arcsinh, 4, [1e-8, 1e-3, 1e10, -1e10, 1e30], np.arcsinh, 4),
    "Acosh": (above_one, np.arccosh, 4, [1.0, 1.0001, 1e10, 1e30, 0.5], np.arccosh, 4),
    "Atanh": (inside, np.arctanh, 4, [1e-8, 1e-3, 0.9999, 1.5], np.arctanh, 4),
    "Erf": (spread(1), by_mpmath(mpmath.erf), 4, [1e-8, 1e-3, 0.8, 1.2, 3.9, 4.1, 10.0], None, 0),
    "Erfc": (spread(1.5), by_mpmath(exact.erfc), 4, [1e-8, 1e-3, 0.8, 1.2, 3.9, 9.0, 30.0], None, 0),
}
LARGE = {"half": 101, "bfloat16": 101, "float": 1961, "double": 307}
# Functions with branch cuts or poles at the special values.
WITHOUT_SPECIALS = ("Reciprocal", "Inv", "Log1p", "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh", "Tan")
# Far from zero TensorFlow's own reduction loses all digits; reciprocals of the largest numbers are denormal.
PERIODIC = ("Sin", "Cos", "Tan")


def special_inputs(op, dtype):
    x = specials(dtype)
    if op == "Erf" and dtype == "double":
        # Of which TensorFlow's polynomial makes NaN.
        return x[np.abs(x) < 1e300]
    limit = 4 if op in PERIODIC else 1e3 if op in ("Reciprocal", "Inv") else np.inf
    return x[~(np.abs(x.astype(np.float64)) > limit) | np.isinf(x)]


def elementary(folder):
    for op, (inputs, function, ulps, edges, complex_function, complex_ulps) in ELEMENTARY.items():
        suite = Suite(folder, "math_unary", op)
        for dtype in FLOATS:
            n = 2 if dtype in SHORT and ulps > 1 else ulps
            options = {"tolerance": ulp(n), "reference": lambda case, f=function: [f(long(case)[0])]}
            for label, shape in shapes(dtype, LARGE).items():
                suite.case(f"{dtype}_{label}", [inputs(seeded(op, dtype, label), dtype, shape)], **dict(options))
            suite.case(f"{dtype}_special", [special_inputs(op, dtype)], **dict(options))
            suite.case(f"{dtype}_special_wide", [np.tile(special_inputs(op, dtype), 5)], **dict(options))
            suite.case(f"{dtype}_edges", [array(edges, dtype)], **dict(options))
            if op in ("Erf", "Erfc"):
                suite.case(f"{dtype}_nan", [array(np.tile([np.nan, 1.5, -0.5], 7), dtype)], **dict(options))
            if op in PERIODIC and dtype in ("float", "double"):
                huge = np.append(np.logspace(6, 30, 40), [999999, 1000001, -1e12])
                suite.case(f"{dtype}_huge", [array(huge, dtype)], **dict(options))
        if complex_function:
            complexes.unary(suite, complex_function, complex_ulps, op not in WITHOUT_SPECIALS)
        suite.error("dtype", [np.array([True])])
        yield suite.finish()


def tails(rng, dtype, shape):
    """Between -1 and 1, many of them near the ends."""
    x = rng.uniform(-1, 1, shape)
    return array(np.where(rng.random(shape) < 0.5, x, np.sign(x) * -np.expm1(-5 * np.abs(x))), dtype)


def probabilities(rng, dtype, shape):
    return array(np.exp(-np.abs(rng.standard_normal(shape)) * 4), dtype)


def away_from_poles(rng, dtype, shape):
    """Of every magnitude; where negative, not near a whole number."""
    x = rng.standard_normal(shape) * 4
    below = np.floor(x) + 0.2 + 0.6 * rng.random(shape)
    return array(np.where(x < 0, below, np.exp(x)), dtype)


SPECIAL = {
    "Erfinv": (
        ("float", "double"),
        tails,
        (exact.erfinv, exact.erfinv_slope),
        [1e-6, 0.5, 0.97, 0.9999, 1.0, -1.0, 1.5],
    ),
    "Ndtri": (
        ("float", "double"),
        probabilities,
        (exact.ndtri, exact.ndtri_slope),
        [0.5, 1e-20, 0.0, 1.0, -0.5, 1.5, 0.9999],
    ),
    "Lgamma": (
        ("half", "float", "double"),
        away_from_poles,
        (exact.lgamma, exact.digamma),
        [1.0, 2.0, 1.5, 1e-3, 100.0, -1.0],
    ),
    "Digamma": (
        ("half", "float", "double"),
        away_from_poles,
        (exact.digamma, exact.trigamma),
        [1.0, 1.4616321, 1e-3, 100.0, -1.0],
    ),
}
# The last numbers before the ends of the domain.
ENDS = {
    "Erfinv": lambda info: [info.epsneg - 1, info.eps - 1, 1 - info.eps, 1 - 2 * info.eps],
    "Ndtri": lambda info: [info.tiny, 2 * info.tiny, 5 * info.tiny, info.tiny / info.eps, 1 - info.epsneg, 1 - info.eps],
}
# Enough floats that their work is worth more than one thread.
POINTS = {"half": 61, "float": 2111, "double": 201}


def special(folder):
    for op, (dtypes, inputs, functions, edges) in SPECIAL.items():
        suite = Suite(folder, "math_unary", op)
        for dtype in dtypes:
            options = {
                "reference": exact.conditioned(*functions, offset=op == "Erfinv"),
                "terms": 1,
                "worst": 64.0,
                "reason": "relative to |f(x)| + |x f'(x)|",
            }
            for label, shape in shapes(dtype, POINTS).items():
                suite.case(f"{dtype}_{label}", [inputs(seeded(op, dtype, label), dtype, shape)], **dict(options))
            suite.case(f"{dtype}_edges", [array(edges, dtype)], **dict(options))
            if op in ENDS:
                suite.case(f"{dtype}_ends", [array(ENDS[op](np.finfo(NUMPY[dtype])), dtype)], **dict(options))
            extremes = array([np.nan, np.inf, -np.inf], dtype)
            suite.case(f"{dtype}_special", [extremes], tolerance=EXACT)
        suite.error("dtype", [np.array([True])])
        yield suite.finish()


# op: (dtypes, whether denormals are told apart from zero)
EXACTLY = {
    "Abs": (FLOATS + SIGNED, True),
    "Sign": (FLOATS + SIGNED, False),
    "Floor": (FLOATS, False),
    "Ceil": (FLOATS, False),
    "Round": (FLOATS + ["int32", "int64"], False),
    "Rint": (["float", "double"], False),
    "IsNan": (FLOATS, True),
    "IsInf": (FLOATS, True),
    "IsFinite": (FLOATS, True),
    "LogicalNot": (["bool"], False),
    "Invert": (INTS, False),
    "PopulationCount": (INTS, False),
}
HALVES = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49, -0.51, 3.999, 1e9, -1e9, 8388607.5, 8388608.0]


def exactly(folder):
    """Ops whose results are not rounded."""
    for op, (dtypes, tiny) in EXACTLY.items():
        suite = Suite(folder, "math_unary", op)
        for dtype in dtypes:
            if op == "Round" and dtype in INTS:
                # TensorFlow makes 0 of every integer.
                suite.case(f"{dtype}_zeros", [array(np.zeros((2, 3)), dtype)])
                continue
            for label, shape in (FEW | {"307": (307,)}).items():
                rng = seeded(op, dtype, label)
                x = normal(rng, dtype, shape, 10) if dtype in FLOATS else values(rng, dtype, shape)
                suite.case(f"{dtype}_{label}", [x])
            if dtype == "bool":
                continue
            suite.case(f"{dtype}_special", [specials(dtype)], tolerance=EXACT)
            if dtype in FLOATS:
                suite.case(f"{dtype}_edges", [array(HALVES, dtype)])
                if tiny:
                    suite.case(f"{dtype}_denormal", [denormals(dtype)])
        if op == "Sign":
            complexes.unary(suite, sign)
        suite.error("dtype", [np.array([b"a"])])
        yield suite.finish()


def parts(folder):
    """Parts of complex numbers, and complex numbers of parts."""
    pairs = (("complex64", "float"), ("complex128", "double"))
    functions = {
        "Real": None,
        "Imag": None,
        "Conj": None,
        "ComplexAbs": np.abs,
        "Angle": np.angle,
    }
    for op, function in functions.items():
        suite = Suite(folder, "math_unary", op)
        for dtype, part in pairs:
            attrs = {"T": dtype} | ({} if op == "Conj" else {"Tout": part})
            options = {"tolerance": EXACT}
            if function:
                options = {
                    "tolerance": ulp(4),
                    "reference": lambda case, f=function: [f(complexes.long(case.inputs[0]))],
                }
            for label, shape in complexes.SHAPES.items():
                x = normal(seeded(op, dtype, label), dtype, shape)
                suite.case(f"{dtype}_{label}", [x], attrs, **dict(options))
            suite.case(f"{dtype}_special", [specials(dtype)], attrs, **dict(options))
        suite.error("dtype", [np.float32([1])])
        yield suite.finish()
    suite = Suite(folder, "math_unary", "Complex")
    for dtype, part in pairs:
        for label, (left, right) in complexes.PAIRS.items():
            rng = seeded("Complex", dtype, label)
            inputs = [normal(rng, part, left), normal(rng, part, right)]
            suite.case(f"{dtype}_{label}", inputs, {"Tout": dtype})
        x = specials(part)
        suite.case(f"{dtype}_special", [x, x[::-1].copy()], {"Tout": dtype})
    suite.error("shapes", [np.float32([1, 2]), np.float32([1, 2, 3])])
    yield suite.finish()


GROUPS = [elementary, special, exactly, parts]
