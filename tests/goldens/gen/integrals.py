"""Bessel functions, integrals that are no elementary functions, and the incomplete beta function."""

import mpmath
import numpy as np

from . import exact
from .data import array, seeded
from .suite import EXACT, Suite

mp = mpmath.mp
POINTS = {"half": 13, "float": 61, "double": 31}


def scaled(function, sign):
    return lambda x: function(x) * mpmath.exp(sign * (abs(x) if sign < 0 else x))


def slope_of_scaled(function, derivative, sign):
    """The derivative of a function times a power."""
    factor = lambda x: sign * (mpmath.sign(x) if sign < 0 else 1)
    return lambda x: scaled(derivative, sign)(x) + factor(x) * scaled(function, sign)(x)


i0, i1 = (lambda x: mpmath.besseli(0, x)), (lambda x: mpmath.besseli(1, x))
k0, k1 = (lambda x: mpmath.besselk(0, x)), (lambda x: mpmath.besselk(1, x))
j0, j1 = (lambda x: mpmath.besselj(0, x)), (lambda x: mpmath.besselj(1, x))
y0, y1 = (lambda x: mpmath.bessely(0, x)), (lambda x: mpmath.bessely(1, x))
di1 = lambda x: (i0(x) + mpmath.besseli(2, x)) / 2
dk0, dk1 = (lambda x: -k1(x)), (lambda x: -(k0(x) + mpmath.besselk(2, x)) / 2)
dj0, dj1 = (lambda x: -j1(x)), (lambda x: (j0(x) - mpmath.besselj(2, x)) / 2)
dy0, dy1 = (lambda x: -y1(x)), (lambda x: (y0(x) - mpmath.bessely(2, x)) / 2)
dawson = lambda x: mpmath.sqrt(mp.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x)


def signed(rng, dtype, shape):
    return array(rng.standard_normal(shape) * 5, dtype)


def positive(rng, dtype, shape):
    return array(np.exp(rng.standard_normal(shape) * 1.2), dtype)


def either(rng, dtype, shape):
    """Of every magnitude and both signs, not near the zero of the exponential integral."""
    x = np.exp(rng.standard_normal(shape) * 1.5)
    return array(np.where(np.abs(x - 0.3725) < 0.05, 0.5, x) * np.where(rng.random(shape) < 0.5, 1, -1), dtype)


BESSEL = ("half", "float", "double")
REAL = ("float", "double")
# op: (dtypes, inputs, function and derivative, edges)
FUNCTIONS = {
    "BesselI0": (BESSEL, signed, (i0, i1), [0.0, 1e-3, 8.0, -8.5]),
    "BesselI0e": (BESSEL, signed, (scaled(i0, -1), slope_of_scaled(i0, i1, -1)), [0.0, 1e-3, 8.0, -8.5, 700.0]),
    "BesselI1": (BESSEL, signed, (i1, di1), [0.0, 1e-3, 8.0, -8.5]),
    "BesselI1e": (BESSEL, signed, (scaled(i1, -1), slope_of_scaled(i1, di1, -1)), [0.0, 1e-3, 8.0, -8.5, 700.0]),
    "BesselK0": (BESSEL, positive, (k0, dk0), [1e-3, 2.0, 2.5, 8.0]),
    "BesselK0e": (BESSEL, positive, (scaled(k0, 1), slope_of_scaled(k0, dk0, 1)), [1e-3, 2.0, 2.5, 700.0]),
    "BesselK1": (BESSEL, positive, (k1, dk1), [1e-3, 2.0, 2.5, 8.0]),
    "BesselK1e": (BESSEL, positive, (scaled(k1, 1), slope_of_scaled(k1, dk1, 1)), [1e-3, 2.0, 2.5, 700.0]),
    "BesselJ0": (BESSEL, signed, (j0, dj0), [0.0, 1e-3, 2.4, -5.5]),
    "BesselJ1": (BESSEL, signed, (j1, dj1), [0.0, 1e-3, 3.83, -7.0]),
    "BesselY0": (BESSEL, positive, (y0, dy0), [1e-3, 0.9, 2.0, 5.5]),
    "BesselY1": (BESSEL, positive, (y1, dy1), [1e-3, 2.2, 5.4, 7.5]),
    "Dawsn": (REAL, signed, (dawson, lambda x: 1 - 2 * x * dawson(x)), [0.0, 1e-3, 3.25, -6.25, 100.0]),
    "Expint": (REAL, either, (mpmath.ei, lambda x: mpmath.exp(x) / x), [1e-3, -1.0, 2.0, 32.0, -20.0]),
    "FresnelCos": (REAL, signed, (mpmath.fresnelc, lambda x: mpmath.cos(mp.pi * x * x / 2)), [0.0, 1e-3, 1.6, -2.5]),
    "FresnelSin": (REAL, signed, (mpmath.fresnels, lambda x: mpmath.sin(mp.pi * x * x / 2)), [1e-3, 1.6, -2.5]),
    "Spence": (REAL, positive, (lambda x: mpmath.polylog(2, 1 - x), lambda x: mpmath.log(x) / (1 - x) if x != 1 else mpmath.mpf(-1)), [0.5, 1.0, 1.5, 2.0, 1e-3]),
}


