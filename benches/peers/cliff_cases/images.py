"""Resizing, normalisation, and other ops on images."""

import tensorflow as tf

from .case import Case

raw = tf.raw_ops
# Batch, height, width, channels, height and width of the result.
SIZES = [
    (4, 64, 64, 64, 128, 128),
    (4, 128, 128, 1, 256, 256),
    (4, 128, 128, 3, 256, 256),
    (4, 64, 64, 17, 128, 128),
    (4, 256, 256, 3, 128, 128),
    (1, 500, 500, 3, 224, 224),
    (64, 7, 7, 64, 14, 14),
    (1, 1, 10_000, 3, 1, 20_000),
]
RESIZES = {
    "bilinear": raw.ResizeBilinear,
    "nearest": raw.ResizeNearestNeighbor,
    "bicubic": raw.ResizeBicubic,
    "area": raw.ResizeArea,
}


def resizes(op, **wish):
    for n, h, w, c, th, tw in SIZES:
        def make(x, n=n, h=h, w=w, c=c, th=th, tw=tw):
            return op(images=x(n, h, w, c), size=[th, tw], **wish)

        yield Case(f"{n}x{h}x{w}x{c}-{th}x{tw}", make, float(n * c * (th * tw + h * w)))


def resize_grads(op, key):
    for n, h, w, c, th, tw in SIZES:
        def make(x, n=n, h=h, w=w, c=c, th=th, tw=tw):
            grads = x(n, th, tw, c)
            given = {"size": [h, w]} if key == "size" else {key: x(n, h, w, c)}
            return op(grads=grads, **given, half_pixel_centers=True)

        yield Case(f"{n}x{h}x{w}x{c}-{th}x{tw}", make, float(n * c * (th * tw + h * w)))


SHAPES = [(8, 56, 56, 64), (8, 112, 112, 16), (8, 56, 56, 17), (8, 112, 112, 3), (8, 112, 112, 1), (100_000, 1, 1, 8), (1, 8, 8, 4096)]


def on_images(call, wide=True):
    for shape in SHAPES:
        size = shape[0] * shape[1] * shape[2] * shape[3]
        yield Case("x".join(map(str, shape)), lambda x, shape=shape: call(x, shape), float(size))


def batch_norm(training):
    def call(x, shape):
        c = shape[-1]
        return raw.FusedBatchNormV3(
            x=x(*shape), scale=x(c), offset=x(c), mean=x(c), variance=x(c, low=0.5), is_training=training
        )[:1]

    return call


def batch_norm_grad(x, shape):
    c = shape[-1]
    return raw.FusedBatchNormGradV3(
        y_backprop=x(*shape), x=x(*shape), scale=x(c), reserve_space_1=x(c), reserve_space_2=x(c, low=0.5),
        reserve_space_3=x(0), is_training=True,
    )[:3]


FAMILIES = {
    **{f"resize-{name}": lambda op=op: resizes(op) for name, op in RESIZES.items()},
    "resize-bilinear-half-pixel": lambda: resizes(raw.ResizeBilinear, half_pixel_centers=True),
    "resize-bilinear-grad": lambda: resize_grads(raw.ResizeBilinearGrad, "original_image"),
    "resize-nearest-grad": lambda: resize_grads(raw.ResizeNearestNeighborGrad, "size"),
    "resize-bicubic-grad": lambda: resize_grads(raw.ResizeBicubicGrad, "original_image"),
    "batch-norm": lambda: on_images(batch_norm(False)),
    "batch-norm-training": lambda: on_images(batch_norm(True)),
    "batch-norm-grad": lambda: on_images(batch_norm_grad),
    "lrn": lambda: on_images(lambda x, shape: raw.LRN(input=x(*shape))),
    "lrn-grad": lambda: on_images(
        lambda x, shape: raw.LRNGrad(input_grads=x(*shape), input_image=(image := x(*shape)), output_image=raw.LRN(input=image))
    ),
    "bias-add": lambda: on_images(lambda x, shape: raw.BiasAdd(value=x(*shape), bias=x(shape[-1]))),
    "bias-add-grad": lambda: on_images(lambda x, shape: raw.BiasAddGrad(out_backprop=x(*shape))),
    "adjust-contrast": lambda: on_images(lambda x, shape: raw.AdjustContrastv2(images=x(*shape), contrast_factor=0.5)),
}
