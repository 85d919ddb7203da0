"""_QuantizedFusedMatMul, and what quantised products share: TensorFlow's ops of integers and doubles spell them out."""

import numpy as np
import tensorflow as tf

from .composed import ComposedSuite
from .data import NUMPY, QUANTISED, Quantised, full, seeded
from .suite import EXACT

STAGE = {
    "requantize": ("string", "FLOAT"),
    "activation": ("string", "NONE"),
    "clamp_min": ("float", 0.0),
    "clamp_max": ("float", 6.0),
}
BYTES = ["quint8", "qint8"]
OUTPUTS = ["quint8", "qint8", "qint16", "qint32", "float"]


def arguments(*factors):
    """The inputs of an op whose factors have these names, as its definition writes them."""
    values = [f"{name}: T{letter}" for name, letter in zip(factors, "ab")]
    parameters = [f"{name}_{what}" for name in (*factors, "out") for what in ("scale: float", "zero_point: int32")]
    return [*values, *parameters, "bias: num_bias * int32"]


class QuantisedSuite(ComposedSuite):
    """Codes go in as integers of 32 bits, and come out as those of their type. `products` gives the sums of a linear op
    from its factors, the zero points and the attributes; what follows them is the same for all."""

    def __init__(self, folder, op, factors, attrs, products):
        def compose(inputs, attrs):
            a, b, a_scale, a_zero, b_scale, b_zero, out_scale, out_zero, *bias = inputs
            sums = sum(bias, products(a, b, a_zero, b_zero, attrs))
            return brought_to_scale(sums, a_scale, b_scale, out_scale, out_zero, attrs)

        super().__init__(folder, op, arguments(*factors), attrs | STAGE, compose, "Tout")

    @staticmethod
    def widened(x):
        return x.values.astype(np.int32) if isinstance(x, Quantised) else x

    def narrowed(self, result, case):
        name = case.attrs["Tout"]
        return Quantised(name, result) if name in QUANTISED else result


def bounds(attrs):
    """The least and the greatest real result."""
    listed = {"NONE": (-np.inf, np.inf), "RELU": (0, np.inf), "RELU6": (0, 6)}
    return listed.get(attrs["activation"], (attrs["clamp_min"], attrs["clamp_max"]))


def brought_to_scale(sums, a_scale, b_scale, out_scale, out_zero, attrs):
    """The output of sums of 32 bits; its last dimension is that of the scales of b."""
    a_scale, b_scale, out_scale = (tf.cast(x, tf.float64) for x in (a_scale, b_scale, out_scale))
    low, high = bounds(attrs)
    if attrs["Tout"] == "qint32":
        return tf.nn.relu(sums) if attrs["activation"] == "RELU" else sums
    if attrs["Tout"] == "float":
        return tf.clip_by_value(tf.cast(sums, tf.float32) * tf.cast(a_scale * b_scale, tf.float32), low, high)
    scale = a_scale * b_scale / out_scale
    if attrs["requantize"] == "FLOAT":
        steps = by_float(sums, scale)
    else:
        steps = tf.numpy_function(in_fixed_point, [sums, scale], tf.float64)
    zero, limits = tf.cast(out_zero, tf.float64), np.iinfo(NUMPY[QUANTISED[attrs["Tout"]]])
    quantised = lambda bound: tf.clip_by_value(tf.round(bound / out_scale) + zero, limits.min, limits.max)
    return tf.cast(tf.clip_by_value(steps + zero, quantised(low), quantised(high)), tf.int32)


def by_float(sums, scale):
    """The product of two floats is exact in double precision, so that there is one rounding, ties to even."""
    single = lambda x: tf.cast(tf.cast(x, tf.float32), tf.float64)
    return tf.round(single(sums) * single(scale))


def in_fixed_point(sums, scale):
    """As gemmlowp writes it (doc/quantization.md, fixedpoint/fixedpoint.h), where no step saturates."""
    mantissa, exponent = np.frexp(np.broadcast_to(scale, sums.shape))
    mantissa = np.floor(mantissa * 2.0**31 + 0.5).astype(np.int64)
    shifted = sums.astype(np.int64) << np.maximum(exponent, 0)
    assert np.all(np.abs(shifted) < 2**31)
    product = shifted * mantissa
    nudge = np.where(product >= 0, 2**30, 1 - 2**30)
    high = np.sign(product) * (np.abs(product + nudge) >> 31)
    # A tie goes away from zero.
    power = 2.0 ** np.maximum(-exponent, 0)
    return np.copysign(np.floor(np.abs(high) / power + 0.5), high)


