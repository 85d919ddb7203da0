"""Connectionist temporal classification: losses and decoders."""

import numpy as np

from .data import array, seeded
from .suite import Suite

CLOSE = {
    "float": {"tolerance": {"absolute": 2e-5, "relative": 2e-5}, "reason": "TensorFlow computes in single precision"},
    "double": {"tolerance": {"absolute": 1e-6, "relative": 1e-6}, "reason": "TensorFlow adds logarithms in single precision"},
}
# label: (steps, sequences, classes)
SIZES = {"small": (5, 2, 4), "one": (1, 1, 3), "long": (23, 3, 7)}


def scores(dtype, label, steps, count, classes):
    return array(seeded("ctc", dtype, label).standard_normal((steps, count, classes)) * 2, dtype)


def sparse(*rows):
    """Places and values of labels."""
    places = [(row, column) for row, labels in enumerate(rows) for column in range(len(labels))]
    return np.int64(places).reshape(-1, 2), np.int32([label for labels in rows for label in labels])


def labels_for(label):
    return {"small": ((0, 1), (2,)), "one": ((1,),), "long": ((0, 0, 3, 5, 5, 1), (4,), (2, 4, 2))}[label]


def blank_last(case):
    """The classes with the blank, which is the first, put last: the form that TensorFlow's CPU has."""
    inputs, places, values, lengths = case.inputs
    turned = np.concatenate([inputs[:, :, 1:], inputs[:, :, :1]], -1)
    back = lambda results: [results[0], np.concatenate([results[1][:, :, -1:], results[1][:, :, :-1]], -1)]
    return [turned, places, values - 1, lengths], {**case.attrs, "T": "float"}, back


def losses(folder):
    """CTCLoss and CTCLossV2."""
    flags = [{}, {"preprocess_collapse_repeated": True}, {"ctc_merge_repeated": False}]
    suite = Suite(folder, "speech", "CTCLoss")
    for dtype in ("float", "double"):
        for label, (steps, count, classes) in SIZES.items():
            x, lengths = scores(dtype, label, steps, count, classes), np.int32([steps - 2 * i for i in range(count)])
            for number, attrs in enumerate(flags):
                suite.case(f"{dtype}_{label}_{number}", [x, *sparse(*labels_for(label)), lengths], attrs, **dict(CLOSE[dtype]))
        x = scores(dtype, "other", 4, 3, 4)
        ignoring = {"ignore_longer_outputs_than_inputs": True}
        suite.case(f"{dtype}_too_long", [x, *sparse((0, 1, 2), (1,), (0, 0)), np.int32([2, 4, 2])], ignoring, **dict(CLOSE[dtype]))
        suite.case(f"{dtype}_no_steps", [x, *sparse((0, 1, 2), (1,), (0, 0)), np.int32([4, 0, 3])], ignoring, **dict(CLOSE[dtype]))
        suite.case(f"{dtype}_repeated", [x, *sparse((0, 0), (1,), (2,)), np.int32([2, 4, 4])], **dict(CLOSE[dtype]))
    x = scores("float", "bad", 4, 2, 3)
    good = [x, *sparse((0, 1), (1,)), np.int32([4, 3])]
    suite.error("too_long", [*good[:3], np.int32([1, 3])])
    suite.error("lengths", [*good[:3], np.int32([4])])
    suite.error("steps", [*good[:3], np.int32([5, 3])])
    suite.case("filled_up", [x, *sparse((0, 2, 2), (1, 9)), np.int32([4, 3])], **dict(CLOSE["float"]))
    suite.error("after_blank", [x, *sparse((0, 2, 1), (1,)), np.int32([4, 3])])
    suite.error("negative", [x, *sparse((0, -1), (1,)), np.int32([4, 3])])
    suite.error("few_labels", [good[0], good[1], good[2][1:], good[3]])
    suite.error("rank", [x[0], *good[1:]])
    suite.error("sequence", [x, *sparse((0, 1), (1,), (1,)), np.int32([4, 3])])
    yield suite.finish()
    suite = Suite(folder, "speech", "CTCLossV2", stand_in="CTCLoss")
    for label, (steps, count, classes) in SIZES.items():
        x, lengths = scores("float", label, steps, count, classes), np.int32([steps - 2 * i for i in range(count)])
        places, values = sparse(*labels_for(label))
        for number, attrs in enumerate(flags):
            suite.case(f"{label}_{number}", [x, places, values + np.int32(1), lengths], attrs, run_as=blank_last, via="CTCLoss", **dict(CLOSE["float"]))
    yield suite.finish()


def greedy(folder):
    """CTCGreedyDecoder."""
    suite = Suite(folder, "speech", "CTCGreedyDecoder")
    for dtype in ("float", "double"):
        for label, (steps, count, classes) in SIZES.items():
            x, lengths = scores(dtype, label, steps, count, classes), np.int32([steps - 2 * i for i in range(count)])
            for merges in (False, True):
                for blank in (-1, 0, classes - 2):
                    suite.case(f"{dtype}_{label}_{merges}_{blank % classes}", [x, lengths], {"merge_repeated": merges, "blank_index": blank})
    x = scores("float", "bad", 4, 2, 3)
    suite.case("equal", [np.ones((4, 2, 3), np.float32), np.int32([4, 2])])
    suite.case("no_steps", [x, np.int32([0, 0])])
    suite.error("steps", [x, np.int32([5, 3])])
    suite.error("blank", [x, np.int32([4, 3])], {"blank_index": 3})
    suite.error("rank", [x[0], np.int32([4, 3])])
    yield suite.finish()


def beams(folder):
    """CTCBeamSearchDecoder."""
    suite = Suite(folder, "speech", "CTCBeamSearchDecoder")
    for dtype in ("float", "double"):
        for label, (steps, count, classes) in SIZES.items():
            x, lengths = scores(dtype, label, steps, count, classes), np.int32([steps - 2 * i for i in range(count)])
            for width, paths in ((1, 1), (5, 2), (20, 2), (100, 1)) if label != "one" else ((2, 2), (100, 1)):
                for merges in (False, True):
                    suite.case(f"{dtype}_{label}_{width}_{paths}_{merges}", [x, lengths], {"beam_width": width, "top_paths": paths, "merge_repeated": merges}, **dict(CLOSE[dtype]))
    x = scores("float", "bad", 4, 2, 3)
    suite.case("no_steps", [x, np.int32([0, 0])], {"beam_width": 3, "top_paths": 1})
    suite.error("paths", [x, np.int32([4, 3])], {"beam_width": 2, "top_paths": 3})
    suite.error("few_prefixes", [x, np.int32([0, 3])], {"beam_width": 5, "top_paths": 2})
    suite.error("steps", [x, np.int32([5, 3])], {"beam_width": 2, "top_paths": 1})
    suite.error("rank", [x[0], np.int32([4, 3])], {"beam_width": 2, "top_paths": 1})
    yield suite.finish()


GROUPS = [losses, greedy, beams]
