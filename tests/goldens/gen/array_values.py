"""Ops that make, describe or search values: Range, OneHot, Where, Unique, ...; and those that hand values on."""

import numpy as np

from .array_index import JOINED, WIDE, labels
from .arrays import JOINS, PERMUTATIONS, SHAPES, make
from .data import COMPLEX, FLOATS, NUMBERS, NUMPY, array, denormals, seeded, small, specials, values
from .stand_in import as_float
from .suite import EXACT, Suite, ulp


def passed(folder):
    """Snapshot, StopGradient, GuaranteeConst, PreventGradient, IdentityN, EnsureShape and CheckNumerics."""
    for op in ("Snapshot", "StopGradient", "GuaranteeConst", "PreventGradient"):
        suite = Suite(folder, "array", op)
        for dtype in NUMBERS + COMPLEX + ([] if op == "Snapshot" else ["bool", "string"]):
            for label in SHAPES if dtype == "float" else ("rank3",):
                attrs = {"message": "none here"} if op == "PreventGradient" else {}
                suite.case(f"{dtype}_{label}", [make(suite, dtype, label, SHAPES[label])], attrs)
        yield suite.finish()

    suite = Suite(folder, "array", "IdentityN")
    for dtype in WIDE:
        suite.case(f"{dtype}_one", [make(suite, dtype, "one", (2, 3))])
    suite.case("mixed", [make(suite, dtype, dtype, (2,)) for dtype in WIDE])
    yield suite.finish()

    suite = Suite(folder, "array", "EnsureShape")
    for dtype in WIDE:
        suite.case(f"{dtype}_known", [make(suite, dtype, "x", (2, 3))], {"shape": [2, 3]})
    x = make(suite, "float", "x", (2, 3))
    for label, shape in {"partial": [-1, 3], "unknown": None, "dims_unknown": [-1, -1]}.items():
        suite.case(f"float_{label}", [x], {"shape": shape})
    for label, shape in {"size": [2, 4], "rank": [2], "partial": [3, -1], "scalar": []}.items():
        suite.error(label, [x], {"shape": shape})
    yield suite.finish()

    suite = Suite(folder, "array", "CheckNumerics")
    for dtype in FLOATS:
        for label, shape in SHAPES.items():
            suite.case(f"{dtype}_{label}", [make(suite, dtype, label, shape)], {"message": "here"})
        for label, bad in {"nan": [1, np.nan], "inf": [np.inf, 1], "low": [-np.inf], "both": [np.nan, np.inf]}.items():
            suite.error(f"{dtype}_{label}", [array(bad, dtype)], {"message": "here"})
        suite.case(f"{dtype}_denormal", [denormals(dtype)], {"message": ""})
    yield suite.finish()


def described(folder):
    """ShapeN, Size and Rank."""
    for op in ("Size", "Rank", "ShapeN"):
        suite = Suite(folder, "array", op)
        outs = ({},) if op == "Rank" else ({"out_type": "int32"}, {"out_type": "int64"})
        for dtype in WIDE:
            suite.case(f"{dtype}_any", [make(suite, dtype, "x", (2, 3, 1))])
        for label, dims in (SHAPES | {"rank5": (1, 2, 1, 3, 1)}).items():
            for attrs in outs:
                suite.case("_".join(["float", label, *attrs.values()]), [make(suite, "float", label, dims)], attrs)
        if op == "ShapeN":
            several = [make(suite, "float", label, dims) for label, dims in SHAPES.items()]
            suite.case("float_several", several)
        yield suite.finish()


def like(folder):
    """ZerosLike, OnesLike and Empty."""
    for op in ("ZerosLike", "OnesLike"):
        suite = Suite(folder, "array", op)
        for dtype in WIDE if op == "ZerosLike" else ["bool"] + NUMBERS + COMPLEX:
            for label in SHAPES if dtype == "float" else ("rank3", "scalar"):
                suite.case(f"{dtype}_{label}", [make(suite, dtype, label, SHAPES[label])])
        yield suite.finish()
    suite = Suite(folder, "array", "Empty")
    for dtype in WIDE:
        suite.case(f"{dtype}_zeros", [np.int32([2, 3])], {"dtype": dtype, "init": True}, const=[0])
    for label, shape in SHAPES.items():
        suite.case(f"float_{label}", [np.array(shape, np.int32)], {"dtype": "float"}, const=[0], shape_only=(0,))
    suite.error("negative", [np.int32([-1])], {"dtype": "float"}, const=[0])
    suite.error("matrix", [np.int32([[1]])], {"dtype": "float"}, const=[0])
    suite.error("overflow", [np.int32([2**31 - 1] * 3)], {"dtype": "float"}, const=[0])
    yield suite.finish()


