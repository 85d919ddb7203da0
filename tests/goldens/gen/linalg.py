"""MatMul, BatchMatMul and its versions."""

import numpy as np

from .data import COMPLEX, FLOATS, array, seeded, small, values
from .stand_in import as_float
from .suite import Suite, ulp

SIZES = {  # label: (m, k, n)
    "one": (1, 1, 1),
    "small": (2, 3, 4),
    "prime": (5, 7, 3),
    "row": (1, 7, 5),
    "column": (5, 7, 1),
    "dot": (1, 13, 1),
    "outer": (5, 1, 3),
    "empty_m": (0, 3, 2),
    "empty_n": (2, 3, 0),
    "empty_k": (2, 0, 3),
    "empty_all": (0, 0, 0),
    "16": (16, 16, 16),
    "17": (17, 19, 23),
}
FEW = ["small", "prime", "empty_k", "17"]
LARGE = {"37x53x29": (37, 53, 29), "long": (2, 1009, 3), "wide": (3, 5, 257), "tall": (257, 5, 3)}
INTS = ["int32", "int64"]


def exact_product(adjoint_a, adjoint_b):
    def reference(case):
        wide = np.complex128 if case.inputs[0].dtype.kind == "c" else np.float64
        a, b = (np.asarray(x).astype(wide) for x in case.inputs)
        if adjoint_a == "adj_x":
            a = np.conj(a) if case.attrs.get(adjoint_a) else a
            b = np.conj(b) if case.attrs.get(adjoint_b) else b
        a = np.swapaxes(a, -1, -2) if case.attrs.get(adjoint_a) else a
        b = np.swapaxes(b, -1, -2) if case.attrs.get(adjoint_b) else b
        return [(np.matmul(a, b), np.matmul(np.abs(a), np.abs(b)))]

    return reference


def operand(rng, dtype, shape):
    return values(rng, dtype, shape) if dtype in FLOATS + COMPLEX else small(rng, dtype, shape, -9, 10)


def matmul_case(suite, dtype, name, sizes, transpose_a=False, transpose_b=False, extra=None):
    m, k, n = sizes
    rng = seeded("MatMul", dtype, name)
    a = operand(rng, dtype, (k, m) if transpose_a else (m, k))
    b = operand(rng, dtype, (n, k) if transpose_b else (k, n))
    attrs = {"transpose_a": transpose_a, "transpose_b": transpose_b} | (extra or {})
    options = {"reference": exact_product("transpose_a", "transpose_b"), "terms": k} if dtype in FLOATS + COMPLEX else {}
    suite.case(f"{dtype}_{name}", [a, b], attrs, **options)


def special_products(suite, dtype):
    """NaN and infinities meet zeros: 0 times infinity is NaN, in every place of the matrix."""
    nan, inf = np.nan, np.inf
    a = array([[1, 2, 3], [nan, 0, 0], [inf, 0, 1], [-inf, 1, 1], [0, 0, 0], [-0.0, -0.0, -0.0], [inf, -inf, 0]], dtype)
    b = array([[1, 0], [0, 1], [2, -0.0]], dtype)
    suite.case(f"{dtype}_special", [a, b], tolerance=ulp(0))


def matmul(folder):
    """MatMul."""
    suite = Suite(folder, "linalg", "MatMul")
    for dtype in FLOATS + INTS + COMPLEX:
        for label in SIZES if dtype == "float" else FEW:
            matmul_case(suite, dtype, label, SIZES[label])
        if dtype == "float":
            for label, sizes in LARGE.items():
                matmul_case(suite, dtype, label, sizes)
        elif dtype in FLOATS:
            matmul_case(suite, dtype, "long", (2, 257, 3))
        for ta, tb in ((True, False), (False, True), (True, True)):
            matmul_case(suite, dtype, f"prime_{'t' * ta}a_{'t' * tb}b", (5, 7, 3), ta, tb)
            if dtype in COMPLEX:
                continue
            matmul_case(suite, dtype, f"17_{'t' * ta}a_{'t' * tb}b", (17, 19, 23), ta, tb)
            if dtype == "float":
                matmul_case(suite, dtype, f"row_{'t' * ta}a_{'t' * tb}b", (1, 7, 5), ta, tb)
                matmul_case(suite, dtype, f"empty_k_{'t' * ta}a_{'t' * tb}b", (2, 0, 3), ta, tb)
        if dtype in FLOATS:
            special_products(suite, dtype)
    matmul_case(suite, "float", "grad", (2, 3, 4), extra={"grad_a": True, "grad_b": True})
    wrap = values(seeded("MatMul", "wrap"), "int32", (3, 5)), values(seeded("MatMul", "wrap2"), "int32", (5, 2))
    suite.case("int32_wraps", wrap)
    matmul_errors(suite)
    yield suite.finish()


def matmul_errors(suite):
    x = np.ones((2, 3), np.float32)
    suite.error("inner", [x, x])
    suite.error("inner_transposed", [x, np.ones((3, 2), np.float32)], {"transpose_a": True})
    suite.error("rank_1", [np.ones(3, np.float32), np.ones((3, 2), np.float32)])
    suite.error("rank_3", [np.ones((1, 2, 3), np.float32), np.ones((3, 2), np.float32)])
    suite.error("scalar", [np.float32(1), np.float32(2)])
    suite.error("dtype", [np.ones((1, 1), np.int8), np.ones((1, 1), np.int8)])


