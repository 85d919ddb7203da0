"""Codes to codes: requantisation, activations, sums, products of elements, joins, reshapes."""

import numpy as np

from .data import Quantised, array, seeded
from .quantise import codes_of, pair, shape_name, some
from .suite import Suite

RANGES = {"around": (-3, 4.5), "positive": (0, 6), "negative": (-8, 0), "above": (0.5, 2), "below": (-7, -1), "wide": (-40, 30)}
# Ranges of sums of 32 bits, and how large codes get in them.
SUMS = {"even": (-512, 512, 300_000), "uneven": (-1000, 300, 100_000), "large": (-4, 4, 2**30), "small": (-1e6, 1e6, 4_000)}
SHAPES = [(), (0,), (1,), (7, 11), (2, 3, 5, 2)]


def scalars(*values):
    return [np.float32(value) for value in values]


def sums(name, shape, low=None):
    """Codes of 32 bits, as sums of products have them."""
    most = SUMS[name][2]
    return Quantised("qint32", seeded("sums", name, *shape).integers(-most if low is None else low, most, shape))


def not_scalar(suite, inputs, ends, attrs=None):
    """Each of the ends of ranges as a vector of two."""
    for at in ends:
        wrong = [*inputs]
        wrong[at] = np.float32([wrong[at], wrong[at]])
        suite.error(f"vector{at}", wrong, attrs)


def requantise(folder):
    """Requantize, QuantizeDownAndShrinkRange and RequantizationRange."""
    suite = Suite(folder, "quantization", "Requantize")
    for out in ("quint8", "qint8"):
        for name, (low, high, most) in SUMS.items():
            real = max(abs(low), abs(high)) * most / 2**31
            for at, (bottom, top) in enumerate([(-real, real), (0, real), (-0.5 * real, 0), (-0.25 * real, 0.75 * real)]):
                inputs = [sums(name, (5, 9)), *scalars(low, high, bottom, top)]
                suite.case(f"{out}_{name}_{at}", inputs, {"out_type": out})
        for shape in [*SHAPES, (53, 59)]:
            inputs = [sums("even", shape), *scalars(-512, 512, -0.0625, 0.03125)]
            suite.case(f"{out}_shape_{shape_name(shape)}", inputs, {"out_type": out})
        suite.case(f"{out}_nothing", [sums("even", (5,)), *scalars(-512, 512, 0, 0)], {"out_type": out})
        suite.case(f"{out}_below", [sums("even", (5,)), *scalars(-512, 512, -0.1, -0.01)], {"out_type": out})
    x = sums("even", (2, 3))
    suite.error("above", [x, *scalars(-512, 512, 0.01, 0.1)], {"out_type": "quint8"})
    suite.error("order", [x, *scalars(-512, 512, -0.01, -0.1)], {"out_type": "quint8"})
    not_scalar(suite, [x, *scalars(-512, 512, -0.1, 0.1)], [1, 2, 3, 4], {"out_type": "quint8"})
    yield suite.finish()
    for op, attrs in (("QuantizeDownAndShrinkRange", {"out_type": "quint8"}), ("RequantizationRange", {})):
        suite = Suite(folder, "quantization", op)
        for name, (low, high, _) in SUMS.items():
            suite.case(name, [sums(name, (5, 9)), *pair(low, high)], attrs)
            suite.case(f"{name}_positive", [sums(name, (5, 9), 1), *pair(low, high)], attrs)
        # Of no codes, TensorFlow gives a range whose ends are exchanged.
        for shape in [shape for shape in SHAPES if 0 not in shape]:
            suite.case(f"shape_{shape_name(shape)}", [sums("even", shape), *pair(-512, 512)], attrs)
        suite.case("whole", [sums("even", (53, 59)), *pair(-512, 512)], attrs)
        suite.case("zeros", [Quantised("qint32", np.zeros(4)), *pair(-512, 512)], attrs)
        not_scalar(suite, [x, *pair(-512, 512)], [1, 2], attrs)
        yield suite.finish()


def channel_ends(name, count):
    rng = seeded("channel_ends", name, count)
    return array(-rng.uniform(256, 512, count), "float"), array(rng.uniform(256, 512, count), "float")


