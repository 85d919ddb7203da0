"""MaxPool and AvgPool."""

import numpy as np

from .conv import window_attrs
from .data import FLOATS, NUMBERS, array, seeded, small, specials, values
from .layout import as_nhwc, by_name, in_format, to_nchw, to_nhwc, windows
from .suite import EXACT, Suite, ulp

# label: (image NHWC, window, strides, padding)
POOLS = {
    "one": ((1, 1, 1, 1), (1, 1), (1, 1), "VALID"),
    "halves": ((2, 4, 6, 3), (2, 2), (2, 2), "VALID"),
    "halves_odd": ((2, 5, 7, 3), (2, 2), (2, 2), "VALID"),
    "halves_odd_same": ((2, 5, 7, 3), (2, 2), (2, 2), "SAME"),
    "overlap": ((1, 7, 8, 5), (3, 3), (2, 2), "SAME"),
    "overlap_valid": ((1, 7, 8, 5), (3, 3), (2, 2), "VALID"),
    "unit_stride": ((1, 5, 5, 2), (3, 3), (1, 1), "SAME"),
    "window_differs": ((1, 5, 7, 2), (2, 3), (1, 2), "SAME"),
    "stride_over_window": ((1, 9, 9, 2), (2, 2), (3, 3), "VALID"),
    "whole_image": ((2, 5, 4, 3), (5, 4), (1, 1), "VALID"),
    "window_over_image": ((1, 3, 3, 2), (5, 5), (1, 1), "SAME"),
    "row": ((1, 1, 11, 2), (1, 3), (1, 2), "SAME"),
    "channels": ((1, 4, 4, 33), (2, 2), (2, 2), "VALID"),
    "empty_batch": ((0, 4, 4, 2), (2, 2), (2, 2), "SAME"),
    "nothing_left": ((1, 4, 2, 2), (3, 3), (1, 1), "VALID"),
    "large": ((1, 13, 11, 16), (3, 3), (2, 2), "SAME"),
}
FEW = ["halves_odd_same", "overlap_valid", "unit_stride", "empty_batch", "channels"]
EXPLICIT = {
    "explicit": ((1, 5, 6, 2), (3, 3), (1, 1), ((1, 0), (2, 1))),
    "explicit_stride": ((1, 5, 6, 2), (3, 3), (2, 2), ((0, 2), (1, 1))),
}


def exact_average(case):
    """The mean over the pixels of each window; padding is not counted."""
    x = np.asarray(case.inputs[0]).astype(np.float64)
    first = case.attrs["data_format"] == "NCHW"
    x = to_nhwc(x) if first else x
    views, real = windows(x, case.attrs, by_name(case.attrs["ksize"], case.attrs["data_format"]))
    count = real.sum(axis=(3, 4))
    pair = [views.sum(axis=(3, 4)) / count, np.abs(views).sum(axis=(3, 4)) / count]
    return [tuple(to_nchw(p) for p in pair) if first else tuple(pair)]


def pool_case(suite, dtype, name, spec, data_format="NHWC"):
    image, window, strides, padding = spec
    x = values(seeded(suite.op, dtype, name), dtype, image)
    attrs = window_attrs(strides, padding, data_format) | {"ksize": in_format(window, data_format)}
    options = {"tolerance": EXACT if suite.op == "MaxPool" else None}
    if suite.op == "AvgPool":
        options |= {"reference": exact_average, "terms": int(np.prod(window))}
    if data_format == "NCHW":
        x = to_nchw(x)
        options |= {"via": "transpose", "run_as": as_nhwc}
    suite.case(f"{dtype}_{name}", [x], attrs, **options)


def special_pool(suite, dtype):
    """Each special value in a window of its own, beside it ordinary numbers.

    No NaN for MaxPool: whether TensorFlow's CPU returns it depends on its place in the window.
    """
    special = specials(dtype)
    if suite.op == "MaxPool":
        special = special[~np.isnan(special.astype(np.float32))]
    x = np.tile(array(np.array([1, -2, 0.5, -0.25]), dtype), len(special)).reshape(len(special), 2, 2, 1)
    x[:, 0, 1, 0] = special
    attrs = window_attrs((2, 2), "VALID", "NHWC") | {"ksize": [1, 2, 2, 1]}
    suite.case(f"{dtype}_special", [x], attrs, tolerance=ulp(0 if suite.op == "MaxPool" else 2))


