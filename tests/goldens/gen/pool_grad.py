"""Gradients of pooling over three dimensions, and second gradients of the maximum."""

import numpy as np

from .data import NUMBERS, array, normal, seeded, small
from .layout import to_nchw, to_nhwc
from .pool import POOLS
from .pool_more import SOME, VOLUMES, as_last, first_as_last, pooled
from .suite import Suite
from .windows import around, back, is_first, last, last_format, patches, places, spatial, spread


def form(attrs):
    """What the helpers of windows.py need of a case."""
    return type("Case", (), {"attrs": attrs, "inputs": []})


def maxima(x, attrs, window):
    """The output of a pooling of channels last, 0 where a window holds nothing."""
    index, out = places(form(attrs), x.shape[1:-1], window)
    views = patches(x.astype(np.float64), index)
    y = np.where((index >= 0)[None, :, :, None], views, -np.inf).max(axis=2, initial=-np.inf)
    return np.where(np.isfinite(y), y, 0).reshape(x.shape[0], *out, x.shape[-1])


def all_last(case):
    """A form with channels first by way of channels last; every input is an image or a list of sizes."""
    _, attrs, turn = as_last(type("Case", (), {"attrs": case.attrs, "inputs": [np.zeros((1,) * len(case.attrs["ksize"]))]}))
    order = [0, *range(2, len(case.attrs["ksize"])), 1]
    return [to_nhwc(x) if x.ndim > 1 else x[order] for x in case.inputs], attrs, turn


def volume_attrs(spec, data_format):
    _, window, strides, padding = spec
    attrs = {"ksize": around(window, data_format), "strides": around(strides, data_format)}
    return attrs | {"padding": padding, "data_format": data_format}


def max_volumes(folder):
    """MaxPool3DGrad and MaxPool3DGradGrad."""
    for op in ("MaxPool3DGrad", "MaxPool3DGradGrad"):
        suite = Suite(folder, "nn_grad", op)
        for dtype in ("bfloat16", "float"):
            for label, spec in VOLUMES.items():
                if (op, label) == ("MaxPool3DGradGrad", "empty_batch"):
                    continue  # TensorFlow refuses it; here it gives no elements.
                for data_format in ("NDHWC", "NCDHW"):
                    rng = seeded(op, dtype, label)
                    # Small whole numbers: windows with several greatest elements, and sums that round nowhere.
                    x = small(rng, dtype, spec[0], -4, 5)
                    y = array(maxima(x, volume_attrs(spec, "NDHWC"), spec[1]), dtype)
                    dy = small(rng, dtype, (x if op.endswith("GradGrad") else y).shape, -9, 10)
                    options, name = {}, f"{dtype}_{label}"
                    inputs = [x, y, dy]
                    if data_format == "NCDHW":
                        inputs, name = [to_nchw(v) for v in inputs], f"{name}_ncdhw"
                        options |= {"via": "transpose", "run_as": all_last}
                    suite.case(name, inputs, volume_attrs(spec, data_format), **options)
        x, y = np.ones((1, 4, 4, 4, 2), np.float32), np.ones((1, 2, 2, 2, 2), np.float32)
        dy = x if op.endswith("GradGrad") else y
        good = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
        suite.case("float_other_output", [x, 2 * y, dy], good)
        suite.error("rank", [x[0], y, dy], good)
        suite.error("output_shape", [x, y[:, :1], dy], good)
        suite.error("grad_shape", [x, y, dy[:, :1]], good)
        suite.error("ksize_depth", [x, y, dy], good | {"ksize": [1, 2, 2, 2, 2]})
        suite.error("ksize_batch", [x, y, dy], good | {"ksize": [2, 2, 2, 2, 1]})
        yield suite.finish()


def exact_average(case):
    """Each output's gradient in equal parts to what its window holds."""
    dy = last(case, np.asarray(case.inputs[1]).astype(np.float64))
    sizes = list(case.inputs[0])
    shape = [sizes[i] for i in (0, 2, 3, 4, 1)] if is_first(case) else sizes
    index, _ = places(case, shape[1:4], spatial(case.attrs["ksize"], case.attrs["data_format"]))
    parts = dy.reshape(dy.shape[0], len(index), 1, dy.shape[-1]) / np.maximum((index >= 0).sum(axis=1), 1)[:, None, None]
    parts = np.broadcast_to(parts, (*parts.shape[:2], index.shape[1], parts.shape[3]))
    return [tuple(back(case, spread(part, index, shape)) for part in (parts, np.abs(parts)))]


def average_volumes(folder):
    """AvgPool3DGrad."""
    suite = Suite(folder, "nn_grad", "AvgPool3DGrad")
    for dtype in ("bfloat16", "float"):
        for label, spec in VOLUMES.items():
            for data_format in ("NDHWC", "NCDHW"):
                image, window, _, _ = spec
                _, out = places(form(volume_attrs(spec, "NDHWC")), image[1:4], window)
                dy = normal(seeded("AvgPool3DGrad", dtype, label), dtype, (image[0], *out, image[4]))
                sizes, name = np.int32(image), f"{dtype}_{label}"
                options = {"reference": exact_average, "terms": int(np.prod(window)), "stepwise": True, "const": (0,)}
                if data_format == "NCDHW":
                    dy, sizes, name = to_nchw(dy), sizes[[0, 4, 1, 2, 3]], f"{name}_ncdhw"
                    options |= {"via": "transpose", "run_as": all_last}
                suite.case(name, [sizes, dy], volume_attrs(spec, data_format), **options)
    dy, sizes = np.ones((1, 2, 2, 2, 2), np.float32), np.int32([1, 4, 4, 4, 2])
    good = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
    suite.error("sizes_length", [sizes[1:], dy], good, const=(0,))
    suite.error("sizes_negative", [np.int32([1, -4, 4, 4, 2]), dy], good, const=(0,))
    suite.error("rank", [sizes, dy[0]], good, const=(0,))
    suite.error("depth", [sizes, dy], good | {"ksize": [1, 2, 2, 2, 2]}, const=(0,))
    yield suite.finish()


