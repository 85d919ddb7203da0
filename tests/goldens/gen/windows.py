"""Windows over any number of spatial dimensions, channels last, for exact references and for forms that TensorFlow's
CPU refuses."""

import numpy as np

from .layout import padding_of, to_nchw, to_nhwc


def spatial(values, data_format):
    """The entries of a list in the order of the format that belong to spatial dimensions."""
    return [value for value, letter in zip(values, data_format) if letter in "DHW"]


def around(values, data_format, rest=1):
    """The list in the order of the format with these spatial entries."""
    values = iter(values)
    return [next(values) if letter in "DHW" else rest for letter in data_format]


def is_first(case):
    """Whether channels come before the spatial dimensions."""
    return case.attrs.get("data_format", "NHWC")[1] == "C"


def last_format(data_format):
    return "N" + "".join(letter for letter in data_format if letter in "DHW") + "C"


def last(case, x):
    """An image with channels last."""
    return to_nhwc(x) if is_first(case) else x


def back(case, x):
    """An image in the case's own format."""
    return to_nchw(x) if is_first(case) else x


def places(case, sizes, window, dilations=None):
    """For each output pixel and tap the number of the input pixel that it reads, -1 for padding:
    `[outputs, taps]`, and the spatial sizes of the output."""
    attrs = case.attrs
    data_format = attrs.get("data_format", "NHWC" if len(sizes) == 2 else "NDHWC")
    strides = spatial(attrs["strides"], data_format)
    dilations = dilations or spatial(attrs.get("dilations", [1] * len(data_format)), data_format)
    pads = attrs.get("explicit_paddings") or [0] * (2 * len(data_format))
    pairs = spatial(list(zip(pads[::2], pads[1::2])), data_format)
    flat, real, out = np.zeros((1, 1), np.int64), np.ones((1, 1), bool), []
    for size, taps, stride, dilation, pair in zip(sizes, window, strides, dilations, pairs):
        before, _, count = padding_of(size, taps, stride, dilation, attrs["padding"], pair)
        at = np.arange(count)[:, None] * stride - before + np.arange(taps) * dilation
        inside = (at >= 0) & (at < size)
        shape = (flat.shape[0] * count, flat.shape[1] * taps)
        flat = (flat[:, None, :, None] * size + at[None, :, None, :]).reshape(shape)
        real = (real[:, None, :, None] & inside[None, :, None, :]).reshape(shape)
        out.append(count)
    return np.where(real, flat, -1), out


def patches(x, index):
    """What the windows over an image hold, `[images, outputs, taps, channels]`; padding is 0."""
    pixels = x.reshape(x.shape[0], int(np.prod(x.shape[1:-1])), x.shape[-1])
    padded = np.concatenate([pixels, np.zeros_like(pixels[:, :1]) if pixels.size else np.zeros((*x.shape[:1], 1, x.shape[-1]))], 1)
    return padded[:, index]


def spread(parts, index, shape):
    """Adds up parts, shaped as what `patches` gives, where they come from."""
    count = int(np.prod(shape[1:-1]))
    total = np.zeros((shape[0], count + 1, shape[-1]))
    np.add.at(total, (slice(None), index), parts)
    return total[:, :count].reshape(shape)
