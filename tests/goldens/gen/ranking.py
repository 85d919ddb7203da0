"""Scans along an axis, histograms, and the order of the elements of rows."""

import numpy as np

from .data import COMPLEX, FLOATS, INTS, NUMBERS, array, normal, seeded, small, values
from .reduction import wide
from .suite import Suite, ulp

SCANS = {
    "vector": ((7,), 0),
    "rows": ((3, 5), 1),
    "columns": ((3, 5), 0),
    "middle": ((2, 3, 4), 1),
    "negative": ((2, 3, 4), -1),
    "empty": ((0, 3), 0),
    "empty_rows": ((3, 0), 0),
    "long": ((1009,), 0),
}
FORMS = {
    "": {},
    "_exclusive": {"exclusive": True},
    "_reverse": {"reverse": True},
    "_both": {"exclusive": True, "reverse": True},
}


def scan_reference(op):
    """Exact scan, with the sum of the absolute terms so far."""

    def reference(case):
        axis = int(case.inputs[1])
        x = np.moveaxis(wide(case.inputs[0]), axis, 0)
        if case.attrs.get("reverse"):
            x = x[::-1]
        terms = np.abs(x)
        if op == "Cumsum":
            result, terms = np.cumsum(x, 0), np.cumsum(terms, 0)
        else:
            result, terms = np.cumprod(x, 0), np.cumprod(terms, 0)
        if case.attrs.get("exclusive"):
            first = np.full((1, *x.shape[1:]), op == "Cumprod", x.dtype)
            result = np.concatenate([first, result])[: x.shape[0]]
            terms = np.concatenate([np.abs(first), terms])[: x.shape[0]]
        if case.attrs.get("reverse"):
            result, terms = result[::-1], terms[::-1]
        return [(np.moveaxis(result, 0, axis), np.moveaxis(terms, 0, axis))]

    return reference


def scans(folder):
    """Cumsum, Cumprod, CumulativeLogsumexp."""
    for op in ("Cumsum", "Cumprod", "CumulativeLogsumexp"):
        suite = Suite(folder, "reduction", op)
        for dtype in FLOATS if op == "CumulativeLogsumexp" else NUMBERS + COMPLEX:
            for label in SCANS if dtype in ("float", "int32") else ("rows", "middle"):
                scan_case(suite, op, dtype, label)
            if op == "CumulativeLogsumexp":
                infinite_scans(suite, dtype)
        x = np.ones((2, 3), np.float32)
        suite.case("int64_axis", [x, np.int64(1)], const=[1], tolerance=ulp(4))
        suite.case("infinite", [np.float32([1, np.inf, 2, -1]), np.int32(0)], const=[1], tolerance=ulp(4))
        suite.error("axis_high", [x, np.int32(2)], const=[1])
        suite.error("axis_low", [x, np.int32(-3)], const=[1])
        suite.error("axis_vector", [x, np.int32([0, 1])], const=[1])
        yield suite.finish()


def infinite_scans(suite, dtype):
    """Every sequence of four of the infinities and a number."""
    x = np.stack(np.meshgrid(*[[np.inf, -np.inf, 1.5]] * 4, indexing="ij")).reshape(4, -1)
    for form, attrs in FORMS.items():
        options = {"tolerance": ulp(8), "reason": "TensorFlow rounds at every element"}
        suite.case(f"{dtype}_infinite{form}", [array(x, dtype), np.int32(0)], attrs, const=[1], **options)


def scan_case(suite, op, dtype, label):
    shape, axis = SCANS[label]
    x = values(seeded(op, dtype, label), dtype, shape)
    if op == "Cumprod" and dtype in FLOATS + COMPLEX:
        x = array(wide(x) * (0.3 if label != "long" else 0.02) + 1, dtype)
    for form, attrs in FORMS.items() if dtype in ("float", "int32", "half") else [("", {})]:
        options = {"tolerance": ulp(8), "reason": "the logarithm of a sum of exponentials, added one by one"}
        if op != "CumulativeLogsumexp":
            exact = {"reference": scan_reference(op), "terms": shape[axis], "stepwise": True}
            options = {} if dtype in INTS else exact
        elif dtype in ("half", "bfloat16"):
            options = {"tolerance": ulp(8), "reason": "TensorFlow rounds at every element"}
        else:
            # The logarithm takes relative errors of the sum for absolute ones of the result, which may be near zero.
            error = (64 if label == "long" else 8) * float(np.finfo(x.dtype).eps)
            reason = "TensorFlow rounds at every element" if label == "long" else options["reason"]
            options = {"tolerance": {"absolute": error, "relative": error}, "reason": reason}
        suite.case(f"{dtype}_{label}{form}", [x, np.int32(axis)], attrs, const=[1], **options)


