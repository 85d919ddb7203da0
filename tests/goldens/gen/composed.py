"""_FusedAttention, _FusedSoftmaxScale, _FusedLayerNorm and _FusedGelu: what graphs spell out in standard ops.

TensorFlow runs these ops in double precision, and the result is rounded once. NumPy computes it another way, to check
it, and with it the measure of what rounding may come to.
"""

import math

import numpy as np
import tensorflow as tf

from . import session
from .data import FLOATS, array, normal, seeded
from .definition import define
from .suite import Suite, complete_attrs

erfc = np.vectorize(math.erfc, otypes=[np.float64])
VIA = "composition in double precision"


class ComposedSuite(Suite):
    """Cases of an op that TensorFlow has not; `compose` makes it of standard ops, given inputs and attributes."""

    def __init__(self, folder, op, inputs, attrs, compose, output="T"):
        super().__init__(folder, "fused", op)
        self.op_def = define(op, inputs, attrs, output)
        self.compose = compose

    def run_cases(self):
        for case in self.cases:
            attrs = complete_attrs(self.op_def, case.inputs, case.attrs)
            attrs = {name: exactly(*attr) for name, attr in attrs.items()}
            case.attrs = attrs
            case.outputs = [self.composed(case)]

    def composed(self, case):
        """The result of one case."""
        with tf.Graph().as_default() as graph:
            inputs = [self.widened(x) for x in case.inputs]
            placeholders = [tf.compat.v1.placeholder(x.dtype, x.shape) for x in inputs]
            output = self.compose(placeholders, case.attrs)
            with tf.compat.v1.Session(graph=graph, config=session.config()) as run:
                return self.narrowed(np.asarray(run.run(output, dict(zip(placeholders, inputs)))), case)

    @staticmethod
    def widened(x):
        """What the composition computes with."""
        return x if x.dtype == np.bool_ else x.astype(np.float64)

    def narrowed(self, result, case):
        """The result in its own type."""
        return result.astype(case.inputs[0].dtype)


def exactly(kind, value):
    """A number as a float attribute holds it."""
    return float(np.float32(value)) if kind == "float" else value


def doubles(case):
    return [ComposedSuite.widened(x) for x in case.inputs]


def finite(x):
    """Absolute values; what is infinite counts for nothing, since its result is exact."""
    return np.where(np.isfinite(x), np.abs(x), 0)


def compose_gelu(inputs, attrs):
    [x] = inputs
    if attrs["approximate"]:
        inner = tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))
    else:
        inner = tf.math.erf(x * math.sqrt(0.5))
    return 0.5 * x * (1 + inner)


def exact_gelu(case):
    """By the functions that do not cancel where the result is small."""
    [x] = doubles(case)
    if case.attrs["approximate"]:
        value = x / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    else:
        value = 0.5 * x * erfc(-x * math.sqrt(0.5))
    return [(value, np.abs(x))]


def gelu(folder):
    """_FusedGelu."""
    suite = ComposedSuite(folder, "_FusedGelu", ["features: T"], {"approximate": ("bool", False)}, compose_gelu)
    shapes = {"vector": (7,), "rank3": (2, 3, 5), "scalar": (), "empty": (0, 3), "1009": (1009,)}
    for dtype in FLOATS:
        for kind in ("exact", "approximate"):
            options = {"reference": exact_gelu, "terms": 1, "via": VIA}
            attrs = {"approximate": kind == "approximate"}
            for label in shapes if dtype == "float" else ("vector", "rank3"):
                x = normal(seeded(suite.op, dtype, label), dtype, shapes[label], 2)
                suite.case(f"{dtype}_{kind}_{label}", [x], attrs, **options)
            limits = array([0.0, -0.0, 4, -4, 8, -8, 30, -30], dtype)
            suite.case(f"{dtype}_{kind}_limits", [limits], attrs, **options)
    yield suite.finish()


def compose_norm(inputs, attrs):
    x, scale, offset = inputs
    mean = tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(tf.math.squared_difference(x, mean), -1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + attrs["epsilon"]) * scale + offset


def exact_norm(case):
    """The measure is what rounding each number, the mean and the offset may come to."""
    x, scale, offset = doubles(case)
    if not x.size:
        return [(x, x)]
    deviation = x - x.mean(-1, keepdims=True)
    root = np.sqrt(np.mean(deviation**2, -1, keepdims=True) + case.attrs["epsilon"])
    size = np.abs(x) + np.abs(x).mean(-1, keepdims=True)
    return [(deviation / root * scale + offset, size / root * np.abs(scale) + np.abs(offset))]


