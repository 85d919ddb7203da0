"""LogSoftmax, the cross entropies, L2Loss, LRN, BiasAddV1, and their gradients."""

import numpy as np

from .data import COMPLEX, FLOATS, INTS, NUMBERS, array, normal, seeded, values
from .suite import EXACT, Suite, ulp


def shifted(x):
    """Logits less their greatest, and the logarithm of the sum of exponentials."""
    x = x - x.max(axis=-1, keepdims=True)
    return x, np.log(np.exp(x).sum(axis=-1, keepdims=True))


def exact_log_softmax(case):
    x = np.asarray(case.inputs[0]).astype(np.float64)
    if not x.size:
        return [(x, x)]
    x, log = shifted(x)
    # The largest element's own term is 1, so the logarithm errs by at least an epsilon.
    return [(x - log, np.abs(x) + np.abs(log) + 1)]


def log_softmax(folder):
    """LogSoftmax."""
    suite = Suite(folder, "nn", "LogSoftmax")
    shapes = {"vector": (7,), "one": (1, 1), "matrix": (5, 7), "rank3": (2, 3, 5), "empty": (0, 3), "none": (3, 0)}
    for dtype in FLOATS:
        for label, shape in (shapes | ({"1009": (2, 1009)} if dtype == "float" else {"67": (67,)})).items():
            x = normal(seeded("LogSoftmax", dtype, label), dtype, shape, 2)
            # TensorFlow adds the exponentials of short types up in those.
            suite.case(f"{dtype}_{label}", [x], reference=exact_log_softmax, terms=shape[-1], stepwise=True)
        inf = np.inf
        rows = [[1, np.nan, 2], [inf, 1, 2], [-inf, 1, 2], [-inf] * 3, [0, 0, 0], [6e4, 0, -6e4], [-6e4] * 3]
        suite.case(f"{dtype}_special", [array(rows, dtype)], tolerance=ulp(4))
    suite.error("scalar", [np.float32(1)])
    suite.error("dtype", [np.int32([[1, 2]])])
    yield suite.finish()


def exact_cross_entropy(case):
    """Losses and gradients; labels as a matrix, or as classes."""
    x = np.asarray(case.inputs[0]).astype(np.float64)
    labels = np.asarray(case.inputs[1])
    if labels.dtype.kind == "i":
        labels = np.eye(x.shape[1])[labels]
    labels = labels.astype(np.float64)
    x, labels = np.broadcast_arrays(x, labels)
    if not x.size:
        return [(np.zeros(x.shape[0]),) * 2, (x, x)]
    x, log = shifted(x)
    p = np.exp(x - log)
    loss = (labels * (log - x)).sum(axis=1)
    terms = (np.abs(labels) * (np.abs(log) + np.abs(x) + 1)).sum(axis=1)
    return [(loss, terms), (p - labels, p * (1 + np.abs(x)) + np.abs(labels))]


def probabilities(rng, dtype, shape):
    x = rng.random(shape)
    return array(x / x.sum(axis=-1, keepdims=True) if x.size else x, dtype)


def cross_entropy(folder):
    """SoftmaxCrossEntropyWithLogits."""
    suite = Suite(folder, "nn", "SoftmaxCrossEntropyWithLogits")
    forms = {
        "matrix": ((5, 7), (5, 7)),
        "one": ((1, 1), (1, 1)),
        "labels_row": ((5, 7), (1, 7)),
        "labels_vector": ((5, 7), (7,)),
        "logits_row": ((1, 7), (5, 7)),
        "logits_column": ((5, 1), (1, 7)),
        "empty": ((0, 3), (0, 3)),
        "none": ((3, 0), (3, 0)),
        "long": ((2, 211), (2, 211)),
    }
    for dtype in FLOATS:
        for label in forms if dtype == "float" else ("matrix", "labels_row", "logits_column", "empty"):
            rng = seeded("CrossEntropy", dtype, label)
            x, labels = forms[label]
            inputs = [normal(rng, dtype, x, 3), probabilities(rng, dtype, labels)]
            options = {"reference": exact_cross_entropy, "terms": max(x[-1], labels[-1], 1), "stepwise": True}
            suite.case(f"{dtype}_{label}", inputs, **options)
        hot = array(np.eye(3)[[0, 1, 2, 0]], dtype)
        rows = array([[1, np.nan, 2], [np.inf, 1, 2], [-np.inf, 1, 2], [3e4, -3e4, 0]], dtype)
        suite.case(f"{dtype}_special", [rows, hot], tolerance=ulp(4))
    x = np.ones((2, 3), np.float32)
    suite.error("shapes", [x, np.ones((2, 4), np.float32)])
    suite.error("vectors", [x[0], x[0]])
    suite.error("rank3", [x[None], x[None]])
    suite.error("dtype", [np.ones((2, 3), np.int32)] * 2)
    yield suite.finish()


