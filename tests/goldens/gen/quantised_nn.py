"""Products, convolutions and poolings of codes."""

import numpy as np

from .data import Quantised
from .quantise import codes_of, shape_name
from .quantised import not_scalar, scalars
from .suite import Suite

# Ranges of two operands: zeros in the middle, at an end, outside.
RANGES = {"around": (-3, 4.5, -0.25, 0.5), "ends": (0, 6, -1, 0), "middle": (-128, 127, -128, 127), "outside": (0.5, 2, -3, -1)}
OUT = {"out_type": "qint32"}


def matmul(folder):
    """QuantizedMatMul."""
    suite = Suite(folder, "quantization", "QuantizedMatMul")
    out = {"Toutput": "qint32"}
    sizes = [(1, 1, 1), (2, 3, 4), (1, 17, 5), (7, 1, 3), (13, 31, 1), (5, 257, 3), (23, 29, 19)]
    for turn, (m, k, n) in enumerate(sizes):
        for name, ends in RANGES.items():
            left, right = bool((turn + len(name)) & 1), bool(turn & 2)
            a = codes_of(f"a{name}", "quint8", (k, m) if left else (m, k))
            b = codes_of(f"b{name}", "quint8", (n, k) if right else (k, n))
            attrs = out | {"transpose_a": left, "transpose_b": right}
            suite.case(f"{m}x{k}x{n}_{name}", [a, b, *scalars(*ends)], attrs)
    # The type of an activation that is to follow changes nothing.
    for turn, kind in enumerate(("qint8", "qint16", "quint16", "qint32")):
        attrs = out | {"transpose_a": turn > 1, "transpose_b": bool(turn & 1), "Tactivation": kind}
        inputs = [codes_of("square", "quint8", (9, 9)), codes_of("other", "quint8", (9, 9)), *scalars(*RANGES["around"])]
        suite.case(f"turned_{kind}", inputs, attrs)
    for value in (0, 255):
        whole = Quantised("quint8", np.full((3, 3000), value))
        suite.case(f"extreme_{value}", [whole, whole, *scalars(0, 1, 0, 1)], out | {"transpose_b": True})
    x, ends = codes_of("refused", "quint8", (2, 3)), scalars(*RANGES["around"])
    suite.error("sizes", [x, x, *ends], out)
    suite.error("vector", [x, codes_of("refused", "quint8", (3,)), *ends], out)
    suite.error("cube", [codes_of("refused", "quint8", (1, 2, 3)), x, *ends], out)
    suite.error("order_a", [x, x, *scalars(1, 0, 0, 1)], out | {"transpose_b": True})
    suite.error("point_b", [x, x, *scalars(0, 1, 1, 1)], out | {"transpose_b": True})
    not_scalar(suite, [x, x, *ends], [2, 3, 4, 5], out | {"transpose_b": True})
    yield suite.finish()


def single(range_a, range_b):
    """The range of sums of products of a quint8 range and a symmetric qint8 one, in single precision."""
    one = np.float32
    level = (one(range_a[1]) - one(range_a[0])) / one(255) * ((one(range_b[1]) - one(range_b[0])) / one(254))
    return [level * one(-(2.0**31)), level * one(2.0**31)]


def as_unsigned(case):
    """A filter of qint8 as one of quint8 whose zero is 128: TensorFlow's CPU has no kernel for the former.

    The sums are the same; the range of the result is oneDNN's, which splits that of a filter into 254 levels.
    """
    x, w, *ends = case.inputs
    shifted = Quantised("quint8", w.values.astype(np.int32) + 128)
    low, high = single(ends[:2], ends[2:])

    def back(results):
        return [results[0], np.float32(low), np.float32(high)]

    return [x, shifted, *ends[:2], *scalars(-128, 127)], case.attrs, back


