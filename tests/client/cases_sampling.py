"""Classes drawn for training, by seeds; pairs of words of a text, and updates of their vectors."""

import numpy as np
import tensorflow as tf

from harness import case
from written import files

tf1 = tf.compat.v1
raw = tf.raw_ops

TRUE = np.int64([[0, 3], [6, 1], [2, 2]])
KINDS = {
    "uniform": lambda **given: raw.UniformCandidateSampler(range_max=9, **given),
    "log_uniform": lambda **given: raw.LogUniformCandidateSampler(range_max=9, **given),
    "learned": lambda **given: raw.LearnedUnigramCandidateSampler(range_max=9, **given),
    "thread_unsafe": lambda **given: raw.ThreadUnsafeUnigramCandidateSampler(range_max=9, **given),
    "fixed": lambda **given: raw.FixedUnigramCandidateSampler(
        range_max=9, unigrams=[1, 5, 2, 0.5, 3, 1, 1, 8, 2.25], distortion=0.75, **given),
}


def exact(function):
    """A case whose results are equal bit for bit."""
    function.tolerance = "exact"
    return case(function)


def draw(address, log, steps, **samplers):
    """Runs each sampler some times."""
    with tf1.Session(address) as session:
        for name, sampler in samplers.items():
            for step in range(steps):
                log.value(f"{name} {step}", session.run(sampler._asdict()))


def each_kind():
    for kind, make in KINDS.items():
        for unique in (False, True):
            def run(address, log, make=make, unique=unique):
                drawn = {f"{count}": make(true_classes=TRUE, num_true=2, num_sampled=count, unique=unique, seed=7,
                                          seed2=count) for count in (1, 5, 9)}
                draw(address, log, 3, **drawn)
            run.__name__ = f"classes_drawn_{kind}_{'unique' if unique else 'often'}"
            case(run)


each_kind()


@case
def classes_of_large_ranges(address, log):
    large = np.int64([[2**40 - 1], [77]])
    given = {"num_true": 1, "num_sampled": 20, "seed": 1, "seed2": 2}
    draw(address, log, 2,
         uniform=raw.UniformCandidateSampler(true_classes=large, unique=True, range_max=2**40, **given),
         power=raw.UniformCandidateSampler(true_classes=large[1:], unique=False, range_max=128, **given),
         log_uniform=raw.LogUniformCandidateSampler(true_classes=large, unique=True, range_max=2**40, **given),
         learned=raw.LearnedUnigramCandidateSampler(true_classes=large[1:], unique=True, range_max=100000, **given))


@case
def classes_of_parts_of_a_vocabulary(address, log):
    weights = [float(weight) for weight in range(1, 12)]
    given = {"true_classes": [[0], [2]], "num_true": 1, "num_sampled": 6, "unique": False, "seed": 3, "seed2": 4}
    draw(address, log, 1,
         first=raw.FixedUnigramCandidateSampler(range_max=4, num_shards=3, shard=0, unigrams=weights, **given),
         last=raw.FixedUnigramCandidateSampler(range_max=3, num_shards=3, shard=2, unigrams=weights, **given),
         reserved=raw.FixedUnigramCandidateSampler(range_max=13, num_reserved_ids=2, unigrams=weights, **given),
         both=raw.FixedUnigramCandidateSampler(range_max=5, num_reserved_ids=5, num_shards=3, shard=1,
                                               unigrams=weights, **given))


@case
def classes_of_a_vocabulary_in_a_file(address, log):
    with files(b"a,1\n\nb,2\r\nc, 3 \nd,x,4.5e0", b"a,1\nb,x\n") as (fine, wrong):
        given = {"true_classes": [[0]], "num_true": 1, "num_sampled": 8, "unique": False, "seed": 3, "seed2": 4}
        draw(address, log, 1,
             fine=raw.FixedUnigramCandidateSampler(range_max=4, vocab_file=fine, **given))
        with tf1.Session(address) as session:
            for name, options in {"wrong": {"vocab_file": wrong, "range_max": 2}, "absent": {
                    "vocab_file": fine + "x", "range_max": 2}, "range": {"vocab_file": fine, "range_max": 3}}.items():
                with log.refused(name):
                    session.run(raw.FixedUnigramCandidateSampler(**options, **given))


