"""Random ops with given seeds whose distributions have parameters, and choices that follow from seeds."""

import numpy as np

from .data import ANY, COMPLEX, FLOATS, QUANTISED, array, seeded, values
from .random import attrs_of
from .stand_in import as_signed
from .suite import EXACT, Suite, ulp

SEEDS = {"int32": np.int32([12, -34]), "int64": np.int64([2**40, -(2**35)])}
KEY, COUNTER = np.uint64([2**63 + 12345]), np.uint64([2**64 - 2, 77])
NUMBERS = ["half", "float", "double", "int32", "int64"]


def poisson(folder):
    """RandomPoissonV2 and StatelessRandomPoisson."""
    suite = Suite(folder, "random", "RandomPoissonV2")
    for rate in NUMBERS:
        rates = array([0.5, 3, 9.5, 10, 12.5, 300], rate)
        for out in NUMBERS:
            suite.case(f"{rate}_{out}", [np.int32([9]), rates], attrs_of((9, 10), dtype=out), const=[0])
        suite.case(f"{rate}_scalar", [np.int64([]), rates[1]], attrs_of((9, 10)), const=[0])
        suite.case(f"{rate}_matrix", [np.int64([2, 3]), rates.reshape(2, 3)], attrs_of((0, 7)), const=[0])
        suite.case(f"{rate}_long", [np.int32([517]), rates[2:5]], attrs_of((9, 0)), const=[0])
        suite.case(f"{rate}_empty", [np.int32([0]), rates], attrs_of((9, 0)), const=[0])
    suite.case("no_rates", [np.int32([2]), np.zeros(0)], attrs_of((9, 0)), const=[0])
    suite.case("negative", [np.int32([3]), np.float64([-1, 0])], attrs_of((9, 0)), const=[0])
    suite.error("negative_shape", [np.int32([-1]), np.float32(1)], attrs_of((9, 10)), const=[0])
    yield suite.finish()
    suite = Suite(folder, "random", "StatelessRandomPoisson")
    for rate in NUMBERS:
        rates = array([0.5, 3, 9.5, 10, 12.5, 300], rate)
        for out in NUMBERS:
            for label, seed in SEEDS.items():
                inputs = [np.int32([9, 6]), seed, rates]
                suite.case(f"{rate}_{out}_{label}", inputs, {"dtype": out}, const=[0])
        inputs = [np.int64([5]), SEEDS["int32"], rates[1]]
        suite.case(f"{rate}_scalar", inputs, {"dtype": "float"}, const=[0])
        inputs = [np.int64([0, 6]), SEEDS["int32"], rates]
        suite.case(f"{rate}_empty", inputs, {"dtype": "float"}, const=[0])
    ones = np.ones(3, np.float32)
    suite.error("ends", [np.int32([3, 2]), SEEDS["int32"], ones], {"dtype": "float"}, const=[0])
    suite.error("three_seeds", [np.int32([3]), np.int32([1, 2, 3]), ones], {"dtype": "float"}, const=[0])
    yield suite.finish()


def binomial(folder):
    """StatelessRandomBinomial."""
    suite = Suite(folder, "random", "StatelessRandomBinomial")
    for dtype in ("half", "float", "double"):
        counts, probs = array([7, 40, 40, 1000, 90, 0], dtype), array([0.3, 0.1, 0.5, 0.02, 0.85, 0.5], dtype)
        for out in NUMBERS:
            for label, seed in SEEDS.items():
                suite.case(f"{dtype}_{out}_{label}", [np.int32([9, 6]), seed, counts, probs], {"dtype": out}, const=[0])
        inputs = [np.int64([4, 3, 2]), SEEDS["int32"], counts[:2], array([[0.2], [0.5], [0.9]], dtype)]
        suite.case(f"{dtype}_broadcast", inputs, const=[0])
        inputs = [np.int64([40]), SEEDS["int64"], counts[3], probs[2]]
        suite.case(f"{dtype}_scalars", inputs, const=[0])
        suite.case(f"{dtype}_edges", [np.int32([3, 4]), SEEDS["int32"], array([9, 9, -1, 9], dtype), array([0, 1, 0.5, -1], dtype)], const=[0])
        suite.case(f"{dtype}_empty", [np.int32([0, 6]), SEEDS["int32"], counts, probs], const=[0])
    ones = np.ones(3, np.float32)
    suite.error("ends", [np.int32([3, 2]), SEEDS["int32"], ones, ones], const=[0])
    suite.error("broadcast", [np.int32([3, 2]), SEEDS["int32"], ones, ones[:2]], const=[0])
    suite.error("three_seeds", [np.int32([3]), np.int32([1, 2, 3]), ones, ones], const=[0])
    yield suite.finish()


