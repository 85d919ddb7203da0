"""Ops that repeat, mirror, turn and rearrange: Tile, BroadcastTo, MirrorPad, Reverse, Roll, SpaceToBatch, ..."""

import numpy as np

from .array_index import JOINED, SLICED, WIDE, labels
from .arrays import PADS, make
from .data import COMPLEX, NUMBERS, QUANTISED, seeded, small
from .layout import as_nhwc
from .stand_in import as_signed
from .suite import Suite

ROUND = NUMBERS + COMPLEX
TILES = {  # label: (shape, multiples)
    "vector": ((3,), [2]),
    "matrix": ((2, 3), [2, 3]),
    "rows": ((2, 3), [4, 1]),
    "columns": ((2, 3), [1, 3]),
    "once": ((2, 3), [1, 1]),
    "never": ((2, 3), [2, 0]),
    "empty": ((0, 3), [2, 2]),
    "ones": ((1, 1, 2), [3, 2, 1]),
    "rank5": ((1, 2, 1, 2, 1), [2, 1, 2, 2, 1]),
    "scalar": ((), []),
    "large": ((17, 19), [3, 2]),
}


def tile(folder):
    """Tile."""
    suite = Suite(folder, "array", "Tile")
    for dtype in JOINED:
        # Of these, TensorFlow lists uint16 and refuses it too.
        options = as_signed(dtype) if dtype in QUANTISED or dtype == "uint16" else {}
        for label in labels(dtype, TILES, ["matrix", "rows"]):
            shape, multiples = TILES[label]
            inputs = [make(suite, dtype, label, shape), np.array(multiples, np.int32)]
            suite.case(f"{dtype}_{label}", inputs, const=[1], **options)
    x = make(suite, "float", "x", (2, 3))
    suite.case("float_int64", [x, np.int64([2, 2])], const=[1])
    for label, multiples in {"negative": [-1, 1], "short": [2], "matrix": [[2, 2]], "overflow": [2**31 - 1] * 2}.items():
        suite.error(label, [x, np.int32(multiples)], const=[1])
    suite.error("overflow_int64", [x, np.int64([2**62, 4])], const=[1])
    yield suite.finish()


BROADCASTS = {  # label: (shape, to)
    "same": ((2, 3), [2, 3]),
    "rows": ((3,), [2, 3]),
    "columns": ((2, 1), [2, 3]),
    "scalar": ((), [2, 3]),
    "both": ((2, 1, 3, 1), [4, 2, 5, 3, 2]),
    "empty": ((1, 3), [0, 3]),
    "to_scalar": ((), []),
    "one": ((1,), [1]),
    "large": ((1, 53), [37, 53]),
    "large_columns": ((37, 1), [37, 53]),
}


def broadcast(folder):
    """BroadcastTo, BroadcastArgs and BroadcastGradientArgs."""
    suite = Suite(folder, "array", "BroadcastTo")
    for dtype in WIDE:
        for label in labels(dtype, BROADCASTS, ["rows", "columns"]):
            shape, to = BROADCASTS[label]
            suite.case(f"{dtype}_{label}", [make(suite, dtype, label, shape), np.array(to, np.int32)], const=[1])
    x = make(suite, "float", "x", (2, 3))
    suite.case("float_int64", [x, np.int64([2, 2, 3])], const=[1])
    for label, to in {"sizes": [3, 3], "fewer": [3], "smaller": [1, 3], "negative": [-1, 2, 3], "matrix": [[2, 3]]}.items():
        suite.error(label, [x, np.int32(to)], const=[1])
    yield suite.finish()
    pairs = {
        "same": ([2, 3], [2, 3]),
        "same_ones": ([1, 1], [1, 1]),
        "rows": ([2, 3], [3]),
        "rows_left": ([3], [2, 3]),
        "columns": ([2, 3], [2, 1]),
        "both": ([2, 1, 5], [4, 1]),
        "ones": ([1, 2, 1], [1, 1, 1]),
        "ones_longer": ([1, 1], [1]),
        "scalar": ([], [2, 3]),
        "scalars": ([], []),
        "empty": ([0, 3], [1, 3]),
        "rank6": ([2, 1, 3, 1, 1, 4], [3, 5, 1, 4]),
    }
    for op in ("BroadcastArgs", "BroadcastGradientArgs"):
        suite = Suite(folder, "array", op)
        for kind in ("int32", "int64"):
            for label, pair in pairs.items():
                suite.case(f"{kind}_{label}", [np.array(shape, kind) for shape in pair])
        suite.error("sizes", [np.int32([2]), np.int32([3])])
        suite.error("matrix", [np.int32([[2]]), np.int32([2])])
        suite.error("scalar", [np.int32(2), np.int32([2])])
        yield suite.finish()