def layer_norm(folder):
    """_FusedLayerNorm."""
    inputs = ["x: T", "scale: T", "offset: T"]
    suite = ComposedSuite(folder, "_FusedLayerNorm", inputs, {"epsilon": ("float", 0.001)}, compose_norm)
    forms = {  # label: (shape, mean of the numbers)
        "matrix": ((5, 7), 0),
        "rank3": ((2, 3, 16), 0),
        "vector": ((13,), 0),
        "one": ((3, 1), 0),
        "shifted": ((4, 33), 8),
        "empty": ((0, 3), 0),
        "empty_rows": ((3, 0), 0),
        "1009": ((1, 1009), 0),
    }
    for dtype in FLOATS:
        for label in forms if dtype == "float" else ("matrix", "rank3", "shifted"):
            shape, mean = forms[label]
            rng = seeded(suite.op, dtype, label)
            vectors = [normal(rng, dtype, shape[-1:]) for _ in range(2)]
            options = {"reference": exact_norm, "terms": shape[-1], "via": VIA}
            attrs = {"epsilon": 1e-5} if label == "rank3" else {}
            suite.case(f"{dtype}_{label}", [normal(rng, dtype, shape, 1, mean), *vectors], attrs, **options)
    yield suite.finish()


def compose_softmax(inputs, attrs):
    logits, *masks = inputs
    return tf.nn.softmax(attrs["scale"] * logits + sum(masks))


def exact_weights(logits, sizes):
    """The softmax, and its measure: the result times 1 and how far the exponent is from 0, which is rounded before."""
    if not logits.size:
        return logits, logits
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    weights = powers / powers.sum(-1, keepdims=True)
    return weights, weights * (1 + sizes + sizes.max(-1, keepdims=True))


def exact_softmax_scale(case):
    logits, *masks = doubles(case)
    scaled = case.attrs["scale"] * logits
    sizes = sum(map(finite, masks), np.abs(scaled))
    return [exact_weights(sum(masks, scaled), sizes)]


def softmax_scale(folder):
    """_FusedSoftmaxScale."""
    inputs = ["logits: T", "mask: num_mask * T"]
    suite = ComposedSuite(folder, "_FusedSoftmaxScale", inputs, {"scale": ("float", 1.0)}, compose_softmax)
    forms = {  # label: (logits, mask, scale)
        "plain": ((5, 7), None, 1.0),
        "scaled": ((2, 3, 5), None, 0.125),
        "masked": ((2, 2, 3, 7), (2, 1, 1, 7), 0.125),
        "masked_same": ((3, 16), (3, 16), 0.25),
        "masked_rank": ((5, 7), (2, 1, 7), 2.0),
        "repeated": ((4, 1), (2, 1, 6), 0.25),
        "vector": ((9,), (1,), 0.5),
        "scalar": ((), (7,), 0.5),
        "empty": ((0, 3), (3,), 0.5),
        "empty_classes": ((3, 0), (1,), 0.5),
        "1009": ((1, 1009), (1009,), 0.25),
    }
    for dtype in FLOATS:
        for label in forms if dtype == "float" else ("scaled", "masked", "repeated"):
            shape, mask, scale = forms[label]
            rng = seeded(suite.op, dtype, label)
            x = [normal(rng, dtype, shape, 2)] + ([] if mask is None else [normal(rng, dtype, mask, 2)])
            attrs = {"scale": scale, "num_mask": len(x) - 1}
            terms = max((shape or (1,))[-1], (mask or (1,))[-1])
            suite.case(f"{dtype}_{label}", x, attrs, reference=exact_softmax_scale, terms=terms, via=VIA)
        x = normal(seeded(suite.op, dtype, "hidden"), dtype, (3, 4))
        hidden = array([0, -np.inf, 0, -1e4], dtype)
        attrs = {"scale": 0.5, "num_mask": 1}
        suite.case(f"{dtype}_hidden", [x, hidden], attrs, reference=exact_softmax_scale, terms=4, via=VIA)
    yield suite.finish()


ATTENTION = ["q: T", "k: T", "v: T", "mask: num_mask * T", "keep: num_keep * bool"]
ATTENTION_ATTRS = {
    "scale": ("float", 1.0),
    "dropped": ("float", 0.0),
    "zero_dropped": ("bool", False),
    "layout": ("string", "HEADS_FIRST"),
}


def compose_attention(inputs, attrs):
    q, k, v, *rest = inputs
    masks, keeps = rest[: attrs["num_mask"]], rest[attrs["num_mask"] :]
    inside = attrs["layout"] == "HEADS_INSIDE"
    products = tf.einsum("bmhd,bnhd->bhmn", q, k) if inside else tf.raw_ops.BatchMatMulV2(x=q, y=k, adj_y=True)
    scores = products * attrs["scale"] + sum(masks)
    dropped = tf.constant(attrs["dropped"], tf.float64)
    for keep in keeps:
        scores = tf.where(keep, scores, dropped)
    weights = tf.nn.softmax(scores)
    for keep in keeps if attrs["zero_dropped"] else []:
        weights = tf.where(keep, weights, tf.zeros([], tf.float64))
    return tf.einsum("bhmn,bnhe->bmhe", weights, v) if inside else tf.raw_ops.BatchMatMulV2(x=weights, y=v)