def sequences(folder):
    """Range and LinSpace."""
    suite = Suite(folder, "array", "Range")
    forms = {
        "up": (3, 18, 5),
        "exact": (0, 10, 2),
        "down": (9, -4, -3),
        "none": (3, 3, 1),
        "one": (3, 4, 9),
        "long": (0, 300, 1),
    }
    for dtype in FLOATS + ["int32", "int64"]:
        for label, form in forms.items():
            suite.case(f"{dtype}_{label}", [array(x, dtype) for x in form], const=[0, 1, 2])
        if dtype in FLOATS:
            for label, form in {"tenths": (0, 1, 0.1), "thirds": (-1, 2, 1 / 3), "small": (1, 1.2, 0.007)}.items():
                suite.case(f"{dtype}_{label}", [array(x, dtype) for x in form], const=[0, 1, 2])
    suite.case("float_1009", [np.float32(0.5), np.float32(101), np.float32(0.1)], const=[0, 1, 2])
    suite.case("int64_wide", [np.int64(-(2**62)), np.int64(2**62), np.int64(2**60)], const=[0, 1, 2])
    suite.case("int32_wide", [np.int32(-(2**31)), np.int32(2**31 - 1), np.int32(2**30)], const=[0, 1, 2])
    for dtype in ("int32", "float"):
        for label, form in {"zero": (0, 5, 0), "up": (5, 0, 1), "down": (0, 5, -1)}.items():
            suite.error(f"{dtype}_{label}", [array(x, dtype) for x in form], const=[0, 1, 2])
    suite.error("vector", [np.int32([0]), np.int32(5), np.int32(1)], const=[0, 1, 2])
    suite.error("float_endless", [np.float32(0), np.float32(np.inf), np.float32(1)], const=[0, 1, 2])
    suite.error("float_nan", [np.float32(0), np.float32(np.nan), np.float32(1)], const=[0, 1, 2])
    yield suite.finish()

    suite = Suite(folder, "array", "LinSpace")

    def exact(case):
        start, stop, num = (np.asarray(x).astype(np.longdouble) for x in case.inputs)
        steps = np.arange(int(num), dtype=np.longdouble)
        return [start + (stop - start) / max(num - 1, 1) * steps]

    for dtype in ("float", "double"):
        for label, (start, stop, num) in {
            "some": (1, 2, 7),
            "one": (3, 9, 1),
            "two": (3, 9, 2),
            "down": (5, -5, 11),
            "same": (2, 2, 3),
            "thirds": (-0.3, 0.9, 13),
            "1009": (0, 1, 1009),
        }.items():
            terms = ulp(4)
            inputs = [array(start, dtype), array(stop, dtype), np.int32(num)]
            if label == "thirds":  # one number is the small difference of larger ones
                reach = np.maximum(abs(start), abs(stop)) * np.ones(num)
                suite.case(
                    f"{dtype}_{label}", inputs, const=[0, 1, 2], terms=2, reason="the step's rounding, relative to the ends",
                    reference=lambda case, reach=reach: [(exact(case)[0], reach)],
                )
            elif label == "down":
                suite.case(
                    f"{dtype}_{label}", inputs, const=[0, 1, 2], terms=2, reason="the step's rounding, relative to the ends",
                    reference=lambda case: [(exact(case)[0], np.full(11, 5.0))],
                )
            else:
                suite.case(f"{dtype}_{label}", inputs, const=[0, 1, 2], tolerance=terms, reference=exact)
        # The step is not finite: the first number is the start all the same, and the last one the stop.
        top = np.finfo(NUMPY[dtype]).max
        for label, (start, stop, num) in {
            "overflow": (-top, top, 4),
            "overflow_down": (top, -top, 3),
            "infinite_stop": (1, np.inf, 4),
            "infinite_start": (-np.inf, 1, 3),
            "infinite": (np.inf, -np.inf, 2),
            "infinite_one": (-np.inf, np.inf, 1),
            "nan_stop": (1, np.nan, 3),
        }.items():
            inputs = [array(start, dtype), array(stop, dtype), np.int32(num)]
            suite.case(f"{dtype}_{label}", inputs, const=[0, 1, 2], tolerance=EXACT)
    suite.case("float_int64", [np.float32(1), np.float32(2), np.int64(3)], const=[0, 1, 2], tolerance=ulp(4), reference=exact)
    suite.error("none", [np.float32(1), np.float32(2), np.int32(0)], const=[0, 1, 2])
    suite.error("negative", [np.float32(1), np.float32(2), np.int32(-1)], const=[0, 1, 2])
    suite.error("vector", [np.float32([1]), np.float32(2), np.int32(3)], const=[0, 1, 2])
    yield suite.finish()


