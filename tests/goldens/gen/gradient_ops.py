"""Ops that are gradients of dilation, of images, of picked segments, of the gamma function, and of quantisation in
training. Those of pooling are in pool_more.py and pool_grad.py, those of convolutions in conv_grad.py."""

import numpy as np

from .data import FLOATS, NUMBERS, array, normal, seeded, small
from .fake_quant import LEVELS, bad_bits, nudged, numbers
from .images import BOTH, GRIDS, SIZES, near, pixels, text
from .layout import padding_of
from .quantise import pair, shape_name
from .segments import FEW
from .suite import Suite

DILATIONS = {
    "one": ((1, 1, 1, 1), (1, 1, 1), (1, 1), (1, 1), "VALID"),
    "same": ((2, 5, 4, 3), (3, 2, 3), (1, 1), (1, 1), "SAME"),
    "valid": ((1, 5, 6, 2), (2, 3, 2), (2, 1), (1, 1), "VALID"),
    "rates": ((1, 7, 6, 2), (2, 2, 2), (1, 2), (3, 2), "SAME"),
    "empty_batch": ((0, 3, 3, 2), (2, 2, 2), (1, 1), (1, 1), "SAME"),
    "many": ((3, 9, 8, 19), (2, 2, 19), (1, 1), (1, 1), "SAME"),
}


def dilation(folder):
    """Dilation2DBackpropInput and Dilation2DBackpropFilter."""
    for op in ("Dilation2DBackpropInput", "Dilation2DBackpropFilter"):
        suite = Suite(folder, "nn_grad", op)
        for dtype in NUMBERS:
            for label in DILATIONS if dtype in ("float", "int32") else ("same", "rates"):
                image, window, strides, rates, padding = DILATIONS[label]
                rng = seeded(op, dtype, label)
                out = [padding_of(image[i + 1], window[i], strides[i], rates[i], padding, None)[2] for i in (0, 1)]
                # Small whole numbers: equal sums, and gradients whose sums round nowhere.
                inputs = [small(rng, dtype, image), small(rng, dtype, window), small(rng, dtype, (image[0], *out, image[3]))]
                suite.case(f"{dtype}_{label}", inputs, {"strides": [1, *strides, 1], "rates": [1, *rates, 1], "padding": padding})
        one = {"strides": [1] * 4, "rates": [1] * 4, "padding": "VALID"}
        x, w, dy = np.ones((1, 3, 3, 2), np.float32), np.ones((2, 2, 2), np.float32), np.ones((1, 2, 2, 2), np.float32)
        suite.case("float_nan", [x * np.float32(np.nan), w, dy], one)
        same = {"strides": [1] * 4, "rates": [1, 2, 2, 1], "padding": "SAME"}
        suite.case("float_nan_rates", [x * np.float32(np.nan), w, x], same)
        suite.error("gradient_rows", [x, w, dy[:, :1]], one)
        suite.error("gradient_rank", [x, w, dy[0]], one)
        suite.error("channels", [x, w[..., :1], dy], one)
        suite.error("image_rank", [x[0], w, dy], one)
        suite.error("filter_rank", [x, w[0], dy], one)
        suite.error("stride_batch", [x, w, dy], one | {"strides": [2, 1, 1, 1]})
        suite.error("rate_depth", [x, w, dy], one | {"rates": [1, 1, 1, 2]})
        yield suite.finish()


MEAN = "a sum of weighted numbers in single precision"


def bicubic(folder):
    """ResizeBicubicGrad."""
    suite = Suite(folder, "image", "ResizeBicubicGrad")
    for dtype in ("float", "double"):
        for grid, attrs in GRIDS.items():
            for before, after in SIZES:
                x = pixels("bicubic_grad", "float", (2, *after, 3)) / 16
                name = f"{dtype}_{grid}_{text(before)}_{text(after)}"
                image = array(np.zeros((2, *before, 3)), dtype)
                suite.case(name, [x, image], attrs, tolerance=near(x, 64), reason=MEAN)
    x = np.ones((2, 3, 3, 1), np.float32)
    suite.case("no_batch", [x[:0], x[:0]])
    suite.error("rank", [x, x[0]])
    suite.error("both_grids", [x, x], BOTH)
    yield suite.finish()


