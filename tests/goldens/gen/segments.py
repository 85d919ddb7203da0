"""Segment reductions: sorted ids, unsorted ids, picked rows."""

import numpy as np

from .data import COMPLEX, FLOATS, INTS, NUMBERS, array, seeded, small, values
from .reduction import wide
from .suite import Suite

# Rows of one number each: of its neighbours in the segment NaN hides those before it.
NAN, INF = np.nan, np.inf
WITH_NAN = [[1, NAN, 2], [2, NAN, 1], [NAN, 1], [1, NAN], [NAN], [NAN, NAN], [INF, NAN, 1], [-INF, NAN, 3, 2], [NAN, -INF], [3, 1, NAN, 1, 2]]
# label: (shape of the data, ids)
SORTED = {
    "rows": ((5, 3), [0, 0, 1, 1, 1]),
    "gaps": ((5, 2), [1, 1, 3, 3, 6]),
    "vector": ((6,), [0, 1, 1, 2, 2, 2]),
    "one": ((1, 4), [0]),
    "rank3": ((4, 2, 3), [0, 0, 2, 2]),
    "no_rows": ((0, 3), []),
    "no_columns": ((3, 0), [0, 1, 1]),
    "long": ((211,), [0] * 100 + [1] * 111),
}
UNSORTED = {
    "rows": ((5, 3), [2, 0, 2, 1, 0], 3),
    "gaps": ((4, 2), [5, 1, 1, 5], 7),
    "negative": ((5,), [0, -1, 1, -3, 0], 2),
    "scalar_id": ((3,), 1, 3),
    "matrix_ids": ((2, 3, 2), [[0, 1, 0], [1, 1, 2]], 3),
    "no_rows": ((0, 3), [], 2),
    "no_segments": ((3,), [-1, -1, -1], 0),
    "long": ((211,), [i * 7 % 3 for i in range(211)], 3),
}
FEW = ("rows", "gaps")
SUMMED = ("Sum", "Mean", "SqrtN", "Prod")


def data_for(kind, dtype, shape, label):
    rng = seeded("segment", kind, dtype, label)
    if kind == "Mean" and dtype in INTS:
        return small(rng, dtype, shape, 0, 2)
    if kind == "Prod" and dtype in FLOATS + COMPLEX:
        return array(wide(values(rng, dtype, shape)) * (0.3 if np.prod(shape) < 40 else 0.02) + 1, dtype)
    return values(rng, dtype, shape)


def fold(kind, rows):
    """Result and sum of absolute terms of the rows of one segment."""
    if kind == "Prod":
        return np.prod(rows, axis=0), np.abs(np.prod(rows, axis=0))
    count = {"Mean": len(rows), "SqrtN": np.sqrt(len(rows))}.get(kind, 1)
    return np.sum(rows, axis=0) / count, np.sum(np.abs(rows), axis=0) / count


def exact(kind, segments_of):
    """The reference of a case whose rows and segments `segments_of` finds."""

    def reference(case):
        x, ids, count = segments_of(case)
        empty = 1.0 if kind == "Prod" else 0.0
        result = np.full((count, *x.shape[1:]), empty, x.dtype)
        terms = np.zeros(result.shape, np.float64)
        for segment in range(count):
            if np.any(ids == segment):
                result[segment], terms[segment] = fold(kind, x[ids == segment])
        return [(result, terms)]

    return reference


def options_for(kind, dtype, segments_of, terms):
    if kind not in SUMMED or dtype in INTS:
        return {}
    return {"reference": exact(kind, segments_of), "terms": terms, "stepwise": True}


def sorted_segments(case):
    x, ids = wide(case.inputs[0]), case.inputs[1]
    return x, ids, int(ids[-1]) + 1 if len(ids) else 0


def sorted_cases(folder):
    """SegmentSum, SegmentMean, SegmentProd, SegmentMax, SegmentMin."""
    for kind in ("Sum", "Mean", "Prod", "Max", "Min"):
        suite = Suite(folder, "reduction", f"Segment{kind}")
        for dtype in NUMBERS + (COMPLEX if kind in SUMMED else []):
            for label in SORTED if dtype in ("float", "int32") else FEW:
                shape, ids = SORTED[label]
                x = data_for(kind, dtype, shape, label)
                options = options_for(kind, dtype, sorted_segments, len(ids))
                suite.case(f"{dtype}_{label}", [x, np.int32(ids)], **options)
            if kind in ("Max", "Min") and dtype in FLOATS:
                # No wider rows: in vector registers TensorFlow leaves NaN out, here alone.
                ids = np.repeat(np.arange(len(WITH_NAN)), [len(rows) for rows in WITH_NAN])
                suite.case(f"{dtype}_nan", [array(np.concatenate(WITH_NAN), dtype), np.int32(ids)])
        x = np.ones((3, 2), np.float32)
        suite.case("int64_ids", [x, np.int64([0, 0, 1])])
        suite.error("decreasing", [x, np.int32([0, 2, 1])])
        suite.error("negative", [x, np.int32([-1, 0, 1])])
        suite.error("too_few", [x, np.int32([0, 1])])
        suite.error("matrix_ids", [x, np.int32([[0], [1], [1]])])
        suite.error("scalar_data", [np.float32(1), np.int32([0])])
        yield suite.finish()


def unsorted_segments(case):
    ids = np.asarray(case.inputs[1])
    x = wide(case.inputs[0])
    return x.reshape(ids.size, *x.shape[ids.ndim :]), ids.ravel(), int(case.inputs[2])


