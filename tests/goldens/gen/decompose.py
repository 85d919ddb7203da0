"""Decompositions of matrices, inverses, determinants and solvers."""

import numpy as np

from . import decompose_range as scale
from .data import COMPLEX, array, normal, seeded
from .suite import Suite

TYPES = ["float", "double", "complex64", "complex128"]
WHOLE = ("float", "complex128")  # the others have fewer sizes
SIZES = [1, 2, 3, 5, 8, 13, 17]
CONDITION = "the norm of the result times the condition number, as every stable algorithm's error is bounded"


def long(x):
    return np.asarray(x).astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def regular(rng, dtype, shape):
    """Matrices far from singular, with elements of the order of 1."""
    x = normal(rng, dtype, shape).astype(np.complex128 if dtype in COMPLEX else np.float64)
    return array(x + 3 * np.eye(*shape[-2:]) * np.sign(rng.standard_normal(shape[-1:])), dtype)


def definite(rng, dtype, shape):
    x = long(normal(rng, dtype, shape))
    return array(x @ adjoint(x) + np.eye(shape[-1]), dtype)


def norm(x):
    return np.linalg.norm(x, axis=(-2, -1), keepdims=True)


def filled(terms, like):
    return np.broadcast_to(terms, like.shape) + np.zeros(like.shape)


def related(compute):
    """The reference of an op of one matrix: the norm of the result times the condition of the matrix."""

    def reference(case):
        x = long(case.inputs[0])
        exact = compute(case, *map(long, case.inputs))
        condition = norm(x) * norm(np.linalg.inv(x))
        return [(exact, filled(norm(exact) * condition, exact))]

    return reference


def shapes(dtype):
    for n in SIZES:
        yield f"{dtype}_{n}", ((3,) if n <= 5 else ()) + (n, n)
    yield f"{dtype}_batch", (2, 1, 3, 4, 4)


def options(reference, n):
    return {"reference": reference, "terms": n, "reason": CONDITION}


def range_options(n):
    return {"terms": n, "reason": CONDITION + ", before the scaling"}


def empties(suite, dtype, attrs=None, **more):
    for label, shape in (("empty", (0, 0)), ("empty_batch", (0, 3, 3)), ("empty_matrices", (2, 0, 0))):
        suite.case(f"{dtype}_{label}", [array(np.zeros(shape), dtype)], attrs, **more)


def errors(suite):
    suite.error("not_square", [np.ones((2, 3), np.float32)])
    suite.error("vector", [np.ones(3, np.float32)])
    suite.error("scalar", [np.float32(1)])
    suite.error("dtype", [np.ones((2, 2), np.int32)])


def cholesky(folder):
    """Cholesky."""
    suite = Suite(folder, "linalg", "Cholesky")
    reference = related(lambda case, x: np.linalg.cholesky(x))
    for dtype in TYPES:
        for name, shape in shapes(dtype):
            x = definite(seeded("Cholesky", name), dtype, shape)
            suite.case(name, [x], **options(reference, shape[-1]))
        empties(suite, dtype)
        # Only the lower triangle is read.
        x = definite(seeded("Cholesky", dtype, "lower"), dtype, (5, 5))
        garbage = np.triu(np.full((5, 5), 7.0), 1).astype(x.dtype)
        lower = lambda case: reference(type(case)("", [symmetric(case.inputs[0])], {}, {}))
        suite.case(f"{dtype}_lower", [np.tril(x) + garbage], **options(lower, 5))
        x = definite(seeded("Cholesky", dtype, "scale"), dtype, (3, 3))
        for label, by in scale.powers(dtype):
            by = by // 2
            scale.case(suite, f"{dtype}_{label}", [x], [by[:, None] + by], [by[:, None]], reference, **range_options(3))
        # No error: NaN, of complex ones in one part only, over an upper triangle that is left as it was.
        suite.case(f"{dtype}_indefinite", [array([[-1, 0], [0, 1]], dtype)], shape_only=(0,))
    errors(suite)
    yield suite.finish()


def symmetric(x):
    return np.tril(x) + adjoint(np.tril(x, -1))


