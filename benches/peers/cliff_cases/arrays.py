"""Reductions, searches, moves of elements, random numbers, transforms."""

import numpy as np
import tensorflow as tf

from .case import Case

raw = tf.raw_ops
MILLION = 1_000_000
# Shape and axes.
AXES = [
    ((1000, 1000), (1,)),
    ((1000, 1000), (0,)),
    ((1000, 1000), (0, 1)),
    ((500_000, 2), (1,)),
    ((500_000, 2), (0,)),
    ((2, 500_000), (1,)),
    ((2, 500_000), (0,)),
    ((100, 100, 100), (1,)),
    ((100, 100, 100), (0, 2)),
    ((1_000_000, 1), (1,)),
    ((1, 1_000_000), (0,)),
    ((333_333, 3), (1,)),
    ((333_333, 3), (0,)),
    ((7, 11, 13, 17, 59), (1, 3)),
    ((4,) * 10, (1, 3, 5, 7, 9)),
]
MATRICES = [(1000, 1000), (500_000, 2), (2, 500_000), (333_333, 3), (1_000_000, 1), (1, 1_000_000), (10_000, 100), (58_823, 17)]
PERMUTATIONS = [
    ((1000, 1000), (1, 0)),
    ((500_000, 2), (1, 0)),
    ((2, 500_000), (1, 0)),
    ((333_333, 3), (1, 0)),
    ((3, 333_333), (1, 0)),
    ((8, 224, 224, 3), (0, 3, 1, 2)),
    ((8, 3, 224, 224), (0, 2, 3, 1)),
    ((100, 100, 100), (2, 1, 0)),
    ((100, 100, 100), (1, 0, 2)),
    ((100, 100, 100), (0, 2, 1)),
    ((100, 100, 100), (1, 2, 0)),
    ((64, 128, 2, 64), (0, 2, 1, 3)),
    ((4, 128, 12, 64), (0, 2, 1, 3)),
    ((4,) * 10, tuple(range(9, -1, -1))),
    ((7, 11, 13, 17, 59), (4, 2, 0, 3, 1)),
]


def name(shape):
    return "x".join(map(str, shape)) if len(shape) < 9 else f"{shape[0]}^{len(shape)}"


def reductions(op, dtype=np.float32):
    for shape, axes in AXES:
        def make(x, shape=shape, axes=axes):
            values = x(*shape, dtype=dtype) if op != "Prod" else x(*shape, low=0.99, high=1.01)
            key = {"All": "input", "Any": "input"}.get(op, "input")
            return getattr(raw, op)(**{key: values, "axis": list(axes)})

        yield Case(f"{name(shape)}-{name(axes)}", make, MILLION)


def searches(op):
    for shape, axes in AXES:
        if len(axes) == 1:
            yield Case(f"{name(shape)}-{axes[0]}", lambda x, s=shape, a=axes[0]: getattr(raw, op)(input=x(*s), dimension=a), MILLION)


def rows(call):
    for shape in MATRICES:
        yield Case(name(shape), lambda x, shape=shape: call(x, shape), MILLION)


def along(call):
    for shape, axes in AXES:
        if len(axes) == 1:
            yield Case(f"{name(shape)}-{axes[0]}", lambda x, s=shape, a=axes[0]: call(x(*s), a), MILLION)


def transposes(dtype=np.float32):
    for shape, order in PERMUTATIONS:
        size = float(np.prod(shape)) * np.dtype(dtype).itemsize
        label = f"{name(shape)}-{''.join(map(str, order)) if len(order) < 9 else 'reversed'}"
        yield Case(label, lambda x, s=shape, o=order: tf.transpose(x(*s, dtype=dtype, low=0, high=9), o), size)


def gathers():
    for label, shape, count, axis in [
        ("rows-64", (10_000, 64), 10_000, 0),
        ("rows-1", (1_000_000, 1), 500_000, 0),
        ("vector", (1_000_000,), 500_000, 0),
        ("rows-2", (500_000, 2), 250_000, 0),
        ("rows-3", (300_000, 3), 200_000, 0),
        ("columns", (1000, 1000), 500, 1),
        ("middle", (100, 100, 100), 70, 1),
        ("one", (1000, 100_000), 1, 1),
    ]:
        def make(x, shape=shape, count=count, axis=axis):
            return tf.gather(x(*shape), x(count, dtype=np.int32, low=0, high=shape[axis]), axis=axis)

        yield Case(label, make, float(np.prod(shape)) / shape[axis] * count)


def scatters():
    for label, shape, count in [("rows-64", (10_000, 64), 10_000), ("vector", (1_000_000,), 500_000), ("rows-2", (500_000, 2), 250_000)]:
        rest = shape[1:]

        def make(x, shape=shape, count=count, rest=rest):
            return tf.scatter_nd(x(count, 1, dtype=np.int32, low=0, high=shape[0]), x(count, *rest), shape)

        yield Case(label, make, float(np.prod(rest)) * count)