BOXES = np.float32([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [1, 1, 0, 0], [-0.3, 0.2, 0.5, 1.4], [0.5, 0.5, 0.5, 0.5], [2, 2, 3, 3]])
INDICES = np.int32([0, 1, 1, 0, 1, 0])


def crops(folder):
    """CropAndResizeGradImage and CropAndResizeGradBoxes."""
    suite = Suite(folder, "image", "CropAndResizeGradImage")
    size = np.int32([2, 6, 7, 2])
    for dtype in ("half", "float", "double"):
        for method in ("bilinear", "nearest"):
            for crop in ((4, 5), (1, 1), (1, 3)):
                # Of halves whole numbers, of which TensorFlow's sums round nowhere if none is divided.
                grads = small(seeded("crop_grad", *crop), "float", (6, *crop, 2))
                tolerance = {"absolute": 2.0**-6, "relative": 2.0**-9} if dtype == "half" else near(grads, 64)
                attrs = {"method": method, "T": dtype}
                suite.case(f"{dtype}_{method}_{text(crop)}", [grads, BOXES, INDICES, size], attrs, const=[3], tolerance=tolerance, reason=MEAN)
    grads = np.ones((6, 2, 2, 2), np.float32)
    plain = {"T": "float"}
    suite.case("no_boxes", [grads[:0], BOXES[:0], INDICES[:0], size], plain, const=[3])
    suite.error("index", [grads, BOXES, INDICES + np.int32(1), size], plain, const=[3])
    suite.error("few_indices", [grads, BOXES, INDICES[:3], size], plain, const=[3])
    suite.error("few_grads", [grads[:3], BOXES, INDICES, size], plain, const=[3])
    suite.error("corners", [grads, BOXES[:, :3], INDICES, size], plain, const=[3])
    suite.error("channels", [grads[..., :1], BOXES, INDICES, size], plain, const=[3])
    suite.error("size_length", [grads, BOXES, INDICES, size[1:]], plain, const=[3])
    suite.error("rank", [grads[0], BOXES, INDICES, size], plain, const=[3])
    yield suite.finish()
    suite = Suite(folder, "image", "CropAndResizeGradBoxes")
    for dtype in ("uint8", "uint16", "int8", "int16", "int32", "int64", "half", "float", "double"):
        for crop in ((4, 5), (1, 1), (1, 3)):
            grads = normal(seeded("box_grad", *crop), "float", (6, *crop, 2))
            image = pixels("box_grad", dtype, (2, 6, 7, 2)) if dtype not in ("int32", "int64") else small(seeded("box_image"), dtype, (2, 6, 7, 2), -99, 100)
            largest = float(np.max(np.abs(image.astype(np.float64)))) * 6
            tolerance = {"absolute": 128 * 2.0**-24 * largest * 2, "relative": 0}
            suite.case(f"{dtype}_{text(crop)}", [grads, image, BOXES, INDICES], tolerance=tolerance, reason=MEAN)
    image = np.ones((2, 6, 7, 2), np.float32)
    grads = np.ones((6, 2, 2, 2), np.float32)
    suite.case("no_boxes", [grads[:0], image, BOXES[:0], INDICES[:0]])
    suite.error("index", [grads, image, BOXES, INDICES + np.int32(1)])
    suite.error("few_indices", [grads, image, BOXES, INDICES[:3]])
    suite.error("corners", [grads, image, BOXES[:, :3], INDICES])
    suite.error("channels", [grads[..., :1], image, BOXES, INDICES])
    suite.error("rank", [grads, image[0], BOXES, INDICES])
    yield suite.finish()


# label: (segments and columns, indices, ids, rows)
PICKED = {
    "rows": ((2, 3), [4, 0, 0, 2], [0, 0, 1, 1], 5),
    "gaps": ((4, 2), [4, 0, 1], [1, 1, 3], 6),
    "vector": ((2,), [5, 5, 5, 1], [0, 0, 0, 1], 6),
    "unsorted": ((3, 2), [1, 0, 1, 1], [2, 0, 1, 2], 2),
    "no_rows": ((2, 3), [], [], 0),
    "no_columns": ((2, 0), [1, 0], [0, 1], 3),
    "wide": ((2, 37), [3, 2, 1, 0, 3], [0, 0, 0, 1, 1], 4),
    "long": ((7, 5), [i * 13 % 11 for i in range(200)], sorted(i * 7 % 7 for i in range(200)), 11),
}