def one_hot(folder):
    """OneHot."""
    suite = Suite(folder, "array", "OneHot")
    for dtype in WIDE:
        ends = [make(suite, dtype, end, ()) for end in ("on", "off")]
        suite.case(f"{dtype}_rows", [np.int64([1, 0, 3, -1]), np.int32(3), *ends], const=[1])
        suite.case(f"{dtype}_first", [np.int64([1, 0, 3]), np.int32(3), *ends], {"axis": 0}, const=[1])
    ends = [np.float32(2), np.float32(-1)]
    matrix = [[1, 0, 2], [5, 1, 0]]
    for kind in ("uint8", "int8", "int32"):
        suite.case(f"float_{kind}", [np.array(matrix, kind), np.int32(4), *ends], {"axis": 1}, const=[1])
        for dtype in (name for name in WIDE if name != "float"):
            values_of = [make(suite, dtype, end, ()) for end in ("on", "off")]
            suite.case(f"{dtype}_{kind}", [np.array([2, 0, 5], kind), np.int32(3), *values_of], const=[1])
    for axis in (-1, 0, 1, 2):
        suite.case(f"float_axis_{axis % 7}", [np.int64(matrix), np.int32(3), *ends], {"axis": axis}, const=[1])
    suite.case("float_scalar", [np.int64(2), np.int32(4), *ends], const=[1])
    suite.case("float_empty", [np.zeros((0, 2), np.int64), np.int32(4), *ends], const=[1])
    suite.case("float_no_depth", [np.int64([1, 2]), np.int32(0), *ends], const=[1])
    suite.case("float_large", [np.arange(60) * 7 % 41, np.int32(40), *ends], const=[1])
    suite.error("depth", [np.int64([1]), np.int32(-1), *ends], const=[1])
    suite.error("depth_vector", [np.int64([1]), np.int32([3]), *ends], const=[1])
    suite.error("axis_high", [np.int64([1]), np.int32(3), *ends], {"axis": 2}, const=[1])
    suite.error("axis_low", [np.int64([1]), np.int32(3), *ends], {"axis": -2}, const=[1])
    suite.error("on_vector", [np.int64([1]), np.int32(3), np.float32([1]), np.float32(0)], const=[1])
    yield suite.finish()


def where(folder):
    """Where."""
    suite = Suite(folder, "array", "Where")
    forms = {"vector": (9,), "matrix": (3, 5), "rank4": (2, 3, 2, 3), "empty": (0, 3), "empty_last": (3, 0)}
    for dtype in ["bool"] + NUMBERS + COMPLEX:
        # TensorFlow lists half, and refuses it.
        options = {"run_as": as_float, "via": "float"} if dtype == "half" else {}
        for label in forms if dtype in ("bool", "float") else ("matrix",):
            rng = seeded("Where", dtype, label)
            x = values(rng, "bool", forms[label]) if dtype == "bool" else small(rng, dtype, forms[label], -1, 2)
            suite.case(f"{dtype}_{label}", [x], **options)
        if dtype in FLOATS:
            suite.case(f"{dtype}_special", [specials(dtype)], **options)
    suite.case("bool_large", [values(seeded("Where", "large"), "bool", (37, 53))])
    suite.case("bool_none", [np.zeros((3, 2), np.bool_)])
    suite.case("bool_all", [np.ones((3, 2), np.bool_)])
    suite.error("scalar", [np.bool_(True)])
    suite.case("complex64_parts", [np.complex64([0, 1, 1j, -0.0])])
    yield suite.finish()


