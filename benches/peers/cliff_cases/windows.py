"""Convolutions, depthwise convolutions, pools, and their gradients."""

import numpy as np
import tensorflow as tf

from .case import Case

raw = tf.raw_ops
# Batch, height, width, channels; filter height, width; output channels; stride; dilation.
CONVOLUTIONS = [
    (8, 28, 28, 64, 3, 3, 64, 1, 1),
    (8, 28, 28, 64, 3, 3, 1, 1, 1),
    (8, 28, 28, 1, 3, 3, 64, 1, 1),
    (8, 56, 56, 1, 3, 3, 1, 1, 1),
    (8, 56, 56, 3, 3, 3, 3, 1, 1),
    (8, 28, 28, 17, 3, 3, 19, 1, 1),
    (8, 28, 28, 64, 1, 1, 64, 1, 1),
    (8, 28, 28, 64, 1, 1, 1, 1, 1),
    (8, 28, 28, 64, 1, 1, 2, 1, 1),
    (8, 28, 28, 1, 1, 1, 64, 1, 1),
    (1, 1, 10_000, 16, 1, 3, 16, 1, 1),
    (1, 10_000, 1, 16, 3, 1, 16, 1, 1),
    (1, 1, 10_000, 1, 1, 65, 1, 1, 1),
    (1, 64, 64, 16, 7, 7, 16, 1, 1),
    (1, 224, 224, 3, 7, 7, 64, 2, 1),
    (8, 28, 28, 32, 3, 3, 32, 2, 1),
    (8, 28, 28, 32, 3, 3, 32, 3, 1),
    (8, 28, 28, 32, 3, 3, 32, 1, 2),
    (64, 4, 4, 64, 3, 3, 64, 1, 1),
    (64, 3, 3, 64, 3, 3, 64, 1, 1),
    (256, 1, 1, 64, 3, 3, 64, 1, 1),
    (1, 13, 17, 127, 5, 5, 31, 1, 1),
]
# The same; the multiplier in place of the output channels.
DEPTHWISE = [
    (8, 56, 56, 64, 3, 3, 1, 1, 1),
    (8, 56, 56, 32, 3, 3, 2, 1, 1),
    (8, 56, 56, 3, 3, 3, 32, 1, 1),
    (8, 56, 56, 1, 3, 3, 8, 1, 1),
    (8, 56, 56, 17, 3, 3, 3, 1, 1),
    (8, 56, 56, 1, 3, 3, 1, 1, 1),
    (8, 56, 56, 3, 3, 3, 1, 1, 1),
    (8, 56, 56, 17, 3, 3, 1, 1, 1),
    (8, 56, 56, 64, 5, 5, 1, 1, 1),
    (8, 56, 56, 64, 3, 3, 1, 2, 1),
    (8, 56, 56, 64, 3, 3, 1, 1, 2),
    (1, 1, 10_000, 64, 1, 3, 1, 1, 1),
    (1, 10_000, 1, 64, 3, 1, 1, 1, 1),
    (64, 4, 4, 64, 3, 3, 1, 1, 1),
]
VOLUMES = [
    (1, 16, 28, 28, 16, 3, 16),
    (1, 8, 28, 28, 32, 3, 1),
    (1, 16, 28, 28, 1, 3, 16),
    (1, 16, 28, 28, 3, 3, 3),
    (4, 4, 4, 4, 32, 3, 32),
]
# Batch, height, width, channels, window, stride.
POOLS = [
    (8, 56, 56, 64, 2, 2),
    (8, 112, 112, 16, 2, 2),
    (8, 112, 112, 1, 2, 2),
    (8, 112, 112, 3, 2, 2),
    (8, 56, 56, 17, 2, 2),
    (8, 56, 56, 64, 3, 1),
    (8, 56, 56, 64, 3, 2),
    (8, 56, 56, 1, 5, 1),
    (8, 28, 28, 64, 7, 1),
    (64, 7, 7, 64, 7, 7),
]


def name(shape):
    return "x".join(map(str, shape))