MIRRORS = {  # label: (shape, paddings)
    "vector": ((5,), [[2, 3]]),
    "matrix": ((3, 4), [[1, 2], [2, 0]]),
    "none": ((3,), [[0, 0]]),
    "image": ((2, 3, 4, 2), [[0, 0], [1, 2], [2, 1], [0, 0]]),
    "rank5": ((2, 2, 3, 2, 2), [[1, 1], [0, 1], [2, 0], [0, 0], [1, 0]]),
    "large": ((29, 43), [[3, 5], [7, 3]]),
}


def pads(folder):
    """PadV2, MirrorPad and MirrorPadGrad."""
    suite = Suite(folder, "array", "PadV2")
    for dtype in SLICED:
        for label in labels(dtype, PADS, ["matrix", "empty"]):
            shape, amounts = PADS[label]
            inputs = [make(suite, dtype, label, shape), np.array(amounts, np.int32), make(suite, dtype, label + "v", ())]
            suite.case(f"{dtype}_{label}", inputs, const=[1])
    x, one = np.ones((2, 3), np.float32), np.float32(7)
    suite.case("float_int64", [x, np.int64([[1, 0], [0, 2]]), one], const=[1])
    suite.error("negative", [x, np.int32([[-1, 0], [0, 0]]), one], const=[1])
    suite.error("rows", [x, np.int32([[1, 1]]), one], const=[1])
    suite.error("value", [x, np.int32([[1, 1], [1, 1]]), np.float32([7])], const=[1])
    yield suite.finish()

    for op in ("MirrorPad", "MirrorPadGrad"):
        suite = Suite(folder, "array", op)
        grad = op == "MirrorPadGrad"
        for dtype in ROUND if grad else SLICED:
            for mode in ("REFLECT", "SYMMETRIC"):
                for label in labels(dtype, MIRRORS, ["matrix", "image"]):
                    shape, amounts = MIRRORS[label]
                    whole = tuple(np.add(shape, np.sum(amounts, 1))) if grad else shape
                    x = small(seeded(op, dtype, label), dtype, whole) if grad else make(suite, dtype, label, whole)
                    inputs = [x, np.array(amounts, np.int32)]
                    suite.case(f"{dtype}_{label}_{mode.lower()}", inputs, {"mode": mode}, const=[1])
        x = np.ones((3, 4), np.float32)
        mode = {"mode": "SYMMETRIC"}
        suite.case("float_int64", [x, np.int64([[1, 0], [0, 2]])], mode, const=[1])
        suite.case("float_most", [np.float32(np.arange(9 if grad else 3)), np.int32([[3, 3]])], mode, const=[1])
        if not grad:
            suite.case("float_scalar", [np.float32(3), np.zeros((0, 2), np.int32)], mode, const=[1])
        suite.error("negative", [x, np.int32([[-1, 0], [0, 0]])], mode, const=[1])
        suite.error("rows", [x, np.int32([[1, 1]])], mode, const=[1])
        suite.error("symmetric_much", [x, np.int32([[4, 0], [0, 0]])], mode, const=[1])
        suite.error("reflect_much", [x, np.int32([[3, 0], [0, 0]])], {"mode": "REFLECT"}, const=[1])
        suite.error("mode", [x, np.int32([[1, 0], [0, 0]])], {"mode": "WRAP"}, const=[1])
        yield suite.finish()


