"""Random ops with given seeds: the first numbers of each stream."""

import numpy as np

from .data import ANY, COMPLEX, FLOATS, QUANTISED, array, seeded, values
from .stand_in import as_signed
from .suite import EXACT, Suite, ulp

SHAPES = {"scalar": [], "vector": [7], "matrix": [3, 5], "empty": [0, 3], "long": [1031]}
SEEDS = {"": (1, 2), "_seed_only": (87654321, 0), "_second_only": (0, 5), "_wide": (2**40 + 3, -(2**35) - 1)}


def attrs_of(seeds, **more):
    return {"seed": seeds[0], "seed2": seeds[1]} | more


def stateful(folder):
    """RandomUniform, RandomStandardNormal, TruncatedNormal."""
    for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        suite = Suite(folder, "random", op)
        tolerance = EXACT if op == "RandomUniform" else ulp(2)
        for dtype in FLOATS:
            for label, shape in SHAPES.items():
                attrs = attrs_of(SEEDS[""], dtype=dtype)
                suite.case(f"{dtype}_{label}", [np.asarray(shape, np.int32)], attrs, const=[0], tolerance=tolerance)
            for label, seeds in list(SEEDS.items())[1:]:
                attrs = attrs_of(seeds, dtype=dtype)
                suite.case(f"{dtype}{label}", [np.int64([2, 9])], attrs, const=[0], tolerance=tolerance)
        suite.error("negative", [np.int32([-1])], attrs_of((1, 2), dtype="float"), const=[0])
        suite.error("matrix_shape", [np.int32([[1]])], attrs_of((1, 2), dtype="float"), const=[0])
        yield suite.finish()


def integers(folder):
    """RandomUniformInt."""
    suite = Suite(folder, "random", "RandomUniformInt")
    for dtype in ("int32", "int64"):
        info = np.iinfo(dtype)
        ranges = {"small": (-3, 9), "one": (5, 6), "half": (0, info.max), "all": (info.min, info.max)}
        for label, (low, high) in ranges.items():
            bounds = [np.asarray(low, dtype), np.asarray(high, dtype)]
            suite.case(f"{dtype}_{label}", [np.int32([3, 7]), *bounds], attrs_of((3, 4)), const=[0, 1, 2])
        bounds = [np.asarray(0, dtype), np.asarray(100, dtype)]
        suite.case(f"{dtype}_long", [np.int64([1031]), *bounds], attrs_of((3, 4)), const=[0, 1, 2])
        suite.case(f"{dtype}_empty", [np.int64([0]), *bounds], attrs_of((3, 4)), const=[0, 1, 2])
        suite.error(f"{dtype}_descending", [np.int32([3]), *bounds[::-1]], attrs_of((3, 4)), const=[0, 1, 2])
        suite.error(f"{dtype}_equal", [np.int32([3]), bounds[0], bounds[0]], attrs_of((3, 4)), const=[0, 1, 2])
    suite.error("vector_bound", [np.int32([3]), np.int32([1]), np.int32(2)], attrs_of((3, 4)), const=[0, 1, 2])
    yield suite.finish()


def shuffle(folder):
    """RandomShuffle."""
    suite = Suite(folder, "random", "RandomShuffle")
    for dtype in ANY + COMPLEX:
        options = as_signed(dtype) if dtype in QUANTISED else {}
        x = values(seeded("RandomShuffle", dtype), dtype, (7, 3))
        suite.case(f"{dtype}_rows", [x], attrs_of((5, 6)), **options)
    x = np.arange(1031, dtype=np.int32)
    suite.case("vector", [x], attrs_of((5, 6)))
    suite.case("scalar", [np.float32(3)], attrs_of((5, 6)))
    suite.case("one", [np.float32([[1, 2]])], attrs_of((5, 6)))
    suite.case("empty", [np.zeros((0, 3), np.float32)], attrs_of((5, 6)))
    suite.case("empty_rows", [np.zeros((4, 0), np.float32)], attrs_of((5, 6)))
    suite.case("rank3", [np.arange(24, dtype=np.float32).reshape(4, 2, 3)], attrs_of((0, 9)))
    yield suite.finish()