def unique(folder):
    """Unique, UniqueV2, UniqueWithCounts, UniqueWithCountsV2 and ListDiff."""
    kinds = ["bool"] + NUMBERS + ["string"]

    def few(suite, dtype, label, shape):
        rng = seeded(suite.op, dtype, label)
        if dtype == "string":
            words = np.array([b"a", b"bc", b"", b"b"])
            return words[rng.integers(0, 4, shape)]
        return values(rng, dtype, shape) if dtype == "bool" else small(rng, dtype, shape, -2, 3)

    odd = np.float32([0.0, np.nan, -0.0, np.nan, np.inf, 0.0, -np.inf, np.inf])
    for op in ("Unique", "UniqueWithCounts"):
        suite = Suite(folder, "array", op)
        for dtype in kinds:
            suite.case(f"{dtype}_few", [few(suite, dtype, "few", (11,))])
            suite.case(f"{dtype}_int64", [few(suite, dtype, "wide", (5,))], {"out_idx": "int64"})
        suite.case("float_any", [make(suite, "float", "any", (13,))])
        suite.case("float_large", [few(suite, "float", "large", (1009,))])
        suite.case("int64_empty", [np.zeros(0, np.int64)])
        suite.case("float_special", [odd])
        suite.error("matrix", [np.ones((2, 2), np.float32)])
        suite.error("scalar", [np.float32(1)])
        yield suite.finish()
    for op in ("UniqueV2", "UniqueWithCountsV2"):
        suite = Suite(folder, "array", op)
        for dtype in kinds:
            suite.case(f"{dtype}_vector", [few(suite, dtype, "v", (11,)), np.zeros(0, np.int64)], const=[1])
            suite.case(f"{dtype}_rows", [few(suite, dtype, "r", (9, 2)) if dtype == "bool" else few(suite, dtype, "r", (17, 2)), np.int64([0])], const=[1])
        x = np.int32([[1, 2, 1, 1], [3, 4, 3, 3]])
        suite.case("int32_columns", [x, np.int32([1])], {"out_idx": "int64"}, const=[1])
        suite.case("int32_negative", [x, np.int64([-1])], const=[1])
        suite.case("int32_middle", [small(seeded(op, "m"), "int32", (2, 7, 1), 0, 2), np.int64([1])], const=[1])
        suite.case("int32_vector_axis", [x[0], np.int64([0])], const=[1])
        suite.case("float_special", [odd.reshape(4, 2), np.int64([0])], const=[1])
        suite.case("float_empty_rows", [np.zeros((0, 2), np.float32), np.int64([0])], const=[1])
        suite.error("high", [x, np.int64([2])], const=[1])
        suite.error("low", [x, np.int64([-3])], const=[1])
        suite.error("two", [x, np.int64([0, 1])], const=[1])
        suite.error("no_axis", [x, np.zeros(0, np.int64)], const=[1])
        suite.error("axis_scalar", [x, np.int64(0)], const=[1])
        yield suite.finish()

    suite = Suite(folder, "array", "ListDiff")
    for dtype in NUMBERS + ["string"]:
        suite.case(f"{dtype}_few", [few(suite, dtype, "x", (11,)), few(suite, dtype, "y", (2,))])
    suite.case("float_special", [odd, np.float32([np.nan, -0.0])])
    suite.case("int32_int64", [np.int32([1, 2, 3, 1]), np.int32([3, 5])], {"out_idx": "int64"})
    suite.case("int32_none", [np.zeros(0, np.int32), np.int32([3, 5])])
    suite.case("int32_all", [np.int32([3, 5]), np.zeros(0, np.int32)])
    suite.error("matrix", [np.int32([[1]]), np.int32([1])])
    suite.error("scalar", [np.int32([1]), np.int32(1)])
    yield suite.finish()


