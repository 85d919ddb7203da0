"""Diagonals and bands of matrices, and the cross product."""

import numpy as np

from .data import COMPLEX, FLOATS, NUMBERS, seeded, values
from .suite import Suite

TYPES = ["bool", *NUMBERS, *COMPLEX]
DIAG_TYPES = ["half", "float", "double", "int32", "int64", *COMPLEX]
ALIGNS = ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"]


def int32(x):
    return np.asarray(x, np.int32)


def named(k):
    return "k" + "_".join(str(i).replace("-", "m") for i in np.ravel(k))


def tensors(folder):
    """Diag and DiagPart."""
    suite = Suite(folder, "linalg", "Diag")
    for dtype in DIAG_TYPES:
        for label, shape in {"one": (1,), "vector": (5,), "matrix": (2, 3), "rank3": (2, 1, 2), "empty": (0, 2)}.items():
            suite.case(f"{dtype}_{label}", [values(seeded("Diag", dtype, label), dtype, shape)])
    suite.error("scalar", [np.float32(1)])
    yield suite.finish()
    suite = Suite(folder, "linalg", "DiagPart")
    for dtype in DIAG_TYPES:
        for label, shape in {"one": (1,), "vector": (5,), "matrix": (2, 3), "rank3": (2, 1, 2), "empty": (0, 2)}.items():
            suite.case(f"{dtype}_{label}", [values(seeded("DiagPart", dtype, label), dtype, shape * 2)])
    for label, shape in {"scalar": (), "vector": (1,), "odd": (2, 3, 2), "unlike": (2, 3, 3, 2), "rectangle": (2, 3)}.items():
        suite.error(label, [np.ones(shape, np.float32)])
    yield suite.finish()


MATRICES = {"square": (3, 3), "wide": (3, 5), "tall": (5, 3), "batch": (2, 3, 2, 4), "row": (1, 4), "empty": (0, 3), "none": (2, 0, 3, 3)}


FEW = {label: MATRICES[label] for label in ("wide", "batch", "none")}


def plain(folder):
    """MatrixDiag, MatrixDiagPart, MatrixSetDiag, MatrixBandPart."""
    suite = Suite(folder, "linalg", "MatrixDiag")
    for dtype in TYPES:
        for label, shape in {"one": (1,), "vector": (5,), "batch": (2, 3), "empty": (2, 0), "none": (0, 2)}.items():
            suite.case(f"{dtype}_{label}", [values(seeded("MatrixDiag", dtype, label), dtype, shape)])
    suite.error("scalar", [np.float32(1)])
    yield suite.finish()
    suite = Suite(folder, "linalg", "MatrixDiagPart")
    for dtype in TYPES:
        for label, shape in MATRICES.items():
            suite.case(f"{dtype}_{label}", [values(seeded("MatrixDiagPart", dtype, label), dtype, shape)])
    suite.error("vector", [np.ones(3, np.float32)])
    yield suite.finish()
    suite = Suite(folder, "linalg", "MatrixSetDiag")
    for dtype in TYPES:
        for label, shape in MATRICES.items():
            rng = seeded("MatrixSetDiag", dtype, label)
            diagonal = (*shape[:-2], min(shape[-2:]))
            suite.case(f"{dtype}_{label}", [values(rng, dtype, shape), values(rng, dtype, diagonal)])
    x = np.ones((2, 3, 4), np.float32)
    for label, shape in {"long": (2, 4), "short": (2, 2), "batch": (1, 3), "rank": (3,), "scalar": ()}.items():
        suite.error(label, [x, np.ones(shape, np.float32)])
    yield suite.finish()
    yield band_part(folder)


def band_part(folder):
    suite = Suite(folder, "linalg", "MatrixBandPart")
    bands = [(0, 0), (1, 0), (0, 2), (-1, 0), (0, -1), (-1, -1), (2, 1), (3, 3)]
    for dtype in TYPES:
        for label, shape in MATRICES.items() if dtype in ("float", "int8") else FEW.items():
            index = np.int32 if label == "wide" else np.int64
            for lower, upper in bands if label in ("square", "wide") and dtype in ("float", "int8") else bands[1:3]:
                lower, upper = min(lower, shape[-2]), min(upper, shape[-1])
                name = f"{dtype}_{label}_{lower}_{upper}".replace("-", "m")
                if name in suite.names:
                    continue
                x = values(seeded("MatrixBandPart", dtype, label), dtype, shape)
                suite.case(name, [x, index(lower), index(upper)], const=[1, 2])
    x = np.ones((3, 4), np.float32)
    suite.error("lower", [x, np.int64(4), np.int64(0)])
    suite.error("upper", [x, np.int64(0), np.int64(5)])
    suite.error("vector_of_bounds", [x, np.int64([1, 2]), np.int64(0)])
    suite.error("vector", [x[0], np.int64(0), np.int64(0)])
    return suite.finish()


