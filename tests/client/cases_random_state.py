"""Random numbers whose generator is a variable: bit for bit TensorFlow's."""

import numpy as np
import tensorflow as tf

from harness import case

tf1 = tf.compat.v1
raw = tf.raw_ops

PHILOX = np.int64(1)


def generator(name="g", state=(5, 0, 77), dtype=np.int64):
    return tf1.get_variable(name, initializer=np.array(state, dtype), use_resource=True)


def skip(g):
    """Steps over numbers, so that the variable has its buffer for itself. TensorFlow's StatefulRandomBinomial writes the new
    state into the buffer that the variable had before the call, which is lost where that buffer is shared with the
    initial value."""
    return raw.RngReadAndSkip(resource=g.handle, alg=1, delta=np.uint64(1))


def draws(log, address, make, state=(5, 0, 77), is_shared=True):
    """Draws twice, and shows the state after each."""
    g = generator(state=state)
    y, skipped = make(g.handle), skip(g)
    with tf1.Session(address) as session:
        session.run(g.initializer)
        if not is_shared:
            session.run(skipped)
        for at in range(2):
            drawn = session.run(y)
            # Integers are compared exactly, floats within the tolerance of the suite.
            log.value(f"{at}", drawn)
            log.value(f"state {at}", session.run(g))


def each_distribution():
    for op in ("StatefulStandardNormalV2", "StatefulTruncatedNormal", "StatefulUniform"):
        for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16):
            def run(address, log, op=op, dtype=dtype):
                draws(log, address, lambda handle: getattr(raw, op)(
                    resource=handle, algorithm=PHILOX, shape=[3, 5], dtype=dtype))
            run.__name__ = f"{op}_of_{dtype.name}"
            case(run)
    for dtype in (tf.int32, tf.int64, tf.uint32, tf.uint64):
        def whole(address, log, dtype=dtype):
            draws(log, address, lambda handle: raw.StatefulUniformFullInt(
                resource=handle, algorithm=PHILOX, shape=np.int64([7]), dtype=dtype))
        whole.__name__ = f"whole_numbers_of_{dtype.name}"
        case(whole)
    for dtype in (np.int32, np.int64):
        def between(address, log, dtype=dtype):
            draws(log, address, lambda handle: raw.StatefulUniformInt(
                resource=handle, algorithm=PHILOX, shape=[11], minval=dtype(-3), maxval=dtype(1000)))
        between.__name__ = f"numbers_between_of_{np.dtype(dtype).name}"
        case(between)


each_distribution()


@case
def a_counter_that_overflows(address, log):
    draws(log, address, lambda handle: raw.StatefulUniformFullInt(
        resource=handle, algorithm=PHILOX, shape=[5], dtype=tf.uint64), state=(-1, 3, -9))


@case
def numbers_are_skipped(address, log):
    g = generator()
    read = raw.RngReadAndSkip(resource=g.handle, alg=1, delta=np.uint64(10))
    skipped = raw.RngSkip(resource=g.handle, algorithm=PHILOX, delta=np.int64(3))
    with tf1.Session(address) as session:
        session.run(g.initializer)
        log.value("before", session.run(read))
        log.value("after", session.run(g))
        session.run(skipped)
        log.value("skipped", session.run(g))


@case
def no_numbers(address, log):
    draws(log, address, lambda handle: raw.StatefulUniform(
        resource=handle, algorithm=PHILOX, shape=[0, 3], dtype=tf.float32))


@case
def what_generators_are_refused(address, log):
    def draw(name, variable, algorithm=PHILOX):
        with log.refused(name):
            session.run(raw.StatefulUniform(resource=variable.handle, algorithm=algorithm, shape=[2]))

    with tf1.Session(address) as session:
        unset = generator("unset")
        draw("without a value", unset)
        short = generator("short", (1, 2))
        matrix = tf1.get_variable("matrix", initializer=np.int64([[1, 2, 3]]), use_resource=True)
        floats = tf1.get_variable("floats", initializer=np.float32([1, 2, 3]), use_resource=True)
        good = generator("good")
        session.run([v.initializer for v in (short, matrix, floats, good)])
        draw("short", short)
        draw("a matrix", matrix)
        draw("floats", floats)
        draw("another algorithm", good, np.int64(9))
        with log.refused("bounds"):
            session.run(raw.StatefulUniformInt(resource=good.handle, algorithm=PHILOX, shape=[2],
                                               minval=np.int32(3), maxval=np.int32(3)))
        log.value("state", session.run(good))


@case
def a_generator_of_the_client(address, log):
    with tf1.variable_scope("", use_resource=True):
        g = tf.random.Generator.from_seed(42, alg="philox")
    normal, uniform = g.normal([3]), g.uniform([3], maxval=10)
    with tf1.Session(address) as session:
        session.run(tf1.variables_initializer([g.state]))
        log.value("normal", session.run(normal))
        log.value("uniform", session.run(uniform))
        log.value("state", session.run(g.state))


# Fewer and more than ten expected outcomes of the rarer kind, no success, and parameters that broadcast.
COUNTS = [[5., 200., 30.], [0., 1000., 70.]]
PROBS = [[0.3], [0.9]]


def each_binomial():
    for parameter in (tf.float32, tf.float64, tf.float16):
        for dtype in (tf.int64, tf.float32, tf.int32, tf.float16, tf.float64):
            def run(address, log, parameter=parameter, dtype=dtype):
                draws(log, address, lambda handle: raw.StatefulRandomBinomial(
                    resource=handle, algorithm=PHILOX, shape=[4, 2, 3], counts=tf.constant(COUNTS, parameter),
                    probs=tf.constant(PROBS, parameter), dtype=dtype), is_shared=False)
            run.__name__ = f"binomial_of_{parameter.name}_as_{dtype.name}"
            case(run)


each_binomial()


@case
def many_binomial_numbers(address, log):
    draws(log, address, lambda handle: raw.StatefulRandomBinomial(
        resource=handle, algorithm=PHILOX, shape=[500], counts=tf.constant(100., tf.float64),
        probs=tf.constant(0.37, tf.float64)), is_shared=False)


@case
def binomial_parameters_that_are_none(address, log):
    g = generator()

    def draw(counts, probs, shape):
        return raw.StatefulRandomBinomial(
            resource=g.handle, algorithm=PHILOX, shape=shape, counts=tf.constant(counts, tf.float64),
            probs=tf1.placeholder_with_default(tf.constant(probs, tf.float64), None), dtype=tf.float64)

    with tf1.Session(address) as session:
        session.run(g.initializer)
        session.run(skip(g))
        log.value("no trials", session.run(draw([0., -1.], [0.5, 0.5], [2, 2])))
        log.value("no chance", session.run(draw([5., 5.], [0., -1.], [2, 2])))
        log.value("empty", session.run(draw([5.], [0.5], [0, 1])))
        log.value("state", session.run(g))
        with log.refused("a shape that does not end so"):
            session.run(draw([5., 5.], [0.5, 0.5], [3]))
        with log.refused("shapes that do not broadcast"):
            session.run(draw([5., 5.], [0.5, 0.5, 0.5], [3]))
