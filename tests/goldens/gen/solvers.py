"""Functions of matrices, LU factors, eigenvalues, and solvers of bands and of least squares."""

import mpmath
import numpy as np

from .data import COMPLEX, array, normal, seeded
from .decompose import CONDITION, TYPES, adjoint, definite, empties, errors, filled, long, norm, options, regular, singular_errors
from .suite import Suite

SIZES = [1, 2, 3, 5, 8]


def shapes(dtype):
    for n in SIZES:
        yield f"{dtype}_{n}", ((3,) if n <= 3 else ()) + (n, n)
    yield f"{dtype}_batch", (2, 1, 2, 4, 4)


def condition(x):
    return norm(x) * norm(np.linalg.inv(x))


def each_matrix(function, x):
    """A function of each matrix, computed in 40 digits."""

    def one(matrix):
        with mpmath.workdps(40):
            result = function(mpmath.matrix(matrix.tolist()))
            return np.array([[complex(result[i, j]) for j in range(result.cols)] for i in range(result.rows)])

    return np.stack([one(matrix) for matrix in x.reshape(-1, *x.shape[-2:])]).reshape(x.shape)


def positive(rng, dtype, shape):
    """Matrices whose eigenvalues are in the right half of the plane, and which are not symmetric."""
    n = shape[-1]
    x = long(normal(rng, dtype, shape)) / np.sqrt(n)
    return array(x @ adjoint(x) + 0.5 * x + 1.5 * np.eye(n), dtype)


def functions(folder):
    """MatrixSquareRoot and MatrixLogarithm."""
    for op, function, types in (
        ("MatrixSquareRoot", mpmath.sqrtm, TYPES),
        ("MatrixLogarithm", mpmath.logm, COMPLEX),
    ):
        suite = Suite(folder, "linalg", op)

        def reference(case):
            x = long(case.inputs[0])
            exact = each_matrix(function, x)
            exact = exact if x.dtype.kind == "c" else exact.real
            return [(exact, filled((norm(exact) + 1) * condition(x), exact))]

        for dtype in types:
            for name, shape in shapes(dtype):
                x = positive(seeded(op, name), dtype, shape)
                suite.case(name, [x], **options(reference, shape[-1]))
            suite.case(f"{dtype}_identity", [array(np.eye(3), dtype)], tolerance={"ulp": 2})
            triangle = array([[4, 1, 2], [0, 9, 3], [0, 0, 16]], dtype)
            suite.case(f"{dtype}_triangle", [triangle], **options(reference, 3))
            turned = array([[0, -1], [1, 0]], dtype)
            suite.case(f"{dtype}_turned", [turned], **options(reference, 2))
            empties(suite, dtype)
        if op == "MatrixSquareRoot":
            zeros = dict(tolerance={"ulp": 0})
            for dtype in ("float", "double"):
                negative = array([[[-1, 0], [0, 2]], [[1, 2], [2, 1]]], dtype)
                suite.case(f"{dtype}_nan_negative", [negative], **zeros)
        errors(suite)
        yield suite.finish()


def eliminated(x, rows):
    """Both triangles of LU factors in one matrix, for a given order of rows."""
    wide = np.clongdouble if x.dtype.kind == "c" else np.longdouble
    a = x[rows].astype(wide)
    for k in range(len(a)):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a.astype(x.dtype)


def lu(folder):
    """Lu."""
    suite = Suite(folder, "linalg", "Lu")

    def reference(case):
        x, rows = long(case.inputs[0]), case.outputs[1]
        pairs = zip(x.reshape(-1, *x.shape[-2:]), rows.reshape(-1, rows.shape[-1]))
        exact = np.stack([eliminated(*pair) for pair in pairs]).reshape(x.shape)
        return [(exact, filled(norm(exact) * condition(x), exact))]

    for dtype in TYPES:
        for index in ("int32", "int64"):
            for name, shape in shapes(dtype):
                if index == "int64" and shape[-1] not in (2, 5):
                    continue
                x = normal(seeded("Lu", name), dtype, shape)
                suite.case(f"{name}_{index}", [x], {"output_idx_type": index}, **options(reference, shape[-1]))
        empties(suite, dtype)
        suite.case(f"{dtype}_exchange", [array([[0, 1], [1, 0]], dtype)])
    singular_errors(suite)
    errors(suite)
    yield suite.finish()