BANDS = [[0], [1], [-1], [-1, 1], [0, 2], [-2, -1], [-2, 0], [1, 2], [0, 0]]


def make(folder):
    """MatrixDiagV3."""
    suite = Suite(folder, "linalg", "MatrixDiagV3")

    def add(name, dtype, shape, k, size, align="RIGHT_LEFT"):
        rng = seeded("MatrixDiagV3", dtype, name)
        inputs = [values(rng, dtype, shape), int32(k), int32(size[0]), int32(size[1]), values(rng, dtype, ())]
        suite.case(f"{dtype}_{name}", inputs, {"align": align}, const=[1, 2, 3])

    for dtype in TYPES:
        for k in BANDS if dtype == "float" else [[-1, 1]]:
            count = k[-1] - k[0] + 1
            shape = (2, 3) if count == 1 else (2, count, 3)
            for align in ALIGNS if dtype == "float" else ALIGNS[:2]:
                add(f"{named(k)}_{align}", dtype, shape, k, (-1, -1), align)
    for dtype in ("float", "int32"):
        for rows, cols in ((-1, 5), (6, -1), (3, 5), (4, 3)):
            add(f"k0_{rows}_{cols}".replace("-", "m"), dtype, (3,), [0], (rows, cols))
        add("scalar_k", dtype, (2, 3), 1, (-1, -1))
        add("far", dtype, (2,), [-5], (-1, -1))
        add("empty", dtype, (2, 0), [0], (-1, -1))
        add("none", dtype, (0, 3), [1], (-1, -1))
        add("band_size", dtype, (3, 4), [-1, 1], (5, 4))
    make_errors(suite)
    yield suite.finish()


def make_errors(suite):
    x, zero, auto = np.ones((2, 3), np.float32), np.float32(0), int32(-1)
    forms = {
        "few_rows": (x, [0], 2, -1, zero),
        "few_cols": (x, [1], -1, 3, zero),
        "inconsistent": (x, [0], 10, 10, zero),
        "order": (x, [2, 1], -1, -1, zero),
        "count": (x, [-1, 1], -1, -1, zero),
        "three": (x, [0, 1, 2], -1, -1, zero),
        "nothing": (x, np.zeros(0), -1, -1, zero),
        "matrix_k": (x, [[0]], -1, -1, zero),
        "padding": (x, [0], -1, -1, np.float32([0, 1])),
        "rows_vector": (x, [0], [3, 3], -1, zero),
    }
    for name, (diagonal, k, rows, cols, padding) in forms.items():
        suite.error(name, [diagonal, int32(k), int32(rows), int32(cols), padding], const=[1, 2, 3])
    suite.error("scalar", [np.float32(1), int32([0]), auto, auto, zero], const=[1, 2, 3])
    suite.error("vector_of_two", [x[0], int32([0, 1]), auto, auto, zero], const=[1, 2, 3])


def valid_bands(shape):
    rows, cols = shape[-2:]
    return [k for k in BANDS if all(i == 0 or -rows < i < cols for i in k)]


def take(folder):
    """MatrixDiagPartV3."""
    suite = Suite(folder, "linalg", "MatrixDiagPartV3")
    for dtype in TYPES:
        for label, shape in MATRICES.items() if dtype == "float" else FEW.items():
            few = [k for k in valid_bands(shape) if k in ([1], [-1, 1])]
            for k in valid_bands(shape) if dtype == "float" else few:
                for align in ALIGNS if dtype == "float" and len(k) == 2 else ALIGNS[1:2]:
                    rng = seeded("MatrixDiagPartV3", dtype, label)
                    inputs = [values(rng, dtype, shape), int32(k), values(rng, dtype, ())]
                    suite.case(f"{dtype}_{label}_{named(k)}_{align}", inputs, {"align": align}, const=[1])
    x, zero = np.ones((3, 4), np.float32), np.float32(0)
    suite.case("float_scalar_k", [x, int32(1), zero], const=[1])
    for k in ([4], [-3], [-5, 0], [0, 4], [2, 1], [0, 1, 2], [], [[0]]):
        suite.error(f"{named(k)}_{np.ndim(k)}", [x, int32(k), zero], const=[1])
    suite.error("vector", [x[0], int32([0]), zero], const=[1])
    suite.error("padding", [x, int32([0]), np.float32([0, 1])], const=[1])
    yield suite.finish()


