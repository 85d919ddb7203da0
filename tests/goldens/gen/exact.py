"""Exact values of functions that NumPy lacks, by mpmath, and how strongly a result depends on its inputs.

The measure of an error is `|f(x)| + |x f'(x)|`: what one rounding of the result and one of each input may change.
"""

import mpmath
import numpy as np

mpmath.mp.dps = 30


def number(value):
    """An mpmath number as extended precision; NaN for what is not real."""
    if isinstance(value, mpmath.mpc):
        return np.longdouble("nan")
    return np.longdouble(mpmath.nstr(value, 25))


def guarded(function, *args):
    """The function's value; NaN outside the domain, infinite at poles."""
    if any(np.isnan(x) for x in args):
        return np.longdouble("nan")
    try:
        return number(function(*(mpmath.mpf(float(x)) for x in args)))
    except ZeroDivisionError:
        return np.longdouble("inf")
    except (ValueError, mpmath.libmp.NoConvergence):
        return np.longdouble("nan")


def each(function, *arrays):
    """The function of every element, at extended precision."""
    arrays = np.broadcast_arrays(*arrays)
    flat = [guarded(function, *args) for args in zip(*(np.ravel(x).astype(np.float64) for x in arrays))]
    return np.array(flat, np.longdouble).reshape(arrays[0].shape)


def plain(function):
    """A reference of the values alone."""
    return lambda case: [each(function, *case.inputs)]


def conditioned(function, *derivatives, offset=0):
    """A reference of values and measures; one derivative per input, None where it counts for nothing.

    `offset` is what TensorFlow adds to an input first, which rounds.
    """

    def reference(case):
        exact = each(function, *case.inputs)
        terms = np.abs(exact)
        for x, derivative in zip(case.inputs, derivatives):
            if derivative is not None:
                slope = each(derivative, *case.inputs)
                terms = terms + np.abs(slope) * (np.abs(np.asarray(x).astype(np.longdouble)) + offset)
        # An infinite result is compared as it is.
        terms = np.where(np.isinf(exact) | np.isinf(terms), 0, np.where(np.isnan(exact), np.nan, terms))
        return [(exact, np.where(np.isnan(terms) & ~np.isnan(exact), np.abs(exact), terms))]

    return reference


def erfc(x):
    """mpmath's own fails beyond what a power of ten can say."""
    return mpmath.erfc(x) if abs(x) < 200 else mpmath.mpf(0 if x > 0 else 2)


def erfinv(x):
    return mpmath.erfinv(x)


def erfinv_slope(x):
    return mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(mpmath.erfinv(x) ** 2)


def ndtri(p):
    if not 0 <= p <= 1:
        raise ValueError
    if p in (0, 1):
        return mpmath.inf if p else -mpmath.inf
    # So that the tail keeps its digits, of which 1 takes as many as there are zeros before it.
    with mpmath.workdps(60 + (0 if p > 1e-40 else int(-mpmath.log10(p)))):
        return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)


def ndtri_slope(p):
    return mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(ndtri(p) ** 2 / 2)


def lgamma(x):
    return mpmath.log(abs(mpmath.gamma(x)))


def digamma(x):
    return mpmath.digamma(x)


def trigamma(x):
    return mpmath.polygamma(1, x)


def igamma(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


def igammac(a, x):
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def gamma_density(a, x):
    return mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a))


def igamma_by_order(a, x):
    step = a * mpmath.mpf("1e-10")
    return (igamma(a + step, x) - igamma(a - step, x)) / (2 * step)


def zeta(x, q):
    return mpmath.zeta(x, q)


def zeta_by_power(x, q):
    step = mpmath.mpf("1e-10")
    return (zeta(x + step, q) - zeta(x - step, q)) / (2 * step)


def zeta_by_offset(x, q):
    return -x * zeta(x + 1, q)


def polygamma(n, x):
    return mpmath.polygamma(int(n), x)


def polygamma_slope(n, x):
    return mpmath.polygamma(int(n) + 1, x)