def segments(op):
    for label, shape, count in [
        ("64", (20_000, 64), 100),
        ("1", (500_000,), 1000),
        ("2", (250_000, 2), 1000),
        ("one-each", (20_000, 64), 20_000),
        ("one", (500_000,), 1),
    ]:
        def make(x, shape=shape, count=count):
            ids = np.sort(x.random.integers(0, count, shape[0])).astype(np.int32)
            if op.startswith("Unsorted"):
                return getattr(raw, op)(data=x(*shape), segment_ids=x.of(ids), num_segments=count)
            return getattr(raw, op)(data=x(*shape), segment_ids=x.of(ids))

        yield Case(label, make, float(np.prod(shape)))


def one_of(label, make, work, compared=True):
    return Case(label, make, float(work), compared)


def moves():
    yield one_of("concat-1000x1000-1", lambda x: tf.concat([x(1000, 500), x(1000, 500)], 1), MILLION)
    yield one_of("concat-500000x1-1", lambda x: tf.concat([x(500_000, 1), x(500_000, 1)], 1), MILLION)
    yield one_of("concat-333333x(1,2)-1", lambda x: tf.concat([x(333_333, 1), x(333_333, 2)], 1), MILLION)
    yield one_of("concat-1000-of-1000", lambda x: tf.concat([x(1, 1000) for _ in range(1000)], 0), MILLION)
    yield one_of("split-500000x2-1", lambda x: tf.split(x(500_000, 2), 2, 1), MILLION)
    yield one_of("split-1000x1000-1", lambda x: tf.split(x(1000, 1000), 2, 1), MILLION)
    yield one_of("stack-1", lambda x: tf.stack([x(500_000), x(500_000)], 1), MILLION)
    yield one_of("unstack-1", lambda x: tf.unstack(x(500_000, 2), axis=1), MILLION)
    yield one_of("slice-column", lambda x: tf.slice(x(500_000, 2), [0, 1], [500_000, 1]), MILLION)
    yield one_of("slice-inner", lambda x: tf.slice(x(100, 100, 100), [1, 1, 1], [98, 98, 98]), MILLION)
    yield one_of("strided-2", lambda x: x(1_000_000)[::2], MILLION)
    yield one_of("strided-reverse", lambda x: x(1_000_000)[::-1], MILLION)
    yield one_of("strided-columns", lambda x: x(1000, 1000)[:, ::3], MILLION)
    yield one_of("pad-1", lambda x: tf.pad(x(1000, 1000), [[1, 1], [1, 1]]), MILLION)
    yield one_of("pad-columns", lambda x: tf.pad(x(500_000, 2), [[0, 0], [1, 1]]), MILLION)
    yield one_of("pad-reflect", lambda x: tf.pad(x(1000, 1000), [[3, 3], [3, 3]], "REFLECT"), MILLION)
    yield one_of("tile-inner", lambda x: tf.tile(x(500_000, 1), [1, 2]), MILLION)
    yield one_of("tile-outer", lambda x: tf.tile(x(1, 1000), [1000, 1]), MILLION)
    yield one_of("reverse-last", lambda x: tf.reverse(x(1000, 1000), [1]), MILLION)
    yield one_of("reverse-pairs", lambda x: tf.reverse(x(500_000, 2), [1]), MILLION)
    yield one_of("broadcast-column", lambda x: tf.broadcast_to(x(1000, 1), [1000, 1000]), MILLION)
    yield one_of("broadcast-row", lambda x: tf.broadcast_to(x(1, 1000), [1000, 1000]), MILLION)
    yield one_of("one-hot", lambda x: tf.one_hot(x(10_000, dtype=np.int32, low=0, high=100), 100), MILLION)
    yield one_of("diag-part", lambda x: tf.linalg.diag_part(x(1000, 1000)), 1000)
    yield one_of("band-part", lambda x: tf.linalg.band_part(x(1000, 1000), 0, -1), MILLION)
    yield one_of("space-to-depth", lambda x: tf.nn.space_to_depth(x(8, 128, 128, 8), 2), MILLION)
    yield one_of("space-to-batch", lambda x: tf.space_to_batch(x(8, 128, 128, 8), [2, 2], [[0, 0], [0, 0]]), MILLION)
    yield one_of("roll", lambda x: tf.roll(x(1000, 1000), [3], [1]), MILLION)


