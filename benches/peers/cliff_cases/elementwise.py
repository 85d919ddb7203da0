"""Ops on elements, on usual and on unusual values, and broadcasts."""

import numpy as np
import tensorflow as tf

from .case import Case

raw = tf.raw_ops
COUNT = 100_000
UNARY = (
    "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Digamma Elu Erf Erfc Erfinv Exp Expm1 Floor Inv"
    " IsFinite IsInf IsNan Lgamma Log Log1p LogicalNot Ndtri Neg Reciprocal Relu Relu6 Rint Round Rsqrt Selu Sigmoid Sign Sin Sinh"
    " Softplus Softsign Sqrt Square Tan Tanh LeakyRelu"
).split()
KEYS = {"Elu": "features", "Relu": "features", "Relu6": "features", "Selu": "features", "Softplus": "features",
        "Softsign": "features", "LeakyRelu": "features"}
BINARY = (
    "AddV2 Atan2 Div DivNoNan Equal FloorDiv FloorMod Greater Less Maximum Minimum Mod Mul MulNoNan NextAfter NotEqual Pow"
    " RealDiv SquaredDifference Sub TruncateDiv Xdivy Xlogy Xlog1py Igamma Igammac Polygamma Zeta"
).split()
DOMAINS = {"Igamma": (0.1, 9), "Igammac": (0.1, 9), "Polygamma": (1, 9), "Zeta": (1.1, 9), "Pow": (0.1, 4)}
# Values that take other paths in naive code.
VALUES = {
    "usual": lambda n, r: r.random(n) * 2 - 1,
    "inside": lambda n, r: r.random(n) * 0.98 + 0.01,
    "ten": lambda n, r: r.random(n) * 20 - 10,
    "large": lambda n, r: (r.random(n) * 2 - 1) * 1e30,
    "hundred": lambda n, r: (r.random(n) * 2 - 1) * 1e2,
    "million": lambda n, r: (r.random(n) * 2 - 1) * 1e6,
    "tiny": lambda n, r: (r.random(n) * 2 - 1) * 1e-30,
    "denormal": lambda n, r: (r.random(n) * 2 - 1) * 1e-39,
    "nan": lambda n, r: np.full(n, np.nan),
    "infinite": lambda n, r: np.where(r.random(n) < 0.5, np.inf, -np.inf),
    "zero": lambda n, r: np.zeros(n),
    "mixed": lambda n, r: np.exp((r.random(n) * 2 - 1) * 80) * np.where(r.random(n) < 0.5, 1, -1),
}


def unary(op, dtype=np.float32):
    call, key = getattr(raw, op), KEYS.get(op, "x")
    for label, values in VALUES.items():
        if op == "LogicalNot":
            yield Case("bool", lambda x: call(x=x(COUNT, dtype=bool)), COUNT)
            return
        def make(x, values=values):
            return call(**{key: x.of(values(COUNT, x.random).astype(dtype))})

        yield Case(label, make, COUNT, compared=label in ("usual", "inside", "zero"))


def binary(op):
    low, high = DOMAINS.get(op, (-1.0, 1.0))
    for label, a, b in BROADCASTS:
        size = float(np.prod(np.broadcast_shapes(a, b)))

        def make(x, a=a, b=b):
            return getattr(raw, op)(**dict(zip(NAMES.get(op, ("x", "y")), (x(*a, low=low, high=high), x(*b, low=low, high=high)))))

        yield Case(label, make, size, compared=op not in ("Mod", "FloorMod", "FloorDiv", "TruncateDiv", "Igamma", "Igammac"))


NAMES = {"Igamma": ("a", "x"), "Igammac": ("a", "x"), "Polygamma": ("a", "x"), "Zeta": ("x", "q"), "NextAfter": ("x1", "x2")}
BROADCASTS = [
    ("equal", (COUNT,), (COUNT,)),
    ("scalar", (COUNT,), ()),
    ("scalar-left", (), (COUNT,)),
    ("row", (1000, 100), (100,)),
    ("column", (1000, 100), (1000, 1)),
    ("outer", (1000, 1), (1, 100)),
    ("pairs", (50_000, 2), (2,)),
    ("pairs-column", (50_000, 2), (50_000, 1)),
    ("pair-of-rows", (2, 50_000), (2, 1)),
    ("middle", (100, 1, 100), (1, 10, 100)),
    ("seven", (14_000, 7), (7,)),
    ("many", (4,) * 8, (4, 1) * 4),
]
TYPES = [np.float64, np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.complex64]


def typed(op):
    for dtype in TYPES:
        whole = np.dtype(dtype).kind in "iu"
        low, high = (1, 100) if whole else (0.1, 1.0)

        def make(x, dtype=dtype, low=low, high=high):
            return getattr(raw, op)(x=x(COUNT, dtype=dtype, low=low, high=high), y=x(COUNT, dtype=dtype, low=low, high=high))

        yield Case(np.dtype(dtype).name, make, COUNT * np.dtype(dtype).itemsize)


def casts():
    names = [bool, np.int8, np.int32, np.int64, np.float16, np.float32, np.float64, np.complex64, tf.bfloat16.as_numpy_dtype]
    for source in [np.float32, *names]:
        for target in names:
            if source is not target:
                def make(x, source=source, target=target):
                    return tf.cast(x(COUNT, dtype=source, low=0, high=100), tf.as_dtype(target))

                yield Case(f"{np.dtype(source).name}-{np.dtype(target).name}", make, COUNT * 8.0)


FAMILIES = {
    **{f"unary-{op}": lambda op=op: unary(op) for op in UNARY},
    **{f"double-{op}": lambda op=op: unary(op, np.float64) for op in ("Sin", "Cos", "Tan", "Exp", "Log", "Tanh", "Erf", "Lgamma", "Sigmoid", "Rsqrt")},
    **{f"half-{op}": lambda op=op: unary(op, np.float16) for op in ("Sin", "Exp", "Log", "Tanh", "Erf", "Sigmoid", "Rsqrt", "Relu")},
    **{f"binary-{op}": lambda op=op: binary(op) for op in BINARY},
    **{f"typed-{op}": lambda op=op: typed(op) for op in ("AddV2", "Mul", "FloorDiv", "Maximum", "Less", "Pow", "FloorMod")},
    "cast": casts,
    "select": lambda: (
        Case(label, make, COUNT)
        for label, make in [
            ("equal", lambda x: tf.where(x(COUNT, dtype=bool), x(COUNT), x(COUNT))),
            ("rows", lambda x: tf.where(x(1000, 1, dtype=bool), x(1000, 100), x(1000, 100))),
            ("scalars", lambda x: tf.where(x(COUNT, dtype=bool), x(), x())),
            ("bytes", lambda x: tf.where(x(COUNT, dtype=bool), x(COUNT, dtype=np.int8, high=9), x(COUNT, dtype=np.int8, high=9))),
        ]
    ),
}