BATCHES = {  # label: (batch of x, batch of y)
    "none": ((), ()),
    "same": ((3,), (3,)),
    "left_only": ((3,), ()),
    "right_only": ((), (3,)),
    "one_left": ((1,), (4,)),
    "one_right": ((4,), (1,)),
    "rank2": ((2, 3), (2, 3)),
    "cross": ((2, 1), (1, 3)),
    "rank_up": ((2, 3), (3,)),
    "rank3": ((2, 1, 2), (1, 3, 1)),
    "empty": ((0,), (0,)),
    "empty_one": ((0, 1), (1, 2)),
}
BATCH_FEW = ["none", "same", "cross", "empty"]


def batch_case(suite, dtype, name, batches, sizes, adj_x=False, adj_y=False):
    m, k, n = sizes
    rng = seeded("BatchMatMulV2", dtype, name)
    x = operand(rng, dtype, (*batches[0], *((k, m) if adj_x else (m, k))))
    y = operand(rng, dtype, (*batches[1], *((n, k) if adj_y else (k, n))))
    options = {"reference": exact_product("adj_x", "adj_y"), "terms": k} if dtype in FLOATS + COMPLEX else {}
    suite.case(f"{dtype}_{name}", [x, y], {"adj_x": adj_x, "adj_y": adj_y}, **options)


def batch_matmul(folder):
    """BatchMatMulV2."""
    suite = Suite(folder, "linalg", "BatchMatMulV2")
    for dtype in FLOATS + ["int16"] + INTS + COMPLEX:
        for label in BATCHES if dtype in ("float", "int32") else BATCH_FEW:
            batch_case(suite, dtype, label, BATCHES[label], (2, 3, 4))
        for ax, ay in ((True, False), (False, True), (True, True)):
            label = f"{'adj' * ax}x_{'adj' * ay}y"
            batch_case(suite, dtype, f"same_{label}", ((2,), (2,)), (5, 7, 3), ax, ay)
            batch_case(suite, dtype, f"cross_{label}", ((2, 1), (3,)), (2, 3, 4), ax, ay)
        batch_case(suite, dtype, "prime", ((3,), (3,)), (11, 13, 7))
        batch_case(suite, dtype, "empty_k", ((2,), (2,)), (2, 0, 3))
        if dtype in FLOATS:
            special_products(suite, dtype)
    batch_case(suite, "float", "row", ((5,), (5,)), (1, 7, 1))
    batch_case(suite, "float", "large", ((2,), (1,)), (37, 53, 29))
    batch_case(suite, "float", "empty_m", ((2,), (2,)), (0, 3, 2))
    batch_errors(suite)
    yield suite.finish()


def batch_errors(suite):
    def ones(*shape):
        return np.ones(shape, np.float32)

    suite.error("inner", [ones(2, 2, 3), ones(2, 2, 3)])
    suite.error("inner_adjoint", [ones(2, 2, 3), ones(2, 3, 4)], {"adj_x": True})
    suite.error("batch", [ones(2, 2, 3), ones(3, 3, 2)])
    suite.error("batch_rank", [ones(2, 3, 2, 3), ones(2, 3, 2)])
    suite.error("rank_1", [ones(3), ones(3, 2)])
    suite.error("scalar", [np.float32(1), ones(1, 1)])


def equal_batches(folder):
    """BatchMatMul."""
    suite = Suite(folder, "linalg", "BatchMatMul")
    for dtype in FLOATS + INTS + COMPLEX:
        for label in ("none", "same", "rank2", "empty"):
            batch_case(suite, dtype, label, BATCHES[label], (2, 3, 4))
        batch_case(suite, dtype, "adj", ((2,), (2,)), (5, 7, 3), True, True)
    batch_case(suite, "float", "empty_k", ((2,), (2,)), (2, 0, 3))
    batch_errors(suite)
    suite.error("broadcast", [np.ones((1, 2, 2), np.float32), np.ones((3, 2, 2), np.float32)])
    suite.error("lower_rank", [np.ones((2, 2), np.float32), np.ones((3, 2, 2), np.float32)])
    yield suite.finish()


MIXED = [(a, b, "int32") for a in ("int8", "uint8") for b in ("int8", "uint8")]
MIXED += [(a, b, "bfloat16") for x in ("int8", "uint8") for a, b in ((x, "bfloat16"), ("bfloat16", x))]


def mixed_batches(folder):
    """BatchMatMulV3."""
    suite = Suite(folder, "linalg", "BatchMatMulV3")
    same = [(dtype,) * 3 for dtype in [*FLOATS, "int16", *INTS, *COMPLEX]]
    for types in same + MIXED:
        for label in ("none", "same", "cross", "empty"):
            mixed_case(suite, types, label, BATCHES[label], (2, 3, 4))
        mixed_case(suite, types, "adj", ((2,), (2,)), (5, 7, 3), True, True)
        mixed_case(suite, types, "prime", ((3,), ()), (11, 13, 7))
    x = np.ones((2, 2, 3), np.int8)
    suite.error("inner", [x, x], {"Tout": "int32"})
    yield suite.finish()


def mixed_case(suite, types, name, batches, sizes, adj_x=False, adj_y=False):
    m, k, n = sizes
    rng = seeded("BatchMatMulV3", *types, name)
    x = operand(rng, types[0], (*batches[0], *((k, m) if adj_x else (m, k))))
    y = operand(rng, types[1], (*batches[1], *((n, k) if adj_y else (k, n))))
    exact = types[2] in ("int16", *INTS)
    options = {} if exact else {"reference": exact_product("adj_x", "adj_y"), "terms": k}
    if "half" in types:
        options |= {"run_as": as_float, "via": "float"}
    attrs = {"adj_x": adj_x, "adj_y": adj_y, "Tout": types[2]}
    suite.case(f"{'_'.join(types[: 1 if types[0] == types[1] == types[2] else 3])}_{name}", [x, y], attrs, **options)


GROUPS = [matmul, batch_matmul, equal_batches, mixed_batches]