def permutations(folder):
    """InvertPermutation, LowerBound and UpperBound."""
    suite = Suite(folder, "array", "InvertPermutation")
    for dtype in ("int32", "int64"):
        for size in (0, 1, 7, 101):
            suite.case(f"{dtype}_{size}", [seeded("invert", size).permutation(size).astype(dtype)])
    for label, x in {"twice": [0, 1, 1], "high": [0, 3, 1], "low": [0, -1, 1], "matrix": [[0, 1]]}.items():
        suite.error(label, [np.int32(x)])
    suite.error("scalar", [np.int32(0)])
    yield suite.finish()
    for op in ("LowerBound", "UpperBound"):
        suite = Suite(folder, "array", op)
        for dtype in NUMBERS:
            rows = np.sort(small(seeded(op, dtype), dtype, (3, 8)), 1)
            wanted = small(seeded(op, dtype, "v"), dtype, (3, 5), -5, 6)
            for out in ("int32", "int64") if dtype == "float" else ("int32",):
                suite.case(f"{dtype}_rows_{out}", [rows, wanted], {"out_type": out})
        some = np.sort(make(suite, "float", "s", (2, 101)), 1)
        suite.case("float_large", [some, make(suite, "float", "v", (2, 53))])
        suite.case("float_ends", [np.float32([[-np.inf, 0, np.inf]]), np.float32([[np.inf, -np.inf, -0.0, 1]])])
        suite.case("float_empty_row", [np.zeros((2, 0), np.float32), np.ones((2, 3), np.float32)])
        suite.case("float_no_values", [np.ones((2, 3), np.float32), np.zeros((2, 0), np.float32)])
        suite.error("rows", [np.ones((2, 3), np.float32), np.ones((3, 3), np.float32)])
        suite.error("vector", [np.ones(3, np.float32), np.ones(3, np.float32)])
        yield suite.finish()


def joins(folder):
    """Concat, ConcatOffset, ParallelConcat and ConjugateTranspose."""
    suite = Suite(folder, "array", "Concat")
    for dtype in JOINED:
        for label in labels(dtype, JOINS, ["rows", "columns"]):
            shapes, axis = JOINS[label]
            parts = [values(seeded("Concat", dtype, label, i), dtype, s) for i, s in enumerate(shapes)]
            suite.case(f"{dtype}_{label}", [np.int32(axis), *parts], const=[0])
    x = np.ones((2, 3), np.float32)
    suite.error("axis_high", [np.int32(2), x, x], const=[0])
    suite.error("sizes", [np.int32(0), x, np.ones((2, 4), np.float32)], const=[0])
    suite.error("scalars", [np.int32(0), np.float32(1), np.float32(2)], const=[0])
    suite.error("axes", [np.int32([0, 1]), x, x], const=[0])
    yield suite.finish()

    suite = Suite(folder, "array", "ConcatOffset")
    for dtype in ("int32", "int64"):
        shapes = [np.array([3, size, 4], dtype) for size in (1, 0, 7)]
        suite.case(f"{dtype}_three", [np.int32(1), *shapes], const=[0])
        suite.case(f"{dtype}_negative", [np.int32(-2), *shapes], const=[0])
        suite.case(f"{dtype}_first", [np.int32(0), shapes[0], shapes[0]], const=[0])
    a, b = np.int32([2, 3]), np.int32([4, 3])
    suite.error("high", [np.int32(2), a, b], const=[0])
    suite.error("low", [np.int32(-3), a, b], const=[0])
    suite.error("sizes", [np.int32(1), a, b], const=[0])
    suite.error("ranks", [np.int32(0), a, np.int32([2])], const=[0])
    suite.error("axes", [np.int32([0]), a, b], const=[0])
    suite.error("matrix", [np.int32(0), a[None], b[None]], const=[0])
    yield suite.finish()

    suite = Suite(folder, "array", "ParallelConcat", known_shapes=True)
    for dtype in WIDE:
        parts = [values(seeded("ParallelConcat", dtype, i), dtype, (1, 3)) for i in range(3)]
        suite.case(f"{dtype}_rows", parts, {"shape": [3, 3]})
    suite.case("float_one", [np.float32([[1, 2, 3]])], {"shape": [1, 3]})
    yield suite.finish()

    suite = Suite(folder, "array", "ConjugateTranspose")
    for dtype in WIDE:
        for label in PERMUTATIONS if dtype in COMPLEX else ("matrix", "120"):
            dims, order = PERMUTATIONS[label]
            suite.case(f"{dtype}_{label}", [make(suite, dtype, label, dims), np.array(order, np.int32)], const=[1])
    x = make(suite, "complex64", "x", (2, 3, 5))
    suite.case("complex64_int64_perm", [x, np.int64([2, 0, 1])], const=[1])
    for label, order in {"short": [1, 0], "twice": [0, 0, 1], "high": [0, 1, 3], "low": [0, 1, -4]}.items():
        suite.error(label, [x, np.array(order, np.int32)], const=[1])
    yield suite.finish()


