"""Images: sizes, colours, boxes. Encoded forms are in codecs.py."""

import numpy as np

from .data import array, full, normal, seeded
from .suite import EXACT, Suite

NUMBERS = ["int8", "uint8", "int16", "uint16", "int32", "int64", "bfloat16", "half", "float", "double"]
GRIDS = {"legacy": {}, "corners": {"align_corners": True}, "half": {"half_pixel_centers": True}}
# Height and width before and after.
SIZES = [((5, 7), (5, 7)), ((5, 7), (11, 13)), ((5, 7), (3, 2)), ((1, 1), (3, 4)), ((4, 6), (1, 1)), ((2, 9), (9, 2))]
BOTH = {"align_corners": True, "half_pixel_centers": True}


def pixels(name, dtype, shape):
    rng = seeded("images", name, dtype, *shape)
    if dtype in ("bfloat16", "half", "float", "double"):
        return normal(rng, dtype, shape, 100.0)
    return full(rng, dtype, shape)


def text(pair):
    return "x".join(map(str, pair))


def refusals(suite, dtype="float"):
    x = pixels("refused", dtype, (1, 3, 4, 2))
    suite.error("both_grids", [x, np.int32([2, 2])], BOTH, const=[1])
    for name, size in {"zero": [0, 2], "negative": [2, -1], "three": [2, 2, 2], "one": [2]}.items():
        suite.error(name, [x, np.int32(size)], const=[1])
    suite.error("scalar_size", [x, np.int32(2)], const=[1])
    suite.error("rank", [x[0], np.int32([2, 2])], const=[1])
    suite.error("no_height", [x[:, :0], np.int32([2, 2])], const=[1])


# A weighted mean in single precision: the terms are at most the largest pixel, the weights of a cubic sum to less than 2.
def near(x, steps):
    return {"absolute": float(steps * 2.0**-24 * max(1.0, np.max(np.abs(np.asarray(x, np.float64)), initial=0.0))), "relative": 0}


def resizes(folder):
    """ResizeBilinear, ResizeNearestNeighbor and ResizeBicubic."""
    for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"):
        suite = Suite(folder, "image", op)
        for dtype in NUMBERS:
            for turn, (grid, attrs) in enumerate(GRIDS.items()):
                sizes = SIZES if dtype == "float" else [SIZES[1 + (turn + NUMBERS.index(dtype)) % 2]]
                for number, (before, after) in enumerate(sizes):
                    x = pixels(op, dtype, (2 if number < 2 else 1, *before, 1 + number % 3))
                    tolerance = EXACT if op == "ResizeNearestNeighbor" else near(x, 8)
                    options = {} if tolerance == EXACT else {"tolerance": tolerance, "reason": "a weighted mean in single precision"}
                    suite.case(f"{dtype}_{grid}_{text(before)}_{text(after)}", [x, np.int32(after)], attrs, const=[1], **options)
        for grid, attrs in GRIDS.items():
            x = pixels(op, "float", (1, 17, 23, 2))
            options = {} if op == "ResizeNearestNeighbor" else {"tolerance": near(x, 8), "reason": "a weighted mean in single precision"}
            suite.case(f"large_{grid}", [x, np.int32([31, 29])], attrs, const=[1], **options)
        suite.case("no_batch", [np.zeros((0, 3, 4, 2), np.float32), np.int32([2, 2])], const=[1])
        refusals(suite)
        yield suite.finish()


def gradients(folder):
    """ResizeBilinearGrad and ResizeNearestNeighborGrad."""
    suite = Suite(folder, "image", "ResizeBilinearGrad")
    for dtype in ("float", "double", "half", "bfloat16"):
        for grid, attrs in GRIDS.items():
            for before, after in SIZES if dtype == "float" else SIZES[1:3]:
                x = pixels("grad", "float", (2, *after, 3)) / 16
                options = {} if dtype in ("half", "bfloat16") else {"tolerance": near(x, 64), "reason": "a sum in single precision"}
                suite.case(f"{dtype}_{grid}_{text(before)}_{text(after)}", [x, array(np.zeros((2, *before, 3)), dtype)], attrs, **options)
    x = np.ones((2, 3, 3, 1), np.float32)
    suite.error("channels", [x, np.ones((2, 3, 3, 2), np.float32)])
    suite.error("rank", [x, np.ones((3, 3, 1), np.float32)])
    suite.error("both_grids", [x, x], BOTH)
    yield suite.finish()
    suite = Suite(folder, "image", "ResizeNearestNeighborGrad")
    for dtype in ("uint8", "int8", "int32", "half", "bfloat16", "float", "double"):
        for grid, attrs in GRIDS.items():
            for before, after in SIZES if dtype == "float" else SIZES[1:3]:
                x = pixels("nearest_grad", dtype, (2, *after, 2))
                suite.case(f"{dtype}_{grid}_{text(before)}_{text(after)}", [x, np.int32(before)], attrs, const=[1])
    refusals(suite)
    yield suite.finish()


