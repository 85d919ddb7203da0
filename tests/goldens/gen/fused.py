"""_FusedMatMul, _FusedConv2D and _FusedDepthwiseConv2dNative: products and what follows them.

TensorFlow runs what its CPU kernels take of them (`TAKEN`); what is left is computed in double precision and rounded
once. The attributes of the index are those of Tenon's definitions: TensorFlow's have some more.
"""

import math

import numpy as np

from .conv import CONVS, DEPTHWISE, exact_conv, window_attrs
from .data import FLOATS, NUMPY, dtype_name, normal, seeded
from .definition import define
from .layout import to_nchw
from .linalg import exact_product
from .suite import Suite

EPILOGUES = [
    ["BiasAdd"],
    ["BiasAdd", "Relu"],
    ["BiasAdd", "Relu6"],
    ["BiasAdd", "Elu"],
    ["BiasAdd", "LeakyRelu"],
    ["BiasAdd", "Tanh"],
    ["BiasAdd", "Sigmoid"],
    ["BiasAdd", "GeluApproximate"],
    ["BiasAdd", "GeluExact"],
    ["BiasAdd", "Add"],
    ["BiasAdd", "Add", "Relu"],
]
NORMALISED = [["FusedBatchNorm", *rest] for rest in ([], ["Relu"], ["Relu6"], ["Elu"], ["LeakyRelu"])]
ALONE = [["Relu"], ["Add"]]

# What TensorFlow's CPU kernels take, and of which types.
ACTIVATIONS = ("Relu", "Relu6", "Elu", "LeakyRelu")
TAKEN = {
    "_FusedMatMul": (["float", "half", "bfloat16"], [["BiasAdd"], *(["BiasAdd", a] for a in (*ACTIVATIONS, "Tanh", "Sigmoid"))]),
    "_FusedConv2D": (["float", "double"], [["BiasAdd"], *(["BiasAdd", a] for a in ACTIVATIONS), *NORMALISED]),
    "_FusedDepthwiseConv2dNative": ([], []),
}

SHORT = [dtype for dtype in FLOATS if dtype != "float"]
VECTORS = {"BiasAdd": 1, "FusedBatchNorm": 4}


STEPS = {"fused_ops": ("list(string)", None), "epsilon": ("float", 1e-4), "leakyrelu_alpha": ("float", 0.2)}
WINDOW = {
    "strides": ("list(int)", None),
    "padding": ("string", None),
    "explicit_paddings": ("list(int)", []),
    "data_format": ("string", "NHWC"),
    "dilations": ("list(int)", [1, 1, 1, 1]),
}
FACTORS = ["a: T", "b: T", "args: num_args * T"]
IMAGES = ["input: T", "filter: T", "args: num_args * T"]
DEFINITIONS = {
    "_FusedMatMul": (FACTORS, {"transpose_a": ("bool", False), "transpose_b": ("bool", False)} | STEPS),
    "_FusedConv2D": (IMAGES, WINDOW | {"use_cudnn_on_gpu": ("bool", True)} | STEPS),
    "_FusedDepthwiseConv2dNative": (IMAGES, WINDOW | STEPS),
}


class FusedSuite(Suite):
    """Cases of a fused op, by Tenon's definition of it."""

    def __init__(self, folder, op):
        super().__init__(folder, "fused", op, stand_in="DepthwiseConv2dNative" if op not in RUN else op)
        self.op_def = define(op, *DEFINITIONS[op])


RUN = ["_FusedMatMul", "_FusedConv2D"]


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


# Each with the most that it changes when its argument changes, and its value.
STEP_VALUES = {
    "Relu": lambda x, attrs: np.maximum(x, 0),
    "Relu6": lambda x, attrs: np.minimum(np.maximum(x, 0), 6),
    "Elu": lambda x, attrs: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
    "LeakyRelu": lambda x, attrs: np.where(x < 0, x * np.float32(attrs["leakyrelu_alpha"]).astype(np.float64), x),
    "Tanh": lambda x, attrs: np.tanh(x),
    "Sigmoid": lambda x, attrs: 1 / (1 + np.exp(-x)),
    "GeluApproximate": lambda x, attrs: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "GeluExact": lambda x, attrs: 0.5 * x * (1 + erf(x / math.sqrt(2))),
}
# Of steps that multiply by a function of a further input: that function, and what rounding inside it may come to.
SLOPES = {
    "ReluGrad": (lambda y: (y > 0).astype(np.float64), 0.0),
    "TanhGrad": (lambda y: 1 - y * y, 1.0),
    "SigmoidGrad": (lambda y: y * (1 - y), 0.25),
}
# What rounding inside a step may come to besides: `Elu` subtracts 1, `Sigmoid` adds it, `Gelu` both.
INSIDE = {"Elu": 1.0, "Sigmoid": 1.0, "Tanh": 1.0, "GeluApproximate": 1.0, "GeluExact": 1.0}


class Product:
    """The product alone, as a case of its own."""

    def __init__(self, inputs, attrs):
        self.inputs, self.attrs = inputs[:2], attrs


