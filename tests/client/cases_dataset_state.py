"""Datasets whose functions carry a state, windows, and caches in files."""

import os
import tempfile

import tensorflow as tf

from datasets import as_written, data, elements, fed, flat, numbers_with_errors, of, refused, walk
from harness import case

tf1 = tf.compat.v1
raw = tf.raw_ops
Dataset = tf.compat.v1.data.Dataset


# A function with a state.
def sums(dataset, start=0):
    return dataset.scan(tf.constant(start, tf.int64), lambda total, n: (total + n, (n, total)))


of("scan", lambda: sums(Dataset.range(6)), twice=True)
of("scan_of_nothing", lambda: sums(Dataset.range(0)))
of("scan_of_scan", lambda: sums(Dataset.range(8), 5).scan(1., lambda product, both: (
    product * 1.5, tf.cast(both[0] + both[1], tf.float32) * product)))
of("scan_after_errors", lambda: sums(numbers_with_errors(7)))
of("scan_with_errors", lambda: Dataset.range(6).scan(tf.constant(0, tf.int64), lambda total, n: (
    tf.math.floormod(total + n, tf.constant(7, tf.int64)), tf.math.floordiv(tf.constant(12, tf.int64), n - 2))))
of("scan_with_a_state_of_several", lambda: Dataset.range(5).scan(
    (tf.constant(1.), tf.constant("s")), lambda state, n: (
        (state[0] * 2, state[1] + tf.strings.as_string(n)), (state[1], state[0]))))
of("scan_repeats", lambda: sums(Dataset.range(3)).repeat(3).batch(2))


def ending_scan(keeps_number):
    @tf.function
    def step(total, n):
        with tf.control_dependencies([tf.debugging.assert_less(n, tf.constant(9, tf.int64))]):
            return total + n, total * 2

    made = step.get_concrete_function(tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.int64))
    made.add_to_graph(tf1.get_default_graph())
    from datasets import wrapped
    handle = raw.ScanDataset(
        input_dataset=Dataset.range(12)._variant_tensor, initial_state=[tf.constant(1, tf.int64)],
        other_arguments=[], f=made, output_types=[tf.int64], output_shapes=[[]],
        preserve_cardinality=keeps_number)
    return wrapped(handle, [tf.int64], [[]])


for keeps in (False, True):
    of(f"scan_whose_function_fails_{keeps}".lower(), lambda keeps=keeps: ending_scan(keeps), limit=16)


# Functions that generate.
def generated(limit, fails_at=None):
    """Numbers from 3 up to a limit, and the queue that they are in."""
    from tensorflow.python.data.ops import from_generator_op
    init = tf.constant([3, 0], tf.int64)
    # The state is a queue: the calls of one walk share it.
    queue = tf.queue.FIFOQueue(1000, [tf.int64], [[]], shared_name=f"generated_{limit}_{fails_at}")

    def begin(start):
        with tf.control_dependencies([queue.enqueue_many(tf.range(start[0], limit))]):
            return tf.identity(start[1])

    def following(state):
        taken = tf.cond(queue.size() > 0, lambda: queue.dequeue(), lambda: ended())
        if fails_at is not None:
            with tf.control_dependencies([tf.debugging.assert_none_equal(taken, tf.constant(fails_at, tf.int64))]):
                taken = tf.identity(taken)
        return taken + state

    def ended():
        # A closed queue ends with OUT_OF_RANGE.
        closed = tf.queue.FIFOQueue(1, [tf.int64], [[]], shared_name=f"no_more_{limit}_{fails_at}")
        with tf.control_dependencies([closed.close()]):
            return closed.dequeue()

    def finish(state):
        with tf.control_dependencies([queue.enqueue(tf.constant(77, tf.int64))]):
            return tf.identity(state)

    dataset = from_generator_op._GeneratorDataset(
        init, begin, following, finish, tf.TensorSpec([], tf.int64))
    return as_written(dataset), queue


@case
def dataset_generator(address, log):
    dataset, queue = generated(8)
    iterator = data.make_initializable_iterator(dataset)
    get = iterator.get_next()
    with tf1.Session(address) as session:
        session.run(iterator.initializer)
        walk(log, session, get)
        log.value("finished", session.run(queue.dequeue()))
        walk(log, session, get, name="after ")
        log.value("once", session.run(queue.size()))


@case
def dataset_generator_with_an_error(address, log):
    dataset, _ = generated(9, fails_at=5)
    iterator = data.make_initializable_iterator(dataset.batch(2))
    get = iterator.get_next()
    with tf1.Session(address) as session:
        session.run(iterator.initializer)
        for at in range(3):
            with log.refused(f"{at}"):
                log.value(f"value {at}", session.run(get))


# All elements at once.
@case
def dataset_reduce(address, log):
    def total(dataset):
        return dataset.reduce(tf.constant(100, tf.int64), lambda state, n: state + n)

    both = Dataset.range(5).reduce((tf.constant(0., tf.float64), tf.constant("")), lambda state, n: (
        state[0] + tf.cast(n, tf.float64) / 2, state[1] + tf.strings.as_string(n)))
    with tf1.Session(address) as session:
        log.value("sum", session.run(total(Dataset.range(1000))))
        log.value("of nothing", session.run(total(Dataset.range(0))))
        log.value("several", session.run(both))
        with log.refused("an error"):
            session.run(total(numbers_with_errors(5)))
        with log.refused("an error of the function"):
            session.run(Dataset.range(5).reduce(
                tf.constant(1, tf.int64), lambda state, n: tf.math.floordiv(state, n)))


