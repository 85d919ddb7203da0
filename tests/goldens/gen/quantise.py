"""Real numbers to codes and back: QuantizeV2, Dequantize, and the ops that do both."""

import numpy as np

from .data import NUMPY, QUANTISED, Quantised, array, full, seeded
from .suite import Suite

MODES = ["MIN_COMBINED", "MIN_FIRST", "SCALED"]
RANGES = {
    "around": (-1, 2),
    "positive": (0, 6),
    "negative": (-1.5, 0),
    "above": (0.5, 2),
    "below": (-3, -1),
    "nothing": (0, 0),
    "point": (5, 5),
    "units": (-128, 127),
    "bytes": (0, 255),
    "tiny": (-1e-30, 2e-30),
    "huge": (-1e30, 1e30),
}
SHAPES = [(), (0,), (1,), (7, 11), (2, 3, 0), (2, 3, 5, 2)]


def reals(name, low, high, shape, codes=None):
    """Numbers in and around a range, its ends and halves of levels among them.

    For codes of 32 bits, below the upper end: there TensorFlow's conversion to an integer overflows.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    width = (high - low) or 1.0
    if codes == "qint32":
        return array(low + seeded(name, *shape).uniform(-0.25, 0.99, shape) * width, "float")
    x = array(low + seeded(name, *shape).uniform(-0.25, 1.25, shape) * width, "float")
    flat = x.reshape(-1)
    listed = [low, high, 0.0, -0.0, np.inf, -np.inf, 0.5, 1.5, -0.5, 2.5, low + width / 510, low + 3 * width / 510]
    flat[: len(listed)] = listed[: flat.size]
    return x


def some(items, turn, count):
    """So many of the items, others at each turn, so that all have had theirs after some."""
    items = list(items)
    return [items[(turn * count + at) % len(items)] for at in range(count)]


def pair(low, high):
    return [np.float32(low), np.float32(high)]


def shape_name(shape):
    return "x".join(map(str, shape)) or "scalar"


def saturated(case):
    """The greatest code where TensorFlow's conversion to an integer overflows and gives the least."""
    x = case.inputs[0]

    def back(results):
        codes, *ends = results
        overflows = (codes.values == np.iinfo(np.int32).min) & (x > 0)
        return [Quantised("qint32", np.where(overflows, np.iinfo(np.int32).max, codes.values)), *ends]

    return case.inputs, case.attrs, back


def quantise(folder):
    """QuantizeV2."""
    suite = Suite(folder, "quantization", "QuantizeV2")
    turn = 0
    for codes in QUANTISED:
        for mode in MODES:
            attrs, turn = {"T": codes, "mode": mode}, turn + 1
            for name in ["around", *some(list(RANGES)[1:], turn, 1)]:
                x = reals(name, *RANGES[name], (3, 5), codes)
                suite.case(f"{codes}_{mode}_{name}", [x, *pair(*RANGES[name])], attrs)
        for narrow in (False, True):
            for even in ("HALF_TO_EVEN", "HALF_AWAY_FROM_ZERO"):
                attrs, turn = {"T": codes, "mode": "SCALED", "round_mode": even, "narrow_range": narrow}, turn + 1
                for name in some(("units", "around", "bytes"), turn, 1):
                    x = reals(name, *RANGES[name], (3, 5), codes)
                    suite.case(f"{codes}_{even}_{narrow}_{name}", [x, *pair(*RANGES[name])], attrs)
    for width, codes in zip((0.0, 1.0, 5.0), QUANTISED):
        attrs = {"T": codes, "ensure_minimum_range": width}
        suite.case(f"{codes}_width_{int(width)}", [reals("width", -0.1, 0.2, (9,), codes), *pair(-0.1, 0.2)], attrs)
    for mode in MODES:
        for narrow in (False, True) if mode == "SCALED" else (False,):
            x = array([[-np.inf, -3e38, -2, -1, 0, 1, 1.9999998, 2, 3, 3e38, np.inf]], "float")
            attrs = {"T": "qint32", "mode": mode, "narrow_range": narrow}
            inputs = [x, *pair(-1, 2)]
            suite.case(f"qint32_{mode}_{narrow}_saturated", inputs, attrs, via="greatest code", run_as=saturated)
    for shape in SHAPES:
        suite.case(f"shape_{shape_name(shape)}", [reals("shape", -1, 2, shape), *pair(-1, 2)], {"T": "quint8"})
    suite.case("large", [reals("large", -1, 2, (31, 37)), *pair(-1, 2)], {"T": "qint8", "mode": "SCALED"})
    quantised_channels(suite)
    x, ends = reals("refused", -1, 2, (2, 3)), pair(-1, 2)
    suite.error("order", [x, *pair(2, -1)], {"T": "quint8"})
    suite.error("order_of_channel", [x, np.float32([-1, 3]), np.float32([2, 2])], {"T": "quint8", "axis": 0})
    suite.error("even_combined", [x, *ends], {"T": "quint8", "round_mode": "HALF_TO_EVEN"})
    suite.error("even_first", [x, *ends], {"T": "quint8", "round_mode": "HALF_TO_EVEN", "mode": "MIN_FIRST"})
    suite.error("first_of_channels", [x, np.float32([-1, -1]), np.float32([2, 2])], {"T": "quint8", "axis": 0, "mode": "MIN_FIRST"})
    suite.error("axis", [x, np.float32([-1, -1]), np.float32([2, 2])], {"T": "quint8", "axis": 2})
    suite.error("negative_axis", [x, *ends], {"T": "quint8", "axis": -2})
    suite.error("few_ends", [x, np.float32([-1]), np.float32([2])], {"T": "quint8", "axis": 1})
    suite.error("scalar_ends", [x, *ends], {"T": "quint8", "axis": 1})
    suite.error("many_ends", [x, np.float32([-1, -1]), np.float32([2, 2])], {"T": "quint8"})
    yield suite.finish()