def unsorted_cases(folder):
    """UnsortedSegmentSum, UnsortedSegmentProd, UnsortedSegmentMax, UnsortedSegmentMin."""
    for kind in ("Sum", "Prod", "Max", "Min"):
        suite = Suite(folder, "reduction", f"UnsortedSegment{kind}")
        for dtype in NUMBERS + (COMPLEX if kind in SUMMED else []):
            for label in UNSORTED if dtype in ("float", "int32") else FEW:
                shape, ids, count = UNSORTED[label]
                options = options_for(kind, dtype, unsorted_segments, np.size(ids))
                x = data_for(kind, dtype, shape, label)
                suite.case(f"{dtype}_{label}", [x, np.int32(ids), np.int32(count)], const=[2], **options)
            if kind in ("Max", "Min") and dtype in FLOATS:
                ids = np.repeat(np.arange(len(WITH_NAN)), [len(rows) for rows in WITH_NAN])
                turned = np.argsort(seeded(kind, dtype, "nan").permutation(len(ids)), kind="stable")
                x = array(np.concatenate(WITH_NAN), dtype)
                suite.case(f"{dtype}_nan", [x, np.int32(ids), np.int32(len(WITH_NAN))], const=[2])
                wide = np.tile(x[turned][:, None], 19)
                inputs = [wide, np.int32(ids[turned]), np.int32(len(WITH_NAN))]
                suite.case(f"{dtype}_nan_wide", inputs, const=[2])
        x = np.ones((3, 2), np.float32)
        suite.case("int64_ids", [x, np.int64([1, 0, 1]), np.int32(2)], const=[2])
        suite.case("int64_count", [x, np.int32([1, 0, 1]), np.int64(2)], const=[2])
        if kind in ("Max", "Min"):
            infinite = np.float32([np.inf, -np.inf, np.inf, -np.inf])
            suite.case("infinite", [infinite, np.int32([0, 1, 2, 2]), np.int32(3)], const=[2])
        else:
            suite.case("infinite", [np.float32([np.inf, 1, np.nan]), np.int32([0, 0, 1]), np.int32(2)], const=[2])
        suite.error("id_too_large", [x, np.int32([0, 2, 1]), np.int32(2)], const=[2])
        suite.error("negative_count", [x, np.int32([0, 0, 0]), np.int32(-1)], const=[2])
        suite.error("wrong_ids", [x, np.int32([0, 0]), np.int32(1)], const=[2])
        suite.error("count_vector", [x, np.int32([0, 0, 0]), np.int32([1])], const=[2])
        yield suite.finish()


def picked_segments(case):
    x, indices, ids = wide(case.inputs[0]), case.inputs[1], case.inputs[2]
    count = int(case.inputs[3]) if len(case.inputs) > 3 else int(ids[-1]) + 1 if len(ids) else 0
    return x[indices], ids, count


PICKED = {
    "rows": ((5, 3), [4, 0, 0, 2], [0, 0, 1, 1]),
    "gaps": ((5, 2), [4, 0, 1], [1, 1, 3]),
    "vector": ((6,), [5, 5, 5, 1], [0, 0, 0, 1]),
    "none": ((5, 3), [], []),
    "wide": ((4, 37), [3, 2, 1, 0, 3], [0, 0, 0, 1, 1]),
}


def sparse_cases(folder):
    """SparseSegmentSum, SparseSegmentMean, SparseSegmentSqrtN, and those with a number of segments."""
    for kind, dtypes in (("Sum", NUMBERS), ("Mean", FLOATS), ("SqrtN", FLOATS)):
        for counted in (False, True):
            suite = Suite(folder, "reduction", f"SparseSegment{kind}" + ("WithNumSegments" if counted else ""))
            for dtype in dtypes:
                for label in PICKED if dtype == "float" else FEW:
                    shape, indices, ids = PICKED[label]
                    x = data_for(kind, dtype, shape, label)
                    options = options_for(kind, dtype, picked_segments, len(ids))
                    inputs = [x, np.int32(indices), np.int32(ids)]
                    if counted:
                        options["const"] = [3]
                        inputs.append(np.int32((ids[-1] if ids else 0) + 2))
                    suite.case(f"{dtype}_{label}", inputs, **options)
            sparse_forms(suite, [np.int32(2)] if counted else [])
            yield suite.finish()


def sparse_forms(suite, count):
    """Types of indices and ids, and errors. `count` has the number of segments, or nothing."""
    x, const = np.ones((3, 2), np.float32), [3] if count else []
    options = {"const": const}
    suite.case("int64_indices", [x, np.int64([2, 0]), np.int32([0, 0]), *count], **options)
    suite.case("int64_ids", [x, np.int32([2, 0]), np.int64([0, 0]), *count], **options)
    if count:
        suite.case("int64_count", [x, np.int32([2, 0]), np.int32([0, 0]), np.int64(2)], **options)
        suite.error("count_too_small", [x, np.int32([0, 1]), np.int32([0, 2]), *count], const=const)
        suite.error("count_vector", [x, np.int32([0, 1]), np.int32([0, 1]), np.int32([2])], const=const)
        suite.error("negative_count", [x, np.int32([]), np.int32([]), np.int32(-1)], const=const)
    suite.error("index_too_large", [x, np.int32([0, 3]), np.int32([0, 0]), *count], const=const)
    suite.error("index_negative", [x, np.int32([0, -1]), np.int32([0, 0]), *count], const=const)
    suite.error("decreasing", [x, np.int32([0, 1]), np.int32([1, 0]), *count], const=const)
    suite.error("negative_id", [x, np.int32([0, 1]), np.int32([-1, 0]), *count], const=const)
    suite.error("lengths", [x, np.int32([0, 1]), np.int32([0]), *count], const=const)


GROUPS = [sorted_cases, unsorted_cases, sparse_cases]