@case
def dataset_reduce_past_a_time_limit(address, log):
    endless = Dataset.range(5).repeat().reduce(tf.constant(0, tf.int64), lambda state, n: state + n)
    with tf1.Session(address) as session:
        with log.refused("endless"):
            session.run(endless, options=tf1.RunOptions(timeout_in_ms=300))
        log.value("after", session.run(Dataset.range(3).reduce(tf.constant(0, tf.int64), lambda a, b: a + b)))


# Windows.
def windows(dataset, size, shift=None, stride=1, drops=False):
    windows = dataset.window(fed(size), None if shift is None else fed(shift), fed(stride), drops)
    return windows.flat_map(lambda *parts: Dataset.zip(parts if len(parts) > 1 else parts[0]).batch(100))


for size, shift, stride, drops in [(3, None, 1, False), (3, None, 1, True), (3, 1, 1, False), (3, 1, 1, True),
                                   (2, 1, 3, False), (2, 1, 3, True), (2, 4, 1, False), (2, 9, 2, True),
                                   (30, 1, 1, False), (30, 1, 1, True)]:
    of(f"window_{size}_{shift}_{stride}_{drops}".lower(), lambda size=size, shift=shift, stride=stride, drops=drops:
       windows(Dataset.range(10), size, shift, stride, drops), twice=True)
of("window_of_several", lambda: windows(Dataset.zip((Dataset.range(5), Dataset.range(7, 12).map(tf.strings.as_string))), 2))
of("window_of_batches", lambda: Dataset.range(12).batch(2).window(2, 1).flat_map(lambda part: part))
of("window_of_windows", lambda: Dataset.range(9).window(2).window(2).flat_map(
    lambda parts: parts.flat_map(lambda part: part.batch(5))))
of("window_after_errors", lambda: windows(numbers_with_errors(9), 2, 1))
of("window_beyond_errors", lambda: windows(numbers_with_errors(9), 1, 3))
of("window_of_nothing", lambda: windows(Dataset.range(0), 3))
refused("window_of_size_0", lambda: windows(Dataset.range(3), 0, 1))
refused("window_of_shift_0", lambda: windows(Dataset.range(3), 1, 0))
refused("window_of_stride_0", lambda: windows(Dataset.range(3), 1, 1, 0))


# Caches in files.
def cached(path):
    return as_written(Dataset.range(25).map(lambda n: {
        "number": n, "square": tf.cast(n * n, tf.float32), "row": tf.fill([n % 3], n),
        "text": tf.strings.as_string(tf.range(n % 4)), "bool": n % 2 == 0}).cache(path))


def names(folder):
    return sorted(os.listdir(folder))


@case
def dataset_cache_in_files(address, log):
    with tempfile.TemporaryDirectory() as folder:
        elements(address, log, cached(os.path.join(folder, "cache")).repeat(2), limit=60, twice=True)
        log.same("index", [name for name in names(folder) if name.endswith(".index") or "lock" in name])


@case
def dataset_cache_that_tensorflow_reads(address, log):
    """What a server wrote is read by TensorFlow's own session, and what that wrote by the server."""
    with tempfile.TemporaryDirectory() as folder:
        for name, writer, reader in (("own", address, ""), ("theirs", "", address)):
            iterator = data.make_initializable_iterator(cached(os.path.join(folder, name)))
            get = iterator.get_next()
            with tf1.Session(writer) as session:
                session.run(iterator.initializer)
                for _ in range(25):
                    session.run(get)
                with log.refused("end"):
                    session.run(get)
            # The input is not there: only the files have elements.
            other = as_written(Dataset.range(0).map(lambda n: {
                "number": n, "square": tf.cast(n * n, tf.float32), "row": tf.fill([n % 3], n),
                "text": tf.strings.as_string(tf.range(n % 4)), "bool": n % 2 == 0}).cache(os.path.join(folder, name)))
            iterator = data.make_initializable_iterator(other)
            get = iterator.get_next()
            with tf1.Session(reader) as session:
                session.run(iterator.initializer)
                walk(log, session, get, name=name + " ")


@case
def dataset_cache_that_is_left(address, log):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cache")
        iterator = data.make_initializable_iterator(cached(path))
        get = iterator.get_next()
        with tf1.Session(address) as session:
            session.run(iterator.initializer)
            log.value("first", flat(session.run(get)))
            log.same("lock", "cache_0.lockfile" in names(folder))
            other = data.make_initializable_iterator(cached(path))
            following = other.get_next()
            session.run(other.initializer)
            with log.refused("a second writer"):
                session.run(following)
            # The walk is left for another one.
            session.run(iterator.initializer)
            log.same("left", [name for name in names(folder) if "lock" in name])
            log.value("again", flat(session.run(get)))


@case
def dataset_cache_in_a_file_that_cannot_be(address, log):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        with open(path, "w") as file:
            file.write("text")
        iterator = data.make_initializable_iterator(cached(os.path.join(path, "cache")))
        get = iterator.get_next()
        with tf1.Session(address) as session:
            session.run(iterator.initializer)
            with log.refused("element", theirs={"NotFoundError": "FailedPreconditionError"}):
                session.run(get)


@case
def dataset_counter_of_no_iterations(address, log):
    handle = raw.DummyIterationCounter()
    with tf1.Session(address) as session:
        log.same("made", session.run(handle.op) is None)
