"""The greatest elements along a dimension, sequences that do not ascend, evenly spread points, scripts of characters."""

import numpy as np

from .data import array, normal, seeded, small
from .suite import Suite, ulp


def greatest(folder):
    """ApproxTopK. TensorFlow's CPU has the greatest elements along the last dimension; the others stand by signs and turns."""
    suite = Suite(folder, "reduction", "ApproxTopK", known_shapes=True)
    for dtype in ("half", "bfloat16", "float"):
        for shape, k in (((7,), 3), ((3, 11), 4), ((2, 3, 9), 1), ((2, 300), 17), ((0, 5), 2), ((2, 5), 0), ((2, 5), 5)):
            x = normal(seeded("greatest", dtype, *shape), dtype, shape, 4.0)
            suite.case(f"{dtype}_{'x'.join(map(str, shape))}_{k}", [x], {"k": k})
        ties = small(seeded("greatest_ties", dtype), dtype, (4, 20))
        suite.case(f"{dtype}_ties", [ties], {"k": 6})
        suite.case(f"{dtype}_special", [array([[1, np.inf, -np.inf, -0.0, 0.0, 5]], dtype)], {"k": 6})

    def least(case):
        return [-case.inputs[0]], case.attrs | {"is_max_k": True}, lambda results: [-results[0], results[1]]

    def turned(case):
        return [case.inputs[0].T.copy()], case.attrs | {"reduction_dimension": -1}, lambda results: [r.T.copy() for r in results]

    x = normal(seeded("least"), "float", (4, 9), 4.0)
    suite.case("least", [x], {"k": 3, "is_max_k": False}, run_as=least, via="negated")
    suite.case("columns", [x], {"k": 3, "reduction_dimension": 0}, run_as=turned, via="transpose")
    suite.error("short", [x], {"k": 10})
    suite.error("scalar", [np.float32(1)], {"k": 1})
    suite.error("dimension", [x], {"k": 1, "reduction_dimension": 2})
    yield suite.finish()


def regression(folder):
    """IsotonicRegression."""
    suite = Suite(folder, "reduction", "IsotonicRegression")
    pairs = [(dtype, dtype) for dtype in ("half", "bfloat16", "float", "double")]
    pairs += [(dtype, out) for dtype, out in WHOLE.items()]
    for dtype, out in pairs:
        for shape in ((1, 7), (3, 20), (2, 0), (0, 4), (1, 1)):
            rng = seeded("regression", dtype, *shape)
            x = small(rng, dtype, shape) if dtype in WHOLE else normal(rng, dtype, shape, 4.0)
            options = {"tolerance": ulp(4), "reason": "TensorFlow adds in the type of the output"}
            suite.case(f"{dtype}_{'x'.join(map(str, shape))}", [x], {"output_dtype": out}, **options)
    for name, row in {"ties": [5, 5, 1, 1, 3, 3], "ascending": [1, 2, 3, 4], "descending": [4, 3, 2, 1], "equal": [2, 2, 2], "steps": [4, 9, 1, 2, 2, 8]}.items():
        suite.case(name, [np.float32([row])], {"output_dtype": "float"})
    yield suite.finish()


# Types of whole numbers, and that of their means.
WHOLE = {"int8": "float", "int16": "float", "int32": "double", "int64": "double"}


def points(folder):
    """SobolSample."""
    suite = Suite(folder, "random", "SobolSample")
    for dtype in ("float", "double"):
        for dim, count, skip in ((1, 10, 0), (3, 17, 0), (40, 64, 5), (21200, 2, 100), (2, 3, 22369619)):
            suite.case(f"{dtype}_{dim}_{count}_{skip}", [np.int32(dim), np.int32(count), np.int32(skip)], {"dtype": dtype}, const=[0, 1, 2])
    for name, numbers in {"no_dim": (0, 1, 0), "many": (21201, 1, 0), "no_results": (1, 0, 0), "skip": (1, 1, -1), "end": (1, 2, 2147483645)}.items():
        suite.error(name, [np.int32(number) for number in numbers], {"dtype": "float"}, const=[0, 1, 2])
    suite.error("vector", [np.int32([1, 2]), np.int32(1), np.int32(0)], {"dtype": "float"}, const=[0, 1, 2])
    yield suite.finish()


def scripts(folder):
    """UnicodeScript, of the characters of the first planes, and of some of the others."""
    suite = Suite(folder, "string", "UnicodeScript")
    for plane in range(17):
        step = 1 if plane < 2 else 512
        suite.case(f"plane_{plane}", [np.arange(plane << 16, plane + 1 << 16, step, dtype=np.int32)])
    suite.case("none", [np.int32([[-1, 0x110000], [2**31 - 1, -(2**31)]])])
    suite.case("scalar", [np.int32(65)])
    suite.case("empty", [np.int32([])])
    yield suite.finish()


GROUPS = [greatest, regression, points, scripts]
