"""Images: boxes that overlap or are drawn, areas, hues, projections, and files of BMP and GIF."""

import struct

import numpy as np
import tensorflow as tf

from .codecs import smooth
from .data import array, seeded
from .images import NUMBERS, SIZES, near, pixels, refusals, text
from .suite import Suite, ulp
from .text import word, words

PLAIN = [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]
SCORES = [0.9, 0.75, 0.6, 0.95, 0.5, 0.3]


def box_sets(name):
    """Boxes with scores, by name."""
    rng = seeded(name)
    corner, size = rng.random((40, 2)) * 4, rng.random((40, 2)) * 2
    return {
        "random": (np.concatenate([corner, corner + size], 1), rng.standard_normal(40)),
        "plain": (PLAIN, SCORES),
        "equal_scores": (PLAIN, [0.5] * 6),
        "none": (np.zeros((0, 4)), np.zeros(0)),
    }


def title(*parts):
    return "_".join(map(str, parts)).replace(".", "_").replace("-", "m")


def suppression(folder):
    """The versions of NonMaxSuppression but the third."""
    sets = box_sets("suppression")
    suite = Suite(folder, "image", "NonMaxSuppression")
    for name, (boxes, scores) in sets.items():
        for most in (3, 100, 0):
            for overlap in (0.5, 0.0, 1.0):
                inputs = [array(boxes, "float"), array(scores, "float"), np.int32(most)]
                suite.case(title(name, most, overlap), inputs, {"iou_threshold": overlap}, const=[2])
    x, y = array(PLAIN, "float"), array(SCORES, "float")
    suite.error("overlap", [x, y, np.int32(3)], {"iou_threshold": 1.5})
    suite.error("negative_count", [x, y, np.int32(-1)])
    suite.error("few_scores", [x, y[:5], np.int32(3)])
    yield suite.finish()
    suite = Suite(folder, "image", "NonMaxSuppressionV2")
    for kind in ("float", "half"):
        for other in ("float", "half"):
            for name, (boxes, scores) in sets.items():
                for most, overlap in ((3, 0.5), (100, 0.25)):
                    inputs = [array(boxes, kind), array(scores, kind), np.int32(most), array(overlap, other)]
                    suite.case(title(kind, other, name, most, overlap), inputs, const=[2, 3])
    suite.error("overlap", [x, y, np.int32(3), np.float32(-0.5)])
    suite.error("corners", [x[:, :3], y, np.int32(3), np.float32(0.5)])
    yield suite.finish()
    suite = Suite(folder, "image", "NonMaxSuppressionV4")
    for kind in ("float", "half"):
        for other in ("float", "half"):
            for name, (boxes, scores) in sets.items():
                for pads in (False, True):
                    inputs = [array(boxes, kind), array(scores, kind), np.int32(7), array(0.5, other), array(0.25, other)]
                    suite.case(title(kind, other, name, pads), inputs, {"pad_to_max_output_size": pads}, const=[2, 3, 4])
    suite.error("negative_count", [x, y, np.int32(-1), np.float32(0.5), np.float32(0)])
    suite.error("scores", [x, y[:, None], np.int32(1), np.float32(0.5), np.float32(0)])
    yield suite.finish()
    yield from soft(folder, sets)


