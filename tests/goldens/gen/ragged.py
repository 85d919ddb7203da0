"""Ragged tensors: values and splits of rows; and how often numbers occur in the rows of matrices of all kinds."""

import numpy as np

from .data import COMPLEX, FLOATS, INTS, NUMPY, array, normal, seeded, small, strings
from .suite import Suite, ulp

REAL = [*FLOATS, *INTS]
MOVED = ["bool", *REAL, *COMPLEX, "string"]
INDEX = {"int32": np.int32, "int64": np.int64}
COUNTS = ("int32", "int64", "float", "double")
SUM = {"tolerance": ulp(4), "reason": "sums of a few terms in any order"}


def values(name, dtype, *shape):
    rng = seeded("ragged", name, dtype, *shape)
    if dtype == "string":
        return strings(rng, shape)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in COMPLEX or dtype in FLOATS:
        return normal(rng, dtype, shape, 4.0)
    return small(rng, dtype, shape)


def splits(*lengths):
    return np.cumsum([0, *lengths])


def weighted(dtype, shape, name):
    """Weights of half numbers, so that their sums are exact in any order."""
    return array(np.round(seeded(name, dtype).standard_normal(shape) * 8) / 2, dtype)


def dense(folder):
    """DenseBincount."""
    suite = Suite(folder, "reduction", "DenseBincount")
    for dtype in COUNTS:
        for index, of in INDEX.items():
            for label, shape in {"vector": (17,), "matrix": (4, 9), "scalar": (), "none": (0,), "no_rows": (0, 5), "no_columns": (3, 0)}.items():
                if label not in ("vector", "matrix") and dtype != "float":
                    continue
                x, none = np.asarray(seeded("counted", label).integers(0, 8, shape), of), array([], dtype)
                for binary in (False, True):
                    suite.case(f"{dtype}_{index}_{label}_{binary}", [x, of(6), none], {"binary_output": binary}, const=[1])
                    suite.case(f"{dtype}_{index}_{label}_{binary}_weighted", [x, of(6), weighted(dtype, shape, label)], {"binary_output": binary}, const=[1])
    x, none = np.int32([1, 2, 0]), np.float32([])
    suite.case("no_bins", [x, np.int32(0), none], const=[1])
    long = np.int64(seeded("long").integers(0, 100, (3, 5000)))
    suite.case("long", [long, np.int64(90), np.int64([])], const=[1])
    suite.error("negative", [np.int32([1, -1]), np.int32(3), none], const=[1])
    suite.error("negative_in_a_matrix", [np.int32([[1, -1]]), np.int32(3), none], const=[1])
    suite.error("size", [x, np.int32(-1), none], const=[1])
    suite.error("size_of_one", [x, np.int32([4]), none], const=[1])
    suite.error("sizes", [x, np.int32([3, 4]), none], const=[1])
    suite.error("rank", [np.zeros((2, 2, 2), np.int32), np.int32(3), none], const=[1])
    suite.error("weights", [x, np.int32(3), np.float32([1, 2])], const=[1])
    yield suite.finish()