def multinomial(folder):
    """Multinomial."""
    suite = Suite(folder, "random", "Multinomial")
    for dtype in FLOATS:
        logits = values(seeded("Multinomial", dtype), dtype, (3, 11))
        for out in ("int32", "int64"):
            attrs = attrs_of((7, 8), output_dtype=out)
            suite.case(f"{dtype}_{out}", [logits, np.int32(13)], attrs, const=[1])
        suite.case(f"{dtype}_one_class", [logits[:, :1], np.int32(3)], attrs_of((7, 8)), const=[1])
    rows = np.float32([[0, -np.inf, 0], [np.nan, 1, 2], [100, 0, -100]])
    suite.case("special", [rows, np.int32(16)], attrs_of((7, 8)), const=[1])
    suite.case("no_samples", [rows, np.int32(0)], attrs_of((7, 8)), const=[1])
    suite.case("no_rows", [rows[:0], np.int32(4)], attrs_of((7, 8)), const=[1])
    suite.error("vector", [rows[0], np.int32(4)], attrs_of((7, 8)), const=[1])
    suite.error("negative", [rows, np.int32(-1)], attrs_of((7, 8)), const=[1])
    suite.error("no_classes", [np.zeros((2, 0), np.float32), np.int32(1)], attrs_of((7, 8)), const=[1])
    yield suite.finish()


def gamma(folder):
    """RandomGamma."""
    suite = Suite(folder, "random", "RandomGamma")
    for dtype in ("half", "float", "double"):
        alphas = array([0.3, 1.0, 2.5, 20.0], dtype)
        options = {"const": [0], "tolerance": ulp(4)}
        suite.case(f"{dtype}_vector", [np.int32([9]), alphas], attrs_of((9, 10)), **options)
        suite.case(f"{dtype}_scalar", [np.int32([]), alphas[0]], attrs_of((9, 10)), **options)
        suite.case(f"{dtype}_matrix", [np.int64([2, 3]), alphas.reshape(2, 2)], attrs_of((9, 0)), **options)
        suite.case(f"{dtype}_long", [np.int64([517]), alphas[1:3]], attrs_of((9, 0)), **options)
        suite.case(f"{dtype}_empty", [np.int64([0]), alphas], attrs_of((9, 0)), **options)
    suite.error("negative_shape", [np.int32([-1]), np.float32(1)], attrs_of((9, 10)), const=[0])
    yield suite.finish()


def stateless(folder):
    """StatelessRandomUniform, StatelessRandomNormal, StatelessTruncatedNormal, StatelessRandomUniformInt."""
    seeds = {"int32": np.int32([12, -34]), "int64": np.int64([2**40, -(2**35)]), "zero": np.int64([0, 0])}
    for op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"):
        suite = Suite(folder, "random", op)
        tolerance = EXACT if op.endswith("Uniform") else ulp(2)
        for dtype in FLOATS:
            for label, shape in SHAPES.items():
                inputs = [np.asarray(shape, np.int32), seeds["int32"]]
                suite.case(f"{dtype}_{label}", inputs, {"dtype": dtype}, const=[0], tolerance=tolerance)
            for label, seed in seeds.items():
                inputs = [np.int64([2, 9]), seed]
                suite.case(f"{dtype}_seed_{label}", inputs, {"dtype": dtype}, const=[0], tolerance=tolerance)
        suite.error("three_seeds", [np.int32([2]), np.int32([1, 2, 3])], {"dtype": "float"}, const=[0])
        suite.error("negative", [np.int32([-2]), np.int32([1, 2])], {"dtype": "float"}, const=[0])
        yield suite.finish()
    suite = Suite(folder, "random", "StatelessRandomUniformInt")
    for dtype in ("int32", "int64"):
        bounds = [np.asarray(-3, dtype), np.asarray(1000, dtype)]
        for label, seed in seeds.items():
            suite.case(f"{dtype}_seed_{label}", [np.int32([3, 9]), seed, *bounds], const=[0, 2, 3])
            if label != "zero":
                suite.case(f"{dtype}_seed_{label}_wide_shape", [np.int64([3, 9]), seed, *bounds], const=[0, 2, 3])
        suite.error(f"{dtype}_descending", [np.int32([3]), seeds["int32"], *bounds[::-1]], const=[0, 2, 3])
    yield suite.finish()