def pool_cases(suite, dtype):
    for label in POOLS if dtype in ("float", "int32") else FEW:
        pool_case(suite, dtype, label, POOLS[label])
    nchw = ("halves", "overlap", "window_differs", "unit_stride", "empty_batch")
    for label in nchw if dtype == "float" else ("overlap",):
        pool_case(suite, dtype, f"{label}_nchw", POOLS[label], "NCHW")
    if dtype in FLOATS:
        special_pool(suite, dtype)


def max_pool(folder):
    """MaxPool."""
    suite = Suite(folder, "nn", "MaxPool")
    for dtype in [d for d in NUMBERS if d not in ("uint32", "uint64")]:
        pool_cases(suite, dtype)
        for label, spec in EXPLICIT.items():
            pool_case(suite, dtype, label, spec)
        pool_case(suite, dtype, "explicit_stride_nchw", EXPLICIT["explicit_stride"], "NCHW")
    x = values(seeded("MaxPool", "depth"), "float", (2, 3, 2, 6))
    suite.case("float_depth", [x], {"ksize": [1, 1, 1, 3], "strides": [1, 1, 1, 3], "padding": "VALID"})
    negative = small(seeded("MaxPool", "negative"), "float", (1, 3, 3, 1), -9, -1)
    suite.case("float_padding_never_wins", [negative], window_attrs((1, 1), "SAME", "NHWC") | {"ksize": [1, 3, 3, 1]})
    pool_errors(suite)
    x = np.ones((1, 4, 4, 2), np.float32)
    good = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "EXPLICIT"}
    suite.error("explicit_missing", [x], good)
    suite.error("explicit_negative", [x], good | {"explicit_paddings": [0, 0, -1, 0, 0, 0, 0, 0]})
    suite.error("explicit_batch", [x], good | {"explicit_paddings": [1, 0, 0, 0, 0, 0, 0, 0]})
    suite.error("explicit_over_window", [x], good | {"explicit_paddings": [0, 0, 2, 2, 2, 2, 0, 0]})
    yield suite.finish()


def average_pool(folder):
    """AvgPool."""
    suite = Suite(folder, "nn", "AvgPool")
    for dtype in FLOATS:
        pool_cases(suite, dtype)
    pool_errors(suite)
    yield suite.finish()


def pool_errors(suite):
    x = np.ones((1, 4, 4, 2), np.float32)
    good = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "VALID"}
    suite.error("rank", [x[0]], good)
    suite.error("window_too_large", [x], good | {"ksize": [1, 6, 6, 1]})
    suite.error("window_too_wide", [x], good | {"ksize": [1, 1, 6, 1]})
    suite.error("window_too_large_without_images", [x[:0]], good | {"ksize": [1, 6, 1, 1]})
    suite.case("float_nothing_left_stride", [x], good | {"ksize": [1, 6, 1, 1], "strides": [1, 3, 3, 1]})
    suite.error("ksize_length", [x], good | {"ksize": [2, 2]})
    suite.error("ksize_zero", [x], good | {"ksize": [1, 0, 2, 1]})
    suite.error("ksize_batch", [x], good | {"ksize": [2, 2, 2, 1]})
    suite.error("strides_length", [x], good | {"strides": [1, 1]})
    suite.error("stride_zero", [x], good | {"strides": [1, 0, 1, 1]})
    suite.error("stride_negative", [x], good | {"strides": [1, -1, -1, 1]})
    suite.error("stride_batch", [x], good | {"strides": [2, 1, 1, 1]})
    suite.error("padding_name", [x], good | {"padding": "FULL"})
    suite.error("format", [x], good | {"data_format": "NWHC"})


GROUPS = [max_pool, average_pool]