def gamma(folder):
    """StatelessRandomGammaV2 and StatelessRandomGammaV3."""
    for op in ("StatelessRandomGammaV2", "StatelessRandomGammaV3"):
        suite = Suite(folder, "random", op)
        keyed = op.endswith("V3")

        def inputs(shape, alphas, seed="int32", alg=1):
            return [shape, KEY, COUNTER, np.int32(alg), alphas] if keyed else [shape, SEEDS[seed], alphas]

        for dtype in ("half", "float", "double"):
            alphas = array([0.3, 1.0, 2.5, 20.0], dtype)
            options = {"const": [0, 3] if keyed else [0], "tolerance": ulp(4)}
            suite.case(f"{dtype}_vector", inputs(np.int32([9, 4]), alphas), **options)
            suite.case(f"{dtype}_other", inputs(np.int32([9, 4]), alphas, "int64", 3), **options)
            suite.case(f"{dtype}_scalar", inputs(np.int32([5]), alphas[0]), **options)
            suite.case(f"{dtype}_matrix", inputs(np.int64([2, 3, 2, 2]), alphas.reshape(2, 2)), **options)
            suite.case(f"{dtype}_long", inputs(np.int64([517, 2]), alphas[1:3]), **options)
            suite.case(f"{dtype}_empty", inputs(np.int64([0, 4]), alphas), **options)
        ones = np.ones(3, np.float32)
        suite.error("ends", inputs(np.int32([3, 2]), ones), const=[0])
        suite.error("negative", inputs(np.int32([-3]), ones), const=[0])
        yield suite.finish()


def bounded(folder):
    """ParameterizedTruncatedNormal and StatelessParameterizedTruncatedNormal."""
    infinite = np.inf
    # Normal, uniform and exponential proposals, the last two on either side.
    forms = {
        "normal": (0, 1, -2, 3),
        "shifted": (1, 2, -1, infinite),
        "uniform": (0, 1, 0.5, 0.75),
        "between": (0, 1, -0.5, 0.25),
        "below": (3, 1, 1, 1.5),
        "exponential": (0, 1, 3, infinite),
        "left": (0, 2, -infinite, -5),
        "end": (0, 1, 2, 9),
    }
    tolerance = {"tolerance": ulp(4)}
    for op in ("ParameterizedTruncatedNormal", "StatelessParameterizedTruncatedNormal"):
        suite = Suite(folder, "random", op)
        stateless = op.startswith("Stateless")

        def add(name, shape, parameters, add=suite.case, **more):
            inputs = [np.int32(shape), *([SEEDS["int32"]] if stateless else []), *parameters]
            attrs = {} if stateless else attrs_of((9, 10))
            add(name, inputs, attrs, const=[0], **more)

        for dtype in ("half", "float", "double"):
            for label, of in forms.items():
                add(f"{dtype}_{label}", [7, 3], [array(x, dtype) for x in of], **tolerance)
                add(f"{dtype}_{label}_long", [257], [array(x, dtype) for x in of], **tolerance)
            table = [array(x, dtype) for x in zip(*forms.values())]
            add(f"{dtype}_each", [5, 8] if stateless else [8, 5], table, **tolerance)
            mixed = [table[0][:1], array(2, dtype), array(-1, dtype), array([1, 2, 3], dtype)]
            add(f"{dtype}_mixed", [5, 3] if stateless else [3, 5], mixed, **tolerance)
            add(f"{dtype}_empty", [0, 3], [array(x, dtype) for x in forms["normal"]])
            if stateless:
                square = [array([[0], [1]], dtype), array(1, dtype), array([-1, -2, -3], dtype), array(4, dtype)]
                add(f"{dtype}_broadcast", [4, 2, 3], square, **tolerance)
        plain = [np.float32(x) for x in (0, 1, -1, 1)]
        for name, at, value in (("deviation", 1, -1), ("descending", 3, -2), ("nan", 1, np.nan)):
            wrong = [np.float32(value) if i == at else x for i, x in enumerate(plain)]
            add(name, [3], wrong, suite.error)
        add("infinite", [3], [*plain[:2], np.float32(-np.inf), np.float32(np.inf)], suite.error)
        add("length", [3], [np.zeros(2, np.float32), *plain[1:]], suite.error)
        if stateless:
            suite.error("three_seeds", [np.int32([3]), np.int32([1, 2, 3]), *plain], const=[0])
        else:
            add("no_dimensions", [], plain, suite.error)
            add("matrix", [2, 2], [np.zeros((2, 2), np.float32), *plain[1:]], suite.error)
        yield suite.finish()


