"""Conv2D and DepthwiseConv2dNative."""

import numpy as np

from .data import FLOATS, array, normal, seeded, small
from .layout import as_nhwc, by_name, explicit, in_format, to_nchw, to_nhwc, windows
from .suite import Suite, ulp


def exact_conv(depthwise):
    """Reference: the sum of products over each window, and of their absolute values."""

    def reference(case):
        x, filter_ = (np.asarray(v).astype(np.float64) for v in case.inputs)
        first = case.attrs["data_format"] == "NCHW"
        x = to_nhwc(x) if first else x
        views, _ = windows(x, case.attrs, filter_.shape[:2])
        pair = [products(views, filter_, depthwise), products(np.abs(views), np.abs(filter_), depthwise)]
        return [tuple(to_nchw(p) for p in pair) if first else tuple(pair)]

    return reference


def products(views, filter_, depthwise):
    """Windows [N,r,c,h,w,C] by a filter [h,w,C,O] (or [h,w,C,multiplier]); groups where C is smaller."""
    if depthwise:
        out = np.einsum("nrchwi,hwim->nrcim", views, filter_)
        return out.reshape(*out.shape[:3], filter_.shape[2] * filter_.shape[3])
    groups = views.shape[-1] // filter_.shape[2]
    parts = zip(np.split(views, groups, axis=-1), np.split(filter_, groups, axis=-1))
    return np.concatenate([np.einsum("nrchwi,hwio->nrco", v, f) for v, f in parts], axis=-1)


# label: (image NHWC, filter, strides, padding, dilations); padding a name or ((top, bottom), (left, right))
CONVS = {
    "one": ((1, 1, 1, 1), (1, 1, 1, 1), (1, 1), "VALID", (1, 1)),
    "pointwise": ((2, 3, 5, 4), (1, 1, 4, 3), (1, 1), "SAME", (1, 1)),
    "pointwise_stride": ((1, 5, 5, 3), (1, 1, 3, 2), (2, 2), "VALID", (1, 1)),
    "same": ((2, 5, 7, 3), (3, 3, 3, 4), (1, 1), "SAME", (1, 1)),
    "valid": ((2, 5, 7, 3), (3, 3, 3, 4), (1, 1), "VALID", (1, 1)),
    "same_stride": ((1, 7, 8, 2), (3, 3, 2, 3), (2, 2), "SAME", (1, 1)),
    "valid_stride": ((1, 7, 8, 2), (3, 3, 2, 3), (2, 2), "VALID", (1, 1)),
    "strides_differ": ((1, 7, 9, 2), (3, 2, 2, 3), (2, 3), "SAME", (1, 1)),
    "even_filter": ((1, 5, 5, 2), (2, 4, 2, 3), (1, 1), "SAME", (1, 1)),
    "stride_over_filter": ((1, 9, 9, 2), (2, 2, 2, 3), (3, 4), "VALID", (1, 1)),
    "dilated_same": ((1, 7, 8, 2), (3, 3, 2, 3), (1, 1), "SAME", (2, 2)),
    "dilated_valid": ((1, 7, 8, 2), (3, 3, 2, 3), (1, 1), "VALID", (2, 3)),
    "dilated_stride": ((1, 9, 9, 2), (3, 3, 2, 2), (2, 2), "SAME", (2, 2)),
    "explicit": ((1, 5, 6, 2), (3, 3, 2, 3), (1, 1), ((1, 0), (2, 1)), (1, 1)),
    "explicit_stride": ((1, 5, 6, 2), (3, 3, 2, 3), (2, 2), ((0, 2), (1, 1)), (1, 1)),
    "explicit_dilated": ((1, 5, 6, 2), (3, 3, 2, 3), (1, 1), ((2, 2), (1, 3)), (2, 2)),
    "filter_over_image": ((1, 3, 3, 2), (5, 5, 2, 3), (1, 1), "SAME", (1, 1)),
    "whole_image": ((2, 5, 4, 3), (5, 4, 3, 7), (1, 1), "VALID", (1, 1)),
    "row": ((1, 1, 11, 2), (1, 3, 2, 3), (1, 2), "SAME", (1, 1)),
    "groups": ((1, 5, 5, 4), (3, 3, 2, 6), (1, 1), "SAME", (1, 1)),
    "empty_batch": ((0, 5, 5, 2), (3, 3, 2, 3), (1, 1), "SAME", (1, 1)),
    "empty_result": ((1, 2, 2, 2), (3, 3, 2, 3), (1, 1), ((0, 1), (0, 1)), (1, 1)),
    "nothing_left": ((1, 4, 2, 2), (3, 3, 2, 3), (1, 1), "VALID", (1, 1)),
    "no_filters": ((1, 4, 4, 2), (3, 3, 2, 0), (1, 1), "SAME", (1, 1)),
    "channels": ((1, 4, 4, 17), (3, 3, 17, 19), (1, 1), "SAME", (1, 1)),
    "large": ((1, 13, 11, 16), (3, 3, 16, 24), (1, 1), "SAME", (1, 1)),
}
# Filters that are larger than the image, by less than a stride: TensorFlow refuses them where the sizes are known, and
# gives nothing where they are not.
NOTHING_LEFT = {
    "wide": ((1, 3, 3, 2), (1, 4, 2, 3), (1, 1), "VALID", (1, 1)),
    "stride": ((1, 3, 3, 2), (5, 1, 2, 3), (3, 3), "VALID", (1, 1)),
    "explicit": ((1, 3, 3, 2), (1, 6, 2, 3), (1, 1), ((0, 0), (1, 1)), (1, 1)),
}
CONV_FEW = ["pointwise", "same", "valid_stride", "dilated_same", "explicit", "empty_batch", "channels"]


