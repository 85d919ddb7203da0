"""MaxPoolV2, MaxPoolWithArgmax, pooling over three dimensions, and the gradients of pooling."""

import numpy as np

from .conv import window_attrs
from .data import FLOATS, NUMBERS, array, normal, seeded, small, values
from .layout import in_format, reordered, to_nchw, to_nhwc
from .pool import EXPLICIT, POOLS
from .suite import Suite
from .windows import around, back, is_first, last, last_format, patches, places, spatial, spread

SOME = ["halves_odd_same", "overlap_valid", "unit_stride", "empty_batch"]


def pooled(spec, data_format="NHWC"):
    _, window, strides, padding = spec
    return window_attrs(strides, padding, data_format) | {"ksize": in_format(window, data_format)}


def max_pool_v2(folder):
    """MaxPoolV2."""
    suite = Suite(folder, "nn", "MaxPoolV2")

    def as_last(case):
        """NCHW by way of NHWC, windows and strides included."""
        attrs = reordered(case.attrs)
        order = ["NCHW".index(letter) for letter in "NHWC"]
        inputs = [to_nhwc(case.inputs[0]), *(x[order] for x in case.inputs[1:])]
        return inputs, attrs, lambda results: [to_nchw(r) for r in results]

    def add(dtype, label, data_format="NHWC"):
        x = values(seeded("MaxPoolV2", dtype, label), dtype, POOLS[label][0])
        attrs = pooled(POOLS[label], data_format)
        lists = [np.int32(attrs.pop("ksize")), np.int32(attrs.pop("strides"))]
        options, name = {"const": (1, 2)}, f"{dtype}_{label}"
        if data_format == "NCHW":
            x, name = to_nchw(x), f"{name}_nchw"
            options |= {"via": "transpose", "run_as": as_last}
        suite.case(name, [x, *lists], attrs, **options)

    for dtype in [d for d in NUMBERS if d not in ("uint32", "uint64")]:
        for label in [*SOME, "window_differs", "nothing_left"] if dtype == "float" else SOME[:2]:
            add(dtype, label)
        add(dtype, "window_differs", "NCHW")
    x, two, one = np.ones((1, 4, 4, 2), np.float32), np.int32([1, 2, 2, 1]), np.int32([1, 1, 1, 1])
    good = {"padding": "VALID"}
    suite.case("float_depth", [x, np.int32([1, 1, 1, 2]), np.int32([1, 1, 1, 2])], good, const=(1, 2))
    suite.error("rank", [x[0], two, one], good, const=(1, 2))
    suite.error("ksize_length", [x, two[:3], one], good, const=(1, 2))
    suite.error("strides_length", [x, two, one[:2]], good, const=(1, 2))
    suite.error("ksize_zero", [x, np.int32([1, 0, 2, 1]), one], good, const=(1, 2))
    suite.error("stride_zero", [x, two, np.int32([1, 0, 1, 1])], good, const=(1, 2))
    suite.error("window_too_large", [x, np.int32([1, 6, 6, 1]), one], good, const=(1, 2))
    yield suite.finish()


def argmax(folder):
    """MaxPoolWithArgmax and MaxPoolGradWithArgmax."""
    forward = Suite(folder, "nn", "MaxPoolWithArgmax")
    for dtype in NUMBERS:
        for label in [*SOME[:3], "window_differs", "overlap"] if dtype == "float" else SOME[:2]:
            for batch in (False, True):
                x = small(seeded("Argmax", dtype, label), dtype, POOLS[label][0], -9, 10)
                attrs = pooled(POOLS[label]) | {"include_batch_in_index": batch}
                del attrs["data_format"]
                attrs["Targmax"] = "int32" if batch else "int64"
                forward.case(f"{dtype}_{label}_{'input' if batch else 'image'}", [x], attrs)
        if dtype in FLOATS:
            nan, inf = np.nan, np.inf
            x = array([[nan, 1, 2, nan], [1, nan, 2, 0], [nan] * 4, [-inf] * 4, [1, 2, 2, -inf]], dtype)
            attrs = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID", "Targmax": "int64"}
            forward.case(f"{dtype}_special", [x.reshape(5, 2, 2, 1)], attrs)
    x = np.ones((1, 4, 4, 2), np.float32)
    good = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID", "Targmax": "int64"}
    forward.error("empty", [x[:0]], good)
    forward.error("rank", [x[0]], good)
    forward.error("ksize_length", [x], good | {"ksize": [2, 2]})
    forward.error("ksize_batch", [x], good | {"ksize": [2, 2, 2, 1]})
    forward.error("window_too_large", [x], good | {"ksize": [1, 6, 6, 1], "strides": [1, 1, 1, 1]})
    yield forward.finish()
    suite = Suite(folder, "nn_grad", "MaxPoolGradWithArgmax")
    for case in forward.cases:
        if case.attrs["Targmax"] != "int64" and "include_batch_in_index" not in case.attrs:
            continue
        dtype, where = case.name.split("_", 1)
        if where == "special":
            continue
        dy = small(seeded("ArgmaxGrad", case.name), dtype, case.outputs[0].shape, -9, 10)
        inputs = [case.inputs[0], dy, case.outputs[1].astype(np.int64)]
        suite.case(case.name, inputs, case.attrs | {"Targmax": "int64"})
    dy, places_ = np.ones((1, 2, 2, 2), np.float32), np.zeros((1, 2, 2, 2), np.int64)
    suite.error("grad_shape", [x, dy[:, :1], places_], good)
    suite.error("argmax_shape", [x, dy, places_[:, :1]], good)
    suite.error("rank", [x[0], dy, places_], good)
    yield suite.finish()


