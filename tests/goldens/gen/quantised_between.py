"""What stands between quantised products: _AffineQuantize and its kin, _QuantizedLookup, _QuantizedFusedAdd, -Mean and
-AvgPool. NumPy computes them in 64 bits, by the formulas of plugins/int8/docs/quantization.md."""

import numpy as np

from .composed import ComposedSuite
from .data import NUMPY, QUANTISED, Quantised, array, full, normal, seeded
from .quantised_product import bounds
from .suite import EXACT

BYTES = ["quint8", "qint8"]
ACTIVATION = {"activation": ("string", "NONE"), "clamp_min": ("float", 0.0), "clamp_max": ("float", 6.0)}


def limits(name):
    info = np.iinfo(NUMPY[QUANTISED[name]])
    return int(info.min), int(info.max)


class ArraySuite(ComposedSuite):
    """`compute` gives the outputs from a case's inputs, codes as integers of 64 bits, and its attributes."""

    def __init__(self, folder, op, inputs, attrs, compute, output="T"):
        super().__init__(folder, op, inputs, attrs, compute, output)

    def composed(self, case):
        widen = lambda x: x.values.astype(np.int64) if isinstance(x, Quantised) else x
        # What an extreme case divides by, it may.
        with np.errstate(all="ignore"):
            return self.compose([widen(x) for x in case.inputs], case.attrs)

    def run_cases(self):
        super().run_cases()
        for case in self.cases:
            case.outputs = case.outputs[0] if isinstance(case.outputs[0], list) else case.outputs

    def exact(self, name, inputs, attrs=None, const=None):
        const = [*range(1, len(inputs))] if const is None else const
        self.case(name, inputs, attrs, tolerance=EXACT, via="NumPy", const=const)


def saturated(steps, zero, name):
    return Quantised(name, np.clip(steps + zero, *limits(name)))


def quantize(inputs, attrs):
    x, scale, zero = inputs
    low, high = limits(attrs["T"])
    steps = np.rint(x / scale)
    steps = np.where(np.isnan(steps), low - float(zero), steps.astype(np.float64))
    return saturated(np.clip(steps, -1e6, 1e6).astype(np.int64), zero, attrs["T"])


def dequantize(inputs, _):
    x, scale, zero = inputs
    return (x - zero).astype(np.float32) * scale


def affine_range(inputs, attrs):
    [x] = inputs
    low, high = limits(attrs["T"])
    least, most = float(min(0, x.min(initial=0))), float(max(0, x.max(initial=0)))
    step = np.float32((most - least) / (high - low))
    scale = step if step >= np.finfo(np.float32).tiny else np.float32(1)
    return [scale, np.int32(np.clip(np.rint(low - least / float(scale)), low, high))]


def lookup(inputs, attrs):
    x, table = inputs
    return Quantised(attrs["Tout"], table[x - limits(attrs["T"])[0]])


def addition(a_scale, b_scale, out_scale):
    """Both multipliers, and by how much sums are shifted."""
    quotients = [float(scale) / float(out_scale) for scale in (a_scale, b_scale)]
    away = lambda x: int(np.floor(x + 0.5))
    shift = next(s for s in range(30, 0, -1) if away(max(quotients) * 2.0**s) <= 2**21)
    return [away(quotient * 2.0**shift) for quotient in quotients], shift


def add(inputs, attrs):
    a, b, a_scale, a_zero, b_scale, b_zero, out_scale, out_zero = inputs
    (by_a, by_b), shift = addition(a_scale, b_scale, out_scale)
    steps = ((a - a_zero) * by_a + (b - b_zero) * by_b + 2 ** (shift - 1)) >> shift
    least, most = limits(attrs["T"])
    bound = lambda x: np.clip(np.rint(x / float(out_scale)) + int(out_zero), least, most)
    low, high = map(bound, bounds(attrs))
    return Quantised(attrs["T"], np.clip(steps + out_zero, low, high))


def mean_of(sums, count, parameters, name):
    scale, zero, out_scale, out_zero = parameters
    factor = np.float32(float(scale) / (float(out_scale) * np.maximum(count, 1)))
    steps = np.rint((sums - count * zero).astype(np.float32).astype(np.float64) * factor.astype(np.float64))
    return saturated(steps.astype(np.int64), out_zero, name)