def functions(folder):
    for op, (dtypes, inputs, exactly, edges) in FUNCTIONS.items():
        suite = Suite(folder, "math_unary", op)
        for dtype in dtypes:
            options = {"reference": exact.conditioned(*exactly), "terms": 1, "worst": 64.0, "reason": "relative to |f(x)| + |x f'(x)|"}
            for label, shape in {"scalar": (), "empty": (0, 3), "rank2": (2, 5), str(POINTS[dtype]): (POINTS[dtype],)}.items():
                suite.case(f"{dtype}_{label}", [inputs(seeded(op, dtype, label), dtype, shape)], **dict(options))
            suite.case(f"{dtype}_edges", [array(edges, dtype)], **dict(options))
            suite.case(f"{dtype}_nan", [array([np.nan, 1.0], dtype)], **dict(options))
        suite.error("dtype", [np.array([True])])
        yield suite.finish()


def beta_density(a, b, x):
    return x ** (a - 1) * (1 - x) ** (b - 1) / mpmath.beta(a, b)


def by_parameter(at):
    """The derivative of the incomplete beta function by one of its parameters."""

    def slope(*args):
        moved = lambda value: mpmath.betainc(*[value if i == at else arg for i, arg in enumerate(args[:2])], 0, args[2], regularized=True)
        return mpmath.diff(moved, args[at], h=mpmath.mpf("1e-12"))

    return slope


def beta(folder):
    suite = Suite(folder, "math_binary", "Betainc")
    value = lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True)
    for dtype in REAL:
        options = {"reference": exact.conditioned(value, by_parameter(0), by_parameter(1), beta_density), "terms": 1, "worst": 256.0, "reason": "relative to |f| + |x f'|, summed over the inputs"}
        for label, shapes in {"scalars": ((), (), ()), "empty": ((0,), (0,), (0,)), "points": ((17,), (17,), (17,)), "scalar_a": ((), (3, 4), (3, 4)), "scalar_x": ((3, 4), (3, 4), ()), "scalar_ab": ((), (), (5,))}.items():
            rng = seeded("Betainc", dtype, label)
            a, b = (array(np.exp(rng.standard_normal(shape)), dtype) for shape in shapes[:2])
            suite.case(f"{dtype}_{label}", [a, b, array(rng.uniform(0.02, 0.98, shapes[2]), dtype)], **dict(options))
        ends = array([0, 1, 0.5, 0.5, np.nan, 0.5, -0.1, 1.1], dtype)
        suite.case(f"{dtype}_ends", [array([2, 2, -1, 2, 2, np.nan, 2, 2], dtype), array([3, 3, 3, -1, 3, 3, 3, 3], dtype), ends], tolerance=EXACT)
    one = np.ones(3, np.float32)
    suite.error("shapes", [one, one[:2], one / 2])
    suite.error("x_shape", [one, np.float32(1), one[:2] / 2])
    yield suite.finish()


GROUPS = [functions, beta]
