"""Images that are scaled and moved, boxes drawn at random, and parts of JPEG files."""

import numpy as np
import tensorflow as tf

from .codecs import smooth
from .data import array, normal, seeded
from .images import NUMBERS, pixels
from .random import attrs_of
from .suite import Suite
from .text import word

KERNELS = ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")
# Size after, scales, and translations.
MOVES = {
    "smaller": ((3, 2), (0.6, 0.3), (0.25, -0.5)),
    "larger": ((9, 11), (1.8, 1.5), (0.0, 0.75)),
    "moved": ((5, 7), (1.0, 1.0), (1.5, -2.0)),
    "outside": ((4, 4), (1.0, 1.0), (-9.0, 0.0)),
}
CLOSE = {"tolerance": {"absolute": 1e-3, "relative": 2e-5}, "reason": "sums of products in single precision, with sines of a library"}


def scaled(folder):
    """ScaleAndTranslate and its gradient."""
    suite = Suite(folder, "image", "ScaleAndTranslate")
    for dtype in NUMBERS:
        for label, (size, scale, moved) in MOVES.items() if dtype == "float" else [("smaller", MOVES["smaller"])]:
            for kernel in KERNELS if dtype == "float" else ("lanczos3",):
                for antialias in (True, False) if label == "smaller" else (True,):
                    if dtype in ("int32", "int64"):
                        x = seeded("scaled", dtype).integers(-100, 100, (1, 5, 7, 2)).astype(dtype)
                    else:
                        x = pixels("scaled", dtype, (1, 5, 7, 2))
                    wide = float(np.max(np.abs(np.asarray(x, np.float64))))
                    options = CLOSE | {"tolerance": {"absolute": 1e-6 * max(wide, 1), "relative": 0}}
                    inputs = [x, np.int32(size), np.float32(scale), np.float32(moved)]
                    suite.case(f"{dtype}_{label}_{kernel}_{antialias}", inputs, {"kernel_type": kernel, "antialias": antialias}, const=[1], **options)
    x, two = pixels("scaled", "float", (2, 3, 4, 3)), np.float32([1, 1])
    suite.case("batch", [x, np.int32([2, 3]), np.float32([0.5, 0.75]), np.float32([0, 0])], const=[1], **CLOSE)
    suite.error("scale", [x, np.int32([2, 3]), np.float32([0, 1]), two], const=[1])
    suite.error("size", [x, np.int32([0, 3]), two, two], const=[1])
    suite.error("kernel", [x, np.int32([2, 3]), two, two], {"kernel_type": "sinc"}, const=[1])
    suite.error("rank", [x[0], np.int32([2, 3]), two, two], const=[1])
    yield suite.finish()
    suite = Suite(folder, "image", "ScaleAndTranslateGrad")
    for label, (size, scale, moved) in MOVES.items():
        for kernel in KERNELS:
            for antialias in (True, False) if label == "smaller" else (True,):
                grads = normal(seeded("scaled_grad", label), "float", (2, *size, 3))
                inputs = [grads, np.zeros((2, 5, 7, 3), np.float32), np.float32(scale), np.float32(moved)]
                options = CLOSE | {"tolerance": {"absolute": 4e-6, "relative": 0}}
                suite.case(f"{label}_{kernel}_{antialias}", inputs, {"kernel_type": kernel, "antialias": antialias}, **options)
    suite.error("scale", [x, x, np.float32([1, -1]), two])
    suite.error("rank", [x[0], x, two, two])
    yield suite.finish()


BOXES = np.float32([[[0.1, 0.2, 0.6, 0.7], [0.5, 0.5, 0.9, 1.0]], [[0.0, 0.0, 0.3, 0.3], [0.2, 0.1, 0.2, 0.5]]])