def requantise_channels(folder):
    """RequantizePerChannel and RequantizationRangePerChannel."""
    shapes = [(1, 1, 1, 1), (1, 2, 3, 4), (2, 3, 5, 7), (1, 7, 1, 19), (1, 11, 13, 17)]
    suite = Suite(folder, "quantization", "RequantizePerChannel")
    for out in ("quint8", "qint8"):
        for at, shape in enumerate(shapes):
            for low, high in ((-0.0625, 0.0625), (-0.01, 0.03)):
                inputs = [sums("even", shape), *channel_ends(at, shape[3]), *scalars(low, high)]
                suite.case(f"{out}_{shape_name(shape)}_{high}".replace(".", "_"), inputs, {"out_type": out})
    inputs = [sums("even", (1, 2, 3, 4)), *channel_ends(0, 4), *scalars(0, 0.05)]
    suite.case("quint8_positive", inputs, {"out_type": "quint8"})
    suite.error("qint8_positive", inputs, {"out_type": "qint8"})
    suite.error("few_max", [inputs[0], inputs[1], inputs[2][:3], *inputs[3:]], {"out_type": "quint8"})
    yield suite.finish()
    suite = Suite(folder, "quantization", "RequantizationRangePerChannel")
    for at, shape in enumerate(shapes):
        for clip in (6.0, 0.03):
            for low in (None, 0):
                inputs = [sums("even", shape, low), *channel_ends(at, shape[3])]
                name = f"{shape_name(shape)}_{clip}_{low}".replace(".", "_")
                suite.case(name, inputs, {"clip_value_max": clip})
    low, high = channel_ends(0, 4)
    x = sums("even", (1, 2, 3, 4))
    for name, inputs in {"few_min": [x, low[:3], high], "few_max": [x, low, high[:3]], "few": [x, low[:3], high[:3]]}.items():
        suite.error(name, inputs, {"clip_value_max": 6.0})
    suite.error("empty", [sums("even", (0, 2, 3, 4)), low, high], {"clip_value_max": 6.0})
    yield suite.finish()


def activations(folder):
    """QuantizedRelu and QuantizedRelu6."""
    for op in ("QuantizedRelu", "QuantizedRelu6"):
        suite = Suite(folder, "quantization", op)
        for kind in ("quint8", "qint32"):
            attrs = {"out_type": kind}
            for name, (low, high) in RANGES.items():
                suite.case(f"{kind}_{name}", [codes_of(name, kind, (5, 9)), *pair(low, high)], attrs)
            for shape in SHAPES:
                suite.case(f"{kind}_{shape_name(shape)}", [codes_of("shape", kind, shape), *pair(-3, 9)], attrs)
            suite.case(f"{kind}_point", [codes_of("point", kind, (5,)), *pair(1, 1)], attrs)
        suite.case("large", [codes_of("large", "quint8", (97, 101)), *pair(-3, 9)])
        not_scalar(suite, [codes_of("refused", "quint8", (2, 3)), *pair(-3, 9)], [1, 2])
        yield suite.finish()


def bias_add(folder):
    """QuantizedBiasAdd."""
    suite = Suite(folder, "quantization", "QuantizedBiasAdd")
    out = {"out_type": "qint32"}
    for kind in ("quint8", "qint8"):
        for turn, (name, ends) in enumerate(RANGES.items()):
            for other in some(RANGES, 2 * turn, 2):
                inputs = [codes_of(name, kind, (5, 7)), codes_of(other, kind, (7,)), *scalars(*ends, *RANGES[other])]
                suite.case(f"{kind}_{name}_{other}", inputs, out)
        for shape in [(1, 1), (0, 3), (2, 3, 5), (2, 3, 5, 7), (61, 67)]:
            inputs = [codes_of("shape", kind, shape), codes_of("bias", kind, shape[-1:]), *scalars(-3, 4.5, -0.25, 0.5)]
            suite.case(f"{kind}_{shape_name(shape)}", inputs, out)
    x, bias, ends = codes_of("refused", "quint8", (2, 3)), codes_of("bias", "quint8", (3,)), scalars(-3, 4.5, -0.25, 0.5)
    for name, inputs in {
        "few": [x, codes_of("bias", "quint8", (2,)), *ends],
        "matrix": [x, codes_of("bias", "quint8", (1, 3)), *ends],
        "vector": [bias, bias, *ends],
    }.items():
        suite.error(name, inputs, out)
    not_scalar(suite, [x, bias, *ends], [2, 3, 4, 5], out)
    yield suite.finish()


# TensorFlow broadcasts one element, and rows.
PAIRS = [((), ()), ((3,), ()), ((), (2, 3)), ((1,), (5,)), ((4, 5), (5,)), ((5,), (4, 5)), ((2, 3, 4), (3, 4)), ((2, 3, 4), (2, 3, 4)), ((1, 4), (3, 4)), ((0, 3), (0, 3)), ((53, 59), (53, 59)), ((43, 47), (47,))]


