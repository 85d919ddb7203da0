"""Unary and binary arithmetic, AddN, activations."""

import numpy as np

from . import complexes
from .data import (
    COMPLEX,
    FLOATS,
    INTS,
    NUMBERS,
    SIGNED,
    array,
    denormals,
    finite_extremes,
    normal,
    seeded,
    specials,
    strings,
    values,
)
from .suite import EXACT, Suite, ulp

SHAPES = {
    "scalar": (),
    "one": (1,),
    "empty": (0,),
    "empty2": (3, 0),
    "prime": (7,),
    "rank3": (2, 3, 5),
    "ones": (1, 1, 1),
}
LARGE = {"1009": (1009,), "37x53": (37, 53)}


def long(case):
    """The inputs at extended precision."""
    return [np.asarray(x).astype(np.longdouble) for x in case.inputs]


def exact_unary(function):
    return lambda case: [function(*long(case))]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# op: (dtypes, scale and offset of normal inputs, function, ULPs in float and double, in half and bfloat16).
# The ULPs of the short dtypes allow for a result computed in float and rounded once.
UNARY = {
    "Neg": (FLOATS + SIGNED, (1, 0), None, 0, 0),
    "Square": (NUMBERS, (1, 0), np.square, 0, 0),
    "Sqrt": (FLOATS, None, np.sqrt, 1, 1),
    "Rsqrt": (FLOATS, None, lambda x: 1 / np.sqrt(x), 4, 2),
    "Exp": (FLOATS, (3, 0), np.exp, 4, 2),
    "Log": (FLOATS, None, np.log, 4, 2),
    "Tanh": (FLOATS, (2, 0), np.tanh, 4, 2),
    "Sigmoid": (FLOATS, (4, 0), sigmoid, 4, 2),
}


def unary(folder):
    """math_unary."""
    for op, (dtypes, spread, function, ulps, short_ulps) in UNARY.items():
        suite = Suite(folder, "math_unary", op)
        for dtype in dtypes:
            exact = dtype in INTS or ulps == 0 and op == "Neg"
            n = short_ulps if dtype in ("half", "bfloat16") else ulps
            options = {} if exact else {"tolerance": ulp(n), "reference": exact_unary(function)}
            unary_shapes(suite, op, dtype, spread, options)
            unary_values(suite, op, dtype, options)
        # Of zero some of these are infinite, which complex numbers have many of.
        complexes.unary(suite, None if op == "Neg" else function, special=op not in ("Rsqrt", "Log"))
        suite.error("dtype", [np.array([True])])
        suite.error("string", [np.array([b"a"])])
        yield suite.finish()


def unary_shapes(suite, op, dtype, spread, options):
    shapes = SHAPES | (LARGE if dtype in ("float",) else {"1009": (1009,)} if dtype in FLOATS else {"67": (67,)})
    for label, shape in shapes.items():
        rng = seeded(op, dtype, label)
        if dtype in INTS:
            x = values(rng, dtype, shape)
        elif spread is None:  # positive numbers over many magnitudes
            x = array(np.exp(rng.standard_normal(shape) * 3), dtype)
        else:
            x = normal(rng, dtype, shape, *spread)
        suite.case(f"{dtype}_{label}", [x], **dict(options))


# Where results leave the range, and where approximations switch over.
EDGES = {
    "Exp": [88.0, 88.7, 89.0, -87.0, -104.0, 709.7, 710.0, -708.0, -746.0, 11.0, 11.1, 1e-8, -1e-8],
    "Log": [0.99, 1.01, 1.0000001, 2.0, 10.0, -1.0, 1e-3, 1e30],
    "Tanh": [1e-4, -1e-4, 4e-4, 0.6, 7.9, 8.0, 9.0, -9.0, 20.0, -20.0, 100.0],
    "Sigmoid": [-9.0, 9.0, -16.7, 16.7, 18.0, -18.0, 87.0, -87.0, 1e-4, -1e-4],
    "Sqrt": [4.0, 2.0, 1e-10, 1e10, -1.0],
    "Rsqrt": [4.0, 2.0, 1e-10, 1e10, -1.0],
}


def flushed_reference(options):
    """Denormals are about TensorFlow's own habit: no exact reference is measured."""
    return {key: value for key, value in options.items() if key != "reference"}


def unary_values(suite, op, dtype, options):
    suite.case(f"{dtype}_special", [specials(dtype)], **dict(options))
    if dtype not in FLOATS:
        return
    # Repeated so that whole vector registers hold them, not only the remainder loop.
    suite.case(f"{dtype}_special_wide", [np.tile(specials(dtype), 5)], **dict(options))
    suite.case(f"{dtype}_denormal", [denormals(dtype)], **flushed_reference(options))
    if op in EDGES:
        suite.case(f"{dtype}_edges", [array(EDGES[op], dtype)], **dict(options))