SCALES = (0.02, (0.01, 0.02), 0.125)


def add(suite, name, types, shapes, channels, columns=False, bias=True, scales=SCALES, **attrs):
    """A case. Zero points are near the middle. `scales` are those of a, the ends of those of b, and that of the output,
    unless given such that results reach most codes of 8 bits. `columns` says which parameters of b are vectors:
    "scales", "zeros" or, if true, both."""
    rng = seeded(suite.op, *types, name)
    a, b = (Quantised(dtype, full(rng, QUANTISED[dtype], shape)) for dtype, shape in zip(types, shapes))
    each = lambda what: (channels,) if columns in (True, what) else ()
    zero = lambda dtype, shape=(): np.asarray(rng.integers(-20, 20, shape) + 128 * (dtype == "quint8"), np.int32)
    a_scale, ends, out_scale = scales
    inputs = [a, b, np.float32(a_scale), zero(types[0])]
    inputs += [np.asarray(rng.uniform(*ends, each("scales")), np.float32), zero(types[1], each("zeros"))]
    inputs += [np.float32(out_scale), zero(types[2])]
    inputs += [np.asarray(rng.integers(-9999, 9999, channels), np.int32)] if bias else []
    attrs |= {"Tout": types[2], "num_bias": int(bias)}
    options = {"tolerance": EXACT, "via": "composition", "const": [*range(1, len(inputs))]}
    suite.case("_".join((*types, name)), inputs, attrs, **options)


TRANSPOSES = {"transpose_a": ("bool", False), "transpose_b": ("bool", False)}
SIZES = {"prime": (5, 7, 3), "17": (17, 19, 23), "row": (1, 37, 9), "empty_m": (0, 3, 2), "empty_k": (2, 0, 3)}


def products(a, b, a_zero, b_zero, attrs):
    # The columns of b are rows where it is transposed.
    columns = b_zero[:, None] if attrs["transpose_b"] and b_zero.shape.rank else b_zero
    return tf.linalg.matmul(a - a_zero, b - columns, attrs["transpose_a"], attrs["transpose_b"])


def add_product(suite, name, types, sizes=SIZES["prime"], columns=False, bias=True, **attrs):
    m, k, n = sizes
    shapes = (k, m) if attrs.get("transpose_a") else (m, k), (n, k) if attrs.get("transpose_b") else (k, n)
    add(suite, name, types, shapes, n, columns, bias, **attrs)


def quantised_product(folder):
    """_QuantizedFusedMatMul."""
    suite = QuantisedSuite(folder, "_QuantizedFusedMatMul", ("a", "b"), TRANSPOSES, products)
    for types in [(a, b, out) for a in BYTES for b in BYTES for out in OUTPUTS]:
        add_product(suite, "plain", types, bias=types[0] == types[1])
    fixed = {"requantize": "FIXED_POINT"}
    for out in ("quint8", "qint8", "qint16"):
        types = ("quint8", "qint8", out)
        add_product(suite, "fixed_point", types, SIZES["17"], **fixed)
        add_product(suite, "columns", types, SIZES["17"], True)
        turned = {"transpose_a": True, "transpose_b": True}
        add_product(suite, "columns_fixed_point", types, columns=True, activation="RELU", **turned, **fixed)
    for out in OUTPUTS:
        types = ("quint8", "qint8", out)
        add_product(suite, "relu", types, columns=True, transpose_b=True, activation="RELU")
        if out != "qint32":
            add_product(suite, "relu6", types, transpose_a=True, activation="RELU6")
            add_product(suite, "clamp", types, activation="CLAMP", clamp_min=-1.5, clamp_max=2.25)
        for label in ("row", "empty_m", "empty_k"):
            add_product(suite, label, types, SIZES[label], columns=label == "row")
    yield suite.finish()


GROUPS = [quantised_product]
