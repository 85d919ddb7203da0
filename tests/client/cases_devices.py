"""Several devices: transfers, loops and conditionals across them, references that are read elsewhere."""

import numpy as np
import tensorflow as tf

from harness import case

tf1 = tf.compat.v1
FIRST, SECOND = "/device:CPU:0", "/device:CPU:1"


def both_forms(function):
    """A case for graphs of version 1 (frames), and one for functions."""
    for form, choose in (("frames", tf1.disable_control_flow_v2), ("functions", tf1.enable_control_flow_v2)):
        def run(address, log, choose=choose):
            choose()
            try:
                function(address, log)
            finally:
                tf1.enable_control_flow_v2()
        run.__name__ = f"{function.__name__}_by_{form}"
        case(run)


@case
def values_go_to_another_device(address, log):
    x = tf1.placeholder(tf.float32, [None])
    with tf.device(SECOND):
        y = x * 2
    with tf.device(FIRST):
        z = y + x
    with tf1.Session(address) as session:
        log.value("z", session.run(z, {x: [1, 2]}))
        log.value("both", session.run([z, y], {x: [1, 2]}))


@both_forms
def a_loop_over_two_devices(address, log):
    n = tf1.placeholder(tf.int32, [])

    def body(i, total):
        with tf.device(SECOND):
            square = i * i
        with tf.device(FIRST):
            return i + 1, total + square

    with tf.device(FIRST):
        result = tf.while_loop(lambda i, total: i < n, body, [0, 0])
    with tf1.Session(address) as session:
        for limit in (0, 1, 2, 25):
            log.value(str(limit), session.run(result, {n: limit}))


@both_forms
def a_condition_on_another_device(address, log):
    n = tf1.placeholder(tf.int32, [])

    def cond(i, total):
        with tf.device(SECOND):
            return tf.less(i, n) & tf.less(total, 100)

    with tf.device(FIRST):
        result = tf.while_loop(cond, lambda i, total: (i + 1, total + i), [0, 0])
    with tf1.Session(address) as session:
        for limit in (0, 3, 50):
            log.value(str(limit), session.run(result, {n: limit}))


@both_forms
def loops_over_two_devices_nest(address, log):
    n = tf1.placeholder(tf.int32, [])

    def row(i, total):
        def column(j, t):
            with tf.device(SECOND):
                return j + 1, t + i * j
        with tf.device(SECOND):
            inner = tf.while_loop(lambda j, t: j < i, column, [0, total])
        with tf.device(FIRST):
            return i + 1, inner[1] + 1

    with tf.device(FIRST):
        result = tf.while_loop(lambda i, t: i < n, row, [0, 0])
    with tf1.Session(address) as session:
        for limit in (0, 1, 6):
            log.value(str(limit), session.run(result, {n: limit}))


@both_forms
def a_conditional_over_two_devices(address, log):
    p = tf1.placeholder(tf.bool, [])
    x = tf1.placeholder(tf.float32, [])

    def yes():
        with tf.device(SECOND):
            return x * 10

    def no():
        with tf.device(FIRST):
            return x - 1

    with tf.device(FIRST):
        y = tf.cond(p, yes, no) + 0.5
    with tf1.Session(address) as session:
        for taken in (True, False, True):
            log.value(str(taken), session.run(y, {p: taken, x: 2}))


@both_forms
def a_loop_over_two_devices_on_a_branch(address, log):
    p = tf1.placeholder(tf.bool, [])
    n = tf1.placeholder(tf.int32, [])

    def loop():
        def body(i):
            with tf.device(SECOND):
                return i + 2
        with tf.device(FIRST):
            return tf1.while_loop(lambda i: i < n, body, [0])

    with tf.device(FIRST):
        y = tf.cond(p, loop, lambda: -n)
    with tf1.Session(address) as session:
        for taken in (True, False, True):
            log.value(str(taken), session.run(y, {p: taken, n: 5}))


@both_forms
def a_loop_reads_a_variable_elsewhere(address, log):
    with tf.device(SECOND):
        v = tf1.get_variable("v", initializer=np.float32(3), use_resource=True)
    with tf.device(FIRST):
        y = tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a + v.read_value()), [0, 0.0])
    with tf1.Session(address) as session:
        session.run(v.initializer)
        log.value("sum", session.run(y))


@case
def a_reference_is_read_on_another_device(address, log):
    with tf.device(SECOND):
        v = tf1.get_variable("v", initializer=np.float32([1, 2]), use_resource=False)
        add = tf1.assign_add(v, [10, 10])
    with tf.device(FIRST):
        y = tf.raw_ops.Identity(input=v._ref())
        with tf1.control_dependencies([add]):
            after = tf.raw_ops.Identity(input=v._ref())
    with tf1.Session(address) as session:
        session.run(v.initializer)
        log.value("read", session.run(y))
        log.value("after an update", session.run(after))


@case
def functions_on_another_device(address, log):
    @tf.function
    def f(x):
        with tf.device(SECOND):
            y = x * 3
        with tf.device(FIRST):
            return y + x

    x = tf1.placeholder(tf.float32, [])
    with tf1.Session(address) as session:
        log.value("result", session.run(f(f(x)), {x: 1}))


@case
def a_node_on_a_device_that_is_not_there(address, log):
    with tf.device("/device:CPU:7"):
        y = tf.constant(1.0) + tf1.placeholder_with_default(1.0, [])
    with tf1.Session(address) as session:
        with log.refused("run"):
            session.run(y)
    config = tf1.ConfigProto(allow_soft_placement=True)
    with tf1.Session(address, config=config) as session:
        log.value("soft placement", session.run(y))
