"""FusedBatchNorm and FusedBatchNormV2 (see nn.py for the version after them), and the gradients of batch normalisation."""

import numpy as np

from .data import normal, seeded
from .nn import exact_norm, norm_as_nhwc
from .layout import to_nchw, to_nhwc
from .suite import Suite


def forward(folder):
    """FusedBatchNorm, FusedBatchNormV2."""
    for op in ("FusedBatchNorm", "FusedBatchNormV2"):
        suite = Suite(folder, "nn", op)
        for dtype in ("float",) if op == "FusedBatchNorm" else ("half", "bfloat16", "float"):
            for training in (False, True):
                for data_format in ("NHWC", "NCHW"):
                    for rate in (1.0, 0.25):
                        forward_case(suite, dtype, training, data_format, rate)
        x, four, three = np.ones((1, 2, 2, 4), np.float32), np.ones(4, np.float32), np.ones(3, np.float32)
        inference = {"is_training": False}
        suite.error("rank", [x[0], four, four, four, four], inference)
        suite.error("scale_length", [x, three, four, four, four], inference)
        suite.error("mean_length", [x, four, four, three, four], inference)
        suite.error("scale_matrix", [x, np.ones((1, 4), np.float32), four, four, four], inference)
        yield suite.finish()


def forward_case(suite, dtype, training, data_format, rate):
    name = f"{dtype}_{'training' if training else 'inference'}_{data_format.lower()}_{'last' if rate == 1 else 'average'}"
    rng = seeded(suite.op, name)
    x = normal(rng, dtype, (2, 3, 5, 4) if data_format == "NHWC" else (2, 4, 3, 5), 2, 0.5)
    scale, offset, mean = (normal(rng, "float", (4,)) for _ in range(3))
    variance = (rng.random(4) + 0.2).astype(np.float32)
    if training and rate == 1.0:
        mean = variance = np.zeros(0, np.float32)
    attrs = {"epsilon": 1e-3, "exponential_avg_factor": rate, "data_format": data_format, "is_training": training}
    options = {"shape_only": () if training else (3, 4), "terms": x.size // 4 if training else 3}
    options |= {"reference": lambda case: exact_norm(case)[:5]}
    options["reason"] = "moments over 30 elements" if training else "multiply and add, with a square root"
    if data_format == "NCHW":
        options |= {"run_as": norm_as_nhwc, "via": "transpose"}
    suite.case(name, [x, scale, offset, mean, variance], attrs, **options)


def exact_norm_grad(case):
    """Gradients by x, scale and offset, with their absolute terms."""
    dy, x, scale, mean, variance = (np.asarray(v).astype(np.float64) for v in case.inputs[:5])
    first = case.attrs["data_format"][1] == "C"
    if first:
        dy, x = to_nhwc(dy), to_nhwc(x)
    axes, count = tuple(range(x.ndim - 1)), max(int(np.prod(x.shape[:-1])), 1)
    spread = variance + case.attrs["epsilon"]
    factor, centered = scale / np.sqrt(spread), x - mean
    around = np.abs(x) + np.abs(mean)
    projected, projected_terms = (dy * centered).sum(axes), (np.abs(dy) * around).sum(axes)
    total, total_terms = dy.sum(axes), np.abs(dy).sum(axes)
    dx, terms = factor * dy, np.abs(factor * dy)
    if case.attrs["is_training"]:
        dx = factor * (dy - total / count - centered * projected / count / spread)
        terms = np.abs(factor) * (np.abs(dy) + total_terms / count + around * projected_terms / count / spread)
    back = to_nchw if first else lambda v: v
    none = (np.zeros(0),) * 2
    root = np.sqrt(spread)
    return [(back(dx), back(terms)), (projected / root, projected_terms / root), (total, total_terms), none, none]


def backward_case(suite, dtype, name, shape, training, data_format, epsilon=1e-3):
    rng = seeded(suite.op, dtype, name)
    channels = shape[1] if data_format[1] == "C" else shape[-1]
    axes = tuple(i for i in range(len(shape)) if i != (1 if data_format[1] == "C" else len(shape) - 1))
    x, dy = normal(rng, dtype, shape, 2, 0.5), normal(rng, dtype, shape)
    scale = normal(rng, "float", (channels,))
    mean, variance = normal(rng, "float", (channels,)), (rng.random(channels) + 0.2).astype(np.float32)
    if training and x.size:
        mean, variance = (f(x.astype(np.float64), axis=axes).astype(np.float32) for f in (np.mean, np.var))
    inputs = [dy, x, scale, mean, variance]
    if suite.op == "FusedBatchNormGradV3":
        inputs.append(np.zeros(0, np.float32))
    attrs = {"epsilon": epsilon, "data_format": data_format, "is_training": training}
    options = {"reference": exact_norm_grad, "terms": max(x.size // max(channels, 1), 4), "stepwise": True}
    options["reason"] = "sums over the channel, twice"
    if data_format[1] == "C" and not training:
        options |= {"run_as": backward_as_last, "via": "transpose"}
    suite.case(f"{dtype}_{name}", inputs, attrs, **options)


def backward_as_last(case):
    """Channels first by way of channels last, the only form that TensorFlow's CPU takes in inference."""
    attrs = case.attrs | {"data_format": {"NCHW": "NHWC", "NCDHW": "NDHWC"}[case.attrs["data_format"]]}
    inputs = [*map(to_nhwc, case.inputs[:2]), *case.inputs[2:]]
    return inputs, attrs, lambda results: [to_nchw(results[0]), *results[1:]]


def backward(folder):
    """FusedBatchNormGrad, FusedBatchNormGradV2, FusedBatchNormGradV3."""
    for op in ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"):
        suite = Suite(folder, "nn_grad", op)
        for dtype in ("float",) if op == "FusedBatchNormGrad" else ("half", "bfloat16", "float"):
            for training in (False, True):
                label = "training" if training else "inference"
                backward_case(suite, dtype, label, (2, 3, 5, 4), training, "NHWC")
                backward_case(suite, dtype, f"{label}_nchw", (2, 4, 3, 5), training, "NCHW")
                if dtype == "float":
                    backward_case(suite, dtype, f"{label}_epsilon", (2, 3, 5, 4), training, "NHWC", 0.1)
                    backward_case(suite, dtype, f"{label}_one_channel", (2, 3, 5, 1), training, "NHWC")
                    backward_case(suite, dtype, f"{label}_empty", (0, 3, 5, 4), training, "NHWC")
                    if op == "FusedBatchNormGradV3":
                        backward_case(suite, dtype, f"{label}_ndhwc", (2, 2, 3, 2, 4), training, "NDHWC")
                        backward_case(suite, dtype, f"{label}_ncdhw", (2, 4, 2, 3, 2), training, "NCDHW")
        x, four, three = np.ones((1, 2, 2, 4), np.float32), np.ones(4, np.float32), np.ones(3, np.float32)
        last = [four] if op == "FusedBatchNormGradV3" else []
        suite.error("rank", [x[0], x[0], four, four, four, *last])
        suite.error("shapes", [x[:, :1], x, four, four, four, *last])
        suite.error("scale_length", [x, x, three, four, four, *last])
        suite.error("mean_length", [x, x, four, three, four, *last])
        suite.error("variance_length", [x, x, four, four, three, *last])
        suite.error("format", [x, x, four, four, four, *last], {"data_format": "NWHC"})
        yield suite.finish()


GROUPS = [forward, backward]