def inverse(folder):
    """MatrixInverse."""
    suite = Suite(folder, "linalg", "MatrixInverse")
    reference = related(lambda case, x: np.linalg.inv(adjoint(x) if case.attrs.get("adjoint") else x))
    for dtype in [*TYPES, "half"]:
        for name, shape in shapes(dtype):
            x = regular(seeded("MatrixInverse", name), dtype, shape)
            suite.case(name, [x], **options(reference, shape[-1]))
        for n in (3, 8):
            x = regular(seeded("MatrixInverse", dtype, n, "adjoint"), dtype, (2, n, n))
            suite.case(f"{dtype}_{n}_adjoint", [x], {"adjoint": True}, **options(reference, n))
        if dtype != "half":
            x = regular(seeded("MatrixInverse", dtype, "scale"), dtype, (3, 3))
            for label, by in scale.powers(dtype):
                scale.case(suite, f"{dtype}_{label}", [x], [by], [-by[:, None]], reference, **range_options(3))
        empties(suite, dtype)
    singular_errors(suite)
    errors(suite)
    yield suite.finish()


def singular_errors(suite, *more):
    for name, values in {"zero": [[0, 0], [0, 0]], "singular": [[1, 2], [2, 4]], "zero_row": [[1, 2], [0, 0]]}.items():
        for dtype in TYPES:
            suite.error(f"{name}_{dtype}", [array(values, dtype), *(array(x, dtype) for x in more)])
    x = np.stack([np.eye(2), np.ones((2, 2))]).astype(np.float32)
    suite.error("one_of_two", [x, *(np.float32([y, y]) for y in more)])


def determinant_terms(x, exact):
    """The sum of what each element contributes to the determinant's error."""
    if x.shape[-1] == 0:
        return np.zeros(exact.shape)
    cofactors = np.abs(np.swapaxes(np.linalg.inv(x), -1, -2))
    return np.abs(exact) * np.sum(np.abs(x) * cofactors, axis=(-2, -1))


def determinants(folder):
    """MatrixDeterminant and LogMatrixDeterminant."""
    reason = "the moduli of the products of each element with its cofactor"

    def plain(case):
        x = long(case.inputs[0])
        exact = np.linalg.det(x)
        # TensorFlow sums logarithms, whose rounding counts for their size.
        logs = 1 + np.abs(np.linalg.slogdet(x)[1])
        return [(exact, determinant_terms(x, exact) * logs)]

    def logarithm(case):
        x = long(case.inputs[0])
        sign, log = np.linalg.slogdet(x)
        terms = determinant_terms(x, np.ones(log.shape))
        log = log.astype(sign.dtype)
        return [(sign, terms), (log, terms + np.abs(log))]

    for op, reference in (("MatrixDeterminant", plain), ("LogMatrixDeterminant", logarithm)):
        suite = Suite(folder, "linalg", op)
        for dtype in TYPES:
            for name, shape in shapes(dtype):
                x = regular(seeded(op, name), dtype, shape)
                suite.case(name, [x], reference=reference, terms=shape[-1], reason=reason)
            x = regular(seeded(op, dtype, "scale"), dtype, (3, 3))
            for label, by in scale.mild_powers(dtype) if op == "MatrixDeterminant" else scale.powers(dtype):
                total = int(sum(by))
                added = total * np.log(2)
                effects = [total] if op == "MatrixDeterminant" else [0, lambda log, added=added: log + log.dtype.type(added)]
                scale.case(suite, f"{dtype}_{label}", [x], [by], effects, reference, terms=3, reason=reason)
            empties(suite, dtype)
            zeros = dict(tolerance={"ulp": 0})
            suite.case(f"{dtype}_zero", [array([[0, 0], [0, 0]], dtype)], **zeros)
            suite.case(f"{dtype}_singular", [array([[1, 2, 3], [0, 0, 0], [4, 5, 6]], dtype)], **zeros)
            suite.case(f"{dtype}_exchange", [array([[0, 1], [1, 0]], dtype)], tolerance={"ulp": 2})
            if dtype not in COMPLEX:
                suite.case(f"{dtype}_nan", [array([[1, 0], [np.nan, 1]], dtype)], **zeros)
                suite.case(f"{dtype}_infinite", [array([[np.inf, 1], [1, 2]], dtype)], **zeros)
        x = np.diag(np.full(20, 1e-3)).astype(np.float32)
        suite.case("float_underflow", [x], **({"tolerance": {"ulp": 0}} if op == "MatrixDeterminant" else {"tolerance": {"ulp": 16}}))
        errors(suite)
        yield suite.finish()


