"""Writes fixed_point.txt: results of the output stages, computed from their definitions in exact arithmetic.

The definitions are gemmlowp's (fixedpoint/fixedpoint.h, doc/quantization.md): integers here have no width, and
real numbers are fractions. Run it without arguments, with NumPy installed, for float32 alone.
"""

import math
import random
from fractions import Fraction
from pathlib import Path

import numpy as np

LOW, HIGH = -(2**31), 2**31 - 1
EDGES = [LOW, LOW + 1, -(2**30) - 1, -(2**30), -3, -2, -1, 0, 1, 2, 3, 2**30 - 1, 2**30, HIGH - 1, HIGH]


def saturated(x, low=LOW, high=HIGH):
    return max(low, min(high, x))


def truncated(x):
    """A fraction without its digits, as a division in C++ gives it."""
    return int(x)


def half_away(x):
    return math.floor(abs(x) + Fraction(1, 2)) * (1 if x >= 0 else -1)


def half_even(x):
    return round(x)


def high_mul(a, b):
    if a == b == LOW:
        return HIGH
    nudge = 2**30 if a * b >= 0 else 1 - 2**30
    return truncated(Fraction(a * b + nudge, 2**31))


def divide(x, exponent):
    return half_away(Fraction(x, 2**exponent))


def multiplier(real):
    """(mantissa, exponent) with real ~ mantissa * 2^(exponent - 31) and a mantissa of 31 bits."""
    exponent = 0
    while real / Fraction(2) ** exponent >= 1:
        exponent += 1
    while real / Fraction(2) ** exponent < Fraction(1, 2):
        exponent -= 1
    mantissa = half_away(real / Fraction(2) ** exponent * 2**31)
    if mantissa == 2**31:
        return 2**30, exponent + 1
    return mantissa, exponent


def apply(x, mantissa, exponent):
    left, right = max(exponent, 0), max(-exponent, 0)
    return divide(high_mul(saturated(x * 2**left), mantissa), right)


def by_float(x, scale, low, high):
    return saturated(half_even(Fraction(float(np.float32(x))) * Fraction(float(scale))), low, high)


def real_scales(rng):
    """Three floats: the scales of the factors and of the output. The quotient is computed in float64."""
    while True:
        scales = [np.float32(rng.uniform(0.5, 2) * 2.0 ** rng.randint(-12, 4)) for _ in range(3)]
        if rng.random() < 0.2:
            scales = [np.float32(2.0 ** rng.randint(-12, 4)) for _ in range(3)]
        real = float(np.float64(scales[0]) * np.float64(scales[1]) / np.float64(scales[2]))
        if 2.0**-32 <= real < 2.0**30:
            return scales, real


def bits(x):
    return int(np.float32(x).view(np.uint32))


def lines(rng):
    sums = lambda: rng.choice([rng.choice(EDGES), rng.randint(LOW, HIGH), rng.randint(-(2**17), 2**17)])
    for a in EDGES:
        for b in EDGES:
            yield f"high_mul {a} {b} {high_mul(a, b)}"
    for _ in range(300):
        a, b = sums(), sums()
        yield f"high_mul {a} {b} {high_mul(a, b)}"
    for x in EDGES + [5 * 2**k + d for k in range(28) for d in (-1, 0, 1)] + [-3 * 2**k for k in range(29)]:
        for exponent in (0, 1, 2, 7, 16, 30, 31):
            yield f"divide {x} {exponent} {divide(x, exponent)}"
            yield f"shift {x} {exponent} {saturated(x * 2**exponent)}"
    for _ in range(600):
        scales, real = real_scales(rng)
        mantissa, exponent = multiplier(Fraction(real))
        x, (low, high) = sums(), rng.choice([(-128, 127), (0, 255), (-32768, 32767), (-3, 252)])
        scale = np.float32(real)
        yield " ".join(
            map(str, ["requantize", *map(bits, scales), x, mantissa, exponent, apply(x, mantissa, exponent)])
        )
        yield f"float {bits(scale)} {x} {low} {high} {by_float(x, scale, low, high)}"
    # Ties of the float way: multiples of a half.
    for x in range(-9, 10):
        yield f"float {bits(0.5)} {x} -128 127 {by_float(x, np.float32(0.5), -128, 127)}"


if __name__ == "__main__":
    path = Path(__file__).with_suffix(".txt")
    path.write_text("\n".join(lines(random.Random(5))) + "\n")
