"""Activations beyond Relu, and the gradients of elementwise ops."""

import numpy as np

from .data import COMPLEX, FLOATS, INTS, NUMBERS, array, dtype_name, normal, seeded, specials, values
from .elementwise import LARGE, SHAPES, long, sigmoid
from .suite import EXACT, Suite, ulp

SCALE = np.longdouble("1.0507009873554804934193349852946")
SCALED_ALPHA = np.longdouble("1.7580993408473768599402175208123")


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def finite(terms):
    """Absolute terms where a result is no infinity, which is compared as it is."""
    terms = np.abs(terms).astype(np.float64)
    return np.where(np.isinf(terms), 0, terms)


def elu(x):
    """Elu, and the terms of e^x - 1, which TensorFlow subtracts."""
    return np.where(x < 0, np.expm1(x), x), finite(np.where(x < 0, np.exp(x) + 1, x))


def selu(x):
    negative, positive = SCALED_ALPHA * np.expm1(x), SCALE * x
    return np.where(x < 0, negative, positive), finite(np.where(x < 0, SCALED_ALPHA * (np.exp(x) + 1), positive))


# op: function of the input, ULPs in float and double, in half and bfloat16
ACTIVATIONS = {
    "Elu": (elu, 3, 2),
    "Selu": (selu, 3, 2),
    "Softplus": (softplus, 3, 2),
    "Softsign": (lambda x: x / (1 + np.abs(x)), 2, 2),
}
# Where expm1 and ln(1 + x) lose digits when they are computed otherwise, and where results saturate.
EDGES = [1e-3, -1e-3, 1e-4, -1e-4, -1e-7, 1e-7, -0.5, -9.0, 9.0, -16.5, 16.5, -20.0, 20.0, -80.0, 80.0, 300.0, -300.0]


def activations(folder):
    """Elu, Selu, Softplus, Softsign."""
    for op, (function, ulps, short_ulps) in ACTIVATIONS.items():
        suite = Suite(folder, "nn", op)
        for dtype in FLOATS:
            options = {
                "tolerance": ulp(short_ulps if dtype in ("half", "bfloat16") else ulps),
                "reference": lambda case, function=function: [function(*long(case))],
            }
            if op in ("Elu", "Selu"):
                options |= {"terms": 2, "reason": "TensorFlow subtracts 1 from e^x, which cancels"}
            shapes = SHAPES | (LARGE if dtype == "float" else {"67": (67,)})
            for label, shape in shapes.items():
                x = normal(seeded(op, dtype, label), dtype, shape, 3)
                suite.case(f"{dtype}_{label}", [x], **dict(options))
            # No denormals of half.
            edges = [x for x in EDGES if dtype != "half" or abs(x) > 1e-4]
            suite.case(f"{dtype}_edges", [array(edges, dtype)], **dict(options))
            wide = np.tile(specials(dtype), 5)
            if op == "Softplus":
                # Below the smallest normal number the exponential is flushed or not as the place has it.
                wide = wide[~((np.abs(wide) < 1e-30) & (wide != 0))]
            suite.case(f"{dtype}_special", [wide], **dict(options))
        suite.error("dtype", [np.int32([1])])
        yield suite.finish()


def leaky_relu(folder):
    """LeakyRelu: one product where the element is not above 0."""
    suite = Suite(folder, "nn", "LeakyRelu")
    for dtype in FLOATS:
        for alpha in (None, 0.0, 1.5, -0.3):
            attrs = {} if alpha is None else {"alpha": alpha}
            label = "default" if alpha is None else f"alpha{alpha}".replace(".", "_").replace("-", "m")
            x = normal(seeded("LeakyRelu", dtype, label), dtype, (67,), 4)
            suite.case(f"{dtype}_{label}", [x], attrs, tolerance=ulp(0))
            suite.case(f"{dtype}_{label}_special", [np.tile(specials(dtype), 3)], attrs, tolerance=ulp(0))
        for label, shape in SHAPES.items():
            suite.case(f"{dtype}_{label}", [normal(seeded("LeakyRelu", dtype, label), dtype, shape)], tolerance=ulp(0))
    suite.error("dtype", [np.int32([1])])
    yield suite.finish()


def elu_grad(dy, y):
    return np.where(y < 0, (y + 1) * dy, dy)


def selu_grad(dy, y):
    return np.where(y < 0, dy * (y + SCALED_ALPHA), dy * SCALE)


# op: dtypes, what the output or input is made from, function or None where the result is exact, ULPs for both
# kinds of floats. Inputs come as (gradient, other); the ops of the second table take them the other way round.
BY_INPUT = {
    "ReluGrad": (NUMBERS, None, None, 0, 0),
    "Relu6Grad": (NUMBERS, None, None, 0, 0),
    "EluGrad": (FLOATS, np.expm1, elu_grad, 2, 2),
    "SeluGrad": (FLOATS, np.expm1, selu_grad, 3, 2),
    "SoftplusGrad": (FLOATS, None, lambda dy, x: dy / (np.exp(-x) + 1), 4, 2),
    "SoftsignGrad": (FLOATS, None, lambda dy, x: dy / (1 + np.abs(x)) ** 2, 3, 2),
}
BY_OUTPUT = {
    "SigmoidGrad": (sigmoid, lambda y, dy: dy * y * (1 - y), 3),
    "TanhGrad": (np.tanh, lambda y, dy: dy * (1 - y * y), 3),
    "SqrtGrad": (lambda x: np.abs(x) + 0.1, lambda y, dy: dy / (2 * y), 2),
    "RsqrtGrad": (lambda x: np.abs(x) + 0.1, lambda y, dy: dy * y**3 / -2, 4),
    "ReciprocalGrad": (None, lambda y, dy: -dy * y * y, 3),
    "InvGrad": (None, lambda y, dy: -dy * y * y, 3),
}