@exact
def all_classes(address, log):
    draw(address, log, 1, all=raw.AllCandidateSampler(true_classes=TRUE, num_true=2, num_sampled=7, unique=True))


@case
def samplers_that_are_refused(address, log):
    unknown = tf1.placeholder_with_default(np.int64([[1]]), None)
    given = {"num_true": 1, "num_sampled": 4, "unique": False, "range_max": 3, "seed": 1}
    wrong = {
        "above": raw.UniformCandidateSampler(true_classes=np.int64([[3]]), **given),
        "below": raw.LogUniformCandidateSampler(true_classes=np.int64([[-1]]), **given),
        "too many": raw.UniformCandidateSampler(true_classes=unknown, **{**given, "unique": True}),
        "columns": raw.UniformCandidateSampler(true_classes=unknown, **{**given, "num_true": 2}),
        "no weights": raw.FixedUnigramCandidateSampler(true_classes=unknown, **given),
        "weights": raw.FixedUnigramCandidateSampler(true_classes=unknown, unigrams=[1, 2], **given),
        "both": raw.FixedUnigramCandidateSampler(true_classes=unknown, unigrams=[1, 2, 3], vocab_file="f", **given),
    }
    with tf1.Session(address) as session:
        for name, sampler in wrong.items():
            with log.refused(name):
                session.run(sampler)


def old(op, inputs=(), **attrs):
    """Adds a node of an op that TensorFlow has taken from graphs of later producers."""
    graph = tf1.GraphDef()
    graph.versions.producer = 18
    node = graph.node.add(name="old", op=op)
    for name, value in attrs.items():
        field = {bytes: "s", int: "i", float: "f"}.get(type(value))
        if field is None:
            node.attr[name].list.i.extend(value)
        else:
            setattr(node.attr[name], field, value)
    return graph, node


@case
def pairs_of_words_of_a_text(address, log):
    random = np.random.RandomState(5)
    # No two of the words that are frequent enough occur equally often.
    words = [f"w{at}" for at in range(12) for _ in range(3 + 7 * at)] + ["rare"] * 2
    random.shuffle(words)
    with files(" \n\t".join(words).encode()) as (name,):
        for subsample in (0.0, 0.01):
            graph, _ = old("Skipgram", filename=name.encode(), batch_size=1500, window_size=4, min_count=3,
                           subsample=subsample)
            with tf.Graph().as_default() as whole:
                tf.import_graph_def(graph, name="")
                with tf1.Session(address, graph=whole) as session:
                    for step in range(3):
                        log.value(f"{subsample} {step}", session.run([f"old:{at}" for at in range(7)]))


@case
def vectors_of_words_trained(address, log):
    random = np.random.RandomState(6)
    first = [random.standard_normal((4, 5)).astype(np.float32) for _ in range(2)]
    with tf.Graph().as_default() as base:
        w_in, w_out = (tf1.get_variable(name, initializer=value, use_resource=False)
                       for name, value in zip(("vectors_in", "vectors_out"), first))
        tf.constant([0, 3, 0], tf.int32, name="examples")
        tf.constant([1, 2, 2], tf.int32, name="labels")
        tf.constant(0.25, name="lr")
        tf1.global_variables_initializer()
        graph = base.as_graph_def()
    graph.versions.producer = 18
    # Only the third word is ever drawn.
    _, node = old("NegTrain", vocab_count=[0, 0, 9, 0], num_negative_samples=2)
    node.input.extend(["vectors_in", "vectors_out", "examples", "labels", "lr"])
    graph.node.append(node)
    with tf.Graph().as_default() as whole:
        tf.import_graph_def(graph, name="")
        with tf1.Session(address, graph=whole) as session:
            session.run("init")
            for _ in range(2):
                session.run("old")
                log.value("vectors", session.run(["vectors_in:0", "vectors_out:0"]))