def soft(folder, sets):
    """NonMaxSuppressionV5 and NonMaxSuppressionWithOverlaps."""
    suite = Suite(folder, "image", "NonMaxSuppressionV5")
    for kind in ("float", "half"):
        for name, (boxes, scores) in sets.items():
            for pads in (False, True):
                for overlap, least, sigma in ((0.5, 0.25, 0.0), (0.5, 0.125, 0.5), (1.0, -4.0, 0.25), (0.25, 0.0, 2.0)):
                    inputs = [array(boxes, kind), array(scores, kind), np.int32(9)]
                    inputs += [array(at, kind) for at in (overlap, least, sigma)]
                    options = {"tolerance": ulp(8), "reason": "scores are products of exponentials"} if sigma else {}
                    case = title(kind, name, pads, overlap, least, sigma)
                    suite.case(case, inputs, {"pad_to_max_output_size": pads}, const=[2, 3, 4, 5], **options)
    x, y = array(PLAIN, "float"), array(SCORES, "float")
    half, none = np.float32(0.5), np.float32(0)
    suite.error("overlap", [x, y, np.int32(3), np.float32(1.5), none, none])
    suite.error("sigma", [x, y, np.int32(3), half, none, np.float32([0.5])])
    yield suite.finish()
    suite = Suite(folder, "image", "NonMaxSuppressionWithOverlaps")
    rng = seeded("overlaps")
    overlaps, scores = rng.random((30, 30)).astype(np.float32), rng.standard_normal(30).astype(np.float32)
    for most, overlap, least in ((3, 0.5, 0.0), (30, 0.9, -5.0), (30, 2.0, -0.5), (0, 0.5, 0.0), (30, -1.0, 0.0)):
        inputs = [overlaps, scores, np.int32(most), np.float32(overlap), np.float32(least)]
        suite.case(title(most, overlap, least), inputs, const=[2, 3, 4])
    suite.error("square", [overlaps[:, :5], scores, np.int32(3), half, none])
    suite.error("few_scores", [overlaps, scores[:5], np.int32(3), half, none])
    yield suite.finish()


def combined(folder):
    """CombinedNonMaxSuppression."""
    suite = Suite(folder, "image", "CombinedNonMaxSuppression")
    for kinds in (1, 3):
        rng = seeded("combined", kinds)
        corner, size = rng.random((2, 25, kinds, 2)) * 0.9 - 0.1, rng.random((2, 25, kinds, 2)) * 0.4
        boxes = np.concatenate([corner, corner + size], -1).astype(np.float32)
        scores = rng.random((2, 25, 3)).astype(np.float32)
        for each, most in ((4, 5), (2, 20), (30, 100)):
            for pads, clips in ((False, True), (True, False), (True, True)):
                for overlap, least in ((0.5, 0.0), (0.1, 0.6), (0.9, 2.0)):
                    inputs = [boxes, scores, np.int32(each), np.int32(most), np.float32(overlap), np.float32(least)]
                    case = title(kinds, each, most, pads, clips, overlap, least)
                    suite.case(case, inputs, {"pad_per_class": pads, "clip_boxes": clips}, const=[2, 3, 4, 5])
    rest = [np.float32(0.5), np.float32(0)]
    suite.error("each", [boxes, scores, np.int32(0), np.int32(5), *rest])
    suite.error("most", [boxes, scores, np.int32(5), np.int32(0), *rest])
    suite.error("kinds", [boxes[:, :, :2], scores, np.int32(5), np.int32(5), *rest])
    suite.error("scores", [boxes, scores[:, :4], np.int32(5), np.int32(5), *rest])
    suite.error("overlap", [boxes, scores, np.int32(5), np.int32(5), np.float32(1.5), rest[1]])
    suite.error("rank", [boxes[0], scores, np.int32(5), np.int32(5), *rest])
    yield suite.finish()