def replace(folder):
    """MatrixSetDiagV3."""
    suite = Suite(folder, "linalg", "MatrixSetDiagV3")
    for dtype in TYPES:
        for label, shape in MATRICES.items() if dtype == "float" else FEW.items():
            few = [k for k in valid_bands(shape) if k in ([1], [-1, 1])]
            for k in valid_bands(shape) if dtype == "float" else few:
                for align in ALIGNS if dtype == "float" and len(k) == 2 else ALIGNS[1:2]:
                    rng = seeded("MatrixSetDiagV3", dtype, label)
                    longest = min(shape[-2] + min(k[-1], 0), shape[-1] - max(k[0], 0))
                    count = (k[-1] - k[0] + 1,) if k[0] != k[-1] else ()
                    diagonal = values(rng, dtype, (*shape[:-2], *count, longest))
                    inputs = [values(rng, dtype, shape), diagonal, int32(k)]
                    suite.case(f"{dtype}_{label}_{named(k)}_{align}", inputs, {"align": align}, const=[2])
    x = np.ones((2, 3, 4), np.float32)
    for name, shape, k in (
        ("short", (2, 2), [1]),
        ("count", (2, 2, 3), [-1, 1]),
        ("batch", (1, 3), [0]),
        ("rank", (3,), [0]),
        ("far", (2, 0), [4]),
        ("order", (2, 2, 3), [1, 0]),
    ):
        suite.error(name, [x, np.ones(shape, np.float32), int32(k)], const=[2])
    yield suite.finish()


def cross(folder):
    """Cross."""
    suite = Suite(folder, "linalg", "Cross")
    for dtype in NUMBERS:
        for label, shape in {"one": (3,), "batch": (5, 3), "rank3": (2, 4, 3), "empty": (0, 3), "many": (67, 3)}.items():
            rng = seeded("Cross", dtype, label)
            a, b = values(rng, dtype, shape), values(rng, dtype, shape)
            more = {"reference": exact_cross, "terms": 2} if dtype in FLOATS else {}
            suite.case(f"{dtype}_{label}", [a, b], **more)
    ones = lambda *shape: np.ones(shape, np.float32)
    suite.error("scalar", [np.float32(1), np.float32(1)])
    suite.error("two", [ones(2), ones(2)])
    suite.error("shapes", [ones(2, 3), ones(1, 3)])
    suite.error("rank", [ones(1, 3), ones(3)])
    yield suite.finish()


def exact_cross(case):
    a, b = (np.asarray(x).astype(np.float64) for x in case.inputs)
    moduli = np.stack([
        np.abs(a[..., i] * b[..., j]) + np.abs(a[..., j] * b[..., i]) for i, j in ((1, 2), (2, 0), (0, 1))
    ], -1)
    return [(np.cross(a, b), moduli)]


def older(folder):
    """MatrixDiagV2, MatrixDiagPartV2 and MatrixSetDiagV2, whose diagonals are aligned left."""
    suite = Suite(folder, "linalg", "MatrixDiagV2")
    for dtype in TYPES:
        for k in ([1], [-1, 1], [0, 2]) if dtype == "float" else ([-1, 1],):
            count = k[-1] - k[0] + 1
            rng = seeded("MatrixDiagV2", dtype, named(k))
            x = values(rng, dtype, (2, 3) if count == 1 else (2, count, 3))
            suite.case(f"{dtype}_{named(k)}", [x, int32(k), int32(-1), int32(-1), values(rng, dtype, ())], const=[1, 2, 3])
    x, zero = np.ones((2, 3), np.float32), np.float32(0)
    suite.error("count", [x, int32([-1, 1]), int32(-1), int32(-1), zero], const=[1, 2, 3])
    suite.error("few_rows", [x, int32([0]), int32(2), int32(-1), zero], const=[1, 2, 3])
    yield suite.finish()
    suite = Suite(folder, "linalg", "MatrixDiagPartV2")
    for dtype in TYPES:
        for label, shape in FEW.items() if dtype == "float" else [("wide", FEW["wide"])]:
            for k in valid_bands(shape) if dtype == "float" else ([-1, 1],):
                rng = seeded("MatrixDiagPartV2", dtype, label)
                suite.case(f"{dtype}_{label}_{named(k)}", [values(rng, dtype, shape), int32(k), values(rng, dtype, ())], const=[1])
    suite.error("far", [np.ones((3, 4), np.float32), int32([4]), zero], const=[1])
    yield suite.finish()
    suite = Suite(folder, "linalg", "MatrixSetDiagV2")
    for dtype in TYPES:
        for label, shape in FEW.items() if dtype == "float" else [("wide", FEW["wide"])]:
            for k in valid_bands(shape) if dtype == "float" else ([-1, 1],):
                rng = seeded("MatrixSetDiagV2", dtype, label)
                longest = min(shape[-2] + min(k[-1], 0), shape[-1] - max(k[0], 0))
                count = (k[-1] - k[0] + 1,) if k[0] != k[-1] else ()
                diagonal = values(rng, dtype, (*shape[:-2], *count, longest))
                suite.case(f"{dtype}_{label}_{named(k)}", [values(rng, dtype, shape), diagonal, int32(k)], const=[2])
    suite.error("short", [np.ones((2, 3, 4), np.float32), np.ones((2, 2), np.float32), int32([1])], const=[2])
    yield suite.finish()


GROUPS = [tensors, plain, make, take, replace, older, cross]