def apart(rng, dtype, shape):
    """Matrices whose eigenvalues differ in their moduli: of real numbers triangles, of which TensorFlow finds them in
    the order of the diagonal."""
    n = shape[-1]
    values = np.arange(1, n + 1) * np.where(np.arange(n) % 2, -1, 1)
    if dtype not in COMPLEX:
        return array(np.triu(long(normal(rng, dtype, shape)), 1) + values * np.eye(n), dtype)
    vectors = regular(rng, "complex128", shape)
    values = values * np.exp(1j * np.arange(n))
    return array((vectors * values) @ np.linalg.inv(vectors), dtype)


def eig(folder):
    """Eig: values only, since the vectors may be turned; of real matrices that are no triangles, the order is open."""
    suite = Suite(folder, "linalg", "Eig")

    def reference(case):
        x = long(case.inputs[0])
        exact, vectors = np.linalg.eig(x)
        order = np.argsort(np.abs(exact), axis=-1)
        exact = np.take_along_axis(exact.astype(np.complex128), order, -1)
        largest = np.max(np.abs(exact), axis=-1, keepdims=True) * np.linalg.cond(vectors)[..., None]
        others = [(np.zeros(out.shape), np.zeros(out.shape)) for out in case.outputs[1:]]
        return [(exact, filled(largest, exact)), *others]

    more = {"shape_only": (1,), "reason": "relative to the largest eigenvalue, times the condition of the eigenvectors"}
    for dtype in TYPES:
        out = {"float": "complex64", "double": "complex128"}.get(dtype, dtype)
        for name, shape in shapes(dtype):
            x = apart(seeded("Eig", name), dtype, shape)
            for label, attrs in (("", {}), ("_values", {"compute_v": False})):
                attrs = attrs | {"Tout": out}
                suite.case(name + label, [x], attrs, reference=reference, terms=shape[-1] ** 2, **dict(more))
        if dtype not in COMPLEX:
            x = normal(seeded("Eig", dtype, "any"), dtype, (2, 5, 5))
            suite.case(f"{dtype}_any_order", [x], {"Tout": out}, shape_only=(0, 1))
        empties(suite, dtype, {"Tout": out})
    suite.error("nan", [np.float32([[1, 0], [np.nan, 1]])], {"Tout": "complex64"})
    suite.error("not_square", [np.ones((2, 3), np.float32)], {"Tout": "complex64"})
    suite.error("vector", [np.ones(3, np.float32)], {"Tout": "complex64"})
    yield suite.finish()


def cholesky_grad(folder):
    """CholeskyGrad."""
    suite = Suite(folder, "linalg", "CholeskyGrad")

    def reference(case):
        l, g = (np.tril(long(x)) for x in case.inputs)
        inner = np.tril(adjoint(l) @ g)
        inner = inner - 0.5 * np.eye(l.shape[-1]) * inner
        inverse = np.linalg.inv(l)
        whole = adjoint(inverse) @ inner @ inverse
        exact = 0.5 * (whole + adjoint(whole))
        return [(exact, filled(norm(g) * norm(inverse) * condition(l), exact))]

    for dtype in ("float", "double"):
        for name, shape in [*shapes(dtype), (f"{dtype}_40", (40, 40))]:
            rng = seeded("CholeskyGrad", name)
            l = np.linalg.cholesky(long(definite(rng, dtype, shape)))
            # Only lower triangles are read.
            garbage = np.triu(np.full(shape, 7.0), 1)
            suite.case(name, [array(l + garbage, dtype), normal(rng, dtype, shape)], **options(reference, shape[-1]))
        for label, shape in (("empty", (0, 0)), ("empty_batch", (0, 3, 3)), ("empty_matrices", (2, 0, 0))):
            suite.case(f"{dtype}_{label}", [array(np.zeros(shape), dtype)] * 2)
    ones = lambda *shape: np.ones(shape, np.float32)
    suite.error("not_square", [ones(2, 3), ones(2, 3)])
    suite.error("sizes", [ones(2, 2), ones(3, 3)])
    suite.error("batch", [ones(2, 2, 2), ones(3, 2, 2)])
    suite.error("vector", [ones(3), ones(3)])
    yield suite.finish()