def choices(folder):
    """StatelessMultinomial and StatelessShuffle."""
    suite = Suite(folder, "random", "StatelessMultinomial")
    for dtype in FLOATS:
        logits = values(seeded("StatelessMultinomial", dtype), dtype, (3, 11))
        for out in ("int32", "int64"):
            for label, seed in SEEDS.items():
                suite.case(f"{dtype}_{out}_{label}", [logits, np.int32(13), seed], {"output_dtype": out}, const=[1])
    rows = np.float32([[0, -np.inf, 0], [np.nan, 1, 2], [100, 0, -100]])
    suite.case("special", [rows, np.int32(16), SEEDS["int32"]], const=[1])
    suite.case("no_samples", [rows, np.int32(0), SEEDS["int32"]], const=[1])
    suite.case("no_rows", [rows[:0], np.int32(4), SEEDS["int32"]], const=[1])
    suite.error("vector", [rows[0], np.int32(4), SEEDS["int32"]], const=[1])
    suite.error("negative", [rows, np.int32(-1), SEEDS["int32"]], const=[1])
    suite.error("no_classes", [np.zeros((2, 0), np.float32), np.int32(1), SEEDS["int32"]], const=[1])
    suite.error("three_seeds", [rows, np.int32(1), np.int32([1, 2, 3])], const=[1])
    yield suite.finish()
    suite = Suite(folder, "random", "StatelessShuffle")
    for dtype in ANY + COMPLEX:
        options = as_signed(dtype) if dtype in QUANTISED else {}
        x = values(seeded("StatelessShuffle", dtype), dtype, (7, 3))
        if not options:
            suite.case(f"{dtype}_rows", [x, KEY, COUNTER, np.int32(1)], const=[3])
    for label, x in {
        "vector": np.arange(1031, dtype=np.int32),
        "scalar": np.float32(3),
        "one": np.float32([[1, 2]]),
        "empty": np.zeros((0, 3), np.float32),
        "empty_rows": np.zeros((4, 0), np.float32),
    }.items():
        for alg in (1, 3):
            suite.case(f"{label}_alg{alg}", [x, KEY, COUNTER, np.int32(alg)], const=[3])
    suite.error("alg", [np.ones(3), KEY, COUNTER, np.int32(2)], const=[3])
    suite.error("key", [np.ones(3), np.uint64([1, 2]), COUNTER, np.int32(1)], const=[3])
    yield suite.finish()


def indices(folder):
    """RandomIndexShuffle and NonDeterministicInts."""
    suite = Suite(folder, "random", "RandomIndexShuffle")
    for dtype in ("int32", "uint32", "int64", "uint64"):
        info = np.iinfo(dtype)
        for kind in ("int32", "uint32", "int64", "uint64"):
            seed = array([1, 2, 3], kind)
            for last in (1, 9, 70000, info.max):
                index = np.asarray([0, 1, min(last, 7), last // 3, last], dtype)
                suite.case(f"{dtype}_{kind}_{last}", [index, seed, np.asarray(last, dtype)])
        one = [np.asarray(5, dtype), np.int32([-1, 2, 3]), np.asarray(9, dtype)]
        suite.case(f"{dtype}_scalar", one)
        suite.case(f"{dtype}_zero", [np.asarray(0, dtype), one[1], np.asarray(0, dtype)])
        for rounds in (6, 8, 20):
            suite.case(f"{dtype}_{rounds}_rounds", one, {"rounds": rounds})
        suite.case(f"{dtype}_seeds", [one[0], np.int64([[1, 2, 3], [2**33, 5, 6]]), one[2]])
        suite.case(f"{dtype}_lasts", [one[0], one[1], np.asarray([9, 10, 99], dtype)])
    suite.error("matrix", [np.zeros((2, 2), np.int32), np.int32([1, 2, 3]), np.int32(9)])
    suite.error("seeds", [np.int32([1, 2]), np.int32([1, 2]), np.int32(9)])
    suite.error("lengths", [np.int32([1, 2]), np.int32([1, 2, 3]), np.int32([9, 9, 9])])
    yield suite.finish()
    suite = Suite(folder, "random", "NonDeterministicInts")
    for dtype in ("int32", "int64", "uint32", "uint64"):
        for shape in ([], [7], [3, 5], [0, 3]):
            attrs = {"dtype": dtype}
            suite.case(f"{dtype}_{len(shape)}_{int(np.prod(shape))}", [np.int32(shape)], attrs, const=[0], shape_only=(0,))
        suite.case(f"{dtype}_wide", [np.int64([2, 3])], {"dtype": dtype}, const=[0], shape_only=(0,))
    suite.error("negative", [np.int32([-1])], {"dtype": "int32"}, const=[0])
    yield suite.finish()


GROUPS = [poisson, binomial, gamma, bounded, choices, indices]
