"""Encoded images: PNG files of every kind, and JPEG files as TensorFlow writes them."""

import struct
import zlib

import numpy as np
import tensorflow as tf

from .data import seeded
from .suite import Suite
from .text import word, words

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, colour, rows, *between):
    """A file of rows of bytes, without filters; `between` are chunks before the pixels."""
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows), 9)
    return SIGNATURE + chunk(b"IHDR", head) + b"".join(between) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def smooth(name, height, width, channels):
    """Levels that change slowly, with a little noise, as those of photographs do."""
    rng = seeded(name, height, width, channels)
    y, x = np.mgrid[0:height, 0:width]
    phase, pace = rng.random(channels) * 6, rng.random((2, channels)) * 0.3
    waves = np.sin(y[..., None] * pace[0] + x[..., None] * pace[1] + phase)
    return np.clip(128 + 90 * waves + rng.standard_normal((height, width, channels)) * 3, 0, 255).astype(np.uint8)


def png_files():
    """Name, contents, and whether there are colours."""
    rng = seeded("png")
    for dtype in (np.uint8, np.uint16):
        for channels in (1, 2, 3, 4):
            image = rng.integers(0, np.iinfo(dtype).max, (7, 5, channels), dtype, endpoint=True)
            yield f"{np.dtype(dtype).name}_{channels}", tf.io.encode_png(image).numpy(), channels > 2
    for depth in (1, 2, 4):
        rows = rng.integers(0, 256, (5, -(-9 * depth // 8))).astype(np.uint8)
        yield f"grey_{depth}", png(9, 5, depth, 0, rows), False
        palette = rng.integers(0, 256, 3 * 2**depth).astype(np.uint8).tobytes()
        yield f"palette_{depth}", png(9, 5, depth, 3, rows, chunk(b"PLTE", palette)), True
    rows = rng.integers(0, 16, (5, 9)).astype(np.uint8)
    palette, opacity = rng.integers(0, 256, 48).astype(np.uint8).tobytes(), bytes(range(0, 256, 17))
    yield "palette_opacity", png(9, 5, 8, 3, rows, chunk(b"PLTE", palette), chunk(b"tRNS", opacity)), True
    yield "one_pixel", tf.io.encode_png(np.uint8([[[200]]])).numpy(), False
    yield "smooth", tf.io.encode_png(smooth("png", 31, 37, 3)).numpy(), True


def decode_png(folder):
    """DecodePng."""
    suite = Suite(folder, "image", "DecodePng")
    for name, contents, coloured in png_files():
        for dtype in ("uint8", "uint16"):
            for channels in (0, 1, 3, 4) if name != "smooth" or dtype == "uint8" else (1,):
                # TensorFlow gives images of fewer than 8 bits an opacity of 2^bits - 1, which is not opaque.
                if channels == 4 and name.endswith(("_1", "_2", "_4")) and "int" not in name:
                    continue
                near = {"absolute": 1 if dtype == "uint8" else 260, "relative": 0}
                options = {"tolerance": near, "reason": "levels: grey of colours"} if channels == 1 and coloured else {}
                suite.case(f"{name}_{dtype}_{channels}", [word(contents)], {"channels": channels, "dtype": dtype}, **options)
    good = tf.io.encode_png(smooth("png", 9, 9, 3)).numpy()
    suite.case("jpeg", [word(tf.io.encode_jpeg(smooth("flat", 8, 8, 1) // 255 * 0 + 77).numpy())], tolerance={"absolute": 1, "relative": 0}, reason="levels")
    suite.error("truncated", [word(good[: len(good) // 2] + b"\1")])
    suite.error("head_only", [word(good[:25] + b"\1")])
    suite.error("signature", [word(good[:8])])
    suite.error("nothing", [word("")])
    suite.error("text", [word("no image")])
    suite.error("checksum", [word(good[:29] + b"abcd" + good[33:])])
    huge = struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 6, 0, 0, 0)
    suite.error("huge", [word(SIGNATURE + chunk(b"IHDR", huge) + chunk(b"IDAT", zlib.compress(b"1")) + chunk(b"IEND", b""))])
    suite.error("no_height", [word(png(5, 0, 8, 0, []))])
    suite.error("channels", [word(good)], {"channels": 5})
    suite.error("negative_channels", [word(good)], {"channels": -1})
    suite.error("many", [words(good, good)])
    yield suite.finish()


def jpeg_variants(suite):
    """Every form of decoding, of images that fill their last blocks and of some that do not."""
    for height, width in ((1, 1), (2, 3), (16, 16), (17, 41), (40, 4)):
        for progressive in (False, True):
            image = smooth(f"variants{progressive}", height, width, 3)
            noise = seeded("noise", height, width).integers(-60, 60, image.shape)
            image = np.clip(image + noise, 0, 255).astype(np.uint8)
            contents = tf.io.encode_jpeg(image, quality=80, progressive=progressive).numpy()
            for fancy in (True, False):
                for method in ("INTEGER_FAST", "INTEGER_ACCURATE"):
                    for ratio in (1, 2, 4, 8):
                        attrs = {"fancy_upscaling": fancy, "dct_method": method, "ratio": ratio}
                        name = f"{height}x{width}{'_progressive' * progressive}_{'fancy' if fancy else 'plain'}_{method}_{ratio}"
                        suite.case(name, [word(contents)], attrs)


def jpeg_ends(suite):
    """Files that end within their pixels, of which so much must be there; the rest is black."""
    for name, options in (("smoothed", {}), ("whole", {"chroma_downsampling": False})):
        contents = tf.io.encode_jpeg(smooth("ends", 70, 45, 3), quality=95, **options).numpy()
        for part in (0.5, 0.8):
            ends = word(contents[: 700 + int(part * (len(contents) - 700))] + b"\1")
            for fancy in (True, False):
                for ratio in (1, 4):
                    attrs = {"acceptable_fraction": 0.2, "fancy_upscaling": fancy, "ratio": ratio}
                    suite.case(f"ends_{name}_{part}_{fancy}_{ratio}".replace(".", ""), [ends], attrs)
            suite.error(f"ends_{name}_{part}".replace(".", ""), [ends], {"acceptable_fraction": 0.95})
        suite.case(f"{name}_without_mark", [word(contents[:-2] + b"\1")], {"acceptable_fraction": 0.2})
    progressive = tf.io.encode_jpeg(smooth("ends", 70, 45, 3), progressive=True).numpy()
    suite.error("ends_progressive", [word(progressive[:-300] + b"\1")], {"acceptable_fraction": 0.0})


def decode_jpeg(folder):
    """DecodeJpeg, to the level."""
    suite = Suite(folder, "image", "DecodeJpeg")
    for name, channels, options in (
        ("grey", 1, {}),
        ("colour", 3, {"chroma_downsampling": False}),
        ("downsampled", 3, {}),
        ("progressive", 3, {"progressive": True}),
        ("low", 3, {"quality": 50}),
    ):
        contents = tf.io.encode_jpeg(smooth(name, 24, 33, channels), **options).numpy()
        for wanted in (0, 1, 3):
            suite.case(f"{name}_{wanted}", [word(contents)], {"channels": wanted})
        for method in ("INTEGER_FAST", "INTEGER_ACCURATE"):
            suite.case(f"{name}_{method}", [word(contents)], {"dct_method": method})
        suite.case(f"{name}_plain_upscaling", [word(contents)], {"fancy_upscaling": False})
        for ratio in (2, 4, 8):
            suite.case(f"{name}_ratio_{ratio}", [word(contents)], {"ratio": ratio})
    jpeg_variants(suite)
    jpeg_ends(suite)
    suite.case("png", [word(tf.io.encode_png(smooth("png", 5, 6, 3)).numpy())])
    good = tf.io.encode_jpeg(smooth("grey", 24, 33, 1)).numpy()
    suite.error("truncated", [word(good[: len(good) // 2] + b"\1")])
    suite.error("head_only", [word(good[:3])])
    suite.error("nothing", [word("")])
    suite.error("text", [word("no image")])
    suite.error("channels", [word(good)], {"channels": 2})
    suite.error("ratio", [word(good)], {"ratio": 3})
    suite.error("method", [word(good)], {"dct_method": "SLOW"})
    suite.error("many", [words(good, good)])
    yield suite.finish()


def encoders(folder):
    """EncodePng and EncodeJpeg: what they write differs, what it decodes to is tested in tests/graphs/images.rs."""
    suite = Suite(folder, "image", "EncodePng")
    for dtype in ("uint8", "uint16"):
        for channels in (1, 2, 3, 4):
            suite.case(f"{dtype}_{channels}", [np.ones((3, 4, channels), dtype)], shape_only=(0,))
    for compression in (-1, 0, 1, 9):
        suite.case(f"compression_{compression}".replace("-", "m"), [np.ones((3, 4, 3), np.uint8)], {"compression": compression}, shape_only=(0,))
    suite.case("batch", [np.ones((2, 3, 4, 5, 3), np.uint8)], shape_only=(0,))
    suite.error("rank", [np.ones((4, 5), np.uint8)])
    suite.error("channels", [np.ones((4, 5, 5), np.uint8)])
    suite.error("no_channels", [np.ones((4, 5, 0), np.uint8)])
    suite.error("no_rows", [np.ones((0, 5, 3), np.uint8)])
    suite.error("compression", [np.ones((4, 5, 3), np.uint8)], {"compression": 10})
    yield suite.finish()
    suite = Suite(folder, "image", "EncodeJpeg")
    for channels, names in ((1, ("", "grayscale")), (3, ("", "rgb"))):
        for name in names:
            suite.case(f"{channels}_{name or 'any'}", [np.ones((9, 7, channels), np.uint8)], {"format": name}, shape_only=(0,))
    for name, attrs in {
        "quality_0": {"quality": 0},
        "quality_100": {"quality": 100},
        "progressive": {"progressive": True, "optimize_size": True},
        "whole_colours": {"chroma_downsampling": False},
        "density": {"density_unit": "cm", "x_density": 10, "y_density": 20},
        "metadata": {"xmp_metadata": "<x/>"},
    }.items():
        suite.case(name, [np.ones((9, 7, 3), np.uint8)], attrs, shape_only=(0,))
    suite.error("rank", [np.ones((4, 5), np.uint8)])
    suite.error("channels", [np.ones((4, 5, 2), np.uint8)])
    suite.error("not_grey", [np.ones((4, 5, 3), np.uint8)], {"format": "grayscale"})
    suite.error("not_rgb", [np.ones((4, 5, 1), np.uint8)], {"format": "rgb"})
    suite.error("quality", [np.ones((4, 5, 3), np.uint8)], {"quality": 101})
    suite.error("no_rows", [np.ones((0, 5, 3), np.uint8)])
    yield suite.finish()


GROUPS = [decode_png, decode_jpeg, encoders]
