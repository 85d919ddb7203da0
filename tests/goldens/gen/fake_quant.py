"""Quantisation in training: the FakeQuant ops and their gradients."""

import numpy as np

from .data import array, normal, seeded, specials
from .quantise import pair, shape_name
from .suite import Suite

RANGES = {"plain": (-6, 6), "around": (-1.25, 3.5), "positive": (0, 6), "negative": (-3, 0), "above": (1, 4), "below": (-4, -1), "tiny": (-1e-30, 1e-30)}
LEVELS = [(2, False), (4, True), (8, False), (8, True), (16, False), (16, True)]
SHAPES = [(), (0,), (1,), (7, 11), (2, 3, 5, 2)]


def numbers(name, low, high, shape):
    """Numbers in and around a range."""
    width = high - low
    return array(seeded("fake", name, *shape).uniform(low - 0.25 * width, high + 0.25 * width, shape), "float")


def options(low, high, attributes):
    """A range as attributes or as inputs."""
    return ({"min": float(low), "max": float(high)}, []) if attributes else ({}, pair(low, high))


def bad_bits(suite, inputs, attrs):
    for bits in (1, 17, 0, -3):
        suite.error(f"bits{bits}".replace("-", "m"), inputs, attrs | {"num_bits": bits})


def levels(folder):
    """FakeQuantWithMinMaxArgs and FakeQuantWithMinMaxVars."""
    for op, attributes in (("FakeQuantWithMinMaxArgs", True), ("FakeQuantWithMinMaxVars", False)):
        suite = Suite(folder, "quantization", op)
        for name, (low, high) in RANGES.items():
            attrs, ends = options(low, high, attributes)
            for bits, narrow in LEVELS:
                x = numbers(name, low, high, (3, 5))
                suite.case(f"{name}_{bits}_{narrow}", [x, *ends], attrs | {"num_bits": bits, "narrow_range": narrow})
        attrs, ends = options(-2, 3, attributes)
        for shape in SHAPES:
            suite.case(f"shape_{shape_name(shape)}", [numbers("shape", -2, 3, shape), *ends], attrs)
        suite.case("large", [numbers("large", -2, 3, (41, 43)), *ends], attrs)
        suite.case("special", [np.tile(specials("float"), 8), *ends], attrs)
        if not attributes:
            suite.case("nothing", [numbers("nothing", -2, 3, (3, 5)), *pair(0, 0)])
            suite.error("ends", [numbers("refused", -2, 3, (2, 3)), np.float32([-2]), np.float32([3])])
        else:
            suite.error("order", [numbers("refused", -2, 3, (2, 3))], {"min": 3.0, "max": -2.0})
            suite.error("point", [numbers("refused", -2, 3, (2, 3))], {"min": 0.0, "max": 0.0})
        bad_bits(suite, [numbers("refused", -2, 3, (2, 3)), *ends], attrs)
        yield suite.finish()


def per_channel(folder):
    """FakeQuantWithMinMaxVarsPerChannel."""
    suite = Suite(folder, "quantization", "FakeQuantWithMinMaxVarsPerChannel")
    for shape in [(7,), (5, 3), (2, 3, 4), (2, 3, 4, 5), (3, 1), (0, 3), (1, 2, 3, 2, 3), (37, 41)]:
        rng = seeded("ends", *shape)
        low, high = array(-rng.uniform(0, 4, shape[-1]), "float"), array(rng.uniform(0.5, 4, shape[-1]), "float")
        for bits, narrow in LEVELS if len(shape) < 3 and shape[0] < 9 else [(8, False)]:
            attrs = {"num_bits": bits, "narrow_range": narrow}
            suite.case(f"{shape_name(shape)}_{bits}_{narrow}", [numbers("channels", -3, 3, shape), low, high], attrs)
    ends = np.float32([0, -1, 1]), np.float32([0, 2, 3])
    suite.case("nothing", [numbers("nothing", -3, 3, (4, 3)), *ends])
    x = numbers("refused", -3, 3, (4, 3))
    suite.error("few_min", [x, ends[0][:2], ends[1]])
    suite.error("few_max", [x, ends[0], ends[1][:2]])
    suite.error("scalar_ends", [x, *pair(-1, 2)])
    bad_bits(suite, [x, *ends], {})
    yield suite.finish()


def nudged(low, high, bits, narrow):
    """The range moved so that 0 is a level, as TensorFlow rounds it."""
    low, high, least, most = np.float32(low), np.float32(high), np.float32(narrow), np.float32((1 << bits) - 1)
    scale = (high - low) / (most - least)
    zero = np.clip(np.floor(least - low / scale + np.float32(0.5)), least, most)
    return (least - zero) * scale, (most - zero) * scale


def gradients(folder):
    """FakeQuantWithMinMaxArgsGradient and FakeQuantWithMinMaxVarsGradient."""
    for op, attributes in (("FakeQuantWithMinMaxArgsGradient", True), ("FakeQuantWithMinMaxVarsGradient", False)):
        suite = Suite(folder, "quantization", op)

        def reference(case):
            gradient, x = [value.astype(np.float64) for value in case.inputs[:2]]
            low, high = map(float, case.inputs[2:])
            low, high = nudged(low, high, case.attrs.get("num_bits", 8), case.attrs.get("narrow_range", False))
            within = gradient * ((x >= low) & (x <= high))
            terms = [within, gradient * (x < low), gradient * (x > high)]
            return [(within, np.abs(within))] + [(np.sum(part), np.sum(np.abs(part))) for part in terms[1:]]

        for name, (low, high) in RANGES.items():
            attrs, ends = options(low, high, attributes)
            for bits, narrow in LEVELS:
                inputs = [normal(seeded("gradient", name), "float", (3, 5)), numbers(name, low, high, (3, 5)), *ends]
                summed = {} if attributes else {"reference": reference, "terms": 15}
                suite.case(f"{name}_{bits}_{narrow}", inputs, attrs | {"num_bits": bits, "narrow_range": narrow}, **summed)
        attrs, ends = options(-2, 3, attributes)
        for shape in [*SHAPES, (29, 31)]:
            inputs = [normal(seeded("gradient", *shape), "float", shape), numbers("shape", -2, 3, shape), *ends]
            summed = {} if attributes else {"reference": reference, "terms": int(np.prod(shape))}
            suite.case(f"shape_{shape_name(shape)}", inputs, attrs, **summed)
        x = numbers("refused", -2, 3, (2, 3))
        if not attributes:
            suite.case("nothing", [normal(seeded("nothing"), "float", (2, 3)), x, *pair(0, 0)])
            suite.error("ends", [x, x, np.float32([-2]), np.float32([3])])
        else:
            suite.error("order", [x, x], {"min": 3.0, "max": -2.0})
        suite.error("shapes", [x, x[:, :2], *ends], attrs)
        bad_bits(suite, [x, x, *ends], attrs)
        yield suite.finish()


GROUPS = [levels, per_channel, gradients]