def pairs(folder):
    """QuantizedAdd and QuantizedMul."""
    for op in ("QuantizedAdd", "QuantizedMul"):
        suite = Suite(folder, "quantization", op)
        out = {"Toutput": "qint32"}
        for turn, (name, ends) in enumerate(RANGES.items()):
            for other in some(RANGES, 3 * turn, 3):
                inputs = [codes_of(name, "quint8", (5, 7)), codes_of(other, "quint8", (5, 7)), *scalars(*ends, *RANGES[other])]
                suite.case(f"{name}_{other}", inputs, out)
        for x, y in PAIRS:
            inputs = [codes_of("x", "quint8", x), codes_of("y", "quint8", y), *scalars(-3, 4.5, -0.25, 0.5)]
            suite.case(f"shapes_{shape_name(x)}_{shape_name(y)}", inputs, out)
        x, ends = codes_of("refused", "quint8", (2, 3)), scalars(-3, 4.5, -0.25, 0.5)
        suite.error("shapes", [x, codes_of("refused", "quint8", (2, 4)), *ends], out)
        for name, wrong in {"order_x": (4.5, -3, 0, 1), "point_x": (1, 1, 0, 1), "order_y": (0, 1, 2, 1), "point_y": (0, 1, 2, 2)}.items():
            suite.error(name, [x, x, *scalars(*wrong)], out)
        not_scalar(suite, [x, x, *ends], [2, 3, 4, 5], out)
        yield suite.finish()


def concat(folder):
    """QuantizedConcat."""
    suite = Suite(folder, "quantization", "QuantizedConcat")
    for kind in ("quint8", "qint32"):
        for turn, (name, ends) in enumerate(RANGES.items()):
            other, third = some(RANGES, turn + 1, 2)
            inputs = [np.int32(1), *(codes_of(at, kind, (3, count)) for at, count in ((name, 4), (other, 2), (third, 1)))]
            lows, highs = zip(ends, RANGES[other], RANGES[third])
            suite.case(f"{kind}_{name}", [*inputs, *scalars(*lows), *scalars(*highs)], {"N": 3}, const=[0])
        for axis, shapes in [(0, ((2, 3), (1, 3))), (0, ((4,), (7,))), (2, ((2, 3, 1), (2, 3, 5))), (1, ((2, 3, 2), (2, 1, 2))), (0, ((0, 3), (0, 3)))]:
            values = [codes_of(f"part{at}", kind, shape) for at, shape in enumerate(shapes)]
            inputs = [np.int32(axis), *values, *scalars(-3, -3, 4.5, 4.5)]
            suite.case(f"{kind}_axis{axis}_{shape_name(shapes[0])}", inputs, {"N": 2}, const=[0])
    x, ends = codes_of("refused", "quint8", (2, 3)), scalars(-3, -3, 4.5, 4.5)
    suite.error("axis", [np.int32(2), x, x, *ends], {"N": 2}, const=[0])
    suite.error("far_axis", [np.int32(-3), x, x, *ends], {"N": 2}, const=[0])
    suite.error("shapes", [np.int32(0), x, codes_of("refused", "quint8", (2, 4)), *ends], {"N": 2}, const=[0])
    suite.error("ranks", [np.int32(0), x, codes_of("refused", "quint8", (3,)), *ends], {"N": 2}, const=[0])
    suite.error("scalars", [np.int32(0), *[codes_of("refused", "quint8", ())] * 2, *ends], {"N": 2}, const=[0])
    yield suite.finish()


def reshape(folder):
    """QuantizedReshape."""
    suite = Suite(folder, "quantization", "QuantizedReshape")
    forms = [((2, 3), [3, 2]), ((2, 3), [-1]), ((2, 3), [6, 1]), ((), [1, 1]), ((1,), []), ((0, 3), [3, -1]), ((2, 3, 5), [5, -1])]
    for kind in ("quint8", "qint32"):
        for index in (np.int32, np.int64):
            for before, after in forms:
                inputs = [codes_of("reshape", kind, before), np.array(after, index), *scalars(-3, 4.5)]
                suite.case(f"{kind}_{index.__name__}_{shape_name(before)}_{shape_name(after)}".replace("-1", "m"), inputs, const=[1])
    x = codes_of("refused", "quint8", (2, 3))
    for name, after in {"size": [4], "two_unknown": [-1, -1], "negative": [-2, 3], "uneven": [4, -1]}.items():
        suite.error(name, [x, np.int32(after), *scalars(-3, 4.5)], const=[1])
    not_scalar(suite, [x, np.int32([6]), *scalars(-3, 4.5)], [2, 3])
    yield suite.finish()


GROUPS = [requantise, requantise_channels, activations, bias_add, pairs, concat, reshape]