def drawing(folder):
    """DrawBoundingBoxes and its second version."""
    boxes = np.float32([
        [[0.1, 0.2, 0.7, 0.9], [-0.2, 0.3, 0.5, 1.4], [0, 0, 1, 1], [0.6, 0.6, 0.2, 0.2], [1.2, 1.2, 1.5, 1.5], [0.4, 0.4, 0.4, 0.4]],
        [[-1, -1, 2, 2], [-0.5, 0.2, -0.2, 0.8], [0.5, 0.1, 0.5, 0.9], [0.25, 0.25, 0.75, 1.75], [0, 0.5, 1, 0.5], [0.9, 0.9, 1, 1]],
    ])
    colours = seeded("colours").random((4, 4)).astype(np.float32)
    for op, more in (("DrawBoundingBoxes", {"": []}), ("DrawBoundingBoxesV2", {"colours": [colours], "one": [colours[:1]], "none": [colours[:0]]})):
        suite = Suite(folder, "image", op)
        for kind in ("float", "half"):
            for channels in (1, 3, 4):
                for name, rest in more.items():
                    image = array(seeded("canvas", channels).random((2, 13, 17, channels)), kind)
                    suite.case(title(kind, channels, name or "own"), [image, boxes, *rest])
        rest = next(iter(more.values()))
        suite.case("one_pixel", [np.ones((2, 1, 1, 3), np.float32), boxes, *rest])
        suite.case("no_boxes", [np.ones((2, 3, 4, 3), np.float32), boxes[:, :0], *rest])
        suite.error("channels", [np.ones((2, 3, 4, 2), np.float32), boxes, *rest])
        suite.error("batch", [np.ones((1, 3, 4, 3), np.float32), boxes, *rest])
        suite.error("corners", [np.ones((2, 3, 4, 3), np.float32), boxes[..., :3], *rest])
        suite.error("rank", [np.ones((3, 4, 3), np.float32), boxes, *rest])
        if rest:
            suite.error("few_parts", [np.ones((2, 3, 4, 3), np.float32), boxes, colours[:, :2]])
        yield suite.finish()


def area(folder):
    """ResizeArea."""
    suite = Suite(folder, "image", "ResizeArea")
    for dtype in NUMBERS:
        for corners in (False, True):
            for before, after in SIZES if dtype == "float" else SIZES[1:3]:
                for channels in (1, 3) if dtype == "float" else (3,):
                    x = pixels("area", dtype, (2, *before, channels))
                    options = {"tolerance": near(x, 32), "reason": "a mean in single precision"}
                    case = title(dtype, corners, text(before), text(after), channels)
                    suite.case(case, [x, np.int32(after)], {"align_corners": corners}, const=[1], **options)
    x = pixels("area", "float", (1, 37, 41, 3))
    suite.case("large", [x, np.int32([11, 13])], const=[1], tolerance=near(x, 32), reason="a mean in single precision")
    x = pixels("refused", "float", (1, 3, 4, 2))
    for name, size in {"zero": [0, 2], "three": [2, 2, 2]}.items():
        suite.error(name, [x, np.int32(size)], const=[1])
    suite.error("rank", [x[0], np.int32([2, 2])], const=[1])
    yield suite.finish()


def hues(folder):
    """AdjustHue and AdjustSaturation."""
    grid = np.stack(np.meshgrid([0, 0.25, 0.5, 1], [0, 0.5, 1], [0, 0.5, 1]), -1)
    for op, numbers in (("AdjustHue", (0.0, 0.1, -0.4, 1.0, 2.7)), ("AdjustSaturation", (0.0, 0.5, 1.0, 3.0))):
        suite = Suite(folder, "image", op)
        for number in numbers:
            for name, x in (("random", seeded(op).random((2, 5, 7, 3))), ("corners", grid), ("pixels", seeded(op).random((3, 1, 1, 2, 3)))):
                options = {"tolerance": {"absolute": 16 * 2.0**-23, "relative": 0}, "reason": "steps in single precision, of a circle of 6"}
                suite.case(title("float", number, name), [array(x, "float"), np.float32(number)], const=[1], **options)
        suite.case("empty", [np.zeros((0, 4, 3), np.float32), np.float32(0.5)], const=[1])
        suite.error("channels", [np.ones((2, 3, 4), np.float32), np.float32(0.5)])
        suite.error("rank", [np.ones((2, 3), np.float32), np.float32(0.5)])
        suite.error("numbers", [np.ones((2, 3, 3), np.float32), np.float32([0.5])])
        yield suite.finish()


TRANSFORMS = {
    "same": [1, 0, 0, 0, 1, 0, 0, 0],
    "shifted": [1, 0, 2.25, 0, 1, -1.5, 0, 0],
    "turned": [0.75, -0.5, 3, 0.5, 0.75, -2, 0, 0],
    "tilted": [1, 0.25, -1, 0.125, 1, 0, 0.0625, -0.03125],
    "far": [4, 0, -20, 0, 4, -17, 0, 0],
    "at_infinity": [1, 0, 0, 0, 1, 0, -0.25, 0],
}