def crops(folder):
    """CropAndResize."""
    suite = Suite(folder, "image", "CropAndResize")
    boxes = np.float32([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [1, 1, 0, 0], [-0.3, 0.2, 0.5, 1.4], [0.5, 0.5, 0.5, 0.5], [2, 2, 3, 3]])
    indices = np.int32([0, 1, 1, 0, 1, 0])
    for dtype in ("uint8", "uint16", "int8", "int16", "int32", "int64", "half", "float", "double"):
        for method in ("bilinear", "nearest"):
            for size in ((4, 5), (1, 1), (1, 3)):
                x = pixels("crop", dtype, (2, 6, 7, 2))
                attrs = {"method": method, "extrapolation_value": -1.5}
                options = {"tolerance": near(x, 16), "reason": "a weighted mean in single precision"}
                suite.case(f"{dtype}_{method}_{text(size)}", [x, boxes, indices, np.int32(size)], attrs, const=[3], **options)
    x = pixels("crop", "float", (2, 6, 7, 2))
    suite.case("no_boxes", [x, np.zeros((0, 4), np.float32), np.zeros(0, np.int32), np.int32([2, 2])], const=[3])
    suite.case("plain", [x, boxes, indices, np.int32([6, 7])], const=[3], tolerance=near(x, 16), reason="a weighted mean in single precision")
    for name, size in {"zero": [0, 2], "negative": [2, -2], "three": [1, 2, 3]}.items():
        suite.error(name, [x, boxes, indices, np.int32(size)], const=[3])
    suite.error("index", [x, boxes, np.int32([0, 1, 2, 0, 1, 0]), np.int32([2, 2])], const=[3])
    suite.error("negative_index", [x, boxes, np.int32([0, 1, -1, 0, 1, 0]), np.int32([2, 2])], const=[3])
    suite.error("few_indices", [x, boxes, indices[:3], np.int32([2, 2])], const=[3])
    suite.error("corners", [x, boxes[:, :3], indices, np.int32([2, 2])], const=[3])
    suite.error("rank", [x[0], boxes, indices, np.int32([2, 2])], const=[3])
    yield suite.finish()