def divisors(kind, ids, segments):
    counts = np.bincount(ids, minlength=segments).astype(np.float64)
    return {"Sum": np.ones(segments), "Mean": counts, "SqrtN": np.sqrt(counts)}[kind]


def segments(folder):
    """SparseSegmentSumGrad, SparseSegmentMeanGrad, SparseSegmentSqrtNGrad, and their second versions."""
    for kind in ("Sum", "Mean", "SqrtN"):
        for version in ("", "V2"):
            suite = Suite(folder, "reduction", f"SparseSegment{kind}Grad{version}")

            def exact(case):
                grad, indices, ids, rows = case.inputs[0].astype(np.float64), *case.inputs[1:]
                by = divisors(kind, ids, grad.shape[0])
                result = np.zeros((2, int(rows), *grad.shape[1:]))
                for index, segment in zip(indices, ids):
                    part = grad[segment] / by[segment]
                    result[0, index] += part
                    result[1, index] += np.abs(part)
                return [tuple(result[:, np.unique(indices)] if version else result)]

            for dtype in FLOATS:
                for label in PICKED if dtype == "float" else (*FEW, "unsorted"):
                    shape, indices, ids, rows = PICKED[label]
                    grad = normal(seeded(kind, dtype, label), dtype, shape)
                    inputs = [grad, np.int32(indices), np.int32(ids), np.int32(rows)]
                    suite.case(f"{dtype}_{label}", inputs, const=[3], reference=exact, terms=max(len(ids), 1), stepwise=True)
            segment_forms(suite, version)
            yield suite.finish()


def segment_forms(suite, version):
    """Types of indices and ids, and errors."""
    g, two = np.ones((3, 2), np.float32), np.int32([0, 1])
    rows = np.int32(3)
    suite.case("int64_indices", [g, np.int64([2, 0]), np.int32([0, 0]), rows], const=[3])
    suite.case("int64_ids", [g, np.int32([2, 0]), np.int64([0, 0]), rows], const=[3])
    suite.error("index_too_large", [g, np.int32([0, 3]), two, rows], const=[3])
    suite.error("index_negative", [g, np.int32([0, -1]), two, rows], const=[3])
    suite.error("id_too_large", [g, two, np.int32([0, 3]), rows], const=[3])
    suite.error("id_negative", [g, two, np.int32([-1, 0]), rows], const=[3])
    suite.error("lengths", [g, two, two[:1], rows], const=[3])
    suite.error("negative_rows", [g, two[:0], two[:0], np.int32(-1)], const=[3])
    suite.error("rows_vector", [g, two, two, np.int32([3])], const=[3])
    suite.error("scalar_grad", [g[0, 0], two[:0], two[:0], rows], const=[3])


INF, NAN = np.inf, np.nan
EDGES = ([0, 0, 1, 1, -1, 1, INF, 2, NAN, 2], [0, 1, 0, -1, 1, INF, 1, INF, 1, NAN])


def gammas(folder):
    """IgammaGradA and RandomGammaGrad."""
    for family, op in (("math_binary", "IgammaGradA"), ("random", "RandomGammaGrad")):
        suite = Suite(folder, family, op)
        for dtype in ("float", "double"):
            # TensorFlow sums in the type itself, and takes the logarithm of x and digamma of a apart.
            tolerance = {"absolute": 2e-5, "relative": 1e-4} if dtype == "float" else {"absolute": 1e-13, "relative": 1e-10}
            options = {"tolerance": tolerance, "reason": "series and continued fractions in the type itself, of terms that cancel"}

            def near_a(rng, shape):
                a = np.exp(rng.uniform(-1.5, 3, shape))
                return array(a, dtype), array(a * np.maximum(1 + rng.standard_normal(shape) / np.sqrt(a), 0.05), dtype)

            suite.case(f"{dtype}_101", near_a(seeded(op, dtype, "101"), (101,)), **dict(options))
            suite.case(f"{dtype}_3x4", near_a(seeded(op, dtype, "3x4"), (3, 4)), **dict(options))
            a, x = near_a(seeded(op, dtype, "row"), (3, 4))
            suite.case(f"{dtype}_row", [a, x[0]], **dict(options))
            suite.case(f"{dtype}_column", [a[:, :1], x], **dict(options))
            suite.case(f"{dtype}_scalar", [a[0, 0], x], **dict(options))
            suite.case(f"{dtype}_empty", [a[:0], x[:0]])
            suite.case(f"{dtype}_special", [array(side, dtype) for side in EDGES])
        suite.error("shapes", [np.ones((2, 3), np.float32), np.ones((2,), np.float32)])
        yield suite.finish()