TURNS = {  # label: (shape, axes)
    "vector": ((7,), [0]),
    "rows": ((3, 4), [0]),
    "columns": ((3, 4), [1]),
    "both": ((3, 4), [-1, 0]),
    "none": ((3, 4), []),
    "middle": ((2, 3, 2), [1]),
    "rank5": ((2, 1, 3, 2, 2), [0, 2, 4]),
    "empty": ((0, 3), [0, 1]),
    "scalar": ((), []),
    "large": ((37, 53), [1]),
}


def reverse(folder):
    """ReverseV2, Reverse and ReverseSequence."""
    suite = Suite(folder, "array", "ReverseV2")
    for dtype in WIDE:
        for label in labels(dtype, TURNS, ["rows", "both"]):
            shape, axes = TURNS[label]
            suite.case(f"{dtype}_{label}", [make(suite, dtype, label, shape), np.array(axes, np.int32)], const=[1])
    x = make(suite, "float", "x", (3, 4))
    suite.case("float_int64", [x, np.int64([1])], const=[1])
    for label, axes in {"high": [2], "low": [-3], "twice": [0, 0], "alias": [1, -1], "matrix": [[0]]}.items():
        suite.error(label, [x, np.int32(axes)], const=[1])
    yield suite.finish()

    suite = Suite(folder, "array", "Reverse")
    turns = [label for label in TURNS if label != "empty"]  # which TensorFlow refuses here only
    for dtype in WIDE:
        for label in labels(dtype, turns, ["rows", "both"]):
            shape, axes = TURNS[label]
            flags = np.zeros(len(shape), np.bool_)
            flags[axes] = True
            suite.case(f"{dtype}_{label}", [make(suite, dtype, label, shape), flags], const=[1])
    suite.error("short", [x, np.array([True])], const=[1])
    suite.error("matrix", [x, np.array([[True, False]])], const=[1])
    yield suite.finish()

    suite = Suite(folder, "array", "ReverseSequence")
    forms = {  # label: (shape, lengths, seq_dim, batch_dim)
        "rows": ((3, 5), [2, 0, 5], 1, 0),
        "columns": ((4, 2), [3, 4], 0, 1),
        "inner": ((2, 4, 3), [4, 1], 1, 0),
        "apart": ((2, 3, 4), [3, 2], 2, 0),
        "behind": ((3, 4, 2), [1, 3], 0, 2),
        "empty": ((0, 3), [], 1, 0),
        "large": ((23, 61), np.arange(23) * 5 % 62, 1, 0),
    }
    for dtype in WIDE:
        for label in labels(dtype, forms, ["rows", "inner"]):
            shape, lengths, seq, batch = forms[label]
            inputs = [make(suite, dtype, label, shape), np.array(lengths, np.int64)]
            suite.case(f"{dtype}_{label}", inputs, {"seq_dim": seq, "batch_dim": batch})
    x = make(suite, "float", "errors", (3, 4))
    suite.case("float_int32", [x, np.int32([1, 4, 2])], {"seq_dim": 1})
    for label, lengths, seq, batch in (
        ("long", [1, 5, 2], 1, 0),
        ("negative", [1, -1, 2], 1, 0),
        ("count", [1, 2], 1, 0),
        ("same", [1, 2, 3], 0, 0),
        ("seq_high", [1, 2, 3], 2, 0),
        ("batch_high", [1, 2, 3], 1, 2),
        ("matrix", [[1, 2, 3]], 1, 0),
    ):
        suite.error(label, [x, np.int64(lengths)], {"seq_dim": seq, "batch_dim": batch})
    yield suite.finish()