def sparse_cross_entropy(folder):
    """SparseSoftmaxCrossEntropyWithLogits."""
    suite = Suite(folder, "nn", "SparseSoftmaxCrossEntropyWithLogits")
    for dtype in FLOATS:
        for index in ("int32", "int64"):
            for label, shape in {"matrix": (5, 7), "one": (1, 1), "empty": (0, 3), "wide": (2, 31)}.items():
                rng = seeded("Sparse", dtype, label)
                x = normal(rng, dtype, shape, 3)
                labels = rng.integers(0, shape[1], shape[0]).astype(index)
                options = {"reference": exact_cross_entropy, "terms": shape[1], "stepwise": True}
                suite.case(f"{dtype}_{index}_{label}", [x, labels], **options)
    x = np.ones((2, 3), np.float32)
    suite.error("label_high", [x, np.int32([1, 3])])
    suite.error("label_negative", [x, np.int64([-1, 1])])
    suite.error("no_classes", [x[:, :0], np.int32([0, 0])])
    suite.error("length", [x, np.int32([1])])
    suite.error("labels_rank", [x, np.int32([[1, 1]])])
    suite.error("logits_rank", [x[0], np.int32([1, 1, 1])])
    yield suite.finish()


def l2_loss(folder):
    """L2Loss."""
    suite = Suite(folder, "nn", "L2Loss")

    def exact(case):
        x = np.asarray(case.inputs[0]).astype(np.float64)
        return [((x * x).sum() / 2,) * 2]

    shapes = {"scalar": (), "one": (1,), "empty": (0, 3), "prime": (7,), "rank4": (2, 3, 1, 5), "1009": (1009,)}
    for dtype in FLOATS:
        for label, shape in shapes.items():
            x = normal(seeded("L2Loss", dtype, label), dtype, shape)
            count = int(np.prod(shape))
            suite.case(f"{dtype}_{label}", [x], reference=exact, terms=max(count, 1), stepwise=True)
        suite.case(f"{dtype}_nan", [array([1, np.nan], dtype)], tolerance=ulp(1))
        suite.case(f"{dtype}_infinity", [array([1, -np.inf], dtype)], tolerance=ulp(1))
    suite.error("dtype", [np.int32([1])])
    yield suite.finish()


def response(case, x):
    """Sums of squares over neighbouring channels, scaled and shifted, and the attributes."""
    attrs = {"depth_radius": 5, "bias": 1.0, "alpha": 1.0, "beta": 0.5} | case.attrs
    radius, depth = attrs["depth_radius"], x.shape[-1]
    near = np.abs(np.arange(depth)[:, None] - np.arange(depth)) <= radius
    bias, alpha, beta = (float(np.float32(attrs[name])) for name in ("bias", "alpha", "beta"))
    return bias + alpha * (x * x) @ near.astype(np.float64), near, alpha, beta


def exact_lrn(case):
    x = np.asarray(case.inputs[0]).astype(np.float64)
    norm, _, _, beta = response(case, x)
    return [(x * norm**-beta, np.abs(x) * norm**-beta)]


def exact_lrn_grad(case):
    dy, x, y = (np.asarray(v).astype(np.float64) for v in case.inputs)
    norm, near, alpha, beta = response(case, x)
    shared = -2 * alpha * beta * y / norm * dy
    own = norm**-beta * dy
    return [(x * (shared @ near) + own, np.abs(x) * (np.abs(shared) @ near) + np.abs(own))]


RESPONSES = {
    "default": {},
    "narrow": {"depth_radius": 1, "bias": 2.0, "alpha": 0.5, "beta": 0.75},
    "alone": {"depth_radius": 0, "bias": 1.5},
    "alexnet": {"depth_radius": 2, "bias": 2.0, "alpha": 1e-4, "beta": 0.75},
    "wide": {"depth_radius": 100},
}