def exact_attention(case):
    attrs, (q, k, v, *rest) = case.attrs, doubles(case)
    masks, keeps = rest[: attrs["num_mask"]], rest[attrs["num_mask"] :]
    inside = attrs["layout"] == "HEADS_INSIDE"
    q, k, v = (np.swapaxes(x, 1, 2) if inside else x for x in (q, k, v))
    k = np.swapaxes(k, -1, -2)
    scores = sum(masks, attrs["scale"] * np.matmul(q, k))
    sizes = sum(map(finite, masks), abs(attrs["scale"]) * np.matmul(np.abs(q), np.abs(k)))
    for keep in keeps:
        scores, sizes = np.where(keep, scores, attrs["dropped"]), np.where(keep, sizes, abs(attrs["dropped"]))
    weights, measure = exact_weights(scores, sizes)
    for keep in keeps if attrs["zero_dropped"] else []:
        weights, measure = np.where(keep, weights, 0), np.where(keep, measure, 0)
    pair = np.matmul(weights, v), np.matmul(measure, np.abs(v))
    return [tuple(np.swapaxes(x, 1, 2) if inside else x for x in pair)]


HEADS = ((2, 2, 5, 8), (2, 2, 7, 8), (2, 2, 7, 3))
INSIDE = ((2, 5, 3, 8), (2, 7, 3, 8), (2, 7, 3, 4))
ATTENTIONS = {  # label: (q, k and v, mask, keep, attributes)
    "plain": (HEADS, None, None, {}),
    "scaled": (((5, 8), (7, 8), (7, 8)), None, None, {"scale": 0.125}),
    "masked": (((2, 5, 8), (2, 7, 8), (2, 7, 4)), (2, 1, 7), None, {"scale": 0.25}),
    "kept": (HEADS, None, (2, 1, 1, 7), {"scale": 0.5, "dropped": -100.0}),
    "kept_zero": (HEADS, None, (5, 7), {"scale": 0.5, "dropped": -3.0, "zero_dropped": True}),
    "masked_kept": (HEADS, (1, 2, 5, 7), (2, 1, 5, 1), {"scale": 0.5, "dropped": -2.0, "zero_dropped": True}),
    "repeated": (((2, 1, 5, 4), (3, 7, 4), (7, 3)), (2, 1, 1, 1, 7), None, {"scale": 0.5}),
    "one": (((1, 1), (1, 1), (1, 1)), None, None, {}),
    "inside": (INSIDE, None, None, {"scale": 0.25, "layout": "HEADS_INSIDE"}),
    "inside_masked": (INSIDE, (1, 1, 7), None, {"scale": 0.25, "layout": "HEADS_INSIDE"}),
    "inside_kept": (INSIDE, None, (2, 1, 5, 7), {"dropped": -1e4, "zero_dropped": True, "layout": "HEADS_INSIDE"}),
    "empty": (((0, 5, 8), (0, 7, 8), (0, 7, 4)), None, None, {}),
    "no_queries": (((2, 0, 8), (2, 7, 8), (2, 7, 4)), None, None, {}),
    "no_depth": (((5, 0), (7, 0), (7, 4)), None, None, {}),
    "large": (((1, 2, 33, 16), (1, 2, 65, 16), (1, 2, 65, 17)), (1, 1, 1, 65), None, {"scale": 0.25}),
}
ATTENTION_FEW = ["scaled", "masked_kept", "kept_zero", "repeated", "inside_kept"]


def attention(folder):
    """_FusedAttention."""
    suite = ComposedSuite(folder, "_FusedAttention", ATTENTION, ATTENTION_ATTRS, compose_attention)
    for dtype in FLOATS:
        for label in ATTENTIONS if dtype == "float" else ATTENTION_FEW:
            shapes, mask, keep, attrs = ATTENTIONS[label]
            rng = seeded(suite.op, dtype, label)
            inputs = [normal(rng, dtype, shape) for shape in shapes]
            inputs += [] if mask is None else [normal(rng, dtype, mask)]
            inputs += [] if keep is None else [rng.integers(0, 3, keep) > 0]
            attrs = attrs | {"num_mask": int(mask is not None), "num_keep": int(keep is not None)}
            keys = shapes[1][1 if "inside" in label else -2]
            options = {"reference": exact_attention, "terms": shapes[0][-1] + keys, "via": VIA}
            suite.case(f"{dtype}_{label}", inputs, attrs, **options)
    nothing = np.zeros((5, 7), np.bool_)
    inputs = [normal(seeded(suite.op, "nothing", at), "float", shape) for at, shape in enumerate(HEADS)]
    attrs = {"num_mask": 0, "num_keep": 1, "zero_dropped": True}
    options = {"reference": exact_attention, "terms": 15, "via": VIA}
    suite.case("float_nothing_kept", [*inputs, nothing], attrs, **options)
    yield suite.finish()


GROUPS = [attention, softmax_scale, layer_norm, gelu]