def roll(folder):
    """Roll."""
    suite = Suite(folder, "array", "Roll")
    forms = {  # label: (shape, shift, axis)
        "vector": ((7,), 3, 0),
        "rows": ((3, 4), -1, 0),
        "columns": ((3, 4), 6, 1),
        "both": ((3, 4), [1, -2], [0, 1]),
        "negative": ((3, 4), [1, 2], [-1, -2]),
        "twice": ((5, 4), [3, 4], [0, 0]),
        "none": ((3, 4), 0, 0),
        "round": ((3, 4), 8, 1),
        "middle": ((2, 5, 3), 2, 1),
        "empty": ((0, 3), 1, 0),
        "no_axes": ((3,), [], []),
        "large": ((37, 53), [11, -29], [0, 1]),
    }
    for dtype in WIDE:
        for label in labels(dtype, forms, ["rows", "both"]):
            shape, shift, axis = forms[label]
            inputs = [make(suite, dtype, label, shape), np.array(shift, np.int32), np.array(axis, np.int32)]
            suite.case(f"{dtype}_{label}", inputs, const=[1, 2])
    x = make(suite, "float", "x", (3, 4))
    suite.case("float_int64", [x, np.int64([5]), np.int64([1])], const=[1, 2])
    suite.case("float_mixed", [x, np.int64([5]), np.int32([1])], const=[1, 2])
    for label, shift, axis in (("high", 1, 2), ("low", 1, -3), ("lengths", [1, 2], [0]), ("ranks", [1], 0), ("matrix", [[1]], [[0]])):
        suite.error(label, [x, np.int32(shift), np.int32(axis)], const=[1, 2])
    suite.error("of_scalar", [np.float32(1), np.int32(1), np.int32(0)], const=[1, 2])
    yield suite.finish()


def grouped(case):
    """NCHW_VECT_C by NHWC: groups of four channels are the last dimension."""
    x = case.inputs[0]
    plain = x.transpose(0, 2, 3, 1, 4).reshape(x.shape[0], x.shape[2], x.shape[3], -1)

    def back(results):
        return [r.reshape(*r.shape[:3], -1, 4).transpose(0, 3, 1, 2, 4).copy() for r in results]

    return [plain], case.attrs | {"data_format": "NHWC"}, back


def depth(folder):
    """SpaceToDepth and DepthToSpace."""
    for op in ("SpaceToDepth", "DepthToSpace"):
        suite = Suite(folder, "array", op)
        to_depth = op == "SpaceToDepth"
        forms = {  # label: (shape, block size)
            "two": ((2, 4, 6, 3) if to_depth else (2, 2, 3, 12), 2),
            "three": ((1, 3, 6, 2) if to_depth else (1, 1, 2, 18), 3),
            "one_channel": ((2, 4, 2, 1) if to_depth else (2, 2, 1, 4), 2),
            "empty": ((0, 2, 2, 4), 2),
            "large": ((2, 16, 12, 5) if to_depth else (2, 8, 6, 20), 2),
        }
        for dtype in WIDE + ["qint8"]:
            options = as_signed(dtype) if dtype in QUANTISED and not to_depth else {}
            for label in labels(dtype, forms, ["two", "three"]):
                shape, block = forms[label]
                suite.case(f"{dtype}_{label}", [make(suite, dtype, label, shape)], {"block_size": block}, **options)
        for dtype in ("float", "half", "uint8"):
            image = make(suite, dtype, "nchw", (2, 3, 4, 6) if to_depth else (2, 12, 2, 3))
            attrs = {"block_size": 2, "data_format": "NCHW"}
            suite.case(f"{dtype}_nchw", [image], attrs, run_as=as_nhwc, via="transpose")
            image = make(suite, dtype, "vect", (2, 2, 4, 6, 4) if to_depth else (2, 4, 2, 3, 4))
            attrs = {"block_size": 2, "data_format": "NCHW_VECT_C"}
            suite.case(f"{dtype}_vect_c", [image], attrs, run_as=grouped, via="transpose")
        x = make(suite, "float", "errors", (1, 4, 6, 8))
        suite.error("block", [x], {"block_size": 3 if to_depth else 5})
        suite.error("block_one", [x], {"block_size": 1})
        suite.error("rank", [x[0]], {"block_size": 2})
        yield suite.finish()