def keyed(folder):
    """StatelessRandomUniformV2, StatelessRandomNormalV2, StatelessTruncatedNormalV2, StatelessRandomGetKeyCounter, StatelessRandomGetAlg."""
    for op in ("StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2"):
        suite = Suite(folder, "random", op)
        tolerance = EXACT if "Uniform" in op else ulp(2)
        key, counter = np.uint64([2**63 + 12345]), np.uint64([2**64 - 2, 77])
        for dtype in FLOATS:
            for alg in (1, 3):
                inputs = [np.int32([3, 11]), key, counter, np.int32(alg)]
                options = {"const": [0, 3], "tolerance": tolerance}
                suite.case(f"{dtype}_alg{alg}", inputs, {"dtype": dtype}, **options)
        inputs = [np.int32([4]), key, np.uint64([1, 2, 3]), np.int32(1)]
        suite.case("long_counter", inputs, const=[0, 3], tolerance=tolerance)
        suite.error("alg", [np.int32([3]), key, counter, np.int32(9)], const=[0, 3])
        suite.error("short_counter", [np.int32([3]), key, counter[:1], np.int32(1)], const=[0, 3])
        suite.error("two_keys", [np.int32([3]), counter, counter, np.int32(1)], const=[0, 3])
        yield suite.finish()
    suite = Suite(folder, "random", "StatelessRandomGetKeyCounter")
    suite.case("int32", [np.int32([12, -34])])
    suite.case("int64", [np.int64([2**40, -(2**35)])])
    suite.case("zero", [np.int64([0, 0])])
    suite.error("three_seeds", [np.int32([1, 2, 3])])
    suite.error("scalar", [np.int32(1)])
    yield suite.finish()
    suite = Suite(folder, "random", "StatelessRandomGetAlg")
    suite.case("plain", [])
    yield suite.finish()


INTEGERS = ("int32", "int64", "uint32", "uint64")


def whole(folder):
    """StatelessRandomUniformFullInt, StatelessRandomUniformFullIntV2, StatelessRandomUniformIntV2."""
    suite = Suite(folder, "random", "StatelessRandomUniformFullInt")
    for dtype in INTEGERS:
        for label, shape in SHAPES.items():
            suite.case(f"{dtype}_{label}", [np.asarray(shape, np.int32), np.int32([12, -34])], {"dtype": dtype}, const=[0])
        suite.case(f"{dtype}_seed_int64", [np.int64([2, 9]), np.int64([2**40, -(2**35)])], {"dtype": dtype}, const=[0])
    suite.error("three_seeds", [np.int32([2]), np.int32([1, 2, 3])], const=[0])
    suite.error("negative", [np.int32([-2]), np.int32([1, 2])], const=[0])
    suite.error("unsigned_seed", [np.int32([2]), np.uint32([1, 2])], const=[0])
    yield suite.finish()
    key, counter = np.uint64([2**63 + 12345]), np.uint64([2**64 - 2, 77])
    for op, bounded in (("StatelessRandomUniformFullIntV2", False), ("StatelessRandomUniformIntV2", True)):
        suite = Suite(folder, "random", op)
        const = [0, 3, 4, 5] if bounded else [0, 3]
        for dtype in INTEGERS[:2] if bounded else INTEGERS:
            bounds = [np.asarray(-3, dtype), np.asarray(1000, dtype)] if bounded else []
            for alg in (1, 3):
                suite.case(f"{dtype}_alg{alg}", [np.int32([3, 11]), key, counter, np.int32(alg), *bounds], {"dtype": dtype}, const=const)
            suite.error(f"{dtype}_alg", [np.int32([3]), key, counter, np.int32(9), *bounds], {"dtype": dtype}, const=const)
            suite.error(f"{dtype}_two_keys", [np.int32([3]), counter, counter, np.int32(1), *bounds], {"dtype": dtype}, const=const)
            if bounded:
                suite.error(f"{dtype}_descending", [np.int32([3]), key, counter, np.int32(1), *bounds[::-1]], {"dtype": dtype}, const=const)
        yield suite.finish()
    suite = Suite(folder, "random", "StatelessRandomGetKeyCounterAlg")
    suite.case("int32", [np.int32([12, -34])])
    suite.case("int64", [np.int64([2**40, -(2**35)])])
    suite.error("three_seeds", [np.int32([1, 2, 3])])
    yield suite.finish()


GROUPS = [stateful, integers, shuffle, multinomial, gamma, stateless, keyed, whole]