VOLUMES = {
    "one": ((1, 1, 1, 1, 1), (1, 1, 1), (1, 1, 1), "VALID"),
    "halves": ((2, 4, 4, 6, 3), (2, 2, 2), (2, 2, 2), "VALID"),
    "same": ((1, 3, 5, 4, 2), (2, 3, 3), (2, 2, 1), "SAME"),
    "overlap": ((1, 4, 5, 5, 3), (3, 2, 3), (1, 1, 2), "VALID"),
    "window_over_image": ((1, 2, 3, 2, 2), (5, 5, 5), (1, 1, 1), "SAME"),
    "empty_batch": ((0, 2, 3, 2, 2), (2, 2, 2), (1, 1, 1), "SAME"),
}


def exact_average(case):
    """The mean over what a window holds of the image."""
    x = last(case, np.asarray(case.inputs[0]).astype(np.float64))
    index, out = places(case, x.shape[1:-1], spatial(case.attrs["ksize"], case.attrs["data_format"]))
    count = np.maximum((index >= 0).sum(axis=1), 1)[:, None]
    views = patches(x, index)
    shape = (x.shape[0], *out, x.shape[-1])
    return [tuple(back(case, (part.sum(axis=2) / count).reshape(shape)) for part in (views, np.abs(views)))]


def as_last(case):
    """Channels first by way of channels last."""
    first = case.attrs["data_format"]
    attrs = case.attrs | {"data_format": last_format(first)}
    for name in ("ksize", "strides"):
        attrs[name] = around(spatial(case.attrs[name], first), attrs["data_format"])
    return [to_nhwc(case.inputs[0])], attrs, lambda results: [to_nchw(r) for r in results]


def volumes(folder):
    """MaxPool3D and AvgPool3D."""
    for op in ("MaxPool3D", "AvgPool3D"):
        suite = Suite(folder, "nn", op)
        for dtype in ("bfloat16", "float"):
            for label, (shape, window, strides, padding) in VOLUMES.items():
                for data_format in ("NDHWC", "NCDHW"):
                    x = normal(seeded(op, dtype, label), dtype, shape)
                    attrs = {"ksize": around(window, data_format), "strides": around(strides, data_format)}
                    attrs |= {"padding": padding, "data_format": data_format}
                    options, name = {}, f"{dtype}_{label}"
                    if op == "AvgPool3D":
                        options |= {"reference": exact_average, "terms": int(np.prod(window)), "stepwise": True}
                    if data_format == "NCDHW":
                        x, name = to_nchw(x), f"{name}_ncdhw"
                        options |= {"via": "transpose", "run_as": as_last}
                    suite.case(name, [x], attrs, **options)
        x = np.ones((1, 4, 4, 4, 2), np.float32)
        good = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 1, 1, 1], "padding": "VALID"}
        suite.error("rank", [x[0]], good)
        suite.error("ksize_depth", [x], good | {"ksize": [1, 2, 2, 2, 2]})
        suite.error("ksize_batch", [x], good | {"ksize": [2, 2, 2, 2, 1]})
        suite.error("stride_batch", [x], good | {"strides": [2, 1, 1, 1, 1]})
        suite.error("stride_zero", [x], good | {"strides": [1, 0, 1, 1, 1]})
        suite.error("window_too_large", [x], good | {"ksize": [1, 6, 6, 6, 1]})
        suite.case("float_nothing_left", [x], good | {"ksize": [1, 5, 1, 1, 1]})
        yield suite.finish()


def first_as_last(case):
    """A gradient of NCHW by way of NHWC; what is no image is a list of sizes."""
    turned = [to_nhwc(x) if x.ndim == 4 else x[[0, 2, 3, 1]] for x in case.inputs]
    return turned, reordered(case.attrs), lambda results: [to_nchw(r) for r in results]