def bincount(folder):
    """Bincount."""
    suite = Suite(folder, "reduction", "Bincount")
    arr = np.asarray(seeded("Bincount").integers(0, 7, (3, 5)), np.int32)
    for dtype in ("int32", "int64", "float", "double"):
        none = array(np.zeros(0), dtype)
        suite.case(f"{dtype}_unweighted", [arr, np.int32(7), none], const=[1])
        suite.case(f"{dtype}_cut", [arr, np.int32(4), none], const=[1])
        weights = small(seeded("Bincount", dtype), dtype, (3, 5))
        suite.case(f"{dtype}_weighted", [arr, np.int32(9), weights], const=[1])
        suite.case(f"{dtype}_nothing", [np.zeros(0, np.int32), np.int32(3), none], const=[1])
        suite.case(f"{dtype}_no_bins", [arr, np.int32(0), none], const=[1])
    none = np.zeros(0, np.float32)
    suite.error("negative", [np.int32([1, -1]), np.int32(3), none], const=[1])
    suite.error("size_negative", [arr, np.int32(-1), none], const=[1])
    suite.error("weights_shape", [arr, np.int32(3), np.ones(4, np.float32)], const=[1])
    yield suite.finish()


def histogram(folder):
    """HistogramFixedWidth."""
    suite = Suite(folder, "reduction", "HistogramFixedWidth")
    for dtype in ("int32", "int64", "float", "double"):
        rng = seeded("Histogram", dtype)
        x = small(rng, dtype, (5, 7), -20, 21) if dtype in INTS else normal(rng, dtype, (5, 7), 3.0)
        bounds = array([-4, 4], dtype)
        for bins in (1, 4, 9):
            suite.case(f"{dtype}_{bins}", [x, bounds, np.int32(bins)], const=[2])
        suite.case(f"{dtype}_int64", [x, bounds, np.int32(5)], {"dtype": "int64"}, const=[2])
        suite.case(f"{dtype}_nothing", [x[:0], bounds, np.int32(3)], const=[2])
    x = np.ones(3, np.float32)
    suite.error("no_bins", [x, np.float32([0, 1]), np.int32(0)], const=[2])
    suite.error("descending", [x, np.float32([1, 0]), np.int32(2)], const=[2])
    suite.error("empty_range", [x, np.float32([1, 1]), np.int32(2)], const=[2])
    suite.error("range_length", [x, np.float32([1, 2, 3]), np.int32(2)], const=[2])
    yield suite.finish()


def as_second_version(case):
    """TopK was removed in version 7 of graphs."""
    attrs = {name: value for name, value in case.attrs.items() if name != "k"}
    return [*case.inputs, np.int32(case.attrs["k"])], attrs, lambda results: results


def top_k(folder):
    """TopK, TopKV2."""
    for op in ("TopK", "TopKV2"):
        suite = Suite(folder, "reduction", op, stand_in="TopKV2")

        def case(name, x, k, add=suite.case, op=op, **attrs):
            if op == "TopK":
                add(name, [x], {"k": k} | attrs, run_as=as_second_version)
            else:
                add(name, [x, np.int32(k)], attrs, const=[1])

        for dtype in NUMBERS:
            x = values(seeded(op, dtype), dtype, (3, 11))
            for k in (0, 1, 4, 11) if dtype in ("float", "int32") else (3,):
                case(f"{dtype}_{k}", x, k)
            case(f"{dtype}_ties", small(seeded(op, dtype, "ties"), dtype, (2, 13), 0, 3), 6)
        x = values(seeded(op, "shapes"), "float", (2, 3, 5))
        case("rank3", x, 2)
        case("vector", x[0, 0], 2)
        case("no_rows", x[:0], 2)
        case("long", values(seeded(op, "long"), "float", (2, 1009)), 17)
        case("infinite", np.float32([1, np.inf, -np.inf, 2]), 4)
        case("zeros", np.float32([0.0, -0.0, 0.0, -0.0]), 3)
        if op == "TopKV2":
            for index in ("int16", "int64"):
                case(f"index_{index}", x, 2, index_type=index)
                suite.case(f"k_{index}", [x, np.asarray(2, index)], const=[1])
            suite.error("k_vector", [x, np.int32([1])], const=[1])
            suite.error("k_large", [x, np.int32(6)], const=[1])
            suite.error("k_negative", [x, np.int32(-1)], const=[1])
            suite.error("scalar", [np.float32(1), np.int32(0)], const=[1])
        yield suite.finish()