def exact_fused(product):
    """Reference: the product's, and then each step, with the sum of the absolute terms as it grows."""

    def reference(case):
        attrs = case.attrs
        [(value, terms)] = product(Product(case.inputs, attrs))
        channel = 1 if attrs.get("data_format") == "NCHW" else value.ndim - 1
        along = lambda v: np.asarray(v).astype(np.float64).reshape([-1 if d == channel else 1 for d in range(value.ndim)])
        args = list(case.inputs[2:])
        for step in attrs["fused_ops"]:
            if step == "BiasAdd":
                bias = along(args.pop(0))
                value, terms = value + bias, terms + np.abs(bias)
            elif step == "Add":
                rest = np.asarray(args.pop(0)).astype(np.float64)
                value, terms = value + rest, terms + np.abs(rest)
            elif step in SLOPES:
                slope, inside = SLOPES[step]
                factor = slope(np.asarray(args.pop(0)).astype(np.float64))
                terms = 1.2 * terms * np.abs(factor) + np.abs(value) * inside
                value = value * factor
            elif step == "FusedBatchNorm":
                scale, offset, mean, variance = (along(args.pop(0)) for _ in range(4))
                factor = scale / np.sqrt(variance + np.float64(np.float32(attrs["epsilon"])))
                value = (value - mean) * factor + offset
                # The factor itself is rounded in a handful of steps.
                terms = (terms + np.abs(mean)) * np.abs(factor) + np.abs(offset)
            else:
                before = value
                value = STEP_VALUES[step](value, attrs)
                small = np.minimum(np.abs(before), 1) if step in INSIDE and step != "Sigmoid" else INSIDE.get(step, 0)
                terms = 1.2 * terms + np.abs(value) + small
        return [(value, terms)]

    return reference


def with_tensorflow(op, dtype, steps):
    types, taken = TAKEN[op]
    return dtype in types and steps in taken


def as_tensorflow(case):
    """The attributes that only TensorFlow's definition has."""
    extra = {"TArgs": [dtype_name(x) for x in case.inputs[2:]], "num_host_args": 0, "filter_format": "HWIO"}
    return case.inputs, case.attrs | extra | {"num_args": len(case.inputs) - 2}, lambda results: results


def in_double(reference):
    """The exact result, rounded once. TensorFlow runs the product with one step, for the sake of its checks."""

    def run(case):
        exact = [np.asarray(value).astype(np.asarray(case.inputs[0]).dtype) for value, _ in reference(case)]
        x, weights = case.inputs[:2]
        if case.attrs.get("data_format") == "NCHW":
            x = np.moveaxis(x, 1, -1).copy()
        attrs = {key: value for key, value in case.attrs.items() if key in ("transpose_a", "transpose_b")}
        if "strides" in case.attrs:
            attrs = {"strides": [1, 1, 1, 1], "padding": "SAME", "data_format": "NHWC"}
            x, weights = np.zeros((1, 3, 3, 1), np.float32), np.zeros((1, 1, 1, 1), np.float32)
        if case.suite_op == "_FusedDepthwiseConv2dNative":
            return [x, weights], attrs, lambda results: exact
        columns = weights.shape[0 if attrs.get("transpose_b") else -1]
        if "strides" not in attrs:
            x, weights = x.astype(np.float32), weights.astype(np.float32)
        bias = np.zeros(columns, np.float32)
        attrs |= {"fused_ops": ["BiasAdd"], "num_args": 1, "TArgs": ["float"], "num_host_args": 0}
        return [x, weights, bias], attrs, lambda results: exact

    return run


def add(suite, name, inputs, attrs, steps, reference, terms):
    """A case; the further inputs are drawn for the shape of the product."""
    dtype = dtype_name(inputs[0])
    rng = seeded(suite.op, dtype, name, "args")
    attrs = attrs | {"fused_ops": steps}
    if "FusedBatchNorm" in steps:
        attrs["epsilon"] = 0.01
    if "LeakyRelu" in steps:
        attrs["leakyrelu_alpha"] = 0.3

    shape = reference(Product(inputs, attrs))[0][0].shape
    channels = shape[1 if attrs.get("data_format") == "NCHW" else -1]
    args = []
    for step in steps:
        if step == "Add":
            args.append(normal(rng, dtype, shape))
        if step in SLOPES:
            # Outputs of the activation: between -1 and 1, or 0 and 1; any numbers for ReluGrad.
            y = normal(rng, "double", shape)
            args.append({"TanhGrad": np.tanh(y), "SigmoidGrad": 1 / (1 + np.exp(-y))}.get(step, y))
        for vector in range(VECTORS.get(step, 0)):
            values = normal(rng, dtype, (channels,))
            args.append(np.abs(values) + np.asarray(0.25, NUMPY[dtype]) if vector == 3 else values)
    args = [np.asarray(arg, NUMPY[dtype]) for arg in args]
    exact = exact_fused(reference)
    options = {"reference": exact, "terms": terms + len(args) + len(steps)}
    taken = with_tensorflow(suite.op, dtype, steps) and attrs.get("data_format") != "NCHW"
    # Of a product of no terms TensorFlow gives zeros, without its steps.
    if taken and (terms > 0 or 0 in shape):
        options["run_as"] = as_tensorflow
        options["stepwise"] = True
    else:
        options |= {"run_as": in_double(exact), "via": "double precision"}
    attrs["num_args"] = len(args)
    suite.case(f"{dtype}_{name}", [*inputs, *args], attrs, **options)
    suite.cases[-1].suite_op = suite.op