def channels(name, count):
    """Ends of ranges that hold 0."""
    rng = seeded("channels", name, count)
    return array(-rng.uniform(0, 3, count), "float"), array(rng.uniform(0, 3, count), "float")


SPLITS = [(0, (3, 4, 5)), (1, (3, 4, 5)), (2, (3, 4, 5)), (0, (7,)), (1, (2, 3, 0))]


def quantised_channels(suite):
    turn = 0
    for codes in QUANTISED:
        for mode in ("MIN_COMBINED", "SCALED"):
            turn += 1
            for axis, shape in some(SPLITS, turn, 1):
                low, high = channels("quantise", shape[axis])
                inner = 0.8 if codes == "qint32" else 1.5
                expand = [-1 if at == axis else 1 for at in range(len(shape))]
                x = seeded(codes, mode, *shape).uniform(-inner, inner, shape) * high.reshape(expand)
                attrs = {"T": codes, "mode": mode, "axis": axis}
                suite.case(f"{codes}_{mode}_axis{axis}_{shape_name(shape)}", [array(x, "float"), low, high], attrs)


def codes_of(name, kind, shape):
    """Codes from the whole of a type, its ends among them."""
    info = np.iinfo(NUMPY[QUANTISED[kind]])
    x = full(seeded(name, kind, *shape), QUANTISED[kind], shape)
    flat = x.reshape(-1)
    listed = [info.min, info.max, 0, 1, info.max // 2, info.min + 1, info.max - 1]
    flat[: len(listed)] = np.array(listed, x.dtype)[: flat.size]
    # The greatest codes of 32 bits are no floats, and TensorFlow converts the float above them back to an integer.
    return Quantised(kind, np.minimum(x, 2**31 - 128) if kind == "qint32" else x)


def dequantise(folder):
    """Dequantize."""
    suite = Suite(folder, "quantization", "Dequantize", known_shapes=True)
    turn = 0
    for kind in QUANTISED:
        for mode, narrow in [*((mode, False) for mode in MODES), ("SCALED", True)]:
            attrs, turn = {"mode": mode, "narrow_range": narrow}, turn + 1
            for name in ["around", *some(list(RANGES)[1:], turn, 2)]:
                suite.case(f"{kind}_{mode}_{narrow}_{name}", [codes_of(name, kind, (3, 5)), *pair(*RANGES[name])], attrs)
        for name in some(("around", "units", "huge"), turn, 1):
            inputs = [codes_of(name, kind, (3, 7)), *pair(*RANGES[name])]
            suite.case(f"{kind}_bfloat16_{name}", inputs, {"dtype": "bfloat16"})
        for mode in ("MIN_COMBINED", "SCALED"):
            turn += 1
            for axis, shape in some(SPLITS, turn, 1):
                low, high = channels("dequantise", shape[axis])
                attrs = {"mode": mode, "axis": axis}
                suite.case(f"{kind}_{mode}_axis{axis}_{shape_name(shape)}", [codes_of("channels", kind, shape), low, high], attrs)
    for shape in SHAPES:
        suite.case(f"shape_{shape_name(shape)}", [codes_of("shape", "quint8", shape), *pair(-1, 2)])
    suite.case("large", [codes_of("large", "qint8", (31, 37)), *pair(-1, 2)], {"mode": "MIN_FIRST"})
    x, ends = codes_of("refused", "quint8", (2, 3)), pair(-1, 2)
    two = [np.float32([-1, -1]), np.float32([2, 2])]
    suite.error("bfloat16_scaled", [x, *ends], {"dtype": "bfloat16", "mode": "SCALED"})
    suite.error("bfloat16_first", [x, *ends], {"dtype": "bfloat16", "mode": "MIN_FIRST"})
    suite.error("first_of_channels", [x, *two], {"axis": 0, "mode": "MIN_FIRST"})
    suite.error("axis", [x, *two], {"axis": 2})
    suite.error("few_ends", [x, *two], {"axis": 1})
    suite.error("many_ends", [x, *two])
    yield suite.finish()


ROUND_TRIP_RANGES = {name: RANGES[name] for name in ("around", "positive", "negative", "units", "bytes", "nothing", "tiny", "huge")}


def round_trip_cases(suite, bits_are_input):
    """Cases that the three ops share: V3 has the number of bits as an input, and rounds to even."""

    def case(name, x, low, high, attrs, bits=8):
        inputs, const = [x, low, high], []
        if bits_are_input:
            inputs, const = [*inputs, np.int32(bits)], [3]
        else:
            attrs = attrs | {"num_bits": bits}
        suite.case(name, inputs, attrs, const=const)

    turn = 0
    for kind in ("float", "double"):
        for signed in (False, True):
            for name in ["around", *some(list(ROUND_TRIP_RANGES)[1:], turn, 4)]:
                low, high = RANGES[name]
                x, low, high = array(reals(name, low, high, (3, 5)), kind), array(low, kind), array(high, kind)
                attrs = {"range_given": True, "signed_input": signed}
                case(f"{kind}_given_{signed}_{name}", x, low, high, attrs)
                case(f"{kind}_found_{signed}_{name}", np.where(np.isinf(x), low, x), low, high, attrs | {"range_given": False})
            turn += 1
        x, low, high = array(reals("bits", -1, 2, (3, 5)), kind), array(-1, kind), array(2, kind)
        for bits, narrow in [(1, False), (2, True), (5, False), (8, True), (16, True), (24, False), (40, True), (61, False)]:
            case(f"{kind}_bits{bits}_{narrow}", x, low, high, {"range_given": True, "narrow_range": narrow}, bits)
        case(f"{kind}_bits62", x, low, high, {"range_given": True, "signed_input": False}, 62)
        x = array(np.append(seeded("special", kind).uniform(-2, 2, 16), [np.nan, np.nan]), kind)
        case(f"{kind}_nan", x, low, high, {"range_given": True})
        for axis, shape in [(0, (3, 4, 5)), (1, (3, 4, 5)), (2, (3, 4, 5)), (0, (7,)), (0, (1, 5)), (1, (2, 3, 0))]:
            ends = [array(end, kind) for end in channels("round_trip", shape[axis])]
            x = array(seeded("round_trip", kind, *shape).uniform(-2, 2, shape), kind)
            # With a range per channel, V2 and V4 insist on scalars where they have checked that there are none.
            for given in (False, True) if bits_are_input else (False,):
                case(f"{kind}_axis{axis}_{shape_name(shape)}_{given}", x, *ends, {"range_given": given, "axis": axis})
    for shape in SHAPES[int(bits_are_input) :]:  # V3 takes a scalar to lack the axis -1.
        case(f"shape_{shape_name(shape)}", reals("shape", -1, 2, shape), *pair(-1, 2), {"range_given": True})
    case("large", reals("large", -1, 2, (31, 37)), *pair(-1, 2), {"range_given": True})


def round_trips(folder):
    """QuantizeAndDequantizeV2, V3 and V4."""
    for version in (2, 3, 4):
        suite = Suite(folder, "quantization", f"QuantizeAndDequantizeV{version}")
        round_trip_cases(suite, version == 3)
        x, ends, bits = reals("refused", -1, 2, (2, 3)), pair(-1, 2), [np.int32(8)] if version == 3 else []
        if version != 3:
            for name in ("around", "units", "bytes"):
                low, high = RANGES[name]
                attrs = {"range_given": True, "round_mode": "HALF_UP"}
                suite.case(f"up_{name}", [reals(name, low, high, (5, 7)), *pair(low, high)], attrs)
        for name, count, signed in (("none", 0, True), ("signed", 62, True), ("unsigned", 63, False)):
            attrs = {"signed_input": signed} | ({} if bits else {"num_bits": count})
            suite.error(f"bits_{name}", [x, *ends, *([np.int32(count)] if bits else [])], attrs)
        suite.error("order", [x, *pair(2, -1), *bits], {"range_given": True})
        suite.error("axis", [x, np.float32([-1, -1]), np.float32([2, 2]), *bits], {"range_given": True, "axis": 2})
        suite.error("negative_axis", [x, *ends, *bits], {"range_given": True, "axis": -2})
        suite.error("few_ends", [x, np.float32([-1]), np.float32([2]), *bits], {"range_given": True, "axis": 1})
        if version != 3:  # V3 ends the process.
            suite.error("many_ends", [x, np.float32([-1, -1]), np.float32([2, 2])], {"range_given": True})
        yield suite.finish()


GROUPS = [quantise, dequantise, round_trips]