def made_from(function, x):
    """The output of a function for this input, in the input's dtype."""
    return x if function is None else array(function(x.astype(np.float64)), dtype_name(x))


def tanh_terms(case):
    """TanhGrad and the absolute terms of 1 - y^2."""
    y, dy = (np.asarray(x).astype(np.float64) for x in case.inputs)
    return [(dy * (1 - y * y), finite(np.abs(dy) * (1 + y * y)))]


def special_pairs(dtype):
    """NaN, infinities, zeros and ordinary numbers against each other."""
    some = array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 6.0, 7.0, -0.25], dtype)
    x, y = np.meshgrid(some, some, indexing="ij")
    return x.ravel(), y.ravel()


def gradient_cases(suite, dtype, make, options):
    """Pairs of inputs in the order of the op."""
    shapes = SHAPES | ({"1009": (1009,)} if dtype == "float" else {"67": (67,)})
    for label, shape in shapes.items():
        suite.case(f"{dtype}_{label}", make(seeded(suite.op, dtype, label), shape), **dict(options))


def by_input(folder):
    """Gradients that take the gradient first."""
    for op, (dtypes, function, exact, ulps, short_ulps) in BY_INPUT.items():
        suite = Suite(folder, "nn_grad", op)
        for dtype in dtypes:

            def make(rng, shape, dtype=dtype, function=function):
                x = normal(rng, dtype, shape, 4) if dtype in FLOATS else values(rng, dtype, shape)
                return [values(rng, dtype, shape), made_from(function, x)]

            options = {"tolerance": EXACT}
            if dtype in FLOATS:
                n = short_ulps if dtype in ("half", "bfloat16") else ulps
                options = {"tolerance": ulp(n)}
                if exact:
                    options["reference"] = lambda case, exact=exact: [exact(*long(case))]
            gradient_cases(suite, dtype, make, options)
            if dtype in INTS:
                x, y = np.meshgrid(specials(dtype), specials(dtype), indexing="ij")
                suite.case(f"{dtype}_special", [x.ravel(), y.ravel()])
            else:
                suite.case(f"{dtype}_special", list(special_pairs(dtype)), **dict(options))
        gradient_errors(suite)
        yield suite.finish()


def leaky_relu_grad(folder):
    """LeakyReluGrad."""
    suite = Suite(folder, "nn_grad", "LeakyReluGrad")
    for dtype in FLOATS:
        for alpha in (0.2, 0.0, 1.5):
            rng = seeded("LeakyReluGrad", dtype, alpha)
            name = f"{dtype}_alpha{alpha}".replace(".", "_")
            suite.case(name, [normal(rng, dtype, (67,)), normal(rng, dtype, (67,))], {"alpha": alpha}, tolerance=ulp(0))
        suite.case(f"{dtype}_special", list(special_pairs(dtype)), tolerance=ulp(0))
        suite.case(f"{dtype}_empty", [array([], dtype), array([], dtype)])
    gradient_errors(suite)
    yield suite.finish()


def by_output(folder):
    """Gradients that take the function's output first."""
    for op, (function, exact, ulps) in BY_OUTPUT.items():
        suite = Suite(folder, "nn_grad", op)
        for dtype in FLOATS + COMPLEX:

            def make(rng, shape, dtype=dtype, function=function):
                if dtype in COMPLEX:
                    return [normal(rng, dtype, shape), normal(rng, dtype, shape)]
                return [made_from(function, normal(rng, dtype, shape, 2)), values(rng, dtype, shape)]

            def reference(case, op=op, exact=exact):
                if dtype_name(case.inputs[0]) in COMPLEX:
                    y, dy = (np.asarray(x).astype(np.clongdouble) for x in case.inputs)
                    return [exact(y if op in ("SigmoidGrad", "TanhGrad") else np.conj(y), dy)]
                return [exact(*long(case))]

            options = {"tolerance": ulp(2 if dtype in ("half", "bfloat16") else ulps), "reference": reference}
            if op == "TanhGrad" and dtype not in COMPLEX:
                options = {"reference": tanh_terms, "terms": 2, "reason": "1 - y^2 cancels"}
            gradient_cases(suite, dtype, make, options)
            if dtype not in COMPLEX:
                suite.case(f"{dtype}_special", list(special_pairs(dtype)), **dict(options))
        # The shape is the first input's; only the numbers of elements must agree.
        x = np.float32([[1, 2, 3], [4, 5, 6]])
        suite.case("float_reshaped", [x, np.float32([1, 2, 3, 4, 5, 7])], tolerance=ulp(4))
        suite.error("count", [x, np.ones(5, np.float32)])
        suite.error("no_broadcast", [x, np.float32(1)])
        suite.error("dtype", [np.int32([1]), np.int32([1])])
        yield suite.finish()


def gradient_errors(suite):
    x = np.ones((2, 3), np.float32)
    suite.error("shapes", [x, np.ones((2, 4), np.float32)])
    suite.error("rank", [x, np.ones(6, np.float32)])
    suite.error("no_broadcast", [x, np.float32(1)])
    suite.error("dtype", [np.array([True]), np.array([True])])


GROUPS = [activations, leaky_relu, by_input, leaky_relu_grad, by_output]
