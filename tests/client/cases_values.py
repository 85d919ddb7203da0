"""Every element type and form of tensors, fed and fetched."""

import numpy as np
import tensorflow as tf

from harness import case

tf1 = tf.compat.v1


def there_and_back(address, log, dtype, values):
    x = tf1.placeholder(dtype, None)
    y = tf.identity(x)
    constant = tf.constant(values, dtype)
    with tf1.Session(address) as session:
        value = np.asarray(values).astype(dtype.as_numpy_dtype)
        log.value("vector", session.run(y, {x: value}))
        log.value("scalar", session.run(y, {x: value[0]}))
        log.value("matrix", session.run(y, {x: value.reshape(1, -1)}))
        log.value("none", session.run(y, {x: value[:0]}))
        log.value("constant", session.run(tf.identity(constant)))


def kind(dtype, values):
    def run(address, log):
        there_and_back(address, log, dtype, values)
    run.__name__ = f"values_of_{dtype.name}"
    case(run)


for signed in (tf.int8, tf.int16, tf.int32, tf.int64):
    kind(signed, [0, 1, -1, signed.max, signed.min, 7])
for unsigned in (tf.uint8, tf.uint16, tf.uint32, tf.uint64):
    kind(unsigned, [0, 1, 2, unsigned.max, 7, 9])
for real in (tf.float32, tf.float64, tf.float16, tf.bfloat16):
    kind(real, [0.0, -0.0, 1.5, -2.25, float("inf"), 1e-3])
for complex_type in (tf.complex64, tf.complex128):
    kind(complex_type, [0j, 1 + 2j, -3.5j, 4, 5 - 1j, 6])
kind(tf.bool, [True, False, True, True, False, False])


@case
def values_of_string(address, log):
    x = tf1.placeholder(tf.string, None)
    y = tf.identity(x)
    with tf1.Session(address) as session:
        log.value("vector", session.run(y, {x: ["", "a", b"\xff\x00z", "ä" * 100]}))
        log.value("scalar", session.run(y, {x: "one"}))
        log.value("none", session.run(y, {x: np.zeros([0, 3], object)}))
        log.value("long", session.run(y, {x: ["x" * 200000]}))


@case
def not_a_number_stays(address, log):
    x = tf1.placeholder(tf.float32, [3])
    with tf1.Session(address) as session:
        log.value("value", session.run(tf.identity(x), {x: [np.nan, -np.inf, 1]}))


@case
def shapes_of_many_dimensions(address, log):
    x = tf1.placeholder(tf.float32, None)
    y = tf.transpose(x)
    with tf1.Session(address) as session:
        for shape in ([1, 1, 1, 1, 1], [2, 3, 4], [0, 5], [3, 1, 0, 2]):
            value = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            log.value(str(shape), session.run(y, {x: value}))


@case
def a_value_of_many_bytes(address, log):
    x = tf1.placeholder(tf.float32, [None])
    y, total = tf.negative(x), tf.reduce_sum(x)
    value = np.arange(5_000_000, dtype=np.float32) % 97
    with tf1.Session(address) as session:
        back = session.run(y, {x: value})
        log.same("equal", bool((back == -value).all()))
        log.value("sum", session.run(total, {x: value}))


@case
def a_constant_of_many_bytes(address, log):
    value = np.arange(1_000_000, dtype=np.int32)
    with tf1.Session(address) as session:
        back = session.run(tf.constant(value) + 1)
        log.same("equal", bool((back == value + 1).all()))


@case
def several_values_in_one_step(address, log):
    xs = [tf1.placeholder(tf.float32, [2], name=f"x{at}") for at in range(30)]
    with tf1.Session(address) as session:
        feeds = {x: [at, -at] for at, x in enumerate(xs)}
        log.value("sum", session.run(tf.add_n(xs), feeds))
        log.value("all", session.run([x * 2 for x in xs], feeds))


@case
def a_constant_that_repeats_its_value(address, log):
    with tf1.Session(address) as session:
        log.value("fill", session.run(tf.constant(3.5, shape=[4, 5]) + 0))
        log.value("zeros", session.run(tf.zeros([2, 3], tf.int64) + 0))
        log.value("bool", session.run(tf.constant(True, shape=[3])))
        log.value("string", session.run(tf.constant("s", shape=[2, 2])))
