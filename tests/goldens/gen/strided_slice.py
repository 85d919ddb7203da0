"""StridedSlice: every mask alone and with others, strides of either sign."""

import itertools

import numpy as np

from .arrays import MOVED
from .data import COMPLEX, seeded, values
from .suite import Suite

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")

# label: (shape, begin, end, strides, masks)
SLICES = {
    "vector": ((7,), [1], [5], [1], {}),
    "vector_stride": ((7,), [0], [7], [2], {}),
    "vector_stride_long": ((7,), [1], [6], [10], {}),
    "vector_negative": ((7,), [-5], [-1], [1], {}),
    "vector_reverse": ((7,), [5], [1], [-1], {}),
    "vector_reverse_all": ((7,), [0], [0], [-1], {"begin_mask": 1, "end_mask": 1}),
    "vector_reverse_stride": ((7,), [-1], [-8], [-3], {}),
    "vector_clamped": ((7,), [-100], [100], [1], {}),
    "vector_clamped_reverse": ((7,), [100], [-100], [-2], {}),
    "vector_nothing": ((7,), [5], [2], [1], {}),
    "vector_nothing_reverse": ((7,), [2], [5], [-1], {}),
    "vector_past_end": ((7,), [9], [12], [1], {}),
    "matrix": ((5, 7), [1, 2], [4, 6], [1, 1], {}),
    "matrix_strides": ((5, 7), [0, 1], [5, 7], [2, 3], {}),
    "matrix_first_only": ((5, 7), [1], [3], [1], {}),
    "matrix_mixed": ((5, 7), [4, 0], [0, 7], [-2, 2], {}),
    "none_given": ((2, 3), [], [], [], {}),
    "scalar": ((), [], [], [], {}),
    "scalar_new_axis": ((), [0], [0], [1], {"new_axis_mask": 1}),
    "begin_mask": ((5, 7), [3, 3], [5, 6], [1, 1], {"begin_mask": 1}),
    "begin_mask_both": ((5, 7), [3, 3], [4, 6], [1, 2], {"begin_mask": 3}),
    "begin_mask_reverse": ((5, 7), [3, 3], [0, 1], [-1, -1], {"begin_mask": 2}),
    "end_mask": ((5, 7), [1, 1], [2, 2], [1, 1], {"end_mask": 2}),
    "end_mask_reverse": ((5, 7), [3, 5], [2, 2], [-1, -2], {"end_mask": 3}),
    "both_masks": ((5, 7), [3, 3], [4, 4], [2, 1], {"begin_mask": 3, "end_mask": 3}),
    "shrink": ((5, 7), [2, 1], [3, 5], [1, 1], {"shrink_axis_mask": 1}),
    "shrink_last": ((5, 7), [1, -1], [4, 0], [1, 1], {"shrink_axis_mask": 2}),
    "shrink_all": ((5, 7), [2, -3], [3, 0], [1, 1], {"shrink_axis_mask": 3}),
    "shrink_begin_mask": ((5, 7), [2, 3], [3, 4], [1, 1], {"shrink_axis_mask": 1, "begin_mask": 1}),
    "shrink_end_mask": ((5, 7), [2, 3], [3, 4], [1, 1], {"shrink_axis_mask": 2, "end_mask": 2}),
    "new_axis_first": ((5, 7), [0, 1], [0, 4], [1, 1], {"new_axis_mask": 1}),
    "new_axis_middle": ((5, 7), [1, 0, 2], [4, 0, 5], [1, 1, 1], {"new_axis_mask": 2}),
    "new_axis_last": ((5, 7), [0, 0, 0], [5, 7, 0], [1, 1, 1], {"new_axis_mask": 4}),
    "new_axis_two": ((5,), [0, 0, 1], [0, 0, 3], [1, 1, 1], {"new_axis_mask": 3}),
    "new_axis_over_shrink": ((5, 7), [0, 1], [0, 2], [1, 1], {"new_axis_mask": 1, "shrink_axis_mask": 3}),
    "ellipsis_first": ((2, 3, 5), [0, 1], [0, 4], [1, 1], {"ellipsis_mask": 1}),
    "ellipsis_last": ((2, 3, 5), [1, 0], [2, 0], [1, 1], {"ellipsis_mask": 2}),
    "ellipsis_middle": ((2, 3, 2, 5), [1, 0, 1], [2, 0, 4], [1, 1, 2], {"ellipsis_mask": 2}),
    "ellipsis_of_nothing": ((2, 3), [0, 0, 1], [2, 0, 3], [1, 1, 1], {"ellipsis_mask": 2}),
    "ellipsis_alone": ((2, 3), [0], [0], [1], {"ellipsis_mask": 1}),
    "ellipsis_shrink": ((2, 3, 5), [0, 2], [0, 3], [1, 1], {"ellipsis_mask": 1, "shrink_axis_mask": 2}),
    "ellipsis_new_axis": ((2, 3, 5), [0, 0], [0, 0], [1, 1], {"ellipsis_mask": 1, "new_axis_mask": 2}),
    "ellipsis_new_shrink": (
        (2, 3, 5),
        [1, 0, 0, 2],
        [2, 0, 0, 3],
        [1, 1, 1, 1],
        {"ellipsis_mask": 2, "new_axis_mask": 4, "shrink_axis_mask": 9},
    ),
    "all_masks": (
        (4, 3, 5, 6),
        [9, 0, 0, 1, 9],
        [9, 0, 0, 2, 9],
        [1, 1, 1, 1, -1],
        {"begin_mask": 17, "end_mask": 17, "ellipsis_mask": 2, "new_axis_mask": 4, "shrink_axis_mask": 8},
    ),
    "rank5": ((2, 3, 2, 3, 2), [0, 1, 0, 2, 0], [2, 3, 1, 0, 2], [1, 1, 1, -1, 1], {}),
    "rank6": ((2, 1, 2, 1, 2, 3), [0, 0, 0, 0, 0, 2], [2, 1, 2, 1, 1, 0], [1, 1, 1, 1, 1, -1], {}),
    "empty": ((0, 3), [0, 1], [5, 3], [1, 1], {}),
    "empty_result": ((2, 3), [0, 3], [2, 3], [1, 1], {}),
    "rows_of_large": ((37, 53), [5, 0], [31, 53], [1, 1], {}),
    "columns_of_large": ((37, 53), [0, 3], [37, 50], [1, 2], {}),
    "last_row": ((37, 53), [-1], [0], [1], {"shrink_axis_mask": 1}),
    "identity": ((3, 5), [0, 0], [3, 5], [1, 1], {}),
    "row_range": ((5, 7), [2, 0], [4, 0], [1, 1], {"end_mask": 2}),
}
FEW = ["vector_reverse", "matrix_strides", "shrink", "new_axis_middle", "ellipsis_middle", "empty_result"]