def named(label, steps):
    return f"{label}_{'_'.join(steps).lower()}"


MATRICES = {
    "one": (1, 1, 1),
    "prime": (5, 7, 3),
    "17": (17, 19, 23),
    "row": (1, 37, 21),
    "column": (13, 9, 1),
    "empty_m": (0, 3, 2),
    "empty_n": (2, 3, 0),
    "empty_k": (2, 0, 3),
}


def matmul_case(suite, dtype, label, steps, transposed=(False, False)):
    m, k, n = MATRICES[label]
    name = named(label + "".join(f"_t{side}" for side, t in zip("ab", transposed) if t), steps)
    rng = seeded(suite.op, dtype, name)
    a = normal(rng, dtype, (k, m) if transposed[0] else (m, k))
    b = normal(rng, dtype, (n, k) if transposed[1] else (k, n))
    attrs = {"transpose_a": transposed[0], "transpose_b": transposed[1]}
    add(suite, name, [a, b], attrs, steps, exact_product("transpose_a", "transpose_b"), k)


def matmul(folder):
    """_FusedMatMul."""
    suite = FusedSuite(folder, "_FusedMatMul")
    for steps in EPILOGUES + ALONE:
        matmul_case(suite, "float", "prime", steps)
    for label in MATRICES:
        matmul_case(suite, "float", label, ["BiasAdd", "Relu"] if label != "prime" else ["BiasAdd", "Add", "Tanh"])
    for dtype in FLOATS:
        for transposed in ((True, False), (False, True), (True, True)) if dtype == "float" else ((True, True),):
            matmul_case(suite, dtype, "prime", ["BiasAdd", "Elu"], transposed)
    for dtype in SHORT:
        for steps in (["BiasAdd", "Relu"], ["BiasAdd", "Tanh"], ["BiasAdd", "GeluExact"], ["BiasAdd", "Add"]):
            matmul_case(suite, dtype, "17" if "Tanh" in steps else "prime", steps)
    for steps in [[step] for step in SLOPES]:
        for dtype in FLOATS:
            matmul_case(suite, dtype, "prime", steps)
        for label in ("row", "17", "empty_m"):
            matmul_case(suite, "float", label, steps)
        matmul_case(suite, "float", "prime", steps, (False, True))
    yield suite.finish()


def image_case(suite, dtype, label, spec, steps, data_format="NHWC"):
    image, filter_, strides, padding, dilations = spec
    depthwise = suite.op == "_FusedDepthwiseConv2dNative"
    name = named(label if data_format == "NHWC" else f"{label}_nchw", steps)
    rng = seeded(suite.op, dtype, name)
    x, weights = normal(rng, dtype, image), normal(rng, dtype, filter_)
    if data_format == "NCHW":
        x = to_nchw(x)
    terms = int(np.prod(filter_[:2])) * (1 if depthwise else filter_[2])
    attrs = window_attrs(strides, padding, data_format, dilations)
    add(suite, name, [x, weights], attrs, steps, exact_conv(depthwise), terms)


def images(suite, specs, few):
    """Every epilogue over one image, and every window over one epilogue of each kind, in float; some in the others."""
    for steps in EPILOGUES + NORMALISED + ALONE:
        image_case(suite, "float", "even_filter", specs["even_filter"], steps)
    for at, label in enumerate(few):
        steps = ["FusedBatchNorm", "Add", "Relu"] if at % 2 else ["BiasAdd", "Relu6"]
        image_case(suite, "float", label, specs[label], steps)
    for dtype in FLOATS:
        image_case(suite, dtype, "even_filter", specs["even_filter"], ["BiasAdd", "Add", "Elu"], "NCHW")
    image_case(suite, "float", "even_filter", specs["even_filter"], ["FusedBatchNorm", "LeakyRelu"], "NCHW")
    for dtype in SHORT:
        image_case(suite, dtype, "even_filter", specs["even_filter"], ["BiasAdd", "Elu"])
        image_case(suite, dtype, "even_filter", specs["even_filter"], ["FusedBatchNorm", "Relu"])
    yield suite.finish()


def conv(folder):
    """_FusedConv2D."""
    few = ["pointwise", "explicit", "same", "dilated_same", "same_stride", "empty_batch"]
    yield from images(FusedSuite(folder, "_FusedConv2D"), CONVS, few)


def depthwise(folder):
    """_FusedDepthwiseConv2dNative."""
    few = ["multiplier", "explicit", "dilated_same", "same_stride", "empty_batch"]
    yield from images(FusedSuite(folder, "_FusedDepthwiseConv2dNative"), DEPTHWISE, few)


GROUPS = [matmul, conv, depthwise]