def boxes(folder):
    """SampleDistortedBoundingBox, SampleDistortedBoundingBoxV2 and StatelessSampleDistortedBoundingBox."""
    forms = {
        "plain": {},
        "wide": {"aspect_ratio_range": [2.0, 3.0], "area_range": [0.3, 0.6]},
        "tall": {"aspect_ratio_range": [0.2, 0.4], "area_range": [0.01, 0.9]},
        "few": {"max_attempts": 3, "area_range": [0.05, 0.1]},
        "impossible": {"area_range": [0.9, 0.95], "aspect_ratio_range": [5.0, 6.0], "max_attempts": 20},
    }
    for op in ("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "StatelessSampleDistortedBoundingBox"):
        suite = Suite(folder, "image", op)

        def add(name, dtype, size, given, least, attrs, seed, refused=False):
            inputs, more = [array(size, dtype), np.asarray(given, np.float32)], dict(attrs)
            if op == "SampleDistortedBoundingBox":
                more["min_object_covered"] = least
            else:
                inputs.append(np.float32(least))
            if op.startswith("Stateless"):
                inputs.append(np.asarray(seed, np.int64 if seed[0] % 2 else np.int32))
            else:
                more = attrs_of(seed, **more)
            (suite.error if refused else suite.case)(name, inputs, more)

        for dtype in ("uint8", "int8", "int16", "int32", "int64"):
            for form, attrs in forms.items() if dtype == "int32" else [("plain", {})]:
                for at, seed in enumerate(((7, 12), (0, 9), (123456789, 5))):
                    for least in (0.1, 0.9) if dtype == "int32" else (0.1,):
                        size = (100, 120, 3) if dtype in ("uint8", "int8") else (411, 300, 3)
                        add(f"{dtype}_{form}_{at}_{least}".replace(".", ""), dtype, size, BOXES, least, attrs, seed)
        none = np.zeros((1, 0, 4))
        add("image", "int32", (40, 60, 3), none, 0.5, {"use_image_if_no_bounding_boxes": True}, (7, 1))
        add("one_pixel", "int32", (1, 1, 3), none, 0.5, {"use_image_if_no_bounding_boxes": True}, (7, 1))
        add("no_boxes", "int32", (40, 60, 3), none, 0.5, {}, (7, 1), refused=True)
        add("beyond", "int32", (40, 60, 3), [[[0, 0, 1.5, 1]]], 0.5, {}, (7, 1), refused=True)
        add("corners", "int32", (40, 60, 3), [[[0, 0, 1]]], 0.5, {}, (7, 1), refused=True)
        add("rank", "int32", (40, 60, 3), [[0, 0, 1, 1]], 0.5, {}, (7, 1), refused=True)
        add("size", "int32", (40, 60), BOXES, 0.5, {}, (7, 1), refused=True)
        add("covered", "int32", (40, 60, 3), BOXES, -0.5, {}, (7, 1), refused=True)
        add("area", "int32", (40, 60, 3), BOXES, 0.5, {"area_range": [0.5, 1.5]}, (7, 1), refused=True)
        add("aspect", "int32", (40, 60, 3), BOXES, 0.5, {"aspect_ratio_range": [1.0]}, (7, 1), refused=True)
        add("attempts", "int32", (40, 60, 3), BOXES, 0.5, {"max_attempts": 0}, (7, 1), refused=True)
        yield suite.finish()


def jpeg(folder):
    """DecodeAndCropJpeg, ExtractJpegShape and EncodeJpegVariableQuality."""
    suite = Suite(folder, "image", "DecodeAndCropJpeg")
    files = {
        "grey": tf.io.encode_jpeg(smooth("grey", 24, 33, 1)).numpy(),
        "colour": tf.io.encode_jpeg(smooth("colour", 24, 33, 3)).numpy(),
        "whole": tf.io.encode_jpeg(smooth("whole", 24, 33, 3), chroma_downsampling=False).numpy(),
        "progressive": tf.io.encode_jpeg(smooth("progressive", 24, 33, 3), progressive=True).numpy(),
    }
    windows = {"all": (0, 0, 24, 33), "inner": (5, 7, 9, 13), "corner": (23, 32, 1, 1), "rows": (8, 0, 8, 33), "columns": (0, 16, 24, 8)}
    for name, contents in files.items():
        for label, window in windows.items():
            for plain in (False, True) if name == "colour" else (False,):
                attrs, options = {"fancy_upscaling": not plain}, {}
                if name in ("colour", "progressive") and not plain and label in ("inner", "corner", "columns"):
                    options = {"tolerance": {"absolute": 12, "relative": 0}, "reason": "TensorFlow smooths colours as if the window were the image"}
                suite.case(f"{name}_{label}{'_plain' * plain}", [word(contents), np.int32(window)], attrs, const=[1], **options)
    suite.case("channels", [word(files["colour"]), np.int32(windows["inner"])], {"channels": 1}, const=[1])
    suite.case("ratio", [word(files["whole"]), np.int32([2, 3, 4, 5])], {"ratio": 2}, const=[1])
    for label, window in {"beyond": (5, 7, 20, 13), "negative": (-1, 0, 2, 2), "nothing": (0, 0, 0, 2), "three": (0, 0, 2)}.items():
        suite.error(label, [word(files["colour"]), np.int32(window)], const=[1])
    png = tf.io.encode_png(smooth("png", 5, 6, 3)).numpy()
    suite.error("png", [word(png), np.int32([0, 0, 1, 1])], const=[1])
    yield suite.finish()
    suite = Suite(folder, "image", "ExtractJpegShape")
    for name, contents in files.items():
        for dtype in ("int32", "int64"):
            suite.case(f"{name}_{dtype}", [word(contents)], {"output_type": dtype})
    suite.error("png", [word(png)])
    suite.error("nothing", [word("")])
    suite.error("head_only", [word(files["colour"][:30] + b"\1")])
    yield suite.finish()
    suite = Suite(folder, "image", "EncodeJpegVariableQuality")
    for channels in (1, 3):
        for quality in (0, 50, 100):
            suite.case(f"{channels}_{quality}", [np.ones((9, 7, channels), np.uint8), np.int32(quality)], shape_only=(0,))
    suite.error("quality", [np.ones((4, 5, 3), np.uint8), np.int32(101)])
    suite.error("channels", [np.ones((4, 5, 2), np.uint8), np.int32(50)])
    suite.error("rank", [np.ones((4, 5), np.uint8), np.int32(50)])
    yield suite.finish()


def glimpses(folder):
    """ExtractGlimpse and ExtractGlimpseV2; noise has shapes alone."""
    for op in ("ExtractGlimpse", "ExtractGlimpseV2"):
        suite = Suite(folder, "image", op)
        x = normal(seeded(op), "float", (4, 7, 8, 2))
        for centered in (False, True):
            for normalized in (False, True):
                offsets = np.float32([[0.25, -0.5], [0, 0], [0.75, 0.5], [-2, 1]])
                if not normalized:
                    offsets *= 6
                for size in ((3, 4), (9, 5), (1, 1)):
                    attrs = {"centered": centered, "normalized": normalized, "uniform_noise": False, "noise": "zero"}
                    suite.case(f"{centered}_{normalized}_{size[0]}", [x, np.int32(size), offsets], attrs, const=[1])
        noise = [x, np.int32([9, 9]), np.float32([[0.5, 0.5]] * 4)]
        for name in ("uniform", "gaussian", ""):
            suite.case(f"noise_{name or 'none'}", noise, {"noise": name, "uniform_noise": name == "uniform"}, const=[1], shape_only=(0,))
        suite.case("nothing", [x, np.int32([0, 3]), offsets], const=[1])
        suite.error("both", noise, {"noise": "zero"})
        suite.error("noise", noise, {"noise": "pink", "uniform_noise": False})
        suite.error("rank", [x[0], np.int32([3, 3]), offsets])
        suite.error("offsets", [x, np.int32([3, 3]), offsets[:3]])
        suite.error("size", [x, np.int32([3, 3, 3]), offsets])
        yield suite.finish()


GROUPS = [scaled, boxes, jpeg, glimpses]