def window_attrs(strides, padding, data_format, dilations=None):
    attrs = {"strides": in_format(strides, data_format), "data_format": data_format}
    if dilations:
        attrs["dilations"] = in_format(dilations, data_format)
    if isinstance(padding, str):
        return attrs | {"padding": padding}
    return attrs | {"padding": "EXPLICIT", "explicit_paddings": explicit(*padding, data_format)}


def conv_case(suite, dtype, name, spec, data_format="NHWC", depthwise=False):
    image, filter_, strides, padding, dilations = spec
    rng = seeded(suite.op, dtype, name)
    make = (
        (lambda shape: small(rng, dtype, shape, -9, 10))
        if dtype == "int32"
        else (lambda shape: normal(rng, dtype, shape))
    )
    x, weights = make(image), make(filter_)
    attrs = window_attrs(strides, padding, data_format, dilations)
    options = {}
    if dtype in FLOATS:
        terms = int(np.prod(filter_[:2])) * (1 if depthwise else filter_[2])
        options |= {"reference": exact_conv(depthwise), "terms": terms}
    runs = []
    if data_format == "NCHW":
        x = to_nchw(x)
        runs.append("transpose")
    if depthwise and dilations != (1, 1):
        runs.append("zero-filled filter")
    if runs:
        options |= {
            "via": ", ".join(runs),
            "run_as": with_zeros if len(runs) > 1 or "transpose" not in runs else as_nhwc,
        }
    suite.case(f"{dtype}_{name}", [x, weights], attrs, **options)


def with_zeros(case):
    """A dilated depthwise filter as a larger one with zeros, which TensorFlow's CPU does take."""
    inputs, attrs, back = (
        as_nhwc(case) if case.attrs["data_format"] == "NCHW" else (case.inputs, case.attrs, lambda r: r)
    )
    height, width = by_name(attrs["dilations"], "NHWC")
    x, weights = inputs
    h, w = weights.shape[:2]
    wide = np.zeros(((h - 1) * height + 1, (w - 1) * width + 1, *weights.shape[2:]), weights.dtype)
    wide[::height, ::width] = weights
    return [x, wide], attrs | {"dilations": [1, 1, 1, 1]}, back


