"""Between NHWC and NCHW, and windows over images."""

import numpy as np


def to_nhwc(x):
    """Channels from axis 1 to the end, packed anew."""
    return np.moveaxis(x, 1, -1).copy()


def to_nchw(x):
    """Channels from the end to axis 1, packed anew."""
    return np.moveaxis(x, -1, 1).copy()


def by_name(values, data_format):
    """The height and width entries of a list of four in the order of the format."""
    return values[data_format.index("H")], values[data_format.index("W")]


def in_format(height_width, data_format, around=1):
    """A list of four with the given height and width entries, others `around`."""
    height, width = height_width
    return [height if c == "H" else width if c == "W" else around for c in data_format]


def explicit(height, width, data_format):
    """explicit_paddings: a pair for each dimension of the format."""
    pairs = {"N": (0, 0), "C": (0, 0), "H": height, "W": width}
    return [n for c in data_format for n in pairs[c]]


def reordered(attrs):
    """Attributes of an NCHW window op in the order of NHWC."""
    result = attrs | {"data_format": "NHWC"}
    order = ["NCHW".index(c) for c in "NHWC"]
    for name in ("strides", "dilations", "ksize"):
        if name in attrs:
            result[name] = [attrs[name][i] for i in order]
    pads = attrs.get("explicit_paddings")
    if pads:
        result["explicit_paddings"] = [pads[2 * i + j] for i in order for j in (0, 1)]
    return result


def as_nhwc(case):
    """Runs an NCHW window op in NHWC; only the first input is an image."""
    inputs = [to_nhwc(case.inputs[0]), *case.inputs[1:]]
    return inputs, reordered(case.attrs), lambda results: [to_nchw(r) for r in results]


def padding_of(size, window, stride, dilation, padding, pads):
    """Zeros before and after one dimension, and the result's size."""
    reach = (window - 1) * dilation + 1
    if padding == "SAME":
        out = -(-size // stride)
        total = max((out - 1) * stride + reach - size, 0)
        return total // 2, total - total // 2, out
    before, after = pads if padding == "EXPLICIT" else (0, 0)
    return before, after, max((size + before + after - reach) // stride + 1, 0)


def windows(x, attrs, window):
    """The windows over an NHWC image, [N, rows, columns, height, width, C], zero (or NaN) filled.

    Returned with a mask of the same shape that tells pixels from padding.
    """
    nhwc = reordered(attrs) if attrs.get("data_format") == "NCHW" else attrs
    strides, dilations = nhwc["strides"], nhwc.get("dilations", [1, 1, 1, 1])
    pads = nhwc.get("explicit_paddings") or [0] * 8
    plan = [
        padding_of(x.shape[d], window[d - 1], strides[d], dilations[d], nhwc["padding"], pads[2 * d : 2 * d + 2])
        for d in (1, 2)
    ]
    around = ((0, 0), plan[0][:2], plan[1][:2], (0, 0))
    padded, real = np.pad(x, around), np.pad(np.ones_like(x), around)
    rows = np.arange(plan[0][2])[:, None] * strides[1] + np.arange(window[0]) * dilations[1]
    columns = np.arange(plan[1][2])[:, None] * strides[2] + np.arange(window[1]) * dilations[2]
    pick = (slice(None), rows[:, None, :, None], columns[None, :, None, :])
    return padded[pick], real[pick]