def solved(case, a, b):
    return np.linalg.solve(adjoint(a) if case.attrs.get("adjoint") else a, b)


def solvers(folder):
    """MatrixSolve."""
    suite = Suite(folder, "linalg", "MatrixSolve")
    for dtype in TYPES:
        for name, shape in shapes(dtype):
            for label, attrs in (("", {}), ("_adjoint", {"adjoint": True})):
                if label and shape[-1] not in (3, 8):
                    continue
                rng = seeded("MatrixSolve", name)
                a = regular(rng, dtype, shape)
                b = normal(rng, dtype, (*shape[:-1], 3))
                suite.case(name + label, [a, b], attrs, **options(related(solved), shape[-1]))
        rng = seeded("MatrixSolve", dtype, "scale")
        a, b = regular(rng, dtype, (3, 3)), normal(rng, dtype, (3, 2))
        for label, by in scale.powers(dtype):
            # The right side as large as the first column: so is the solution where columns are alike.
            each = [by, by[:1]]
            effects = [by[:1] - by[:, None]]
            if label != "graded":
                scale.case(suite, f"{dtype}_{label}", [a, b], each, effects, related(solved), **range_options(3))
            scale.case(suite, f"{dtype}_{label}_of_1", [a, b], [by, 0], [-by[:, None]], related(solved), **range_options(3))
        for label, n, k, batch in (("empty", 0, 3, ()), ("empty_rhs", 3, 0, (2,)), ("empty_batch", 2, 2, (0,))):
            a, b = np.zeros((*batch, n, n)), np.zeros((*batch, n, k))
            suite.case(f"{dtype}_{label}", [array(a, dtype), array(b, dtype)])
    ones = lambda *shape: np.ones(shape, np.float32)
    singular_errors(suite, [[1], [2]])
    suite.error("not_square", [ones(2, 3), ones(2, 1)])
    suite.error("rows", [ones(2, 2), ones(3, 1)])
    suite.error("batch", [ones(1, 2, 2), ones(3, 2, 1)])
    suite.error("batch_rank", [ones(2, 2), ones(1, 2, 1)])
    suite.error("vector", [ones(2, 2), ones(2)])
    yield suite.finish()


