"""Sets, distances, counts and extremes of sparse tensors."""

import numpy as np

from .data import COMPLEX, FLOATS, array, seeded, small
from .sparse import MOVED, REAL, numbers, places, title, values
from .suite import Suite
from .text import words

TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "string"]
OPERATIONS = ("a-b", "b-a", "intersection", "union")


def few(name, dtype, shape):
    """Values of which many are equal."""
    rng = seeded("few", name, dtype, *np.atleast_1d(shape))
    if dtype == "string":
        return words("", "a", "b", "ab", b"\xff")[rng.integers(0, 5, shape)]
    return small(rng, dtype, shape)


def sizes(folder):
    """SetSize."""
    suite = Suite(folder, "sparse", "SetSize")
    for dtype in TYPES:
        for shape in ((3, 4), (2, 3, 5)):
            at = places("sets", shape, 0.7)
            suite.case(title(dtype, shape), [at, few("size", dtype, len(at)), numbers(*shape)], const=[2])
    at = places("sets", (3, 4), 0.7)
    x = few("size", "int32", len(at))
    suite.case("unchecked", [at, x, numbers(3, 4)], {"validate_indices": False})
    suite.case("none", [at[:0], x[:0], numbers(3, 4)])
    suite.error("order", [at[::-1], x, numbers(3, 4)])
    suite.error("twice", [np.int64([[0, 1], [0, 1]]), x[:2], numbers(3, 4)])
    suite.error("outside", [np.int64([[3, 0]]), x[:1], numbers(3, 4)])
    suite.error("vector", [at[:, :1], x, numbers(3)])
    yield suite.finish()


def operations(folder):
    """DenseToDenseSetOperation, DenseToSparseSetOperation and SparseToSparseSetOperation."""
    for op, forms in (("DenseToDenseSetOperation", "dd"), ("DenseToSparseSetOperation", "ds"), ("SparseToSparseSetOperation", "ss")):
        suite = Suite(folder, "sparse", op)

        def operand(form, name, dtype, shape):
            if form == "d":
                return [few(name, dtype, shape)]
            at = places(name, shape, 0.6)
            return [at, few(name, dtype, len(at)), numbers(*shape)]

        for dtype in TYPES:
            for shape in ((3, 4), (2, 2, 3)) if dtype in ("int32", "string") else ((3, 4),):
                for operation in OPERATIONS:
                    other = (*shape[:-1], shape[-1] + 2)
                    inputs = operand(forms[0], "a", dtype, shape) + operand(forms[1], "b", dtype, other)
                    suite.case(title(dtype, shape, operation), inputs, {"set_operation": operation})
        one = operand(forms[0], "a", "int64", (3, 4))
        suite.case("upper_case", one + operand(forms[1], "b", "int64", (3, 4)), {"set_operation": "Union"})
        suite.error("operation", one + operand(forms[1], "b", "int64", (3, 4)), {"set_operation": "xor"})
        suite.error("rows", one + operand(forms[1], "b", "int64", (4, 4)), {"set_operation": "union"})
        suite.error("ranks", one + operand(forms[1], "b", "int64", (3, 1, 4)), {"set_operation": "union"})
        yield suite.finish()