def planar(folder):
    """MaxPoolGradV2, MaxPoolGradGrad and MaxPoolGradGradV2."""
    for op in ("MaxPoolGradV2", "MaxPoolGradGrad", "MaxPoolGradGradV2"):
        suite = Suite(folder, "nn_grad", op)
        lists, second = op.endswith("V2"), "GradGrad" in op
        const = {"const": (3, 4)} if lists else {}

        def with_lists(attrs, inputs):
            """Windows and strides as inputs where the op has them so."""
            if not lists:
                return inputs, attrs
            rest = {name: value for name, value in attrs.items() if name not in ("ksize", "strides")}
            return [*inputs, np.int32(attrs["ksize"]), np.int32(attrs["strides"])], rest

        def turned(case):
            inputs = [to_nhwc(x) if x.ndim == 4 else x[[0, 2, 3, 1]] for x in case.inputs]
            return inputs, first_as_last(case)[1], lambda results: [to_nchw(r) for r in results]

        def add(dtype, label, data_format="NHWC"):
            spec = POOLS[label]
            rng = seeded(op, dtype, label)
            x = small(rng, dtype, spec[0], -4, 5) if dtype[0] != "u" else small(rng, dtype, spec[0], 0, 5)
            y = array(maxima(x, pooled(spec), spec[1]), dtype)
            dy = small(rng, dtype, (x if second else y).shape, 0 if dtype[0] == "u" else -9, 10)
            images, options, name = [x, y, dy], dict(const), f"{dtype}_{label}"
            if data_format == "NCHW":
                images, name = [to_nchw(v) for v in images], f"{name}_nchw"
                options |= {"via": "transpose", "run_as": turned}
            inputs, attrs = with_lists(pooled(spec, data_format), images)
            suite.case(name, inputs, attrs, **options)

        for dtype in NUMBERS:
            for label in POOLS if dtype == "float" else SOME[:2]:
                if label not in ("nothing_left", "large"):
                    add(dtype, label)
            add(dtype, "overlap", "NCHW")
        x, y = np.ones((1, 4, 4, 2), np.float32), np.ones((1, 2, 2, 2), np.float32)
        dy = x if second else y
        good = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
        nan = np.where(np.arange(32).reshape(x.shape) % 5 == 0, np.nan, x)
        if second:
            inputs, attrs = with_lists(good, [np.float32(nan), y, np.float32(np.arange(32).reshape(x.shape))])
            suite.case("float_nan", inputs, attrs, **const)
            inputs, attrs = with_lists(good, [x, 2 * y, dy])
            suite.case("float_other_output", inputs, attrs, **const)
        wrong = {
            "rank": ([x[0], y, dy], good),
            "output_shape": ([x, y[:, :1], dy], good),
            "grad_shape": ([x, y, dy[:, :1]], good),
            "depth": ([x, x[..., :1], x if second else x[..., :1]], good | {"ksize": [1, 1, 1, 2], "strides": [1, 1, 1, 2]}),
            "ksize_batch": ([x, y, dy], good | {"ksize": [2, 2, 2, 1]}),
            "ksize_length": ([x, y, dy], good | {"ksize": [1, 2, 2]}),
        }
        for name, (inputs, attrs) in wrong.items():
            inputs, attrs = with_lists(attrs, inputs)
            suite.error(name, inputs, attrs, **const)
        yield suite.finish()


def picked(case):
    """The elements of the gradient at the given places, by GatherV2."""
    x, grad, at = case.inputs
    skipped = 0 if case.attrs.get("include_batch_in_index") else np.arange(x.shape[0])[:, None, None, None] * int(np.prod(x.shape[1:]))
    return [grad.reshape(-1), at.astype(np.int64) + skipped, np.int32(0)], {}, lambda results: results


def with_argmax(folder):
    """MaxPoolGradGradWithArgmax, for which TensorFlow's CPU has no kernel."""
    suite = Suite(folder, "nn_grad", "MaxPoolGradGradWithArgmax", stand_in="GatherV2")
    for dtype in NUMBERS:
        for label in [*SOME[:3], "window_differs"] if dtype == "float" else SOME[:1]:
            for batch in (False, True):
                spec = POOLS[label]
                rng = seeded("SecondArgmax", dtype, label)
                x = small(rng, dtype, spec[0], 0, 5)
                _, out = places(form(pooled(spec)), spec[0][1:3], spec[1])
                end = x.size if batch else x.size // spec[0][0]
                at = rng.integers(0, end, (spec[0][0], *out, spec[0][3])).astype(np.int64 if batch else np.int32)
                attrs = {name: value for name, value in pooled(spec).items() if name != "data_format"}
                name = f"{dtype}_{label}_{'input' if batch else 'image'}"
                inputs = [x, small(rng, dtype, x.shape, 0, 10), at]
                suite.case(name, inputs, attrs | {"include_batch_in_index": batch}, via="GatherV2", run_as=picked)
    yield suite.finish()


GROUPS = [max_volumes, average_volumes, planar, with_argmax]