def of_rows(folder):
    """SparseBincount and RaggedBincount."""
    suite = Suite(folder, "reduction", "SparseBincount")
    at = np.int64([[0, 1], [0, 3], [2, 0], [2, 1], [2, 2], [3, 3]])
    shape = np.int64([4, 5])
    for dtype in COUNTS:
        for index, of in INDEX.items():
            x, none = of([1, 1, 2, 5, 2, 7]), array([], dtype)
            for binary in (False, True):
                for label, weights in {"plain": none, "weighted": weighted(dtype, 6, "sparse")}.items():
                    attrs = {"binary_output": binary}
                    suite.case(f"{dtype}_{index}_{binary}_{label}", [at, x, shape, of(6), weights], attrs, const=[2, 3])
                    suite.case(f"{dtype}_{index}_{binary}_{label}_vector", [at[:, 1:], x, shape[1:], of(6), weights], attrs, const=[2, 3])
    x, none = np.int32([1, 1, 2, 5, 2, 7]), np.float32([])
    suite.case("none", [at[:0], x[:0], shape, np.int32(3), none], const=[2, 3])
    suite.error("size", [at, x, shape, np.int32(-3), none], const=[2, 3])
    suite.error("outside", [at + [4, 0], x, shape, np.int32(3), none], const=[2, 3])
    yield suite.finish()
    suite = Suite(folder, "reduction", "RaggedBincount")
    for dtype in COUNTS:
        for index, of in INDEX.items():
            x, none = of([1, 1, 2, 5, 2, 7]), array([], dtype)
            for binary in (False, True):
                for label, weights in {"plain": none, "weighted": weighted(dtype, 6, "ragged")}.items():
                    suite.case(f"{dtype}_{index}_{binary}_{label}", [np.int64([0, 2, 2, 5, 6]), x, of(6), weights], {"binary_output": binary}, const=[2])
    suite.case("none", [np.int64([0, 0, 0]), x[:0], np.int64(3), np.float32([])], const=[2])
    for label, wrong in {"start": [1, 2, 6], "end": [0, 2, 5], "beyond": [0, 2, 7]}.items():
        suite.error(label, [np.int64(wrong), x, np.int64(3), np.float32([])], const=[2])
    suite.error("negative", [np.int64([0, 6]), -x, np.int64(3), np.float32([])], const=[2])
    suite.error("size", [np.int64([0, 6]), x, np.int64(-3), np.float32([])], const=[2])
    yield suite.finish()


OUTER, INNER = splits(2, 0, 3), splits(2, 1, 0, 3, 1)
ROWIDS = np.repeat(np.arange(5), np.diff(INNER))


def whole(folder):
    """RaggedTensorToTensor."""
    suite = Suite(folder, "ragged", "RaggedTensorToTensor")

    def attrs(*kinds):
        return {"row_partition_types": list(kinds), "num_row_partition_tensors": len(kinds)}

    one, two = attrs("ROW_SPLITS"), attrs("ROW_SPLITS", "ROW_SPLITS")
    ids = attrs("FIRST_DIM_SIZE", "VALUE_ROWIDS")
    for dtype in MOVED:
        x, other = values("whole", dtype, 7), values("default", dtype)
        suite.case(dtype, [np.int64(-1), x, other, np.int64(INNER)], one, const=[0])
        suite.case(f"{dtype}_pairs", [np.int64([-1, -1, 2]), values("whole", dtype, 7, 2), other, np.int64(INNER)], one, const=[0])
    x, zero = values("whole", "float", 7), np.float32(0)
    for index, of in INDEX.items():
        for label, shape in {"smaller": [3, 2], "larger": [7, 6], "open": [-1, 2], "scalar": -1, "no_rows": [0, 4], "no_columns": [5, 0]}.items():
            suite.case(f"{label}_{index}", [of(shape), x, np.float32(9), of(INNER)], one, const=[0])
            suite.case(f"{label}_{index}_ids", [of(shape), x, zero, of(5), of(ROWIDS)], ids, const=[0])
        suite.case(f"nested_{index}", [np.int32(-1), x, np.float32(2), of(OUTER), of(INNER)], two, const=[0])
        suite.case(f"nested_{index}_cut", [np.int32([3, 2, 2]), x, np.float32(2), of(OUTER), of(INNER)], two, const=[0])
        mixed = attrs("FIRST_DIM_SIZE", "VALUE_ROWIDS", "VALUE_ROWIDS")
        suite.case(f"nested_{index}_ids", [np.int32(-1), x, np.float32(2), of(3), of([0, 0, 2, 2, 2]), of(ROWIDS)], mixed, const=[0])
        mixed = attrs("FIRST_DIM_SIZE", "ROW_SPLITS", "VALUE_ROWIDS")
        suite.error(f"nested_{index}_mixed", [np.int32(-1), x, np.float32(2), of(3), of(OUTER), of(ROWIDS)], mixed, const=[0])
        mixed = attrs("FIRST_DIM_SIZE", "VALUE_ROWIDS", "ROW_SPLITS")
        suite.case(f"nested_{index}_splits", [np.int32(-1), x, np.float32(2), of(3), of([0, 0, 2, 2, 2]), of(INNER)], mixed, const=[0])
    wide = values("whole", "float", 7, 2, 3)
    for label, shape in {"scalar": (), "one": (1,), "column": (2, 1), "all": (2, 3)}.items():
        suite.case(f"default_{label}", [np.int64(-1), wide, values("default", "float", *shape), np.int64(INNER)], one, const=[0])
    suite.case("default_texts", [np.int64(-1), values("whole", "string", 7, 3), values("default", "string", 3), np.int64(INNER)], one, const=[0])
    suite.case("empty", [np.int64(-1), x[:0], np.float32(2), np.int64([0])], one, const=[0])
    suite.case("empty_rows", [np.int64([-1, 2]), x[:0], np.float32(2), np.int64([0, 0, 0])], one, const=[0])
    suite.case("empty_values", [np.int64(-1), np.zeros((7, 0), np.float32), np.float32(2), np.int64(INNER)], one, const=[0])
    suite.error("shape_scalar", [np.int64(3), x, zero, np.int64(INNER)], one, const=[0])
    suite.error("shape_rank", [np.int64([3, 2, 1]), x, zero, np.int64(INNER)], one, const=[0])
    suite.error("shape_inner", [np.int64([3, 2, 4]), values("whole", "float", 7, 2), zero, np.int64(INNER)], one, const=[0])
    suite.error("default", [np.int64(-1), x, np.float32([0, 1]), np.int64(INNER)], one, const=[0])
    suite.error("default_sizes", [np.int64(-1), wide, np.float32([0, 1]), np.int64(INNER)], one, const=[0])
    suite.error("kind", [np.int64(-1), x, zero, np.int64(INNER)], attrs("ROW_LIMITS"), const=[0])
    suite.error("ids_first", [np.int64(-1), x, zero, np.int64(ROWIDS)], attrs("VALUE_ROWIDS"), const=[0])
    suite.error("ids_beyond", [np.int64(-1), x, zero, np.int64(4), np.int64(ROWIDS)], ids, const=[0])
    yield suite.finish()