def in_top_k(folder):
    """InTopK, InTopKV2."""
    for op in ("InTopK", "InTopKV2"):
        suite = Suite(folder, "reduction", op)
        x = small(seeded(op), "float", (6, 5), 0, 4)
        targets = np.int32([0, 4, 2, 5, -1, 3])
        odd = np.float32([[1, np.inf, 0], [np.nan, 1, 2], [3, 2, 1], [-np.inf, 1, 2]])
        for index in ("int32", "int64"):
            for name, predictions, wanted in (("plain", x, targets), ("infinite", odd, targets[2:6] % 3)):
                for k in (0, 1, 2, 5):
                    wanted = wanted.astype(index)
                    extra = ([], {"k": k}) if op == "InTopK" else ([np.asarray(k, index)], {})
                    suite.case(f"{index}_{name}_{k}", [predictions, wanted, *extra[0]], extra[1])
        extra = ([], {"k": 1}) if op == "InTopK" else ([np.int32(1)], {})
        suite.error("targets", [x, targets[:3], *extra[0]], extra[1])
        suite.error("rank", [x[0], targets, *extra[0]], extra[1])
        yield suite.finish()


def nth_element(folder):
    """NthElement."""
    suite = Suite(folder, "reduction", "NthElement")
    for dtype in NUMBERS:
        x = values(seeded("NthElement", dtype), dtype, (4, 9))
        for n in (0, 4, 8) if dtype in ("float", "int32") else (3,):
            suite.case(f"{dtype}_{n}", [x, np.int32(n)], const=[1])
            suite.case(f"{dtype}_{n}_reverse", [x, np.int32(n)], {"reverse": True}, const=[1])
    x = values(seeded("NthElement", "shapes"), "float", (2, 3, 5))
    suite.case("rank3", [x, np.int32(1)], const=[1])
    suite.case("vector", [x[0, 0], np.int32(1)], const=[1])
    suite.case("no_rows", [x[:0], np.int32(1)], const=[1])
    suite.error("n_large", [x, np.int32(5)], const=[1])
    suite.error("n_negative", [x, np.int32(-1)], const=[1])
    suite.error("scalar", [np.float32(1), np.int32(0)], const=[1])
    yield suite.finish()


def neighbours(folder):
    """NearestNeighbors."""
    suite = Suite(folder, "reduction", "NearestNeighbors")
    rng = seeded("neighbours")
    options = {"tolerance": {"absolute": 2e-5, "relative": 2e-6}, "reason": "TensorFlow subtracts products from sums of squares"}
    for points, centers, width in ((5, 7, 3), (1, 1, 1), (33, 20, 9)):
        x, y = (array(rng.standard_normal(shape), "float") for shape in ((points, width), (centers, width)))
        for k in (0, 1, 3, 99):
            suite.case(f"{points}_{centers}_{k}", [x, y, np.int64(k)], const=[2], **options)
    equal = np.float32([[0, 1], [1, 0], [0, 1], [0, -1]])
    suite.case("equal", [np.float32([[0, 0], [0, 2]]), equal, np.int64(3)], const=[2])
    suite.case("no_centers", [x, y[:0], np.int64(2)], const=[2])
    suite.error("no_points", [x[:0], y, np.int64(2)], const=[2])
    suite.error("widths", [x, y[:, 1:], np.int64(2)], const=[2])
    suite.error("vector", [x[0], y, np.int64(2)], const=[2])
    suite.error("numbers", [x, y, np.int64([2])], const=[2])
    yield suite.finish()


GROUPS = [neighbours, scans, bincount, histogram, top_k, in_top_k, nth_element]