BINARY = {
    "Add": (FLOATS + [i for i in INTS if i not in ("uint16", "uint32", "uint64")], np.add),
    "AddV2": (NUMBERS, np.add),
    "Sub": (NUMBERS, np.subtract),
    "Mul": (NUMBERS, np.multiply),
    "RealDiv": (FLOATS, np.divide),
    "Maximum": (NUMBERS, np.maximum),
    "Minimum": (NUMBERS, np.minimum),
}

BROADCASTS = {
    "same": ((7,), (7,)),
    "scalars": ((), ()),
    "scalar_left": ((), (2, 5)),
    "scalar_right": ((2, 5), ()),
    "one_left": ((1,), (11,)),
    "one_right": ((11,), (1,)),
    "row": ((3, 5), (5,)),
    "column": ((3, 5), (3, 1)),
    "outer": ((4, 1), (1, 3)),
    "outer_rank1": ((4, 1), (3,)),
    "middle": ((2, 3, 4), (2, 1, 4)),
    "ends": ((2, 3, 4), (1, 3, 1)),
    "rank_up": ((4,), (2, 3, 4)),
    "rank4": ((2, 1, 3, 1), (1, 5, 1, 2)),
    "rank5": ((1, 2, 1, 2, 1), (2, 1, 2, 1, 3)),
    # TensorFlow folds neighbouring dimensions that broadcast alike; more than five left are refused.
    "rank6": ((2, 2, 3, 1, 1, 2), (1, 1, 3, 2, 2, 2)),
    "empty": ((0,), (0,)),
    "empty_scalar": ((0, 3), ()),
    "empty_one": ((0,), (1,)),
    "empty_row": ((2, 0), (2, 1)),
    "empty_outer": ((0, 1), (1, 3)),
}
FEW = ["same", "scalar_right", "scalar_left", "row", "outer", "empty_one"]


def binary(folder):
    """math_binary, without AddN and Cast."""
    for op, (dtypes, function) in BINARY.items():
        suite = Suite(folder, "math_binary", op)
        for dtype in dtypes:
            options = {}
            if dtype in FLOATS:
                n = 1 if dtype in ("half", "bfloat16") or op == "RealDiv" else 0
                options = {"tolerance": ulp(0 if op in ("Maximum", "Minimum") else n)}
            binary_cases(suite, op, dtype, options)
        if op not in ("Maximum", "Minimum"):
            complexes.binary(suite, function if op in ("Mul", "RealDiv") else None)
        if op == "Add":
            string_add(suite)
        binary_errors(suite, "float")
        yield suite.finish()


def divisor(op, x, dtype):
    """Quotients stay in range: no divisor near zero except in the special cases."""
    return array(np.sign(x.astype(np.float64)) * (np.abs(x.astype(np.float64)) + 0.1), dtype) if op == "RealDiv" else x


def binary_cases(suite, op, dtype, options):
    labels = BROADCASTS if dtype in ("float", "int32") else FEW
    for label in labels:
        left, right = BROADCASTS[label]
        rng = seeded(op, dtype, label)
        suite.case(
            f"{dtype}_{label}", [values(rng, dtype, left), divisor(op, values(rng, dtype, right), dtype)], **options
        )
    if dtype in FLOATS:
        rng = seeded(op, dtype, "large")
        x, y = values(rng, dtype, (1009,)), divisor(op, values(rng, dtype, (1009,)), dtype)
        suite.case(f"{dtype}_1009", [x, y], **options)
        special_pairs(suite, op, dtype, options)
        tiny = denormals(dtype)
        suite.case(f"{dtype}_denormal", [tiny, np.full_like(tiny, 1)], **options)
        suite.case(f"{dtype}_pairs_denormal", [tiny, tiny[::-1].copy()], **options)
    else:
        suite.case(f"{dtype}_special", [specials(dtype)[:, None], specials(dtype)[None, :]], **options)
    if dtype == "float":
        rng = seeded(op, dtype, "37x53")
        wide = [values(rng, dtype, (37, 53)), divisor(op, values(rng, dtype, (53,)), dtype)]
        suite.case("float_37x53_row", wide, **options)
        suite.case("float_37x53_column", [wide[0], divisor(op, values(rng, dtype, (37, 1)), dtype)], **options)


