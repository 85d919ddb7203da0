"""Cases of complex numbers for ops that take them besides real ones."""

import numpy as np

from .data import COMPLEX, normal, seeded, specials
from .suite import EXACT, ulp

SHAPES = {"scalar": (), "empty": (0, 2), "rank3": (2, 3, 5), "101": (101,)}
PAIRS = {
    "same": ((7,), (7,)),
    "scalar_right": ((2, 5), ()),
    "scalar_left": ((), (2, 5)),
    "outer": ((4, 1), (3,)),
    "column": ((3, 5), (3, 1)),
    "empty": ((0, 2), (2,)),
    "101": ((101,), (101,)),
}


def long(x):
    return np.asarray(x).astype(np.clongdouble)


def unary(suite, function, ulps=4, special=True, scale=1.0):
    """One number; `function` of extended precision, None for an exact result."""
    options = {"tolerance": EXACT}
    if function:
        options = {"tolerance": ulp(ulps), "reference": lambda case: [function(long(case.inputs[0]))]}
    for dtype in COMPLEX:
        for label, shape in SHAPES.items():
            suite.case(
                f"{dtype}_{label}", [normal(seeded(suite.op, dtype, label), dtype, shape, scale)], **dict(options)
            )
        if special:
            suite.case(f"{dtype}_special", [specials(dtype)], **dict(options))


def binary(suite, function, ulps=4, special=True):
    """Two numbers, broadcast."""
    options = {"tolerance": EXACT}
    if function:
        options = {"tolerance": ulp(ulps), "reference": lambda case: [function(*map(long, case.inputs))]}
    for dtype in COMPLEX:
        for label, (left, right) in PAIRS.items():
            rng = seeded(suite.op, dtype, label)
            suite.case(f"{dtype}_{label}", [normal(rng, dtype, left), normal(rng, dtype, right)], **dict(options))
        if special:
            x = specials(dtype)
            # By no number that is zero: what that gives is not agreed upon.
            suite.case(f"{dtype}_special", [x[:, None], x[None, 1:]], **dict(options))