def triangular(folder):
    """MatrixTriangularSolve."""
    suite = Suite(folder, "linalg", "MatrixTriangularSolve")

    def reference(case):
        a, b = map(long, case.inputs)
        a = np.tril(a) if case.attrs.get("lower", True) else np.triu(a)
        a = adjoint(a) if case.attrs.get("adjoint") else a
        exact = np.linalg.solve(a, b) if a.ndim > 1 else b
        return [(exact, filled(norm(exact) * norm(a) * norm(np.linalg.inv(a)), exact))]

    def add(name, dtype, batches, n, k, attrs):
        rng = seeded("MatrixTriangularSolve", dtype, name)
        a = regular(rng, dtype, (*batches[0], n, n))
        # Triangles of random numbers alone would be close to singular.
        a = array(long(a) + 3 * np.eye(n), dtype) if n > 8 else a
        b = normal(rng, dtype, (*batches[1], n, k))
        suite.case(f"{dtype}_{name}", [a, b], attrs, **options(reference, n))

    for dtype in TYPES:
        for lower in (True, False):
            for adj in (False, True):
                attrs = {"lower": lower, "adjoint": adj}
                label = f"{'lower' if lower else 'upper'}{'_adjoint' * adj}"
                for n in (1, 2, 5, 13) if dtype in WHOLE else (2, 5):
                    add(f"{n}_{label}", dtype, ((), ()), n, 3, attrs)
                add(f"batch_{label}", dtype, ((2, 3), (2, 3)), 4, 2, attrs)
        for label, batches in {
            "left": ((3,), ()),
            "right": ((), (3,)),
            "cross": ((2, 1), (3,)),
            "one": ((1,), (4,)),
        }.items():
            add(f"broadcast_{label}", dtype, batches, 3, 2, {})
        rng = seeded("MatrixTriangularSolve", dtype, "scale")
        a, b = regular(rng, dtype, (3, 3)), normal(rng, dtype, (3, 2))
        for label, by in scale.powers(dtype):
            for lower in (True, False):
                name = f"{dtype}_{label}_{'lower' if lower else 'upper'}"
                more = {"attrs": {"lower": lower}, **range_options(3)}
                if label != "graded":
                    scale.case(suite, name, [a, b], [by, by[:1]], [0], reference, **more)
                scale.case(suite, name + "_of_1", [a, b], [by, 0], [-by[:, None]], reference, **more)
        for label, n, k, batch in (("empty", 0, 3, ()), ("empty_rhs", 3, 0, (2,)), ("empty_batch", 2, 2, (0,))):
            a, b = np.zeros((*batch, n, n)), np.zeros((*batch, n, k))
            suite.case(f"{dtype}_{label}", [array(a, dtype), array(b, dtype)])
    ones = lambda *shape: np.ones(shape, np.float32)
    suite.error("not_square", [ones(2, 3), ones(2, 1)])
    suite.error("rows", [ones(2, 2), ones(3, 1)])
    suite.error("batch", [ones(2, 2, 2), ones(3, 2, 1)])
    suite.error("vector", [ones(2, 2), ones(2)])
    suite.error("vector_matrix", [ones(2), ones(2, 2)])
    yield suite.finish()


RECTANGLES = [(1, 1), (2, 2), (3, 5), (5, 3), (7, 7), (1, 4), (4, 1), (13, 8), (8, 13)]
EMPTY = [(0, 0), (0, 3), (3, 0)]


def qr(folder):
    """Qr, whose signs are those of LAPACK's reflections."""
    suite = Suite(folder, "linalg", "Qr")

    def reference(case):
        x = long(case.inputs[0])
        full = case.attrs.get("full_matrices")
        pairs = [np.linalg.qr(one, "complete" if full else "reduced") for one in x.reshape(-1, *x.shape[-2:])]
        q, r = (np.stack(part).reshape(*x.shape[:-2], *part[0].shape) for part in zip(*pairs))
        condition = np.linalg.cond(x)[..., None, None]
        return [(q, filled(condition, q)), (r, filled(norm(x) * condition, r))]

    for dtype in [*TYPES, "half"]:
        for m, n in RECTANGLES if dtype in WHOLE else RECTANGLES[:7]:
            for full in (False, True):
                x = normal(seeded("Qr", dtype, m, n), dtype, (2, m, n) if m * n < 20 else (m, n))
                # NumPy's is LAPACK's, as are the signs of TensorFlow's.
                suite.case(f"{dtype}_{m}x{n}{'_full' * full}", [x], {"full_matrices": full}, **options(reference, m))
        for m, n in EMPTY:
            for full in (False, True):
                x = array(np.zeros((2, m, n)), dtype)
                suite.case(f"{dtype}_empty_{m}x{n}{'_full' * full}", [x], {"full_matrices": full})
        suite.case(f"{dtype}_zero", [array(np.zeros((2, 2)), dtype)])
        if dtype != "half":
            x = normal(seeded("Qr", dtype, "scale"), dtype, (4, 3))
            for label, by in scale.powers(dtype):
                scale.case(suite, f"{dtype}_{label}", [x], [by], [0, by], reference, **range_options(4))
    suite.error("vector", [np.ones(3, np.float32)])
    suite.error("dtype", [np.ones((2, 2), np.int32)])
    yield suite.finish()