def response_cases(suite, make, reference):
    shapes = {"image": (2, 3, 2, 9), "one": (1, 1, 1, 1), "empty": (0, 2, 2, 3), "no_channels": (1, 2, 2, 0)}
    for dtype in ("half", "float"):
        for name, attrs in RESPONSES.items():
            for label, shape in shapes.items():
                x = normal(seeded(suite.op, dtype, name, label), dtype, shape)
                # TensorFlow takes powers and sums in the dtype itself, one by one.
                options = {"reference": reference, "terms": max(2 * shape[-1], 4), "stepwise": True}
                options["reason"] = "squares, quotients and powers"
                suite.case(f"{dtype}_{name}_{label}", make(x, attrs), attrs, **options)


def lrn(folder):
    """LRN and LRNGrad."""
    suite = Suite(folder, "nn", "LRN")
    response_cases(suite, lambda x, attrs: [x], exact_lrn)
    x = np.ones((1, 2, 2, 3), np.float32)
    suite.error("rank", [x[0]])
    suite.error("radius", [x], {"depth_radius": -1})
    yield suite.finish()
    suite = Suite(folder, "nn_grad", "LRNGrad")

    def make(x, attrs):
        case = type("Inputs", (), {"inputs": [x], "attrs": attrs})
        y = exact_lrn(case)[0][0]
        return [x[::-1].copy() * x.dtype.type(0.5), x, y.astype(x.dtype)]

    response_cases(suite, make, exact_lrn_grad)
    suite.error("rank", [x[0]] * 3)
    suite.error("shapes", [x, x, x[:, :1]])
    suite.error("radius", [x, x, x], {"depth_radius": -1})
    yield suite.finish()


def bias(folder):
    """BiasAddV1, BiasAddGrad."""
    suite = Suite(folder, "nn", "BiasAddV1")
    shapes = {"matrix": (5, 7), "image": (2, 3, 2, 4), "empty": (0, 3)}
    for dtype in NUMBERS + COMPLEX:
        for label, shape in shapes.items():
            rng = seeded("BiasAddV1", dtype, label)
            exact = dtype in INTS
            inputs = [values(rng, dtype, shape), values(rng, dtype, shape[-1:])]
            suite.case(f"{dtype}_{label}", inputs, tolerance=EXACT if exact or dtype in COMPLEX else ulp(1))
    x = np.ones((2, 3), np.float32)
    suite.error("length", [x, np.ones(2, np.float32)])
    suite.error("vector", [x[0], x[0]])
    yield suite.finish()
    suite = Suite(folder, "nn_grad", "BiasAddGrad")
    forms = {
        "matrix": ((5, 7), "NHWC"),
        "image": ((2, 3, 2, 4), "NHWC"),
        "rank5": ((1, 2, 2, 3, 5), "NHWC"),
        "nchw": ((2, 3, 5, 2), "NCHW"),
        "nchw_rank3": ((2, 3, 5), "NCHW"),
        "nchw_rank2": ((2, 3), "NCHW"),
        "nchw_rank5": ((2, 3, 1, 2, 2), "NCHW"),
        "empty": ((0, 3), "NHWC"),
        "nchw_empty": ((0, 3, 2, 2), "NCHW"),
        "long": ((211, 3), "NHWC"),
    }
    for dtype in NUMBERS + COMPLEX:
        for label in forms if dtype in ("float", "int32", "complex64") else ("matrix", "nchw", "long"):
            shape, data_format = forms[label]
            axes = tuple(i for i in range(len(shape)) if i != (1 if data_format == "NCHW" else len(shape) - 1))

            def exact(case, axes=axes):
                x = np.asarray(case.inputs[0])
                wide = np.complex128 if x.dtype.kind == "c" else np.float64
                return [(x.astype(wide).sum(axes), np.abs(x.astype(wide)).sum(axes))]

            x = values(seeded("BiasAddGrad", dtype, label), dtype, shape)
            options = {"tolerance": EXACT}
            if dtype not in INTS:
                terms = max(int(np.prod([shape[i] for i in axes])), 1)
                options = {"reference": exact, "terms": terms, "stepwise": True}
            suite.case(f"{dtype}_{label}", [x], {"data_format": data_format}, **options)
    suite.error("vector", [x[0, 0]] if x.ndim > 2 else [x[0]])
    suite.error("format", [np.ones((2, 3), np.float32)], {"data_format": "NWHC"})
    yield suite.finish()


GROUPS = [log_softmax, cross_entropy, sparse_cross_entropy, l2_loss, lrn, bias]