def zero_filled(case):
    """A depthwise convolution as one whose filter has zeros where channels do not meet."""
    (x, w, *ends), attrs, back = as_unsigned(case)
    rows, columns, channels, multiplier = w.values.shape
    wide = np.full((rows, columns, channels, channels, multiplier), 128, np.uint8)
    for channel in range(channels):
        wide[:, :, channel, channel] = w.values[:, :, channel]
    return [x, Quantised("quint8", wide.reshape(rows, columns, channels, -1)), *ends], attrs, back


def dilated(case):
    """Dilations, which TensorFlow's kernel refuses, as zeros between the weights."""
    (x, w, *ends), attrs, back = as_unsigned(case)
    _, down, across, _ = attrs["dilations"]
    rows, columns, *channels = w.values.shape
    wide = np.full(((rows - 1) * down + 1, (columns - 1) * across + 1, *channels), 128, np.uint8)
    wide[::down, ::across] = w.values
    return [x, Quantised("quint8", wide), *ends], attrs | {"dilations": [1, 1, 1, 1]}, back


def stepped(case):
    """Strides that differ, which TensorFlow's kernel refuses, as some of the results of stride 1; without padding."""
    inputs, attrs, back = as_unsigned(case)
    _, down, across, _ = attrs["strides"]

    def some_of(results):
        every, *ends = back(results)
        return [Quantised("qint32", every.values[:, ::down, ::across]), *ends]

    return inputs, attrs | {"strides": [1, 1, 1, 1]}, some_of


# Input, rows and columns of the filter, outputs.
IMAGES = [((1, 1, 1, 1), (1, 1), 1), ((1, 5, 7, 3), (3, 2), 4), ((2, 6, 5, 2), (3, 3), 5), ((1, 6, 7, 4), (2, 5), 3), ((1, 8, 7, 1), (3, 3), 4)]


