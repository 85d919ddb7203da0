"""Dead values, Switch and Merge, loops of frames."""

import tensorflow as tf

from harness import case

tf1 = tf.compat.v1
tf1.disable_control_flow_v2()


@case
def a_branch_is_taken(address, log):
    p = tf1.placeholder(tf.bool, [])
    x = tf1.placeholder(tf.float32, [])
    y = tf1.cond(p, lambda: x + 1, lambda: x - 1)
    with tf1.Session(address) as session:
        log.value("true", session.run(y, {p: True, x: 1}))
        log.value("false", session.run(y, {p: False, x: 1}))


@case
def a_dead_value_is_not_fetched(address, log):
    p = tf1.placeholder(tf.bool, [])
    false, true = tf.raw_ops.Switch(data=tf.constant(1.0), pred=p)
    with tf1.Session(address) as session:
        log.value("alive", session.run(true + 1, {p: True}))
        with log.refused("dead", theirs={"InternalError": "InvalidArgumentError"}):
            session.run(false + 1, {p: True})


@case
def a_merge_says_which(address, log):
    p = tf1.placeholder(tf.bool, [])
    false, true = tf.raw_ops.Switch(data=tf.constant(5.0), pred=p)
    merged = tf.raw_ops.Merge(inputs=[false * 2, true * 3])
    with tf1.Session(address) as session:
        log.value("true", session.run(list(merged), {p: True}))
        log.value("false", session.run(list(merged), {p: False}))


@case
def a_loop_counts(address, log):
    n = tf1.placeholder(tf.int32, [])
    count, total = tf1.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t + i), [0, 0])
    with tf1.Session(address) as session:
        for limit in (0, 1, 7, 100):
            log.value(str(limit), session.run([count, total], {n: limit}))


@case
def loops_nest(address, log):
    n = tf1.placeholder(tf.int32, [])

    def row(i, total):
        _, total = tf1.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t + i * j), [0, total])
        return i + 1, total

    result = tf1.while_loop(lambda i, t: i < n, row, [0, 0])
    with tf1.Session(address) as session:
        log.value("nested", session.run(result, {n: 6}))


@case
def a_condition_in_a_loop(address, log):
    n = tf1.placeholder(tf.int32, [])

    def body(i, total):
        more = tf1.cond(tf.equal(i % 2, 0), lambda: total + i, lambda: total * 2)
        return i + 1, more

    result = tf1.while_loop(lambda i, t: i < n, body, [0, 1])
    with tf1.Session(address) as session:
        log.value("value", session.run(result, {n: 9}))


@case
def a_loop_of_matrices(address, log):
    x = tf1.placeholder(tf.float32, [2, 2])
    _, y = tf1.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.matmul(y, x)), [0, x])
    with tf1.Session(address) as session:
        log.value("power", session.run(y, {x: [[1, 1], [1, 0]]}))


@case
def a_case_of_several(address, log):
    x = tf1.placeholder(tf.int32, [])
    y = tf1.case([(tf.less(x, 0), lambda: tf.constant(-1)), (tf.greater(x, 10), lambda: tf.constant(99))],
                 default=lambda: x * 2)
    with tf1.Session(address) as session:
        for value in (-5, 3, 20):
            log.value(str(value), session.run(y, {x: value}))


@case
def control_edges_order(address, log):
    x = tf1.placeholder(tf.float32, [])
    check = tf1.Assert(x > 0, [x])
    with tf.control_dependencies([check]):
        y = tf.identity(x)
    with tf1.Session(address) as session:
        log.value("holds", session.run(y, {x: 1}))
        with log.refused("fails"):
            session.run(y, {x: -1})


@case
def a_loop_that_takes_too_long(address, log):
    x = tf1.placeholder(tf.float32, [])
    y = tf1.while_loop(lambda y: y >= 0, lambda y: y + 1, [x])
    with tf1.Session(address) as session, log.refused("deadline"):
        session.run(y, {x: 0}, options=tf1.RunOptions(timeout_in_ms=300))
