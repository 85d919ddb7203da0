"""_QuantizedFusedConv2D and _QuantizedFusedDepthwiseConv2dNative, whose sums are those of TensorFlow's Conv2D of int32.

Padding is zero after the zero point is taken away. A depthwise filter is that of a convolution with zeros where
channels do not meet, since TensorFlow's own depthwise kernel takes neither int32 nor dilations nor unequal strides.
"""

from functools import partial
from itertools import product

import tensorflow as tf

from .conv import CONVS, DEPTHWISE, window_attrs
from .fused import WINDOW
from .quantised_product import BYTES, OUTPUTS, QuantisedSuite, add


def convolution(image, weights, image_zero, zero, attrs):
    return convolved(image - image_zero, weights - zero, attrs)


def depthwise(image, weights, image_zero, zero, attrs):
    height, width, channels, multiplier = weights.shape
    less = weights - (tf.reshape(zero, (channels, multiplier)) if zero.shape.rank else zero)
    wide = less[:, :, :, None] * tf.eye(channels, dtype=tf.int32)[:, :, None]
    return convolved(image - image_zero, tf.reshape(wide, (height, width, channels, channels * multiplier)), attrs)


def convolved(image, weights, attrs):
    return tf.raw_ops.Conv2D(input=image, filter=weights, **{name: attrs[name] for name in WINDOW})


class WindowSuite(QuantisedSuite):
    """`multiplies`: a filter's last dimension counts the outputs of each channel, not all of them."""

    def __init__(self, folder, op, products, forms, multiplies):
        super().__init__(folder, op, ("input", "filter"), WINDOW, products)
        self.forms, self.multiplies = forms, multiplies

    def window(self, types, label, what, **options):
        """A case over one of the forms."""
        image, filter_, strides, padding, dilations = self.forms[label]
        channels = filter_[3] * (filter_[2] if self.multiplies else 1)
        options |= window_attrs(strides, padding, "NHWC", dilations)
        add(self, f"{label}_{what}", types, (image, filter_), channels, **options)


# Of CONVS and DEPTHWISE, one for each pair of types and output. A filter of CONVS has as many channels as its image, so
# that it serves as a depthwise one of several outputs a channel.
WINDOWS = [
    *("same", "valid", "pointwise", "explicit", "channels"),
    *("strides_differ", "dilated_valid", "even_filter", "explicit_stride", "pointwise_stride"),
    *("dilated_stride", "same_stride", "filter_over_image", "whole_image", "explicit_dilated"),
    *("stride_over_filter", "row", "valid_stride", "empty_batch", "one"),
]
ROUNDINGS = ("FLOAT", "FIXED_POINT")


def all_types(suite):
    """Each output with both roundings, of parameters for all channels and for each."""
    for pair, factors in enumerate(product(BYTES, BYTES)):
        for turn, out in enumerate(OUTPUTS):
            at = pair * len(OUTPUTS) + turn
            rounding, columns = ROUNDINGS[(pair + turn) % 2], (pair // 2 + turn) % 2 == 1
            options = {"requantize": rounding, "columns": columns, "bias": at % 3 > 0}
            suite.window((*factors, out), WINDOWS[at], rounding.lower(), **options)


def activations(suite):
    for turn, out in enumerate(OUTPUTS):
        types = ("quint8", "qint8", out)
        one, other = ROUNDINGS[turn % 2], ROUNDINGS[(turn + 1) % 2]
        suite.window(types, "same", "relu", activation="RELU", requantize=one, columns="scales")
        if out != "qint32":
            suite.window(types, "explicit", "relu6", activation="RELU6", requantize=other, columns="zeros")
            clamp = {"activation": "CLAMP", "clamp_min": -1.5, "clamp_max": 2.25}
            suite.window(types, "pointwise", "clamp", requantize=one, columns=True, **clamp)


def roundings(suite):
    """An eighth of the sums are ties; and scales above that of the output, for which fixed point shifts to the left."""
    window = partial(suite.window, ("quint8", "qint8", "qint16"), "pointwise")
    for rounding in ROUNDINGS:
        window(f"ties_{rounding.lower()}", requantize=rounding, scales=(0.5, (0.25, 0.25), 1.0))
    window("steep", requantize="FIXED_POINT", columns=True, scales=(0.02, (0.01, 0.02), 0.0001))


def quantised_conv(folder):
    """_QuantizedFusedConv2D and _QuantizedFusedDepthwiseConv2dNative."""
    for suite in (
        WindowSuite(folder, "_QuantizedFusedConv2D", convolution, CONVS, False),
        WindowSuite(folder, "_QuantizedFusedDepthwiseConv2dNative", depthwise, CONVS | DEPTHWISE, True),
    ):
        all_types(suite)
        activations(suite)
        roundings(suite)
        yield suite.finish()


GROUPS = [quantised_conv]
