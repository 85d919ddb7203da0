"""BiasAdd, Softmax, FusedBatchNormV3."""

import numpy as np

from .data import COMPLEX, FLOATS, NUMBERS, array, denormals, normal, seeded, specials, values
from .layout import to_nchw, to_nhwc
from .suite import EXACT, Suite, ulp


def bias_add(folder):
    """BiasAdd."""
    suite = Suite(folder, "nn", "BiasAdd")
    forms = {
        "matrix": ((5, 7), "NHWC"),
        "image": ((2, 3, 5, 4), "NHWC"),
        "rank3": ((2, 5, 3), "NHWC"),
        "rank5": ((1, 2, 2, 3, 5), "NHWC"),
        "empty": ((0, 3), "NHWC"),
        "one": ((1, 1), "NHWC"),
        "nchw": ((2, 3, 5, 7), "NCHW"),
        "nchw_rank3": ((2, 3, 5), "NCHW"),
        "nchw_rank2": ((2, 3), "NCHW"),
        "nchw_rank2_empty": ((0, 3), "NCHW"),
        "nchw_rank5": ((2, 3, 1, 2, 2), "NCHW"),
        "nchw_empty": ((0, 3, 2, 2), "NCHW"),
        "large": ((37, 53), "NHWC"),
    }
    for dtype in NUMBERS + COMPLEX:
        for label in forms if dtype in ("float", "int32") else ("matrix", "image", "nchw"):
            shape, data_format = forms[label]
            rng = seeded("BiasAdd", dtype, label)
            channels = shape[1] if data_format == "NCHW" else shape[-1]
            inputs = [values(rng, dtype, shape), values(rng, dtype, (channels,))]
            suite.case(
                f"{dtype}_{label}", inputs, {"data_format": data_format}, tolerance=ulp(1) if dtype in FLOATS else EXACT
            )
        if dtype in FLOATS:
            special = specials(dtype)
            suite.case(f"{dtype}_special", [np.stack([special, special[::-1]]), np.roll(special, 3)], tolerance=ulp(1))
            suite.case(f"{dtype}_denormal", [denormals(dtype)[None, :], denormals(dtype)], tolerance=ulp(0))
    x = np.ones((2, 3), np.float32)
    suite.error("length", [x, np.ones(2, np.float32)])
    suite.error("length_nchw", [np.ones((1, 2, 3, 4), np.float32), np.ones(4, np.float32)], {"data_format": "NCHW"})
    suite.error("bias_matrix", [x, np.ones((1, 3), np.float32)])
    suite.error("vector", [np.ones(3, np.float32), np.ones(3, np.float32)])
    suite.error("format", [x, np.ones(3, np.float32)], {"data_format": "NWHC"})
    yield suite.finish()


def exact_softmax(case):
    """Softmax and its terms: the error of x - max counts once per exponential."""
    x = np.asarray(case.inputs[0]).astype(np.float64)
    if not x.size:
        return [(x, x)]
    shifted = x - x.max(axis=-1, keepdims=True)
    powers = np.exp(shifted)
    result = powers / powers.sum(axis=-1, keepdims=True)
    return [(result, result * (1 + np.abs(shifted)))]


def softmax(folder):
    """Softmax."""
    suite = Suite(folder, "nn", "Softmax")
    shapes = {
        "vector": (7,),
        "one": (1, 1),
        "matrix": (5, 7),
        "rank3": (2, 3, 5),
        "rank4": (2, 1, 3, 4),
        "columns": (7, 1),
        "empty": (0, 3),
        "empty_classes": (3, 0),
        "1009": (2, 1009),
        "37x53": (37, 53),
    }
    for dtype in FLOATS:
        for label in shapes if dtype == "float" else ("vector", "matrix", "rank3", "empty", "1009"):
            x = normal(seeded("Softmax", dtype, label), dtype, shapes[label], 2)
            suite.case(f"{dtype}_{label}", [x], reference=exact_softmax, terms=shapes[label][-1])
        nan, inf = np.nan, np.inf
        rows = [
            [1, nan, 2],
            [inf, 1, 2],
            [-inf, 1, 2],
            [-inf, -inf, -inf],
            [inf, inf, 0],
            [0, 0, 0],
            [6e4, 0, -6e4],
            [-6e4, -6e4, -6e4],
            [-0.0, 0.0, 0.0],
        ]
        suite.case(f"{dtype}_special", [array(rows, dtype)], tolerance=ulp(4))
    suite.error("scalar", [np.float32(1)])
    suite.error("dtype", [np.int32([[1, 2]])])
    yield suite.finish()


SPATIAL = {"NHWC": (0, 1, 2), "NCHW": (0, 2, 3), "NDHWC": (0, 1, 2, 3), "NCDHW": (0, 2, 3, 4)}


def exact_norm(case):
    """All outputs at double precision, with their absolute terms; channels last inside."""
    x, scale, offset, mean, variance = (np.asarray(v).astype(np.float64) for v in case.inputs)
    data_format = case.attrs["data_format"]
    axes = SPATIAL[data_format]
    x = np.moveaxis(x, 1, -1) if data_format[1] == "C" else x
    axes = tuple(range(x.ndim - 1))
    if case.attrs["is_training"]:
        outer = batch_moments(case, x, axes, mean, variance)
    else:
        outer = [(mean, np.abs(mean)), (variance, variance)] * 2
    center, spread = outer[2][0], outer[3][0]
    factor = scale / np.sqrt(spread + case.attrs["epsilon"])
    y = (x - center) * factor + offset
    terms = (np.abs(x) + np.abs(center)) * np.abs(factor) + np.abs(offset)
    back = (lambda v: np.moveaxis(v, -1, 1)) if data_format[1] == "C" else (lambda v: v)
    return [(back(y), back(terms)), *outer, (np.zeros(0), np.zeros(0))]