def special_pairs(suite, op, dtype, options):
    """NaN, infinities, zeros and extremes against each other; pairs that underflow are a case apart."""
    x, y = (side.ravel() for side in np.meshgrid(specials(dtype), specials(dtype), indexing="ij"))
    with np.errstate(all="ignore"):
        exact = np.abs(BINARY[op][1](x.astype(np.longdouble), y.astype(np.longdouble)))
    under = (exact > 0) & (exact < finite_extremes(dtype)[1])
    suite.case(f"{dtype}_special", [x[~under], y[~under]], **options)
    if under.any():
        suite.case(f"{dtype}_underflow_denormal", [np.tile(x[under], 16), np.tile(y[under], 16)], **options)
    else:
        suite.case(f"{dtype}_special_outer", [specials(dtype)[:, None], specials(dtype)[None, :]], **options)


def string_add(suite):
    for label, (left, right) in BROADCASTS.items():
        rng = seeded("Add", "string", label)
        suite.case(f"string_{label}", [strings(rng, left), strings(rng, right)])
    suite.case("string_long", [np.array([b"x" * 23, b"y" * 24, b"z" * 25]), np.array([b"-"])])


def binary_errors(suite, dtype):
    rng = seeded(suite.op, "errors")
    for label, (left, right) in {
        "shapes": ((3,), (4,)),
        "shapes_rank": ((2, 3), (2,)),
        "shapes_inner": ((2, 3, 4), (2, 2, 4)),
        "shapes_empty": ((0,), (2,)),
    }.items():
        suite.error(label, [normal(rng, dtype, left), normal(rng, dtype, right)])
    suite.error("dtype_bool", [np.array([True]), np.array([True])])
    suite.error("dtypes_differ", [np.float32([1]), np.float64([1])], {"T": "float"})


def exact_addn(case):
    wide = np.complex128 if np.iscomplexobj(case.inputs[0]) else np.float64
    inputs = [np.asarray(x).astype(wide) for x in case.inputs]
    return [(sum(inputs), sum(np.abs(x) for x in inputs))]


def addn(folder):
    """AddN: lengths around the eight that TensorFlow adds at once."""
    suite = Suite(folder, "math_binary", "AddN")
    for dtype in NUMBERS + COMPLEX:
        rounds = dtype in FLOATS + COMPLEX
        for count in (1, 2, 3, 7, 8, 9, 10, 17):
            if dtype not in ("float", "int32") and count in (3, 7, 10):
                continue
            rng = seeded("AddN", dtype, count)
            inputs = [values(rng, dtype, (2, 7)) for _ in range(count)]
            options = {"reference": exact_addn, "terms": count} if rounds and count > 1 else {}
            suite.case(f"{dtype}_n{count}", inputs, **options)
        for label, shape in {"scalar": (), "empty": (0, 2), "one": (1,)}.items():
            rng = seeded("AddN", dtype, label)
            options = {"reference": exact_addn, "terms": 3} if rounds else {}
            suite.case(f"{dtype}_{label}", [values(rng, dtype, shape) for _ in range(3)], **options)
        if dtype in COMPLEX:
            continue
        suite.case(
            f"{dtype}_special",
            [specials(dtype), specials(dtype)[::-1].copy()],
            tolerance=ulp(1) if dtype in FLOATS else EXACT,
        )
    for dtype in FLOATS:
        suite.case(f"{dtype}_denormal", [denormals(dtype), denormals(dtype)], tolerance=ulp(0))
    x = np.float32([1, 2])
    suite.error("shapes", [x, np.float32([1, 2, 3])])
    suite.error("no_broadcast", [x, np.float32(1)])
    suite.error("rank", [x, np.float32([[1, 2]])])
    suite.error("count", [x, x], {"N": 0})
    yield suite.finish()


def activations(folder):
    """Relu and Relu6."""
    for op in ("Relu", "Relu6"):
        suite = Suite(folder, "nn", op)
        for dtype in NUMBERS:
            shapes = SHAPES | ({"1009": (1009,)} if dtype in FLOATS else {"67": (67,)})
            for label, shape in shapes.items():
                rng = seeded(op, dtype, label)
                x = normal(rng, dtype, shape, 4) if dtype in FLOATS else values(rng, dtype, shape)
                suite.case(f"{dtype}_{label}", [x], tolerance=ulp(0) if dtype in FLOATS else EXACT)
            if dtype not in FLOATS:
                suite.case(f"{dtype}_special", [specials(dtype)])
                continue
            suite.case(f"{dtype}_special", [specials(dtype)], tolerance=ulp(0))
            suite.case(f"{dtype}_special_wide", [np.tile(specials(dtype), 5)], tolerance=ulp(0))
            suite.case(f"{dtype}_edges", [array([6, 6.5, 5.99, -6, 7, 0.25, 1e4], dtype)], tolerance=ulp(0))
            suite.case(f"{dtype}_denormal", [denormals(dtype)], tolerance=ulp(0))
        suite.error("dtype_bool", [np.array([True])])
        yield suite.finish()


GROUPS = [unary, binary, addn, activations]