BLOCKS = {  # label: (shape, block, paddings)
    "one": ((2, 4, 3), [2], [[0, 0]]),
    "padded": ((2, 4, 3), [3], [[1, 1]]),
    "two": ((1, 4, 6, 2), [2, 3], [[0, 0], [0, 0]]),
    "two_padded": ((2, 3, 4, 2), [2, 3], [[1, 0], [2, 0]]),
    "inner_one": ((2, 2, 3, 2), [1, 3], [[0, 0], [0, 0]]),
    "three": ((1, 2, 3, 4), [2, 1, 2], [[1, 1], [0, 0], [0, 2]]),
    "much": ((1, 2, 1), [3], [[4, 3]]),
    "matrix": ((3, 4), [2], [[1, 1]]),
    "no_block": ((2, 3), [], np.zeros((0, 2))),
    "empty": ((0, 4), [2], [[0, 0]]),
    "large": ((2, 17, 22, 3), [3, 2], [[0, 1], [1, 1]]),
}


def batch(folder):
    """SpaceToBatchND, BatchToSpaceND, SpaceToBatch and BatchToSpace."""
    for op in ("SpaceToBatchND", "BatchToSpaceND"):
        suite = Suite(folder, "array", op, known_shapes=True)
        for dtype in NUMBERS:
            for label in labels(dtype, BLOCKS, ["two_padded", "padded"]):
                shape, block, pads = BLOCKS[label]
                if op == "BatchToSpaceND":
                    shape = batched(shape, block, pads)
                inputs = [make(suite, dtype, label, shape), np.array(block, np.int32), np.array(pads, np.int32)]
                suite.case(f"{dtype}_{label}", inputs, const=[1, 2])
        x = make(suite, "float", "x", (4, 4, 6, 2))
        suite.case("float_int64", [x, np.int64([2, 2]), np.int64([[0, 0], [2, 0]])], const=[1, 2])
        for label, block, pads in (
            ("divisor", [3, 5], [[0, 0], [0, 0]]),
            ("negative", [2, 2], [[-2, 0], [0, 0]]),
            ("block_zero", [0, 2], [[0, 0], [0, 0]]),
            ("block_negative", [-2, 2], [[0, 0], [0, 0]]),
            ("rows", [2, 2], [[0, 0]]),
            ("columns", [2, 2], [[0], [0]]),
            ("rank", [1, 1, 1, 1], [[0, 0]] * 4),
            ("block_matrix", [[2, 2]], [[0, 0], [0, 0]]),
        ) + ((("crops", [2, 2], [[8, 1], [0, 0]]),) if op == "BatchToSpaceND" else ()):
            suite.error(label, [x, np.int32(block), np.int32(pads)], const=[1, 2])
        yield suite.finish()
    for op in ("SpaceToBatch", "BatchToSpace"):
        suite = Suite(folder, "array", op)
        forms = {
            "plain": ((1, 4, 6, 2), 2, [[0, 0], [0, 0]]),
            "padded": ((2, 3, 4, 2), 3, [[2, 1], [1, 1]]),
            "empty": ((0, 2, 2, 1), 2, [[0, 0], [0, 0]]),
            "large": ((2, 15, 20, 3), 2, [[1, 0], [1, 1]]),
        }
        for dtype in NUMBERS:
            for label in labels(dtype, forms, ["plain", "padded"]):
                shape, block, pads = forms[label]
                if op == "BatchToSpace":
                    shape = batched(shape, [block, block], pads)
                inputs = [make(suite, dtype, label, shape), np.array(pads, np.int32)]
                suite.case(f"{dtype}_{label}", inputs, {"block_size": block}, const=[1])
        x = make(suite, "float", "x", (4, 4, 6, 2))
        suite.case("float_int64", [x, np.int64([[0, 0], [2, 0]])], {"block_size": 2}, const=[1])
        suite.error("divisor", [x, np.int32([[0, 0], [0, 0]])], {"block_size": 5}, const=[1])
        suite.error("negative", [x, np.int32([[-2, 0], [0, 0]])], {"block_size": 2}, const=[1])
        suite.error("rows", [x, np.int32([[0, 0]])], {"block_size": 2}, const=[1])
        suite.error("rank", [x[0], np.int32([[0, 0], [0, 0]])], {"block_size": 2}, const=[1])
        suite.error("block_one", [x, np.int32([[0, 0], [0, 0]])], {"block_size": 1}, const=[1])
        yield suite.finish()