def least_squares(folder):
    """MatrixSolveLs."""
    suite = Suite(folder, "linalg", "MatrixSolveLs")

    def reference(case):
        a, b, by = long(case.inputs[0]), long(case.inputs[1]), float(case.inputs[2])
        if case.attrs.get("fast", True):
            deep = a.shape[-2] >= a.shape[-1]
            square = adjoint(a) @ a if deep else a @ adjoint(a)
            square = square + by * np.eye(square.shape[-1])
            exact = np.linalg.solve(square, adjoint(a) @ b) if deep else adjoint(a) @ np.linalg.solve(square, b)
            largest = condition(square)
        else:
            exact = np.linalg.pinv(a, rcond=1e-6) @ b
            values = np.linalg.svd(a, compute_uv=False)
            least = np.min(np.where(values > 1e-6 * values[..., :1], values, np.inf), -1)
            largest = (values[..., 0] / least)[..., None, None] ** 2
        size = norm(exact) + norm(b) / norm(a)
        return [(exact, filled(size * largest, exact))]

    reason = "the norm of the result times the condition number of the matrix of the normal equations"
    for dtype in TYPES:
        for m, n in [(1, 1), (3, 3), (5, 3), (3, 5), (8, 2), (2, 8), (9, 7)]:
            rng = seeded("MatrixSolveLs", dtype, m, n)
            batch = (2,) if m * n < 20 else ()
            a, b = normal(rng, dtype, (*batch, m, n)), normal(rng, dtype, (*batch, m, 2))
            for label, attrs, by in (("", {}, 0.0), ("_regular", {}, 0.5), ("_slow", {"fast": False}, 0.0), ("_slow_regular", {"fast": False}, 0.5)):
                inputs = [a, b, np.float64(by)]
                suite.case(f"{dtype}_{m}x{n}{label}", inputs, attrs, reference=reference, terms=m * n, reason=reason)
        # Of rank 2.
        rng = seeded("MatrixSolveLs", dtype, "rank")
        low = array(np.outer([1, 2, 3, 4], [1, 0, 1]) + np.outer([1, -1, 1, -1], [0, 1, 1]), dtype)
        b = normal(rng, dtype, (4, 2))
        suite.case(f"{dtype}_rank_2_slow", [low, b, np.float64(0)], {"fast": False}, reference=reference, terms=12, reason=reason)
        suite.case(f"{dtype}_rank_2_regular", [low, b, np.float64(2)], reference=reference, terms=12, reason=reason)
        for label, m, n, k, batch in (
            ("empty_rhs", 3, 2, 0, (2,)),
            ("empty_batch", 2, 2, 1, (0,)),
            ("empty_cols", 2, 0, 1, ()),
            ("empty", 0, 0, 2, ()),
        ):
            a, b = np.zeros((*batch, m, n)), np.zeros((*batch, m, k))
            suite.case(f"{dtype}_{label}", [array(a, dtype), array(b, dtype), np.float64(0)])
    ones = lambda *shape: np.ones(shape, np.float32)
    zero = np.float64(0)
    suite.error("deficient", [ones(2, 2) * 0, ones(2, 1), zero])
    suite.error("deficient_wide", [ones(2, 3) * 0, ones(2, 1), zero])
    suite.error("negative", [ones(2, 2), ones(2, 1), np.float64(-1)])
    suite.error("regularizer", [ones(2, 2), ones(2, 1), np.zeros(1)])
    suite.error("rows", [ones(2, 2), ones(3, 1), zero])
    suite.error("batch", [ones(2, 2, 2), ones(3, 2, 1), zero])
    suite.error("vector", [ones(2, 2), ones(2), zero])
    yield suite.finish()


def tridiagonal(diagonals):
    """The matrices of three diagonals, the first one above the main one."""
    n = diagonals.shape[-1]
    x = np.zeros((*diagonals.shape[:-2], n, n), diagonals.dtype)
    for i in range(n):
        x[..., i, i] = diagonals[..., 1, i]
        if i + 1 < n:
            x[..., i, i + 1] = diagonals[..., 0, i]
            x[..., i + 1, i] = diagonals[..., 2, i + 1]
    return x