def mean(inputs, attrs):
    x, axes, *parameters = inputs
    axes = tuple(axes.tolist())
    count = np.asarray(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    return mean_of(x.sum(axes, keepdims=attrs["keep_dims"]), count, parameters, attrs["T"])


def average_pool(inputs, attrs):
    x, *parameters = inputs
    n, *sizes, channels = x.shape
    ksize, strides = attrs["ksize"][1:3], attrs["strides"][1:3]
    same = attrs["padding"] == "SAME"
    outputs = [-(-(size - (0 if same else k - 1)) // s) for size, k, s in zip(sizes, ksize, strides)]
    before = [max(0, (out - 1) * s + k - size) // 2 * same for out, s, k, size in zip(outputs, strides, ksize, sizes)]
    sums, counts = np.zeros((n, *outputs, channels), np.int64), np.zeros((n, *outputs, channels), np.int64)
    for at in np.ndindex(*outputs):
        window = [slice(max(0, o * s - p), max(0, o * s - p + k)) for o, s, p, k in zip(at, strides, before, ksize)]
        taps = x[:, window[0], window[1]]
        sums[:, at[0], at[1]] = taps.sum((1, 2))
        counts[:, at[0], at[1]] = taps.shape[1] * taps.shape[2]
    return mean_of(sums, counts, parameters, attrs["T"])


def codes(rng, name, shape):
    return Quantised(name, full(rng, QUANTISED[name], shape))


def affine(rng, name, low=0.01, high=0.02):
    """A scale and a zero point."""
    least, most = limits(name)
    return [np.float32(rng.uniform(low, high)), np.int32(rng.integers(least, most + 1))]


SHAPES = {"prime": (5, 7), "scalar": (), "empty": (0, 3), "1009": (1009,), "images": (2, 3, 5, 7)}


def between(folder):
    """The ways to 8 bits and back."""
    parameters = ["scale: float", "zero_point: int32"]
    for op, compute, kind in (("_AffineQuantize", quantize, "float"), ("_AffineDequantize", dequantize, "T")):
        suite = ArraySuite(folder, op, [f"x: {kind}", *parameters], {"T": ("type", None)}, compute)
        for name in BYTES:
            for label, shape in SHAPES.items():
                rng = seeded(op, name, label)
                x = normal(rng, "float", shape) if kind == "float" else codes(rng, name, shape)
                suite.exact(f"{name}_{label}", [x, *affine(rng, name)], {"T": name})
        if kind == "float":
            special = array([0.5, 1.5, 2.5, -0.5, -1.5, 1e-40, -0.0, 3e38, -3e38, np.inf, -np.inf, np.nan], "float")
            for name in BYTES:
                suite.exact(f"{name}_special", [special, np.float32(1), np.int32(3)], {"T": name})
        yield suite.finish()
    suite = ArraySuite(folder, "_AffineRange", ["x: float"], {"T": ("type", None)}, affine_range)
    for name in BYTES:
        for label, shape in SHAPES.items():
            suite.exact(f"{name}_{label}", [normal(seeded(suite.op, label), "float", shape)], {"T": name})
        for label, ends in {"above": (2, 7), "below": (-7, -2), "zeros": (0, 0), "tiny": (0, 1e-37)}.items():
            suite.exact(f"{name}_{label}", [array(ends, "float")], {"T": name})
    yield suite.finish()


def table(folder):
    """_QuantizedLookup."""
    suite = ArraySuite(folder, "_QuantizedLookup", ["x: T", "table: Tout"], {}, lookup, "Tout")
    for name, out in [(name, out) for name in BYTES for out in BYTES]:
        for label, shape in SHAPES.items():
            rng = seeded(suite.op, name, out, label)
            suite.exact(f"{name}_{out}_{label}", [codes(rng, name, shape), codes(rng, out, (256,))])
    yield suite.finish()


def residual(folder):
    """_QuantizedFusedAdd."""
    names = [f"{x}_{what}" for x in ("a", "b", "out") for what in ("scale: float", "zero_point: int32")]
    suite = ArraySuite(folder, "_QuantizedFusedAdd", ["a: T", "b: T", *names], ACTIVATION, add)
    pairs = {"rows": ((3, 5), (5,)), "columns": ((3, 1), (3, 5)), "one": ((), (7,)), "empty": ((0, 3), (3,))}
    pairs |= {label: (shape, shape) for label, shape in SHAPES.items() if label != "empty"}
    clamps = [{"activation": name} for name in ("RELU", "RELU6")]
    clamps.append({"activation": "CLAMP", "clamp_min": -1.5, "clamp_max": 2.25})
    for name in BYTES:
        everything = np.arange(256) + limits(name)[0]
        for label, (a, b) in pairs.items():
            rng = seeded(suite.op, name, label)
            inputs = [codes(rng, name, a), codes(rng, name, b)]
            suite.exact(f"{name}_{label}", [*inputs, *affine(rng, name), *affine(rng, name), *affine(rng, name)])
        for number, attrs in enumerate([{}, {}, {}, *clamps]):
            rng = seeded(suite.op, name, number)
            inputs = [Quantised(name, everything[:, None]), Quantised(name, everything[None, :])]
            inputs += affine(rng, name) + affine(rng, name, 0.0001, 0.5) + affine(rng, name, 0.005, 0.1)
            suite.exact(f"{name}_all_{number}", inputs, attrs)
        far = [np.float32(1e4), np.int32(3), np.float32(1e-9), np.int32(5), np.float32(0.01), np.int32(7)]
        suite.exact(f"{name}_far", [*inputs[:2], *far])
    yield suite.finish()


PARAMETERS = ["input_scale: float", "input_zero_point: int32", "out_scale: float", "out_zero_point: int32"]


def means(folder):
    """_QuantizedFusedMean and _QuantizedFusedAvgPool."""
    op, keep = "_QuantizedFusedMean", {"keep_dims": ("bool", False)}
    suite = ArraySuite(folder, op, ["input: T", "reduction_indices: Tidx", *PARAMETERS], keep, mean)
    forms = {"image": ((2, 7, 7, 19), [1, 2]), "rows": ((5, 7), [-1]), "columns": ((5, 7), [0]), "all": ((3, 5), [0, 1])}
    forms |= {"nothing": ((3, 5), []), "apart": ((3, 5, 7), [0, 2]), "empty": ((0, 3), [0]), "none": ((0, 3), [1])}
    forms |= {"1009": ((1009, 3), [0])}
    for name in BYTES:
        for label, (shape, axes) in forms.items():
            for index in ("int32", "int64"):
                rng = seeded(op, name, label)
                inputs = [codes(rng, name, shape), np.asarray(axes, index)]
                inputs += affine(rng, name) + affine(rng, name, 0.001, 0.01)
                suite.exact(f"{name}_{label}_{index}", inputs, {"keep_dims": index == "int64"})
    yield suite.finish()
    windows = {"ksize": ("list(int)", None), "strides": ("list(int)", None), "padding": ("string", None)}
    suite = ArraySuite(folder, "_QuantizedFusedAvgPool", ["input: T", *PARAMETERS], windows, average_pool)
    forms = {"2x2": ((2, 7, 9, 5), (2, 2), (2, 2)), "3x3": ((1, 8, 7, 17), (3, 3), (2, 1)), "1x4": ((2, 5, 6, 3), (1, 4), (3, 2))}
    forms |= {"global": ((1, 7, 7, 33), (7, 7), (1, 1)), "empty": ((0, 5, 5, 3), (2, 2), (1, 1))}
    for name in BYTES:
        for label, (shape, ksize, strides) in forms.items():
            for padding in ("SAME", "VALID"):
                rng = seeded(suite.op, name, label)
                attrs = {"ksize": [1, *ksize, 1], "strides": [1, *strides, 1], "padding": padding}
                inputs = [codes(rng, name, shape), *affine(rng, name), *affine(rng, name, 0.005, 0.02)]
                suite.exact(f"{name}_{label}_{padding}", inputs, attrs)
    yield suite.finish()


GROUPS = [between, table, residual, means]