def others():
    yield one_of("top-k-10", lambda x: tf.nn.top_k(x(100, 10_000), 10)[0], MILLION)
    yield one_of("top-k-all", lambda x: tf.nn.top_k(x(100, 1000), 1000)[0], MILLION / 10)
    yield one_of("top-k-1", lambda x: tf.nn.top_k(x(10_000, 100), 1)[0], MILLION)
    yield one_of("in-top-k", lambda x: tf.math.in_top_k(x(10_000, dtype=np.int32, low=0, high=100), x(10_000, 100), 5), MILLION)
    yield one_of("unique-few", lambda x: tf.unique(x(1_000_000, dtype=np.int32, low=0, high=100))[1], MILLION)
    yield one_of("unique-many", lambda x: tf.unique(x(300_000, dtype=np.int64, low=0, high=10**9))[1], MILLION)
    yield one_of("where", lambda x: tf.where(x(1_000_000, dtype=bool)), MILLION)
    yield one_of("where-2d", lambda x: tf.where(x(1000, 1000, dtype=bool)), MILLION)
    yield one_of("searchsorted", lambda x: tf.searchsorted(tf.reshape(tf.sort(x(10_000)), [-1]), x(100_000)), MILLION, False)
    yield one_of("bincount", lambda x: tf.raw_ops.Bincount(arr=x(1_000_000, dtype=np.int32, low=0, high=100), size=100, weights=np.zeros(0, np.float32)), MILLION)
    yield one_of("l2-loss", lambda x: tf.nn.l2_loss(x(1_000_000)), MILLION)
    yield one_of("sparse-xent", lambda x: raw.SparseSoftmaxCrossEntropyWithLogits(features=x(10_000, 100), labels=x(10_000, dtype=np.int32, low=0, high=100))[0], MILLION)
    yield one_of("sparse-xent-2", lambda x: raw.SparseSoftmaxCrossEntropyWithLogits(features=x(500_000, 2), labels=x(500_000, dtype=np.int32, low=0, high=2))[0], MILLION)
    yield one_of("xent", lambda x: raw.SoftmaxCrossEntropyWithLogits(features=x(10_000, 100), labels=x(10_000, 100, low=0))[0], MILLION)
    yield one_of("random-uniform", lambda x: raw.RandomUniform(shape=[1_000_000], dtype=tf.float32), MILLION, False)
    yield one_of("random-normal", lambda x: raw.RandomStandardNormal(shape=[1_000_000], dtype=tf.float32), MILLION, False)
    yield one_of("truncated-normal", lambda x: raw.TruncatedNormal(shape=[1_000_000], dtype=tf.float32), MILLION, False)
    yield one_of("random-gamma", lambda x: raw.RandomGamma(shape=[100_000], alpha=x(1, low=0.5, high=3)), MILLION, False)
    yield one_of("shuffle", lambda x: raw.RandomShuffle(value=x(100_000)), MILLION / 10, False)
    yield one_of("multinomial", lambda x: raw.Multinomial(logits=x(100, 1000), num_samples=100), MILLION / 10, False)
    for n in (1024, 1000, 1009, 65_536, 2):
        yield one_of(f"fft-{n}", lambda x, n=n: tf.signal.fft(x(MILLION // n // 4, n, dtype=np.complex64)), MILLION, n != 1009)
    yield one_of("rfft-1024", lambda x: tf.signal.rfft(x(500, 1024)), MILLION / 2)
    yield one_of("fft2d-256", lambda x: tf.signal.fft2d(x(4, 256, 256, dtype=np.complex64)), MILLION / 4)
    yield one_of("layer-norm", lambda x: layer_norm(x(1000, 1000)), MILLION)
    yield one_of("layer-norm-16", lambda x: layer_norm(x(62_500, 16)), MILLION)


def layer_norm(x):
    mean = tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(tf.math.squared_difference(x, mean), -1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5)


FAMILIES = {
    **{f"reduce-{op}": lambda op=op: reductions(op) for op in ("Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm")},
    **{f"reduce-{op}": lambda op=op: reductions(op, bool) for op in ("All", "Any")},
    "reduce-Sum-double": lambda: reductions("Sum", np.float64),
    "reduce-Sum-half": lambda: reductions("Sum", np.float16),
    "reduce-Max-int32": lambda: reductions("Max", np.int32),
    "arg-max": lambda: searches("ArgMax"),
    "arg-min": lambda: searches("ArgMin"),
    "softmax": lambda: rows(lambda x, shape: tf.nn.softmax(x(*shape))),
    "log-softmax": lambda: rows(lambda x, shape: tf.nn.log_softmax(x(*shape))),
    "cumsum": lambda: along(lambda x, axis: tf.cumsum(x, axis)),
    "cumprod-reverse": lambda: along(lambda x, axis: tf.math.cumprod(x, axis, reverse=True)),
    "cumulative-logsumexp": lambda: along(lambda x, axis: tf.math.cumulative_logsumexp(x, axis)),
    "transpose": transposes,
    "transpose-bytes": lambda: transposes(np.int8),
    "transpose-half": lambda: transposes(np.float16),
    "transpose-double": lambda: transposes(np.float64),
    "gather": gathers,
    "scatter": scatters,
    **{f"segment-{op}": lambda op=op: segments(op) for op in ("SegmentSum", "SegmentMax", "SegmentMean", "UnsortedSegmentSum", "UnsortedSegmentMax")},
    "move": moves,
    "other": others,
}