def max_pool_grad(folder):
    """MaxPoolGrad."""
    suite = Suite(folder, "nn_grad", "MaxPoolGrad")

    def add(dtype, label, spec, data_format="NHWC"):
        image, window, _, _ = spec
        rng = seeded("MaxPoolGrad", dtype, label)
        # Small whole numbers: windows with several greatest elements, and sums that round nowhere.
        x = small(rng, dtype, image, -9, 10)
        attrs = pooled(spec, data_format)
        nhwc = type("Case", (), {"attrs": pooled(spec), "inputs": [x]})
        index, out = places(nhwc, image[1:3], window)
        views = patches(x.astype(np.float64), index)
        y = np.where((index >= 0)[None, :, :, None], views, -np.inf).max(axis=2, initial=-np.inf)
        y = array(np.where(np.isfinite(y), y, 0).reshape(image[0], *out, image[3]), dtype)
        inputs, options, name = [x, y, small(rng, dtype, y.shape, -9, 10)], {}, f"{dtype}_{label}"
        if data_format == "NCHW":
            inputs, name = [to_nchw(v) for v in inputs], f"{name}_nchw"
            options |= {"via": "transpose", "run_as": first_as_last}
        suite.case(name, inputs, attrs, **options)

    for dtype in NUMBERS:
        for label in POOLS if dtype == "float" else SOME:
            if label not in ("nothing_left", "large"):
                add(dtype, label, POOLS[label])
        add(dtype, "explicit", EXPLICIT["explicit"])
        for label in SOME if dtype == "float" else SOME[:1]:
            add(dtype, label, POOLS[label], "NCHW")
    x, y = np.ones((1, 4, 4, 2), np.float32), np.ones((1, 2, 2, 2), np.float32)
    good = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    suite.error("rank", [x[0], y, y], good)
    suite.error("output_shape", [x, y[:, :1], y], good)
    suite.error("grad_shape", [x, y, y[:, :1]], good)
    suite.error("depth", [x, x[..., :1], x[..., :1]], good | {"ksize": [1, 1, 1, 2], "strides": [1, 1, 1, 2]})
    suite.error("ksize_batch", [x, y, y], good | {"ksize": [2, 2, 2, 1]})
    suite.error("explicit_missing", [x, y, y], good | {"padding": "EXPLICIT"})
    yield suite.finish()


def exact_average_grad(case):
    """Each output's gradient in equal parts to what its window holds."""
    dy = last(case, np.asarray(case.inputs[1]).astype(np.float64))
    sizes = list(case.inputs[0])
    shape = [sizes[i] for i in (0, 2, 3, 1)] if is_first(case) else sizes
    index, out = places(case, shape[1:3], spatial(case.attrs["ksize"], case.attrs["data_format"]))
    parts = dy.reshape(dy.shape[0], len(index), 1, dy.shape[-1]) / np.maximum((index >= 0).sum(axis=1), 1)[:, None, None]
    parts = np.broadcast_to(parts, (*parts.shape[:2], index.shape[1], parts.shape[3]))
    return [tuple(back(case, spread(part, index, shape)) for part in (parts, np.abs(parts)))]


def average_pool_grad(folder):
    """AvgPoolGrad."""
    suite = Suite(folder, "nn_grad", "AvgPoolGrad")
    for dtype in FLOATS:
        for label, spec in POOLS.items():
            if label in ("nothing_left", "large") or dtype != "float" and label not in SOME:
                continue
            for data_format in ("NHWC", "NCHW"):
                image, window, strides, padding = spec
                case = type("Case", (), {"attrs": pooled(spec), "inputs": []})
                _, out = places(case, image[1:3], window)
                dy = normal(seeded("AvgPoolGrad", dtype, label), dtype, (image[0], *out, image[3]))
                sizes, name = np.int32(image), f"{dtype}_{label}"
                options = {"reference": exact_average_grad, "terms": int(np.prod(window)), "stepwise": True, "const": (0,)}
                if data_format == "NCHW":
                    dy, sizes, name = to_nchw(dy), sizes[[0, 3, 1, 2]], f"{name}_nchw"
                    options |= {"via": "transpose", "run_as": first_as_last}
                suite.case(name, [sizes, dy], pooled(spec, data_format), **options)
    dy, sizes = np.ones((1, 2, 2, 2), np.float32), np.int32([1, 4, 4, 2])
    good = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    suite.error("sizes_length", [sizes[1:], dy], good, const=(0,))
    suite.error("sizes_negative", [np.int32([1, -4, 4, 2]), dy], good, const=(0,))
    suite.error("rank", [sizes, dy[0]], good, const=(0,))
    suite.error("depth", [sizes, dy], good | {"ksize": [1, 1, 1, 2], "strides": [1, 1, 1, 2]}, const=(0,))
    yield suite.finish()


GROUPS = [max_pool_v2, argmax, volumes, max_pool_grad, average_pool_grad]
