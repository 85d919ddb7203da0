"""Summaries as serialised messages, rows written into tensors, checks of numbers."""

import numpy as np
import tensorflow as tf

from harness import case

tf1 = tf.compat.v1
raw = tf.raw_ops

REAL = ["half", "bfloat16", "float", "double", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TYPES = REAL + ["bool", "complex64", "complex128"]


def exact(function):
    """A case whose results are equal bit for bit."""
    function.tolerance = "exact"
    return case(function)


def unknown(value, dtype=None):
    """A tensor of which graph construction knows nothing."""
    return tf1.placeholder_with_default(tf.constant(value, dtype), None)


def run(address, log, **tensors):
    """Logs what each of some ops gives, or that it is refused; bytes, which may end in zeros, as text."""
    tensors = {name: tf.io.encode_base64(tensor, pad=True) if tensor.dtype == tf.string else tensor
               for name, tensor in tensors.items()}
    with tf1.Session(address) as session:
        for name, tensor in tensors.items():
            with log.refused(name):
                log.value(name, session.run(tensor))


@exact
def summary_of_scalars(address, log):
    values = {dtype: raw.ScalarSummary(tags=["a", "b/c"], values=tf.cast([3, 0], dtype)) for dtype in REAL}
    run(address, log, **values, one=raw.ScalarSummary(tags="tag", values=unknown([2.5])),
        grid=raw.ScalarSummary(tags=[["a", "b"], ["c", "d"]], values=[[1.0, -0.0], [np.inf, 4]]),
        none=raw.ScalarSummary(tags=tf.constant([], tf.string), values=tf.constant([], tf.float32)),
        differ=raw.ScalarSummary(tags=unknown(["a"]), values=unknown([1.0, 2.0])))


@exact
def summary_of_a_histogram(address, log):
    values = {dtype: raw.HistogramSummary(tag="h", values=tf.cast([3, 0, 100, 1, 1, 77], dtype)) for dtype in REAL}
    spread = np.float64([-3e21, -1e20, -1.1, -1, -1e-13, 0, 1e-13, 1e-12, 1.1e-12, 1, 1.0, 5, 5.01, 1e19, 1e20, 1e300])
    run(address, log, **values, spread=raw.HistogramSummary(tag="", values=spread),
        random=raw.HistogramSummary(tag="r", values=np.float32(np.random.RandomState(3).standard_normal((9, 9)))),
        none=raw.HistogramSummary(tag="h", values=tf.constant([], tf.float32)),
        nan=raw.HistogramSummary(tag="h", values=[1.0, np.nan]),
        infinite=raw.HistogramSummary(tag="h", values=[-np.inf]),
        tags=raw.HistogramSummary(tag=unknown(["a", "b"]), values=[1.0]))


@exact
def summaries_merged(address, log):
    parts = [raw.ScalarSummary(tags=["a", "b"], values=[1.0, 2.0]), raw.HistogramSummary(tag="h", values=[1.0])]
    run(address, log, both=raw.MergeSummary(inputs=parts), none=raw.MergeSummary(inputs=[tf.constant([], tf.string)]),
        twice=raw.MergeSummary(inputs=[parts[0], parts[0]]), junk=raw.MergeSummary(inputs=[b"\x0a\x05a"]),
        nodes=raw.MergeSummary(inputs=[raw.TensorSummary(tensor=1.0), raw.TensorSummary(tensor=2.0)]))


@exact
def summary_of_a_tensor(address, log):
    values = {dtype: raw.TensorSummary(tensor=tf.cast([[3, 0], [1, 2]], dtype), name=f"of_{dtype}") for dtype in TYPES}
    tagged = {f"{dtype}_2": raw.TensorSummaryV2(tag="t", tensor=tf.cast([[3, 0]], dtype),
                                                serialized_summary_metadata=b"\x1a\x03abc") for dtype in TYPES}
    run(address, log, **values, **tagged, none=raw.TensorSummary(tensor=tf.constant([], tf.float32), name="none"),
        scalar=raw.TensorSummary(tensor=7.0, name="scalar"),
        text=raw.TensorSummary(tensor=["ab", "", "c"], name="text"),
        bare=raw.TensorSummaryV2(tag="", tensor=[1.0], serialized_summary_metadata=b""))


@exact
def summary_of_audio(address, log):
    samples = np.float32([[0.5, -0.5], [1, -1], [0.1, 2], [-2, 3e-5], [1.52587890625e-05, 4.57763671875e-05]])
    run(address, log, one=raw.AudioSummaryV2(tag="a", tensor=samples.T, sample_rate=8000.0),
        stereo=raw.AudioSummaryV2(tag="a", tensor=samples[None], sample_rate=44100.0, max_outputs=1),
        several=raw.AudioSummaryV2(tag="a", tensor=samples.T[..., None], sample_rate=22050.5, max_outputs=5),
        flat=raw.AudioSummaryV2(tag="a", tensor=unknown(samples[0]), sample_rate=8000.0),
        rounded=raw.AudioSummaryV2(tag="a", tensor=samples, sample_rate=22050.7),
        slow=raw.AudioSummaryV2(tag="a", tensor=samples, sample_rate=0.25),
        still=raw.AudioSummaryV2(tag="a", tensor=samples, sample_rate=0.0),
        tag=raw.AudioSummaryV2(tag=unknown(["a", "b"]), tensor=samples, sample_rate=8000.0))


@exact
def images_that_are_refused(address, log):
    image = np.zeros((1, 2, 2, 3), np.float32)
    run(address, log, pixels=raw.ImageSummary(tag="i", tensor=image[:, :0]),
        channels=raw.ImageSummary(tag="i", tensor=image[..., :2]),
        rank=raw.ImageSummary(tag="i", tensor=unknown(image[0])),
        colour=raw.ImageSummary(tag="i", tensor=image, bad_color=tf.make_tensor_proto(np.uint8([1, 2]))),
        tag=raw.ImageSummary(tag=unknown(["a", "b"]), tensor=image))


@exact
def rows_written_in_place(address, log):
    results = {}
    for way in ("Update", "Add", "Sub"):
        for dtype in TYPES:
            if way == "Update" or dtype != "bool":
                x = tf.cast(np.arange(12).reshape(4, 3), dtype)
                v = tf.cast(np.arange(12).reshape(4, 3) % 5, dtype)
                results[f"{way}_{dtype}"] = getattr(raw, f"Inplace{way}")(x=x, i=[1, -1, 5, 1], v=v)
    x = np.ones((4, 3), np.float32)
    run(address, log, **results, none=raw.InplaceAdd(x=x, i=tf.constant([], tf.int32), v=x[:0]),
        vector=raw.InplaceAdd(x=x[0], i=[2], v=[5.0]), scalar=raw.InplaceAdd(x=x, i=1, v=x[0]),
        width=raw.InplaceUpdate(x=x, i=[1], v=x[:1, :2]), count=raw.InplaceUpdate(x=x, i=[1], v=x[:2]))


@exact
def tensors_copied(address, log):
    run(address, log, **{dtype: raw.DeepCopy(x=tf.cast([[3, 0], [1, 2]], dtype)) for dtype in TYPES})


@exact
def numbers_checked(address, log):
    results = {}
    for dtype in ("half", "bfloat16", "float", "double"):
        for name, value in {"fine": [1, -2], "plus": [1, np.inf], "minus": [-np.inf], "nan": [np.nan, 3]}.items():
            results[f"{dtype}_{name}"] = raw.CheckNumericsV2(tensor=tf.constant(value, dtype), message="checked")
    run(address, log, **results)


@exact
def true_classes_that_were_sampled(address, log):
    classes, sampled = np.int64([[1, 2], [3, 1], [9, 9]]), np.int64([3, 1, 1, 7, 9])

    def hits(classes, sampled, number=2):
        return raw.ComputeAccidentalHits(true_classes=classes, sampled_candidates=sampled, num_true=number)
    none = hits(classes, np.int64([]))._asdict().items()
    run(address, log, **hits(classes, sampled)._asdict(), **{f"none_{key}": value for key, value in none},
        flat=hits(unknown([1, 2], tf.int64), sampled).ids, columns=hits(unknown(classes), sampled, 1).ids)