# Formats: from, to.
FORMATS = [("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NHWC", "HWNC"), ("NDHWC", "NCDHW"), ("NCDHW", "NDHWC"), ("HWCN", "CNWH"), ("NWHDC", "NCDHW")]


def formats(folder):
    """DataFormatDimMap and DataFormatVecPermute."""
    for op in ("DataFormatDimMap", "DataFormatVecPermute"):
        suite = Suite(folder, "array", op)
        for whole in (np.int32, np.int64):
            for source, target in FORMATS:
                attrs, count = {"src_format": source, "dst_format": target}, len(source)
                name = f"{np.dtype(whole).name}_{source}_{target}".lower()
                if op == "DataFormatDimMap":
                    suite.case(name, [whole([*range(-count, count), 1])], attrs)
                    continue
                for label, shape in {"vector": (count,), "pairs": (count, 2), "image": (count - 2,), "image_pairs": (count - 2, 2)}.items():
                    suite.case(f"{name}_{label}", [small(seeded(op, name, label), np.dtype(whole).name, shape, -99, 99)], attrs)
        x = np.int32([0, 1, 2, 3])
        if op == "DataFormatDimMap":
            suite.case("scalar", [np.int32(3)])
            suite.case("matrix", [np.int32([[0, -1], [2, 3]])])
            suite.case("empty", [np.zeros((0, 2), np.int32)])
        else:
            suite.error("scalar", [np.int32(3)])
            suite.error("rank3", [x[:, None, None]])
            suite.error("columns", [np.ones((4, 3), np.int32)])
            suite.error("rows", [np.ones((3, 2), np.int32)])
            suite.error("none", [x[:0]])
        suite.error("other_letters", [x], {"src_format": "NHWC", "dst_format": "NHWX"})
        suite.error("twice", [x], {"src_format": "NHHC", "dst_format": "NCHH"})
        suite.error("sizes", [x], {"src_format": "NHWC", "dst_format": "NCDHW"})
        suite.error("short", [x[:3]], {"src_format": "NHW", "dst_format": "NWH"})
        yield suite.finish()


def bounds(folder):
    """Bucketize and UnravelIndex."""
    suite = Suite(folder, "array", "Bucketize")
    lists = {"some": [-2.0, 0.0, 0.0, 1.5, 3.0], "one": [1.0], "none": []}
    for dtype in ("int32", "int64", "float", "double"):
        for label, given in lists.items():
            x = make(suite, dtype, label, (3, 7)) if dtype in FLOATS else small(seeded(dtype, label), dtype, (3, 7))
            suite.case(f"{dtype}_{label}", [x], {"boundaries": given})
        suite.case(f"{dtype}_special", [specials(dtype)], {"boundaries": lists["some"]})
        suite.case(f"{dtype}_empty", [array(np.zeros((0, 2)), dtype)], {"boundaries": lists["some"]})
    # Integers are compared in single precision.
    suite.case("int32_rounded", [np.int32([2**24, 2**24 + 1, 2**24 + 2])], {"boundaries": [2.0**24, 2.0**24 + 2]})
    suite.error("order", [np.float32([1])], {"boundaries": [1.0, 0.0]})
    yield suite.finish()
    suite = Suite(folder, "array", "UnravelIndex")
    for dtype in ("int32", "int64"):
        for label, (indices, dims) in {
            "vector": ([0, 5, 23, 7], [2, 3, 4]),
            "scalar": (17, [5, 4]),
            "one": ([0, 0], [1]),
            "none": ([0], []),
            "row": ([3], [1, 4, 1]),
        }.items():
            suite.case(f"{dtype}_{label}", [np.asarray(indices, dtype), np.asarray(dims, dtype)], const=[1])
    for label, (indices, dims) in {
        "beyond": ([6], [2, 3]),
        "no_size": ([0], [2, 0]),
        "negative_size": ([0], [2, -3]),
        "matrix": ([[0]], [2, 3]),
        "scalar_dims": ([0], 2),
        "overflow": ([0], [2**16, 2**16]),
    }.items():
        suite.error(label, [np.int32(indices), np.int32(dims)], const=[1])
    yield suite.finish()


GROUPS = [bounds, passed, described, like, sequences, one_hot, where, unique, permutations, joins, formats]