def sparse(folder):
    """RaggedTensorToSparse."""
    suite = Suite(folder, "ragged", "RaggedTensorToSparse")
    for dtype in MOVED:
        suite.case(dtype, [np.int64(INNER), values("sparse", dtype, 7)], {"RAGGED_RANK": 1})
        suite.case(f"{dtype}_nested", [np.int64(OUTER), np.int64(INNER), values("sparse", dtype, 7, 2)], {"RAGGED_RANK": 2})
    x = values("sparse", "float", 7, 2, 3)
    suite.case("int32_splits", [np.int32(OUTER), np.int32(INNER), x], {"RAGGED_RANK": 2})
    suite.case("none", [np.int64([0]), x[:0]], {"RAGGED_RANK": 1})
    suite.case("empty_rows", [np.int64([0, 0, 0]), x[:0]], {"RAGGED_RANK": 1})
    suite.case("empty_values", [np.int64(INNER), np.zeros((7, 0), np.float32)], {"RAGGED_RANK": 1})
    suite.error("start", [np.int64([1, 7]), x], {"RAGGED_RANK": 1})
    suite.error("end", [np.int64([0, 6]), x], {"RAGGED_RANK": 1})
    suite.error("descending", [np.int64([0, 5, 4, 7]), x], {"RAGGED_RANK": 1})
    suite.error("outer_end", [np.int64([0, 4]), np.int64(INNER), x], {"RAGGED_RANK": 2})
    suite.error("empty_splits", [np.int64([]), x], {"RAGGED_RANK": 1})
    suite.error("scalar", [np.int64([0, 1]), np.float32(1)], {"RAGGED_RANK": 1})
    yield suite.finish()