def distances(folder):
    """EditDistance."""
    suite = Suite(folder, "sparse", "EditDistance")
    for dtype in MOVED:
        for shape in ((4, 5), (2, 3, 6)) if dtype in ("int64", "string") else ((4, 5),):
            for normalize in (False, True):
                a, b = places("hypothesis", shape, 0.5), places("truth", (*shape[:-1], shape[-1] + 2), 0.5)
                make = values if dtype in ("bool", *FLOATS, *COMPLEX) else few
                x, y = make("hypothesis", dtype, len(a)), make("truth", dtype, len(b))
                both = min(len(x), len(y))
                y[: both // 2] = x[: both // 2]
                shapes = numbers(*shape), numbers(*shape[:-1], shape[-1] + 2)
                suite.case(title(dtype, shape, normalize), [a, x, shapes[0], b, y, shapes[1]], {"normalize": normalize}, const=[2, 5])
    at, x = np.int64([[0, 0], [2, 1]]), np.int64([1, 2])
    suite.case("more_rows", [at, x, numbers(3, 2), at[:1], x[:1], numbers(1, 9)], const=[2, 5])
    suite.case("special", [at, np.float32([0.0, np.nan]), numbers(3, 2), at, np.float32([-0.0, np.nan]), numbers(3, 2)], const=[2, 5])
    suite.case("none", [at[:0], x[:0], numbers(3, 2), at[:0], x[:0], numbers(3, 2)], const=[2, 5])
    suite.error("ranks", [at, x, numbers(3, 2), np.int64([[0, 0, 0]]), x[:1], numbers(3, 1, 2)])
    suite.error("vector", [at[:, :1], x, numbers(3), at[:, :1], x, numbers(3)])
    suite.error("few_values", [at, x[:1], numbers(3, 2), at, x, numbers(3, 2)])
    yield suite.finish()


def counted(name, dtype, shape):
    return seeded("counted", name, dtype, *np.atleast_1d(shape)).integers(0, 7, shape).astype(dtype)


FORMS = {
    "plain": {"binary_output": False},
    "binary": {"binary_output": True},
    "least": {"binary_output": False, "minlength": 12},
    "most": {"binary_output": False, "maxlength": 4},
    "both": {"binary_output": False, "minlength": 3, "maxlength": 5},
    "most_of_none": {"binary_output": False, "maxlength": 0},
}


def counts(folder):
    """DenseCountSparseOutput, SparseCountSparseOutput and RaggedCountSparseOutput."""
    at, splits = places("counts", (4, 6), 0.6), np.int64([0, 3, 3, 7])
    given = {
        "DenseCountSparseOutput": {"matrix": lambda dtype: ([], counted("dense", dtype, (3, 5)), []), "vector": lambda dtype: ([], counted("dense", dtype, 7), [])},
        "SparseCountSparseOutput": {
            "matrix": lambda dtype: ([at], counted("sparse", dtype, len(at)), [numbers(4, 6)]),
            "vector": lambda dtype: ([np.int64([[1], [4], [5]])], counted("sparse", dtype, 3), [numbers(9)]),
        },
        "RaggedCountSparseOutput": {"rows": lambda dtype: ([splits], counted("ragged", dtype, 7), [])},
    }
    for op, forms in given.items():
        suite = Suite(folder, "sparse", op)
        for dtype in ("int32", "int64"):
            for out in ("int32", "int64", "float", "double"):
                for label, make in forms.items():
                    before, x, after = make(dtype)
                    none = array([], out)
                    for form, attrs in FORMS.items() if (dtype, out) == ("int64", "float") else [("plain", FORMS["plain"])]:
                        suite.case(title(dtype, out, label, form), [*before, x, *after, none], attrs | {"output_type": out})
                    weights = small(seeded("weights", out), out, x.shape)
                    suite.case(title(dtype, out, label, "weighted"), [*before, x, *after, weights], FORMS["plain"] | {"output_type": out})
        before, x, after = next(iter(forms.values()))("int64")
        attrs = FORMS["plain"] | {"output_type": "float"}
        suite.case("nothing_counted", [*before, np.full_like(x, 9), *after, np.float32([])], attrs | {"maxlength": 3})
        suite.error("negative", [*before, np.full_like(x, -1), *after, np.float32([])], attrs)
        suite.error("weights", [*before, x, *after, np.ones(2, np.float32)], attrs)
        if op == "DenseCountSparseOutput":
            suite.error("scalar", [np.int64(1), np.float32([])], attrs)
            suite.error("rank", [np.ones((1, 2, 3), np.int64), np.float32([])], attrs)
        elif op == "SparseCountSparseOutput":
            suite.error("outside", [np.int64([[4, 0]]), x[:1], numbers(4, 6), np.float32([])], attrs)
            suite.error("few_values", [at, x[1:], numbers(4, 6), np.float32([])], attrs)
        else:
            suite.error("first", [np.int64([1, 7]), x, np.float32([])], attrs)
            suite.error("last", [np.int64([0, 6]), x, np.float32([])], attrs)
            suite.error("few_splits", [np.int64([0]), x, np.float32([])], attrs)
        yield suite.finish()


def extremes(folder):
    """SparseSparseMaximum and SparseSparseMinimum."""
    for op in ("SparseSparseMaximum", "SparseSparseMinimum"):
        suite = Suite(folder, "sparse", op)
        for dtype in REAL:
            for shape in ((3, 4), (5,), (2, 3, 4)) if dtype == "float" else ((3, 4),):
                a, b = places("a", shape, 0.5), places("b", shape, 0.5)
                inputs = [a, values("a", dtype, len(a)), numbers(*shape), b, values("b", dtype, len(b)), numbers(*shape)]
                suite.case(title(dtype, shape), inputs)
        a, x = places("a", (3, 4)), values("a", "float", len(places("a", (3, 4))))
        suite.case("none", [a[:0], x[:0], numbers(3, 4), a, x, numbers(3, 4)])
        suite.error("shapes", [a, x, numbers(3, 4), a, x, numbers(4, 3)])
        suite.error("few_values", [a, x[1:], numbers(3, 4), a, x, numbers(3, 4)])
        yield suite.finish()


def reductions(folder):
    """SparseReduceSumSparse and SparseReduceMaxSparse."""
    for op, types in (("SparseReduceSumSparse", [*REAL, *COMPLEX]), ("SparseReduceMaxSparse", REAL)):
        suite = Suite(folder, "sparse", op)
        for dtype in types:
            for shape, axes in (((3, 4), [0]), ((2, 3, 4), [0, 2]), ((2, 3, 4), [1]), ((3, 4), [0, 1]), ((3, 4), [])) if dtype == "float" else (((3, 4), [-1]),):
                for keeps in (False, True):
                    at = places("reduce", shape, 0.5)
                    # Whole numbers, whose sums are exact in any order.
                    x = array(small(seeded("reduce"), "int32", (len(at),), 0), dtype)
                    name = title(dtype, shape, axes or "none", keeps).replace("[", "").replace("]", "")
                    suite.case(name, [at, x, numbers(*shape), np.int32(axes)], {"keep_dims": keeps}, const=[2, 3])
        at = places("reduce", (3, 4), 0.5)
        x = np.ones(len(at), np.float32)
        suite.error("axis", [at, x, numbers(3, 4), np.int32([2])])
        suite.error("few_values", [at, x[1:], numbers(3, 4), np.int32([1])])
        yield suite.finish()


def factors(folder):
    """SparseMatMul."""
    suite = Suite(folder, "sparse", "SparseMatMul")

    def matrix(name, dtype, shape):
        rng = seeded("factors", name, dtype, *shape)
        return np.where(rng.random(shape) < 0.4, array(0, dtype), small(rng, dtype, shape))

    # Whole numbers, whose products and sums are exact in any order.
    for left in ("float", "bfloat16"):
        for right in ("float", "bfloat16"):
            for turned in ((False, False), (True, False), (False, True), (True, True)):
                for zeros in (False, True):
                    a, b = matrix("a", left, (4, 6)), matrix("b", right, (6, 5))
                    attrs = {"transpose_a": turned[0], "transpose_b": turned[1], "a_is_sparse": zeros, "b_is_sparse": not zeros}
                    suite.case(title(left, right, *turned, zeros), [a.T.copy() if turned[0] else a, b.T.copy() if turned[1] else b], attrs)
    a, b = matrix("a", "float", (4, 6)), matrix("b", "float", (6, 5))
    suite.case("empty", [a[:0], b])
    suite.error("inner", [a, b[:5]])
    suite.error("rank", [a[0], b])
    yield suite.finish()


def crosses(folder):
    """SparseCross, SparseCrossV2 and SparseCrossHashed."""
    first, second = np.int64([[0, 0], [0, 1], [2, 0]]), np.int64([[0, 0], [1, 0], [2, 0], [2, 1]])
    texts = {"a": words("a", "bb", ""), "b": words("x", "y", "z", "x")}
    whole = {"a": np.int64([3, -7, 2**40]), "b": np.int64([0, 1, 2, 3])}
    dense = {"string": words("p", "q", "r", shape=(3, 1)), "int64": np.int64([[5, 6], [7, -8], [9, 2**33]])}
    columns = {  # label: (values of sparse columns, whole columns)
        "texts": ([texts["a"], texts["b"]], []),
        "numbers": ([whole["a"], whole["b"]], []),
        "mixed": ([texts["a"], whole["b"]], [dense["int64"], dense["string"]]),
        "dense": ([], [dense["string"], dense["int64"]]),
        "one": ([texts["a"]], []),
    }
    for op in ("SparseCross", "SparseCrossV2", "SparseCrossHashed"):
        suite = Suite(folder, "sparse", op)

        def add(name, sparse, more, last=(), attrs=None, shapes=None, places=(first, second), refused=False):
            count = len(sparse)
            types = [["string" if x.dtype.kind == "S" else "int64" for x in part] for part in (sparse, more)]
            inputs = [*places[:count], *sparse, *(shapes or [numbers(3, 2)] * count), *more, *last]
            given = {"N": count, "sparse_types": types[0], "dense_types": types[1]} | (attrs or {})
            (suite.error if refused else suite.case)(name, inputs, given)

        hashing = {"hashed_output": True, "num_buckets": 0, "hash_key": 956888297470, "out_type": "int64", "internal_type": "int64"}
        joining = {"hashed_output": False, "num_buckets": 0, "hash_key": 0, "out_type": "string", "internal_type": "int64"}
        for label, (sparse, more) in columns.items():
            if op == "SparseCross":
                for buckets in (0, 17):
                    add(f"{label}_hashed_{buckets}", sparse, more, attrs=hashing | {"num_buckets": buckets})
                add(f"{label}_joined", sparse, more, attrs=joining)
            elif op == "SparseCrossV2":
                for separator in ("_X_", ""):
                    add(f"{label}_{len(separator)}", sparse, more, [words(separator, shape=())])
            else:
                for buckets in (0, 17):
                    # Strong hashes of whole columns end TensorFlow's process.
                    for strong in (False,) if more else (False, True):
                        add(f"{label}_{buckets}_{strong}", sparse, more, [np.int64(buckets), np.bool_(strong), np.int64([137, -51])])
        last = {"SparseCross": [], "SparseCrossV2": [words("_", shape=())], "SparseCrossHashed": [np.int64(0), np.bool_(False), np.int64([1, 2])]}[op]
        attrs = joining if op == "SparseCross" else {}
        sparse = columns["texts"][0]
        add("batches", sparse, [], last, attrs, [numbers(3, 2), numbers(4, 2)], refused=True)
        add("few_values", [sparse[0][:2], sparse[1]], [], last, attrs, refused=True)
        add("rank", sparse, [], last, attrs, [numbers(3, 2, 1), numbers(3, 2)], refused=True)
        add("dense_rank", sparse, [dense["int64"][0]], last, attrs, refused=True)
        if op == "SparseCross":
            add("internal", [whole["a"]], [], attrs=joining | {"internal_type": "string"}, refused=True)
        if op == "SparseCrossHashed":
            add("salt", sparse, [], [np.int64(0), np.bool_(False), np.int64([1, 2, 3])], refused=True)
        yield suite.finish()


GROUPS = [crosses, factors, sizes, operations, distances, counts, extremes, reductions]