def projections(folder):
    """ImageProjectiveTransformV2 and V3."""
    for op in ("ImageProjectiveTransformV2", "ImageProjectiveTransformV3"):
        rest = [] if op.endswith("2") else [np.float32(7.5)]
        suite = Suite(folder, "image", op)
        for kind in ("float", "uint8", "int32", "int64", "half", "double"):
            for way in ("NEAREST", "BILINEAR"):
                for fill in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
                    for name, by in TRANSFORMS.items() if kind == "float" else (("turned", TRANSFORMS["turned"]),):
                        x = array(np.round(seeded("projected", kind).random((2, 6, 5, 3)) * 100), kind)
                        attrs = {"interpolation": way, "fill_mode": fill}
                        # Weights are multiples of a small power of two, so that sums of whole numbers are exact.
                        inputs = [x, np.float32([by]), np.int32([7, 8]), *rest]
                        options = {}
                        if way == "BILINEAR" and kind in ("float", "double", "half"):
                            unit = 2.0**-10 if kind == "half" else 2.0**-20
                            options = {"tolerance": {"absolute": 100 * unit, "relative": 0}, "reason": "weighted means in single precision"}
                        suite.case(title(kind, way, fill, name), inputs, attrs, const=[2], **options)
        x, one, attrs = np.ones((2, 3, 4, 1), np.float32), np.float32([TRANSFORMS["turned"]]), {"interpolation": "NEAREST"}
        by_image = np.float32([TRANSFORMS["shifted"], TRANSFORMS["same"]])
        suite.case("by_image", [array(np.round(seeded("two").random((2, 4, 5, 2)) * 9), "float"), by_image, np.int32([4, 5]), *rest], attrs, const=[2])
        suite.error("size", [x, one, np.int32([0, 5]), *rest], attrs)
        suite.error("sizes", [x, one, np.int32([5]), *rest], attrs)
        suite.error("few", [x, one[:, :6], np.int32([5, 5]), *rest], attrs)
        suite.error("three", [x, np.repeat(one, 3, 0), np.int32([5, 5]), *rest], attrs)
        suite.error("rank", [x[0], one, np.int32([5, 5]), *rest], attrs)
        yield suite.finish()


def bmp(image, bits, upward=True):
    """A BMP of levels, whose rows are filled up with bytes other than 0."""
    height, width = image.shape[:2]
    parts = bits // 8
    rows = image[::-1] if upward else image
    if parts > 1:
        rows = np.concatenate([rows[..., 2::-1], rows[..., 3:]], -1)
    pad = b"\1" * (-width * parts % 4)
    data = b"".join(row.tobytes() + pad for row in rows)
    head = struct.pack("<IiiHHIIiiII", 40, width, height if upward else -height, 1, bits, 0, len(data), 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(data), 0, 0, 54) + head + data


