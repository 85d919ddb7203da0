"""Strings of rows: sequences of neighbours, strings joined by segments, and fingerprints."""

import numpy as np

from .data import COMPLEX, FLOATS, INTS, seeded, strings, values
from .suite import Suite
from .text import EMPTY, word, words

PADS = {"separator": "|", "left_pad": "<", "right_pad": ">"}


def sequences(folder):
    """StringNGrams."""
    suite = Suite(folder, "string", "StringNGrams")
    texts, splits = words("a", "bb", "", "d", "é", "f", "g"), [0, 2, 2, 3, 7]

    def attrs(widths, pads, keeps, **given):
        return PADS | {"ngram_widths": widths, "pad_width": pads, "preserve_short_sequences": keeps} | given

    for widths in ([1], [2], [3], [5], [2, 3], [4, 1], []):
        for pads in (-1, 0, 1, 3):
            for keeps in (False, True):
                # Without widths, short sequences have no width with as many pads as there may be.
                if widths or not keeps or pads >= 0:
                    name = f"{'_'.join(map(str, widths)) or 'none'}_pads_{pads}_{keeps}".replace("-", "m")
                    suite.case(name, [texts, np.int64(splits)], attrs(widths, pads, keeps))
    suite.case("int32", [texts, np.int32(splits)], attrs([2], 1, False))
    suite.case("no_separator", [texts, np.int64(splits)], attrs([3], 2, False, separator="", left_pad="", right_pad="xy"))
    suite.case("no_data", [EMPTY, np.int64([0, 0, 0])], attrs([2], 1, False))
    suite.case("no_splits", [EMPTY, np.int64([])], attrs([2], 1, False))
    suite.error("first", [texts, np.int64([1, 7])], attrs([2], 0, False))
    suite.error("last", [texts, np.int64([0, 6])], attrs([2], 0, False))
    suite.error("beyond", [texts, np.int64([0, 8])], attrs([2], 0, False))
    suite.error("order", [texts, np.int64([0, 3, 2, 7])], attrs([2], 0, False))
    suite.error("width", [texts, np.int64(splits)], attrs([0], 0, False))
    suite.error("matrix", [texts.reshape(1, 7), np.int64([0, 1])], attrs([2], 0, False))
    suite.error("no_widths", [texts, np.int64(splits)], attrs([], -1, True))
    yield suite.finish()


def segments(folder):
    """UnsortedSegmentJoin."""
    suite = Suite(folder, "string", "UnsortedSegmentJoin")
    rows = words("a", "b", "", "d", "ee", "f", "g", "", shape=(4, 2))
    for separator in ("", "-", ", "):
        attrs = {"separator": separator}
        for index in (np.int32, np.int64):
            for number in (np.int32, np.int64):
                name = f"{len(separator)}_{index.__name__}_{number.__name__}"
                suite.case(f"rows_{name}", [rows, index([2, 0, 2, 0]), number(4)], attrs, const=[2])
        suite.case(f"elements_{len(separator)}", [rows, np.int32([[0, 1], [1, 1], [0, 2], [2, 2]]), np.int32(3)], attrs, const=[2])
        suite.case(f"vector_{len(separator)}", [rows.ravel(), np.int32([1, 1, 1, 0, 0, 3, 3, 3]), np.int32(5)], attrs, const=[2])
    suite.case("none", [EMPTY, np.int32([]), np.int32(2)], const=[2])
    suite.case("no_columns", [EMPTY.reshape(3, 0), np.int32([0, 1, 0]), np.int32(2)], const=[2])
    suite.case("no_segments", [EMPTY, np.int32([]), np.int32(0)], const=[2])
    suite.error("beyond", [rows, np.int32([0, 1, 2, 4]), np.int32(4)], const=[2])
    suite.error("negative", [rows, np.int32([0, 1, 2, -1]), np.int32(4)], const=[2])
    suite.error("scalar", [rows, np.int32(0), np.int32(4)], const=[2])
    suite.error("shape", [rows, np.int32([0, 1, 2]), np.int32(4)], const=[2])
    suite.error("count", [rows, np.int32([0, 1, 2, 3]), np.int32(-4)], const=[2])
    yield suite.finish()


def fingerprints(folder):
    """Fingerprint."""
    suite = Suite(folder, "string", "Fingerprint")
    method = word("farmhash64")
    for dtype in ["bool", *FLOATS, *INTS, *COMPLEX]:
        suite.case(dtype, [values(seeded("fingerprint", dtype), dtype, (3, 5)), method], const=[1])
    for shape in ((4,), (4, 1), (3, 4), (2, 3, 2), (0, 3)):
        texts = strings(seeded("fingerprint", *shape), shape)
        suite.case(f"string_{'x'.join(map(str, shape))}", [texts, method], const=[1])
    for length in (0, 1, 3, 8, 17, 33, 64, 65, 200):
        suite.case(f"bytes_{length}", [np.arange(2 * length, dtype=np.uint8).reshape(2, length), method], const=[1])
    suite.error("scalar", [np.float32(1), method], const=[1])
    suite.error("method", [np.float32([1]), word("md5")], const=[1])
    suite.error("methods", [np.float32([1]), words("farmhash64")], const=[1])
    yield suite.finish()


GROUPS = [sequences, segments, fingerprints]