def fake_quant(folder):
    """FakeQuantWithMinMaxVarsPerChannelGradient."""
    suite = Suite(folder, "quantization", "FakeQuantWithMinMaxVarsPerChannelGradient")

    def reference(case):
        gradient, x = [value.astype(np.float64) for value in case.inputs[:2]]
        bits, narrow = case.attrs.get("num_bits", 8), case.attrs.get("narrow_range", False)
        low, high = np.transpose([nudged(*ends, bits, narrow) for ends in zip(*case.inputs[2:])]).astype(np.float64)
        within = gradient * ((x >= low) & (x <= high))
        axes = tuple(range(x.ndim - 1))
        terms = [gradient * (x < low), gradient * (x > high)]
        return [(within, np.abs(within))] + [(part.sum(axes), np.abs(part).sum(axes)) for part in terms]

    for shape in [(7,), (5, 3), (2, 3, 4), (2, 3, 4, 5), (3, 1), (37, 41)]:
        rng = seeded("ends", "gradient", *shape)
        low, high = array(-rng.uniform(0, 4, shape[-1]), "float"), array(rng.uniform(0.5, 4, shape[-1]), "float")
        for bits, narrow in LEVELS if len(shape) < 3 and shape[0] < 9 else [(8, False)]:
            inputs = [normal(rng, "float", shape), numbers("channel_grad", -3, 3, shape), low, high]
            attrs = {"num_bits": bits, "narrow_range": narrow}
            suite.case(f"{shape_name(shape)}_{bits}_{narrow}", inputs, attrs, reference=reference, terms=int(np.prod(shape[:-1])))
    ends = np.float32([0, -1, 1]), np.float32([0, 2, 3])
    x = numbers("refused", -3, 3, (4, 3))
    suite.case("nothing", [small(seeded("nothing"), "float", (4, 3)), x, *ends])
    suite.case("empty", [x[:0], x[:0], *ends])
    suite.error("few_min", [x, x, ends[0][:2], ends[1]])
    suite.error("few_max", [x, x, ends[0], ends[1][:2]])
    suite.error("scalar_ends", [x, x, *pair(-1, 2)])
    suite.error("shapes", [x[:2], x, *ends])
    bad_bits(suite, [x, x, *ends], {})
    yield suite.finish()


def round_trip(folder):
    """QuantizeAndDequantizeV4Grad."""
    suite = Suite(folder, "quantization", "QuantizeAndDequantizeV4Grad")
    for dtype in ("float", "double"):
        for shape, axis in [((), -1), ((0,), -1), ((7, 11), -1), ((5, 3), 0), ((5, 3), 1), ((2, 3, 5), 1), ((41, 43), -1), ((3, 41, 43), 1)]:
            rng = seeded("round_trip_grad", dtype, *shape, axis)
            inputs = [normal(rng, dtype, shape), normal(rng, dtype, shape, 3.0)]
            ends = () if axis < 0 else (shape[axis],)
            low, high = array(-rng.uniform(0, 4, ends), dtype), array(rng.uniform(0, 4, ends), dtype)
            if shape:
                inputs[1].reshape(-1)[:1] = np.reshape(low, -1)[0]
            suite.case(f"{dtype}_{shape_name(shape)}_{axis + 1}", [*inputs, low, high], {"axis": axis})
        x = array([np.nan, np.inf, -np.inf, 1], dtype)
        suite.case(f"{dtype}_special", [array([1, 2, 3, np.nan], dtype), x, array(-1, dtype), array(2, dtype)])
    x, one = np.ones((2, 3), np.float32), np.float32(1)
    suite.error("shapes", [x[:1], x, -one, one])
    suite.error("vector_ends", [x, x, np.float32([-1]), np.float32([1])])
    suite.error("few_ends", [x, x, np.float32([-1, -1]), np.float32([1, 1])], {"axis": 1})
    suite.error("axis", [x, x, -one, one], {"axis": -2})
    suite.error("axis_too_large", [x, x, np.float32([-1]), np.float32([1])], {"axis": 2})
    yield suite.finish()


GROUPS = [dilation, bicubic, crops, segments, gammas, fake_quant, round_trip]