def slice_case(suite, dtype, name, spec, index="int32"):
    shape, begin, end, strides, masks = spec
    x = values(seeded("StridedSlice", dtype, name), dtype, shape)
    bounds = [np.array(b, index) for b in (begin, end, strides)]
    suite.case(f"{dtype}_{name}", [x, *bounds], dict(masks), const=[1, 2, 3])


def combined(suite):
    """All ways to set the five masks on three entries, over begin/end/stride of one form."""
    rng = seeded("StridedSlice", "combined")
    x = values(rng, "int32", (3, 4, 5))
    for masks in itertools.product(range(2), repeat=5):
        # Each mask, where set, names another entry, so that none hides another.
        chosen = dict(zip(MASKS, (bit << place for bit, place in zip(masks, (0, 3, 1, 2, 3)))))
        begin, end, strides = [1, 0, 0, 1], [3, 2, 2, 4], [1, 1, 1, 1]
        if not masks[2] and not masks[3]:  # without new axes and ellipsis only three entries fit
            begin, end, strides = begin[1:], end[1:], strides[1:]
            chosen = {
                name: value & 7 if name != "shrink_axis_mask" else (value >> 1) & 7 for name, value in chosen.items()
            }
        name = "combined_" + "".join(map(str, masks))
        bounds = [np.int32(b) for b in (begin, end, strides)]
        suite.case(f"int32_{name}", [x, *bounds], chosen, const=[1, 2, 3])


def errors(suite):
    x = np.ones((5, 7), np.float32)
    for label, begin, end, strides, masks in (
        ("stride_zero", [0], [1], [0], {}),
        ("too_many", [0, 0, 0], [1, 1, 1], [1, 1, 1], {}),
        ("lengths", [0, 0], [1], [1, 1], {}),
        ("lengths_strides", [0], [1], [1, 1], {}),
        ("two_ellipses", [0, 0], [1, 1], [1, 1], {"ellipsis_mask": 3}),
        ("shrink_high", [5], [6], [1], {"shrink_axis_mask": 1}),
        ("shrink_low", [-6], [0], [1], {"shrink_axis_mask": 1}),
        ("shrink_negative_stride", [3], [2], [-1], {"shrink_axis_mask": 1}),
        ("bounds_matrix", [[0]], [[1]], [[1]], {}),
    ):
        suite.error(label, [x, np.int32(begin), np.int32(end), np.int32(strides)], masks, const=[1, 2, 3])
    suite.error("bounds_scalar", [x, np.int32(0), np.int32(1), np.int32(1)], const=[1, 2, 3])
    suite.error("of_scalar", [np.float32(1), np.int32([0]), np.int32([1]), np.int32([1])], const=[1, 2, 3])
    suite.error(
        "shrink_empty",
        [np.zeros((0, 2), np.float32), np.int32([0]), np.int32([1]), np.int32([1])],
        {"shrink_axis_mask": 1},
        const=[1, 2, 3],
    )


def strided_slice(folder):
    """StridedSlice."""
    suite = Suite(folder, "array", "StridedSlice")
    for dtype in MOVED + COMPLEX + ["qint8", "quint8", "qint32"]:
        for label in SLICES if dtype in ("float", "string") else FEW:
            if dtype == "string" and "large" in label:
                continue
            slice_case(suite, dtype, label, SLICES[label])
    for index in ("int16", "int64"):
        for label in FEW:
            slice_case(suite, "float", f"{label}_{index}", SLICES[label], index)
    combined(suite)
    errors(suite)
    yield suite.finish()


GROUPS = [strided_slice]