def svd(folder):
    """Svd: values only, since the vectors may be turned."""
    suite = Suite(folder, "linalg", "Svd")

    def reference(case):
        x = long(case.inputs[0])
        exact = np.linalg.svd(x, compute_uv=False)
        vectors = [(np.zeros(out.shape), np.zeros(out.shape)) for out in case.outputs[1:]]
        kind = np.complex128 if x.dtype.kind == "c" else np.float64
        return [(exact.astype(kind), filled(exact[..., :1], exact)), *vectors]

    more = {"shape_only": (1, 2), "reason": "relative to the largest singular value"}
    for dtype in TYPES:
        for m, n in RECTANGLES if dtype in WHOLE else RECTANGLES[:7]:
            x = normal(seeded("Svd", dtype, m, n), dtype, (2, m, n) if m * n < 20 else (m, n))
            for label, attrs in {"": {}, "_full": {"full_matrices": True}, "_values": {"compute_uv": False}}.items():
                suite.case(f"{dtype}_{m}x{n}{label}", [x], attrs, reference=reference, terms=m * n, **dict(more))
        for m, n in EMPTY:
            for full in (False, True):
                x = array(np.zeros((2, m, n)), dtype)
                suite.case(f"{dtype}_empty_{m}x{n}{'_full' * full}", [x], {"full_matrices": full})
        suite.case(f"{dtype}_rank_1", [array(np.ones((3, 4)), dtype)], reference=reference, terms=16, **dict(more))
        suite.case(f"{dtype}_zero", [array(np.zeros((3, 2)), dtype)], shape_only=(1, 2))
        x = normal(seeded("Svd", dtype, "scale"), dtype, (4, 3))
        for label, by in scale.powers(dtype):
            for kind, attrs in {"": {}, "_values": {"compute_uv": False}}.items():
                if label != "graded":
                    options = {"terms": 12, **more, "attrs": attrs}
                    scale.case(suite, f"{dtype}_{label}{kind}", [x], [by], [by[0], 0, 0], reference, **options)
        if dtype not in COMPLEX:
            suite.case(f"{dtype}_nan", [array([[1, np.nan], [0, 1]], dtype)])
    suite.error("vector", [np.ones(3, np.float32)])
    suite.error("dtype", [np.ones((2, 2), np.int32)])
    yield suite.finish()


def eigen(folder):
    """SelfAdjointEigV2: values only, since the vectors may be turned."""
    suite = Suite(folder, "linalg", "SelfAdjointEigV2")

    def reference(case):
        x = long(symmetric(case.inputs[0]))
        exact = np.linalg.eigvalsh(x)
        vectors = [(np.zeros(out.shape), np.zeros(out.shape)) for out in case.outputs[1:]]
        largest = np.max(np.abs(exact), axis=-1, keepdims=True)
        kind = np.complex128 if x.dtype.kind == "c" else np.float64
        return [(exact.astype(kind), filled(largest, exact)), *vectors]

    more = {"shape_only": (1,), "reason": "relative to the largest eigenvalue"}
    for dtype in TYPES:
        for name, shape in shapes(dtype):
            # The upper triangle is something else: it is not read.
            x = normal(seeded("SelfAdjointEigV2", name), dtype, shape)
            if dtype in COMPLEX:
                x = x - np.eye(shape[-1]) * 1j * x.imag
                x = x.astype(np.complex64 if dtype == "complex64" else np.complex128)
            for label, attrs in (("", {}), ("_values", {"compute_v": False})):
                suite.case(name + label, [x], attrs, reference=reference, terms=shape[-1] ** 2, **dict(more))
        empties(suite, dtype)
        x = definite(seeded("SelfAdjointEigV2", dtype, "scale"), dtype, (3, 3))
        for label, by in scale.powers(dtype):
            for kind, attrs in {"": {}, "_values": {"compute_v": False}}.items():
                if label != "graded":
                    options = {"terms": 9, **more, "attrs": attrs}
                    scale.case(suite, f"{dtype}_{label}{kind}", [x], [by], [by[0], 0], reference, **options)
        suite.case(f"{dtype}_same", [array(np.eye(4) * 2, dtype)], reference=reference, terms=4, **dict(more))
    suite.error("nan", [np.float32([[1, 0], [np.nan, 1]])])
    errors(suite)
    yield suite.finish()


GROUPS = [cholesky, inverse, determinants, solvers, triangular, qr, svd, eigen]