def ranges(folder):
    """RaggedRange."""
    suite = Suite(folder, "ragged", "RaggedRange")
    for dtype in ("int32", "int64", "float", "double"):
        for index in INDEX:
            attrs, of = {"Tsplits": index}, NUMPY[dtype].type
            suite.case(f"{dtype}_{index}", [array([0, 5, 8, 3], dtype), array([3, 5, 2, 9], dtype), array([1, 1, -2, 4], dtype)], attrs)
            suite.case(f"{dtype}_{index}_scalars", [of(2), of(11), of(3)], attrs)
            suite.case(f"{dtype}_{index}_mixed", [of(2), array([4, 0, 9], dtype), of(1)], attrs)
            suite.case(f"{dtype}_{index}_none", [of(0), array([], dtype), of(1)], attrs)
    suite.case("fractions", [np.float32([0, 1, -1]), np.float32([1, 0, 1]), np.float32([0.1, -0.3, 0.7])])
    suite.case("double_fractions", [np.float64([0, 1, -1]), np.float64([1, 0, 1]), np.float64([0.1, -0.3, 0.7])])
    suite.error("zero", [np.int32([0, 1]), np.int32([3, 4]), np.int32([1, 0])])
    suite.error("lengths", [np.int32([0, 1]), np.int32([3, 4, 5]), np.int32(1)])
    suite.error("matrix", [np.int32([[0, 1]]), np.int32(3), np.int32(1)])
    suite.error("too_many", [np.int64(0), np.int64(2**40), np.int64(1)], {"Tsplits": "int32"})
    yield suite.finish()


def picked(folder):
    """RaggedGather."""
    suite = Suite(folder, "ragged", "RaggedGather")

    def attrs(params, outputs):
        return {"PARAMS_RAGGED_RANK": params, "OUTPUT_RAGGED_RANK": outputs}

    for dtype in MOVED:
        suite.case(dtype, [np.int64(INNER), values("gather", dtype, 7), np.int64([4, 0, 0, 2, 3])], attrs(1, 1), const=[])
    x, y = values("gather", "float", 7), values("gather", "float", 7, 2)
    for index, of in INDEX.items():
        for label, rows in {"vector": [2, 0, 2], "scalar": 2, "matrix": [[2, 0], [1, 1], [0, 2]], "none": np.zeros(0), "no_columns": np.zeros((2, 0))}.items():
            rows = of(rows)
            suite.case(f"{index}_{label}", [np.int64(INNER), y, rows], attrs(1, rows.ndim))
            suite.case(f"{index}_{label}_nested", [of(OUTER), of(INNER), x, rows], attrs(2, 1 + rows.ndim))
    suite.case("cube", [np.int64(INNER), y, np.int64([[[0, 4], [3, 3]]])], attrs(1, 3))
    suite.case("texts_nested", [np.int64(OUTER), np.int64(INNER), values("gather", "string", 7, 2), np.int64([2, 0])], attrs(2, 2))
    for label, rows in {"beyond": [0, 5], "negative": [0, -1]}.items():
        suite.error(label, [np.int64(INNER), x, np.int64(rows)], attrs(1, 1))
    suite.error("descending", [np.int64([0, 5, 4, 7]), x, np.int64([1])], attrs(1, 1))
    suite.error("end", [np.int64([0, 5, 9]), x, np.int64([1])], attrs(1, 1))
    suite.error("scalar", [np.int64([0, 1]), np.float32(1), np.int64([0])], attrs(1, 1))
    yield suite.finish()