def batch_moments(case, x, axes, mean, variance):
    """New running mean and variance, and the batch's own: each with its absolute terms."""
    count = int(np.prod(x.shape[:-1]))
    center, spread = x.mean(axis=axes), x.var(axis=axes)
    center_terms = np.abs(x).mean(axis=axes)
    unbiased = spread * count / max(count - 1, 1)
    rate = case.attrs["exponential_avg_factor"]
    if rate == 1.0:
        running = [(center, center_terms), (unbiased, unbiased)]
    else:
        running = [
            ((1 - rate) * mean + rate * center, np.abs((1 - rate) * mean) + rate * center_terms),
            ((1 - rate) * variance + rate * unbiased, (1 - rate) * variance + rate * unbiased),
        ]
    return [*running, (center, center_terms), (spread, spread)]


def norm_as_nhwc(case):
    """Channels first by way of channels last."""
    first = case.attrs["data_format"]
    attrs = case.attrs | {"data_format": {"NCHW": "NHWC", "NCDHW": "NDHWC"}[first]}
    inputs = [to_nhwc(case.inputs[0]), *case.inputs[1:]]
    return inputs, attrs, lambda results: [to_nchw(results[0]), *results[1:]]


def norm_case(suite, dtype, name, shape, training, data_format="NHWC", epsilon=1e-3, rate=1.0, special=None):
    rng = seeded("FusedBatchNormV3", dtype, name)
    channels = shape[1] if data_format[1] == "C" else shape[-1]
    x = normal(rng, dtype, shape, 2, 0.5) if special is None else array(special, dtype)
    scale, offset, mean = (normal(rng, "float", (channels,)) for _ in range(3))
    variance = (rng.random(channels) + 0.2).astype(np.float32)
    if training and rate == 1.0:
        mean = variance = np.zeros(0, np.float32)
    attrs = {"epsilon": epsilon, "exponential_avg_factor": rate, "data_format": data_format, "is_training": training}
    # The last output is a place for the GPU's library, and in inference, and for empty images,
    # nobody needs the two before it: TensorFlow's CPU leaves them as they were allocated.
    options = {"shape_only": (5,) if training and x.size else (3, 4, 5)}
    if data_format[1] == "C":
        options |= {"run_as": norm_as_nhwc, "via": "transpose"}
    if special is None and x.size:
        terms = x.size // channels if training else 3
        options |= {
            "reference": exact_norm,
            "terms": terms,
            "reason": f"moments over {terms} elements" if training else "multiply and add, with a square root",
        }
    else:
        options |= {"tolerance": ulp(8), "reason": "a square root and several operations"}
    suite.case(f"{dtype}_{name}", [x, scale, offset, mean, variance], attrs, **options)


def fused_batch_norm(folder):
    """FusedBatchNormV3."""
    suite = Suite(folder, "nn", "FusedBatchNormV3")
    for dtype in ("half", "bfloat16", "float"):
        for training in (False, True):
            label = "training" if training else "inference"
            norm_case(suite, dtype, label, (2, 3, 5, 4), training)
            norm_case(suite, dtype, f"{label}_nchw", (2, 4, 3, 5), training, "NCHW")
        norm_case(suite, dtype, "training_average", (2, 3, 5, 4), True, rate=0.25)
        norm_case(suite, dtype, "training_average_nchw", (2, 4, 3, 5), True, "NCHW", rate=0.1)
    for training in (False, True):
        label = "training" if training else "inference"
        norm_case(suite, "float", f"{label}_epsilon", (2, 3, 5, 4), training, epsilon=0.1)
        norm_case(suite, "float", f"{label}_one_channel", (2, 3, 5, 1), training)
        norm_case(suite, "float", f"{label}_many_channels", (2, 2, 2, 67), training)
        norm_case(suite, "float", f"{label}_one_pixel", (1, 1, 1, 5), training)
        norm_case(suite, "float", f"{label}_large", (2, 13, 11, 7), training)
        norm_case(suite, "float", f"{label}_ndhwc", (2, 2, 3, 2, 4), training, "NDHWC")
        norm_case(suite, "float", f"{label}_ncdhw", (2, 4, 2, 3, 2), training, "NCDHW")
        norm_case(suite, "float", f"{label}_empty", (0, 3, 5, 4), training)
    rows = [[[[np.nan, np.inf, -0.0, 3.0]], [[1.0, 2.0, 0.0, -3.0]]]]
    norm_case(suite, "float", "inference_special", (1, 2, 1, 4), False, special=rows)
    norm_errors(suite)
    yield suite.finish()


def norm_errors(suite):
    x, four, none = np.ones((1, 2, 2, 4), np.float32), np.ones(4, np.float32), np.zeros(0, np.float32)
    three = np.ones(3, np.float32)
    inference = {"is_training": False}
    suite.error("rank", [x[0], four, four, four, four], inference)
    suite.error("scale_length", [x, three, four, four, four], inference)
    suite.error("offset_length", [x, four, three, four, four], inference)
    suite.error("mean_length", [x, four, four, three, four], inference)
    suite.error("variance_length", [x, four, four, four, three], inference)
    suite.error("scale_matrix", [x, np.ones((1, 4), np.float32), four, four, four], inference)
    suite.error("inference_no_mean", [x, four, four, none, none], inference)
    suite.error("average_no_mean", [x, four, four, none, none], {"exponential_avg_factor": 0.5})


GROUPS = [bias_add, softmax, fused_batch_norm]