def batched(shape, block, pads):
    """Shape of the result of SpaceToBatchND."""
    dims = [shape[0] * int(np.prod(block, dtype=int)), *shape[1:]]
    for at, (size, pair) in enumerate(zip(block, pads)):
        dims[at + 1] = (shape[at + 1] + sum(pair)) // size
    return tuple(dims)


def volume_patches(folder):
    """ExtractVolumePatches."""
    suite = Suite(folder, "array", "ExtractVolumePatches")
    forms = {  # label: (shape, ksizes, strides)
        "plain": ((2, 3, 4, 5, 2), (2, 2, 3), (1, 1, 1)),
        "strided": ((1, 5, 6, 4, 1), (2, 3, 2), (2, 1, 3)),
        "apart": ((1, 3, 3, 3, 2), (1, 1, 1), (2, 2, 2)),
        "whole": ((1, 2, 3, 4, 1), (2, 3, 4), (1, 1, 1)),
        "empty": ((0, 3, 3, 3, 1), (2, 2, 2), (1, 1, 1)),
    }
    for dtype in NUMBERS:
        for label in forms if dtype == "float" else ("strided",):
            shape, *lists = forms[label]
            names = dict(zip(("ksizes", "strides"), ([1, *sizes, 1] for sizes in lists)))
            for padding in ("SAME", "VALID"):
                suite.case(f"{dtype}_{label}_{padding.lower()}", [make(suite, dtype, label, shape)], names | {"padding": padding})
    x = make(suite, "float", "errors", (1, 4, 4, 4, 1))
    one = {"ksizes": [1, 2, 2, 2, 1], "strides": [1, 1, 1, 1, 1], "padding": "VALID"}
    for label, change in {"batch": {"ksizes": [2, 2, 2, 2, 1]}, "channels": {"strides": [1, 1, 1, 1, 2]}, "zero": {"ksizes": [1, 0, 2, 2, 1]}}.items():
        suite.error(label, [x], one | change)
    suite.error("rank", [x[0]], one)
    yield suite.finish()


def patches(folder):
    """ExtractImagePatches."""
    suite = Suite(folder, "array", "ExtractImagePatches")
    forms = {  # label: (shape, ksizes, strides, rates)
        "plain": ((2, 4, 5, 2), (2, 3), (1, 1), (1, 1)),
        "strided": ((1, 6, 7, 1), (3, 2), (2, 3), (1, 1)),
        "spread": ((1, 7, 6, 2), (2, 3), (1, 2), (3, 2)),
        "apart": ((1, 5, 5, 1), (1, 1), (2, 2), (1, 1)),
        "whole": ((1, 3, 4, 2), (3, 4), (1, 1), (1, 1)),
        "empty": ((0, 4, 4, 1), (2, 2), (1, 1), (1, 1)),
        "large": ((1, 13, 11, 2), (3, 3), (2, 2), (1, 1)),
    }
    for dtype in NUMBERS + COMPLEX:
        for label in labels(dtype, forms, ["plain", "spread"]):
            shape, *lists = forms[label]
            names = dict(zip(("ksizes", "strides", "rates"), ([1, *pair, 1] for pair in lists)))
            for padding in ("SAME", "VALID"):
                x = make(suite, dtype, label, shape)
                suite.case(f"{dtype}_{label}_{padding.lower()}", [x], names | {"padding": padding})
    x = make(suite, "float", "errors", (1, 4, 4, 1))
    one = {"ksizes": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"}
    for label, change in {
        "batch": {"ksizes": [2, 2, 2, 1]},
        "channels": {"strides": [1, 1, 1, 2]},
        "short": {"rates": [1, 1, 1]},
        "stride_zero": {"strides": [1, 0, 1, 1]},
        "size_zero": {"ksizes": [1, 0, 2, 1]},
        "rate_negative": {"rates": [1, -1, 1, 1]},
        "padding": {"padding": "EXPLICIT"},
        "large": {"ksizes": [1, 9, 9, 1]},
    }.items():
        suite.error(label, [x], one | change)
    suite.error("rank", [x[0]], one)
    yield suite.finish()


GROUPS = [tile, broadcast, pads, reverse, roll, depth, batch, patches, volume_patches]