def filled(folder):
    """RaggedFillEmptyRows and its gradient."""
    suite = Suite(folder, "ragged", "RaggedFillEmptyRows")
    ids = np.int64([0, 0, 2, 3, 3])
    for dtype in MOVED:
        suite.case(dtype, [ids, values("fill", dtype, 5), np.int64(6), values("default", dtype)], const=[2])
    x, other = values("fill", "float", 5), np.float32(9)
    suite.case("none", [ids[:0], x[:0], np.int64(3), other], const=[2])
    suite.case("any_order", [np.int64([3, 0, 2, 0, 3]), x, np.int64(5), other], const=[2])
    suite.error("outside", [ids, x, np.int64(3), other], const=[2])
    suite.error("negative", [ids - 1, x, np.int64(4), other], const=[2])
    suite.error("few_values", [ids, x[1:], np.int64(6), other], const=[2])
    suite.error("defaults", [ids, x, np.int64(6), np.float32([1])], const=[2])
    yield suite.finish()
    suite = Suite(folder, "ragged", "RaggedFillEmptyRowsGrad")
    for dtype in [*REAL, *COMPLEX]:
        grads = small(seeded("fill_grad", dtype), "int32", (7,)).astype(NUMPY[dtype])
        suite.case(dtype, [np.int64([0, 2, 3, 6]), grads])
    suite.case("none", [np.int64([]), np.float32([1, 2, 4])])
    suite.error("outside", [np.int64([0, 7]), np.ones(7, np.float32)])
    suite.error("negative", [np.int64([-1]), np.ones(7, np.float32)])
    yield suite.finish()


def crosses(folder):
    """RaggedCross."""
    suite = Suite(folder, "ragged", "RaggedCross")
    text = {"string": np.array([b"a", b"bb", b"", b"c", b"d"], object), "int64": np.int64([3, -7, 2**40, 0, 5])}
    at = np.int64([[0, 0], [0, 1], [2, 0]])
    whole = {"string": np.array([[b"p"], [b"q"], [b"r"]], object), "int64": np.int64([[5, 6], [7, -8], [9, 2**33]])}
    rows = {"R": lambda dtype, index: (text[dtype], INDEX[index](splits(2, 1, 2))), "S": lambda dtype, _: text[dtype][:3], "D": lambda dtype, _: whole[dtype]}

    def add(name, columns, hashed=True, buckets=0, out="int64", refused=False, order=None, **given):
        """Columns are pairs of a kind and a type."""
        order = "".join(kind for kind, _, _ in columns) if order is None else order
        # Other splits than those of the output end TensorFlow's process.
        columns = [(kind, dtype, out) for kind, dtype, _ in columns]
        made = {kind: [rows[kind](dtype, index) for own, dtype, index in columns if own == kind] for kind in "RSD"}
        types = {kind: [dtype for own, dtype, _ in columns if own == kind] for kind in "RSD"}
        count = len(made["S"])
        inputs = [*[values for values, _ in made["R"]], *[ends for _, ends in made["R"]], *[at] * count, *made["S"],
                  *[np.int64([3, 2])] * count, *made["D"]]
        attrs = {"Nsparse": count, "input_order": order, "hashed_output": hashed, "num_buckets": buckets, "hash_key": 956888297470,
                 "ragged_values_types": types["R"], "ragged_splits_types": [index for own, _, index in columns if own == "R"],
                 "sparse_values_types": types["S"], "dense_types": types["D"], "out_values_type": "int64" if hashed else "string",
                 "out_row_splits_type": out} | given
        (suite.error if refused else suite.case)(name, inputs, attrs)

    forms = {
        "ragged": [("R", "string", "int64")],
        "two": [("R", "string", "int64"), ("R", "int64", "int32")],
        "mixed": [("D", "int64", ""), ("R", "int64", "int64"), ("S", "string", ""), ("R", "string", "int32"), ("D", "string", "")],
        "sparse": [("S", "int64", ""), ("S", "string", "")],
        "whole": [("D", "string", ""), ("D", "int64", "")],
    }
    for label, columns in forms.items():
        for out in INDEX:
            for buckets in (0, 17):
                add(f"{label}_hashed_{buckets}_{out}", columns, buckets=buckets, out=out)
            add(f"{label}_joined_{out}", columns, hashed=False, out=out)
    add("order", forms["two"], refused=True, order="RD")
    add("short_order", forms["two"], refused=True, order="R")
    add("unknown", forms["ragged"], refused=True, order="X")
    yield suite.finish()


GROUPS = [crosses, dense, of_rows, whole, sparse, ranges, picked, filled]
