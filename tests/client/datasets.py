"""Datasets as cases: their elements, and by which codes they are refused."""

import numpy as np
import tensorflow as tf

from harness import case

tf1 = tf.compat.v1
data = tf.compat.v1.data
Dataset = data.Dataset
errors = tf.errors


def flat(value):
    """A value of an element as plain arrays."""
    return [np.asarray(part) for part in tf.nest.flatten(value)]


def walk(log, session, get, limit=40, name=""):
    """Logs elements up to the end; an error of an element is logged and passed over."""
    for at in range(limit):
        try:
            log.value(f"{name}{at}", flat(session.run(get)))
        except errors.OutOfRangeError:
            log.same(f"{name}end", at)
            return
        except errors.OpError as error:
            log.same(f"{name}{at} fails", type(error).__name__)
    log.same(f"{name}limit", limit)


def elements(address, log, dataset, limit=40, twice=False):
    """Logs the elements of a dataset, by an iterator that is initialised."""
    iterator = data.make_initializable_iterator(dataset)
    get = iterator.get_next()
    with tf1.Session(address) as session:
        for name in ["", "again "][:2 if twice else 1]:
            session.run(iterator.initializer)
            walk(log, session, get, limit, name)


def of(name, make, limit=40, twice=False):
    """A case that logs the elements of a dataset."""
    def run(address, log):
        elements(address, log, make(), limit, twice)
    run.__name__ = f"dataset_{name}"
    case(run)


def refused(name, make):
    """A case that logs by which code a dataset is refused, or its iterator."""
    def run(address, log):
        with log.refused("made"):
            iterator = data.make_initializable_iterator(make())
            get = iterator.get_next()
        with tf1.Session(address) as session:
            with log.refused("initialised"):
                session.run(iterator.initializer)
            for at in range(3):
                with log.refused(f"element {at}"):
                    session.run(get)
    run.__name__ = f"dataset_{name}"
    case(run)


def fed(value, dtype=tf.int64):
    """A value that shape inference does not know."""
    return tf1.placeholder_with_default(tf.constant(value, dtype), None if np.ndim(value) == 0 else [None])


def as_written(dataset):
    """A dataset that TensorFlow does not rewrite: it would make elements ahead, and cannot write ops of older versions."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


def wrapped(handle, types, shapes):
    """The dataset behind a handle."""
    from tensorflow.python.data.ops import dataset_ops
    specs = tuple(tf.TensorSpec(shape, dtype) for shape, dtype in zip(shapes, types))
    return as_written(dataset_ops._VariantDataset(handle, specs if len(specs) > 1 else specs[0]))


def variant(op, types, shapes, **inputs):
    """A dataset of a raw op."""
    return wrapped(op(output_types=types, output_shapes=shapes, **inputs), types, shapes)


def checked(n):
    """A number; every third one is an error."""
    with tf.control_dependencies([tf.debugging.assert_none_equal(n % 3, tf.constant(1, tf.int64))]):
        return tf.identity(n * 10)


def numbers_with_errors(count):
    return Dataset.range(count).map(checked)