def special_conv(suite, dtype):
    """NaN and infinities reach just the windows that hold them; zero weights make infinities NaN."""
    x = np.zeros((1, 5, 5, 1))
    x[0, 0, 0, 0], x[0, 2, 4, 0], x[0, 4, 1, 0] = np.nan, np.inf, -np.inf
    weights = np.array([[1, 2, 0], [-1, 1, 1], [0, 1, 2]]).reshape(3, 3, 1, 1)
    attrs = window_attrs((1, 1), "VALID", "NHWC", (1, 1))
    suite.case(f"{dtype}_special", [array(x, dtype), array(weights, dtype)], attrs, tolerance=ulp(0))


def conv(folder):
    """Conv2D."""
    suite = Suite(folder, "nn", "Conv2D")
    for dtype in FLOATS + ["int32"]:
        for label in CONVS if dtype == "float" else CONV_FEW:
            conv_case(suite, dtype, label, CONVS[label])
        nchw = (
            "pointwise",
            "same",
            "valid",
            "same_stride",
            "strides_differ",
            "dilated_valid",
            "explicit",
            "explicit_stride",
            "groups",
            "empty_batch",
        )
        for label in nchw if dtype == "float" else ("same", "explicit_stride"):
            conv_case(suite, dtype, f"{label}_nchw", CONVS[label], "NCHW")
        if dtype in FLOATS:
            special_conv(suite, dtype)
    for label, spec in NOTHING_LEFT.items():
        conv_case(suite, "float", f"nothing_left_{label}", spec)
    conv_errors(suite, (3, 3, 2, 3))
    yield suite.finish()


def conv_errors(suite, filter_shape):
    x, w = np.ones((1, 4, 4, 2), np.float32), np.ones(filter_shape, np.float32)
    good = window_attrs((1, 1), "VALID", "NHWC", (1, 1))
    suite.error("channels", [np.ones((1, 4, 4, 3), np.float32), w], good)
    suite.error("image_rank", [x[0], w], good)
    suite.error("filter_rank", [x, w[0]], good)
    suite.error("filter_too_large", [x[:, :1], w], good)
    suite.error("filter_too_wide", [x[:, :, :1], w], good)
    suite.error("filter_too_large_explicit", [x[:, :1], w], window_attrs((1, 1), ((0, 0), (1, 1)), "NHWC", (1, 1)))
    suite.error("filter_too_large_without_images", [x[:0, :1], w], good)
    suite.error("filter_too_large_without_rows", [x[:, :0], w], good)
    if suite.op == "Conv2D":
        suite.error("filter_too_large_dilated", [x, w], good | {"dilations": [1, 3, 3, 1]})
    suite.error("strides_length", [x, w], good | {"strides": [1, 1]})
    suite.error("stride_zero", [x, w], good | {"strides": [1, 0, 0, 1]})
    suite.error("stride_negative", [x, w], good | {"strides": [1, -1, -1, 1]})
    suite.error("stride_batch", [x, w], good | {"strides": [2, 1, 1, 1]})
    suite.error("padding_name", [x, w], good | {"padding": "FULL"})
    suite.error("explicit_missing", [x, w], good | {"padding": "EXPLICIT"})
    suite.error("explicit_short", [x, w], good | {"padding": "EXPLICIT", "explicit_paddings": [1, 1]})
    suite.error(
        "explicit_negative", [x, w], good | {"padding": "EXPLICIT", "explicit_paddings": [0, 0, -1, 0, 0, 0, 0, 0]}
    )
    suite.error("explicit_with_same", [x, w], good | {"padding": "SAME", "explicit_paddings": [0, 0, 1, 1, 1, 1, 0, 0]})
    suite.error("dilation_zero", [x, w], good | {"dilations": [1, 0, 0, 1]})
    suite.error("dilations_length", [x, w], good | {"dilations": [1, 1]})
    suite.error("dilation_batch", [x, w], good | {"dilations": [2, 1, 1, 1]})
    suite.error("format", [x, w], good | {"data_format": "NWHC"})
    suite.error("dtype", [np.ones((1, 4, 4, 2), np.int8), np.ones(filter_shape, np.int8)], good)