def convolution(shape, call, depthwise=False, dtype=np.float32):
    n, h, w, c, kh, kw, o, stride, dilation = shape
    outputs = c * o if depthwise else o
    sizes = [-(-h // stride), -(-w // stride)]

    def make(x):
        image, kernel = x(n, h, w, c, dtype=dtype), x(kh, kw, c, o, dtype=dtype)
        wish = {"strides": [1, stride, stride, 1], "padding": "SAME", "dilations": [1, dilation, dilation, 1]}
        return call(x, image, kernel, [n, *sizes, outputs], dtype, wish)

    work = 2.0 * n * sizes[0] * sizes[1] * kh * kw * outputs * (1 if depthwise else c)
    return Case(name(shape), make, work)


def forward(x, image, kernel, out, dtype, wish):
    return raw.Conv2D(input=image, filter=kernel, **wish)


def by_input(x, image, kernel, out, dtype, wish):
    grad = x(*out, dtype=dtype)
    return raw.Conv2DBackpropInput(input_sizes=image.shape.as_list(), filter=kernel, out_backprop=grad, **wish)


def by_filter(x, image, kernel, out, dtype, wish):
    grad = x(*out, dtype=dtype)
    return raw.Conv2DBackpropFilter(input=image, filter_sizes=kernel.shape.as_list(), out_backprop=grad, **wish)


def depth_forward(x, image, kernel, out, dtype, wish):
    return raw.DepthwiseConv2dNative(input=image, filter=kernel, **wish)


def depth_by_input(x, image, kernel, out, dtype, wish):
    grad = x(*out, dtype=dtype)
    return raw.DepthwiseConv2dNativeBackpropInput(
        input_sizes=image.shape.as_list(), filter=kernel, out_backprop=grad, **wish
    )


def depth_by_filter(x, image, kernel, out, dtype, wish):
    grad = x(*out, dtype=dtype)
    return raw.DepthwiseConv2dNativeBackpropFilter(
        input=image, filter_sizes=kernel.shape.as_list(), out_backprop=grad, **wish
    )


def convolutions(call, shapes=None, depthwise=False, dtype=np.float32, dilated=True):
    for shape in shapes or (DEPTHWISE if depthwise else CONVOLUTIONS):
        if dilated or shape[-1] == 1:
            yield convolution(shape, call, depthwise, dtype)


def volumes(kind):
    for shape in VOLUMES:
        n, d, h, w, c, k, o = shape

        def make(x, n=n, d=d, h=h, w=w, c=c, k=k, o=o):
            image, kernel, grad = x(n, d, h, w, c), x(k, k, k, c, o), x(n, d, h, w, o)
            wish = {"strides": [1] * 5, "padding": "SAME"}
            if kind == "forward":
                return raw.Conv3D(input=image, filter=kernel, **wish)
            if kind == "input":
                return raw.Conv3DBackpropInputV2(
                    input_sizes=[n, d, h, w, c], filter=kernel, out_backprop=grad, **wish
                )
            return raw.Conv3DBackpropFilterV2(
                input=image, filter_sizes=[k, k, k, c, o], out_backprop=grad, **wish
            )

        yield Case(name(shape), make, 2.0 * n * d * h * w * c * o * k**3)


def pools(kind):
    for shape in POOLS:
        n, h, w, c, window, stride = shape
        sizes = [n, -(-h // stride), -(-w // stride), c]

        def make(x, n=n, h=h, w=w, c=c, window=window, stride=stride, sizes=sizes):
            wish = {"ksize": [1, window, window, 1], "strides": [1, stride, stride, 1], "padding": "SAME"}
            image = x(n, h, w, c)
            if kind == "max":
                return raw.MaxPool(input=image, **wish)
            if kind == "avg":
                return raw.AvgPool(value=image, **wish)
            if kind == "argmax":
                return raw.MaxPoolWithArgmax(input=image, **wish)[1]
            grad = x(*sizes)
            if kind == "avg-grad":
                return raw.AvgPoolGrad(orig_input_shape=[n, h, w, c], grad=grad, **wish)
            return raw.MaxPoolGrad(orig_input=image, orig_output=raw.MaxPool(input=image, **wish), grad=grad, **wish)

        yield Case(name(shape), make, float(n * h * w * c + np.prod(sizes) * window * window))


FEW = [CONVOLUTIONS[at] for at in (0, 1, 2, 5, 6, 15)]
FAMILIES = {
    "conv": lambda: convolutions(forward),
    "conv-by-input": lambda: convolutions(by_input, dilated=False),
    "conv-by-filter": lambda: convolutions(by_filter, dilated=False),
    "conv-half": lambda: convolutions(forward, FEW, dtype=np.float16),
    "conv-double": lambda: convolutions(forward, FEW, dtype=np.float64),
    "depthwise": lambda: convolutions(depth_forward, depthwise=True),
    "depthwise-by-input": lambda: convolutions(depth_by_input, depthwise=True, dilated=False),
    "depthwise-by-filter": lambda: convolutions(depth_by_filter, depthwise=True, dilated=False),
    "depthwise-half": lambda: convolutions(depth_forward, DEPTHWISE[:6], True, np.float16),
    "depthwise-double": lambda: convolutions(depth_forward, DEPTHWISE[:6], True, np.float64),
    "conv3d": lambda: volumes("forward"),
    "conv3d-by-input": lambda: volumes("input"),
    "conv3d-by-filter": lambda: volumes("filter"),
    **{f"{kind}-pool": lambda kind=kind: pools(kind) for kind in ("max", "avg", "argmax", "max-grad", "avg-grad")},
}