def bands(rng, dtype, shape, main):
    """Three diagonals; `main` is added to the one in the middle."""
    x = long(normal(rng, dtype, shape))
    x[..., 1, :] = main * np.sign(x[..., 1, :].real) + x[..., 1, :]
    return array(x, dtype)


def tridiagonal_solve(folder):
    """TridiagonalSolve."""
    suite = Suite(folder, "linalg", "TridiagonalSolve")

    def reference(case):
        a, b = tridiagonal(long(case.inputs[0])), long(case.inputs[1])
        exact = np.linalg.solve(a, b)
        return [(exact, filled(norm(exact) * condition(a), exact))]

    perturb, none = {"perturb_singular": True}, {"partial_pivoting": False}
    for dtype in TYPES:
        for n, k, batch in [(1, 2, ()), (2, 1, (3,)), (3, 2, (2, 2)), (5, 3, ()), (17, 2, ()), (40, 1, ())]:
            for label, attrs, main in (("", {}, 0.5), ("_perturbed", perturb, 0.5), ("_in_place", none, 3)):
                rng = seeded("TridiagonalSolve", dtype, n, label)
                a, b = bands(rng, dtype, (*batch, 3, n), main), normal(rng, dtype, (*batch, n, k))
                suite.case(f"{dtype}_{n}{label}", [a, b], attrs, **options(reference, n))
            for label, n0, k0, batch0 in (("empty", 0, 3, ()), ("empty_rhs", 3, 0, (2,)), ("empty_batch", 2, 2, (0,))):
                if n == 1:
                    a, b = np.zeros((*batch0, 3, n0)), np.zeros((*batch0, n0, k0))
                    suite.case(f"{dtype}_{label}", [array(a, dtype), array(b, dtype)])
        # Exchanges of rows, in whole numbers.
        a, b = array([[1, 2, 4], [0, 0, 1], [9, 2, 1]], dtype), array([[1], [2], [3]], dtype)
        suite.case(f"{dtype}_exchanges", [a, b], **options(reference, 3))
    singular = {
        "zero_pivot": [[1, 1, 0], [0, 0, 1], [0, 0, 0]],
        "last": [[1, 0, 0], [1, 1, 0], [0, 1, 0]],
        "one": [[0], [0], [0]],
    }
    for dtype in ("float", "double"):
        for name, values in singular.items():
            a, b = array(values, dtype), array(np.arange(2, 2 + len(values[0]))[:, None], dtype)
            for label, attrs in (("", {}), ("_in_place", none)):
                suite.case(f"{dtype}_extreme_singular_{name}{label}", [a, b], attrs)
            suite.case(f"{dtype}_extreme_singular_{name}_perturbed", [a, b], perturb, tolerance={"ulp": 4})
        tiny = np.finfo(np.float32 if dtype == "float" else np.float64).tiny
        small = array([[tiny, 0], [tiny, 2 * tiny], [0, tiny]], dtype)
        suite.case(f"{dtype}_tiny_perturbed", [small, array([[1], [4 * tiny]], dtype)], perturb, tolerance={"ulp": 4})
        suite.case(f"{dtype}_nan_needs_exchange_in_place", [array([[1, 0], [0, 1], [0, 1]], dtype), array([[1], [2]], dtype)], none)
    ones = lambda *shape: np.ones(shape, np.float32)
    suite.error("attributes", [ones(3, 3), ones(3, 1)], perturb | none)
    suite.error("diagonals", [ones(2, 3), ones(3, 1)])
    suite.error("rows", [ones(3, 3), ones(2, 1)])
    suite.error("batch", [ones(2, 3, 3), ones(1, 3, 1)])
    suite.error("vector", [ones(3, 3), ones(3)])
    yield suite.finish()