def gif_codes(indices, size):
    """Indices as codes of one more bit than they have, with a code that clears before the width would grow."""
    clear, width = 1 << size, size + 1
    codes = []
    for at, index in enumerate(indices):
        if at % (clear - 2) == 0:
            codes.append(clear)
        codes.append(int(index))
    codes.append(clear + 1)
    bits = sum(code << (width * at) for at, code in enumerate(codes))
    data = bits.to_bytes(-(-len(codes) * width // 8), "little")
    blocks = b"".join(bytes([len(part)]) + part for part in (data[at : at + 255] for at in range(0, len(data), 255)))
    return bytes([size]) + blocks + b"\0"


def gif(width, height, frames, size=3, shared=True):
    """A GIF of frames: left, top, indices of two dimensions, and the transparent index or None."""
    palette = seeded("gif", size).integers(0, 256, 3 << size).astype(np.uint8).tobytes()
    flags = 0x80 | (size - 1) if shared else 0
    file = b"GIF89a" + struct.pack("<HHBBB", width, height, flags, 0, 0) + (palette if shared else b"")
    for left, top, indices, transparent in frames:
        file += b"\x21\xf9\4" + struct.pack("<BHB", transparent is not None, 5, transparent or 0) + b"\0"
        own = 0 if shared else 0x80 | (size - 1)
        file += b"\x2c" + struct.pack("<HHHHB", left, top, indices.shape[1], indices.shape[0], own)
        file += (b"" if shared else palette) + gif_codes(indices.ravel(), size)
    return file + b"\x3b"


def gif_files():
    rng = seeded("frames")

    def indices(height, width):
        return rng.integers(0, 8, (height, width))

    yield "one", gif(7, 5, [(0, 0, indices(5, 7), None)])
    yield "own_colours", gif(7, 5, [(0, 0, indices(5, 7), None), (0, 0, indices(5, 7), None)], shared=False)
    yield "transparent", gif(7, 5, [(0, 0, indices(5, 7), 3), (0, 0, indices(5, 7), 2), (0, 0, indices(5, 7), None)])
    yield "parts", gif(7, 5, [(0, 0, indices(5, 7), None), (2, 1, indices(3, 4), None), (5, 3, indices(3, 4), 1)])
    yield "small_first", gif(7, 5, [(1, 1, indices(2, 3), None), (0, 0, indices(5, 7), 4)])


def files(folder):
    """DecodeBmp, DecodeGif and DecodeImage."""
    images = {8: smooth("bmp", 5, 7, 1), 24: smooth("bmp", 6, 5, 3), 32: smooth("bmp", 4, 3, 4)}
    bmps = {title(bits, upward): bmp(image, bits, upward) for bits, image in images.items() for upward in (True, False)}
    gifs = dict(gif_files())
    suite = Suite(folder, "image", "DecodeBmp")
    for name, contents in bmps.items():
        suite.case(name, [word(contents)])
        for channels in (3, 4):
            suite.case(f"{name}_as_{channels}", [word(contents)], {"channels": channels})
    good = bmps["24_True"]
    suite.error("grey", [word(bmps["8_True"])], {"channels": 1})
    suite.error("two", [word(good)], {"channels": 2})
    suite.error("short", [word(good[:100] + b"\1")])
    suite.error("long", [word(good + b"\1")])
    suite.error("head", [word(good[:20] + b"\1")])
    suite.error("bits", [word(good[:28] + b"\x10" + good[29:])])
    suite.error("nothing", [word("")])
    suite.error("gif", [word(gifs["one"])])
    suite.error("many", [words(good, good)])
    yield suite.finish()
    png = tf.io.encode_png(smooth("any", 5, 6, 3)).numpy()
    jpeg = tf.io.encode_jpeg(smooth("any", 8, 8, 3)).numpy()
    suite = Suite(folder, "image", "DecodeGif")
    for name, contents in gifs.items():
        suite.case(name, [word(contents)])
    suite.case("png", [word(png)])
    suite.case("jpeg", [word(jpeg)])
    suite.error("bmp", [word(good)])
    suite.error("nothing", [word("GIF89a")])
    suite.error("text", [word("no image")])
    yield suite.finish()
    suite = Suite(folder, "image", "DecodeImage")
    deep = tf.io.encode_png(seeded("deep").integers(0, 65536, (4, 5, 3)).astype(np.uint16)).numpy()
    everything = {"png": png, "deep": deep, "jpeg": jpeg, "bmp": good, "bmp_4": bmps["32_True"], "gif": gifs["parts"], "still": gifs["one"]}
    for name, contents in everything.items():
        for dtype in ("uint8", "uint16", "float"):
            for expands in (True, False) if name in ("gif", "still") else (True,):
                for channels in (0, 3):
                    attrs = {"channels": channels, "dtype": dtype, "expand_animations": expands}
                    options = {"tolerance": ulp(1), "reason": "a product, or a quotient"} if dtype == "float" else {}
                    suite.case(title(name, dtype, expands, channels), [word(contents)], attrs, **options)
    suite.error("text", [word("no image")])
    suite.error("gif_grey", [word(gifs["one"])], {"channels": 1})
    suite.error("two", [word(png)], {"channels": 2})
    yield suite.finish()


GROUPS = [suppression, combined, drawing, area, hues, projections, files]