DEPTHWISE = {  # filters are [height, width, channels, multiplier]; TensorFlow's CPU wants equal strides
    "one": ((1, 1, 1, 1), (1, 1, 1, 1), (1, 1), "VALID", (1, 1)),
    "pointwise": ((2, 3, 5, 4), (1, 1, 4, 2), (1, 1), "SAME", (1, 1)),
    "same": ((2, 5, 7, 3), (3, 3, 3, 1), (1, 1), "SAME", (1, 1)),
    "valid": ((2, 5, 7, 3), (3, 3, 3, 1), (1, 1), "VALID", (1, 1)),
    "multiplier": ((1, 5, 6, 3), (3, 3, 3, 4), (1, 1), "SAME", (1, 1)),
    "same_stride": ((1, 7, 8, 5), (3, 3, 5, 1), (2, 2), "SAME", (1, 1)),
    "valid_stride": ((1, 7, 8, 5), (3, 3, 5, 2), (2, 2), "VALID", (1, 1)),
    "even_filter": ((1, 5, 5, 2), (2, 4, 2, 3), (1, 1), "SAME", (1, 1)),
    "dilated_same": ((1, 7, 8, 2), (3, 3, 2, 2), (1, 1), "SAME", (2, 2)),
    "dilated_valid": ((1, 7, 8, 2), (3, 3, 2, 1), (1, 1), "VALID", (2, 3)),
    "explicit": ((1, 5, 6, 2), (3, 3, 2, 2), (1, 1), ((1, 0), (2, 1)), (1, 1)),
    "explicit_stride": ((1, 5, 6, 2), (3, 3, 2, 2), (2, 2), ((0, 2), (1, 1)), (1, 1)),
    "empty_batch": ((0, 5, 5, 2), (3, 3, 2, 3), (1, 1), "SAME", (1, 1)),
    "one_channel": ((1, 5, 5, 1), (3, 3, 1, 5), (1, 1), "SAME", (1, 1)),
    "channels": ((1, 4, 5, 33), (3, 3, 33, 1), (1, 1), "SAME", (1, 1)),
    "large": ((1, 13, 11, 24), (5, 5, 24, 1), (1, 1), "SAME", (1, 1)),
}
DEPTHWISE_FEW = ["same", "multiplier", "valid_stride", "dilated_same", "explicit", "empty_batch", "channels"]


NO_CHANNELS = {
    "no_multiplier": ((2, 5, 4, 3), (3, 3, 3, 0), (1, 1), "SAME", (1, 1)),
    "no_channels": ((2, 5, 4, 0), (3, 3, 0, 2), (1, 1), "VALID", (1, 1)),
    "no_channels_nor_multiplier": ((1, 5, 4, 0), (3, 3, 0, 0), (1, 1), "SAME", (1, 1)),
}


def depthwise(folder):
    """DepthwiseConv2dNative."""
    suite = Suite(folder, "nn", "DepthwiseConv2dNative")
    for dtype in FLOATS:
        for label in DEPTHWISE if dtype == "float" else DEPTHWISE_FEW:
            conv_case(suite, dtype, label, DEPTHWISE[label], depthwise=True)
        nchw = ("same", "multiplier", "valid_stride", "dilated_valid", "explicit_stride", "empty_batch")
        for label in nchw if dtype == "float" else ("multiplier",):
            conv_case(suite, dtype, f"{label}_nchw", DEPTHWISE[label], "NCHW", depthwise=True)
        special_conv(suite, dtype)
        for label, spec in NO_CHANNELS.items():
            conv_case(suite, dtype, label, spec, depthwise=True)
    for label, spec in NO_CHANNELS.items():
        conv_case(suite, "float", f"{label}_nchw", spec, "NCHW", depthwise=True)
    for label, spec in NOTHING_LEFT.items():
        conv_case(suite, "float", f"nothing_left_{label}", spec, depthwise=True)
    conv_errors(suite, (3, 3, 2, 2))
    yield suite.finish()


GROUPS = [conv, depthwise]