def windows(turn):
    stride = 1 + turn % 2
    return {"strides": [1, stride, stride, 1], "padding": ("SAME", "VALID")[turn // 2 % 2]}


def convolution(folder):
    """QuantizedConv2D."""
    suite = Suite(folder, "quantization", "QuantizedConv2D")
    for number, (shape, filter_shape, outputs) in enumerate(IMAGES):
        for turn in (number % 2, 3 - number % 2):
            attrs = windows(turn) | OUT
            x = codes_of("image", "quint8", shape)
            name = f"{shape_name(shape)}_{attrs['padding']}_{attrs['strides'][1]}"
            for kind in ("around", "middle") if turn % 3 else ("around", "ends"):
                w = codes_of("filter", "quint8", (*filter_shape, shape[3], outputs))
                suite.case(f"quint8_{name}_{kind}", [x, w, *scalars(*RANGES[kind])], attrs)
            w = codes_of("filter", "qint8", (*filter_shape, shape[3], outputs))
            suite.case(f"qint8_{name}", [x, w, *scalars(0, 6, -0.5, 0.5)], attrs, run_as=as_unsigned, via="quint8 filter")
    x, w = codes_of("large", "quint8", (1, 9, 8, 8)), codes_of("filter", "quint8", (3, 3, 8, 6))
    suite.case("large", [x, w, *scalars(*RANGES["around"])], {"strides": [1, 1, 1, 1], "padding": "SAME"} | OUT)
    x, w, ends = codes_of("image", "quint8", (1, 7, 9, 2)), codes_of("filter", "qint8", (3, 2, 2, 3)), scalars(0, 6, -0.5, 0.5)
    for padding in ("SAME", "VALID"):
        for down, across in ((2, 2), (3, 1), (1, 4)):
            attrs = {"strides": [1, 1, 1, 1], "padding": padding, "dilations": [1, down, across, 1]} | OUT
            suite.case(f"dilated_{padding}_{down}x{across}", [x, w, *ends], attrs, run_as=dilated, via="zero-filled filter")
    for down, across in ((1, 2), (3, 1)):
        attrs = {"strides": [1, down, across, 1], "padding": "VALID"} | OUT
        suite.case(f"strides_{down}x{across}", [x, w, *ends], attrs, run_as=stepped, via="slice")
    refusals(suite, codes_of("refused", "quint8", (3, 2, 2, 4)))
    yield suite.finish()


def refusals(suite, w):
    x, ends = codes_of("refused", "quint8", (1, 5, 6, 2)), scalars(*RANGES["around"])
    same = {"strides": [1, 1, 1, 1], "padding": "SAME"} | OUT
    suite.error("few_strides", [x, w, *ends], same | {"strides": [1, 1, 1]})
    suite.error("rank", [Quantised("quint8", x.values[0]), w, *ends], same)
    suite.error("filter_rank", [x, Quantised(w.name, w.values[0]), *ends], same)
    suite.error("depth", [Quantised("quint8", x.values[..., :1]), w, *ends], same)
    not_scalar(suite, [x, w, *ends], [2, 3, 4, 5], same)


def depthwise(folder):
    """QuantizedDepthwiseConv2D, which TensorFlow's CPU leaves to oneDNN: made as QuantizedConv2D."""
    suite = Suite(folder, "quantization", "QuantizedDepthwiseConv2D", stand_in="QuantizedConv2D")
    for shape, filter_shape, outputs in IMAGES:
        for turn in range(4):
            for multiplier in {1, outputs % 3 + 1}:
                attrs = windows(turn) | OUT
                x, w = codes_of("image", "quint8", shape), codes_of("filter", "qint8", (*filter_shape, shape[3], multiplier))
                name = f"{shape_name(shape)}_{attrs['padding']}_{attrs['strides'][1]}_{multiplier}"
                suite.case(name, [x, w, *scalars(0, 6, -0.5, 0.5)], attrs, run_as=zero_filled, via="zero-filled filter")
    yield suite.finish()


def pooling(folder):
    """QuantizedMaxPool and QuantizedAvgPool."""
    shapes = [(1, 1, 1, 1), (1, 5, 7, 3), (2, 6, 5, 2), (1, 4, 3, 17)]
    forms = [([1, 2, 2, 1], [1, 2, 2, 1]), ([1, 3, 2, 1], [1, 1, 1, 1]), ([1, 1, 1, 1], [1, 1, 1, 1]), ([1, 3, 3, 1], [1, 2, 1, 1])]
    for op in ("QuantizedMaxPool", "QuantizedAvgPool"):
        suite = Suite(folder, "quantization", op)
        for kind in ("quint8", "qint8"):
            for at, shape in enumerate(shapes):
                for form, (ksize, strides) in enumerate(forms):
                    fits = min(shape[1:3]) >= max(ksize)
                    for padding in (("SAME", "VALID")[form + at & 1],) if fits else ("SAME",):
                        attrs = {"ksize": ksize, "strides": strides, "padding": padding}
                        x = codes_of(f"pool{at}", kind, shape)
                        suite.case(f"{kind}_{shape_name(shape)}_{form}_{padding}", [x, *scalars(-3, 4.5)], attrs)
        x = codes_of("pool", "quint8", (1, 4, 4, 2))
        base = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}
        suite.case("none", [Quantised("quint8", np.zeros((0, 4, 4, 2))), *scalars(-3, 4.5)], base)
        large = base | {"padding": "VALID"}
        suite.case("nothing_left", [x, *scalars(-3, 4.5)], large | {"ksize": [1, 5, 1, 1]})
        suite.error("window_too_large", [x, *scalars(-3, 4.5)], large | {"ksize": [1, 6, 1, 1]})
        for name, attrs in {
            "batch": {"ksize": [2, 2, 2, 1]},
            "batch_strides": {"strides": [2, 1, 1, 1]},
            "short": {"ksize": [1, 2, 2]},
            "depth_and_rows": {"ksize": [1, 2, 2, 2], "strides": [1, 1, 1, 2]},
        }.items():
            suite.error(name, [x, *scalars(-3, 4.5)], base | attrs)
        suite.error("rank", [Quantised("quint8", x.values[0]), *scalars(-3, 4.5)], base)
        not_scalar(suite, [x, *scalars(-3, 4.5)], [1, 2], base)
        yield suite.finish()


GROUPS = [matmul, convolution, depthwise, pooling]