def colours(folder):
    """RGBToHSV, HSVToRGB and AdjustContrastv2."""
    for op in ("RGBToHSV", "HSVToRGB"):
        suite = Suite(folder, "image", op)
        for dtype in ("half", "bfloat16", "float", "double"):
            x = array(seeded(op, dtype).random((3, 7, 3)), dtype)
            grid = array(np.stack(np.meshgrid([0, 0.25, 0.5, 1], [0, 0.5, 1], [0, 0.5, 1]), -1).reshape(-1, 3), dtype)
            # A hue near a border of two formulas is a difference of close numbers.
            unit = {"half": 2.0**-10, "bfloat16": 2.0**-7, "float": 2.0**-23, "double": 2.0**-52}[dtype]
            options = {"tolerance": {"absolute": 4 * unit, "relative": 0}, "reason": "parts of a whole of 1, rounded at each of some steps"}
            suite.case(f"{dtype}_random", [x], **options)
            suite.case(f"{dtype}_corners", [grid], **options)
            suite.case(f"{dtype}_pixel", [x[0, 0]], **options)
            suite.case(f"{dtype}_empty", [x[:0]])
        suite.case("float_large", [array(seeded(op, "large").random((23, 31, 3)), "float")], tolerance={"absolute": 4 * 2.0**-23, "relative": 0}, reason="parts of a whole of 1")
        suite.error("four", [np.ones((2, 4), np.float32)])
        suite.error("scalar", [np.float32(1)])
        yield suite.finish()
    suite = Suite(folder, "image", "AdjustContrastv2")

    def reference(case):
        x, factor = case.inputs[0].astype(np.longdouble), np.longdouble(case.inputs[1])
        mean = x.mean((-3, -2), keepdims=True)
        size = np.abs(x).mean((-3, -2), keepdims=True)
        return [((x - mean) * factor + mean, np.abs(factor) * (np.abs(x) + size) + size)]

    for shape in [(2, 5, 7, 3), (4, 4, 1), (1, 1, 3), (2, 3, 4, 5, 2), (31, 37, 3)]:
        for factor in (0.0, 0.5, 1.0, 2.5, -1.0):
            if shape[0] == 31 and factor != 0.5:
                continue
            x = normal(seeded("contrast", *shape), "float", shape, 50.0, 100.0)
            suite.case(f"{text(shape)}_{factor}".replace(".", "_").replace("-", "m"), [x, np.float32(factor)], const=[1], reference=reference, terms=shape[-3] * shape[-2])
    suite.case("empty", [np.zeros((0, 3, 4, 2), np.float32), np.float32(2)], const=[1])
    suite.error("rank", [np.ones((3, 4), np.float32), np.float32(2)], const=[1])
    suite.error("factors", [np.ones((3, 4, 1), np.float32), np.float32([2])], const=[1])
    yield suite.finish()


def suppression(folder):
    """NonMaxSuppressionV3."""
    suite = Suite(folder, "image", "NonMaxSuppressionV3")
    rng = seeded("boxes")
    corner, size = rng.random((40, 2)) * 4, rng.random((40, 2)) * 2
    boxes, scores = np.concatenate([corner, corner + size], 1), rng.standard_normal(40)
    plain = [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]
    sets = {
        "random": (boxes, scores),
        "plain": (plain, [0.9, 0.75, 0.6, 0.95, 0.5, 0.3]),
        "flipped": ([[1, 1, 0, 0], [0, 0.9, 1, -0.1], *plain[2:]], [0.9, 0.75, 0.6, 0.95, 0.5, 0.3]),
        "equal_scores": (plain, [0.5] * 6),
        "no_area": ([[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 1, 1]], [0.9, 0.8, 0.7]),
        # Exactly half and exactly a third of the union.
        "at_threshold": ([[0, 0, 2, 1], [0, 0, 1, 1], [0, 0, 2, 2], [1, 0, 3, 2]], [0.9, 0.8, 0.7, 0.6]),
        "none": (np.zeros((0, 4)), np.zeros(0)),
    }
    for kind in ("float", "half"):
        for other in ("float", "half"):
            for name, (at, score) in sets.items() if kind == other else [("plain", sets["plain"])]:
                for most, overlap, least in ((3, 0.5, 0.0), (100, 0.5, -100.0), (10, 0.0, 0.4), (0, 1.0, -1.0)):
                    inputs = [array(at, kind), array(score, kind), np.int32(most), array(overlap, other), array(least, other)]
                    case = f"{kind}_{other}_{name}_{most}_{overlap}_{least}".replace(".", "_").replace("-", "m")
                    suite.case(case, inputs, const=[2, 3, 4])
    x, y = array(plain, "float"), np.float32([0.9, 0.75, 0.6, 0.95, 0.5, 0.3])
    half, none = np.float32(0.5), np.float32(0)
    suite.error("overlap_large", [x, y, np.int32(3), np.float32(1.5), none])
    suite.error("overlap_negative", [x, y, np.int32(3), np.float32(-0.5), none])
    suite.error("negative_count", [x, y, np.int32(-1), half, none])
    suite.error("few_scores", [x, y[:5], np.int32(3), half, none])
    suite.error("corners", [x[:, :3], y, np.int32(3), half, none])
    suite.error("counts", [x, y, np.int32([3]), half, none])
    suite.error("thresholds", [x, y, np.int32(3), np.float32([0.5]), none])
    yield suite.finish()


GROUPS = [resizes, gradients, crops, colours, suppression]
