"""Matrices whose elements are near the limits of their type.

Their columns (rows) are those of an ordinary matrix times powers of two, which rounds nothing: TensorFlow decomposes
the ordinary matrix, and the result is multiplied by the powers that follow. TensorFlow itself is not asked about the
large and small ones, for it takes squares of them in places. NumPy, in double precision, checks the ordinary result.
"""

import numpy as np

VIA = "scaling"

# Powers of two for all columns, and for the columns of a matrix of three.
WHOLE = {"float": (100, 66, -66, -100), "double": (996, 512, -512, -996)}
GRADED = {"float": (100, 0, -100), "double": (996, 0, -996)}
MILD = {"float": 40, "double": 330}


def powers(dtype):
    """The name of a case, and powers of two for three columns."""
    real = {"complex64": "float", "complex128": "double"}.get(dtype, dtype)
    for power in WHOLE[real]:
        yield f"2^{power}", np.full(3, power)
    yield "graded", np.array(GRADED[real])


def mild_powers(dtype):
    """The same where the product of three columns is a number too."""
    real = {"complex64": "float", "complex128": "double"}.get(dtype, dtype)
    for power in (MILD[real], -MILD[real]):
        yield f"2^{power}", np.full(3, power)
    yield "graded", np.array(GRADED[real])


def shifted(x, power):
    """Numbers times two to so many."""
    x, power = np.asarray(x), np.asarray(power)
    if x.dtype.kind != "c":
        # Contents may be undefined, and then anything.
        with np.errstate(invalid="ignore"):
            return np.ldexp(x, power).astype(x.dtype)
    y = np.empty(np.broadcast_shapes(x.shape, power.shape), x.dtype)
    y.real, y.imag = np.ldexp(x.real, power), np.ldexp(x.imag, power)
    return y


def case(suite, name, inputs, by, effects, reference, attrs=None, **options):
    """Adds a case of `inputs`, each times two to its part of `by`; so are outputs with `effects`, or functions are
    applied to them. `reference` is that of the ordinary inputs."""

    def applied(values, effect):
        return effect(values) if callable(effect) else shifted(values, effect)

    def grown(exact, terms, effect):
        # What a function adds is rounded too.
        return terms + np.abs(effect(exact) - exact) if callable(effect) else shifted(terms, effect)

    def run_as(case):
        return inputs, case.attrs, lambda results: [applied(y, effect) for y, effect in zip(results, effects)]

    def checked(case):
        ordinary = type(case)("", inputs, dict(case.attrs), {})
        ordinary.outputs = case.outputs
        pairs = zip(reference(ordinary), effects)
        return [(applied(exact, effect), grown(exact, terms, effect)) for (exact, terms), effect in pairs]

    scaled = [shifted(x, power) for x, power in zip(inputs, by)]
    assert all(np.isfinite(x).all() for x in scaled)
    suite.case(name, scaled, attrs, reference=checked, run_as=run_as, via=VIA, **options)