def tridiagonal_product(folder):
    """TridiagonalMatMul."""
    suite = Suite(folder, "linalg", "TridiagonalMatMul")

    def reference(case):
        x = [long(x) for x in case.inputs]
        a = tridiagonal(np.concatenate(x[:3], -2))
        return [(a @ x[3], np.abs(a) @ np.abs(x[3]))]

    for dtype in TYPES:
        for n, k, batch in [(1, 2, ()), (2, 1, (3,)), (3, 2, (2, 2)), (5, 3, ()), (17, 4, ())]:
            rng = seeded("TridiagonalMatMul", dtype, n)
            diagonals = [normal(rng, dtype, (*batch, 1, n)) for _ in range(3)]
            b = normal(rng, dtype, (*batch, n, k))
            suite.case(f"{dtype}_{n}", [*diagonals, b], reference=reference, terms=3)
        for label, n, k, batch in (("empty_rhs", 3, 0, (2,)), ("empty_batch", 2, 2, (0,))):
            diagonal = array(np.zeros((*batch, 1, n)), dtype)
            suite.case(f"{dtype}_{label}", [diagonal] * 3 + [array(np.zeros((*batch, n, k)), dtype)])
    ones = lambda *shape: np.ones(shape, np.float32)
    suite.error("superdiag", [ones(2, 3), ones(1, 3), ones(1, 3), ones(3, 2)])
    suite.error("maindiag", [ones(1, 3), ones(1, 2), ones(1, 3), ones(3, 2)])
    suite.error("subdiag", [ones(1, 3), ones(1, 3), ones(1, 4), ones(3, 2)])
    suite.error("batch", [ones(2, 1, 3), ones(2, 1, 3), ones(2, 1, 3), ones(1, 3, 2)])
    suite.error("vector", [ones(3), ones(1, 3), ones(1, 3), ones(3, 2)])
    yield suite.finish()


def dense(x, lower):
    """The triangles of their diagonals."""
    width, n = x.shape[-2:]
    y = np.zeros((*x.shape[:-2], n, n), x.dtype)
    for i in range(n):
        for d in range(width):
            if lower and i >= d:
                y[..., i, i - d] = x[..., d, i]
            if not lower and i + d < n:
                y[..., i, i + d] = x[..., width - 1 - d, i]
    return y


def banded(folder):
    """BandedTriangularSolve."""
    suite = Suite(folder, "linalg", "BandedTriangularSolve")

    def reference(case):
        a, b = dense(long(case.inputs[0]), case.attrs.get("lower", True)), long(case.inputs[1])
        a = adjoint(a) if case.attrs.get("adjoint") else a
        exact = np.linalg.solve(a, b)
        return [(exact, filled(norm(exact) * condition(a), exact))]

    def add(name, dtype, batches, width, n, k, attrs):
        rng = seeded("BandedTriangularSolve", dtype, name)
        a = long(normal(rng, dtype, (*batches[0], width, n)))
        main = 0 if attrs.get("lower", True) else width - 1
        a[..., main, :] += 3 * np.sign(a[..., main, :].real)
        b = normal(rng, dtype, (*batches[1], n, k))
        suite.case(f"{dtype}_{name}", [array(a, dtype), b], attrs, **options(reference, n))

    for dtype in TYPES:
        for lower in (True, False):
            for adj in (False, True):
                attrs = {"lower": lower, "adjoint": adj}
                label = f"{'lower' if lower else 'upper'}{'_adjoint' * adj}"
                for width, n in ((1, 1), (1, 4), (2, 5), (3, 3), (4, 9)):
                    add(f"{width}_of_{n}_{label}", dtype, ((), ()), width, n, 3, attrs)
                add(f"batch_{label}", dtype, ((2, 3), (2, 3)), 2, 4, 2, attrs)
        for label, batches in {"left": ((3,), ()), "right": ((), (3,)), "cross": ((2, 1), (3,)), "one": ((1,), (4,))}.items():
            add(f"broadcast_{label}", dtype, batches, 2, 3, 2, {})
    ones = lambda *shape: np.ones(shape, np.float32)
    zeros = lambda *shape: np.zeros(shape, np.float32)
    suite.error("singular", [zeros(2, 3), ones(3, 1)])
    suite.error("singular_upper", [np.float32([[1, 1, 1], [1, 0, 1]]), ones(3, 1)], {"lower": False})
    suite.error("no_diagonals", [ones(0, 3), ones(3, 1)])
    suite.error("rows", [ones(2, 3), ones(2, 1)])
    suite.error("batch", [ones(2, 2, 3), ones(3, 3, 1)])
    suite.error("vector", [ones(2, 3), ones(3)])
    yield suite.finish()


GROUPS = [functions, lu, eig, cholesky_grad, least_squares, tridiagonal_solve, tridiagonal_product, banded]
